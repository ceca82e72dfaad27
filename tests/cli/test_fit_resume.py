"""`onesfw fit` interrupted, killed and taken up again: the model is that of a run that was left alone."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from fit_checks import BASIC, SMALL, D, N, coef, complaint, fit, onesfw, reference_coef, write_files
from safetensors.numpy import load as load_tensors

from onesfw.data import blocks
from onesfw.engine import checkpoint
from onesfw.linear import Learner
from onesfw.linear.model import LinearModel


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(blocks.Input.blocks, "__defaults__", SMALL)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def reference(files, tmp_path_factory):
    return reference_coef(files, tmp_path_factory.mktemp("reference") / "m")


def test_a_checkpoint_belongs_to_one_run(files, tmp_path):
    train = tmp_path / "train.svm"
    train.write_bytes((files / "train.svm").read_bytes())
    arguments = (train, *BASIC, "--checkpoint", tmp_path / "run")
    fit(*arguments)
    for options, words in (
        (("--radius", 6), "another --radius (saved: 5.0, now: 6.0)"),
        (("--key", 6), "another --key (saved: 0, now: 6)"),
        (("--buffer", 7), "another --buffer (saved: 100, now: 7)"),
        (("--normalize",), "another --normalize (saved: False, now: True)"),
    ):
        assert words in complaint("fit", *arguments, *options)
    state = tmp_path / "run" / "state.safetensors"
    whole = state.read_bytes()
    state.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert "is damaged; choose another path, or delete it" in complaint("fit", *arguments)
    state.write_bytes(whole)
    train.write_bytes((files / "train.svm").read_bytes()[:-200] + b"\n")
    assert "belongs to a run with another file (saved: " in complaint("fit", *arguments)


@pytest.mark.parametrize("packed", [False, True])
def test_a_byte_in_the_middle_is_noticed(packed, files, tmp_path, monkeypatch):
    """Of the same length, with the time of change put back: only all of the bytes tell."""
    monkeypatch.setattr(blocks, "ENDS", 100)
    data = (files / "train.svm").read_bytes()
    other = data[:30_000] + data[30_000:].replace(b":0.", b":1.", 1)
    train = tmp_path / "train"

    def write(text):
        train.write_bytes(gzip.compress(text, 0, mtime=0) if packed else text)
        os.utime(train, ns=(0, 0))

    arguments = (train, *BASIC, "--checkpoint", tmp_path / "run")
    write(data)
    fit(*arguments)
    os.utime(train)  # the same bytes under another time are the same file
    assert fit(*arguments)["steps"] == 3 * N
    write(other)
    assert other != data
    assert len(other) == len(data)
    assert "belongs to a run with another file (saved: " in complaint("fit", *arguments)
    write(data)
    assert fit(*arguments)["steps"] == 3 * N


def test_a_file_replaced_between_passes_ends_the_run(files, tmp_path, monkeypatch):
    monkeypatch.setattr("onesfw.data.passes.KEPT", 0)
    train = tmp_path / "train.svm"
    train.write_bytes((files / "train.svm").read_bytes())
    learn, steps = Learner.learn_examples, [0]

    def replacing(self, data, order):
        steps[0] += len(order)
        if steps[0] == 2 * N:
            train.write_bytes((files / "test.svm").read_bytes())
        return learn(self, data, order)

    monkeypatch.setattr(Learner, "learn_examples", replacing)
    text = complaint("fit", train, *BASIC, "--quiet", "--model", tmp_path / "m")
    assert f"{train} has changed: its rows are no longer those of the first pass" in text
    assert "give --cache a path" in text
    assert not (tmp_path / "m").exists()


def test_a_finished_run_can_be_prolonged(files, tmp_path, reference):
    short = ("--radius", 5, "--buffer", 100, "--no-polish", "--checkpoint", tmp_path / "run", "--model", tmp_path / "m")
    for passes in (1, 2, 3):
        answer = fit(files / "train.svm", *short, "--passes", passes)
        assert (answer["passes"], answer["steps"]) == (passes, passes * N)
    assert np.array_equal(coef(tmp_path / "m"), reference)
    assert "the run has 3 passes behind it" in complaint("fit", files / "train.svm", *short, "--passes", 2)


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("stop_at", [1, 3, 8])
def test_a_run_that_stopped_goes_on_bit_for_bit(cached, stop_at, files, tmp_path, reference, monkeypatch):
    """Stopped as by Ctrl-C after some chunks; the model so far is kept, and the same command goes on."""
    monkeypatch.setattr(checkpoint, "INTERVAL", 0.0)
    monkeypatch.setattr(checkpoint, "SHARE", 0.0)
    monkeypatch.setattr("onesfw.data.passes.KEPT", 0)
    arguments = ["fit", files / "train.svm", *BASIC, "--checkpoint", tmp_path / "run", "--model", tmp_path / "m"]
    arguments += ["--cache", tmp_path / "rows"] if cached else []
    learn, count = Learner.learn_examples, [0]

    def interrupting(self, *given, **named):
        count[0] += 1
        if count[0] == stop_at:
            os.kill(os.getpid(), signal.SIGINT)
        return learn(self, *given, **named)

    monkeypatch.setattr(Learner, "learn_examples", interrupting)
    outcome = onesfw(*arguments)
    assert outcome.exit_code == 130, outcome.output
    assert ", then interrupted" in outcome.stdout
    steps = LinearModel.load(tmp_path / "m").training.steps
    assert 0 < steps < 3 * N
    assert not np.array_equal(coef(tmp_path / "m"), reference)
    answer = fit(*arguments[1:])
    assert answer["steps"] == 3 * N
    assert np.array_equal(coef(tmp_path / "m"), reference)


def test_a_stream_goes_on_where_it_stopped(files, tmp_path, monkeypatch):
    data = (files / "train.svm").read_bytes()
    arguments = ("-", "--features", D, "--radius", 5, "--buffer", 100, "--checkpoint", tmp_path / "run")
    fit(*arguments[:-2], "--model", tmp_path / "whole", stdin=data)
    monkeypatch.setattr(checkpoint, "INTERVAL", 0.0)
    monkeypatch.setattr(checkpoint, "SHARE", 0.0)
    save, count = checkpoint.Checkpoint.save, [0]

    def failing(self, *given):
        save(self, *given)
        count[0] += 1
        if count[0] == 2:
            raise RuntimeError("the power is gone")

    monkeypatch.setattr(checkpoint.Checkpoint, "save", failing)
    assert "the power is gone" in onesfw("fit", *arguments, "--quiet", stdin=data).stderr
    assert "does not begin as it did" in complaint("fit", *arguments, "--quiet", stdin=b"1 1:1\n" + data)
    fit(*arguments, "--model", tmp_path / "m", stdin=data)
    assert np.array_equal(coef(tmp_path / "m"), coef(tmp_path / "whole"))


# Imports once, then makes a fresh process for each run: only the run itself is killed.
SERVER = """
import os, sys, json, time
import onesfw.cli, onesfw.linear, onesfw.engine.checkpoint as checkpoint
import onesfw.data.passes, onesfw.data.libsvm, sklearn.datasets
from onesfw.data import blocks
from onesfw.linear import Learner, Settings
blocks.Input.blocks.__defaults__ = ((0, 0), "", 2000)
checkpoint.INTERVAL = checkpoint.SHARE = 0.0
onesfw.data.passes.KEPT = 0
save = checkpoint.Checkpoint.save
def slowly(self, *given):  # so that a run takes longer than it is let live
    save(self, *given)
    time.sleep(0.01)
checkpoint.Checkpoint.save = slowly
Learner(Settings(3)).compile("float32")
for line in sys.stdin:
    pid = os.fork()
    if pid == 0:
        sys.argv = ["onesfw", *json.loads(line)]
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0); os.dup2(null, 1); os.dup2(null, 2)
        try:
            onesfw.cli.main()
        except SystemExit as end:
            os._exit(end.code)
    print(pid, flush=True)
    print(os.waitpid(pid, 0)[1], flush=True)
"""


class Server:
    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def start(self, *arguments) -> int:
        self.process.stdin.write(json.dumps([str(word) for word in arguments]) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def ended(self) -> int:
        """The exit code, or minus the number of the signal."""
        return os.waitstatus_to_exitcode(int(self.process.stdout.readline()))


@pytest.fixture(scope="module")
def server():
    started = Server()
    yield started
    started.process.communicate(timeout=30)


@pytest.mark.parametrize("cached", [False, True])
def test_sigkill_at_any_moment_changes_nothing(cached, server, files, tmp_path):
    arguments = ["fit", files / "train.svm", "--radius", 5, "--passes", 10, "--buffer", 100]
    server.start(*arguments, "--model", tmp_path / "whole")
    assert server.ended() == 0
    arguments += ["--checkpoint", tmp_path / "run", "--model", tmp_path / "m"]
    arguments += ["--cache", tmp_path / "rows"] if cached else []
    rng, killed, whole = random.Random(0), 0, coef(tmp_path / "whole")
    begun = time.perf_counter()
    server.start(*arguments)
    assert server.ended() == 0
    seconds = time.perf_counter() - begun  # moments are shares of a run, however fast the machine is
    for _ in range(200):
        if killed == 10:
            break
        if (tmp_path / "m").exists():  # the run was over: another begins
            assert np.array_equal(coef(tmp_path / "m"), whole)
            (tmp_path / "m").unlink()
            shutil.rmtree(tmp_path / "run")
        pid = server.start(*arguments)
        time.sleep(rng.uniform(0.02, 0.6) * seconds)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        ending = server.ended()
        killed += ending == -signal.SIGKILL
        seconds *= 0.8 if ending == 0 else 1  # the kill came too late: the machine has become faster
        assert ending in (0, -signal.SIGKILL)
        if (tmp_path / "run" / "state.safetensors").exists():  # whole, whenever the kill came
            load_tensors((tmp_path / "run" / "state.safetensors").read_bytes())
    assert killed == 10
    (tmp_path / "run").mkdir(exist_ok=True)  # the last kill may have come before it
    (tmp_path / "run" / ".state.safetensors.0123.tmp").write_bytes(b"what a kill in the middle of a save leaves")
    server.start(*arguments)
    assert server.ended() == 0
    assert np.array_equal(coef(tmp_path / "m"), whole)
    assert len(list((tmp_path / "run").iterdir())) == 2


def test_ctrl_c_keeps_the_model_so_far(server, files, tmp_path):
    pid = server.start("fit", files / "train.svm", "--radius", 5, "--passes", 100_000, "--model", tmp_path / "m")
    time.sleep(1.0)
    os.kill(pid, signal.SIGINT)
    assert server.ended() == 130
    assert 0 < LinearModel.load(tmp_path / "m").training.steps < 100_000 * N
