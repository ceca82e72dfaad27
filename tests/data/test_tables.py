"""CSV and Parquet: columns become features once for the whole file, and bad rows are named."""

from __future__ import annotations

import gzip
import io
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.utils import murmurhash3_32

from onesfw.data import blocks, tables
from onesfw.data.batch import joined
from onesfw.data.blocks import Input
from onesfw.data.encoding import Column, Encoding
from onesfw.data.passes import Passes
from onesfw.data.prepare import Prepared, ReadOptions, prepare, reopen

CITIES = ["Ghent", "Lima, Peru", "Oslo", "Łódź"]
COUNT = 400


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(blocks.Input.blocks, "__defaults__", ((0, 0), "", 1000))
    monkeypatch.setattr(tables, "ROWS", 37)


def records() -> pa.Table:
    """Numbers, whole numbers at first and broken ones later, truth values, words, and a target of words."""
    rng = np.random.default_rng(0)
    city = rng.choice(CITIES, COUNT)
    return pa.table(
        {
            "id": np.arange(COUNT),
            "age": [float(i % 50) if i < 300 else i % 50 + 0.5 for i in range(COUNT)],
            "member": rng.random(COUNT) < 0.5,
            "city": city,
            "spends": np.where(rng.random(COUNT) < 0.5, "much", "little"),
        }
    )


def as_csv(table: pa.Table, delimiter=",", header=True) -> bytes:
    lines = [delimiter.join(table.column_names)] if header else []
    for row in table.to_pylist():
        cells = [
            str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)
            for value in row.values()
        ]
        lines.append(delimiter.join(f'"{cell}"' if delimiter in cell else cell for cell in cells))
    return ("\n".join(lines) + "\n").encode()


def write(tmp_path, name: str, data: bytes | pa.Table) -> Input:
    if isinstance(data, pa.Table):
        pq.write_table(data, tmp_path / name, row_group_size=90)
    else:
        (tmp_path / name).write_bytes(data)
    return Input(str(tmp_path / name))


OPTIONS = {"target": "spends", "drop": ("id",), "float64": True}
FORMS = {
    "csv": ("a.csv", as_csv, {}),
    "csv.gz": ("a.csv.gz", lambda t: gzip.compress(as_csv(t)), {}),
    "tsv": ("a.tsv", lambda t: as_csv(t, "\t"), {}),
    "semicolons": ("a.csv", lambda t: as_csv(t, ";"), {"delimiter": ";"}),
    "carriage returns": ("a.csv", lambda t: as_csv(t).replace(b"\n", b"\r\n"), {}),
    "a mark and blank lines": ("a.csv", lambda t: b"\xef\xbb\xbf" + as_csv(t).replace(b"\n3,", b"\n\n3,"), {}),
    "parquet": ("a.parquet", lambda t: t, {}),
    "parquet by content": ("a.dat", lambda t: t, {}),
}


def everything(source):
    batches = list(source.batches())
    rows = joined([batch.rows for batch in batches], batches[0].rows.shape[1])
    targets = None if batches[0].targets is None else np.concatenate([batch.targets for batch in batches])
    return rows, targets


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("strings", ["hash", "onehot"])
def test_every_form_of_a_table_gives_the_same_rows(form, strings, tmp_path):
    table = records()
    name, write_as, extra = FORMS[form]
    options = ReadOptions(**OPTIONS, **extra, strings=strings, hash_bits=6)
    prepared, source = prepare(write(tmp_path, name, write_as(table)), options)
    rows, targets = everything(source)
    dense = rows.toarray()
    assert prepared.labels == ("little", "much")
    assert targets.tolist() == table["spends"].to_pylist()
    assert [column.name for column in prepared.encoding.columns] == ["age", "member", "city"]
    assert dense[:, 0].tolist() == table["age"].to_pylist()
    assert dense[:, 1].tolist() == [float(value) for value in table["member"].to_pylist()]
    cities = table["city"].to_pylist()
    if strings == "onehot":
        assert prepared.encoding.columns[2].categories == tuple(CITIES)
        expected = [2 + CITIES.index(city) for city in cities]
        assert dense.shape == (COUNT, 6)
    else:
        expected = [2 + murmurhash3_32(f"city={city}", positive=True) % 64 for city in cities]
        assert dense.shape == (COUNT, 66)
    assert dense[:, 2:].argmax(axis=1).tolist() == [place - 2 for place in expected]
    assert (dense[:, 2:].sum(axis=1) == 1).all()
    assert Prepared.from_json(prepared.to_json()) == prepared


def test_a_stream_of_csv_is_read_on_where_it_stopped(tmp_path, monkeypatch):
    data = as_csv(records())
    options = ReadOptions(**OPTIONS, format="csv")

    def stdin() -> Input:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        return Input("-")

    whole = Passes(stdin(), options, buffer=30)
    found = list(whole.chunks())
    rest = Passes(stdin(), options, buffer=30, decided=Prepared.from_json(whole.prepared.to_json()))
    again = list(rest.chunks(2, found[1].end, found[1].proof))
    assert len(again) == len(found) - 2
    for one, other in zip(again, found[2:], strict=True):
        assert (one.rows != other.rows).nnz == 0
        assert one.targets.tolist() == other.targets.tolist()


def test_parquet_is_read_on_where_it_stopped(tmp_path):
    run = Passes(write(tmp_path, "a.parquet", records()), ReadOptions(**OPTIONS), buffer=100)
    found = list(run.chunks())
    run.kept = None
    again = list(run.chunks(2, found[1].end))
    assert [chunk.targets.tolist() for chunk in again] == [chunk.targets.tolist() for chunk in found[2:]]


BAD_LINES = {
    "7,abc,true,Oslo,much": "column 'age': 'abc' is not a finite number; name the column in categorical",
    "7,,true,Oslo,much": "column 'age': a value is missing",
    "7,inf,true,Oslo,much": "column 'age': 'inf' is not a finite number",
    "7,nan,true,Oslo,much": "column 'age': 'nan' is not a finite number",
    "7,1,perhaps,Oslo,much": "column 'member': 'perhaps' is not true or false",
    "7,1,true,Oslo": "it has 4 values, and there are 5 columns",
    "7,1,true,Oslo,much,more": "it has 6 values, and there are 5 columns",
}


@pytest.mark.parametrize("line", BAD_LINES, ids=repr)
@pytest.mark.parametrize("where", [2, 200, COUNT + 1])
def test_a_bad_line_of_csv_is_named(line, where, tmp_path):
    lines = as_csv(records()).decode().splitlines()
    lines.insert(where, line)
    source = write(tmp_path, "bad.csv", ("\n".join(lines) + "\n").encode())
    with pytest.raises(ValueError, match=rf"bad.csv, line {where + 1}: ") as caught:
        everything(prepare(source, ReadOptions(**OPTIONS))[1])
    assert BAD_LINES[line] in str(caught.value)
    _, skipping = prepare(source, ReadOptions(**OPTIONS, skip_bad=True))
    rows, targets = everything(skipping)
    assert skipping.bad.count == 1
    assert rows.toarray()[:, 0].tolist() == records()["age"].to_pylist()
    assert targets.tolist() == records()["spends"].to_pylist()


def test_bad_rows_of_parquet_are_named(tmp_path):
    table = records()
    ages, spends, cities = (table[name].to_pylist() for name in ("age", "spends", "city"))
    ages[123], ages[250], spends[300], cities[5] = None, float("nan"), None, None
    for name, values in (("age", ages), ("spends", spends), ("city", cities)):
        table = table.set_column(table.column_names.index(name), name, pa.array(values))
    source = write(tmp_path, "bad.parquet", table)
    with pytest.raises(ValueError, match=r"bad.parquet, row 124: column 'age' has a number that is missing or not"):
        everything(prepare(source, ReadOptions(**OPTIONS))[1])
    _, skipping = prepare(source, ReadOptions(**OPTIONS, skip_bad=True))
    rows, targets = everything(skipping)
    assert skipping.bad.examples[2] == "row 301: the target 'spends' is missing"
    assert rows.shape[0] == len(targets) == COUNT - 3
    assert rows[[5]].indices.max() < 2  # a word that is missing has no feature


def test_numeric_targets_and_no_header(tmp_path):
    lines = b"".join(b"%d;%d;%d\n" % (i % 3, i, i % 2) for i in range(50))
    options = ReadOptions(target="3", delimiter=";", header=False, categorical=("1",), strings="onehot")
    prepared, source = prepare(write(tmp_path, "a.csv", lines), options)
    rows, targets = everything(source)
    assert prepared.labels == (0.0, 1.0)
    assert prepared.encoding.columns == (Column("1", "onehot", ("0", "1", "2")), Column("2", "number"))
    assert rows[[4]].toarray().tolist() == [[4, 0, 1, 0]]
    assert targets.tolist() == [i % 2 for i in range(50)]


def test_a_label_that_comes_late_is_found_in_a_file(tmp_path):
    text = b"x,y\n" + b"1,no\n" * 500 + b"2,yes\n"
    assert prepare(write(tmp_path, "a.csv", text), ReadOptions(target="y"))[0].labels == ("no", "yes")
    numbers = text.replace(b"no", b"0").replace(b"yes", b"1")
    assert prepare(write(tmp_path, "b.csv", numbers), ReadOptions(target="y"))[0].labels == (0.0, 1.0)


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        (b"a,b\n1,2\n", {}, "target is needed: which column is to be predicted\\? The columns are a, b"),
        (b"age,b\n1,2\n", {"target": "aeg"}, "target: .* has no column 'aeg'; did you mean 'age'"),
        (b"a,b\n1,2\n", {"target": "a", "drop": ("b",)}, "no column is left"),
        (b"a,a\n1,2\n", {"target": "a"}, "two columns 'a'"),
        (b"a,b,c\n1,,3\n2,,3\n", {"target": "a"}, "column 'b' is empty in the first rows; leave it out with drop"),
        (b"a,b\n1,2020-01-01\n2,2020-01-02\n", {"target": "a"}, "column 'b' holds values of type date32"),
        (b"a,b\nx,2\ny,3\n", {"target": "a", "classify": False}, "holds words, and this loss needs numbers"),
        (b"a,b\n1,2\n2,2\n3.5,3\n", {"target": "a"}, "3 different targets, 3.5 among them, are no classes"),
    ],
)
def test_tables_that_cannot_be_learnt(text, options, words, tmp_path):
    with pytest.raises(ValueError, match=words):
        prepare(write(tmp_path, "a.csv", text), ReadOptions(**options))


def test_one_hot_needs_a_file(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(as_csv(records()))))
    with pytest.raises(ValueError, match="a stream can be read only once"):
        prepare(Input("-"), ReadOptions(**OPTIONS, format="csv", strings="onehot"))


def test_a_damaged_parquet_file_is_a_sentence(tmp_path):
    source = write(tmp_path, "a.parquet", records())
    whole = (tmp_path / "a.parquet").read_bytes()
    (tmp_path / "a.parquet").write_bytes(whole[:-100])
    with pytest.raises(ValueError, match="is not a Parquet file, or it is damaged"):
        prepare(source, ReadOptions(**OPTIONS))


def test_columns_are_found_by_name_and_new_words_have_no_feature(tmp_path):
    prepared, _ = prepare(write(tmp_path, "a.csv", as_csv(records())), ReadOptions(**OPTIONS, strings="onehot"))
    prepared = Prepared(prepared.encoding, prepared.labels)
    text = b"extra,city,member,age\n1,Oslo,true,5\n2,Utopia,false,6\n"
    rows, targets = everything(reopen(write(tmp_path, "b.csv", text), ReadOptions(), prepared, targets=False))
    assert rows.toarray().tolist() == [[5, 1, 0, 0, 1, 0], [6, 0, 0, 0, 0, 0]]
    assert targets is None
    with pytest.raises(ValueError, match=r"c.csv has no column 'member'"):
        everything(reopen(write(tmp_path, "c.csv", b"age,city\n1,Oslo\n"), ReadOptions(), prepared, targets=False))


def test_columns_that_share_a_hash_add_up():
    encoding = Encoding("table", 2, columns=(Column("a", "hashed"), Column("b", "hashed")), hash_bits=1, float64=True)
    words = {"a": pa.array(list("pqrstuvw")), "b": pa.array(list("pqrstuvw"))}
    dense = encoding.rows(words.__getitem__, 8).toarray()
    assert (dense.sum(axis=1) == 2).all()
    assert (dense == 2).any()


def test_encodings_that_do_not_fit_are_refused():
    sound = Encoding("table", 3, columns=(Column("a", "onehot", ("x", "y", "z")),)).to_json()
    assert Encoding.from_json(sound).n_features == 3
    for change in (
        {"n_features": 4},
        {"format": "pickle"},
        {"columns": [{"name": "a", "kind": "odd", "categories": []}]},
    ):
        with pytest.raises(ValueError, match="features"):
            Encoding.from_json({**sound, **change})
