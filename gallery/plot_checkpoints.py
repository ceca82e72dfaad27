"""
Checkpoints and kills
=====================

What is lost when a long run is killed? With ``checkpoint="folder"`` at most what came after the last save. A program
runs here in a process of its own and is killed (SIGKILL, which no program can catch) in the middle of its work, twice,
and started again with the same line, until it is through. The picture shows how far each life came, and where the next
one took over; the answer has the bits of an undisturbed run.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

plt.style.use("onesfw.pictures")

# %%
# The program. A run saves at most every 10 seconds, which would be long for a demonstration: here every fifth of a
# second. A callback prints how far it is. When its time has come, and this life has saved something, it ends the
# process as the system would.
PROGRAM = """
import glob, os, signal, sys, time
import jax.numpy as jnp
import numpy as np
import onesfw as fw
import onesfw.engine.checkpoint as saving

saving.INTERVAL, saving.SHARE = 0.2, 0.2
folder, until, begun = sys.argv[1], float(sys.argv[2]), time.time()
rows = np.random.default_rng(0).normal(size=(500, 20)).astype(np.float32)

def note(row, x):
    print(time.time(), row["step"], flush=True)
    if row["step"] >= until and any(os.path.getmtime(f) > begun for f in glob.glob(folder + "/*.safetensors")):
        os.kill(os.getpid(), signal.SIGKILL)

result = fw.minimize(
    fw.FiniteSum(lambda x, a: jnp.logaddexp(0.0, a @ x) + 0.05 * jnp.sum(x**2), rows),
    fw.sets.L1Ball(2.0, shape=20),
    steps=1_500_000, key=7, every=25_000, evaluate=100, callbacks=[note],
    checkpoint=None if folder == "none" else folder,
)
print(*(float(entry).hex() for entry in result.x), file=sys.stderr)
"""


def life(folder, until):
    """Run the program until it ends or is killed: the times and steps that it printed, and the bits of x."""
    keep = {"JAX_COMPILATION_CACHE_DIR": kept, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}  # compiles once
    command = [sys.executable, "-c", PROGRAM, folder, str(until)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | keep)
    return np.array(done.stdout.split(), float).reshape(-1, 2), done.stderr.splitlines()[-1:], done.returncode


with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as kept:
    lives = [life(str(Path(folder) / "run"), until) for until in (500_000, 1_000_000, np.inf)]
    _, undisturbed, _ = life("none", np.inf)
for number, (log, _, code) in enumerate(lives, 1):
    print(f"life {number}: steps {int(log[0, 1]):,} to {int(log[-1, 1]):,}, exit code {code}")
print("the bits of the undisturbed run:", lives[-1][1] == undisturbed)
assert lives[-1][1] == undisturbed
assert all(log[0, 1] > 25_000 for log, _, _ in lives[1:])  # no life begins anew

# %%
# Between two lives Python starts. The steps between the last save and a kill are done twice, with the same
# samples: the randomness of step t is a function of the key and of t alone.
fig, ax = plt.subplots()
start = lives[0][0][0, 0]
for number, (log, _, code) in enumerate(lives, 1):
    ax.plot(log[:, 0] - start, log[:, 1] / 1e6, "o-", color=f"C{number - 1}", label=f"life {number}")
    if code:
        ax.annotate("killed", (log[-1, 0] - start, log[-1, 1] / 1e6), (8, -4), textcoords="offset points")
ax.set(xlabel="seconds since the first note", ylabel="steps done, in millions", ylim=(0, None))
ax.legend(loc="lower right")
