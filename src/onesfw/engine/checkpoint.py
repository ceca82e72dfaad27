"""Runs that survive being killed: a folder that belongs to one run, and in it the state, written whole or not at all.

The compiled loop and the training of linear models save by the same rules: at most every ten seconds and at the end,
and only into a folder whose run was asked for with the same arguments.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from onesfw.arguments import named, warn
from onesfw.files import Tensors, check_path, read_tensors, remove_leftovers, write_tensors, write_whole

INTERVAL = 10.0  # seconds between saves, at least
SHARE = 20.0  # a save that takes a second is made every 20 seconds at most
MARK = "onesfw-checkpoint.json"
FORMAT, VERSION = "onesfw.checkpoint", 1
FILE_PART = "file "  # begins the name of a part that is one of several files
REMEDY = "choose another path, or delete it to start anew"


class CheckpointWarning(UserWarning):
    """A save failed; the run goes on, and what was saved before is still there."""


def open_folder(path: str | Path, parts: dict[str, str]) -> Path:
    """The folder of a run with this fingerprint: new, empty, or of the very same run.

    Args:
        path: the folder.
        parts: a name and a text for everything that decides where the run goes.

    Raises:
        ValueError: where the folder holds something else, or a run with other parts, which are named.
        OSError: where it cannot be made or written.
    """
    checkpoint = named("checkpoint")
    if "\0" in str(path):
        raise ValueError(f"{checkpoint}: {str(path)!r} holds a null character, which no path may")
    check_path(path)
    if not str(path):
        raise ValueError(f"{checkpoint} must be the path of a folder, got ''")
    folder = Path(path).absolute()
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{checkpoint}: {path} is a file; give the path of a folder")
    mark = folder / MARK
    try:
        if not mark.exists():
            if folder.exists() and any(not entry.name.startswith(f".{MARK}") for entry in folder.iterdir()):
                raise ValueError(f"{checkpoint}: the folder {path} is not empty and holds no run of onesfw; {REMEDY}")
            folder.mkdir(parents=True, exist_ok=True)
            write_whole(mark, json.dumps(parts, indent=1).encode())
            return folder
    except OSError as error:
        raise type(error)(f"{checkpoint}: {path} cannot be written: {error.strerror or error}") from None
    try:
        saved = json.loads(mark.read_text())
        different = [name for name in {**saved, **parts} if saved.get(name) != parts.get(name)]
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"{checkpoint}: {mark} cannot be read ({error}); {REMEDY}") from error
    for name in different:
        if name.startswith(FILE_PART):
            what = "is gone" if name not in parts else "has changed" if name in saved else "was added"
            raise ValueError(
                f"{checkpoint}: {name.removeprefix(FILE_PART)} {what} since the run in {path} was begun; put it back, "
                "or start anew in another folder"
            )
    if different:
        shown = "; ".join(f"{named(n)} (saved: {saved.get(n, 'free')}, now: {parts.get(n, 'free')})" for n in different)
        raise ValueError(f"{checkpoint}: {path} belongs to a run with another {shown}; {REMEDY}")
    return folder


class Checkpoint:
    """One run's state in a folder: numbers and words as JSON, arrays as tensors, under a SHA-256.

    Args:
        folder: as `open_folder` gave it.
        name: of the file, where a folder holds the states of several runs.
    """

    def __init__(self, folder: Path, name: str = "state") -> None:
        self.path = folder / f"{name}.safetensors"
        self.last, self.cost = time.monotonic(), 0.0

    def due(self) -> bool:
        """Whether it is time to save."""
        return time.monotonic() - self.last >= max(INTERVAL, SHARE * self.cost)

    def load(self) -> tuple[dict[str, Any], Tensors] | None:
        """What was saved last; None where nothing was.

        Raises:
            ValueError: where the file is damaged.
        """
        remove_leftovers(self.path)
        if not self.path.exists():
            return None
        try:
            return read_tensors(self.path, FORMAT, VERSION, "checkpoint")
        except (ValueError, OSError) as error:
            raise ValueError(f"{named('checkpoint')}: {self.path} is damaged; {REMEDY}") from error

    def damaged(self) -> ValueError:
        """The error for a file whose fields do not fit the run."""
        return ValueError(f"{named('checkpoint')}: {self.path} is damaged; {REMEDY}")

    def save(self, content: dict[str, Any], tensors: Tensors) -> None:
        """Replace what was saved; where the disk refuses, warn and keep the earlier save."""
        begun = time.monotonic()
        try:
            write_tensors(self.path, FORMAT, VERSION, content, tensors)
        except OSError as error:
            warn(
                f"checkpoint: {self.path} could not be saved ({error.strerror or error}); the run goes on, and the "
                "earlier save is kept",
                CheckpointWarning,
            )
        self.last = time.monotonic()
        self.cost = self.last - begun


@contextmanager
def saved_after(kind: type[Exception], save: Callable[[], None]) -> Iterator[None]:
    """Save before an error of that kind ends the run."""
    try:
        yield
    except kind:
        save()
        raise


def digest(*parts: Any) -> str:
    """The first 16 hexadecimal digits of a SHA-256 over texts and arrays with their shapes and dtypes."""
    hasher = hashlib.sha256()
    for part in parts:
        if isinstance(part, str):
            hasher.update(part.encode())
        else:
            array = np.ascontiguousarray(part)
            hasher.update(f"{array.dtype}{array.shape}".encode())
            hasher.update(array.reshape(-1).view(np.uint8).data)
    return hasher.hexdigest()[:16]


def saved_entry(value: Any) -> Any:
    """An entry of a trace row as JSON knows it: NaN as None, arrays as lists."""
    if isinstance(value, np.ndarray):
        return [saved_entry(v) for v in value.tolist()]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value.item() if isinstance(value, np.generic) else value


def restored_row(row: dict[str, Any]) -> dict[str, Any]:
    """The row that `saved_entry` wrote."""

    def back(value: Any) -> Any:
        if isinstance(value, list):
            return np.asarray([np.nan if v is None else v for v in value])
        return np.nan if value is None else value

    return {name: back(value) for name, value in row.items()}
