"""Ctrl-C on the real program, wherever it is: during the imports, while it compiles, in the run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import interrupts


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("interrupts")
    return folder, interrupts.commands(folder)


@pytest.mark.parametrize(("name", "moment"), [("list", 0.15), ("fit", 0.6), ("solve", 1.5), ("select", 2.5)])
def test_a_moment(name, moment, place):
    """Early ones: the imports of a busy machine. `python benchmarks/interrupts.py` has the others."""
    folder, commands = place
    found = interrupts.interrupted(name, commands[name], moment, folder)
    assert not found.wrong, found
    assert found.processor < interrupts.MOST_SECONDS, found


@pytest.mark.slow
def test_fifty_moments(tmp_path):
    for found in interrupts.campaign(50, 0, tmp_path):
        assert not found.wrong, found
        assert found.processor < interrupts.MOST_SECONDS, found


def started(script):
    return subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


DEAF = """
import ctypes
import onesfw.cli
def deaf():
    print("deaf", flush=True)
    mutex = (ctypes.c_char * 64)()
    for _ in range(2):  # to lock it twice is to wait for ever: no Python instruction, as while XLA compiles
        ctypes.CDLL(None).pthread_mutex_lock(mutex)
onesfw.cli.main = deaf
from onesfw.__main__ import main
main()
"""

SWALLOWING = """
import time
import onesfw.cli
def swallowing():
    print("deaf", flush=True)
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            time.sleep(1)
        except KeyboardInterrupt:
            pass
onesfw.cli.main = swallowing
from onesfw.__main__ import main
main()
"""


@pytest.mark.parametrize("script", [DEAF, SWALLOWING], ids=["in C", "swallowed"])
def test_a_program_that_does_not_listen_ends_within_two_seconds(script):
    process = started(script)
    assert process.stdout.readline() == "deaf\n"
    time.sleep(0.3)  # until it no longer listens
    begun = time.monotonic()
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == "onesfw: interrupted\n"
    assert time.monotonic() - begun < 10  # a second of grace, and what a busy machine takes


def test_an_interrupt_in_the_collector_shows_no_traceback():
    """JAX has a callback there, and Python reports and drops what is raised in it."""
    script = """
import gc, os, signal, time
import onesfw.cli
def collecting():
    def callback(phase, info):
        gc.callbacks.clear()
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):
            pass
    gc.callbacks.append(callback)
    gc.collect()
    time.sleep(60)
onesfw.cli.main = collecting
from onesfw.__main__ import main
main()
"""
    process = started(script)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err


def test_an_interrupt_while_a_library_is_loaded_ends_the_program(tmp_path):
    """Raised there, a KeyboardInterrupt made C++ code of JAX abort."""
    (tmp_path / "loaded.py").write_text(
        "import os, signal, time\n"
        "try:\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    time.sleep(60)\n"
        "except KeyboardInterrupt:\n"
        "    os.abort()\n"
    )
    script = f"""
import sys
import onesfw.cli
sys.path.insert(0, {str(tmp_path)!r})
onesfw.cli.main = lambda: __import__("loaded")
from onesfw.__main__ import main
main()
"""
    process = started(script)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "onesfw: interrupted\n")


def test_a_run_that_has_noticed_is_left_alone():
    script = """
import time
import onesfw.cli
from onesfw.engine.interrupts import catch_interrupt
def running():
    with catch_interrupt() as wished:
        print("running", flush=True)
        wished.wait(60)
        time.sleep(2)  # to evaluate and to save
    print("saved", flush=True)
    raise SystemExit(130)
onesfw.cli.main = running
from onesfw.__main__ import main
main()
"""
    process = started(script)
    assert process.stdout.readline() == "running\n"
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "saved\n", "")
