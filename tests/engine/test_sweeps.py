"""`fw.sweep`: every run is the single run, what is chosen, what is refused, files and pictures."""

import dataclasses
import os
import signal
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from loop_cases import under_vmap
from matplotlib.collections import LineCollection
from sklearn.model_selection import KFold

import onesfw as fw
from onesfw.engine import chunk_inputs, sweep_checks, sweeps

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3)).astype(np.float32)
Y = (X @ np.array([1.0, 0.0, -0.5], np.float32) + 0.1 * RNG.normal(size=30)).astype(np.float32)
RADII = (0.3, 1.5, 4.0)
FOLDS = fw.rows.folds(30, 4)  # of 22 and 23 rows
STEPS = 700


def objective():
    """Least squares, a new loss at every call."""
    return fw.FiniteSum(lambda x, row: (row[0] @ x - row[1]) ** 2 / 2, (X, Y))


def balls(radii=RADII):
    """The sets of the sweep."""
    return [fw.sets.L1Ball(r, shape=3) for r in radii]


@pytest.fixture(scope="module")
def found():
    return fw.sweep(objective(), balls(), steps=STEPS, rows=FOLDS, replicates=2, key=3)


@pytest.mark.parametrize(("c", "f", "r"), [(0, 0, 0), (1, 3, 1), (2, 2, 0)])
def test_every_run_is_the_single_run(found, c, f, r):
    number = (c * len(FOLDS) + f) * 2 + r
    alone = fw.minimize(
        objective().only(FOLDS[f]), balls()[c], steps=STEPS, key=jax.random.fold_in(jax.random.key(3), number)
    )
    np.testing.assert_array_equal(found.x[c, f, r], alone.x)
    assert (found.value[c, f, r], found.gap[c, f, r]) == (alone.value, alone.gap)


def test_every_single_cell_of_a_sweep_is_its_run():
    part, sets, folds = objective(), balls((0.3, 1.5)), FOLDS[1:3]  # of 22 and 23 rows
    swept = fw.sweep(part, sets, steps=150, rows=folds, replicates=2, key=9)
    for number, (c, f, r) in enumerate(np.ndindex(2, 2, 2)):
        key = jax.random.fold_in(jax.random.key(9), number)
        alone = fw.minimize(part.only(folds[f]), sets[c], steps=150, key=key)
        np.testing.assert_array_equal(swept.x[c, f, r], alone.x)
        assert (swept.value[c, f, r], swept.gap[c, f, r]) == (alone.value, alone.gap)


def test_the_rows_left_out_judge(found):
    others = np.setdiff1d(np.arange(30), FOLDS[1])
    losses = (X[others] @ found.x[2, 1, 0] - Y[others]) ** 2 / 2
    assert found.validation[2, 1, 0] == pytest.approx(losses.mean(), rel=1e-5)
    assert found.validation_stderr[2, 1, 0] == pytest.approx(losses.std(ddof=1) / len(others) ** 0.5, rel=1e-5)


def test_the_value_is_that_of_the_rows_learnt(found):
    losses = (X[FOLDS[0]] @ found.x[1, 0, 1] - Y[FOLDS[0]]) ** 2 / 2
    assert found.value[1, 0, 1] == pytest.approx(losses.mean(), rel=1e-5)


def test_runs_that_go_together_are_the_runs_apart(monkeypatch):
    options = {"steps": 60, "rows": FOLDS, "replicates": 2, "algorithm": fw.one_sfw(schedule="paper")}
    apart = fw.sweep(objective(), balls(), **options)
    monkeypatch.setenv("ONESFW_KERNEL", "xla")
    monkeypatch.setattr(sweeps, "apart", sweeps.together)
    under_vmap(monkeypatch)
    together = fw.sweep(objective(), balls(), **options)
    np.testing.assert_allclose(together.x, apart.x, atol=1e-5)
    np.testing.assert_allclose(together.validation, apart.validation, rtol=1e-4)
    np.testing.assert_allclose(together.gap, apart.gap, atol=1e-4)


def test_runs_go_together_where_their_weights_are_the_same(monkeypatch):
    """The tolerance of conditional gradient sliding grows with the set's diameter."""
    options = {"steps": 40, "algorithm": fw.storc(smoothness=8.0)}
    apart = fw.sweep(objective(), balls((0.05, 50.0)), **options)
    monkeypatch.setattr(sweeps, "apart", sweeps.together)
    together = fw.sweep(objective(), balls((0.05, 50.0)), **options)
    np.testing.assert_allclose(together.x, apart.x, atol=1e-5)


def test_runs_that_go_together_in_one_kernel(monkeypatch):
    options = {"steps": 30, "rows": FOLDS[:2], "algorithm": fw.one_sfw(schedule="paper"), "evaluate": False}
    apart = fw.sweep(objective(), balls(), **options)
    monkeypatch.setenv("ONESFW_KERNEL", "persistent")
    monkeypatch.setattr(sweeps, "apart", sweeps.together)
    together = fw.sweep(objective(), balls(), **options)
    assert (apart.kernel, together.kernel) == ("xla", "persistent")
    np.testing.assert_allclose(together.x, apart.x, atol=1e-5)


def test_a_radius_inside_of_a_product_is_called_by_its_part():
    sets = [
        fw.sets.Product({"slopes": fw.sets.L1Ball(radius, shape=2), "level": fw.sets.Box(-1.0, 1.0, shape=())})
        for radius in RADII
    ]
    assert sweep_checks.told_apart(sets)[1] == "radius of slopes"
    assert sweep_checks.told_apart([fw.sets.Shifted(ball, np.ones(3)) for ball in balls()])[1] == "radius"


def made(judged, at=(1.0, 2.0, 3.0), sense="minimize"):
    """A sweep with given validation values."""
    values = np.asarray(judged, float)[:, :, None]
    nothing = np.zeros_like(values)
    return fw.Sweep(
        x=np.zeros((*values.shape, 1)), value=nothing, value_stderr=nothing, gap=nothing, gap_stderr=nothing,
        validation=values, validation_stderr=nothing, status=nothing.astype(int), at=np.asarray(at), parameter="radius",
        constraint="L1Ball", algorithm="one_sfw", sense=sense, steps=nothing.astype(int), seconds=0.0,
    )  # fmt: skip


def test_the_smallest_set_within_a_standard_error_is_chosen():
    sweep = made([[5.0, 6.0], [1.2, 1.0], [0.9, 1.1]])
    assert sweep.best().number == 2
    assert sweep.best().stderr == pytest.approx(0.1)
    assert sweep.best("one_standard_error").at == 2.0
    assert made([[5.0, 6.0], [1.2, 1.0], [0.9, 1.1]], sense="maximize").best().number == 0


def test_a_function_and_other_rows_judge():
    options = {"steps": 20, "algorithm": fw.one_sfw(schedule="paper")}
    other = fw.FiniteSum(lambda x, row: jnp.sum((x - row) ** 2), X[:5])
    by_rows = fw.sweep(objective(), balls(), validation=other, **options)
    expected = ((by_rows.x[1, 0, 0] - X[:5]) ** 2).sum(1)
    assert by_rows.validation[1, 0, 0] == pytest.approx(expected.mean(), rel=1e-5)
    assert by_rows.validation_stderr[1, 0, 0] == pytest.approx(expected.std(ddof=1) / 5**0.5, rel=1e-5)
    by_function = fw.sweep(objective(), balls()[1], validation=lambda x: float(jnp.sum(x)), **options)
    assert by_function.validation.ravel() == pytest.approx(by_function.x.sum(-1).ravel(), rel=1e-6)


def test_a_sweep_is_saved_shown_and_drawn(found, tmp_path):
    found.save(tmp_path / "sweep.safetensors")
    again = fw.Sweep.load(tmp_path / "sweep.safetensors")
    np.testing.assert_array_equal(again.x, found.x)
    assert str(again) == str(found) == found.table()
    assert "best" in str(found)
    assert found._repr_html_().count("<tr") == 4
    table = found.to_pandas()
    assert len(table) == 24
    assert table["radius"].unique().tolist() == pytest.approx(RADII)
    found.plot(tmp_path / "sweep.png")
    assert (tmp_path / "sweep.png").stat().st_size > 5_000
    content = bytearray((tmp_path / "sweep.safetensors").read_bytes())
    content[-5] ^= 1
    (tmp_path / "sweep.safetensors").write_bytes(content)
    with pytest.raises(ValueError, match="damaged"):
        fw.Sweep.load(tmp_path / "sweep.safetensors")


def test_a_sweep_goes_on_where_it_was(found, tmp_path):
    options = {"steps": STEPS, "rows": FOLDS, "replicates": 2, "key": 3, "checkpoint": tmp_path / "runs"}
    fw.sweep(objective(), balls(), time_limit=1e-9, **options)
    again = fw.sweep(objective(), balls(), **options)
    np.testing.assert_array_equal(again.x, found.x)
    with pytest.raises(ValueError, match="belongs to a run with another constraints"):
        fw.sweep(objective(), balls((0.3, 1.5, 5.0)), **options)


def test_a_time_limit_and_its_status():
    short = fw.sweep(objective(), balls(), steps=10**7, time_limit=0.5, evaluate=False)
    assert "The time limit was reached" in str(short)
    assert np.all(short.steps < 10**7)


def test_an_interrupt_ends_all_runs_and_keeps_what_they_have(monkeypatch):
    apart = sweeps.apart

    def disturbed(*arguments):
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        return apart(*arguments)

    monkeypatch.setattr(sweeps, "apart", disturbed)
    cut = fw.sweep(objective(), balls(), steps=10**9, evaluate=False)
    assert {fw.Status.INTERRUPTED} == {tuple(fw.Status)[place] for place in cut.status.ravel()}
    assert np.all(np.abs(cut.x).sum(-1)[:, 0, 0] <= np.array(RADII) * (1 + 1e-5))
    assert "3 runs: " in cut.table()


def test_a_sweep_without_values_shows_its_table():
    found = fw.sweep(objective(), balls(), steps=5, evaluate=False)
    assert found._repr_html_().count("<tr") == 4
    with pytest.raises(ValueError, match="nothing was measured"):
        found.best()


def test_sets_whose_runs_were_cut_or_broke_down_are_not_compared():
    """The validation values of sets 0 and 1 would win."""
    statuses = [fw.Status.INTERRUPTED, fw.Status.NOT_FINITE, fw.Status.INTERRUPTED]
    places = np.array([[[list(fw.Status).index(status)]] * 2 for status in statuses])
    steps = np.array([[[900], [1]], [[1000], [900]], [[700], [1000]]])
    cut = dataclasses.replace(made([[0.1, 0.1], [0.2, 0.2], [5.0, 6.0]]), status=places, steps=steps)
    assert cut.best().number == cut.best("one_standard_error").number == 2
    assert [row[-2:] for row in cut.sheet().rows] == [
        ("–", "not compared"), ("–", "not compared"), ("5.5 ± 0.5", "best")
    ]  # fmt: skip
    assert cut.plot() is not None
    none = dataclasses.replace(cut, steps=np.array([[[900], [1]], [[1000], [900]], [[1], [1000]]]))
    with pytest.raises(ValueError, match="no set is left to choose from"):
        none.best()
    assert none._repr_html_().count("not compared") == 3


def test_progress_goes_to_the_error_stream(capsys):
    fw.sweep(objective(), balls(), steps=20, evaluate=False, progress=True)
    told = capsys.readouterr()
    assert not told.out
    assert "60" in told.err  # steps of all three runs


BAD = {
    "class": (lambda: {"constraints": [*balls(), fw.sets.L2Ball(1.0, shape=3)]}, ValueError, "of one class"),
    "shape": (lambda: {"constraints": [balls()[0], fw.sets.L1Ball(9.0, shape=4)]}, ValueError, "one shape"),
    "order": (lambda: {"constraints": balls((2.0, 1.0))}, ValueError, "must rise in their radius, .*; sort them"),
    "no set": (lambda: {"constraints": []}, ValueError, "holds no set"),
    "vertices": (
        lambda: {"constraints": [fw.sets.KSparse(k, 1.0, shape=3) for k in (1, 2)]}, ValueError,
        r"KSparse differ in more than numbers \(k=1 and k=2\).*fw.sweep for each",
    ),
    "groups": (
        lambda: {"constraints": [fw.sets.GroupBall(groups, 1.0) for groups in ([0, 0, 1], [0, 1, 2])]}, ValueError,
        r"\(count=2 and count=3\)",
    ),
    "no number": (lambda: {"validation": lambda x: x}, TypeError, "validation must return one number"),
    "a number": (lambda: {"constraints": 3.0}, TypeError, "constraints must be a set"),
    "numbers": (lambda: {"constraints": [1.0, 2.0]}, TypeError, "constraints must be sets"),
    "an empty fold": (lambda: {"rows": [[0, 1], []]}, ValueError, "choice 1 names no row"),
    "a row too far": (lambda: {"rows": [[0, 30]]}, ValueError, "names row 30, and the data have rows 0..29"),
    "a short mask": (lambda: {"rows": [[True, False]]}, TypeError, r"or a mask of all 30 rows, got bool\(2,\)"),
    "fractions": (lambda: {"rows": [[0.5, 1.0]]}, TypeError, "choice 0 must be a vector of row numbers"),
    "ragged": (lambda: {"rows": [[[1, 2], [3]]]}, TypeError, r"choice 0 must be a vector .*, got \[\[1, 2\], \[3\]\]"),
    "one vector": (lambda: {"rows": np.arange(9)}, TypeError, r"got int64\(\); let one choice alone be \[numbers\]"),
    "other rows": (
        lambda: {"validation": fw.FiniteSum(lambda x, row: row @ x, X[:, :2])}, ValueError, "^validation: FiniteSum"),
    "pairs": (lambda: {"rows": KFold(4).split(X)}, TypeError, "choice 0 is a pair .*; give the rows to learn"),
    "no folds": (lambda: {"rows": []}, ValueError, "rows holds no choice"),
    "rows of no sum": (
        lambda: {"objective": fw.Expectation(lambda x, z: jnp.sum(x * z), lambda k: jax.random.normal(k, (3,))),
                 "rows": FOLDS}, TypeError, "only a FiniteSum has rows"),
    "sense": (lambda: {"sense": "min"}, ValueError, "sense='min' is not known"),
    "validation": (lambda: {"validation": 3}, TypeError, "validation must be"),
    "replicates": (lambda: {"replicates": 0}, ValueError, "replicates must be"),
    "steps": (lambda: {"steps": 0}, ValueError, "steps must be"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_before_anything_is_done(case):
    arguments, kind, message = BAD[case]
    given = {"objective": objective(), "constraints": balls(), "steps": 10, **arguments()}
    with pytest.raises(kind, match=message):
        fw.sweep(given.pop("objective"), given.pop("constraints"), **given)


def test_folds_hold_every_row_out_once_and_every_label_in_each():
    labels = np.array([0] * 20 + [1] * 4)
    chosen = fw.rows.folds(24, 4, labels=labels)
    held = [np.setdiff1d(np.arange(24), rows) for rows in chosen]
    assert sorted(np.concatenate(held).tolist()) == list(range(24))
    assert [labels[rows].sum() for rows in held] == [1, 1, 1, 1]
    with pytest.raises(ValueError, match="only 4 rows have the label 1, fewer than 5 folds"):
        fw.rows.folds(24, 5, labels=labels)
    with pytest.raises(ValueError, match="take fewer folds"):
        fw.rows.folds(3, 4)


def test_half_samples_come_in_complementary_pairs():
    chosen = fw.rows.halves(9, 6)
    for first, second in zip(chosen[::2], chosen[1::2], strict=True):
        assert len(first) == len(second) == 4
        assert not set(first.tolist()) & set(second.tolist())
    with pytest.raises(ValueError, match="times must be even"):
        fw.rows.halves(9, 5)


def test_bootstraps_are_drawn_with_replacement():
    counts = np.array([len(np.unique(rows)) for rows in fw.rows.bootstrap(400, 50)])
    expected = 400 * (1 - (1 - 1 / 400) ** 400)
    assert abs(counts.mean() - expected) < 4 * counts.std(ddof=1) / 50**0.5


def test_a_mask_stands_for_its_rows():
    rng = np.random.default_rng(0)
    objective = fw.FiniteSum(lambda x, row: (row @ x - 1) ** 2, rng.normal(size=(12, 3)).astype(np.float32))
    mask = np.arange(12) % 3 > 0
    by_mask, by_number = (
        fw.sweep(objective, fw.sets.L1Ball(1.0, shape=3), steps=20, rows=[choice])
        for choice in (mask, np.flatnonzero(mask))
    )
    assert np.array_equal(by_mask.x, by_number.x)
    assert np.array_equal(by_mask.validation, by_number.validation)


def test_the_table_says_what_its_best_one_means():
    """Without rows left out larger sets are favoured, and runs that are far from solved are no sets to choose from."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 8)).astype(np.float32)
    objective = fw.FiniteSum(lambda x, row: (row @ x - 1) ** 2, rows)
    balls = [fw.sets.L1Ball(r, shape=8) for r in (0.5, 50.0)]
    hasty = str(fw.sweep(objective, balls, steps=20))
    assert "no rows were left out" in hasty
    assert "no rows were left out" not in str(fw.sweep(objective, balls, steps=20, evaluate=lambda x: 1.0))
    noise = fw.Expectation(lambda x, z: jnp.sum((x - z) ** 2), lambda key: jax.random.normal(key, (8,)))
    sampled = fw.sweep(noise, balls, steps=20)
    assert "no rows were left out" not in str(sampled)
    assert sampled.plot().axes[0].get_lines()[0].get_label() == "value, middle 80 % of the runs"
    assert "one set has gaps over a tenth" in hasty
    judged = str(fw.sweep(objective, balls[:1], steps=50_000, rows=fw.rows.folds(60, 3)))
    assert "left out, and" not in judged
    assert "gaps over" not in judged


def test_the_clock_leaves_out_no_set_because_one_run_was_quick():
    """It gives all runs the same time; where the machine is busy, steps differ. Ctrl-C leaves them at the longest."""
    places = np.full((3, 2, 1), list(fw.Status).index(fw.Status.TIME_UP))
    steps = np.array([[[900], [700]], [[5000], [900]], [[300], [1000]]])
    sweep = dataclasses.replace(made([[0.3, 0.3], [0.2, 0.2], [0.1, 0.1]]), status=places, steps=steps)
    assert sweep.compared.all(axis=(1, 2)).tolist() == [True, True, False]
    assert sweep.best().number == 1
    cut = dataclasses.replace(sweep, status=np.full_like(places, list(fw.Status).index(fw.Status.INTERRUPTED)))
    assert cut.compared.sum() == 1


def test_one_set_is_drawn_with_its_spread():
    """Where a band has no width."""
    axes = made([[5.0, 6.0, 9.0]], at=(1.0,)).plot().axes[0]
    spans = [line.get_segments()[0][:, 1].tolist() for line in axes.collections if isinstance(line, LineCollection)]
    error = np.std([5.0, 6.0, 9.0], ddof=1) / 3**0.5
    assert spans[0] == pytest.approx([20 / 3 - error, 20 / 3 + error])
    assert axes.get_title() == "L1Ball: 3 runs of one_sfw"
    assert made([[5.0]], at=(1.0,)).plot().axes[0].get_title() == "L1Ball: 1 run of one_sfw"


def test_sets_without_one_number_are_drawn_at_their_places():
    boxes = [fw.sets.Box(-r * np.ones(3), r * np.ones(3)) for r in (0.1, 0.5, 1.0)]
    found = fw.sweep(objective(), boxes, steps=20, algorithm=fw.one_sfw(schedule="paper"))
    axes = found.plot().axes[0]
    assert all(float(place).is_integer() for place in axes.get_xticks())


def test_what_runs_share_is_made_once(monkeypatch):
    """A set's schedules serve its runs on all rows and of all seeds; the problem is checked for the first set alone."""
    made, checked = [], []
    compute, check = chunk_inputs.computed_inputs, fw.FiniteSum.check
    monkeypatch.setattr(chunk_inputs, "computed_inputs", lambda *args: made.append(args) or compute(*args))
    monkeypatch.setattr(fw.FiniteSum, "check", lambda *args: checked.append(args) or check(*args))
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0})  # two threads may both make what is missing
    fw.sweep(objective(), balls(), steps=1, rows=FOLDS, replicates=2, key=3)
    assert len(made) == len({args[1:] for args in made}) * len(RADII) == len(RADII)
    assert len(checked) == 1


def test_many_sets_keep_few_schedules(monkeypatch):
    """Each is half a megabyte or more."""
    runs = []
    another = sweeps.over_another
    monkeypatch.setattr(sweeps, "over_another", lambda *args: runs.append(another(*args)) or runs[-1])
    fw.sweep(objective(), balls(np.linspace(0.1, 4.0, 2 * chunk_inputs.KEPT)), steps=20)
    held = {id(found): found for run in runs for _, found in run.inputs.values()}
    assert 0 < len(held) <= chunk_inputs.KEPT + (os.cpu_count() or 1)
