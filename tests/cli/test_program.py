"""The program `onesfw` itself: what it loads, how it is started and completed, and the programs that it keeps."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from solve_checks import PROGRAM

import onesfw as fw
from onesfw import cli


def test_help_loads_neither_jax_nor_numpy():
    script = (
        "import sys\nfrom onesfw.cli import main\n"
        "try:\n    main()\nfinally:\n"
        "    heavy = ('jax', 'numpy', 'scipy', 'sklearn', 'matplotlib')\n"
        "    print([m for m in heavy if m in sys.modules], file=sys.stderr)"
    )
    run = subprocess.run([sys.executable, "-c", script, "--help"], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    assert "onesfw solve logistic" in run.stdout
    assert run.stderr.strip() == "[]"


def test_the_package_runs_as_a_module():
    run = subprocess.run([sys.executable, "-m", "onesfw", "--version"], capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stdout) == (0, f"onesfw {fw.__version__}\n")


@pytest.mark.parametrize(
    ("words", "place", "offered"), [("onesfw so", "1", ["solve"]), ("onesfw solve --gap", "2", ["--gap-tol"])]
)
def test_the_shell_completes_commands_and_options(words, place, offered):
    asked = {"_ONESFW_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": place}
    command = [sys.executable, "-m", "onesfw"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, **asked})
    assert run.stdout.split() == offered


@pytest.fixture
def clean(monkeypatch, tmp_path):
    """An environment in which nothing was said about caches."""
    for name in ("ONESFW_COMPILATION_CACHE", "JAX_COMPILATION_CACHE_DIR", "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"):
        monkeypatch.setenv(name, "")  # so that it is put back afterwards
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return monkeypatch


def test_programs_are_kept_in_the_users_cache_folder(clean, tmp_path):
    cli.keep_programs()
    folder = os.environ["JAX_COMPILATION_CACHE_DIR"]
    assert folder.startswith(str(tmp_path / "onesfw" / "programs"))
    assert os.path.isdir(folder)


@pytest.mark.parametrize("wish", ["off", "0", "OFF"])
def test_keeping_programs_can_be_turned_off(wish, clean, tmp_path):
    clean.setenv("ONESFW_COMPILATION_CACHE", wish)
    cli.keep_programs()
    assert "JAX_COMPILATION_CACHE_DIR" not in os.environ
    assert list(tmp_path.iterdir()) == []


def test_another_folder_for_programs_and_jaxs_own_wish_count(clean, tmp_path):
    clean.setenv("ONESFW_COMPILATION_CACHE", str(tmp_path / "mine"))
    cli.keep_programs()
    assert os.environ["JAX_COMPILATION_CACHE_DIR"] == str(tmp_path / "mine")
    clean.setenv("JAX_COMPILATION_CACHE_DIR", "elsewhere")
    cli.keep_programs()
    assert os.environ["JAX_COMPILATION_CACHE_DIR"] == "elsewhere"


def test_a_home_that_cannot_be_written_to_costs_nothing(clean, tmp_path):
    (tmp_path / "onesfw").write_text("a file, no folder")
    cli.keep_programs()
    assert "JAX_COMPILATION_CACHE_DIR" not in os.environ


def test_the_oldest_programs_go_first(clean, tmp_path):
    clean.setattr(cli, "CACHE_BYTES", 250)
    for age, name in enumerate(("new", "middle", "old")):
        (tmp_path / name).write_bytes(bytes(100))
        os.utime(tmp_path / name, (1e9 - age, 1e9 - age))
    cli.drop_oldest(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["middle", "new"]


def test_a_second_call_finds_the_programs_of_the_first(file, tmp_path):
    plain = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    environment = {**plain, "ONESFW_COMPILATION_CACHE": str(tmp_path / "programs")}
    environment["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"  # all, however fast the machine is
    command = [*PROGRAM, "solve", file(""), "--steps", "50", "--json"]
    answers = []
    for _ in range(2):
        run = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
        assert run.returncode == 0, run.stderr
        answers.append(json.loads(run.stdout))
        # The run's own programs
        answers[-1]["files"] = {path.name for path in (tmp_path / "programs").glob("jit__lambda*-cache")}
    assert answers[0]["files"]
    assert answers[0]["files"] == answers[1]["files"]
    assert answers[0]["x"] == answers[1]["x"]
