"""`complete` against a dense solver, and on matrices that are easily got wrong."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from lowrank_checks import as_values, dense_optimum, planted, weights

import onesfw as fw
from onesfw.lowrank import LowRank, complete, corrective, observed

CASES = [
    ("squared", True, True),
    ("squared", True, False),
    ("squared", False, False),
    ("huber", True, True),
    ("logistic", True, True),
    ("poisson", True, True),
]


@pytest.mark.parametrize(("loss", "weighted", "biases"), CASES)
def test_the_dense_optimum_is_reached_and_the_gap_is_a_bound(loss, weighted, biases):
    rows, cols, values = planted()
    values = as_values(values, loss)
    shape, radius = (14, 11), 0.6 if loss != "logistic" else 2.0
    arguments = {"radius": radius, "loss": loss, "weighted": weighted, "delta": 0.5}
    model = complete(rows, cols, values, shape, biases=biases, gap_tol=1e-8, **arguments)
    best = dense_optimum(rows, cols, values, shape, mean=model.mean, ridge=model.ridge, **arguments)
    assert model.value - best <= 1e-6 * max(1, abs(best))
    for tolerance in (1e-1, 1e-2):
        rough = complete(rows, cols, values, shape, biases=biases, gap_tol=tolerance, **arguments)
        assert rough.gap >= rough.value - best - 1e-7
    stopped = complete(rows, cols, values, shape, biases=biases, gap_tol=1e-8, time_limit=1e-9, **arguments)
    assert stopped.gap >= stopped.value - best - 1e-9  # a gap that was only estimated on the way is proven at the end
    assert model.norm <= radius * (1 + 1e-9)
    p, q = weights(shape, rows, cols, weighted)
    U, s, Vt = model.factors
    X = (U * s) @ Vt
    assert np.linalg.svd(np.sqrt(p)[:, None] * X * np.sqrt(q), compute_uv=False).sum() == pytest.approx(model.norm)
    assert np.allclose(U.T @ U, np.eye(len(s)), atol=1e-8)
    everywhere = model.mean + X + model.row_bias[:, None] + model.col_bias
    i, j = np.divmod(np.arange(X.size), X.shape[1])
    assert np.allclose(model.margins(i, j), everywhere.ravel(), atol=1e-9)


def test_conjugate_directions_of_the_biases_are_conjugate():
    """On biases alone F is a ridge regression: preconditioned conjugate gradients are through after a few steps."""
    left = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        m, n = 60, 40
        i, j = np.nonzero(rng.random((m, n)) < np.outer(rng.random(m) ** 3, rng.random(n) ** 3) * 1.5 + 0.03)
        y = 3 * rng.normal(size=m)[i] + 3 * rng.normal(size=n)[j] + rng.normal(size=len(i))
        data = observed.observe(observed.triplets(i, j, y, (m, n)), "squared", ridge=(0.01, 0.01), dtype=np.float64)
        A = np.zeros((len(i), m + n))
        A[np.arange(len(i)), i] = A[np.arange(len(i)), m + j] = 1
        best = np.linalg.solve(A.T @ A + 0.01 * np.eye(m + n), A.T @ (y - data.mean))
        point = replace(corrective.biases_alone(data, 1.0), bu=np.zeros(m), bi=np.zeros(n))
        for _ in range(3):
            point, _, _ = corrective.descend(data, point, lambda: False, 0.0)
        off = np.concatenate([point.bu, point.bi]) - best
        left.append((np.sum((A @ off) ** 2) + 0.01 * off @ off) / 2 / data.n)
    assert np.median(left) < 3e-6  # 4e-5 where a gradient is compared with itself


def test_predictions_that_are_kept_from_step_to_step_change_nothing(monkeypatch):
    rows, cols, values = planted()
    kept = complete(rows, cols, values, (14, 11), radius=0.6, gap_tol=1e-8)
    monkeypatch.setattr(corrective, "MOST_KEPT", 0)
    made = complete(rows, cols, values, (14, 11), radius=0.6, gap_tol=1e-8)
    assert made.value == pytest.approx(kept.value, rel=1e-6)


@pytest.mark.parametrize("loss", ["squared", "poisson"])
def test_tiles_of_columns_change_nothing_but_the_order(monkeypatch, loss):
    rows, cols, values = planted()
    values = as_values(values, loss)
    whole = complete(rows, cols, values, (14, 11), radius=0.5, loss=loss, gap_tol=1e-9)
    monkeypatch.setattr(observed, "TILE", 4)
    cut = complete(rows, cols, values, (14, 11), radius=0.5, loss=loss, gap_tol=1e-9)
    data = observed.observe(observed.triplets(rows, cols, values, (14, 11)), "squared")
    assert len(data.ptr) == 3 * 14 + 1
    assert np.array_equal(data.row_counts, np.bincount(rows, minlength=14))
    assert cut.value == pytest.approx(whole.value, rel=1e-8)
    assert np.allclose(cut.margins(rows, cols), whole.margins(rows, cols), atol=1e-3)


def test_a_ball_that_holds_the_unconstrained_optimum():
    """The factors leave the boundary: the optimum interpolates, and its norm is smaller than the radius."""
    rows, cols, values = planted(noise=0.0)
    model = complete(rows, cols, values, radius=50.0, biases=False)
    assert model.status == "gap"
    assert model.norm < 25.0
    assert np.abs(model.predict(rows, cols) - values).max() < 0.05


def test_sparse_matrices_stand_for_triplets():
    rows, cols, values = planted()
    matrix = scipy.sparse.csr_array((values, (rows, cols)), shape=(14, 11))
    alike = [complete(rows, cols, values, (14, 11), radius=0.5), complete(matrix, radius=0.5)]
    assert np.array_equal(alike[0].P, alike[1].P)
    with pytest.raises(TypeError, match="alone"):
        complete(matrix, cols, radius=0.5)


def test_the_order_of_entries_does_not_matter():
    rows, cols, values = planted()
    order = np.random.default_rng(3).permutation(len(rows))
    first, second = (
        complete(rows, cols, values, radius=0.5),
        complete(*(x[order] for x in (rows, cols, values)), radius=0.5),
    )
    assert np.array_equal(first.Q, second.Q)


def test_an_entry_given_twice_counts_once_with_its_mean():
    rows, cols, values = planted()
    once = complete(rows, cols, values, radius=0.5, gap_tol=1e-6)
    parts = np.concatenate([values, values[:1] + 1.0])
    parts[0] -= 1.0
    twice = complete(np.append(rows, rows[0]), np.append(cols, cols[0]), parts, radius=0.5, gap_tol=1e-6)
    assert twice.entries == once.entries
    assert np.allclose(once.P @ once.Q.T, twice.P @ twice.Q.T, atol=1e-3)
    with pytest.raises(ValueError, match="both signs"):
        complete([0, 0, 1], [0, 0, 1], [1, -1, 1], loss="logistic", radius=1.0)


def test_rows_and_columns_without_entries_are_predicted_by_the_biases():
    rows, cols, values = planted()
    keep = (rows != 3) & (cols != 4)
    model = complete(rows[keep], cols[keep], values[keep], (14, 11), radius=0.5)
    assert model.row_bias[3] == 0 == model.col_bias[4]
    assert np.abs(model.P[3]).max() < 1e-4 * np.abs(model.P).max()
    assert model.margins([3], [4])[0] == pytest.approx(model.mean, abs=1e-4)


def test_one_entry():
    model = complete([2], [1], [4.0], (3, 2), radius=1.0)
    assert model.predict([2], [1])[0] == pytest.approx(4.0)
    alone = complete([2], [1], [4.0], (3, 2), radius=1.0, biases=False, weighted=False)
    assert alone.margins([2], [1])[0] == pytest.approx(6**0.5, rel=1e-4)  # ‖X‖_*/√(rows · columns) ≤ 1
    with pytest.raises(ValueError, match=r"too few.*radius"):
        complete([2], [1], [4.0], (3, 2))


def test_constant_ratings():
    i, j = np.divmod(np.arange(30), 6)
    model = complete(i, j, np.full(30, 3.0))
    assert np.allclose(model.predict(i, j), 3.0)
    assert model.gap < 1e-9
    assert "seconds" in str(model)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"values": [1.0, np.nan]}, "values holds NaN"),
        ({"rows": [-1, 0]}, "rows holds -1.*count from 0"),
        ({"cols": [0.5, 1]}, "cols must hold whole numbers"),
        ({"values": [1.0]}, "one length"),
        ({"rows": [], "cols": [], "values": []}, "no entry"),
        ({"shape": (1, 2)}, "outside of shape"),
        ({"loss": "logistic"}, "−1 or \\+1"),
        ({"loss": "poisson", "values": [1, -2]}, "counts of at least 0"),
        ({"loss": "hinge"}, "loss='hinge' is not known"),
        ({"radius": 0}, "radius must be a finite number above 0"),
        ({"radius": "pth"}, "did you mean 'path'"),
        ({"max_rank": 0}, "max_rank"),
        ({"gap_tol": 0}, "gap_tol"),
        ({"ridge": 0}, "ridge must be a finite number above 0"),
        ({"ridge": (1, 2, 3)}, "one number, or two"),
        ({"values": ["a", "b"]}, "vector of numbers"),
        ({"cols": None}, "cols and values are needed"),
        ({"checkpoint": ""}, "checkpoint must be the path of a folder, got ''"),
        ({"weighted": "yes"}, "weighted must be True or False, got 'yes'"),
        ({"biases": 1}, "biases must be True or False, got 1"),
        ({"biases": False, "ridge": 2.0}, "ridge shrinks biases, and without biases there are none"),
    ],
)
def test_mistakes_name_the_argument(change, message):
    arguments = {"rows": [0, 1], "cols": [0, 1], "values": [1.0, 2.0], "radius": 1.0} | change
    with pytest.raises((ValueError, TypeError), match=message):
        complete(**arguments)


def test_the_rank_has_a_limit():
    rows, cols, values = planted(rank=5, noise=0.5)
    model = complete(rows, cols, values, radius=2.0, max_rank=2)
    assert model.rank <= 2
    assert model.status == "rank"
    assert model.gap > 1e-3 * model.value


@pytest.fixture(scope="module")
def noisy():
    return planted((60, 40), rank=2, share=0.4, noise=0.5, seed=2)


@pytest.fixture(scope="module")
def chosen(noisy):
    return complete(*noisy, (60, 40), key=1)


def test_a_path_chooses_a_radius_near_the_best(noisy, chosen):
    """Judged on entries that neither the path nor the fit has seen."""
    rng = np.random.default_rng(2)
    truth = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 40))
    seen = np.zeros((60, 40), bool)
    seen[noisy[0], noisy[1]] = True
    i, j = np.nonzero(~seen)
    errors = {
        r: complete(*noisy, (60, 40), radius=r).evaluate(i, j, truth[i, j]).rmse for r in (0.2, 0.8, 1.4, 2.5, 5.0)
    }
    assert chosen.evaluate(i, j, truth[i, j]).rmse <= 1.1 * min(errors.values())
    assert chosen.path.simplest <= chosen.path.best
    assert len(chosen.path.radii) < 20 or chosen.path.best >= 16  # it ends early


def test_the_same_key_gives_the_same_bits(noisy, chosen):
    again = complete(*noisy, (60, 40), key=1)
    assert np.array_equal(again.P, chosen.P)
    assert again.radius == chosen.radius


def test_saved_and_loaded(chosen, tmp_path):
    chosen.save(tmp_path / "m.safetensors")
    back = LowRank.load(tmp_path / "m.safetensors")
    assert np.array_equal(back.P, chosen.P)
    assert back.path.best_radius == chosen.path.best_radius
    assert str(back) == str(chosen)
    chosen.path.save(tmp_path / "p.safetensors")
    assert str(fw.lowrank.CompletionPath.load(tmp_path / "p.safetensors")) == str(chosen.path)
    data = bytearray((tmp_path / "m.safetensors").read_bytes())
    data[-5] ^= 1
    (tmp_path / "m.safetensors").write_bytes(data)
    with pytest.raises(ValueError, match="damaged"):
        LowRank.load(tmp_path / "m.safetensors")
    with pytest.raises(ValueError, match="not a saved low-rank model"):
        LowRank.load(tmp_path / "p.safetensors")


def test_it_shows_itself(chosen, tmp_path):
    assert "rank" in str(chosen)
    assert "<table>" in chosen._repr_html_()
    figure = chosen.plot(tmp_path / "m.png")
    assert len(figure.axes) == 3
    assert (tmp_path / "m.png").stat().st_size > 1000
    assert len(figure.axes[0].patches) == chosen.rank
    many = replace(chosen, s=np.full(500, chosen.norm / 500), path=None)
    assert len(many.plot().axes[0].patches) == 1


def test_top_leaves_out_what_was_seen(noisy, chosen):
    seen = noisy[1][noisy[0] == 7]
    columns, values = chosen.top(7, 5, exclude=seen)
    every = chosen.predict(np.full(40, 7), np.arange(40))
    every[seen] = -np.inf
    assert not set(columns) & set(seen)
    assert np.array_equal(chosen.top(7, 5, exclude=set(seen.tolist()))[0], columns)
    assert np.array_equal(chosen.top(7, 5, exclude=set())[0], chosen.top(7, 5)[0])
    assert np.allclose(values, np.sort(every)[::-1][:5])
    with pytest.raises(ValueError, match="row must be at most 59"):
        chosen.top(60)
    assert len(chosen.top(0, 100)[0]) == 40
    for wrong, message in (
        ([99], "exclude holds 99"),
        (np.ones(40, bool), "whole numbers, got bool"),
        ([1.7], "whole"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            chosen.top(0, exclude=wrong)


def test_errors_have_standard_errors(chosen):
    rng = np.random.default_rng(5)
    i, j = rng.integers(0, 60, 400), rng.integers(0, 40, 400)
    values = chosen.predict(i, j) + rng.normal(size=400)
    scores = chosen.evaluate(i, j, values)
    errors = values - chosen.predict(i, j)
    assert scores.rmse == pytest.approx(np.sqrt(np.mean(errors**2)))
    again = [np.sqrt(np.mean(rng.choice(errors, 400) ** 2)) for _ in range(500)]
    assert scores.rmse_stderr == pytest.approx(np.std(again), rel=0.2)
    assert scores.mae == pytest.approx(np.abs(errors).mean())


def test_predictions_mean_what_the_loss_says():
    rows, cols, values = planted()
    signs = complete(rows, cols, as_values(values, "logistic"), radius=1.0, loss="logistic")
    assert np.allclose(signs.predict(rows, cols), 1 / (1 + np.exp(-signs.margins(rows, cols))))
    assert ((signs.predict(rows, cols) > 0.5) == (values > 0)).mean() > 0.7
    counts = complete(rows, cols, as_values(values, "poisson"), radius=0.5, loss="poisson")
    assert counts.predict(rows, cols).mean() == pytest.approx(as_values(values, "poisson").mean(), rel=0.2)
    ratings = complete(rows, cols, values, radius=3.0)
    assert ratings.predict(rows, cols).max() <= values.max()
    assert not np.array_equal(ratings.predict(rows, cols, clip=False), np.clip(ratings.margins(rows, cols), -1, 1))


def test_biases_are_shrunk_by_the_noise_over_their_variance():
    """Rows as spread as the noise, columns a quarter of it: ridges 1 and 16."""
    rng = np.random.default_rng(0)
    i, j = rng.integers(0, 400, 12_000), rng.integers(0, 300, 12_000)
    values = 3 + rng.normal(size=400)[i] + 0.25 * rng.normal(size=300)[j] + rng.normal(size=12_000)
    model = complete(i, j, values, radius=0.01, gap_tol=0.1)
    assert model.ridge == pytest.approx((1.0, 16.0), rel=0.3)
    two = complete(i, j, values, radius=0.01, gap_tol=0.1, ridge=np.array([1, 16]))
    assert two.ridge == (1.0, 16.0)
    assert np.abs(two.row_bias - model.row_bias).max() < 0.05
    ones = complete(np.arange(50), np.arange(50), rng.normal(size=50), radius=0.01, gap_tol=0.1)
    assert all(1.0 < ridge < np.inf for ridge in ones.ridge)  # one entry a line cannot tell: they are shrunk


STRONG, WEAK = [1.7] * 3, list(2 * 0.8 ** np.arange(12))


@pytest.mark.parametrize(("sizes", "least", "most"), [(STRONG, 3, 3), (WEAK, 8, 12)], ids=["three alike", "falling"])
def test_a_path_limits_the_rank_where_more_does_harm(sizes, least, most):
    """Judged on entries that the path has not seen, against the best radius without a limit."""
    rng = np.random.default_rng(1)
    left, right = rng.normal(size=(1000, len(sizes))), rng.normal(size=(400, len(sizes))) * sizes

    def draw(count):
        i, j = rng.integers(0, 1000, count), rng.integers(0, 400, count)
        return i, j, np.einsum("kc,kc->k", left[i], right[j]) + rng.normal(size=count)

    known, other = draw(40_000), draw(20_000)
    model = complete(*known, (1000, 400))
    assert least <= model.rank <= most
    assert model.status == "rank"
    assert model.path.max_rank[model.path.best] == model.rank
    assert np.isinf(model.path.max_rank[0])
    free = [complete(*known, (1000, 400), radius=r, gap_tol=1e-2) for r in model.radius * np.array([0.6, 0.8, 1.0])]
    assert model.evaluate(*other).rmse < 0.97 * min(each.evaluate(*other).rmse for each in free)
    assert model.gap >= model.value - min(each.value for each in free)  # still a bound over the whole ball


def test_a_path_ends_where_the_ball_is_not_filled():
    rows, cols, values = planted((40, 30), noise=0.0, share=0.8)
    path = fw.lowrank.radius_path(rows, cols, values, radii=[1.0, 4.0, 50.0, 100.0, 200.0])
    assert len(path.radii) <= 3


@pytest.mark.parametrize(("radius", "loss"), [(1e300, "squared"), (1e40, "logistic"), (1e30, "poisson")])
def test_numbers_that_grow_beyond_all_bounds_are_an_error(radius, loss):
    values = np.random.default_rng(0).normal(size=40)
    values = {"squared": values, "logistic": np.sign(values), "poisson": np.round(np.abs(values))}[loss]
    with pytest.raises(FloatingPointError, match=r"beyond all bounds.*lower radius"):
        complete(np.arange(40) % 8, np.arange(40) // 8, values, (8, 5), radius=radius, loss=loss)


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_a_large_offset_is_no_loss_of_precision(loss):
    rows, cols, values = planted()
    near, far = (complete(rows, cols, values + offset, radius=0.5, loss=loss) for offset in (0.0, 1.7e9))
    assert far.rank == near.rank > 0
    assert far.value == pytest.approx(near.value, rel=1e-3)
    predicted = far.predict(rows, cols, clip=False) - 1.7e9
    assert np.allclose(predicted, near.predict(rows, cols, clip=False), atol=1e-2)
    assert far.bounds == (1.7e9 + values.min(), 1.7e9 + values.max())


def test_a_share_of_all_entries_is_refused():
    with pytest.raises(ValueError, match="validation must be a share"):
        fw.lowrank.radius_path(*planted(), validation=1.0)


def test_a_low_rank_model_is_no_model_of_rows(chosen, tmp_path):
    chosen.save(tmp_path / "m.safetensors")
    with pytest.raises(ValueError, match=r"low-rank model.*LowRank\.load"):
        fw.linear.LinearModel.load(tmp_path / "m.safetensors")


def test_a_gap_that_bounds_nothing_says_so():
    """A limit of the rank can leave more to gain than there is."""
    rng = np.random.default_rng(0)
    i, j = np.nonzero(rng.random((30, 20)) < 0.5)
    y = (rng.normal(size=(30, 6)) @ rng.normal(size=(6, 20)))[i, j]
    limited = complete(i, j, y, (30, 20), radius=50.0, max_rank=1, biases=False)
    assert limited.gap == pytest.approx(limited.value)
    assert "all of the value: no bound" in str(limited)
    assert "no bound" not in str(complete(i, j, y, (30, 20), radius=1.0))


def test_a_gap_beside_a_value_of_almost_nothing():
    """Near 0 a gap is compared with a hundredth of the value of the biases alone, as gap_tol says."""
    rows, cols, values = planted(noise=0.5)
    least = 0.01 * complete(rows, cols, values, radius=1e-9).value
    model = complete(rows, cols, values, radius=10.0)
    assert model.status == "gap"
    assert model.value < least
    assert model.gap <= 1e-3 * least * 1.01  # the biases alone are no more than nearly the best


def test_without_biases_there_is_no_mean():
    i, j = np.divmod(np.arange(30), 6)
    model = complete(i, j, np.full(30, 3.0), radius=2.0, biases=False)
    assert model.mean == 0
    assert model.norm == pytest.approx(2.0, rel=1e-3)


@pytest.mark.parametrize(
    ("radii", "message"),
    [(5, "radii must be a list of radii"), ([2.0, 1.0], "sort them"), ([1.0, 1.0], "must rise"), ([], "at least one")],
)
def test_radii_rise(radii, message):
    with pytest.raises((ValueError, TypeError), match=message):
        fw.lowrank.radius_path(*planted(), radii=radii)


def test_the_table_of_a_path_stands_side_by_side(noisy):
    """Marks too long for the line stood in a second table, beside no radius."""
    lines = str(fw.lowrank.radius_path(*noisy, (60, 40), key=1)).splitlines()
    assert lines[1].split()[0] == "radius"
    assert "" not in lines
    assert sum(line.endswith("best") for line in lines[2:]) == 1 + lines[-1].startswith("simplest: ")


def test_a_path_that_ends_at_its_best_says_so(chosen):
    """A path that a time limit cut chose the last radius of few, and the table said that all was well."""
    path = replace(chosen.path, validation_loss=np.linspace(2, 1, len(chosen.path.radii)))
    cut = replace(chosen, path=path, radius=chosen.norm)
    assert "the largest: larger ones may be better" in str(cut)
    assert "larger ones" not in str(replace(cut, radius=2 * chosen.norm))  # larger balls change nothing
    assert "larger ones" not in str(replace(cut, path=replace(path, validation_loss=path.validation_loss[::-1])))


def test_entries_given_twice_are_not_learnt_where_they_are_measured_on():
    """A file beside itself: what had been learnt was measured on, and the largest radius was the best."""
    rng = np.random.default_rng(0)
    m, n = 120, 90
    i, j = np.divmod(rng.choice(m * n, 3_000, replace=False), n)
    y = np.outer(rng.normal(size=m), rng.normal(size=n))[i, j] + rng.normal(size=len(i))
    once = complete(i, j, y, (m, n))
    twice = complete(np.r_[i, i], np.r_[j, j], np.r_[y, y], (m, n))
    assert twice.radius < 2 * once.radius
    assert twice.path.entries + twice.path.held_out < 2 * len(i)
    with pytest.raises(ValueError, match="too few to choose a radius"):
        complete(np.zeros(100, int), np.zeros(100, int), y[:100])


@pytest.mark.parametrize(
    ("losses", "ended"),
    [
        ([3.0, 2.0, 2.001, 2.001], False),  # not three since the best
        ([3.0, 2.0, 2.001, 2.001, 2.001], False),  # by too little
        ([3.0, 2.0, 2.001, 2.001, 2.007], True),
        ([3.0, 2.0, *[2.001] * 5], False),
        ([3.0, 2.0, *[2.001] * 6], True),
    ],
)
def test_a_path_ends_where_larger_radii_bring_nothing(losses, ended):
    from onesfw.lowrank.warm_path import Figures, PathState

    figures = [Figures(float(i + 1), 1.0, 0.0, 1, 1, loss, 0.1, 0.0) for i, loss in enumerate(losses)]
    assert PathState(figures).ended is ended
