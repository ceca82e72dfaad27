"""Ctrl-C on the real program at random moments: exit code 130, whole output or none, within 2 seconds.

    python benchmarks/interrupts.py [--moments 50] [--seed 0]

Commands in turn, each started anew: `solve`, `fit`, `select`, `list`, `complete`, `stability`; SIGINT comes at a random
moment of the time that the command takes when it is left alone, so that it hits the start of Python, the imports, the
compilation, the run and the output alike. What may happen: the program is over before (code 0); or it ends with 130,
and what it printed is nothing or one whole JSON object, the files that it was to write are not there or can be read,
and no traceback is shown. Before Python has come to our code it ends as Python does: by the signal itself, which a
shell shows as 130, or with 1. Seconds are counted from the signal to the end, on the clock and of the program's own
processor time: on a busy machine the clock tells how busy it is.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MOST_SECONDS = 2.0
OURS = re.compile(r"onesfw/__main__\.py\", line \d+, in main")
PROGRAM = [sys.executable, "-m", "onesfw"]


@dataclass(frozen=True)
class Interrupted:
    """One command that was interrupted."""

    command: str
    moment: float
    code: int
    clock: float
    """Seconds from the signal to the end."""
    processor: float
    """Of these, the program's own."""
    wrong: str = ""


def commands(folder: Path) -> dict[str, list[str]]:
    """A command of each kind, with what it writes in the folder."""
    rng = random.Random(0)
    rows = [f"{i % 2} 1:{rng.random():.3f} 2:{rng.random():.3f}" for i in range(2_000)]
    (folder / "rows.svm").write_text("\n".join(rows) + "\n")
    table = ["a,b", *(f"{rng.random():.3f},{rng.random():.3f}" for _ in range(300))]
    (folder / "table.csv").write_text("\n".join(table) + "\n")
    ratings = ["u,i,r", *(f"{n % 200},{n % 101},{rng.gauss(0, 1):.3f}" for n in range(10_000))]
    (folder / "ratings.csv").write_text("\n".join(ratings) + "\n")
    wide = [",".join(f"{rng.gauss(0, 1):.3f}" for _ in range(31)) for _ in range(300)]
    (folder / "wide.csv").write_text("\n".join([",".join(["y", *(f"x{j}" for j in range(30))]), *wide]) + "\n")
    model, chosen = str(folder / "model"), str(folder / "chosen.csv")
    columns = ["--user", "u", "--item", "i", "--rating", "r", "--model", str(folder / "matrix")]
    return {
        "solve": ["solve", "logistic", "--steps", "2000000", "--json", "--quiet"],
        "fit": ["fit", str(folder / "rows.svm"), "--radius", "5", "--passes", "1000", "--json", "--model", model],
        "select": ["select", str(folder / "table.csv"), "--k", "5", "--steps", "50000", "--json", "--out", chosen],
        "list": ["list"],
        "complete": ["complete", str(folder / "ratings.csv"), *columns, "--json"],
        "stability": ["stability", str(folder / "wide.csv"), "--target", "y", "--json"],
    }


def processor_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def interrupted(name: str, words: list[str], moment: float, folder: Path) -> Interrupted:
    """Start a command, send SIGINT at that moment, and judge how it ends."""
    for path in (folder / "model", folder / "chosen.csv", folder / "matrix"):
        path.unlink(missing_ok=True)
    with open(folder / "out", "wb") as out, open(folder / "err", "wb") as err:
        process = subprocess.Popen([*PROGRAM, *words], stdout=out, stderr=err, stdin=subprocess.DEVNULL)
        time.sleep(moment)
        before = processor_seconds(process.pid)  # of a process that has ended too, until it is waited for
        begun = time.monotonic()
        os.kill(process.pid, signal.SIGINT)
        _, status, used = os.wait4(process.pid, 0)
        clock = time.monotonic() - begun
        process.returncode = code = os.waitstatus_to_exitcode(status)
    wrong = complaint(name, code, (folder / "out").read_text(), (folder / "err").read_text(), folder)
    return Interrupted(name, moment, code, clock, used.ru_utime + used.ru_stime - before, wrong)


def complaint(name: str, code: int, out: str, err: str, folder: Path) -> str:
    """What is wrong with how a command ended; nothing where all is well."""
    if "Traceback" in err and not OURS.search(err):
        return ""  # Python's own start shows one, and ends by the signal or with 1
    if code not in (0, 130, -signal.SIGINT):
        return f"exit code {code}: {err[-300:]}"
    if "Traceback" in err:
        return f"a traceback: {err[-300:]}"
    if out and name != "list":
        try:
            json.loads(out)
        except ValueError:
            return f"no whole JSON: {out[:100]}"
    elif not out and code == 0:
        return "nothing printed"
    if (folder / "model").exists():
        from onesfw.linear import LinearModel

        LinearModel.load(folder / "model")
    if (folder / "matrix").exists():
        from onesfw.lowrank import LowRank

        LowRank.load(folder / "matrix")
    if (folder / "chosen.csv").exists() and len((folder / "chosen.csv").read_text().splitlines()) != 6:
        return "a part of the chosen rows"
    return ""


def campaign(moments: int, seed: int, folder: Path) -> Iterator[Interrupted]:
    """Interrupt commands in turn at so many moments in all."""
    rng, kinds = random.Random(seed), commands(folder)
    lasted: dict[str, float] = {}
    for place in range(moments):
        name, words = list(kinds.items())[place % len(kinds)]
        if name not in lasted:
            begun = time.monotonic()
            subprocess.run([*PROGRAM, *words], capture_output=True, check=True)
            lasted[name] = time.monotonic() - begun
        yield interrupted(name, words, rng.uniform(0, lasted[name]), folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--moments", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = []
        for one in campaign(options.moments, options.seed, Path(folder)):
            found.append(one)
            print(one, flush=True)
    codes = Counter(one.code for one in found)
    clock, own = max(one.clock for one in found), max(one.processor for one in found)
    print(f"{len(found)} moments, exit codes {dict(codes)}; to the end at most {clock:.2f} s, own time {own:.2f} s")
    wrong = [one for one in found if one.wrong or one.processor > MOST_SECONDS]
    sys.exit("\n".join(map(str, wrong)) or 0)


if __name__ == "__main__":
    main()
