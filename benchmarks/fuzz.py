"""Damaged, strange and valid files for every reader and loader: each is read, or refused with a message.

    python benchmarks/fuzz.py [--cases 200000] [--workers 2] [--seed 0] [--seconds S] [--keep folder]
    python benchmarks/fuzz.py --case 1234 [--seed 0]        one case again, with its bytes and its traceback

Case i of a seed is the same on every machine (but for the order of entries in a safetensors header, and for what Orbax
writes): a valid file, and in three cases of four some damage to it. What may happen: it is *read*, with the values of a
plain parser where that can say, and with the very content that was saved where a checksum guards
it; or it is *refused* by a ValueError, TypeError or OSError that names the file, an option or a column. Whatever else
is a failure: another exception, a warning, other values, a valid file refused, more than 2 GB, more than 10 seconds,
the end of the process. Failures are printed, and kept in a folder where one is named.
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import json
import math
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import fuzz_readers
import fuzz_results
import fuzz_saves
from fuzz_arguments import Arguments
from fuzz_base import Reader

READERS: list[Reader] = [*fuzz_readers.READERS, *fuzz_saves.READERS, *fuzz_results.READERS, Arguments()]

MEMORY = 2 << 30  # bytes beyond what a worker has once it has imported everything
SECONDS = 10
MEMORY_DISK = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # files are written through to the disk: waiting
START = 120  # seconds that a worker may take to import and compile
VALID, STRANGE = 0.25, 0.05  # the shares of files that are left as they are, and that are wrong in their meaning only
WORDS = [
    b"nan", b"inf", b"-inf", b"1e999", b"1_000", b"0x10", b"2147483647", b"4294967296", b"99999999999999999999", b"-1",
    b"\r", b"\r\n", b"\n\n", b"\0", b"\xef\xbb\xbf", b"\xff\xfe", b'"', b"'", b",", b",,", b":", b"::", b"#", b" ",
    b"\t", b"qid:3", b"{}", b"null", b"\xc3\xa9", b"\x1f\x8b", b"PAR1", b"True", b"y", b"(9999999999, 9999999999)",
]  # fmt: skip


NAMED = re.compile(r"case\.|rows\.svm|--[a-z]|column ['\"]|target")  # the file, an option, or what in the file is meant


class TooSlow(BaseException):
    """The time limit, which no `except Exception` may swallow."""


@dataclass(frozen=True)
class Failure:
    """A case that was neither read nor refused."""

    case: int
    reader: str
    why: str
    data: bytes

    def line(self) -> str:
        """As JSON."""
        return json.dumps({"case": self.case, "reader": self.reader, "why": self.why, "data": self.data.hex()})


def damaged(rng: random.Random, data: bytes) -> bytes:
    """A file with something done to it."""
    for _ in range(rng.choice([1, 1, 1, 2, 3, 6])):
        place = rng.randrange(len(data) + 1)
        kind = rng.randrange(8)
        if kind == 0 and data:
            place = rng.randrange(len(data))
            data = data[:place] + bytes([data[place] ^ 1 << rng.randrange(8)]) + data[place + 1 :]
        elif kind in (1, 2):
            data = data[:place] + rng.choice(WORDS) + data[place + rng.choice([0, 0, 1, 4]) :]
        elif kind == 3:
            data = data[:place] + rng.randbytes(rng.randint(1, 8)) + data[place:]
        elif kind == 4:
            data = data[:place] + data[place + rng.randint(1, 12) :]
        elif kind == 5:
            data = data[:place] if rng.random() < 0.5 else data[place:]
        elif kind == 6:
            part = data[place : place + rng.randint(1, 30)]
            data = data[:place] + part * rng.choice([2, 3, 50]) + data[place:]
        else:
            data = rng.choice([lambda d: gzip.compress(d, mtime=0), bz2.compress, lambda d: d[::-1]])(data)
    return data


def made(seed: int, case: int, folder: Path) -> tuple[Reader, bytes, bytes]:
    """The reader of a case, a valid file, and the file that is read."""
    rng = random.Random(f"{seed} {case}")
    reader = rng.choices(READERS, [reader.share for reader in READERS])[0]
    whole = reader.make(rng, folder)
    kind = rng.random()
    if kind < VALID:
        return reader, whole, whole
    return reader, whole, reader.strange(rng, whole) if kind < VALID + STRANGE else damaged(rng, whole)


def tried(reader: Reader, whole: bytes, data: bytes, folder: Path) -> tuple[str, str]:
    """What comes of a file: `read`, `refused` or `failure`, and why."""
    original = None
    if reader.sealed:
        original = reader.read(placed(whole, folder / f"whole{reader.suffix}"))
    path = placed(data, folder / f"case{reader.suffix}")
    expected = reader.expect(data)
    try:
        value = reader.read(path)
    except (ValueError, TypeError, OSError) as error:
        message = str(error)
        if not NAMED.search(message):
            return "failure", f"{type(error).__name__} names neither the file nor an option: {message[:200]}"
        if expected is not None or data == whole:
            return "failure" if not reader.name.startswith(
                ("forged", "arguments")
            ) else "refused", f"valid: {message[:200]}"
        return "refused", message[:200]
    except TooSlow:
        return "failure", f"more than {SECONDS} seconds"
    except Exception as error:
        return "failure", f"{type(error).__name__}: {str(error)[:300]}"
    if expected is not None and value != expected:
        return "failure", f"other values than a plain parser's: {value!r:.150}, {expected!r:.150}"
    if original is not None and value != original:
        return "failure", f"other values than were saved: {value!r:.150}, {original!r:.150}"
    return "read", ""


def placed(data: bytes, path: Path) -> Path:
    """A file with this content, in the place of whatever stood there."""
    if path.is_dir():
        shutil.rmtree(path)
    path.write_bytes(data)
    return path


def too_slow(number: int, frame: FrameType | None) -> None:
    """What the alarm does."""
    raise TooSlow


def limit_memory() -> None:
    """From now on, MEMORY bytes more than there are; a request beyond them is a MemoryError."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def prepare() -> None:
    """Import and compile what the cases need, before the limits hold."""
    import onesfw.cli
    import onesfw.data.tables
    import onesfw.engine.checkpoint  # noqa: F401

    warnings.simplefilter("error")
    with tempfile.TemporaryDirectory() as folder:
        for reader in READERS:
            rng = random.Random(0)
            whole = reader.make(rng, Path(folder))
            tried(reader, whole, whole, Path(folder))


def work(seed: int, first: int, last: int, step: int, told: Path) -> None:
    """Cases first, first + step, … below last; the number of the present one stands in `told`, for the parent."""
    prepare()
    limit_memory()
    signal.signal(signal.SIGALRM, too_slow)
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(dir=MEMORY_DISK) as place, open(told, "r+b", buffering=0) as file:
        folder = Path(place)
        for case in range(first, last, step):
            os.pwrite(file.fileno(), case.to_bytes(8, "little"), 0)
            reader, whole, data = made(seed, case, folder)
            signal.alarm(SECONDS)
            try:
                outcome, why = tried(reader, whole, data, folder)
            except TooSlow:
                outcome, why = "failure", f"more than {SECONDS} seconds"
            signal.alarm(0)
            counts[f"{reader.name}: {outcome}"] += 1
            if outcome == "failure":
                print(Failure(case, reader.name, why, data).line(), flush=True)
            if sum(counts.values()) % 500 == 0:
                print(json.dumps({"counts": counts}), flush=True)
                counts.clear()
    print(json.dumps({"counts": counts, "done": True}), flush=True)


class Worker:
    """A process that goes through every `step`-th case; one that dies is started again behind the case it died of."""

    def __init__(self, seed: int, first: int, last: int, step: int, folder: Path) -> None:
        self.seed, self.last, self.step = seed, last, step
        self.told = folder / f"worker-{first}"
        self.output = folder / f"worker-{first}.out"
        self.read = 0
        self.finished = False
        self.start(first)

    def start(self, first: int) -> None:
        """Begin at a case."""
        self.told.write_bytes(first.to_bytes(8, "little"))
        numbers = map(str, (self.seed, first, self.last, self.step))
        command = [sys.executable, __file__, "--worker", *numbers, str(self.told)]
        environment = os.environ | {"JAX_PLATFORMS": "cpu", "ARROW_DEFAULT_MEMORY_POOL": "system"}
        with open(self.output, "ab") as output:
            self.process = subprocess.Popen(command, stdout=output, env=environment)
        self.moved, self.case = time.monotonic() + START, first

    def look(self, campaign: Campaign) -> None:
        """Take what was printed; notice a case that ended or holds up the process."""
        over = self.process.poll() is not None
        with open(self.output, "rb") as file:
            file.seek(self.read)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self.read += len(line)
                content = json.loads(line)
                self.finished |= content.get("done", False)
                campaign.take(content)
        case = int.from_bytes(self.told.read_bytes(), "little")
        if case != self.case:
            self.case, self.moved = case, time.monotonic()
        stuck = time.monotonic() - self.moved > 3 * SECONDS
        if self.finished or not (over or stuck):
            return
        if not over:
            self.process.kill()
            self.process.wait()
        reason = "it holds up the process" if stuck else f"the process ended with {self.process.returncode}"
        campaign.lost(self.case, reason)
        if self.case + self.step >= self.last:
            self.finished = True
        else:
            self.start(self.case + self.step)


class Campaign:
    """All workers, and what came of the cases."""

    def __init__(self, seed: int, cases: int, workers: int, keep: Path | None = None) -> None:
        self.seed, self.cases, self.workers, self.keep = seed, cases, workers, keep
        self.counts: Counter[str] = Counter()
        self.failures: list[Failure] = []

    def run(self, seconds: float = math.inf) -> None:
        """Go through all cases, or as many as there is time for; those of the last moments are not counted then."""
        end = time.monotonic() + seconds
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            workers = [Worker(self.seed, i, self.cases, self.workers, folder) for i in range(self.workers)]
            while not all(worker.finished for worker in workers) and time.monotonic() < end:
                time.sleep(0.2)
                for worker in workers:
                    if not worker.finished:
                        worker.look(self)
            for worker in workers:
                if not worker.finished:
                    worker.process.kill()
                worker.process.wait()

    def take(self, content: dict[str, Any]) -> None:
        """What a worker printed."""
        if "counts" in content:
            self.counts.update(content["counts"])
        else:
            self.add(Failure(content["case"], content["reader"], content["why"], bytes.fromhex(content["data"])))

    def lost(self, case: int, reason: str) -> None:
        """A case that took its process with it."""
        with tempfile.TemporaryDirectory() as folder:
            reader, _, data = made(self.seed, case, Path(folder))
        self.counts[f"{reader.name}: failure"] += 1
        self.add(Failure(case, reader.name, reason, data))

    def add(self, failure: Failure) -> None:
        """Print a failure, and keep it."""
        self.failures.append(failure)
        print(f"case {failure.case}, {failure.reader}: {failure.why}\n    {failure.data[:200]!r}", file=sys.stderr)
        if self.keep is not None:
            self.keep.mkdir(parents=True, exist_ok=True)
            (self.keep / f"{self.seed}-{failure.case}.json").write_text(failure.line())

    def table(self) -> str:
        """The counts by reader and outcome."""
        lines = [f"{'':<18}{'read':>9}{'refused':>9}{'failed':>9}"]
        for name in (*(reader.name for reader in READERS), "all"):
            chosen = [
                sum(
                    n
                    for key, n in self.counts.items()
                    if key.endswith(f": {outcome}") and name in (key[: -len(outcome) - 2], "all")
                )
                for outcome in ("read", "refused", "failure")
            ]
            lines.append(f"{name:<18}" + "".join(f"{n:>9,}" for n in chosen))
        return "\n".join(lines)


def again(seed: int, case: int) -> None:
    """One case, with its bytes and where it fails."""
    prepare()
    with tempfile.TemporaryDirectory() as place:
        reader, whole, data = made(seed, case, Path(place))
        print(f"{reader.name}, {'as it was made' if data == whole else 'damaged'}: {data!r}")
        print(f"a plain parser reads {reader.expect(data)!r}")
        print(*tried(reader, whole, data, Path(place)), sep=": ")
        path = placed(data, Path(place) / f"case{reader.suffix}")
        try:
            print(repr(reader.read(path)))
        except Exception:
            traceback.print_exc()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=200_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop then, with the cases that were done")
    parser.add_argument("--keep", type=Path, help="a folder for the failures, a file each")
    parser.add_argument("--case", type=int, help="one case again")
    parser.add_argument("--worker", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        *numbers, told = options.worker
        work(*map(int, numbers), Path(told))
        return
    if options.case is not None:
        again(options.seed, options.case)
        return
    begun = time.perf_counter()
    campaign = Campaign(options.seed, options.cases, options.workers, options.keep)
    campaign.run(options.seconds)
    seconds = time.perf_counter() - begun
    print(campaign.table())
    print(f"{campaign.counts.total():,} cases in {seconds:.0f} s on {options.workers} workers, seed {options.seed}")
    sys.exit(1 if campaign.failures else 0)


if __name__ == "__main__":
    main()
