"""`onesfw fit` and `onesfw predict` over many files: the bits of the call from Python, a sentence for a mistake."""

import json
import os
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest
from fit_checks import complaint, fit, onesfw
from sklearn.datasets import dump_svmlight_file
from store_checks import SECRET, refusing_store

from onesfw.data import store
from onesfw.linear import LinearModel, predict, train

OPTIONS = ("--target", "label", "--radius", 5, "--passes", 3, "--quiet")
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # short runs, on purpose


def table(seed):
    X = np.random.default_rng(seed).normal(size=(60, 3))
    labels = np.array(["red", "green", "blue"])[X.argmax(axis=1)]
    return pa.table({"label": labels, **dict(zip("abc", X.T, strict=True))})


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Six tables of three labels, as Parquet, as CSV and as LIBSVM text."""
    place = tmp_path_factory.mktemp("tables")
    for suffix in ("parquet", "csv", "svm"):
        (place / suffix).mkdir()
        for number in range(6):
            path, rows = place / suffix / f"part-{number}.{suffix}", table(number)
            if suffix == "svm":
                X = np.column_stack([rows[name] for name in "abc"])
                dump_svmlight_file(X, X.argmax(axis=1), str(path), zero_based=False)
            else:
                (csv.write_csv if suffix == "csv" else pq.write_table)(rows, path)
    return place


@pytest.mark.parametrize("suffix", ["parquet", "csv", "svm"])
@pytest.mark.parametrize("polish", [True, False])
def test_a_folder_a_pattern_and_a_list_are_the_same_rows(folders, tmp_path, suffix, polish):
    options = [word for word in OPTIONS if suffix != "svm" or word not in ("--target", "label")]
    options += [] if polish else ["--no-polish"]
    folder, model = folders / suffix, tmp_path / "m.safetensors"
    named = ",".join(str(folder / f"part-{number}.{suffix}") for number in range(6))
    found = []
    for source in (folder, folder / "part-*", named):
        answer = fit(source, source, *options, "--model", model)
        assert (answer["rows"], answer["test_rows"], len(answer["labels"])) == (360, 360, 3)
        outcome = onesfw("predict", model, source, "--probabilities")
        assert outcome.exit_code == 0
        found.append((LinearModel.load(model).coef, answer["accuracy"], outcome.stdout))
    here = train(folder, target=None if suffix == "svm" else "label", radius=5.0, passes=3, polish=polish)
    for coef, accuracy, text in found:
        np.testing.assert_array_equal(coef, here.coef)
        assert accuracy == found[0][1]
        assert text == found[0][2]
    parts = [predict(here, folder / f"part-{number}.{suffix}").margins for number in range(6)]
    np.testing.assert_array_equal(predict(here, folder).margins, np.concatenate(parts))


def test_a_name_with_a_comma_is_one_file(folders, tmp_path):
    shutil.copy(folders / "csv" / "part-0.csv", tmp_path / "a,b.csv")
    assert fit(tmp_path / "a,b.csv", *OPTIONS)["rows"] == 60


def test_files_that_are_no_data_are_left_out_and_others_are_named(folders, tmp_path):
    place = shutil.copytree(folders / "parquet", tmp_path / "parts")
    for name in ("_SUCCESS", "_metadata", ".part-0.parquet.crc", ".ipynb_checkpoints/x.csv", "_temporary/0/x.parquet"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("nothing")
    assert fit(place, *OPTIONS)["rows"] == 360
    (place / "README.md").write_text("# Rows\n")
    assert "README.md is libsvm; give files of one format" in complaint("fit", place, *OPTIONS)


def empty(place):
    for path in place.iterdir():
        path.unlink()
    return place, "holds no files; give another path"


def nothing_matches(place):
    return place / "*.csv", "no file matches"


def mixed(place):
    (place / "z.csv").write_text("label,a,b,c\nred,1,2,3\n")
    return place, "z.csv is csv, and "


def zero_bytes(place):
    (place / "part-3.parquet").write_bytes(b"")
    return place, "part-3.parquet is empty: it has no bytes; remove it, or write it again"


def cut(place):
    path = place / "part-3.parquet"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    return place, "part-3.parquet is not a Parquet file, or it is damaged: "


def one_of_a_list_is_missing(place):
    return f"{place / 'part-0.parquet'},{place / 'none.parquet'}", "none.parquet cannot be read: No such file"


def unreachable(place):
    return (
        "s3://me:a-secret@bucket/rows?endpoint_override=127.0.0.1:9&scheme=http&region=x",
        "s3://bucket/rows cannot be reached: ",
    )


MISTAKES = [empty, nothing_matches, mixed, zero_bytes, cut, one_of_a_list_is_missing]


@pytest.mark.parametrize("mistake", [*MISTAKES, pytest.param(unreachable, marks=pytest.mark.slow)])
def test_mistakes_are_a_sentence_and_nothing_is_lost(folders, tmp_path, monkeypatch, mistake):
    monkeypatch.setattr(store, "ATTEMPTS", 1)
    model = tmp_path / "m.safetensors"
    fit(folders / "parquet", *OPTIONS, "--model", model)
    before = model.read_bytes()
    source, words = mistake(shutil.copytree(folders / "parquet", tmp_path / "parts"))
    said = complaint("fit", source, *OPTIONS, "--model", model)
    assert words in said
    assert "secret" not in said
    assert model.read_bytes() == before
    outcome = onesfw("predict", model, source, "--out", tmp_path / "out.csv")
    assert outcome.exit_code == 2
    assert words in outcome.stderr
    assert not os.path.exists(tmp_path / "out.csv")
    # A test file that cannot be read costs the scores, not the model.
    tested = onesfw("fit", folders / "parquet", source, *OPTIONS, "--json")
    assert tested.exit_code == 2
    assert words in tested.stderr
    assert not tested.stdout or json.loads(tested.stdout)["accuracy"] is None


@pytest.mark.parametrize(
    ("path", "words"),
    [("bucket/rows", "s3://bucket/rows is refused: "), ("ending/parts", "TRAIN: there is no s3://ending/parts; check")],
)
def test_a_store_that_refuses_or_ends_is_named_without_secrets(folders, tmp_path, path, words):
    with refusing_store() as addressed:
        said = complaint("fit", addressed(path), *OPTIONS)
        assert words in said
        assert SECRET not in said
        fit(folders / "parquet", *OPTIONS, "--model", tmp_path / "m.safetensors")
        said = complaint("predict", tmp_path / "m.safetensors", addressed(path))
        assert words.replace("TRAIN", "DATA") in said
        assert SECRET not in said
