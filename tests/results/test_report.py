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
from rich.console import Console

import onesfw as fw
from onesfw.results import report

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
    assert printed.splitlines()[0] == "minimize by one_sfw, convex (rho=1/(t-1), eta=1/t)"
    assert "All steps were done." in printed
    assert row(printed, "value") == f"{result.value:.6g} ± 0"
    assert row(printed, "gap") == f"{result.gap:.6g} ± 0"
    assert row(printed, "steps") == row(printed, "samples") == row(printed, "LMO calls") == "200"
    assert row(printed, "gradients") == "399"
    assert row(printed, "HVPs") == "0"
    assert row(printed, "nonzeros of x") == f"{np.count_nonzero(result.x)} of 6"
    for name in ("seconds", "compiling", "evaluating"):
        assert re.fullmatch(r"[\d,.]+", row(printed, name))


def test_columns_line_up(result, replicated):
    lines = str(result).splitlines()[3:]
    start = {re.match(r"  .{13}  ", line).end() for line in lines}
    assert start == {17}
    lines = str(replicated).splitlines()[3:]
    place = lines[0].index("lowest")
    for line in lines[1:]:
        assert line[place - 2 : place].strip() == ""


def test_standard_errors_have_two_digits_and_the_value_as_many():
    assert report.cells(0.123456, 0.00234, report.digits) == ["0.1235 ± 0.0023"]
    assert report.cells(1234.5678, 56.0, report.digits) == ["1,235 ± 56"]
    assert report.cells(0.5, 0.0, report.digits) == ["0.5 ± 0"]
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


def test_the_rich_table_adds_the_distance_to_the_optimum(result):
    console = Console(width=100, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(report.table(result, optimum=result.value - 0.25, title="a [problem]"))
    console.file.close()
    printed = console.export_text()
    assert "a [problem]" in printed
    assert re.search(r"above optimum\s+│ 0.25 ", printed)
    assert "one_sfw, convex (rho=1/(t-1), eta=1/t)" in printed
    assert "All steps were done." in printed


def test_maximisation_is_below_its_optimum(result):
    other = dataclasses.replace(result, sense="maximize")
    assert dict(report.rows(other, optimum=result.value + 1))["below optimum"][0].startswith("1")


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
    samples, middle, low, _ = report.curve(result, value, None)
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
def test_nothing_measured_is_said(options, tmp_path):
    assert labels(solved(**options).plot(tmp_path / "a.pdf")) == ["not measured", "not measured"]


def test_the_returned_random_iterate_is_marked():
    figure = solved(algorithm=fw.one_sfw("nonconvex")).plot()
    assert "$x$ returned" in [text.get_text() for text in figure.axes[0].get_legend().get_texts()]


def test_wrong_endings_and_folders(result, tmp_path):
    with pytest.raises(ValueError, match=r"must end in \.png, \.pdf or \.svg"):
        result.plot(tmp_path / "a.gif")
    (tmp_path / "b.png").mkdir()
    with pytest.raises(IsADirectoryError, match="is a folder"):
        result.plot(tmp_path / "b.png")


README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", README, re.DOTALL))
def test_readme_examples_run(block, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    begun = time.perf_counter()
    exec(compile(block, "README.md", "exec"), {})
    assert time.perf_counter() - begun < 30
    assert capsys.readouterr().out
