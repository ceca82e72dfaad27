"""Kill runs at random moments and see that they end as if nothing had happened.

    python benchmarks/kills.py [--kills 200] [--seed 0] [--kinds minimize fit files select replicates sweep complete]

A run that keeps checkpoints (`minimize`, `fit` from a file or from 1,000 `files`, several `replicates` at once, a
`sweep` over radii and folds, `complete` from a file of ratings) saves its state after every chunk; it is killed with
SIGKILL after a random time, often in the middle of a save, and started again with the same arguments, over and over.
`select` keeps none: it begins anew, and what it writes must be there whole or not at all.
When a run has been killed often enough it is left to finish, and what it came to is compared with that of an
undisturbed run, bit by bit; no temporary file may be left.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

STEPS = 3_000_000
KINDS = ("minimize", "fit", "files", "select", "replicates", "sweep", "complete")
KILLS_PER_RUN = 10
LONGEST = 1.5  # seconds between the first step of a run and its end
ROWS, PASSES = 4_000, 400
FILES, FILE_ROWS = 1_000, 8

# Imports everything once, then makes a fresh process for each run: only the run itself is killed.
SERVER = """
import os, sys, traceback
sys.path.insert(0, {here!r})
import jax, numpy, onesfw, onesfw.engine.checkpoint, onesfw.engine.host_loop, kills
import onesfw.cli, onesfw.linear, onesfw.lowrank, onesfw.submodular, pyarrow.csv, sklearn.datasets
for line in sys.stdin:
    begin, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.read(begin, 1)
        try:
            kind, folder, *numbers = line.split()
            kills.work(kind, folder, *map(float, numbers))
            sys.stdout.flush()
        except BaseException:
            traceback.print_exc()
        os._exit(0)
    print("started", pid, flush=True)
    os.write(told, b"!")  # what the run prints comes after the line above
    os.close(begin), os.close(told)
    os.waitpid(pid, 0)
    print("\\nended", flush=True)  # a run may be killed in the middle of a line
"""


def work(kind: str, folder: str, interval: float, chunk: float, size: float) -> None:
    """One run in a folder, whose name begins with `alone` where nothing is to be saved; prints when it steps, and a
    hash of what it came to."""
    from onesfw.engine import checkpoint, host_loop

    checkpoint.INTERVAL, host_loop.CHUNK_SECONDS = interval, chunk
    checkpoint.SHARE = 2 * interval
    place = Path(folder)
    alone, several = place.name.startswith("alone"), kind == "replicates"
    runs = {"fit": fit, "files": files, "select": select, "sweep": sweep, "complete": complete}
    found = runs.get(kind, minimize)(place, alone, several, size)
    print("done", hashlib.sha256(found).hexdigest(), flush=True)


def minimize(place: Path, alone: bool, several: bool, size: float) -> bytes:
    """x and d after many steps, of one seed or of three."""
    import jax.numpy as jnp
    import numpy as np

    import onesfw as fw

    rows = np.random.default_rng(0).standard_normal((200, 10)).astype(np.float32)
    result = fw.minimize(
        fw.FiniteSum(lambda x, row: jnp.logaddexp(0.0, row @ x) + 0.1 * jnp.sum(x**2), rows),
        fw.sets.L1Ball(3.0, shape=10),
        steps=round(size * STEPS) // (3 if several else 1),
        key=1,
        replicates=3 if several else None,
        every=5_000,
        evaluate=False,
        checkpoint=None if alone else place / "run",
        callbacks=[lambda row, x: print("stepping", flush=True)],
        algorithm=fw.one_sfw("convex", rho="adaptive"),
    )
    d = b"" if several else np.asarray(result.state.estimate.d).tobytes()
    return np.asarray(result.x).tobytes() + d


def sweep(place: Path, alone: bool, several: bool, size: float) -> bytes:
    """The points of a sweep over radii, folds and seeds."""
    import jax.numpy as jnp
    import numpy as np

    import onesfw as fw

    rows = np.random.default_rng(0).standard_normal((60, 10)).astype(np.float32)
    print("stepping", flush=True)
    found = fw.sweep(
        fw.FiniteSum(lambda x, row: jnp.logaddexp(0.0, row @ x) + 0.1 * jnp.sum(x**2), rows),
        [fw.sets.L1Ball(radius, shape=10) for radius in (0.3, 1.0, 3.0)],
        steps=round(size * STEPS) // 30,
        rows=fw.rows.folds(60, 3),
        replicates=2,
        key=1,
        checkpoint=None if alone else place / "run",
    )
    return np.asarray(found.x).tobytes() + found.value.tobytes()


def command(*words: str) -> None:
    """A command of `onesfw`, as the executable would run it."""
    from onesfw.cli import app

    print("stepping", flush=True)
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            code = app(list(words), standalone_mode=False)
        except SystemExit as error:
            code = error.code
    assert not code, f"onesfw {' '.join(words)} ended with {code}"


def fit(place: Path, alone: bool, several: bool, size: float) -> bytes:
    """The coefficients that `onesfw fit` learns from a file."""
    from onesfw.linear.model import LinearModel

    kept = [] if alone else ["--checkpoint", str(place / "run"), "--cache", str(place / "rows.cache")]
    options = ["--radius", "20", "--passes", str(round(size * PASSES)), "--buffer", "500", "--quiet", *kept]
    command("fit", str(place.parent / "rows.svm"), *options, "--model", str(place / "model"))
    return LinearModel.load(place / "model").coef.tobytes()


def files(place: Path, alone: bool, several: bool, size: float) -> bytes:
    """The coefficients that are learnt from many Parquet files, which every pass reads again."""
    from onesfw.data import passes
    from onesfw.linear import train

    passes.KEPT = 0
    print("stepping", flush=True)
    kept = None if alone else place / "run"
    model = train(place.parent / "parts", target="y", radius=5.0, loss="squared", passes=3, buffer=500, checkpoint=kept)
    return model.coef.tobytes()


def write_parts(folder: Path) -> None:
    """What `files` learns from."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir()
    for number in range(FILES):
        X = np.random.default_rng(number).normal(size=(FILE_ROWS, 5))
        table = pa.table({"y": X[:, 0] - X[:, 1], **{f"x{j}": X[:, j] for j in range(5)}})
        pq.write_table(table, folder / f"{number:04d}.parquet")


def select(place: Path, alone: bool, several: bool, size: float) -> bytes:
    """The rows that `onesfw select` chooses of a table."""
    out = place / "chosen.csv"
    options = ["--k", "5", "--steps", str(round(size * 20_000)), "--quiet"]
    command("select", str(place.parent / "table.csv"), *options, "--out", str(out))
    return out.read_bytes()


def complete(place: Path, alone: bool, several: bool, size: float) -> bytes:
    """The matrix that `onesfw complete` learns from a file of ratings, its radius chosen on the way."""
    from onesfw.lowrank import LowRank

    kept = [] if alone else ["--checkpoint", str(place / "run")]
    options = ["--user", "u", "--item", "i", "--rating", "r", "--gap-tol", "1e-6", "--quiet", *kept]
    command("complete", str(place.parent / "ratings.csv"), *options, "--model", str(place / "model"))
    model = LowRank.load(place / "model")
    return b"".join(getattr(model, name).tobytes() for name in ("P", "Q", "row_bias", "col_bias"))


def write_data(folder: Path) -> None:
    """The file that `fit` learns from, the table that `select` chooses from, and the ratings of `complete`."""
    rng = random.Random(0)
    lines = []
    for _ in range(ROWS):
        row = {j: rng.gauss(0, 1) for j in rng.sample(range(1, 200), 10)}
        label = 1 if sum(v for j, v in row.items() if j < 60) > 0 else -1
        lines.append(" ".join([str(label), *(f"{j}:{row[j]:.4f}" for j in sorted(row))]))
    (folder / "rows.svm").write_text("\n".join(lines) + "\n")
    table = ["a,b,c", *(",".join(f"{rng.gauss(0, 1):.4f}" for _ in range(3)) for _ in range(400))]
    (folder / "table.csv").write_text("\n".join(table) + "\n")
    tastes = [[rng.gauss(0, 1) for _ in range(3)] for _ in range(700)]
    pairs = [(rng.randrange(400), rng.randrange(400, 700)) for _ in range(20_000)]
    means = [sum(a * b for a, b in zip(tastes[u], tastes[i], strict=True)) for u, i in pairs]
    ratings = [f"{u},{i},{mean + rng.gauss(0, 1):.3f}" for (u, i), mean in zip(pairs, means, strict=True)]
    (folder / "ratings.csv").write_text("\n".join(["u,i,r", *ratings]) + "\n")


class Server:
    """A process that starts runs, one at a time."""

    def __init__(self, folder: Path, size: float) -> None:
        self.size = size
        here = str(Path(__file__).parent)
        # Compiled programs are kept: the run that is left alone makes them, and those that are killed begin at once.
        kept = {
            "JAX_COMPILATION_CACHE_DIR": str(folder / "programs"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        }
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVER.format(here=here)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | kept,
        )

    def start(self, kind: str, folder: Path, interval: float, chunk: float) -> int:
        """Start a run; its process number."""
        assert self.process.stdin is not None
        folder.mkdir(exist_ok=True)
        self.process.stdin.write(f"{kind} {folder} {interval} {chunk} {self.size}\n")
        self.process.stdin.flush()
        return int(self.wait_for("started").split()[1])

    def wait_for(self, *words: str) -> str:
        """The next line that begins with one of the words."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.split()[:1] and line.split()[0] in words:
                return line
        raise RuntimeError("the server ended")

    def finish(self, kind: str, folder: Path) -> str:
        """Let a run go to its end; the hash of what it came to."""
        self.start(kind, folder, 10.0, 0.25)
        answer = self.wait_for("done", "ended").split()
        assert answer[0] == "done", f"{kind}: a run that was left alone did not finish"
        self.wait_for("ended")
        return answer[1]

    def close(self) -> None:
        """End the process."""
        self.process.communicate()


def campaign(
    kills: int,
    seed: int,
    folder: Path,
    report: Callable[[str], Any] | None = None,
    kinds: Sequence[str] = KINDS,
    size: float = 1.0,
) -> tuple[int, int]:
    """Kill runs `kills` times in all; (kills, runs that ended bit-identical). Raises where one did not.

    With a `size` below 1, runs and the times until they are killed are shorter.
    """
    with contextlib.closing(Server(folder, size)) as server:
        return campaign_on(server, kills, random.Random(seed), folder, report, kinds)


def campaign_on(
    server: Server,
    kills: int,
    rng: random.Random,
    folder: Path,
    report: Callable[[str], Any] | None,
    kinds: Sequence[str],
) -> tuple[int, int]:
    """The same, with a server that the caller closes."""
    write_data(folder)
    expected: dict[str, str] = {}
    killed = runs = 0
    while killed < kills:
        kind = kinds[runs % len(kinds)]
        if kind not in expected:
            if kind == "files":
                write_parts(folder / "parts")
            expected[kind] = server.finish(kind, folder / f"alone-{kind}")
        place = folder / f"run-{runs}"
        for _ in range(min(KILLS_PER_RUN, kills - killed)):
            pid = server.start(kind, place, 0.0, 0.02)
            if rng.random() < 0.8:  # the others die while they start or read the checkpoint
                line = server.wait_for("stepping", "done", "ended")
                assert line.split()[0] != "ended", f"run {runs}, {kind}, ended by itself"
            time.sleep(rng.uniform(0, server.size * LONGEST))
            try:
                os.kill(pid, signal.SIGKILL)
                killed += 1
            except ProcessLookupError:  # it was done before
                pass
            server.wait_for("ended")
            chosen = place / "chosen.csv"
            assert not chosen.exists() or chosen.read_bytes() == (folder / "alone-select" / "chosen.csv").read_bytes()
        found = server.finish(kind, place)
        assert found == expected[kind], f"run {runs}, {kind}, ended differently after {killed} kills"
        left = [path for path in place.rglob(".*") if path.suffix in (".tmp", ".partial")]
        assert not left, f"run {runs}, {kind}: left behind {left}"
        shutil.rmtree(place)
        runs += 1
        if report is not None:
            report(f"{killed} kills, {runs} runs, the last a {kind}, all bit-identical")
    return killed, runs


def main() -> None:
    parser = argparse.ArgumentParser(description="Kill runs at random moments; each must end as if undisturbed.")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    options = parser.parse_args()
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        killed, runs = campaign(
            options.kills, options.seed, Path(folder), lambda text: print(text, flush=True), options.kinds
        )
    seconds = time.perf_counter() - begun
    kinds = ", ".join(options.kinds)
    print(f"{killed} SIGKILLs, {runs} runs ({kinds} in turn), all ended bit-identical; {seconds:.0f} s")


if __name__ == "__main__":
    main()
