"""Kill runs at random moments and see that they end as if nothing had happened.

    python benchmarks/kills.py [--kills 200] [--seed 0]

A run saves its state after every chunk; it is killed with SIGKILL after a random time, often in the middle of a save,
and started again with the same arguments, over and over. When it has been killed often enough it is left to finish,
and its last x and d are compared with those of an undisturbed run, bit by bit.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

STEPS = 3_000_000
KILLS_PER_RUN = 10
LONGEST = 1.5  # seconds between the first step of a run and its end

# Imports everything once, then makes a fresh process for each run: only the run itself is killed.
SERVER = """
import os, sys
sys.path.insert(0, {here!r})
import jax, numpy, orbax.checkpoint, onesfw, onesfw.engine.checkpoint, onesfw.engine.host_loop, kills
for line in sys.stdin:
    pid = os.fork()
    if pid == 0:
        folder, interval, chunk = line.split()
        kills.solve(folder, float(interval), float(chunk))
        sys.stdout.flush()
        os._exit(0)
    print("started", pid, flush=True)
    os.waitpid(pid, 0)
    print("ended", flush=True)
"""


def solve(folder: str, interval: float, chunk: float) -> None:
    """One run with checkpoints in `folder` (`-` for none); prints when it steps, and a hash of x and d at the end."""
    import jax.numpy as jnp
    import numpy as np

    import onesfw as fw
    from onesfw.engine import checkpoint, host_loop

    checkpoint.INTERVAL, host_loop.CHUNK_SECONDS = interval, chunk
    rows = np.random.default_rng(0).standard_normal((200, 10)).astype(np.float32)
    result = fw.minimize(
        fw.FiniteSum(lambda x, row: jnp.logaddexp(0.0, row @ x) + 0.1 * jnp.sum(x**2), rows),
        fw.sets.L1Ball(3.0, shape=10),
        steps=STEPS,
        key=1,
        every=5_000,
        evaluate=False,
        checkpoint=None if folder == "-" else folder,
        callbacks=[lambda row, x: print("stepping", flush=True)],
        algorithm=fw.one_sfw("convex", rho="adaptive"),
    )
    content = np.asarray(result.x).tobytes() + np.asarray(result.state.estimate.d).tobytes()
    print("done", result.steps, hashlib.sha256(content).hexdigest(), flush=True)


class Server:
    """A process that starts runs, one at a time."""

    def __init__(self) -> None:
        here = str(Path(__file__).parent)
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVER.format(here=here)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def start(self, folder: str, interval: float, chunk: float) -> int:
        """Start a run; its process number."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{folder} {interval} {chunk}\n")
        self.process.stdin.flush()
        return int(self.wait_for("started").split()[1])

    def wait_for(self, *words: str) -> str:
        """The next line that begins with one of the words."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.split()[0] in words:
                return line
        raise RuntimeError("the server ended")

    def finish(self, folder: str) -> str:
        """Let a run go to its end; the hash of what it came to."""
        self.start(folder, 10.0, 0.25)
        answer = self.wait_for("done", "ended").split()
        assert answer[0] == "done", "a run that was left alone did not finish"
        self.wait_for("ended")
        return answer[2]

    def close(self) -> None:
        """End the process."""
        self.process.communicate()


def campaign(kills: int, seed: int, folder: Path, report: object = None) -> tuple[int, int]:
    """Kill runs `kills` times in all; (kills, runs that ended bit-identical). Raises where one did not."""
    rng, server = random.Random(seed), Server()
    expected = server.finish("-")
    killed = runs = 0
    while killed < kills:
        place = folder / f"run-{runs}"
        for _ in range(min(KILLS_PER_RUN, kills - killed)):
            pid = server.start(str(place), 0.0, 0.02)
            if rng.random() < 0.8:  # the others die while they start or read the checkpoint
                server.wait_for("stepping", "done", "ended")
            time.sleep(rng.uniform(0, LONGEST))
            try:
                os.kill(pid, signal.SIGKILL)
                killed += 1
            except ProcessLookupError:  # it was done before
                pass
            server.wait_for("ended")
        found = server.finish(str(place))
        assert found == expected, f"run {runs} ended differently after {killed} kills"
        shutil.rmtree(place)
        runs += 1
        if callable(report):
            report(f"{killed} kills, {runs} runs, all bit-identical")
    server.close()
    return killed, runs


def main() -> None:
    parser = argparse.ArgumentParser(description="Kill runs at random moments; each must end as if undisturbed.")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        killed, runs = campaign(options.kills, options.seed, Path(folder), lambda text: print(text, flush=True))
    seconds = time.perf_counter() - begun
    print(f"{killed} SIGKILLs, {runs} runs of {STEPS:,} steps, all ended bit-identical; {seconds:.0f} s")


if __name__ == "__main__":
    main()
