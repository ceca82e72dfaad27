"""Passes over rows: the same chunks from file, memory and cache, bounded memory, and a cache that never lies."""

from __future__ import annotations

import io
import os

import numpy as np
import pytest
import scipy.sparse
from data_checks import SMALL, stdin_of, svm_file

from onesfw.data import blocks, cache, chunks, passes
from onesfw.data.batch import csr
from onesfw.data.blocks import Input
from onesfw.data.data_warning import DataWarning
from onesfw.data.encoding import Encoding
from onesfw.data.passes import Passes
from onesfw.data.prepare import Prepared, ReadOptions
from onesfw.data.sources import Blocks


@pytest.fixture
def svm(tmp_path):
    return svm_file(tmp_path)


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    """Blocks of a few lines: each file has many, and every seam between them is crossed."""
    monkeypatch.setattr(blocks.Input.blocks, "__defaults__", SMALL)


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


@pytest.mark.parametrize(
    "changed",
    [
        lambda lines: [*lines[:130], lines[131], lines[130], *lines[132:]],
        lambda lines: lines[:250],
        lambda lines: lines + lines[:50],
        lambda lines: lines[:299],
    ],
    ids=["two rows swapped", "a chunk shorter", "a chunk longer", "a row shorter"],
)
@pytest.mark.parametrize("resumed", [False, True])
def test_a_file_that_is_replaced_between_passes_is_refused(changed, resumed, svm, monkeypatch):
    """Chunks of exactly 50 rows: one more or less at the end changes none of the others."""
    monkeypatch.setattr(passes, "KEPT", 0)
    monkeypatch.setattr(blocks.Input.blocks, "__defaults__", ((0, 0), "", 1))  # a line each
    path = svm[0]
    run = Passes(Input(str(path)), ReadOptions(), buffer=50)
    assert len(list(run.chunks())) == 6
    path.write_bytes(b"".join(changed(path.read_bytes().splitlines(keepends=True))))
    if resumed:
        run = Passes(Input(str(path)), ReadOptions(), buffer=50, decided=run.prepared, digests=run.digests)
    with pytest.raises(ValueError, match=r"train\.svm has changed: its rows are no longer those of the first pass"):
        list(run.chunks())


def test_blocks_from_python_may_differ_from_pass_to_pass(svm, monkeypatch):
    monkeypatch.setattr(passes, "KEPT", 0)
    _, rows, labels = svm
    signs = iter([1, 1, -1])  # the first pass, another one to see the labels, the second pass
    run = Passes(Blocks(lambda: [(rows * next(signs), labels)]), ReadOptions(), buffer=50)
    (first,), (second,) = run.chunks(), run.chunks()
    assert np.array_equal(first.rows.toarray(), -second.rows.toarray())


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
    [({"normalize": True}, "normalize"), ({"zero_based": True}, "zero_based"), ({"float64": True}, "float64")],
)
def test_a_cache_of_other_options_is_written_anew(options, named, cached):
    with pytest.warns(DataWarning, match=named):
        run = Passes(Input(str(cached[0])), ReadOptions(**options), buffer=50, cache=cached[1])
    assert run.cache is None
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
    with pytest.warns(DataWarning) as told:
        run = Passes(Input(str(path)), ReadOptions(), buffer=50, cache=rows)
    assert run.cache is None
    assert [str(warning.message) for warning in told] == [
        f"the cache {rows} was written with another file, and is written anew"
    ]
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
    writer.commit({}, Prepared(Encoding("libsvm", 1), None).to_json(), 0, np.float32)
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


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_shuffled_chunks(dtype):
    shuffler, rng = chunks.Shuffler(), np.random.default_rng(0)
    for n in (50, 7, 90):
        rows = scipy.sparse.random(n, 20, 0.3, format="csr", random_state=rng, dtype=dtype)
        chunk = chunks.Chunk(csr(rows.data, rows.indices, rows.indptr, 20), np.arange(float(n)), (0, 0))
        order = rng.permutation(n)
        found, targets = shuffler.shuffled(chunk, order)
        assert targets.tolist() == order.tolist()
        assert found.dtype == dtype
        np.testing.assert_array_equal(found.toarray(), rows.toarray()[order])
        assert shuffler.shuffled(chunk, None)[0] is chunk.rows
