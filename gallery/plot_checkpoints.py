"""
Checkpoints and kills
=====================

What is lost when a long run is killed? With ``checkpoint="folder"`` at most what came after the last save. A program
runs here in a process of its own, which is killed (SIGKILL, which no program can catch) while it works, and started
again with the same line, until it is through. The picture shows how far each life came, and where the next one took
over; the answer has the bits of an undisturbed run.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

plt.style.use("onesfw.pictures")

# %%
# The program. It saves at most every 10 seconds, which would be long for a demonstration: here every fifth of a
# second. A callback writes down how far it is.
PROGRAM = """
import sys, time
import jax.numpy as jnp
import numpy as np
import onesfw as fw
import onesfw.engine.checkpoint as saving

saving.INTERVAL, saving.SHARE = 0.2, 0.2
folder, log = sys.argv[1:]
rows = np.random.default_rng(0).normal(size=(500, 20)).astype(np.float32)

def note(row, x):
    print(time.time(), row["step"], file=open(log, "a"), flush=True)

result = fw.minimize(
    fw.FiniteSum(lambda x, a: jnp.logaddexp(0.0, a @ x) + 0.05 * jnp.sum(x**2), rows), fw.sets.L1Ball(2.0, shape=20),
    steps=3_000_000, key=7, every=50_000, evaluate=100, callbacks=[note],
    checkpoint=None if folder == "none" else folder,
)
np.save(log + ".npy", result.x)
"""
here = Path(tempfile.mkdtemp())
(here / "program.py").write_text(PROGRAM, encoding="utf-8")


def life(folder, log, until=np.inf):
    """Start the program; kill it once it has noted so many steps. Returns what its log holds."""
    child, notes = subprocess.Popen([sys.executable, here / "program.py", folder, here / log]), here / log
    notes.touch()
    while child.poll() is None:
        time.sleep(0.02)
        if (done := notes.read_text().split()) and int(done[-1]) >= until:
            child.kill()
    return np.loadtxt(notes, ndmin=2)


lives = [life(here / "run", f"life{i}", until) for i, until in enumerate((1_000_000, 2_000_000, np.inf))]
life("none", "undisturbed")
ends = [np.load(here / f"{name}.npy") for name in ("life2", "undisturbed")]
assert np.array_equal(*ends)
print("the same bits as the undisturbed run:", np.array_equal(*ends))

# %%
# Between two lives Python starts and compiles. The steps between a kill and the last save are done twice, with the
# same samples: step t's randomness is a function of the key and of t alone.
fig, ax = plt.subplots()
start = lives[0][0, 0]
for number, log in enumerate(lives, 1):
    print(f"life {number}: from step {int(log[0, 1]):,} to {int(log[-1, 1]):,}")
    ax.plot(log[:, 0] - start, log[:, 1] / 1e6, "o-", color=f"C{number - 1}", label=f"life {number}")
    if number < len(lives):
        ax.annotate("killed", (log[-1, 0] - start, log[-1, 1] / 1e6), (8, -4), textcoords="offset points")
ax.set(xlabel="seconds since the first step", ylabel="steps done, in millions", ylim=(0, None))
ax.legend(loc="lower right")
