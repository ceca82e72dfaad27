"""Rows from files: what every reader must agree on, bad lines by their numbers, and a cache that never lies."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import sys

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file

from onesfw.data import blocks, cache, chunks, passes, shuffle
from onesfw.data.batch import BadRows, csr, joined, salvage, unit_rows
from onesfw.data.blocks import Input
from onesfw.data.labels import parse_labels, show
from onesfw.data.libsvm import LibsvmSource, scan
from onesfw.data.passes import Passes
from onesfw.data.prepare import Prepared, ReadOptions, find_format, prepare, reopen

OPENERS = {"": open, ".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}


def random_rows(n=300, d=40, seed=0):
    rng = np.random.default_rng(seed)
    rows = scipy.sparse.random(n, d, 0.2, format="csr", random_state=rng)
    rows.data = rng.normal(size=rows.nnz).round(6)
    labels = rng.choice([-1.0, 1.0], n)
    labels[:2] = -1, 1
    return rows, labels


@pytest.fixture
def svm(tmp_path):
    """A LIBSVM file and what it holds; its blocks are a few lines long."""
    rows, labels = random_rows()
    path = tmp_path / "train.svm"
    dump_svmlight_file(rows, labels, str(path), zero_based=False)
    return path, rows, labels


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    """Blocks of a few lines: each file has many, and every seam between them is crossed."""
    monkeypatch.setattr(blocks.Input.blocks, "__defaults__", ((0, 0), "", 1000))


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


def stdin_of(data: bytes, monkeypatch) -> Input:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    return Input("-")


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
    "1 0:1": "it has a feature 0, but indices count from 1; give --zero-based",
    "1 -3:1": "the index -3 is negative",
    "1 3:1 2:1": "feature 2 comes after feature 3; indices must rise",
    "1 2:1 2:1": "feature 2 comes after feature 2",
    "1 41:1": "feature 41 is beyond the last one, 40; give a larger --features",
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
    assert "--skip-bad" in str(caught.value)
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
    with pytest.raises(ValueError, match=r"a.svm, line 3: there are more labels than two, 1, 2, 3 among them"):
        prepare(written(tmp_path, b"1 1:1\n2 1:1\n3 1:1\n"), ReadOptions())
    with pytest.raises(ValueError, match="the only label is -1, and two are needed; name both with --labels"):
        prepare(stdin_of(b"-1 1:1\n" * 300 + b"1 1:1\n", monkeypatch), ReadOptions(features=1))
    with pytest.raises(ValueError, match="--features is needed"):
        prepare(stdin_of(b"-1 1:1\n", monkeypatch), ReadOptions())
    for text in ("1", "1,1", "1,2,3", "a,b"):
        with pytest.raises(ValueError, match="--labels"):
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
    with pytest.raises(ValueError, match=r"line 301: its label is 3, and the two labels are 1 and 2"):
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


def content(found) -> list:
    return [(c.rows.toarray().tolist(), c.targets.tolist(), c.end) for c in found]


@pytest.mark.parametrize("normalize", [False, True])
def test_a_pass_from_the_file_from_memory_and_from_the_cache_is_the_same(normalize, svm, tmp_path, monkeypatch):
    options = ReadOptions(normalize=normalize)
    plain, kept = (Passes(Input(str(svm[0])), options, buffer=50) for _ in range(2))
    monkeypatch.setattr(passes, "KEPT", 0)
    first = content(plain.chunks())
    assert plain.kept is None
    assert len(first) == 6
    assert content(plain.chunks()) == first
    monkeypatch.setattr(passes, "KEPT", 1 << 20)
    assert content(kept.chunks()) == first
    assert kept.kept is not None
    assert content(kept.chunks()) == first
    cached = Passes(Input(str(svm[0])), options, buffer=50, cache=tmp_path / "rows")
    assert content(cached.chunks()) == first
    assert cached.cache is not None
    assert content(cached.chunks()) == first
    fresh = Passes(Input(str(svm[0])), options, buffer=50, cache=tmp_path / "rows")
    assert fresh.source is None
    assert fresh.prepared == cached.prepared
    assert content(fresh.chunks()) == first
    assert content(fresh.chunks(2)) == first[2:]
    assert content(plain.chunks(2, first[1][2])) == first[2:]
    assert not [entry.name for entry in tmp_path.iterdir() if "partial" in entry.name]


def test_a_chunk_ends_early_where_rows_are_fat(svm, monkeypatch):
    monkeypatch.setattr(chunks, "MOST_ENTRIES", 200)
    found = list(Passes(Input(str(svm[0])), ReadOptions(), buffer=10**9).chunks())
    assert len(found) > 5
    assert max(chunk.rows.nnz for chunk in found) < 400


def test_the_order_depends_on_seed_pass_and_chunk_alone():
    orders = {key: tuple(chunks.order_of(20, 50, *key)) for key in ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1))}
    assert len(set(orders.values())) == 4
    assert all(sorted(order) == list(range(20)) for order in orders.values())
    assert tuple(chunks.order_of(20, 50, 0, 0, 0)) == orders[0, 0, 0]
    assert chunks.order_of(20, 1, 0, 0, 0) is None


@pytest.fixture
def cached(svm, tmp_path):
    run = Passes(Input(str(svm[0])), ReadOptions(), buffer=50, cache=tmp_path / "rows")
    list(run.chunks())
    return svm[0], tmp_path / "rows"


@pytest.mark.parametrize(
    ("options", "named"),
    [({"normalize": True}, "--normalize"), ({"zero_based": True}, "--zero-based"), ({"float64": True}, "--float64")],
)
def test_a_cache_of_other_options_is_written_anew(options, named, cached):
    told = []
    run = Passes(Input(str(cached[0])), ReadOptions(**options), buffer=50, cache=cached[1], tell=told.append)
    assert run.cache is None
    assert named in told[0]
    list(run.chunks())
    assert Passes(Input(str(cached[0])), ReadOptions(**options), buffer=50, cache=cached[1]).cache is not None


def test_a_cache_of_a_changed_file_is_written_anew(svm, tmp_path):
    """The size and both ends stay the same."""
    path, rows = svm[0], tmp_path / "rows"
    text = svm[0].read_bytes() * 8
    assert len(text) > 3 * blocks.ENDS
    path.write_bytes(text)
    list(Passes(Input(str(path)), ReadOptions(), buffer=50, cache=rows).chunks())
    middle = len(text) // 2
    place = text.index(b".", middle) + 1
    path.write_bytes(text[:place] + (b"1" if text[place : place + 1] != b"1" else b"2") + text[place + 1 :])
    told = []
    run = Passes(Input(str(path)), ReadOptions(), buffer=50, cache=rows, tell=told.append)
    assert run.cache is None
    assert told == [f"the cache {rows} was written with another file, and is written anew"]
    before = content(cache.RowCache(rows).chunks())
    assert content(run.chunks()) == content(cache.RowCache(rows).chunks()) != before


def test_a_damaged_cache_is_a_sentence(cached):
    path, rows = cached
    whole = rows.read_bytes()
    rng = np.random.default_rng(0)
    index = cache.RowCache(rows).index
    spans = [
        (entry[name], size * count)
        for entry in index
        for name, size, count in (
            ("targets", 8, entry["rows"]), ("data", 4, entry["entries"]),
            ("indices", 4, entry["entries"]), ("indptr", 4, entry["rows"] + 1),
        )
    ]  # fmt: skip
    used = np.concatenate([np.arange(start, start + length) for start, length in spans])
    tail = np.arange(max(used) + 1, len(whole))
    for place in [*rng.choice(used, 60), *rng.choice(tail[tail >= len(whole) - 2000], 60)]:
        damaged = bytearray(whole)
        damaged[place] ^= 1 << int(rng.integers(8))
        rows.write_bytes(damaged)
        with pytest.raises(ValueError, match="is damaged; delete it"):
            list(cache.RowCache(rows).chunks())
    for kept in (len(cache.MAGIC), len(cache.MAGIC) + 1, 200, len(whole) - 1):
        rows.write_bytes(whole[:kept])
        with pytest.raises(ValueError, match="is damaged; delete it"):
            Passes(Input(str(path)), ReadOptions(), buffer=50, cache=rows)


def test_a_cache_never_replaces_a_strangers_file(svm, tmp_path):
    (tmp_path / "thesis.txt").write_text("ten years of work, all of them in this very file")
    with pytest.raises(ValueError, match="is a file, but no cache of onesfw"):
        Passes(Input(str(svm[0])), ReadOptions(), buffer=50, cache=tmp_path / "thesis.txt")
    assert (tmp_path / "thesis.txt").read_text().startswith("ten years")


def test_a_cache_is_whole_or_not_there(svm, tmp_path):
    rows = tmp_path / "rows"
    run = Passes(Input(str(svm[0])), ReadOptions(), buffer=50, cache=rows)
    one = run.chunks()
    next(one)
    assert not rows.exists()
    other = Passes(Input(str(svm[0])), ReadOptions(), buffer=50, cache=rows)
    with pytest.raises(ValueError, match="another run is writing the cache"):
        next(other.chunks())
    one.close()
    assert [entry.name for entry in tmp_path.iterdir()] == ["train.svm"]
    (tmp_path / ".rows.partial").write_bytes(b"left by a run that was killed")
    assert len(list(other.chunks())) == 6
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["rows", "train.svm"]


def test_a_stopped_pass_leaves_no_cache_and_no_half_chunk(svm, tmp_path):
    run = Passes(Input(str(svm[0])), ReadOptions(), buffer=50, cache=tmp_path / "rows")
    calls = iter([False] * 20 + [True] * 1000)
    found = list(run.chunks(stop=lambda: next(calls)))
    assert 0 < len(found) < 6
    assert all(len(chunk) >= 50 for chunk in found)
    assert not (tmp_path / "rows").exists()


def test_memory_of_chunks_that_were_used_is_given_back(tmp_path):
    class Big:
        """A source of 64 chunks of 4 MB."""

    path = tmp_path / "rows"
    writer = cache.CacheWriter(path)
    rows = scipy.sparse.csr_array(
        (np.ones(2**19, np.float32), np.zeros(2**19, np.int32), np.arange(2**19 + 1, dtype=np.int32)), shape=(2**19, 1)
    )
    for _ in range(24):
        writer.add(chunks.Chunk(rows, np.ones(2**19), (0, 0)))
    prepared = {"encoding": {"n_features": 1}, "labels": None, "names": []}
    writer.commit({}, prepared, 0, np.float32)
    size = path.stat().st_size
    assert size > 200e6

    def resident() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    opened = cache.RowCache(path)
    before, most, total = resident(), 0, 0.0
    for chunk in opened.chunks():
        total += chunk.rows.data.sum() + chunk.targets.sum()
        most = max(most, resident() - before)
    assert total == 24 * 2 * 2**19
    assert most < size / 5


def test_memory_does_not_grow_with_the_stream(monkeypatch):
    """Forty megabytes of text and of rows go by; what stays is less than a sixth of either."""
    monkeypatch.setattr(blocks.Input.blocks, "__defaults__", ((0, 0), "", 1 << 19))
    text = b"".join(b"%d %d:1 5000:0.25\n" % (1 - 2 * (i % 2), 1 + i % 4000) for i in range(5000))

    class Endless(io.RawIOBase):
        left = 400

        def readable(self) -> bool:
            return True

        def readinto(self, buffer) -> int:
            raise NotImplementedError

        def read(self, size=-1) -> bytes:
            self.left -= 1
            return text if self.left >= 0 else b""

        def readline(self, size=-1) -> bytes:
            return b""

    source = stdin_of(b"", monkeypatch)
    monkeypatch.setattr(source, "open", Endless)
    run = Passes(source, ReadOptions(features=5000), buffer=20_000)
    monkeypatch.setattr(passes, "KEPT", 1 << 20)
    sizes, count = [], 0
    for chunk in run.chunks():
        count += len(chunk)
        with open("/proc/self/statm") as file:
            sizes.append(int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
    assert count == 400 * 5000
    assert max(sizes) - sizes[5] < 7e6


def test_prepared_survives_json(svm):
    prepared, _ = prepare(Input(str(svm[0])), ReadOptions())
    assert Prepared.from_json(prepared.to_json()) == prepared
    source = reopen(Input(str(svm[0])), ReadOptions(), prepared)
    np.testing.assert_array_equal(everything(source)[0].toarray(), svm[1].toarray().astype(np.float32))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"format": "svm"}, "--format='svm' is not known"),
        ({"strings": "dummy"}, "--strings"),
        ({"hash_bits": 40}, "--hash-bits must be at most 30"),
        ({"features": 0}, "--features"),
        ({"delimiter": "::"}, "--delimiter must be one character"),
    ],
)
def test_options_that_make_no_sense(options, words, svm):
    with pytest.raises(ValueError, match=words):
        prepare(Input(str(svm[0])), ReadOptions(**options))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_shuffled_chunks(dtype):
    shuffler, rng = shuffle.Shuffler(), np.random.default_rng(0)
    for n in (50, 7, 90):
        rows = scipy.sparse.random(n, 20, 0.3, format="csr", random_state=rng, dtype=dtype)
        chunk = chunks.Chunk(csr(rows.data, rows.indices, rows.indptr, 20), np.arange(float(n)), (0, 0))
        order = rng.permutation(n)
        found, targets = shuffler.shuffled(chunk, order)
        assert targets.tolist() == order.tolist()
        assert found.dtype == dtype
        np.testing.assert_array_equal(found.toarray(), rows.toarray()[order])
        assert shuffler.shuffled(chunk, None)[0] is chunk.rows
