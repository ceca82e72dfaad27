"""Paths, names and the command line, whatever comes in: a sentence that names it, or a finite answer inside the set."""

import contextlib
import os
import warnings

import numpy as np
import pytest
from hostile import (
    JUNK,
    Opaque,
    anything,
    documented,
    few,
    minimize,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import onesfw as fw
from onesfw import zoo
from onesfw.cli import app

# ---- paths


@pytest.fixture(scope="module")
def result():
    return minimize(evaluate=None, every=[1, 5])


def names_of_files():
    letters = st.characters(exclude_characters="/\0", exclude_categories=["Cs"])
    return st.text(letters, min_size=1, max_size=20).filter(lambda name: name not in (".", ".."))


@few
@given(name=names_of_files())
def test_any_name_of_a_file(name, tmp_path_factory, result):
    folder = tmp_path_factory.mktemp("names")
    result.save(folder / name)
    np.testing.assert_array_equal(fw.Result.load(str(folder / name)).x, result.x)
    assert os.listdir(folder) == [name]
    (folder / name).write_bytes(name.encode())
    with pytest.raises(ValueError, match="is not a saved result"):
        fw.Result.load(folder / name)


def test_paths(tmp_path, result):
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "é.png").mkdir()
    wrong = [tmp_path, "", ".", tmp_path / "empty" / "below", tmp_path / ("n" * 300), "\0", tmp_path / "é.png"]
    for path in wrong:
        for call in (result.save, fw.Result.load):
            before = sorted(os.listdir(tmp_path))
            with pytest.raises((OSError, ValueError)) as caught:
                call(path)
            assert str(path)[:50] in str(caught.value) or "path" in str(caught.value) or str(path) in ("", ".")
            assert sorted(os.listdir(tmp_path)) == before
    for path in (tmp_path / "empty", tmp_path / "missing"):
        with pytest.raises((ValueError, FileNotFoundError), match=path.name):
            fw.Result.load(path)
    for path in (None, 3, b"bytes", Opaque(), ["a"], 1.5):
        for call in (result.save, fw.Result.load):
            with pytest.raises(TypeError, match="path must be the path of a file"):
                call(path)
    for path in (tmp_path / "é.png", tmp_path / "picture", tmp_path / "picture.gif", "", tmp_path / "empty" / "a.png"):
        with pytest.raises((OSError, ValueError)):
            result.plot(path)
    result.plot(tmp_path / "☃ ü.svg")
    assert (tmp_path / "☃ ü.svg").stat().st_size > 1000


@few
@given(data=st.binary(max_size=200))
def test_files_of_noise(data, tmp_path_factory, result):
    path = tmp_path_factory.mktemp("noise") / "result"
    path.write_bytes(data)
    with pytest.raises(ValueError, match="is not a saved result"):
        fw.Result.load(path)
    result.save(path)
    whole = bytearray(path.read_bytes())
    for place, byte in enumerate(data):
        whole[(place * 7919) % len(whole)] ^= byte | 1
    path.write_bytes(whole)
    if data:
        with contextlib.suppress(ValueError):
            np.testing.assert_array_equal(fw.Result.load(path).x, result.x)


def test_checkpoint_paths(tmp_path):
    (tmp_path / "file").write_text("é")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thing").write_text("")
    for path in (tmp_path / "file", tmp_path / "full", tmp_path / "file" / "below"):
        with pytest.raises((ValueError, OSError), match=path.parent.name):
            minimize(checkpoint=path)
    for value in JUNK:
        if not isinstance(value, str | None):
            assert documented(lambda value=value: minimize(checkpoint=value), "checkpoint") is None
    assert (tmp_path / "full" / "thing").exists()


# ---- the zoo and the command line


@few
@given(name=anything)
def test_names_of_the_zoo(name):
    if not isinstance(name, str) or name not in zoo.names():
        with pytest.raises((ValueError, TypeError), match="name"):
            zoo.get(name)


ARGUMENTS = [
    "", "é☃", "-1", "0", "nan", "inf", "1e400", "1e30", "-1e30", "0x10", "1_0", "٣", "²", "1e-300", "log", "true",
    "None", "/", ".", "a.py", "a.py:", ".py:b", "[red]", "\\", "quadratic-face", "L2Ball", "convex", "one_sfw",
    "\ud800", "9" * 5000,
]  # fmt: skip
FLAGS = ["--steps", "--key", "--algorithm", "--setting", "--set", "--radius", "--gap-tol", "--time-limit",
         "--replicates", "--every", "--plot", "--save", "--checkpoint", "--bogus", "-h", "--json", "--"]  # fmt: skip


def one_sentence(arguments):
    """Run the command: it succeeds, or it fails with a sentence and without a traceback."""
    outcome = CliRunner().invoke(app, arguments)
    assert outcome.exit_code in (0, 1, 2), (arguments, outcome.exit_code, outcome.exception)
    assert outcome.exception is None or isinstance(outcome.exception, SystemExit), (arguments, outcome.exception)
    assert "Traceback" not in outcome.output
    if outcome.exit_code == 2:
        assert outcome.output.strip(), arguments
    return outcome


@settings(max_examples=120, suppress_health_check=list(HealthCheck))
@given(flag=st.sampled_from(FLAGS), value=st.sampled_from(ARGUMENTS), target=st.sampled_from(ARGUMENTS))
def test_options_of_the_command(flag, value, target):
    if target == "quadratic-face":
        target = "quadratic-fac"  # the problem is found after the options are read, and runs are for the next test
    one_sentence(["solve", target, flag, value])


@few
@given(words=st.lists(st.one_of(st.sampled_from(["list", "solve", "bounds", "sets"]), st.text(max_size=4)), max_size=3))
def test_words_of_the_command(words):
    one_sentence(words)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--steps", "0"], "--steps must be"),
        (["--steps", "9" * 500], "steps"),
        (["--key", "-1"], "--key must be"),
        (["--replicates", "0"], "replicates"),
        (["--every", "0"], "every"),
        (["--gap-tol", "nan"], "--gap-tol must be"),
        (["--time-limit", "-inf"], "--time-limit must be"),
        (["--radius", "nan"], "total"),
        (["--radius", "1e300", "--steps", "3"], "constraint"),
        (["--save", "/"], "folder"),
        (["--plot", "a.gif"], "must end in"),
    ],
)
def test_a_command_that_asks_too_much(options, word):
    outcome = one_sentence(["solve", "quadratic-face", "--json", *options])
    assert outcome.exit_code == 2
    assert word in outcome.output


def test_nothing_warns():
    """The cases above count on it: a warning is an error in this suite."""
    with pytest.raises(UserWarning):
        warnings.warn("hostile", UserWarning, stacklevel=1)
