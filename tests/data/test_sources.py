"""Where rows come from: folders that are columns, lists, addresses of fsspec, names without secrets."""

import functools
import http.server
import threading

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

from onesfw.data import sources, store
from onesfw.linear import predict, train

OPTIONS = {"target": "y", "radius": 5.0, "passes": 2, "buffer": 80, "loss": "squared", "polish": False}
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # short runs, on purpose


def table(seed, rows=40):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 2))
    return pa.table({"y": X @ [1.0, -2.0], "a": X[:, 0], "b": X[:, 1]})


def write(place, seed, suffix):
    place.parent.mkdir(parents=True, exist_ok=True)
    (csv.write_csv if suffix == "csv" else pq.write_table)(table(seed), f"{place}.{suffix}")


@pytest.fixture(params=["csv", "parquet"])
def partitioned(request, tmp_path):
    """Four files in folders of years and countries."""
    for number in range(4):
        folders = f"year={2020 + number % 2}/country={'no' if number < 2 else '07'}"
        write(tmp_path / "set" / folders / "part", number, request.param)
    return tmp_path / "set"


def columns(model):
    return {column.name: column.kind for column in model.encoding.columns}


def test_folders_are_columns_of_texts_and_of_parquet(partitioned):
    model = train(partitioned, **OPTIONS)
    assert columns(model) == {"a": "number", "b": "number", "year": "number", "country": "hashed"}
    whole = predict(model, partitioned)
    assert whole.rows == 160
    parts = [predict(model, path).margins for path in sorted(partitioned.glob("*/*/part.*"))]
    np.testing.assert_array_equal(np.concatenate(parts), whole.margins)  # a file alone lies in its folders, too
    one = predict(model, partitioned / "year=2021")
    assert one.rows == 80
    assert train(partitioned, **OPTIONS, test=partitioned / "year=2021").test.r2 == one.scores.r2


def test_a_folder_can_be_the_target(partitioned):
    options = {**OPTIONS, "target": "country", "loss": "logistic"}
    model = train(partitioned, **options)
    assert model.labels == ("07", "no")
    found = predict(model, sorted(partitioned.glob("*/country=no/part.*"))[0])
    assert found.scores.rows == 40


def test_a_folder_in_which_all_files_lie_is_not_learnt_from(partitioned):
    assert columns(train(partitioned / "year=2021", **OPTIONS)) == {"a": "number", "b": "number", "country": "hashed"}


def test_a_file_beside_the_folders_is_named(partitioned):
    suffix = next(partitioned.glob("*/*/part.*")).suffix[1:]
    write(partitioned / "zero", 9, suffix)
    with pytest.raises(ValueError, match=rf"zero\.{suffix} (has no|lacks the) column '(year|country)'"):
        train(partitioned, **OPTIONS)


@pytest.mark.parametrize(
    ("values", "typed"),
    [
        (["3", "-4"], [3, -4]),
        (["3", "04"], ["3", "04"]),
        (["a%20b", "c"], ["a b", "c"]),
        (["7", "__HIVE_DEFAULT_PARTITION__"], ["7", None]),
        (["0", "123456789012345678901"], ["0", "123456789012345678901"]),
    ],
)
def test_values_of_folders_are_whole_numbers_where_all_are(values, typed):
    found = sources.partitions_of([f"/data/k={value}/x.parquet" for value in values])
    assert [columns["k"] for columns in found] == typed


def test_a_text_with_words_among_numbers_is_named_before_anything_is_learnt(tmp_path, monkeypatch):
    (tmp_path / "1.csv").write_text("y,a\n1,2\n2,3\n")
    (tmp_path / "2.csv").write_text("y,a\n")  # a headline and no rows, as Spark writes them
    (tmp_path / "3.csv").write_text("a,y\n5,1\n6,2\n")
    assert train(tmp_path, **OPTIONS).training.rows == 4
    (tmp_path / "3.csv").write_text("a,y\nred,1\nblue,2\n")
    monkeypatch.setattr("onesfw.linear.Learner.learn_examples", None)
    with pytest.raises(ValueError, match=r"3\.csv holds words in column 'a', not numbers, unlike .*1\.csv"):
        train(tmp_path, **OPTIONS)
    (tmp_path / "3.csv").write_text("a,y\n2024-01-01,1\n2024-01-02,2\n")
    with pytest.raises(ValueError, match=r"3\.csv: column 'a' holds values of type date32"):
        train(tmp_path, **OPTIONS)


def test_the_address_of_a_local_file_may_hold_a_blank(tmp_path):
    path = tmp_path / "my rows.parquet"
    pq.write_table(table(0), path)
    assert "%20" in path.as_uri()
    assert train(path.as_uri(), **OPTIONS).training.rows == 40


@pytest.fixture
def memory():
    """A filesystem of fsspec's, in this process."""
    fsspec = pytest.importorskip("fsspec")
    filesystem = fsspec.filesystem("memory")
    yield filesystem
    filesystem.store.clear()
    filesystem.pseudo_dirs[:] = [""]


def test_addresses_of_fsspec_have_the_bits_of_local_files(memory, tmp_path, monkeypatch):
    for number in range(3):
        write(tmp_path / f"{number}", number, "parquet")
        memory.pipe(f"/rows/{number}.parquet", (tmp_path / f"{number}.parquet").read_bytes())
    here = train(tmp_path, **OPTIONS)
    np.testing.assert_array_equal(train("memory://rows", **OPTIONS).coef, here.coef)
    np.testing.assert_array_equal(train("memory://rows/*.parquet", **OPTIONS).coef, here.coef)
    assert predict(here, "memory://rows/1.parquet").rows == 40
    memory.pipe("/rows/1.parquet", b"")
    with pytest.raises(ValueError, match=r"rows/1\.parquet is empty"):
        train("memory://rows", **OPTIONS)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *told):
        """Nothing."""


@pytest.fixture
def web(tmp_path):
    """The address of a folder that a web server shows."""
    pytest.importorskip("aiohttp")
    handler = functools.partial(Quiet, directory=str(tmp_path))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_files_of_a_web_server_have_the_bits_of_local_ones(web, tmp_path, suffix):
    for number in range(3):
        write(tmp_path / f"part-{number}", number, suffix)
    here = train(str(tmp_path / "part-*"), **OPTIONS)
    np.testing.assert_array_equal(train(f"http://{web}/part-*.{suffix}", **OPTIONS).coef, here.coef)
    files = [f"http://someone:a-secret@{web}/part-{number}.{suffix}?token=a-secret" for number in range(3)]
    np.testing.assert_array_equal(train(files, **OPTIONS).coef, here.coef)
    with pytest.raises(ValueError, match=rf"http://{web}/ is a web page, not a file of rows; .* pattern"):
        train(f"http://{web}/", **OPTIONS)
    with pytest.raises(FileNotFoundError, match=rf"there is no http://{web}/none.csv; check the address") as caught:
        train(f"http://someone:a-secret@{web}/none.csv?token=a-secret", **OPTIONS)
    assert "secret" not in str(caught.value)


def test_a_web_server_that_does_not_answer_is_asked_again(monkeypatch, caplog):
    pytest.importorskip("aiohttp")
    monkeypatch.setattr(store, "PAUSE", 0.0)
    with pytest.raises(store.StoreError, match=r"http://127\.0\.0\.1:9/x\.csv cannot be reached: .*; check") as caught:
        train("http://someone:a-secret@127.0.0.1:9/x.csv?token=a-secret", **OPTIONS)
    assert len(caplog.messages) == store.ATTEMPTS - 1
    assert "secret" not in " ".join([str(caught.value), *caplog.messages])


def test_names_of_files_show_no_options_of_their_addresses(memory):
    there = store.Store("memory://rows")
    names = [there.name_of(f"https://me:secret@host/x.csv?key={key}") for key in "ab"]
    assert names[0] != names[1]
    for name in names:
        assert name.startswith("https://host/x.csv?…")
        assert "key" not in name
        assert "secret" not in name


@pytest.mark.parametrize("source", [b"rows.csv", [], ()])
def test_what_is_no_path_is_said_to_be_none(source):
    with pytest.raises(TypeError, match="source must be a path in text, or a list of at least one"):
        train(source, **OPTIONS)


def test_a_link_that_leads_nowhere_is_named(tmp_path):
    for number in range(2):
        write(tmp_path / f"{number}", number, "csv")
    (tmp_path / "2.csv").symlink_to(tmp_path / "gone.csv")
    with pytest.raises(FileNotFoundError, match=r"2\.csv cannot be read"):
        train(tmp_path, **OPTIONS)
