"""The printed table, the picture, and the README's examples."""

from __future__ import annotations

import dataclasses
import re
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import onesfw as fw
from onesfw.results import report, result_picture
from onesfw.results.show import lines

ROWS = np.random.default_rng(5).normal(size=(60, 6)).astype(np.float32)
SUM = fw.FiniteSum(lambda x, row: jnp.sum((x - row) ** 2), ROWS)
NOISY = fw.Expectation(lambda x, z: jnp.sum((x - z) ** 2), lambda key: jax.random.normal(key, (6,)))
BALL = fw.sets.L1Ball(0.5, shape=6)


def solved(objective=SUM, **options) -> fw.Result:
    return fw.minimize(objective, BALL, **{"steps": 200, "every": "log", **options})


@pytest.fixture(scope="module")
def result() -> fw.Result:
    return solved()


@pytest.fixture(scope="module")
def replicated() -> fw.Result:
    return solved(replicates=5)


def row(printed: str, name: str) -> str:
    (line,) = [line for line in printed.splitlines() if line.strip().startswith(name + " ")]
    return line.strip()[len(name) :].strip()


def test_the_printout_names_everything(result):
    printed = str(result)
    assert printed.splitlines()[0] == "minimize by one_sfw, convex (rho=adaptive, eta=a/(t+a-1), output=corrected)"
    assert "All steps were done." in printed
    assert row(printed, "value") == f"{result.value:.6g}"
    assert row(printed, "gap") == f"{result.gap:.6g}"
    assert row(printed, "steps") == row(printed, "samples") == row(printed, "LMO calls") == "200"
    assert row(printed, "gradients") == "399"
    assert row(printed, "HVPs") == "0"
    assert row(printed, "nonzeros of x") == f"{np.count_nonzero(result.x)} of 6"
    for name in ("seconds", "compiling", "evaluating"):
        assert re.fullmatch(r"[\d,.]+", row(printed, name))


def test_columns_line_up(result, replicated):
    table = str(result).splitlines()[1:-1]
    assert {re.match(r" *\S.*?  +(?=\S)", line).end() for line in table} == {len("nonzeros of x  ")}
    head, *table = str(replicated).splitlines()[1:-1]
    ends = [match.end() for match in re.finditer(r"\S+", head)]
    for line in table:
        if "compiling" not in line:  # one figure for all
            assert [match.end() for match in re.finditer(r"\S+( of \d+)?(?=  |$)", line)][-3:] == ends


def test_standard_errors_have_two_digits_and_the_value_as_many():
    assert report.cells(0.123456, 0.00234, report.digits) == ["0.1235 ± 0.0023"]
    assert report.cells(1234.5678, 56.0, report.digits) == ["1,235 ± 56"]
    assert report.cells(0.5, 0.0, report.digits) == ["0.5"]
    assert report.cells(1e-12, 3e-13, report.digits) == ["1e-12 ± 3e-13"]
    assert report.cells(None, None, report.digits) == ["not measured"]
    assert report.cells(np.full(3, np.nan), None, report.digits) == ["not measured"]


def test_replicates_show_median_and_range(replicated):
    cells = row(str(replicated), "value").split()
    wanted = (np.median(replicated.value), replicated.value.min(), replicated.value.max())
    assert cells == [f"{number:.6g}" for number in wanted]
    assert "5 of 5: All steps were done." in str(replicated)
    assert "5 replicates" in str(replicated)


def test_noise_of_replicates_is_named():
    assert "(each ± " in row(str(solved(NOISY, replicates=2, evaluate=500)), "value")


def test_nothing_measured_and_trees():
    tree = {"a": np.zeros(2, np.float32), "b": np.zeros((), np.float32)}
    objective = fw.Expectation(
        lambda x, z: jnp.sum(x["a"] ** 2) + (x["b"] - z) ** 2, lambda key: jax.random.normal(key)
    )
    printed = str(fw.minimize(objective, fw.sets.L1Ball(1.0), tree, steps=3, evaluate=False))
    assert row(printed, "value") == "not measured"
    assert row(printed, "nonzeros of x").endswith(" of 3")


def test_a_failed_step_is_named(result):
    failed = dataclasses.replace(result, status=fw.Status.NOT_FINITE, failed_step=17)
    assert "(step 17)" in str(failed)


def test_a_known_problem_and_optimum_are_shown(result):
    known = dataclasses.replace(result, problem="a [problem]", optimum=result.value - 0.25)
    printed = str(known)
    assert printed.startswith(
        "a [problem]: minimize by one_sfw, convex (rho=adaptive, eta=a/(t+a-1), output=corrected)\n"
    )
    assert row(printed, "above optimum") == "0.25"


def test_maximisation_is_below_its_optimum(result):
    other = dataclasses.replace(result, sense="maximize", optimum=result.value + 1)
    assert dict(report.rows(other))["below optimum"][0].startswith("1")


def labels(figure) -> list[str]:
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def test_plot_against_a_known_optimum(result, tmp_path):
    figure = result.plot(tmp_path / "new" / "a.png", optimum=result.value - 1e-3)
    left, right = figure.axes
    assert (left.get_xscale(), left.get_yscale(), right.get_yscale()) == ("log", "log", "log")
    assert (left.get_xlabel(), left.get_ylabel()) == ("samples", "F(x) − F*")
    assert "one_sfw, convex" in figure.get_suptitle()
    x, y = left.lines[0].get_data()
    np.testing.assert_array_equal(x, result.trace.samples)
    np.testing.assert_allclose(y, result.trace.value - result.value + 1e-3)
    assert (tmp_path / "new" / "a.png").read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["a.png"]


def test_plot_without_an_optimum_shows_the_value(result):
    left = result.plot().axes[0]
    assert left.get_ylabel() == "F(x)"
    np.testing.assert_allclose(left.lines[0].get_ydata(), result.trace.value)


def test_points_below_the_optimum_are_counted(result):
    assert any("not shown" in label for label in labels(result.plot(optimum=float(np.median(result.trace.value)))))


def test_plot_of_replicates_draws_the_median_and_the_band(replicated):
    left = replicated.plot().axes[0]
    np.testing.assert_allclose(left.lines[0].get_ydata(), np.median(replicated.trace.value, axis=0))
    (band,) = left.collections
    heights = band.get_paths()[0].vertices[:, 1]
    low, high = np.quantile(replicated.trace.value, [0.1, 0.9], axis=0)
    assert heights.min() == pytest.approx(low.min())
    assert heights.max() == pytest.approx(high.max())


def test_replicates_that_ended_apart_are_aligned_by_their_samples():
    trace = solved(replicates=2, steps=8, every=[2, 4, 8]).trace
    value = np.asarray([[8.0, 4.0, 2.0], [6.0, 3.0, np.nan]])
    samples = np.asarray([[2, 4, 8], [2, 3, -1]])
    ragged = dataclasses.replace(trace, value=value, samples=samples)
    result = dataclasses.replace(solved(replicates=2, steps=8), trace=ragged)
    samples, middle, low, _ = result_picture.curve(result, result_picture.value_panel(result, None))
    np.testing.assert_array_equal(samples, [2, 3, 4, 8])
    np.testing.assert_allclose(middle, [7.0, 4.5, 4.0, 2.0])
    assert low[1] < 4.5


def test_standard_errors_are_a_band():
    assert len(solved(NOISY, evaluate=200).plot().axes[1].collections) == 1


@pytest.mark.parametrize("objective", [SUM, NOISY])
def test_a_single_evaluation_is_a_point_with_advice(objective, tmp_path):
    figure = solved(objective, every=None, evaluate=None).plot(tmp_path / "a.svg")
    assert any("every='log'" in label for label in labels(figure))
    assert (tmp_path / "a.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize("options", [{"evaluate": False}, {"evaluate": False, "replicates": 2}])
def test_nothing_measured_is_said_and_an_empty_picture_is_never_saved(options, tmp_path):
    empty = solved(**options)
    assert labels(empty.plot()) == ["not measured", "not measured"]
    with pytest.raises(ValueError, match="the picture would be empty; leave evaluate=None"):
        empty.plot(tmp_path / "a.pdf")
    assert list(tmp_path.iterdir()) == []


def test_a_measure_of_ones_own_has_one_panel():
    figure = solved(evaluate=lambda x: float(np.sum(x))).plot()
    assert [axes.get_title() for axes in figure.axes] == ["value"]


def test_the_returned_random_iterate_is_marked():
    figure = solved(algorithm=fw.one_sfw("nonconvex", schedule="paper")).plot()
    assert "$x$ returned" in [text.get_text() for text in figure.axes[0].get_legend().get_texts()]


def test_wrong_endings_and_folders(result, tmp_path):
    with pytest.raises(ValueError, match=r"must end in \.png, \.pdf or \.svg"):
        result.plot(tmp_path / "a.gif")
    (tmp_path / "b.png").mkdir()
    with pytest.raises(IsADirectoryError, match="is a folder"):
        result.plot(tmp_path / "b.png")


def test_a_panel_with_one_line_has_no_legend(result):
    assert [axes.get_legend() for axes in result.plot().axes] == [None, None]


def test_the_picture_is_named_after_the_problem(result):
    figure = dataclasses.replace(result, problem="mine").plot()
    assert figure.get_suptitle().startswith("mine: one_sfw")


def test_a_picture_may_go_into_axes_of_ones_own(result):
    from matplotlib.figure import Figure

    figure = Figure()
    first, second = figure.subplots(1, 2)
    assert result.plot(ax=[first, second]) is figure
    assert (first.get_title(), second.get_title()) == ("value", "Frank-Wolfe gap")
    alone = Figure().subplots()
    result.plot(ax=alone, optimum=result.value - 1.0)
    assert alone.get_ylabel() == "F(x) − F*"
    with pytest.raises(TypeError, match="ax must be axes of matplotlib"):
        result.plot(ax=3)


SAMPLES = np.rint(np.geomspace(1, 1e4, 40))


@pytest.mark.parametrize(
    ("values", "scales"),
    [
        (0.6 - 0.45 * np.maximum(SAMPLES - 2500, 0) / 7500, ("linear", "linear")),  # as continuous greedy does
        (SAMPLES**-0.5, ("log", "log")),
        (1 + 1 / SAMPLES, ("log", "linear")),
    ],
    ids=["a plateau and a cliff", "a power law", "less than a decade"],
)
def test_log_axes_only_where_they_help(result, values, scales):
    trace = dataclasses.replace(
        result.trace, value=values, gap=values, value_stderr=0 * values, gap_stderr=0 * values, samples=SAMPLES
    )
    right = dataclasses.replace(result, trace=trace, gap=values[-1]).plot().axes[1]
    assert (right.get_xscale(), right.get_yscale()) == scales


def test_the_last_iterate_stands_below_the_one_returned():
    result = solved(algorithm=fw.one_sfw("nonconvex", schedule="paper"))
    table = [line.split(maxsplit=1) for line in str(result).splitlines()]
    places = [place for place, words in enumerate(table) if words[0] == "last"]
    assert [table[place - 1][0] for place in places] == ["value", "gap"]
    assert table[places[0]][1] == f"iterate  {result.trace.value[-1]:.6g}"
    several = solved(algorithm=fw.one_sfw("nonconvex", schedule="paper"), replicates=3)
    shown = dict(report.measured_rows(several))["  last iterate"]  # the gap's, which comes last
    ends = several.trace.gap[:, -1]
    assert shown == [f"{number:.6g}" for number in (np.median(ends), ends.min(), ends.max())]


def test_the_largest_entries_of_x_are_shown():
    x = {"w": np.asarray([0.0, -3.0, 1.0]), "b": np.asarray(2.0), "m": np.asarray([[0.5, 0.0], [0.0, -0.25]])}
    shown = report.largest_entries(x, 4)
    assert shown == "x['w'][1] = -3, x['b'] = 2, x['w'][2] = 1, x['m'][0, 0] = 0.5, …"
    assert report.largest_entries(np.zeros(3)) == "0"
    assert report.largest_entries(np.asarray([0.0, 4.0])) == "x[1] = 4"


def test_a_matrix_shows_its_rank():
    target = np.outer(np.arange(4.0), np.ones(3)).astype(np.float32)
    matrix = fw.FiniteSum(lambda x, row: jnp.sum((x - row) ** 2), target[None])
    ball = fw.sets.NuclearBall(1.0, shape=(4, 3))
    alone = fw.minimize(matrix, ball, steps=3)
    assert row(str(alone), "rank of x") == f"{np.linalg.matrix_rank(alone.x)} of 3"
    assert alone.as_dict()["rank"] == np.linalg.matrix_rank(alone.x)
    assert "rank of x" in str(fw.minimize(matrix, ball, steps=3, replicates=2))


@pytest.mark.parametrize("width", [60, 80])
def test_no_figure_is_cut_on_a_narrow_terminal(width, replicated):
    noisy = solved(NOISY, replicates=2, evaluate=500)
    for several in (replicated, noisy):
        printed = lines(several.sheet(), width)
        assert max(len(line) for line in printed.splitlines()) <= width
        for name, cells in report.rows(several):
            for cell in cells:
                assert cell in printed, name


def test_a_notebook_gets_a_table_and_a_small_picture(result, replicated):
    for shown in (result, replicated):
        text = shown._repr_html_()
        assert text.count("<tr>") >= 10
        assert '<img alt="minimize by one_sfw' in text
        assert len(text) < 120_000


README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", README, re.DOTALL))
def test_readme_examples_run(block, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    begun = time.perf_counter()
    exec(compile(block, "README.md", "exec"), {})
    assert time.perf_counter() - begun < 30
    assert capsys.readouterr().out
