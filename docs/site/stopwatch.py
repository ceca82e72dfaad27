"""The processor seconds of each example of the gallery, noted beside its page: the clock says as much about others."""

import json
import os
from pathlib import Path

PLACE = "gallery/seconds.json"
_begun: dict[str, float] = {}


def note(gallery_conf: dict[str, object], fname: str | None, when: str) -> None:
    """What the gallery calls before and after every example; the processes that one starts count too."""
    if fname is None:
        return
    name, now = Path(fname).stem, sum(os.times()[:4])
    if when == "before":
        _begun[name] = now
        return
    place = Path(str(gallery_conf["src_dir"]), PLACE)
    noted = json.loads(place.read_text(encoding="utf-8")) if place.exists() else {}
    noted[name] = round(now - _begun[name], 1)
    place.write_text(json.dumps(noted, indent=1, sort_keys=True), encoding="utf-8")
