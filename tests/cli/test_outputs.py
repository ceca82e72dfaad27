"""Whatever commands write: only a regular file is replaced, links are followed, and no file of the call is lost."""

import inspect
import os
import stat
from pathlib import Path

import pytest
from typer.testing import CliRunner

from onesfw.cli import app
from onesfw.cli.errors import options_of

RATINGS = ["complete", "ratings.csv", "--user", "u", "--item", "i", "--rating", "r", "--radius", "1", "--quiet"]
SOLVE = ["solve", "quadratic-face", "--steps", "5", "--quiet"]
FIT = ["fit", "rows.svm", "--radius", "3", "--quiet"]
SELECT = ["select", "table.csv", "--k", "3", "--steps", "20", "--quiet"]
STABILITY = ["stability", "table.csv", "--target", "y", "--pairs", "2", "--expected-false", "none", "--quiet"]
RATES = ["rates", "--quick", "--quiet", "--out", "rates"]

# (command, option): the words of a call, and the ending of the file; folders are cases of their own.
FILES = {
    ("solve", "--plot"): (SOLVE, ".png"),
    ("solve", "--save"): (SOLVE, ""),
    ("solve", "--out"): (SOLVE, ".csv"),
    ("fit", "--model"): (FIT, ""),
    ("fit", "--cache"): (FIT, ""),
    ("predict", "--out"): (["predict", "model", "rows.svm", "--quiet"], ""),
    ("select", "--out"): (SELECT, ".csv"),
    ("select", "--plot"): (SELECT, ".png"),
    ("complete", "--model"): (RATINGS, ""),
    ("complete", "--plot"): (RATINGS, ".png"),
    ("complete", "--out"): ([*RATINGS, "--recommend", "all"], ".csv"),
    ("stability", "--plot"): (STABILITY, ".png"),
    ("stability", "--save"): (STABILITY, ""),
    ("compare", "--report"): (["compare", "quadratic-face", "--samples", "50", "--seeds", "2", "--quiet"], ".html"),
    ("rates", "--markdown"): (RATES, ".md"),
}
FOLDERS = {
    ("solve", "--checkpoint"): SOLVE,
    ("fit", "--checkpoint"): FIT,
    ("complete", "--checkpoint"): RATINGS,
    ("rates", "--out"): RATES[:-2],
}
FOLLOWED = [case for case in FILES if case[0] not in ("rates", "compare")]  # the others take long, and write alike


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a file for every command."""
    from onesfw.linear import train

    rows = [f"{i % 2} 1:{i % 7} 2:{i % 5 + i % 2}" for i in range(60)]
    (tmp_path / "rows.svm").write_text("\n".join(rows) + "\n")
    (tmp_path / "table.csv").write_text("y,a,b\n" + "".join(f"{i % 11},{i % 7},{i * i % 13}\n" for i in range(60)))
    (tmp_path / "ratings.csv").write_text(
        "u,i,r\n" + "".join(f"u{i},m{j},{1 + i * j % 5}\n" for i in range(8) for j in range(6))
    )
    train(tmp_path / "rows.svm", radius=3.0).save(tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def refused(*words):
    """What a command says that ends before any work."""
    done = run(*words)
    assert done.exit_code == 2, done.output
    return done.stderr


def test_every_option_that_writes_has_a_case():
    written = set()
    for command in app.registered_commands:
        parameters = inspect.signature(command.callback).parameters
        for name, option in options_of(command.callback).items():
            if "Path" in str(parameters[name].annotation):
                written.add((command.name, option))
    assert written == {*FILES, *FOLDERS}


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "loop", "link to a device"])
@pytest.mark.parametrize("case", FILES, ids=" ".join)
def test_what_is_no_regular_file_is_refused(case, kind, folder):
    words, ending = FILES[case]
    path = folder / f"node{ending}"
    place = folder / "device" if kind == "link to a device" else path
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "loop":
        path.symlink_to(path)
    else:
        try:
            os.mknod(place, stat.S_IFCHR | 0o600, os.makedev(1, 3))
        except PermissionError:
            pytest.skip("only root makes device nodes")
        if place != path:
            path.symlink_to(place)
    before = os.lstat(path), os.listdir(folder)
    assert path.name in refused(*words, case[1], path)
    assert os.path.samestat(before[0], os.lstat(path))
    assert sorted(set(os.listdir(folder)) - {"rates"}) == sorted(before[1])


@pytest.mark.parametrize("case", FOLDERS, ids=" ".join)
def test_a_file_is_no_folder(case, folder):
    os.mkfifo(folder / "node")
    (folder / "file").write_text("x")
    for path in ("node", "file", "file/below"):
        assert path in refused(*FOLDERS[case], case[1], path)
    assert stat.S_ISFIFO(os.lstat(folder / "node").st_mode)
    assert (folder / "file").read_text() == "x"


@pytest.mark.parametrize("case", FOLLOWED, ids=" ".join)
def test_links_are_followed(case, folder):
    words, ending = FILES[case]
    (folder / "elsewhere").mkdir()
    target, link = folder / "elsewhere" / f"target{ending}", folder / f"link{ending}"
    link.symlink_to(target)
    for _ in range(2):  # a link to nothing yet, and to a file
        done = run(*words, case[1], link)
        assert done.exit_code == 0, done.output
        assert link.is_symlink()
        assert target.stat().st_size > 10
    assert [path.name for path in target.parent.iterdir()] == [target.name]


def test_no_file_of_the_call_is_overwritten(folder):
    (folder / "parts").mkdir()
    for number in range(2):
        (folder / "parts" / f"{number}.svm").write_text((folder / "rows.svm").read_text())
    (folder / "mine.py").write_text("objective = constraint = None\n")
    (folder / "users.csv").write_text("u\nu1\n")
    (folder / "same").symlink_to(folder / "rows.svm")
    calls = [
        [*FIT, "--model", "rows.svm"],
        [*FIT, "--model", "same"],
        [*FIT, "--cache", "rows.svm"],
        [*FIT, "--cache", "c", "--model", "c"],
        ["fit", "rows.svm", "same", "--radius", "1", "--model", "rows.svm"],
        ["fit", "parts/*.svm", "--radius", "1", "--model", "parts/1.svm"],
        ["fit", "parts", "--radius", "1", "--cache", "parts/0.svm"],
        ["predict", "model", "rows.svm", "--out", "model"],
        ["predict", "model", "parts", "--out", "parts/1.svm"],
        ["stability", "parts", "--save", "parts/1.svm"],
        [*STABILITY, "--save", "table.csv"],
        [*STABILITY, "--save", "a.png", "--plot", "a.png"],
        [*SELECT, "--out", "table.csv"],
        [*RATINGS, "--model", "ratings.csv"],
        [*RATINGS, "--recommend", "users.csv", "--out", "users.csv"],
        [*RATINGS, "--plot", "a.png", "--model", "a.png"],
        [*SOLVE, "--save", "a.csv", "--out", "a.csv"],
        ["solve", "mine.py", "--save", "mine.py"],
        ["solve", "mine.py:problem", "--save", "mine.py"],
        [*RATES, "--markdown", "rates/rates.json"],
    ]
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    for words in calls:
        message = refused(*words)
        assert "would overwrite" in message or "another of the three files" in message, words
    assert all(path.read_bytes() == content for path, content in before.items())
