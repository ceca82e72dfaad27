"""Runs that survive being killed: resumed runs are bit-identical, other runs are refused, damage is told."""

import contextlib
import importlib.util
import os
import shutil
import subprocess
import warnings
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import onesfw as fw
from onesfw.engine import checkpoint

ROWS = np.random.default_rng(0).standard_normal((50, 4)).astype(np.float32)


@pytest.fixture(autouse=True)
def _save_often(monkeypatch):
    monkeypatch.setattr(checkpoint, "INTERVAL", 0.0)
    monkeypatch.setattr("onesfw.engine.pace.CHUNK_SECONDS", 0.01)


def solve(steps=20_000, folder=None, *, key=0, radius=1.0, rows=ROWS, power=2, replicates=None, **options):
    objective = fw.FiniteSum(lambda x, row: jnp.sum(jnp.abs(x - row) ** power), rows)
    return fw.minimize(
        objective, fw.sets.L1Ball(radius, shape=4), steps=steps, key=key, replicates=replicates,
        checkpoint=folder, **{"evaluate": False, **options},
    )  # fmt: skip


def stop_at(step):
    """A callback that stops the run at a step."""
    return {"every": [step], "callbacks": [lambda row, x: row["step"] < step]}


def same(a, b):
    np.testing.assert_array_equal(a.x, b.x)
    np.testing.assert_array_equal(a.x_last, b.x_last)
    states = (a.state, b.state) if isinstance(a.state, list) else ([a.state], [b.state])
    for one, other in zip(*states, strict=True):
        np.testing.assert_array_equal(one.estimate.d, other.estimate.d)


@pytest.mark.parametrize("setting", ["convex", "nonconvex"])
@pytest.mark.parametrize("replicates", [None, 2])
def test_a_resumed_run_is_bit_identical(tmp_path, setting, replicates):
    options = {"algorithm": fw.one_sfw(setting), "replicates": replicates}
    part = solve(folder=tmp_path / "run", **options, **stop_at(7001))
    assert np.all(np.asarray(part.steps) == 7001 + 2 * 70)  # whose samples correct the output
    whole = solve(folder=tmp_path / "run", **options)
    same(whole, solve(**options))
    assert np.all(np.asarray(whole.samples) == 20_000)
    again = solve(folder=tmp_path / "run", **options)  # finished: nothing is left to do
    same(again, whole)


def test_a_float64_run_and_its_trace_resume(tmp_path):
    def run(folder, **options):
        objective = fw.FiniteSum(lambda x, row: jnp.sum((x - row) ** 2), ROWS)
        return fw.minimize(
            objective, fw.sets.Simplex(1.0), np.full(4, 0.25), steps=3000, checkpoint=folder,
            algorithm=fw.one_sfw(rho="adaptive"), **options,
        )  # fmt: skip

    run(tmp_path / "run", **stop_at(1000))
    resumed, plain = run(tmp_path / "run", every=500), run(None, every=500)
    assert resumed.x.dtype == np.float64
    same(resumed, plain)
    np.testing.assert_array_equal(resumed.trace.step, [1000, 1500, 2000, 2500, 3000])
    np.testing.assert_array_equal(resumed.trace.value, plain.trace.value[1:])
    finished = run(tmp_path / "run", every=500)
    assert (finished.value, finished.gap) == (plain.value, plain.gap)
    np.testing.assert_array_equal(finished.trace.value, resumed.trace.value)


def test_continuous_greedy_resumes_with_its_weight(tmp_path):
    def run(folder, **options):
        objective = fw.FiniteSum(lambda x, row: jnp.sum(jnp.sqrt(x + 0.1) * row**2), ROWS)
        return fw.maximize(objective, fw.sets.SubSimplex(1.0, shape=4), steps=500, checkpoint=folder, **options)

    run(tmp_path / "run", **stop_at(123))
    same(run(tmp_path / "run"), run(None))
    with pytest.raises(ValueError, match=r"another steps \(saved: 500, now: 600\)"):
        fw.maximize(
            fw.FiniteSum(lambda x, row: jnp.sum(jnp.sqrt(x + 0.1) * row**2), ROWS),
            fw.sets.SubSimplex(1.0, shape=4), steps=600, checkpoint=tmp_path / "run",
        )  # fmt: skip


def test_more_steps_prolong_a_run_whose_schedules_do_not_use_the_horizon(tmp_path):
    solve(5000, tmp_path / "run")
    same(solve(9000, tmp_path / "run"), solve(9000))
    with pytest.raises(ValueError, match="the run has done 8,820 steps, more than steps=100; raise it, or give"):
        solve(100, tmp_path / "run")


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"key": 1}, "key"),
        ({"radius": 2.0}, "constraint"),
        ({"rows": ROWS + 1}, "data"),
        ({"power": 4}, "objective"),
        ({"algorithm": fw.one_sfw(batch=2)}, "algorithm"),
        ({"algorithm": fw.one_sfw(eta=lambda t: 2 / (t + 2))}, "algorithm"),
        ({"replicates": 2}, "replicates"),
    ],
)
def test_other_arguments_are_refused_by_name(tmp_path, change, name):
    solve(100, tmp_path / "run")
    with pytest.raises(ValueError, match=f"belongs to a run with another {name} .*choose another path, or delete it"):
        solve(100, tmp_path / "run", **change)


def test_what_does_not_change_the_course_is_free(tmp_path):
    solve(3000, tmp_path / "run", **stop_at(1000))
    result = solve(3000, tmp_path / "run", evaluate=None, every="log", time_limit=100.0, gap_tol=1e-9)
    same(result, solve(3000))


def test_a_foreign_or_damaged_checkpoint_is_a_sentence(tmp_path):
    file = tmp_path / "file"
    file.write_text("hello")
    with pytest.raises(ValueError, match="is a file; give the path of a folder"):
        solve(100, file)
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "thesis.tex").write_text("important")
    with pytest.raises(ValueError, match="is not empty and holds no run of onesfw"):
        solve(100, foreign)
    assert (foreign / "thesis.tex").read_text() == "important"
    with pytest.raises(TypeError, match="checkpoint must be the path of a folder"):
        solve(100, 3)
    run = tmp_path / "run"
    solve(100, run)
    (run / checkpoint.MARK).write_bytes(b"\xff{")
    with pytest.raises(ValueError, match=r"cannot be read .*choose another path"):
        solve(100, run)


def test_flipped_and_cut_files_are_noticed(tmp_path):
    good = tmp_path / "good"
    solve(2000, good)
    content = (good / "run-0.safetensors").read_bytes()
    rng = np.random.default_rng(0)
    for trial in range(24):
        damaged = bytearray(content)
        if trial % 3 == 0:
            del damaged[int(rng.integers(len(content))) :]
        else:
            damaged[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
        bad = tmp_path / f"bad{trial}"
        shutil.copytree(good, bad)
        (bad / "run-0.safetensors").write_bytes(damaged)
        with pytest.raises(ValueError, match=r"checkpoint: .* is damaged; choose another path, or delete it"):
            solve(2000, bad)


def test_a_state_of_other_shapes_is_refused(tmp_path):
    solve(2000, tmp_path / "run")
    store = checkpoint.Checkpoint(tmp_path / "run", "run-0")
    content, tensors = store.load()
    for wrong in ({**tensors, "leaf0": tensors["leaf0"][:1]}, {"leaf0": tensors["leaf0"]}):
        store.save(content, wrong)
        with pytest.raises(ValueError, match="is damaged"):
            solve(2000, tmp_path / "run")
    store.save({"done": 3}, tensors)
    with pytest.raises(ValueError, match="is damaged"):
        solve(2000, tmp_path / "run")


def test_what_a_killed_writer_left_is_removed(tmp_path):
    solve(2000, tmp_path / "run")
    left = tmp_path / "run" / ".run-0.safetensors.0123456789ab.tmp"
    left.write_bytes(b"half")
    solve(3000, tmp_path / "run")
    assert not left.exists()


def fill(path):
    """Write a file until the disk is full."""
    with contextlib.suppress(OSError), open(path, "wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


def test_a_full_disk_loses_nothing_that_was_saved(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting a small disk needs root")
    try:
        solve(folder=disk / "run", **stop_at(2000))
        fill(disk / "filler")
        with pytest.warns(checkpoint.CheckpointWarning, match="could not be saved.*earlier save is kept"):
            full = solve(folder=disk / "run")
        same(full, solve())  # the run itself went on to its end
        (disk / "filler").unlink()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            resumed = solve(folder=disk / "run")
        same(resumed, full)
        assert (disk / "run" / "run-0.safetensors").exists()
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_twenty_kills_change_nothing(tmp_path):
    place = Path(__file__).parents[2] / "benchmarks" / "kills.py"
    spec = importlib.util.spec_from_file_location("kills", place)
    kills = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(kills)
    killed, runs = kills.campaign(20, 1, tmp_path, size=0.2)
    assert killed >= 20
    assert runs >= 2


def test_a_folder_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    """Before the run; to root every folder is open, so that the answer of the system is made up."""
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(PermissionError, match=r"checkpoint: .*run cannot be written: .*no permission to write in"):
        checkpoint.open_folder(tmp_path / "run", {"key": "0"})
