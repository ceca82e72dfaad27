"""Comparisons: budgets, slopes, what is measured of a run, tables, and what the page is made of."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from experiment_checks import curve, power_law, small_comparison

import onesfw as fw
from onesfw import zoo
from onesfw.algorithms import ALGORITHMS, SETTINGS
from onesfw.experiments import Comparison, comparison, curves, runs
from onesfw.experiments.comparison import carry_out, prepare
from onesfw.results.show import lines, markdown
from onesfw.zoo import Problem
from onesfw.zoo.base import in_slices

# Slopes


@pytest.mark.parametrize("exponent", [-1.0, -0.5, -1 / 3, 0.0])
def test_the_slope_of_a_power_law_lies_in_its_interval(exponent):
    counts, errors = power_law(exponent)
    found = curves.slope(counts, errors)
    assert found.low < exponent < found.high
    assert found.low < found.value < found.high
    assert 0.005 < found.high - found.low < 0.15
    exact = curves.slope(counts, counts**exponent * np.ones((3, 1)))
    assert exact.value == pytest.approx(exponent, abs=1e-12)


def test_intervals_cover_the_truth_about_as_often_as_they_say():
    """Of 200 samples of 16 seeds, 95 % ± 5 of the intervals hold the slope (a bootstrap is a little too narrow)."""
    hits = 0
    for seed in range(200):
        counts, errors = power_law(-0.5, seeds=16, noise=0.3, seed=seed)
        found = curves.slope(counts, errors)
        hits += found.low <= -0.5 <= found.high
    assert 170 <= hits <= 200


def test_a_slope_is_taken_over_the_last_two_decades_only():
    counts = np.array([1, 10, 100, 1_000, 10_000])
    errors = np.array([[7.0, 9.0, 1.0, 0.1, 0.01]])
    assert curves.slope(counts, errors).value == pytest.approx(-1.0)


@pytest.mark.parametrize("errors", [[[1.0, 0.5]], [[1e-30, 1e-31, 1e-32]], [[np.nan] * 3], [[-1.0, -2.0, -1.0]]])
def test_what_has_no_slope(errors):
    assert np.isnan(curves.slope(np.array([100, 1_000, 10_000][: len(errors[0])]), np.array(errors)).value)


def test_the_interval_of_a_ratio_covers_the_truth_about_as_often_as_it_says():
    hits = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        over, under = 6 * np.exp(0.2 * rng.standard_normal(30)), 2 * np.exp(0.2 * rng.standard_normal(30))
        found = curves.ratio(over, under)
        assert found.value == pytest.approx(over.mean() / under.mean())
        assert 0.2 < found.high - found.low < 1.2
        hits += found.low <= 3.0 <= found.high
    assert 86 <= hits <= 100


# Budgets


@pytest.mark.parametrize("name", ["one_sfw", "momentum_sfw", "minibatch_sfw", "spider_fw", "svrf", "frank_wolfe"])
def test_steps_fill_the_budget_and_no_more(name):
    objective, algorithm = zoo.get("logistic").objective, ALGORITHMS[name]("convex")
    steps = runs.steps_for(algorithm, objective, 5_000)
    assert algorithm.counts(objective, steps).samples <= 5_000 < algorithm.counts(objective, steps + 1).samples


def test_online_fw_gets_the_gradients_of_one_sfw_not_its_samples():
    objective, algorithm = zoo.get("logistic").objective, ALGORITHMS["online_fw"]("convex")
    steps = runs.steps_for(algorithm, objective, 5_000)
    assert algorithm.counts(objective, steps).gradients <= 10_000 < algorithm.counts(objective, steps + 1).gradients
    assert fw.one_sfw(schedule="paper").counts(objective, 5_000).gradients == 9_999


def test_methods_whose_schedules_depend_on_the_length_are_run_anew_for_each_budget():
    objective = zoo.get("logistic").objective
    assert runs.anytime(fw.one_sfw("convex", schedule="paper"), objective)
    assert runs.anytime(fw.minibatch_sfw("convex"), objective)
    for algorithm in (
        fw.one_sfw("convex"),
        fw.one_sfw("nonconvex"),
        fw.one_sfw("dr_submodular"),
        fw.minibatch_sfw("nonconvex", eta=0.1),
    ):
        assert not runs.anytime(algorithm, objective)


def test_marks_end_at_the_budget_and_cover_three_decades():
    objective = zoo.get("quadratic-face").objective
    marks = runs.marks_for(fw.one_sfw(schedule="paper"), objective, 20_000)
    assert marks == sorted(set(marks))
    assert (marks[0], marks[-1]) == (20, 20_000)
    assert len(marks) == 25
    assert runs.lengths_for(fw.one_sfw(schedule="paper"), objective, 10_000) == [100, 316, 1_000, 3_162, 10_000]


def test_a_budget_below_one_step_is_a_sentence():
    with pytest.raises(ValueError, match="first step of frank_wolfe takes 569 samples, more than 100"):
        runs.marks_for(ALGORITHMS["frank_wolfe"]("convex"), zoo.get("logistic").objective, 100)


# Methods


def test_every_method_applies_or_says_why_not():
    for name in ("logistic", "quadratic-face", "gaussian", "sigmoid", "nqp"):
        able, unable = comparison.applicable(zoo.get(name), comparison.known_names(None), 3_000)
        assert set(able) | set(unable) == set(comparison.METHODS) - {"one_sfw"}
        assert not set(able) & set(unable)
        assert {"one_sfw[auto]", "one_sfw[paper]"} <= set(able)
        for method in able:
            assert zoo.get(name).setting in SETTINGS[comparison.METHODS[method][0]]
        assert all(reason for reason in unable.values())
    _, unable = comparison.applicable(zoo.get("quadratic-face"), ["frank_wolfe", "svfw"], 3_000)
    assert "needs a full gradient" in unable["frank_wolfe"]
    assert unable["svfw"] == "serves nonconvex problems only"


def test_competitors_have_their_documented_step_rules_and_one_sfw_its_own():
    for name, schedule in (("one_sfw", "auto"), ("one_sfw[auto]", "auto"), ("one_sfw[paper]", "paper")):
        algorithm = comparison.recipe(name, "convex")
        assert algorithm.summary == fw.one_sfw(schedule=schedule).summary
        assert list(comparison.rules_of(name, algorithm)) == [comparison.PRESET]
    rules = comparison.rules_of("momentum_sfw", fw.momentum_sfw())
    assert len(rules) == 5
    assert len({algorithm.eta.formula for algorithm in rules.values()}) == 5
    with_noise = comparison.rules_of("spider_fw", fw.spider_fw())
    assert {"paper", "paper, noise=0.25", "unit, noise=1"} <= set(with_noise)
    assert list(comparison.rules_of("projected_sgd", fw.projected_sgd())) == [
        "preset",
        "preset, noise=0.1",
        "preset, noise=10",
        "preset, smoothness=1",
    ]
    assert list(comparison.rules_of("minibatch_sfw", fw.minibatch_sfw("nonconvex"))) == [comparison.PRESET]


def test_an_unknown_method_suggests_the_nearest():
    with pytest.raises(ValueError, match="did you mean 'momentum_sfw'"):
        comparison.known_names(["momentun_sfw"])


# What is measured


def test_running_means_are_exact_for_lines():
    """f(t) = 3 + 2t, read off at a few nodes, against the sum over all whole numbers."""
    nodes = np.array([2.0, 5.0, 11.0, 40.0])
    found = runs.running_mean(nodes, 3 + 2 * nodes[None], np.array([[5.0]]))
    np.testing.assert_allclose(found, [[np.mean(3 + 2 * np.arange(1, t + 1)) for t in nodes]])


def test_in_slices_agrees_with_one_call():
    points = np.random.default_rng(0).random((3, 700, 20))
    problem = zoo.get("quadratic-face")
    np.testing.assert_allclose(in_slices(problem.value, points, ()), problem.value(points), rtol=1e-12)
    np.testing.assert_allclose(in_slices(problem.gradient, points, (20,)), problem.gradient(points), rtol=1e-10)


def test_a_convex_curve_is_the_run_itself():
    problem = zoo.get("quadratic-face")
    found = runs.measure(problem, fw.one_sfw(schedule="paper"), 2_000, 3, key=5)
    assert list(found.measures) == ["suboptimality", "gap", "value"]
    assert found.measures["suboptimality"].shape == (3, len(found.steps))
    start = np.full(20, 1 / 20)
    for place in (4, -1):
        steps = int(found.steps[place])
        run = fw.minimize(
            problem.objective, problem.constraint, start, steps=steps, key=5, replicates=3, evaluate=False,
            algorithm=fw.one_sfw(schedule="paper"),
        )  # fmt: skip
        values = problem.value(np.asarray(run.x)) - problem.optimum().value
        np.testing.assert_allclose(found.measures["suboptimality"][:, place], values, rtol=1e-9)
        assert found.counts["samples"][place] == steps
        assert found.counts["gradients"][place] == 2 * steps - 1
    assert np.all(np.diff(found.seconds, axis=1) >= 0)


def test_the_error_of_a_random_output_is_the_mean_over_the_iterates():
    problem, steps = zoo.get("indefinite"), 12  # so few that every iterate is looked at
    algorithm = fw.one_sfw("nonconvex", schedule="paper")
    errors, _ = runs.end(problem, algorithm, steps, 2, 0)
    points = []
    start = np.asarray(problem.start())
    fw.minimize(
        problem.objective, problem.constraint, start, steps=steps, algorithm=algorithm, replicates=2, evaluate=False,
        every=1, callbacks=[lambda row, x: points.append((row["replicate"], np.asarray(x)))],
    )  # fmt: skip
    for replicate in (0, 1):
        iterates = np.array([start] + [x for r, x in points if r == replicate])
        assert errors["gap"][replicate] == pytest.approx(np.mean(problem.gap(iterates)), rel=1e-9)


def test_submodular_errors_regret_and_value_against_a_step_by_step_account():
    problem, steps, seeds = zoo.get("nqp"), 10, 2  # so few steps that all of them are looked at
    method = fw.one_sfw("dr_submodular", schedule="paper")
    errors, result = runs.submodular_end(problem, method, steps, seeds, 0)
    means = {replicate: [] for replicate in range(seeds)}
    again = fw.maximize(
        problem.objective, problem.constraint, np.zeros(20), steps=steps, replicates=seeds, evaluate=False, every=1,
        callbacks=[lambda row, x: means[row["replicate"]].append(np.asarray(x))], algorithm=method,
    )  # fmt: skip
    for replicate in range(seeds):
        sums = np.array([np.zeros(20)] + [x * (t + 1) for t, x in enumerate(means[replicate])])
        x, vertices = sums[:-1] / steps, np.diff(sums, axis=0)
        regrets = problem.gap(x) + np.sum(problem.gradient(x) * (x - vertices), -1)
        assert errors["regret"][replicate] == pytest.approx(np.mean(regrets), rel=1e-9)
        estimate = np.asarray(again.state[replicate].estimate.d)
        expected = np.sum((estimate - problem.gradient(x[-1])) ** 2)
        assert errors["gradient_error"][replicate] == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(errors["value"], problem.value(np.asarray(result.x)))
    assert np.all(errors["regret"] >= 0)


def test_replicates_under_vmap_give_the_same_curve(monkeypatch):
    """As on an accelerator, where all seeds run at once."""
    one_by_one = runs.measure(zoo.get("nqp"), fw.one_sfw("dr_submodular"), 200, 3)
    monkeypatch.setattr(jax, "default_backend", lambda: "accelerator")
    together = runs.measure(zoo.get("nqp"), fw.one_sfw("dr_submodular"), 200, 3)
    assert list(together.measures) == list(one_by_one.measures)
    for measure, values in one_by_one.measures.items():
        np.testing.assert_allclose(together.measures[measure], values, rtol=1e-6, atol=1e-12)
    assert together.seconds.shape == one_by_one.seconds.shape
    for count in curves.COUNTS:
        np.testing.assert_array_equal(together.counts[count], one_by_one.counts[count])


def test_a_problem_without_exact_values_is_measured_by_the_library():
    rows = np.random.default_rng(0).normal(size=(50, 5)).astype(np.float32)
    objective = fw.FiniteSum(lambda x, row: jnp.sum((x - row) ** 2), rows)
    mine = Problem("mine", "mine", objective, fw.sets.L1Ball(1.0, shape=5), "convex")
    found = runs.measure(mine, fw.one_sfw(), 500, 2)
    assert list(found.measures) == ["gap", "value"]
    assert np.all(found.measures["gap"] >= 0)
    assert found.final.mean() < found.measures["gap"][:, 0].mean()


def test_a_run_that_breaks_down_is_listed_not_drawn():
    mine = Problem(
        "bad", "bad", fw.FiniteSum(lambda x, row: jnp.sqrt(jnp.sum(x) - 10) * row[0], np.ones((4, 1))),
        fw.sets.L1Ball(1.0, shape=3), "convex",
    )  # fmt: skip
    made = carry_out(prepare(mine, 50, 2, names=["one_sfw"]))
    assert made.curves == []
    assert "NaN or an infinity" in made.skipped["one_sfw"]


# Comparisons


def test_a_comparison_keeps_the_best_rule_of_each_method():
    plan, made, asked = small_comparison()
    assert plan.runs == len(asked)
    assert asked == [("quadratic-face", name) for name in (*["momentum_sfw"] * 5, "one_sfw", "momentum_sfw")]
    assert [c.name for c in made.curves] == ["one_sfw", "momentum_sfw"]
    tried = {rule: errors.mean() for rule, errors in made.tried["momentum_sfw"].items()}
    assert len(tried) == 5
    assert len(set(tried.values())) == 5
    ((rule, errors),) = made.rules["momentum_sfw"].items()
    assert rule == min(tried, key=tried.get)
    assert np.array_equal(made.curve("momentum_sfw").final, errors)
    assert not np.isin(errors, made.tried["momentum_sfw"][rule]).any()  # chosen on other seeds
    assert "momentum_sfw: " + repr(rule) + " of 5 step rules" in made.remarks()
    assert list(made.skipped) == ["frank_wolfe"]
    assert made.curve("frank_wolfe") is None


def test_ctrl_c_keeps_what_is_done(monkeypatch):
    plan = prepare(zoo.get("quadratic-face"), 500, 2, names=["one_sfw", "momentum_sfw"])

    def stop(problem_name, method):
        if method == "momentum_sfw":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        carry_out(plan, stop)
    assert [c.name for c in plan.comparison.curves] == ["one_sfw"]


def test_the_table_names_every_figure():
    _, made, _ = small_comparison()
    sheet = made.sheet()
    assert sheet.columns == (
        "method", "F(x) − F*", "slope in samples", "slope in LMO calls", "gap", "samples", "gradients", "HVPs",
        "LMO calls", "seconds",
    )  # fmt: skip
    assert [row[0] for row in sheet.rows] == ["one_sfw", "momentum_sfw"]  # the least error first
    assert sheet.rows[0][5:7] == ("2,000", "4,019")  # two a step, and 20 for the output
    assert "F* =" in sheet.note
    text = markdown(sheet)
    assert text.count("\n|") == 2 + 1 + 1
    assert len(lines(sheet).splitlines()) > 3


def test_a_method_that_leaves_much_of_the_budget_is_named():
    counts = np.array([100, 1_000])
    lines_of = [curve(name, counts, np.ones((2, 2))) for name in ("one_sfw", "spider_fw", "online_fw")]
    lines_of[1] = curve("spider_fw", counts // 2, np.ones((2, 2)))
    lines_of[2] = curve("online_fw", counts // 20, np.ones((2, 2)))  # has the gradients of the others instead
    note = comparison.note_of(Comparison(zoo.get("quadratic-face"), 1_000, 2, curves=lines_of))
    assert "spider_fw ends at 500: its next step takes more than are left" in note
    assert "one_sfw" not in note
    assert "online_fw" not in note


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([64.711, 64.705, 64.708], "64.708 ± 0.002"),
        ([1.2e-4, 1.8e-4], "1.5e-4 ± 3e-5"),
        ([0.14, 0.16], "0.15 ± 0.01"),
        ([0.5, 0.5], "0.5"),
        ([np.nan, 1.0], "–"),
        ([3.0], "3"),
    ],
)
def test_means_are_shown_to_the_first_digit_of_their_error(values, text):
    assert curves.mean_text(np.array(values)) == text


# Intervals and counts, against hand-made ones


def test_intervals_are_the_quantiles_of_the_resamples():
    counts, errors = power_law(-0.5)
    x = np.log(counts)
    weights = (x - x.mean()) / np.sum((x - x.mean()) ** 2)
    drawn = np.log(curves.resampled_means(errors)) @ weights
    found = curves.slope(counts, errors)
    np.testing.assert_allclose((found.low, found.high), np.quantile(drawn, [0.025, 0.975]))
    over, under = errors[:, 0], errors[:, -1]
    pairs = curves.resampled_means(over[:, None])[:, 0] / curves.resampled_means(under[:, None], seed=1)[:, 0]
    times = curves.ratio(over, under)
    np.testing.assert_allclose((times.low, times.high), np.quantile(pairs, [0.025, 0.975]))
    assert times.high - times.low > 1e-3  # the same resamples of errors that move together would give no width
    moved = curves.ratio(3 * under, under)
    assert moved.low < 3 < moved.high


def test_what_lies_more_than_two_decades_back_does_not_count():
    counts = np.geomspace(1e2, 1e5, 16)
    bent = np.where(counts < 0.99e3, 50.0, (counts / 1e3) ** -0.5)[None] * np.ones((3, 1))
    assert curves.slope(counts, bent).value == pytest.approx(-0.5)


def test_oracle_calls_of_an_inner_problem_are_means_over_the_seeds():
    measured = runs.measure(zoo.get("logistic"), fw.storc(), 3_000, 4)
    steps = int(measured.steps[-1])
    start = zoo.get("logistic").start()
    result = fw.minimize(
        zoo.get("logistic").objective, zoo.get("logistic").constraint, start, steps=steps, algorithm=fw.storc(),
        replicates=4, evaluate=False,
    )  # fmt: skip
    assert len(set(np.ravel(result.lmo_calls).tolist())) > 1
    assert measured.counts["lmo_calls"][-1] == np.rint(np.mean(result.lmo_calls))


# From Python


def test_compare_takes_problems_and_words_and_says_what_is_wrong():
    face = zoo.get("quadratic-face")
    both = fw.experiments.compare([face, "quadratic-noisy"], algorithms=["one_sfw"], samples=100, seeds=1)
    assert [made.problem.name for made in both] == ["quadratic-face", "quadratic-noisy"]
    assert all(made.finished for made in both)
    assert "one_sfw" in str(both[0])
    assert "<table>" in both[0]._repr_html_()
    for wrong, words in (
        ({"problems": []}, "problems: name at least one"),
        ({"samples": 0}, "samples must be"),
        ({"seeds": 0}, "seeds must be"),
        ({"key": -1}, "key must be"),
        ({"algorithms": ["svrf"]}, "no method can run on quadratic-face; svrf: "),
    ):
        with pytest.raises(ValueError, match=words):
            fw.experiments.compare(**{"problems": face, "samples": 100, "seeds": 1, **wrong})


def test_ctrl_c_in_compare_returns_what_is_done(monkeypatch):
    measure = comparison.measure

    def stop(problem, algorithm, *rest):
        if algorithm.name == "momentum_sfw":
            raise KeyboardInterrupt
        return measure(problem, algorithm, *rest)

    monkeypatch.setattr(comparison, "measure", stop)
    (made,) = fw.experiments.compare("nqp", algorithms=["one_sfw", "momentum_sfw"], samples=100, seeds=1)
    assert not made.finished
    assert [c.name for c in made.curves] == ["one_sfw"]
    with pytest.raises(KeyboardInterrupt):
        fw.experiments.compare("nqp", algorithms=["momentum_sfw"], samples=100, seeds=1)


def test_the_best_is_first_in_table_and_legend():
    counts = np.array([100, 1_000])
    made = Comparison(zoo.get("quadratic-face"), 1_000, 2)
    made.curves = [curve("one_sfw", counts, np.full((2, 2), 3.0)), curve("svrf", counts, np.full((2, 2), 2.0))]
    assert [c.name for c in made.ranked()] == ["svrf", "one_sfw"]
    assert [row[0] for row in made.sheet().rows] == ["svrf", "one_sfw"]
