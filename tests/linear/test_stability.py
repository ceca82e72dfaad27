"""Stability selection: the bounds against random distributions, the half-samples, the result and its file."""

import dataclasses

import numpy as np
import pytest
import scipy.sparse

import onesfw as fw
from onesfw.linear import LOSSES, Settings, Stability, examples, stability_selection
from onesfw.linear.false_selections import false_selections, largest_tail, most_selected


def concave_shapes(rng, most, r, count):
    """Random r-concave distributions on 0, …, most: convex f^r, some of them cut off."""
    bent = rng.normal(size=(count, most)) * 10 ** rng.uniform(-2, 2, (count, 1)) * rng.integers(0, 2, (count, 1))
    slopes = np.sort(bent, axis=1) + rng.integers(0, 2, (count, 1)) * 10 ** rng.uniform(-2, 3, (count, 1))
    curve = np.concatenate([np.zeros((count, 1)), np.cumsum(slopes, axis=1)], axis=1)
    curve += -curve.min(axis=1, keepdims=True) + 10 ** rng.uniform(-3, 2, (count, 1))
    shape = (curve / curve.min(axis=1, keepdims=True)) ** (1 / r)
    shape[np.arange(most + 1) > rng.integers(0, most + 1, (count, 1))] = 0.0
    return shape / shape.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("r", [-1 / 2, -1 / 4])
@pytest.mark.parametrize("most", [3, 8])
def test_no_r_concave_distribution_has_a_larger_tail(r, most):
    rng = np.random.default_rng(0)
    shapes = concave_shapes(rng, most, r, 200_000)
    means = shapes @ np.arange(most + 1) / most
    for mean in (0.03, 0.1):
        for least in range(1, most + 1):
            tails = shapes[means <= mean][:, least:].sum(axis=1)
            limit = largest_tail(mean, least, most, r)
            assert tails.max() <= limit + 1e-9
            assert limit == 1.0 or tails.max() >= 0.8 * limit  # and it is no larger than it has to be


def test_the_bounds():
    assert false_selections(1000, 50, 0.75, 50) == pytest.approx(50**2 / (0.5 * 1000))
    assert false_selections(1000, 50, 0.9, 50) == pytest.approx(50**2 / (0.8 * 1000))
    for q in (1, 10, 50, 200):
        assert false_selections(1000, q, 0.75, 50, "r_concave") <= false_selections(1000, q, 0.75, 50)
    assert false_selections(20, 20, 0.6, 50) == 20  # no more than there are
    assert false_selections(20, 5, 0.51, 1) == pytest.approx(5 * 0.25)  # of one pair, both halves: τ counts as 1
    for assumption in ("none", "r_concave"):
        q = most_selected(300, 2.0, 0.8, 25, assumption)
        assert false_selections(300, q, 0.8, 25, assumption) <= 2.0
        assert false_selections(300, q + 1, 0.8, 25, assumption) > 2.0
    assert most_selected(5, 0.001, 0.6, 50) == 0


def made(seed, n=120, p=40, noise=1.0):
    """Rows whose targets depend on three columns; every column is correlated with its neighbours."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    X[:, 1:] += 0.5 * X[:, :-1]
    true = np.array([0, p // 3, 2 * p // 3])
    return X, X[:, true] @ np.array([1.0, -1.0, 1.0]) + noise * rng.normal(size=n), true


def of(X, y, loss="squared", **options):
    X = X / X.std(axis=0)
    data = examples(X, y, None, X.shape[1], LOSSES[loss])
    return stability_selection(Settings(X.shape[1], loss, intercept=(-np.inf, np.inf)), data, **options)


@pytest.mark.parametrize("assumption", ["none", "r_concave"])
def test_false_selections_stay_below_the_bound_and_true_ones_are_found(assumption):
    """On average over 15 sets of rows, half of them pure noise, without the help of a standard error."""
    false, missed, noise = [], [], []
    for seed in range(15):
        X, y, true = made(seed)
        found = of(X, y, pairs=10, assumption=assumption, key=seed)
        assert found.bound() <= 1.0
        false.append(len(np.setdiff1d(found.stable, true)))
        missed.append(len(np.setdiff1d(true, found.stable)))
        unrelated = of(X, np.random.default_rng(seed + 100).normal(size=len(y)), pairs=5, assumption=assumption)
        assert unrelated.bound() <= 1.0
        noise.append(len(unrelated.stable))
    assert np.mean(false) <= 1.0
    assert np.mean(noise) <= 1.0
    assert np.mean(missed) < 0.2


def test_a_half_sample_selects_no_more_than_the_bound_allows():
    X, y, _ = made(0)
    found = of(X, y, pairs=5, assumption="none")
    assert found.most_selected == most_selected(40, 1.0, 0.75, 5) == 4

    assert found.selected <= found.most_selected
    assert found.probabilities.sum(axis=1).max() <= found.most_selected + 1e-9
    free = of(X, y, pairs=5, expected_false=None)
    assert free.most_selected is None
    assert free.selected > 20
    assert free.bound("none") == pytest.approx(false_selections(40, free.selected, 0.75, 5))


def test_constant_columns_do_not_count():
    """They would make the bound smaller: a half-sample never selects them."""
    X, y, _ = made(0, n=60, p=20)
    more = np.hstack([X, np.zeros((60, 30)), np.ones((60, 1))])
    data = [examples(rows, y, None, rows.shape[1], LOSSES["squared"]) for rows in (X, more)]
    one, other = (
        stability_selection(Settings(rows.n_features, "squared", intercept=(-np.inf, np.inf)), rows, [0.5, 1.0, 2.0],
                            pairs=4) for rows in data
    )  # fmt: skip
    assert one.columns == other.columns == 20
    assert one.most_selected == other.most_selected
    assert np.array_equal(one.scores, other.scores[:20])
    assert not other.scores[20:].any()


def test_the_bits_do_not_depend_on_the_workers():
    """Threads; tests/engine/test_jobs.py has processes and a cluster."""
    X, y, _ = made(1, n=60, p=20)
    serial = of(X, y, pairs=3)
    threads = of(X, y, pairs=3, n_jobs=2)
    assert np.array_equal(serial.probabilities, threads.probabilities)
    assert serial.selected == threads.selected
    assert not np.array_equal(serial.probabilities, of(X, y, pairs=3, key=1).probabilities)


def test_sparse_rows_are_the_same_rows():
    X, y, _ = made(2, n=80, p=20)
    X[np.random.default_rng(0).random(X.shape) < 0.7] = 0.0
    y = np.sign(X[:, 0] + X[:, 1] + 0.01)
    data = [examples(rows, y, None, 20, LOSSES["logistic"]) for rows in (X, scipy.sparse.csr_array(X))]
    one, other = (stability_selection(Settings(20), rows, pairs=3) for rows in data)
    assert np.array_equal(one.probabilities, other.probabilities)


def test_halves_have_their_share_of_every_label():
    labels = np.repeat([0, 1, 2], [41, 2, 8])
    for first, second in zip(*[iter(fw.rows.halves(51, 20, labels=labels))] * 2, strict=True):
        assert len(first) == len(second) == 25
        assert not set(first) & set(second)
        for half in (first, second):
            assert np.bincount(labels[half]).tolist()[1:] == [1, 4]
    pairs = fw.rows.halves(10, 2, labels=np.zeros(10))
    assert sorted(np.concatenate(pairs)) == list(range(10))
    with pytest.raises(ValueError, match="only 1 row has the label 7, and a half would have none of them; leave"):
        fw.rows.halves(5, 2, labels=[1, 1, 1, 1, 7])


def test_what_is_refused():
    X, y, _ = made(0, n=20, p=5)
    for options, words in (
        ({"radii": [1.0, 0.5]}, "radii must rise, each larger than the one before; sort them"),
        ({"radii": []}, "radii must hold at least one"),
        ({"radii": [0.0]}, "radii must be over 0|radii must be"),
        ({"threshold": 0.5}, "threshold must be"),
        ({"threshold": 1.2}, "threshold must be over 0.5 and at most 1, got 1.2"),
        ({"pairs": 0}, "pairs must be"),
        ({"assumption": "nothing"}, "assumption"),
        ({"expected_false": 0.01}, "expected_false=0.01 cannot be promised for 5 columns.*raise it"),
        ({"expected_false": 0.0}, "expected_false must be"),
    ):
        with pytest.raises(ValueError, match=words):
            of(X, y, **options)
    with pytest.raises(ValueError, match="at least 4 rows"):
        of(X[:3], y[:3])
    data = examples(X, y, None, 5, LOSSES["squared"])
    with pytest.raises(ValueError, match="constraint"):
        stability_selection(Settings(5, "squared", "l2"), data)
    one = examples(X, np.where(np.arange(20) == 3, 1.0, -1.0), None, 5, LOSSES["logistic"])
    with pytest.raises(ValueError, match="only 1 row has the label"):
        stability_selection(Settings(5), one)


def test_a_result_prints_draws_saves_and_loads(tmp_path):
    X, y, _ = made(3, n=80, p=30)
    found = of(X, y, pairs=4)
    named = Stability(**{**found.__dict__, "names": tuple(f"c{j}" for j in range(30))})
    assert "c0" in str(named)
    assert "Expected false selections: at most" in str(named)
    assert "<table" in named._repr_html_()
    named.plot(tmp_path / "paths.png")
    assert (tmp_path / "paths.png").stat().st_size > 1000
    axes = named.plot().axes[0]
    assert named.plot(ax=axes) is axes.figure
    named.save(tmp_path / "s.safetensors")
    again = Stability.load(tmp_path / "s.safetensors")
    assert again.names == named.names
    assert np.array_equal(again.probabilities, named.probabilities)
    assert str(again) == str(named)
    (tmp_path / "s.safetensors").write_bytes(b"no")
    with pytest.raises(ValueError, match=r"s\.safetensors"):
        Stability.load(tmp_path / "s.safetensors")
    forged = (
        {"pairs": 0}, {"assumption": "x"}, {"threshold": "a"}, {"names": ("a",)}, {"selected": -1.0}, {"columns": 1.5},
        {"probabilities": found.probabilities + 1}, {"radii": found.radii[::-1]}, {"radii": found.radii[:-1]},
        {"probabilities": found.probabilities[0]}, {"most_selected": 0},
    )  # fmt: skip
    for change in forged:
        Stability(**{**named.__dict__, **change}).save(tmp_path / "s.safetensors")
        with pytest.raises(ValueError, match="not a saved stability selection of this version"):
            Stability.load(tmp_path / "s.safetensors")
    nothing = Stability(np.ones(1), np.zeros((1, 3)), 0.75, 4, 3, 0.0, None, "none")
    assert str(nothing).startswith("0 of 3 columns")
    nothing.plot()


def test_pictures_of_one_column_of_one_radius_and_of_nothing():
    """No legend of one entry, no line of one point, nothing empty."""
    shares = np.array([[0.9, 0.2], [1.0, 0.1]])
    one = Stability(np.array([1.0, 2.0]), shares, 0.75, 5, 2, 1.0, None, "none", ("age", "noise"))
    figure = one.plot()
    assert not figure.legends
    assert figure.axes[0].get_legend() is None
    assert figure.axes[0].get_title().endswith("\nage")
    point = dataclasses.replace(one, radii=np.array([1.0]), probabilities=shares[:1])
    assert [line.get_marker() for line in point.plot().axes[0].lines][:2] == ["o", "o"]
    nothing = dataclasses.replace(one, probabilities=np.zeros((2, 2)))
    assert [text.get_text() for text in nothing.plot().axes[0].texts] == ["no column was ever selected"]


def test_one_column_is_called_so():
    found = Stability(np.array([1.0]), np.array([[1.0, 0.0]]), 0.75, 50, 2, 1.0, 1, "none")
    assert found.promise.endswith("A half-sample selects 1 column at most.")
