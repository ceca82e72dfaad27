"""`onesfw compare` and `onesfw rates`: what they print, what they write, and how they fail."""

import json
import re
import textwrap

import pytest
from typer.testing import CliRunner

from onesfw import cli
from onesfw.experiments import comparison as compared
from onesfw.experiments import evidence, paper_tables, studies

FAST = ("--samples", "500", "--seeds", "2")


def onesfw(*arguments):
    return CliRunner().invoke(cli.app, list(arguments), env={"COLUMNS": "160"})


def complaint(*arguments):
    outcome = onesfw(*arguments)
    assert outcome.exit_code == 2, outcome.output
    assert outcome.stdout == ""
    assert outcome.stderr.startswith("onesfw: ")
    return " ".join(outcome.stderr.split())


@pytest.fixture(scope="module")
def answer(tmp_path_factory):
    """The JSON and the page of one comparison."""
    path = tmp_path_factory.mktemp("out") / "deep" / "page.html"
    outcome = onesfw(
        "compare", "quadratic-face", "--algorithms", "one_sfw, momentum_sfw,svrf", *FAST, "--key", "3", "--json",
        "--report", str(path),
    )  # fmt: skip
    assert outcome.exit_code == 0, outcome.stderr
    assert outcome.stdout.count("\n") == 1
    return json.loads(outcome.stdout), path


def test_json_holds_every_figure(answer):
    content, path = answer
    (comparison,) = content["comparisons"]
    assert (comparison["problem"], comparison["samples"], comparison["seeds"], comparison["key"]) == (
        "quadratic-face", 500, 2, 3,
    )  # fmt: skip
    assert [m["method"] for m in comparison["methods"]] == ["one_sfw", "momentum_sfw"]
    assert "full gradient" in comparison["not_applicable"]["svrf"]
    ours = comparison["methods"][0]
    assert (ours["samples"], ours["gradients"], ours["lmo_calls"]) == (500, 999, 500)
    assert ours["measure"] == "suboptimality"
    assert ours["final"]["suboptimality"]["mean"] > 0
    assert ours["final"]["suboptimality"]["stderr"] > 0
    curve = ours["curve"]
    assert len(curve["suboptimality"]) == 2
    assert len(curve["suboptimality"][0]) == len(curve["samples"]) == len(curve["seconds"])
    assert {"onesfw", "jax", "numpy", "Python"} <= set(content["versions"])
    assert content["report"] == str(path)


def test_the_page_is_written_with_its_command(answer):
    _, path = answer
    text = path.read_text()
    assert text.startswith("<!doctype html>")
    assert "Plotly.react" in text
    assert '<pre id="command">onesfw' in text


def test_a_table_and_reasons():
    outcome = onesfw("compare", "quadratic-face", "--algorithms", "one_sfw,normalized_fw", *FAST, "-q")
    assert outcome.exit_code == 0, outcome.stderr
    for word in ("F(x) − F*", "slope in samples", "slope in LMO calls", "gradients", "LMO calls", "seconds", "± "):
        assert word in outcome.stdout
    assert "normalized_fw: serves nonconvex problems only" in outcome.stdout


def test_step_rules_are_named():
    outcome = onesfw("compare", "quadratic-face", "--algorithms", "momentum_sfw", *FAST, "--step-rules", "-q")
    assert outcome.exit_code == 0, outcome.stderr
    assert re.search(r"momentum_sfw: '(paper|book|ninefold|unit|double)' of 5 step rules", outcome.stdout)


def test_a_file_of_ones_own(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        textwrap.dedent("""
        import jax.numpy as jnp, numpy as np, onesfw as fw
        rows = np.random.default_rng(0).normal(size=(50, 5))
        objective = fw.FiniteSum(lambda x, row: jnp.sum((x - row) ** 2), rows)
        constraint = fw.sets.L1Ball(1.0, shape=5)
        print("noise on stdout")
        """)
    )
    outcome = onesfw("compare", str(path), "--algorithms", "one_sfw,frank_wolfe", *FAST, "--json")
    assert outcome.exit_code == 0, outcome.stderr
    (comparison,) = json.loads(outcome.stdout)["comparisons"]
    assert comparison["problem"] == "mine"
    assert {m["measure"] for m in comparison["methods"]} == {"gap"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("logistc",), "did you mean 'logistic'"),
        (
            ("logistic", "--algorithms", "one_swf"),
            "no algorithm 'one_swf'; did you mean 'one_sfw'",
        ),
        (("logistic", "--algorithms", ","), "--algorithms: name at least one of one_sfw"),
        (("one_sfw", "--algorithms", "momentum_sfw"), "at least one problem before --algorithms"),
        (("logistic", "--samples", "0"), "--samples must be a finite number of at least 1"),
        (("logistic", "--seeds", "0"), "--seeds must be a finite number of at least 1"),
        (("logistic", "--report", "page.txt"), "must end in .html"),
        (("logistic", "--key", "-1"), "--key must be"),
        (("logistic", "--algorithms", "svrf", "--samples", "5"), "no method can run on logistic; svrf: "),
    ],
)
def test_mistakes_are_one_sentence_before_anything_runs(arguments, said):
    assert said in complaint("compare", *arguments)


@pytest.mark.parametrize(
    "words",
    [
        ("--algorithms", "one_sfw, momentum_sfw"),
        ("--algorithms", "one_sfw", "momentum_sfw"),
        ("--algorithms", "one_sfw", "--algorithms", "momentum_sfw"),
    ],
    ids=["commas", "blanks", "repeated"],
)
def test_methods_are_named_with_commas_blanks_or_one_by_one(words, monkeypatch):
    asked = []
    monkeypatch.setattr(compared, "prepare", lambda p, n, r, k, names, rules: asked.append((p.name, names)) or 1 / 0)
    onesfw("compare", "nqp", *words)
    assert asked == [("nqp", ["one_sfw", "momentum_sfw"])]


def test_a_problem_that_fails_writes_no_page(tmp_path):
    path, page = tmp_path / "broken.py", tmp_path / "page.html"
    path.write_text(
        "import numpy as np, onesfw as fw\n\n\ndef loss(x, row):\n    raise RuntimeError('boom')\n\n\n"
        "objective = fw.FiniteSum(loss, np.ones((4, 2)))\nconstraint = fw.sets.Simplex(shape=2)\n"
    )
    assert "boom" in complaint("compare", str(path), "--samples", "100", "--report", str(page))
    assert not page.exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--key", "-1"), "--key must be"),
        (("--markdown", "{out}/rates.json"), "where another of the three files goes"),
        (("--markdown", "{out}"), "is a folder"),
    ],
)
def test_rates_check_their_files_first(arguments, said, tmp_path):
    arguments = [argument.format(out=tmp_path) for argument in arguments]
    assert said in complaint("rates", "--quick", "--out", str(tmp_path), *arguments)
    assert not list(tmp_path.iterdir())


def test_ctrl_c_shows_what_is_done(monkeypatch):
    measure, done = compared.measure, []

    def stop(*arguments):
        if done:
            raise KeyboardInterrupt
        done.append(measure(*arguments))
        return done[-1]

    monkeypatch.setattr(compared, "measure", stop)
    outcome = onesfw(
        "compare", "quadratic-face", "quadratic-noisy", "--algorithms", "one_sfw,momentum_sfw", *FAST, "--json"
    )
    assert outcome.exit_code == 130
    (comparison,) = json.loads(outcome.stdout)["comparisons"]
    assert [m["method"] for m in comparison["methods"]] == ["one_sfw"]


def test_rates_write_three_files_and_nothing_after_ctrl_c(tmp_path, monkeypatch):
    tiny = paper_tables.Size(2, {"convex": 300}, ("quadratic-face",), ("quadratic-face",), 300)
    two = dict(list(studies.rules().items())[:2])
    monkeypatch.setitem(evidence.SIZES, "quick", tiny)
    monkeypatch.setattr(studies, "rules", lambda: two)
    prepare = paper_tables.prepare
    monkeypatch.setattr(
        paper_tables, "prepare", lambda *a, **k: prepare(*a, **{**k, "names": ["one_sfw", "momentum_sfw"]})
    )
    outcome = onesfw(
        "rates", "--quick", "--out", str(tmp_path / "a"), "--markdown", str(tmp_path / "evidence.md"), "-q"
    )
    assert outcome.exit_code == 0, outcome.stderr
    assert sorted(p.name for p in (tmp_path / "a").iterdir()) == ["rates.html", "rates.json"]
    assert "## Table 1: convex" in (tmp_path / "evidence.md").read_text()
    assert re.search(r"^Table 1: convex$", outcome.stdout, re.MULTILINE)
    assert re.search(r"^momentum_sfw on quadratic-face +−1/3 +−0", outcome.stdout, re.MULTILINE)
    files = [line.split(": ")[0] for line in outcome.stdout.splitlines()[-3:]]
    assert files == ["markdown", "json", "page"]

    def stop(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(studies, "study", stop)
    outcome = onesfw("rates", "--quick", "--out", str(tmp_path / "b"), "-q")
    assert outcome.exit_code == 130
    assert "nothing was written" in outcome.stderr
    assert list((tmp_path / "b").iterdir()) == []


@pytest.mark.parametrize("columns", [60, 80])
def test_compare_cuts_nothing_on_a_narrow_terminal(columns):
    arguments = ["compare", "quadratic-face", "--algorithms", "one_sfw,momentum_sfw,svrf", *FAST]
    text = CliRunner().invoke(cli.app, [*arguments, "-q"], env={"COLUMNS": str(columns)}).stdout
    assert max(len(line) for line in text.splitlines()) <= columns
    assert "…" not in text
    (comparison,) = json.loads(onesfw(*arguments, "--json").stdout)["comparisons"]
    for head in ("F(x) − F*", "slope in samples", "slope in LMO calls", "gap", "gradients", "LMO calls", "seconds"):
        assert re.search(rf"^method .*{re.escape(head)}", text, re.MULTILINE), head
    for method in comparison["methods"]:
        low, high = (f"{method['slope_in_samples'][end]:.2f}".replace("-", "−") for end in ("low", "high"))
        assert f"[{low}, {high}]" in text
        assert f"{method['gradients']:,}" in text
