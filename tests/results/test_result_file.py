"""Results on disk: equal after a round trip, whole or not at all, and never a wrong result from a damaged file."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections import namedtuple
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save as save_tensors

import onesfw as fw
from onesfw import files
from onesfw.results.result_file import NOT_SAVED
from onesfw.results.trace import TRACE_FIELDS

Pair = namedtuple("Pair", "left right")
ROWS = np.random.default_rng(3).normal(size=(40, 4)).astype(np.float32)


def solved(**options) -> fw.Result:
    objective = fw.FiniteSum(lambda x, row: jnp.sum((x - row) ** 2), ROWS)
    options = {"steps": 60, "every": "log", **options}
    return fw.minimize(objective, fw.sets.L1Ball(1.0, shape=4), **options)


@pytest.fixture(scope="module")
def result() -> fw.Result:
    return solved()


def same(one, other) -> bool:
    """Equal in value, and arrays in dtype and shape."""
    if isinstance(one, np.ndarray | jax.Array):
        one, other = np.asarray(one), np.asarray(other)
        if one.dtype == object:
            return other.dtype == object and one.tolist() == other.tolist()
        return one.dtype == other.dtype and one.shape == other.shape and np.array_equal(one, other, equal_nan=True)
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(same(a, b) for a, b in zip(one, other, strict=True))
    return type(one) is type(other) and (one == other or one != one)


def assert_equal(one: fw.Result, other: fw.Result) -> None:
    for field in dataclasses.fields(fw.Result):
        if field.name == "trace":
            assert all(same(getattr(one.trace, name), getattr(other.trace, name)) for name in TRACE_FIELDS)
        elif field.name not in NOT_SAVED:
            assert same(getattr(one, field.name), getattr(other, field.name)), field.name


RUNS = {
    "one run": {},
    "float64": {"x0": np.zeros(4)},
    "nothing measured": {"evaluate": False},
    "a function's value": {"evaluate": lambda x: float(jnp.sum(x))},
    "replicates": {"replicates": 3},
    "replicates that end apart": {"replicates": 2, "gap_tol": 0.6, "steps": 300},
    "x_o": {"algorithm": fw.one_sfw("nonconvex", schedule="paper")},
}


@pytest.mark.parametrize("options", RUNS.values(), ids=RUNS.keys())
def test_round_trip(options, tmp_path):
    result = solved(**options)
    result.save(tmp_path / "result.safetensors")
    loaded = fw.Result.load(tmp_path / "result.safetensors")
    assert_equal(result, loaded)
    assert loaded.state is None
    assert str(loaded) == str(result)
    assert [path.name for path in tmp_path.iterdir()] == ["result.safetensors"]


arrays = st.builds(
    lambda shape, dtype, seed: np.random.default_rng(seed).normal(size=shape).astype(dtype),
    st.lists(st.integers(0, 3), max_size=3).map(tuple),
    st.sampled_from([np.float32, np.float64]),
    st.integers(0, 99),
)
trees = st.recursive(
    arrays | st.none(),
    lambda node: (
        st.lists(node, max_size=3)
        | st.lists(node, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=4) | st.integers(), node, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tree=trees)
def test_trees_keep_their_structure(tree, result, tmp_path):
    path = tmp_path / "tree.safetensors"
    dataclasses.replace(result, x=tree, x_last=(tree,)).save(path)
    loaded = fw.Result.load(path)
    assert same(tree, loaded.x)
    assert same((tree,), loaded.x_last)


def test_named_tuples_become_tuples(result, tmp_path):
    dataclasses.replace(result, x=Pair(np.ones(2), None)).save(tmp_path / "a")
    assert type(fw.Result.load(tmp_path / "a").x) is tuple


@pytest.mark.parametrize(
    ("tree", "words"), [(SimpleNamespace(), "not a SimpleNamespace"), ({(1, 2): np.ones(2)}, "rename the key")]
)
def test_other_nodes_are_refused(tree, words, result, tmp_path):
    with pytest.raises(TypeError, match=words):
        dataclasses.replace(result, x=tree).save(tmp_path / "a")
    assert not list(tmp_path.iterdir())


def test_failed_steps_of_some_replicates_and_infinite_numbers(result, tmp_path):
    odd = dataclasses.replace(result, failed_step=np.asarray([None, 5], object), value=float("-inf"), gap=float("nan"))
    odd.save(tmp_path / "a")
    assert_equal(odd, fw.Result.load(tmp_path / "a"))


@pytest.fixture(scope="module")
def intact(result, tmp_path_factory) -> bytes:
    path = tmp_path_factory.mktemp("intact") / "a"
    result.save(path)
    return path.read_bytes()


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_flipped_byte_never_gives_another_result(data, intact, result, tmp_path):
    header = 8 + int.from_bytes(intact[:8], "little")
    place = data.draw(st.integers(0, 7) | st.integers(8, header - 1) | st.integers(header, len(intact) - 1))
    damaged = bytearray(intact)
    damaged[place] ^= data.draw(st.integers(1, 255))
    (tmp_path / "b").write_bytes(bytes(damaged))
    try:
        loaded = fw.Result.load(tmp_path / "b")
    except ValueError:
        return
    assert_equal(result, loaded)


def test_damage_in_the_tensors_and_in_the_numbers_is_named(intact, tmp_path):
    (tmp_path / "tensors").write_bytes(intact[:-1] + bytes([intact[-1] ^ 1]))
    (tmp_path / "numbers").write_bytes(intact.replace(b'\\"steps\\": 60', b'\\"steps\\": 61'))
    assert (tmp_path / "numbers").read_bytes() != intact
    for name in ("tensors", "numbers"):
        with pytest.raises(ValueError, match="does not match its SHA-256"):
            fw.Result.load(tmp_path / name)


@pytest.mark.parametrize("kept", [0, 4, 8, 100, -1])
def test_truncated_files(kept, intact, tmp_path):
    (tmp_path / "cut").write_bytes(intact[:kept])
    with pytest.raises(ValueError, match="damaged"):
        fw.Result.load(tmp_path / "cut")


def test_foreign_files(tmp_path):
    (tmp_path / "text").write_text("not a result at all, but long enough to have a header")
    (tmp_path / "model").write_bytes(save_tensors({"w": np.ones(3)}, {"format": "pt"}))
    (tmp_path / "bare").write_bytes(save_tensors({"w": np.ones(3)}))
    later = {"format": "onesfw.result", "version": "99", "result": "{}"}
    (tmp_path / "later").write_bytes(save_tensors({}, {**later, "sha256": files.digest(later, {})}))
    empty = {"format": "onesfw.result", "version": "1", "result": "{}"}
    (tmp_path / "empty").write_bytes(save_tensors({}, {**empty, "sha256": files.digest(empty, {})}))
    expected = {
        "text": "no readable safetensors",
        "model": "not a saved result",
        "bare": "not a saved result",
        "later": "upgrade onesfw",
        "empty": "its fields do not fit",
    }
    for name, words in expected.items():
        with pytest.raises(ValueError, match=words):
            fw.Result.load(tmp_path / name)


def test_paths_that_are_no_file(result, tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        fw.Result.load(tmp_path / "missing")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        fw.Result.load(tmp_path)
    with pytest.raises(IsADirectoryError, match="is a folder"):
        result.save(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match="on the way to it is a file"):
        result.save(tmp_path / "file" / "result")


def test_a_failed_write_leaves_the_old_file(result, tmp_path, monkeypatch):
    path = tmp_path / "new" / "folder" / "result"
    result.save(path)
    before = path.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="could not be written: No space left"):
        solved(steps=5).save(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == ["result"]


def test_saving_through_a_link_keeps_the_link(result, tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    link.symlink_to(target)
    result.save(link)
    assert link.is_symlink()
    assert_equal(result, fw.Result.load(target))


def test_import_loads_no_heavy_package():
    heavy = ("numba", "sklearn", "matplotlib", "orbax", "pandas")
    code = f"import sys, onesfw; print([m for m in {heavy!r} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd=Path.home())
    assert run.stdout.strip() == "[]", run.stdout + run.stderr


def test_a_trace_becomes_a_table_of_pandas():
    from onesfw.results.trace import stack_traces

    pandas = pytest.importorskip("pandas")
    problem = fw.zoo.get("quadratic-face")
    trace = problem.run(steps=40, every=10).trace
    table = trace.to_pandas()
    assert isinstance(table, pandas.DataFrame)
    assert list(table.columns) == list(TRACE_FIELDS)
    np.testing.assert_array_equal(table["value"], trace.value)
    short = problem.run(steps=20, every=10).trace
    both = stack_traces([trace, short]).to_pandas()
    assert both["replicate"].tolist() == [0, 0, 0, 0, 1, 1]  # what pads the short one is left out
    assert both["step"].tolist() == [10, 20, 30, 40, 10, 20]
    np.testing.assert_array_equal(both["value"][4:], short.value)


def test_the_problem_and_its_optimum_are_kept(tmp_path):
    import dataclasses

    result = dataclasses.replace(fw.zoo.get("quadratic-face").run(steps=5), optimum=-0.3)
    result.save(tmp_path / "a")
    again = fw.Result.load(tmp_path / "a")
    assert (again.problem, again.optimum) == ("quadratic-face", -0.3)


def test_x_of_a_tree_and_of_replicates_as_a_table(tmp_path):
    import csv
    import dataclasses

    result = fw.zoo.get("quadratic-face").run(steps=5)
    tree = dataclasses.replace(result, x={"w": np.asarray([1.0, 2.0]), "b": np.asarray(0.5)})
    tree.save_x(tmp_path / "tree.csv")
    rows = list(csv.DictReader((tmp_path / "tree.csv").read_text().splitlines()))
    assert [(row["part"], row["index"], row["value"]) for row in rows] == [
        ("x['b']", "", "0.5"), ("x['w']", "0", "1.0"), ("x['w']", "1", "2.0"),
    ]  # fmt: skip
    several = dataclasses.replace(result, x=np.arange(8.0).reshape(2, 2, 2), replicates=2)
    several.save_x(tmp_path / "several.csv")
    rows = list(csv.DictReader((tmp_path / "several.csv").read_text().splitlines()))
    assert list(rows[-1].values()) == ["1", "1", "1", "7.0"]
    assert list(rows[0]) == ["replicate", "row", "column", "value"]


def test_a_tree_without_leaves_prints_and_comes_back(result, tmp_path):
    """Found by the fuzzer."""
    empty = dataclasses.replace(result, x={}, x_last={})
    empty.save(tmp_path / "empty")
    assert str(fw.Result.load(tmp_path / "empty")).startswith("minimize")
