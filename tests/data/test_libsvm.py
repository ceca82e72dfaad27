"""Rows from files: what every reader must agree on, labels, and bad lines by their numbers."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma

import numpy as np
import pytest
import scipy.sparse
from data_checks import SMALL, stdin_of, svm_file
from hypothesis import given
from hypothesis import strategies as st

from onesfw.data import blocks
from onesfw.data.batch import BadRows, joined, salvage, unit_rows
from onesfw.data.blocks import Input
from onesfw.data.labels import parse_labels, show
from onesfw.data.libsvm import LibsvmSource, scan
from onesfw.data.passes import Passes
from onesfw.data.prepare import Prepared, ReadOptions, find_format, prepare, reopen

OPENERS = {"": open, ".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}


@pytest.fixture
def svm(tmp_path):
    return svm_file(tmp_path)


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    """Blocks of a few lines: each file has many, and every seam between them is crossed."""
    monkeypatch.setattr(blocks.Input.blocks, "__defaults__", SMALL)


def written(tmp_path, text: bytes, name="a.svm") -> Input:
    (tmp_path / name).write_bytes(text)
    return Input(str(tmp_path / name))


def libsvm(source: Input, skip=False, n_features=40, **options) -> LibsvmSource:
    return LibsvmSource(
        source,
        BadRows(source.name, skip),
        n_features=n_features,
        **{"zero_based": False, "dtype": np.float64, **options},
    )


def everything(source) -> tuple[scipy.sparse.csr_array, np.ndarray]:
    batches = list(source.batches())
    rows = joined([batch.rows for batch in batches], batches[0].rows.shape[1])
    return rows, np.concatenate([batch.targets for batch in batches])


@pytest.mark.parametrize("suffix", OPENERS)
def test_blocks_are_whole_lines_whatever_the_compression(suffix, svm, tmp_path):
    text = svm[0].read_bytes()
    path = tmp_path / "without-a-telling-name"
    with OPENERS[suffix](path, "wb") as file:
        file.write(text)
    found = list(Input(str(path)).blocks())
    assert len(found) > 20
    assert b"".join(block.text for block in found) == text
    assert all(block.text.endswith(b"\n") for block in found)
    for block in found:
        assert text.split(b"\n")[block.first - 1] == block.text.split(b"\n")[0]
    middle = found[7]
    again = list(Input(str(path)).blocks(middle.end))
    assert again == found[8:]


@given(
    lines=st.lists(st.binary(max_size=30).map(lambda b: b.replace(b"\n", b"")), max_size=30),
    size=st.integers(1, 40),
    ended=st.booleans(),
)
def test_whole_lines_lose_nothing(lines, size, ended):
    text = b"\n".join(lines) + (b"\n" if ended else b"")
    pieces = list(blocks.whole_lines(io.BytesIO(text), size))
    assert b"".join(pieces) == text
    assert all(piece.endswith(b"\n") for piece in pieces[:-1])


@pytest.mark.parametrize("compress", [gzip.compress, bytes], ids=["gzip", "plain"])
def test_a_stream_is_read_as_a_file_and_proves_its_beginning(compress, svm, monkeypatch):
    data = compress(svm[0].read_bytes())
    found = list(stdin_of(data, monkeypatch).blocks())
    assert b"".join(block.text for block in found) == svm[0].read_bytes()
    rest = list(stdin_of(data, monkeypatch).blocks(found[5].end, found[5].proof))
    assert [block.text for block in rest] == [block.text for block in found[6:]]
    assert rest[-1].proof == found[-1].proof
    with pytest.raises(ValueError, match="does not begin as it did"):
        list(stdin_of(compress(b"1 1:1\n" + svm[0].read_bytes()), monkeypatch).blocks(found[5].end, found[5].proof))


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".bz2"])
def test_a_cut_off_compressed_file_is_named_with_the_last_good_line(suffix, svm, tmp_path):
    path = tmp_path / f"cut{suffix}"
    with OPENERS[suffix](path, "wb") as file:
        file.write(svm[0].read_bytes())
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match=r"cut.* is damaged after line [\d,]+: "):
        list(Input(str(path)).blocks())


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".bz2"])
def test_a_damaged_compressed_file_is_a_sentence_or_the_same_text(suffix, svm, tmp_path):
    text, path, rng = svm[0].read_bytes(), tmp_path / f"hurt{suffix}", np.random.default_rng(0)
    with OPENERS[suffix](path, "wb") as file:
        file.write(text)
    whole, seen = path.read_bytes(), 0
    for _ in range(60):
        damaged = bytearray(whole)
        damaged[rng.integers(10, len(whole))] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        try:
            found = b"".join(block.text for block in Input(str(path)).blocks())
        except ValueError as error:
            seen += f"hurt{suffix} is damaged after line" in str(error)
        else:
            assert found == text
    assert seen > 50


def test_paths_that_cannot_be_read(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"missing cannot be read: No such file"):
        Input(str(tmp_path / "missing"))
    with pytest.raises(IsADirectoryError, match="is a folder"):
        Input(str(tmp_path))
    with pytest.raises(ValueError, match="null character"):
        Input("a\0b")
    monkeypatch.setattr(blocks, "LONGEST", 5000)
    with pytest.raises(ValueError, match="line 2 is longer than"):
        list(written(tmp_path, b"1 1:1\n" + b"x" * 20_000).blocks())


def test_libsvm_agrees_with_what_was_written(svm):
    rows, labels = everything(libsvm(Input(str(svm[0]))))
    np.testing.assert_array_equal(rows.toarray(), svm[1].toarray())
    np.testing.assert_array_equal(labels, svm[2])
    assert rows.indices.dtype == rows.indptr.dtype == np.int32


def test_zero_based_is_decided_once_for_all_blocks(tmp_path):
    lines = [b"1 0:1\n"] + [b"-1 3:1 5:2\n"] * 300  # only the first block has a 0
    rows, _ = everything(libsvm(written(tmp_path, b"".join(lines)), zero_based=True, n_features=6))
    assert rows[[200]].indices.tolist() == [3, 5]
    one_based, _ = everything(libsvm(written(tmp_path, b"".join(lines[1:])), n_features=6))
    assert one_based[[200]].indices.tolist() == [2, 4]


def test_comments_blank_lines_carriage_returns_queries_and_a_mark(tmp_path):
    text = b"\xef\xbb\xbf# head\r\n\r\n1 qid:7 2:0.5 # tail\r\n  \n-1\t1:2 3:4\r\n1 # nothing\n-1 3:1"
    rows, labels = everything(libsvm(written(tmp_path, text), n_features=3))
    assert rows.toarray().tolist() == [[0, 0.5, 0], [2, 0, 4], [0, 0, 0], [0, 0, 1]]
    assert labels.tolist() == [1, -1, 1, -1]
    batch = next(libsvm(written(tmp_path, text), n_features=3).batches())
    assert [batch.place(row) for row in range(4)] == ["line 3", "line 5", "line 6", "line 7"]


BAD = {
    "x 1:1": "the label 'x' is not a finite number",
    "nan 1:1": "the label 'nan' is not a finite number",
    "1:1 2:1": "it begins with '1:1', not with a label",
    "1 1:1 2": "'2' is not of the form index:value",
    "1 1:1 b:2": "'b' in 'b:2' is not a whole number",
    "1 1:one": "the value 'one' of feature 1 is not a number",
    "1 0:1": "it has a feature 0, but indices count from 1; give zero_based",
    "1 -3:1": "the index -3 is negative",
    "1 3:1 2:1": "feature 2 comes after feature 3; indices must rise",
    "1 2:1 2:1": "feature 2 comes after feature 2",
    "1 41:1": "feature 41 is beyond the last one, 40; give a larger features",
    "1 99999999999:1": "feature 99999999999 is beyond the last one",
    "1 3:nan": "the value 'nan' of feature 3 is not finite",
    "1 3:-inf": "the value '-inf' of feature 3 is not finite",
    "1 3:1e999": "the value '1e999' of feature 3 is not finite",
    "1 3:\0": "of feature 3 is not a number",
    "1 3:1 \xff:2": "is not a whole number",
}


@pytest.mark.parametrize("line", BAD, ids=repr)
@pytest.mark.parametrize("where", [0, 1, 123, 299, 300])
def test_a_bad_line_is_named_wherever_it_is(line, where, svm, tmp_path):
    lines = svm[0].read_bytes().split(b"\n")[:-1]
    lines.insert(where, line.encode("latin1"))
    source = written(tmp_path, b"\n".join(lines) + b"\n", "bad.svm")
    with pytest.raises(ValueError, match=rf"bad.svm, line {where + 1}: ") as caught:
        everything(libsvm(source))
    assert BAD[line] in str(caught.value)
    assert "skip_bad" in str(caught.value)
    skipping = libsvm(source, skip=True)
    rows, labels = everything(skipping)
    assert skipping.bad.count == 1
    np.testing.assert_array_equal(rows.toarray(), svm[1].toarray())
    np.testing.assert_array_equal(labels, svm[2])


def test_a_value_too_large_for_single_precision(tmp_path):
    source = written(tmp_path, b"1 1:1e39\n")
    assert everything(libsvm(source))[0].data.tolist() == [1e39]
    with pytest.raises(ValueError, match="line 1: the value '1e39' of feature 1 is not finite in float32"):
        everything(libsvm(source, dtype=np.float32))


@given(bad=st.sets(st.integers(0, 49), max_size=50))
def test_salvage_finds_exactly_the_bad_ones_in_order(bad):
    told = []

    def parse(first, last):
        if bad & set(range(first, last)):
            raise ValueError
        return list(range(first, last))

    pieces = salvage(0, 50, parse, lambda place, error: told.append(place))
    assert told == sorted(bad)
    assert [i for piece in pieces for i in piece] == [i for i in range(50) if i not in bad]


def test_features_never_seen_are_left_out_of_a_test_file(tmp_path):
    source = written(tmp_path, b"1 1:1 3:2 90:5\n-1 90:5\n1 2:1\n")
    rows, _ = everything(libsvm(source, strict=False, n_features=3))
    assert rows.toarray().tolist() == [[1, 0, 2], [0, 0, 0], [0, 1, 0]]


def test_scan_finds_the_largest_index_and_the_labels(tmp_path, svm):
    assert scan(Input(str(svm[0])), False) == (40, [-1.0, 1.0])
    text = b"2 1:1 # 9:9\n\n1 7:1 \nx 50:1\n1 60:z\n1 3\n2\n1 99999999999:1\n"
    assert scan(written(tmp_path, text), False) == (7, [1.0, 2.0])
    assert scan(written(tmp_path, text), True)[0] == 8
    assert scan(written(tmp_path, b""), False) == (1, [])


def test_formats_by_name_and_by_content(tmp_path):
    names = {
        "a.csv.gz": "csv",
        "a.tsv": "csv",
        "a.libsvm": "libsvm",
        "a.svm.xz": "libsvm",
        "a": "libsvm",
        "b.csv.d": "libsvm",
    }
    for name, expected in names.items():
        assert find_format(written(tmp_path, b"", name), None) == expected
    assert find_format(written(tmp_path, b"PAR1"), None) == "parquet"
    assert find_format(written(tmp_path, b""), "csv") == "csv"


def test_unit_rows():
    rows = scipy.sparse.csr_array(np.asarray([[3.0, 4, 0], [0, 0, 0], [0, 0, 1e-3], [1e8, 0, 0]]))
    explicit = scipy.sparse.csr_array((np.zeros(1), [0], [0, 1, 1]), shape=(2, 3))
    np.testing.assert_allclose(unit_rows(rows).toarray(), [[0.6, 0.8, 0], [0, 0, 0], [0, 0, 1], [1, 0, 0]], rtol=1e-15)
    assert unit_rows(explicit).toarray().tolist() == [[0, 0, 0], [0, 0, 0]]
    assert unit_rows(rows.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize(
    ("text", "options", "labels"),
    [
        (b"1 1:1\n2 1:1\n", {}, (1.0, 2.0)),
        (b"0 1:1\n" * 300 + b"1 1:1\n", {}, (0.0, 1.0)),
        (b"0 1:1\n" * 300 + b"1 1:1\n", {"features": 1}, (0.0, 1.0)),
        (b"1 1:1\n", {"labels": "0,1"}, (0.0, 1.0)),
    ],
)
def test_labels_of_a_file(text, options, labels, tmp_path):
    assert prepare(written(tmp_path, text), ReadOptions(**options))[0].labels == labels


def test_labels_that_do_not_fit(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"a.svm: the only label is 1, and two are needed"):
        prepare(written(tmp_path, b"1 1:1\n"), ReadOptions())
    prepared, _ = prepare(written(tmp_path, b"3 1:1\n2 1:1\n1 1:1\n"), ReadOptions())
    assert prepared.labels == (1.0, 2.0, 3.0)
    with pytest.raises(ValueError, match=r"3 different targets, 0.5 among them, are no classes; .* loss squared"):
        prepare(written(tmp_path, b"0.5 1:1\n2 1:1\n1 1:1\n"), ReadOptions())
    with pytest.raises(ValueError, match="there are more than 1,000 labels"):
        prepare(written(tmp_path, b"".join(b"%d 1:1\n" % i for i in range(1001))), ReadOptions(features=1))
    with pytest.raises(ValueError, match="the only label is -1, and two are needed; name all with labels"):
        prepare(stdin_of(b"-1 1:1\n" * 300 + b"1 1:1\n", monkeypatch), ReadOptions(features=1))
    with pytest.raises(ValueError, match="features is needed"):
        prepare(stdin_of(b"-1 1:1\n", monkeypatch), ReadOptions())
    assert parse_labels("1,2,3", words=False) == (1.0, 2.0, 3.0)
    assert parse_labels(["b", "a"], words=True) == ("b", "a")
    for text in ("1", "1,1", "1,2,1", "1,,2", "a,b"):
        with pytest.raises(ValueError, match="labels"):
            parse_labels(text, words=False)
    assert [show(label) for label in (1.0, 0.5, "a", 1 / 3, 1e300)] == [
        "1",
        "0.5",
        "'a'",
        "0.33333333333333331",
        "1e+300",
    ]


def test_a_third_label_is_named_in_a_later_block(tmp_path):
    text = b"1 1:1\n2 1:1\n" * 150 + b"3 1:1\n" + b"1 1:1\n" * 9
    with pytest.raises(
        ValueError, match=r"line 301: its label is 3, and the labels are 1 and 2 .name them all with labels"
    ):
        list(Passes(written(tmp_path, text), ReadOptions(features=1), buffer=10).chunks())
    skipping = Passes(written(tmp_path, text), ReadOptions(features=1, skip_bad=True), buffer=10)
    assert sum(map(len, skipping.chunks())) == 309
    assert skipping.skipped == 1


def test_places_count_lines_that_were_left_out(tmp_path):
    text = b"1 1:1\n\n# note\noops\n2 1:1\n1 x\n3 1:1\n"
    run = Passes(written(tmp_path, text), ReadOptions(features=1, skip_bad=True, labels="1,2"), buffer=10)
    assert [len(chunk) for chunk in run.chunks()] == [2]
    assert [example.partition(":")[0] for example in run.source.bad.examples] == ["line 4", "line 6", "line 7"]


def test_empty_files(tmp_path):
    for text in (b"", b"\n\n# nothing\n"):
        with pytest.raises(ValueError, match="holds no rows"):
            prepare(written(tmp_path, text), ReadOptions())
    with pytest.raises(ValueError, match=r"holds no rows that can be read \(2 bad ones were skipped\)"):
        prepare(written(tmp_path, b"x 1:1\ny\n"), ReadOptions(skip_bad=True))
    with pytest.raises(ValueError, match="holds no rows"):
        prepare(written(tmp_path, b"a,b\n", "a.csv"), ReadOptions(target="a"))
    with pytest.raises(ValueError, match="holds no rows"):
        prepare(written(tmp_path, b"", "a.csv"), ReadOptions(target="a"))


def test_poisson_counts_are_not_negative(tmp_path):
    source = written(tmp_path, b"3 1:1\n-1 1:1\n")
    options = ReadOptions(classify=False, non_negative=True)
    with pytest.raises(ValueError, match=r"line 2: its target is -1, and the Poisson loss needs counts"):
        list(Passes(source, options, buffer=10).chunks())


def test_prepared_survives_json(svm):
    prepared, _ = prepare(Input(str(svm[0])), ReadOptions())
    assert Prepared.from_json(prepared.to_json()) == prepared
    source = reopen(Input(str(svm[0])), ReadOptions(), prepared)
    np.testing.assert_array_equal(everything(source)[0].toarray(), svm[1].toarray().astype(np.float32))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"format": "svm"}, "format='svm' is not known"),
        ({"strings": "dummy"}, "strings"),
        ({"hash_bits": 40}, "hash_bits must be at most 30"),
        ({"features": 0}, "features"),
        ({"delimiter": "::"}, "delimiter must be one character"),
    ],
)
def test_options_that_make_no_sense(options, words, svm):
    with pytest.raises(ValueError, match=words):
        prepare(Input(str(svm[0])), ReadOptions(**options))
