"""Runs that are stopped, saved and gone on with; and a matrix that would never fit into memory."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from lowrank_checks import planted

from onesfw.lowrank import complete, completion, completion_checkpoint, corrective, radius_path


@pytest.fixture(scope="module")
def noisy():
    return planted((60, 40), rank=2, share=0.4, noise=0.5, seed=2)


@pytest.fixture
def eager(monkeypatch):
    """Every stage is saved."""
    monkeypatch.setattr(completion_checkpoint.Checkpoint, "due", lambda self: True)


class Killed(Exception):
    pass


@pytest.mark.parametrize("after", ["early", "in the middle", "late"])
def test_a_killed_run_goes_on_to_the_same_bits(noisy, tmp_path, monkeypatch, eager, after):
    """Killed in the path before and after its rank was limited, and in the fit of all entries."""
    arguments = {"radius": "path", "key": 3, "gap_tol": 1e-4}
    whole = complete(*noisy, (60, 40), **arguments)
    count, certify = 0, corrective.certified
    total = 0

    def dying(*given, **more):
        nonlocal count
        count += 1
        if count > limit:
            raise Killed
        return certify(*given, **more)

    def counting(*given, **more):
        nonlocal total
        total += 1
        return certify(*given, **more)

    monkeypatch.setattr(corrective, "certified", counting)
    complete(*noisy, (60, 40), **arguments)
    limit = {"early": 2, "in the middle": total - 3, "late": total - 1}[after]
    monkeypatch.setattr(corrective, "certified", dying)
    with pytest.raises(Killed):
        complete(*noisy, (60, 40), **arguments, checkpoint=tmp_path / "run")
    count, done = 0, limit
    limit = 10**9
    resumed = complete(*noisy, (60, 40), **arguments, checkpoint=tmp_path / "run")
    assert count <= total - done + 1, "what was done is not done again"
    assert np.array_equal(resumed.P, whole.P)
    assert (resumed.value, resumed.gap, resumed.rounds) == (whole.value, whole.gap, whole.rounds)


def test_another_run_is_refused(noisy, tmp_path):
    complete(*noisy, (60, 40), radius=1.0, checkpoint=tmp_path / "run")
    with pytest.raises(ValueError, match="another radius"):
        complete(*noisy, (60, 40), radius=2.0, checkpoint=tmp_path / "run")
    with pytest.raises(ValueError, match="another values"):
        complete(noisy[0], noisy[1], noisy[2] + 1, (60, 40), radius=1.0, checkpoint=tmp_path / "run")


def test_a_path_that_goes_on_finds_another_radius(noisy, tmp_path, eager):
    """A time limit ends the path early; the same call goes on with it, and the fit of the old radius is no start."""
    folder = tmp_path / "run"
    early = complete(*noisy, (60, 40), key=3, gap_tol=1e-4, checkpoint=folder, time_limit=1e-6)
    assert len(early.path.radii) == 1
    late, whole = (
        complete(*noisy, (60, 40), key=3, gap_tol=1e-4, checkpoint=folder),
        complete(*noisy, (60, 40), key=3, gap_tol=1e-4),
    )
    assert late.radius == whole.radius > early.radius
    assert late.norm <= late.radius * (1 + 1e-6)
    assert np.array_equal(late.P, whole.P)


def test_a_first_radius_that_was_cut_short_is_gone_on_with(noisy, tmp_path, monkeypatch, eager):
    """Half fitted, it was saved as finished, and the path went on from it."""
    arguments = {"key": 3, "gap_tol": 1e-4}
    whole = complete(*noisy, (60, 40), **arguments)
    for calls in (1, 4, 30):
        left = iter(range(calls))
        with monkeypatch.context() as short:
            short.setattr(completion.Watch, "path_over", lambda self, left=left: next(left, None) is None)
            early = complete(*noisy, (60, 40), **arguments, checkpoint=tmp_path / f"{calls}")
        assert early.path is not None
        late = complete(*noisy, (60, 40), **arguments, checkpoint=tmp_path / f"{calls}")
        assert np.array_equal(late.P, whole.P)
        assert np.array_equal(late.path.validation_loss, whole.path.validation_loss)


def test_a_time_limit_returns_a_certified_member(noisy):
    model = complete(*noisy, (60, 40), radius=1.0, gap_tol=1e-12, time_limit=1e-6)
    assert model.status == "time"
    assert model.norm <= 1.0 + 1e-6
    assert 0 < model.gap < np.inf
    path = radius_path(*noisy, (60, 40), time_limit=1e-6)
    assert len(path.radii) == 1


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals go to the main thread")
def test_ctrl_c_keeps_the_last_iterate(noisy, monkeypatch):
    certify = corrective.certified

    pressed = []

    def interrupting(*given, **more):
        if not pressed:
            pressed.append(True)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)
        return certify(*given, **more)

    monkeypatch.setattr(corrective, "certified", interrupting)
    model = complete(*noisy, (60, 40), radius=1.0, gap_tol=1e-10)
    assert model.status == "interrupted"
    assert model.rounds <= 2  # atoms were let in, and one step was done
    assert model.norm <= 1.0 + 1e-6


def test_a_matrix_that_is_never_dense():
    """1,000,000 × 100,000, with entries in every 2,000th row and 500th column: dense it would take 800 GB."""
    script = (
        "import numpy as np, onesfw as fw\n"
        "rng = np.random.default_rng(0)\n"
        "i, j = 2000 * rng.integers(0, 500, 20_000), 500 * rng.integers(0, 200, 20_000)\n"
        "u, v = rng.normal(size=10**6), rng.normal(size=10**5)\n"
        "model = fw.lowrank.complete(i, j, 3 + u[i] * v[j], (10**6, 10**5), radius=0.3, gap_tol=0.1)\n"
        "assert model.shape == (10**6, 10**5) and model.norm <= 0.3 + 1e-6, model\n"
        "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) / 1024 < 1_500
