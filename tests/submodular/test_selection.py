"""A selection prints, draws, writes, saves and loads; its seconds add up to the wall time."""

from __future__ import annotations

import dataclasses
import time

import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from select_checks import FUNCTIONS, MATROIDS

import onesfw as fw
from onesfw import submodular as sm
from onesfw.submodular.selection import principal


@pytest.fixture(scope="module")
def plain():
    return fw.select(FUNCTIONS["coverage"], MATROIDS["uniform"], steps=40)


@pytest.fixture
def table(tmp_path):
    """A CSV file with numbers and words, not all of them UTF-8."""
    rng = np.random.default_rng(0)
    lines = ["name,a,b"] + [f"caf\xe9 {i},{x:.4f},{y:.4f}" for i, (x, y) in enumerate(rng.normal(size=(40, 2)))]
    path = tmp_path / "data.csv"
    path.write_bytes(("\n".join(lines) + "\n").encode("latin-1"))
    return path


def test_it_prints_by_rich_and_says_everything(plain):
    text = str(plain)
    for word in ("3 of 9 elements", "certified ratio", "upper bound", "sampling", "judging", "certificate"):
        assert word in text
    assert max(map(len, text.splitlines())) <= 100
    sampled = str(fw.select(FUNCTIONS["features"], MATROIDS["uniform"], steps=20))
    assert "95 %" not in sampled
    many = dataclasses.replace(plain, columns=tuple(f"column {i}" for i in range(60)))
    assert all(f"column {i}" in " ".join(str(many).split()) for i in range(60))  # nothing is cut


def test_a_notebook_shows_a_table_and_a_picture(plain):
    page = plain._repr_html_()
    assert page.startswith("<div")
    assert "certified ratio" in page
    assert page.count("data:image/png;base64,") == 1


def test_it_draws_a_curve_or_a_map(plain, table, tmp_path):
    from matplotlib.figure import Figure

    figure = plain.plot(tmp_path / "curve.svg")
    assert (tmp_path / "curve.svg").read_text().startswith("<?xml")
    assert figure.axes[0].get_xlabel() == "samples"
    axes = Figure().subplots(1, 2)
    chosen = sm.select_rows(table, 3, steps=40)
    assert chosen.plot(ax=axes[1]) is axes[1].figure
    assert not axes[0].collections
    every, marked = (collection.get_offsets() for collection in axes[1].collections)
    assert len(every) == 40
    np.testing.assert_array_equal(marked, every[chosen.indices])
    with pytest.raises(ValueError, match="must end in"):
        plain.plot(tmp_path / "curve.bmp")


@pytest.mark.parametrize("shape", [(30, 4), (4, 30), (10, 1)])
def test_the_map_is_the_principal_components_and_maps_itself(shape):
    points = np.random.default_rng(0).normal(size=shape)
    places = principal(points)
    flat, sizes, _ = np.linalg.svd(points - points.mean(0), full_matrices=False)
    expected = np.pad(flat[:, :2] * sizes[:2], ((0, 0), (0, max(0, 2 - sizes.size))))
    np.testing.assert_allclose(np.abs(places), np.abs(expected), atol=1e-9)
    np.testing.assert_allclose(principal(places), places, atol=1e-9)


def test_seconds_add_up_to_the_wall_time():
    own = sm.SetFunction(lambda s: jnp.log1p(jnp.sum(s)), 200)
    begun = time.perf_counter()
    result = fw.select(own, sm.UniformMatroid(200, 10), steps=60)
    wall = time.perf_counter() - begun
    parts = (result.sampling_seconds, result.judging_seconds, result.certificate_seconds)
    assert min(parts) > 0
    assert result.seconds == pytest.approx(sum(parts))
    assert wall - 0.05 <= result.seconds <= wall


def same(one, other):
    for entry in dataclasses.fields(one):
        before, after = getattr(one, entry.name), getattr(other, entry.name)
        if entry.name == "trace":
            for column in dataclasses.fields(before):
                np.testing.assert_array_equal(getattr(before, column.name), getattr(after, column.name))
        elif entry.name == "points":
            if before is not None:
                np.testing.assert_allclose(principal(after), principal(before), atol=1e-9)
        elif entry.name != "rows":
            np.testing.assert_array_equal(before, after)


def test_saved_and_loaded_it_is_the_same(plain, tmp_path):
    plain.save(tmp_path / "plain")
    same(plain, fw.Selection.load(tmp_path / "plain"))


@pytest.mark.parametrize("kind", ["csv", "parquet", "npy", "nodes"])
def test_a_loaded_selection_writes_the_same_rows(kind, table, tmp_path):
    rng = np.random.default_rng(1)
    numbers = rng.normal(size=(30, 3)).astype(">f4")
    np.save(tmp_path / "data.npy", numbers)
    pq.write_table(pa.table({"a": numbers[:, 0].astype("f8"), "w": ["x"] * 30}), tmp_path / "data.parquet")
    if kind == "nodes":
        chosen = sm.select_nodes(np.array([[5, i] for i in range(10, 20)]), 2, steps=20)
    else:
        source = {"csv": table, "parquet": tmp_path / "data.parquet", "npy": tmp_path / "data.npy"}[kind]
        chosen = sm.select_rows(source, 4, steps=20)
    chosen.save(tmp_path / "saved")
    again = fw.Selection.load(tmp_path / "saved")
    same(chosen, again)
    again.plot(tmp_path / "map.png")
    ending = "csv" if kind == "nodes" else kind
    for name, selection in (("one", chosen), ("two", again)):
        selection.write(tmp_path / f"{name}.{ending}")
    assert (tmp_path / f"one.{ending}").read_bytes() == (tmp_path / f"two.{ending}").read_bytes()


def test_damage_is_found(plain, tmp_path):
    path = tmp_path / "saved"
    plain.save(path)
    whole = path.read_bytes()
    for place in range(8, len(whole), 97):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(ValueError, match=r"damaged|not a saved|format version"):
            fw.Selection.load(path)
    with pytest.raises(FileNotFoundError, match="selection was saved"):
        fw.Selection.load(tmp_path / "none")
    fw.minimize(fw.Expectation(lambda x, z: jnp.sum(x**2), lambda key: 0.0), fw.sets.L2Ball(1.0, (2,)), steps=2).save(
        path
    )
    with pytest.raises(ValueError, match="not a saved selection"):
        fw.Selection.load(path)


def test_what_cannot_be_written_is_a_sentence(plain, table, tmp_path):
    with pytest.raises(ValueError, match="has no rows to write"):
        plain.write(tmp_path / "rows.csv")
    chosen = sm.select_rows(table, 2, steps=10)
    with pytest.raises(ValueError, match=r"must end in \.csv"):
        chosen.write(tmp_path / "rows.txt")
    with pytest.raises(ValueError, match="holds numbers, and column 'name'"):
        chosen.write(tmp_path / "rows.npy")
    assert not (tmp_path / "rows.npy").exists()
