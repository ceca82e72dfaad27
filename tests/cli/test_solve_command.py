"""The command `onesfw`: what it prints, what it saves, and how it fails."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from solve_checks import PROGRAM, answer, complaint, onesfw, solve
from typer.testing import CliRunner

import onesfw as fw
from onesfw import cli, zoo
from onesfw.algorithms import ALGORITHMS


def test_help_and_version():
    assert "onesfw solve logistic --steps 200000" in onesfw("--help").stdout
    text = onesfw("solve", "--help").stdout
    for option in (
        "--steps",
        "--key",
        "--algorithm",
        "--set",
        "--radius",
        "--gap-tol",
        "--time-limit",
        "--replicates",
    ):
        assert option in text
    assert "onesfw solve my_problem.py" in text
    assert onesfw("--version").stdout == f"onesfw {fw.__version__}\n"


def test_list_names_everything():
    text = onesfw("list").stdout
    for name in (*zoo.names(), *ALGORITHMS, "L1Ball", "Simplex", "Product"):
        assert re.search(rf"^  {re.escape(name)} +\S", text, re.MULTILINE), name
    assert "ConvexSet" not in text
    assert "VectorSet" not in text
    starts = {re.match(r"  \S+ +", line).end() for line in text.splitlines() if re.match(r"  \S", line)}
    assert len(starts) == 1


def test_list_restricts_and_suggests():
    text = onesfw("list", "sets").stdout
    assert "L1Ball" in text
    assert "one_sfw" not in text
    assert "did you mean 'sets'?" in complaint("list", "set")


def test_table_plot_and_saved_result(file, tmp_path):
    picture, saved = tmp_path / "out" / "a.png", tmp_path / "out" / "a.safetensors"
    outcome = solve(file(""), "--steps", "1e3", "--plot", str(picture), "--save", str(saved))
    assert outcome.exit_code == 0, outcome.output
    for name in ("value", "gap", "steps", "samples", "gradients", "LMO calls", "seconds", "nonzeros of x"):
        assert re.search(rf"^{name} +\S", outcome.stdout, re.MULTILINE), name
    assert "All steps were done." in outcome.stdout
    assert f"plot: {picture}" in outcome.stdout
    assert "1000/1000" in outcome.stderr
    assert picture.read_bytes().startswith(b"\x89PNG")
    result = fw.Result.load(saved)
    assert result.steps == 1000
    assert len(result.trace) > 10


def test_quiet(file):
    assert solve(file(""), "--steps", "10", "--quiet").stderr == ""


def test_the_zoo_knows_the_optimum():
    known = answer("logistic-generated", "--steps", "2000")
    optimum = zoo.get("logistic-generated").optimum().value
    assert known["optimum"] == pytest.approx(optimum)
    assert known["suboptimality"] == pytest.approx(known["value"] - optimum)


SOLVED = "p = Problem('mine', 'words', objective, constraint, solve={})"


def test_the_table_shows_a_known_optimum(file):
    text = SOLVED.format("lambda: fw.zoo.Optimum(np.zeros(5), -100.0, 0.0)")
    assert re.search(r"above optimum +10\d\.", solve(file("import onesfw.zoo\n" + text) + ":p", "--steps", "20").stdout)


def test_an_optimum_that_fails_does_not_cost_the_table(file):
    outcome = solve(file(SOLVED.format("lambda: 1 / 0")) + ":p", "--steps", "20")
    assert outcome.exit_code == 0
    assert re.search(r"^value +\S", outcome.stdout, re.MULTILINE)
    assert "the optimum could not be found: ZeroDivisionError" in outcome.stderr


def test_json_is_the_result(file):
    path = file("print('hello')")
    known = answer(path, "--steps", "500", "--key", "3")
    objective, constraint = zoo.find(path).objective, fw.sets.L1Ball(1.0, shape=5)
    result = fw.minimize(objective, constraint, steps=500, key=3, every="log")
    assert known["value"] == result.value
    assert known["gap"] == result.gap
    assert known["nonzeros"] == np.count_nonzero(result.x)
    assert known["status"] == "steps_done"
    assert known["trace"]["value"] == result.trace.value.tolist()
    assert known["optimum"] is None


def test_json_of_replicates_that_end_apart(file):
    known = answer(file(""), "--steps", "3000", "--replicates", "3", "--gap-tol", "0.12")
    assert len(known["value"]) == len(known["status"]) == len(known["trace"]["step"]) == 3
    assert all(step is None or step > 0 for column in known["trace"]["step"] for step in column)


def test_options_reach_the_run(file):
    path = file("")
    known = answer(path, "--steps", "40", "--algorithm", "frank_wolfe", "--setting", "nonconvex", "--every", "10")
    assert known["algorithm"].startswith("frank_wolfe, nonconvex")
    assert known["trace"]["step"] == [10, 20, 30, 40]
    assert answer(path, "--steps", "1e9", "--time-limit", "0.2", "--every", "1_000_000")["status"] == "time_up"


def test_another_set_and_another_radius(file, tmp_path):
    path, saved = file(""), tmp_path / "r"
    norms = {"L2Ball": 2, "LInfBall": np.inf, "L1Ball": 1}
    for name, order in norms.items():
        solve(path, "--steps", "1", "--set", name, "--radius", "0.25", "--save", str(saved))
        assert np.linalg.norm(fw.Result.load(saved).x, order) == pytest.approx(0.25, rel=1e-5)
    solve(path, "--steps", "1", "--radius", "0.5", "--save", str(saved))
    assert np.abs(fw.Result.load(saved).x).sum() == pytest.approx(0.5)
    text = SOLVED.format("lambda: 1 / 0")  # the optimum over another set is not asked for
    assert answer(file(text) + ":p", "--radius", "2", "--steps", "5")["optimum"] is None


def test_float64(file, tmp_path):
    assert solve(file(""), "--steps", "5", "--float64", "--save", str(tmp_path / "r")).exit_code == 0
    assert fw.Result.load(tmp_path / "r").x.dtype == np.float64
    greedy = file(FILES["a setting"][0])
    assert solve(greedy, "--steps", "5", "--float64", "--save", str(tmp_path / "r")).exit_code == 0
    assert fw.Result.load(tmp_path / "r").x.dtype == np.float64


FILES = {
    "a problem": ("p = Problem('mine', 'words', objective, constraint)", ":p", "minimize"),
    "a function": ("def p(): return Problem('mine', 'words', objective, constraint)", ":p", "minimize"),
    "a pair": ("p = objective, constraint", ":p", "minimize"),
    "x0": ("x0 = np.full(5, 0.1, np.float32)", "", "minimize"),
    "a setting": (
        "constraint = fw.sets.SubSimplex(1.0, shape=5); setting = 'dr_submodular'\n"
        "objective = fw.FiniteSum(lambda x, row: jnp.sum(x) - jnp.sum(x ** 2) / 9, rows)",
        "",
        "maximize",
    ),
    "a sense": (
        "sense, setting = 'maximize', 'convex'\nobjective = fw.FiniteSum(lambda x, r: -jnp.sum((x - r)**2), rows)",
        "",
        "maximize",
    ),
}


@pytest.mark.parametrize(("text", "name", "sense"), FILES.values(), ids=FILES.keys())
def test_files(text, name, sense, file):
    assert answer(file(text) + name, "--steps", "20")["sense"] == sense


def test_files_import_their_neighbours(file, tmp_path):
    (tmp_path / "neighbour_of_mine.py").write_text("radius = 3.0")
    answer(file("import neighbour_of_mine\nconstraint = fw.sets.L1Ball(neighbour_of_mine.radius, shape=5)"))
    assert str(tmp_path) not in sys.path


MISTAKES = {
    "problem": (("logistik",), "did you mean 'logistic'?"),
    "no problem is near": (("zzz",), "choose one of logistic"),
    "algorithm": (("logistic-generated", "--algorithm", "onesfw"), "did you mean 'one_sfw'?"),
    "set": (("logistic-generated", "--set", "l1ball", "--radius", "1"), "did you mean 'L1Ball'?"),
    "setting": (("logistic-generated", "--setting", "convx"), "did you mean 'convex'?"),
    "radius is missing": (("logistic-generated", "--set", "L1Ball"), "--radius: L1Ball needs one"),
    "radius is negative": (("logistic-generated", "--set", "L1Ball", "--radius", "-1"), "radius"),
    "more than a radius": (("logistic-generated", "--set", "Knapsack", "--radius", "1"), "takes costs, budget, upper"),
    "steps": (("logistic-generated", "--steps", "0"), "--steps must be"),
    "seed": (("logistic-generated", "--key", "-1"), "--key must be a seed"),
    "replicates": (("logistic-generated", "--replicates", "0"), "--replicates must be"),
    "every": (("logistic-generated", "--every", "0"), "--every must be"),
    "greedy and a gap": (("nqp", "--gap-tol", "1"), "--gap-tol: the dr_submodular setting"),
    "ending": (("logistic-generated", "--plot", "a.gif"), "must end in .png"),
    "ending of the table": (("logistic-generated", "--out", "x.txt"), "--out x.txt must end in .csv"),
    "folder": (("logistic-generated", "--save", "."), "is a folder"),
    "file": (("nowhere.py",), "there is no file nowhere.py"),
    "file and name": (("nowhere.py:p",), "there is no file nowhere.py"),
    "nothing after the colon": (("nowhere.py:",), "names nothing after the colon"),
}


@pytest.mark.parametrize(("arguments", "words"), MISTAKES.values(), ids=MISTAKES.keys())
def test_mistakes_are_one_sentence(arguments, words):
    assert words in complaint("solve", *arguments)


BAD_FILES = {
    "no objective": ("del objective", "", "does not define objective"),
    "no such name": ("portfolio = 1", ":portfolo", "did you mean 'portfolio'?"),
    "another thing": ("p = 3", ":p", "must be a Problem"),
    "a function that fails": ("def p(): return 1 / 0", ":p", "ZeroDivisionError: division by zero"),
    "an error": ("\n1 / 0", "", "failed at line 8: ZeroDivisionError"),
    "bad syntax": ("def", "", "failed at line 7: SyntaxError"),
    "an exit": ("raise SystemExit(0)", "", "failed at line 7: SystemExit"),
    "a wrong sense": ("sense = 'minimise'", "", "did you mean 'minimize'?"),
    "x0 outside": ("x0 = np.full(5, 9.0, np.float32)", "", "x0 lies outside"),
    "no set": ("constraint = 3", "", "constraint must be a set"),
    "a loss that fails": ("objective = fw.FiniteSum(lambda x, row: x.nope, rows)", "", "nope"),
}


@pytest.mark.parametrize(("text", "name", "words"), BAD_FILES.values(), ids=BAD_FILES.keys())
def test_mistakes_in_a_file_are_one_sentence(text, name, words, file):
    assert words in complaint("solve", file(text) + name, "--steps", "5")


def test_traceback_on_demand(file):
    outcome = solve(file("1 / 0"), "--traceback")
    assert isinstance(outcome.exception, ValueError)


def test_not_finite_is_exit_code_one(file):
    path = file("objective = fw.FiniteSum(lambda x, row: jnp.sqrt(jnp.sum(x) - 9), rows)")
    outcome = solve(path, "--steps", "20")
    assert outcome.exit_code == 1
    assert "became NaN or infinite" in outcome.stdout


def test_a_plot_that_fails_after_the_run_keeps_the_table(file, tmp_path, monkeypatch):
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    outcome = solve(file(""), "--steps", "20", "--plot", str(tmp_path / "a.png"))
    assert outcome.exit_code == 2
    assert re.search(r"^value +\S", outcome.stdout, re.MULTILINE)
    assert "No space left" in outcome.stderr


def test_program_usage_errors_are_one_sentence():
    run = subprocess.run([*PROGRAM, "solve", "nqp", "--stepps", "3"], capture_output=True, text=True, timeout=60)
    assert run.returncode == 2
    assert run.stdout == ""
    assert re.fullmatch(r"onesfw: .*--stepps.*See onesfw --help\.\n", run.stderr)


def test_program_survives_a_terminal_without_unicode(file):
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [*PROGRAM, "solve", file(""), "--steps", "20", "-q"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
    assert run.returncode == 0, run.stderr
    assert "LMO calls" in run.stdout


def test_interrupt_shows_the_last_iterate(file, tmp_path):
    ready = tmp_path / "ready"
    path = file(f"""
        from pathlib import Path
        class Noted(fw.sets.L1Ball):
            def start_vector(self, like):
                Path({str(ready)!r}).touch()
                return super().start_vector(like)
        constraint = Noted(1.0, shape=5)
    """)
    run = subprocess.Popen(
        [*PROGRAM, "solve", path, "--steps", "2e9"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        deadline = time.monotonic() + 40
        while not ready.exists() and run.poll() is None and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(2.0)  # from the starting point to the loop
        run.send_signal(signal.SIGINT)
        stdout, stderr = run.communicate(timeout=30)
    finally:
        run.kill()
    assert run.returncode == 130, stderr
    assert "Traceback" not in stderr
    assert "The run was interrupted" in stdout
    steps = re.search(r"^steps +([\d,]+)", stdout, re.MULTILINE)
    assert steps
    assert 0 < int(steps[1].replace(",", "")) < 2e9


def test_checkpoint_resumes_and_refuses(tmp_path):
    folder = str(tmp_path / "run")
    command = ["solve", "quadratic-face", "--json", "--checkpoint", folder]
    first = onesfw(*command, "--steps", "2000")
    assert first.exit_code == 0, first.output
    longer = onesfw(*command, "--steps", "4000")
    plain = onesfw("solve", "quadratic-face", "--json", "--steps", "4000")
    assert json.loads(longer.stdout)["value"] == json.loads(plain.stdout)["value"]
    other = onesfw(*command, "--steps", "4000", "--key", "5")
    assert other.exit_code == 2
    assert "belongs to a run with another --key" in " ".join(other.stderr.split())


def test_x_is_shown_and_written(file, tmp_path):
    table = tmp_path / "out" / "x.csv"
    known = answer(file(""), "--steps", "200", "--out", str(table))
    assert len(known["x"]) == len(known["x_last"]) == 5
    assert known["out"] == str(table)
    written = np.genfromtxt(table, delimiter=",", names=True)
    np.testing.assert_array_equal(written["index"], range(5))
    np.testing.assert_array_equal(written["value"], known["x"])
    largest = int(np.argmax(np.abs(known["x"])))
    outcome = solve(file(""), "--steps", "200", "-q")
    assert re.search(rf"^x +x\[{largest}\] = {known['x'][largest]:.4g}, ", outcome.stdout, re.MULTILINE)


def test_exact_figures_have_no_error(file):
    text = solve(file(""), "--steps", "20", "-q").stdout
    assert "±" not in text
    noisy = "objective = fw.Expectation(lambda x, z: jnp.sum((x - z)**2), lambda key: jax.random.normal(key, (5,)))"
    assert "± " in solve(file(noisy), "--steps", "20", "-q").stdout


def test_the_non_convex_setting_shows_the_last_iterate_beside_the_output(file):
    options = ("--steps", "300", "--setting", "nonconvex", "--algorithm", "one_sfw[paper]")
    known = answer(file(""), *options)
    assert known["value"] != known["trace"]["value"][-1]
    outcome = solve(file(""), *options, "-q")
    assert re.search(rf"^  last iterate +{known['trace']['value'][-1]:.6g}$", outcome.stdout, re.MULTILINE)


@pytest.mark.parametrize("columns", ["60", "80"])
def test_list_cuts_nothing_on_a_narrow_terminal(columns):
    text = CliRunner().invoke(cli.app, ["list"], env={"COLUMNS": columns}).stdout
    assert max(len(line) for line in text.splitlines()) <= int(columns)
    wide = CliRunner().invoke(cli.app, ["list"], env={"COLUMNS": "300"}).stdout
    assert text.split() == wide.split()
    for name in (*zoo.names(), *ALGORITHMS, *zoo.known_sets()):
        assert re.search(rf"^  {re.escape(name)}( |$)", text, re.MULTILINE), name
    shown = " ".join(wide.split())
    for summary in zoo.summaries().values():
        assert summary in shown
