"""Models on disk: equal after a round trip, and never another model from a damaged file."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save as save_tensors

from onesfw import files
from onesfw.data.encoding import Column, Encoding
from onesfw.linear.model import LinearModel, Training, package_versions
from onesfw.linear.scores import Scores

SPARSE = np.zeros(50)
SPARSE[[3, 17, 40]] = 0.5, -2.0, 1e-300
TABLE = Encoding("table", 4, columns=(Column("age", "number"), Column("city", "onehot", ("a", "b", "ü"))), target="y")
LIBSVM = Encoding("libsvm", 50, zero_based=True)
MODELS = {
    "sparse": LinearModel(
        SPARSE, 0.25, "logistic", "l1", 3.0, (-1.0, 1.0), encoding=Encoding("libsvm", 50, zero_based=True)
    ),
    "dense": LinearModel(np.linspace(-1, 1, 7), -1.5, "huber", "l2", 2.0, delta=0.3, versions=package_versions()),
    "words": LinearModel(
        np.ones(4),
        0.0,
        "squared_hinge",
        "linf",
        1.0,
        ("no", "yes"),
        encoding=TABLE,
        training=Training(rows=5),
        test=Scores(4, 0.5, 0.75, 0.8, labels=("no", "yes"), confusion=((1, 0), (1, 2))),
    ),
    "several": LinearModel(
        np.arange(12.0).reshape(3, 4),
        np.array([0.5, 0.0, -1.0]),
        "logistic",
        "l1",
        9.0,
        (1.0, 2.0, 5.0),
        encoding=TABLE,
        training=Training(7, 1, 7, 0, 0.6, "auto", 3, 0.5, (0.25, 0.25), 0.1, finished=False),
    ),
    "zero": LinearModel(np.zeros(3), 0.0, "poisson", "nonnegative_l1", 1.0),
}


def assert_equal(one: LinearModel, other: LinearModel) -> None:
    for field in dataclasses.fields(LinearModel):
        left, right = getattr(one, field.name), getattr(other, field.name)
        arrays = field.name in ("coef", "intercept")
        assert np.array_equal(left, right) if arrays else left == right, field.name
    assert one.coef.dtype == other.coef.dtype


@pytest.mark.parametrize("name", MODELS)
def test_round_trip(name, tmp_path):
    MODELS[name].save(tmp_path / "m")
    assert_equal(LinearModel.load(tmp_path / "m"), MODELS[name])
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_nonzeros_decide_the_size_of_the_file(tmp_path):
    coef = np.zeros(10**6)
    coef[::1000] = 1.0
    LinearModel(coef, 0.0, "logistic", "l1", 1.0).save(tmp_path / "m")
    assert (tmp_path / "m").stat().st_size < 20_000
    assert np.array_equal(LinearModel.load(tmp_path / "m").coef, coef)


def test_margins_predictions_and_probabilities():
    rows = scipy.sparse.csr_array(np.eye(4) * [0.0, 1.0, -1.0, 800.0])
    model = LinearModel(np.ones(4), 0.0, "logistic", "l1", 4.0, ("no", "yes"))
    margins = model.margins(rows)
    assert margins.tolist() == [0, 1, -1, 800]
    assert model.predict(rows).tolist() == ["no", "yes", "no", "yes"]
    np.testing.assert_allclose(
        model.probabilities(margins), [0.5, 1 / (1 + np.exp(-1)), 1 / (1 + np.exp(1)), 1], rtol=1e-15
    )
    assert model.probabilities(np.array([-800.0]))[0] >= 0
    counts = dataclasses.replace(model, loss="poisson", labels=None)
    assert counts.predict(rows[[1, 3]]).tolist() == [np.exp(1), np.inf]
    assert dataclasses.replace(counts, loss="huber").predict(rows).tolist() == [0, 1, -1, 800]
    assert dataclasses.replace(model, labels=(1.0, 2.0)).predict(rows).tolist() == [1, 2, 1, 2]
    with pytest.raises(ValueError, match="poisson loss has no probabilities"):
        counts.probabilities(margins)
    with pytest.raises(ValueError, match="rows must have 4 columns, got 5"):
        model.margins(np.ones((1, 5)))


@pytest.fixture(scope="module", params=["sparse", "words"])
def intact(request, tmp_path_factory) -> tuple[LinearModel, bytes]:
    path = tmp_path_factory.mktemp("intact") / "m"
    MODELS[request.param].save(path)
    return MODELS[request.param], path.read_bytes()


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_flipped_bytes_never_give_another_model(data, intact, tmp_path):
    model, whole = intact
    header = 8 + int.from_bytes(whole[:8], "little")
    damaged = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, 7) | st.integers(8, header - 1) | st.integers(header, len(whole) - 1))
        damaged[place] ^= data.draw(st.integers(1, 255))
    (tmp_path / "m").write_bytes(bytes(damaged))
    try:
        loaded = LinearModel.load(tmp_path / "m")
    except ValueError:
        return
    assert_equal(loaded, model)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_truncated_files(data, intact, tmp_path):
    kept = data.draw(st.integers(0, len(intact[1]) - 1))
    (tmp_path / "m").write_bytes(intact[1][:kept])
    with pytest.raises(ValueError, match="damaged"):
        LinearModel.load(tmp_path / "m")


def test_every_single_bit_of_a_model_counts(intact, tmp_path):
    """The format alone accepts nearly all flipped bits of the tensors; the SHA-256 accepts none."""
    _, whole = intact
    header = 8 + int.from_bytes(whole[:8], "little")
    assert len(whole) > header
    for bit in range(8 * header, 8 * len(whole)):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        (tmp_path / "m").write_bytes(bytes(damaged))
        with pytest.raises(ValueError, match="does not match its SHA-256"):
            LinearModel.load(tmp_path / "m")


def forged(path, content: dict, tensors: dict) -> None:
    files.write_tensors(path, *LinearModel.file_kind[:2], content, {"intercept": np.zeros(1), **tensors})


def test_foreign_files(tmp_path):
    (tmp_path / "text").write_text("not a model at all, but long enough to have a header")
    (tmp_path / "pickle").write_bytes(b"\x80\x04\x95" + b"cos\nsystem\n(S'echo'\ntR." * 10)
    (tmp_path / "torch").write_bytes(save_tensors({"w": np.ones(3)}, {"format": "pt"}))
    files.write_tensors(tmp_path / "result", "onesfw.result", 1, {}, {})
    files.write_tensors(tmp_path / "later", LinearModel.file_kind.form, 99, {}, {})
    good = {
        "shape": [3], "loss": "logistic", "constraint": "l1", "radius": 1.0, "labels": [0, 1], "delta": 1.0,
        "encoding": None, "versions": {}, "training": {}, "test": None,
    }  # fmt: skip
    forged(tmp_path / "good", good, {"coef": np.zeros(3)})
    assert LinearModel.load(tmp_path / "good").n_features == 3
    forged(tmp_path / "short", good, {"coef": np.zeros(2)})
    forged(tmp_path / "beyond", good, {"indices": np.array([7]), "values": np.ones(1)})
    forged(tmp_path / "three", {**good, "labels": [1, 2, 3]}, {"coef": np.zeros(3)})
    forged(tmp_path / "nan", good, {"coef": np.array([0.0, np.nan, 0.0])})
    forged(tmp_path / "loss", {**good, "loss": "hinge"}, {"coef": np.zeros(3)})
    forged(tmp_path / "set", {**good, "constraint": "l0"}, {"coef": np.zeros(3)})
    forged(tmp_path / "numbers", {**good, "loss": "squared"}, {"coef": np.zeros(3)})
    forged(tmp_path / "intercepts", good, {"coef": np.zeros(3), "intercept": np.zeros(2)})
    forged(tmp_path / "infinite", good, {"coef": np.zeros(3), "intercept": np.full(1, np.inf)})
    forged(tmp_path / "empty", {}, {})
    forged(tmp_path / "size", {**good, "encoding": Encoding("libsvm", 9).to_json()}, {"coef": np.zeros(3)})
    expected = {
        "text": "no readable safetensors", "pickle": "no readable safetensors", "torch": "not a saved model",
        "result": "not a saved model", "later": "upgrade onesfw", "short": "do not fit", "beyond": "do not fit",
        "three": "do not fit", "empty": "do not fit", "size": "do not fit", "nan": "do not fit", "loss": "do not fit",
        "set": "do not fit", "numbers": "do not fit", "intercepts": "do not fit", "infinite": "do not fit",
    }  # fmt: skip
    for name, words in expected.items():
        with pytest.raises(ValueError, match=words):
            LinearModel.load(tmp_path / name)
    with pytest.raises(FileNotFoundError, match="the path that the model was saved under"):
        LinearModel.load(tmp_path / "missing")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        LinearModel.load(tmp_path)


def test_several_labels_predict_the_largest_margin():
    model = LinearModel(np.eye(3), np.array([0.0, 0.5, 0.0]), "logistic", "l1", 1.0, ("a", "b", "c"))
    rows = np.array([[2.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 9.0]])
    assert model.margins(rows).shape == (3, 3)
    assert model.predict(rows).tolist() == ["a", "b", "c"]
    chances = model.predict_proba(rows)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0, rtol=1e-12)
    assert chances.argmax(axis=1).tolist() == [0, 1, 2]
    np.testing.assert_allclose(model.predict_proba(np.full((1, 3), -1e4)), 1 / 3)
    two = LinearModel(np.ones(1), 0.0, "logistic", "l1", 1.0, ("a", "b"))
    np.testing.assert_allclose(two.predict_proba([[0.0]]), [[0.5, 0.5]])


@pytest.mark.parametrize("name", MODELS)
def test_a_model_prints_draws_and_shows_itself(name, tmp_path):
    model = MODELS[name]
    text = str(model)
    assert f"{np.count_nonzero(model.coef):,} of {np.size(model.coef):,}" in text
    assert model.title in text
    page = model._repr_html_()
    assert page.startswith("<div")
    assert "data:image/png;base64," in page
    figure = model.plot(tmp_path / "m.png")
    (axes,) = figure.axes
    shown = [bar.get_width() for bar in axes.patches]
    assert len(shown) == min(20, np.count_nonzero(np.abs(np.atleast_2d(model.coef)).max(axis=0)))
    assert (tmp_path / "m.png").read_bytes().startswith(b"\x89PNG")
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    assert model.plot(ax=ax) is ax.figure
