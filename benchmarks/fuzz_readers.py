"""The readers of data that `fuzz.py` tries: each with files that are valid, and a plain parser to compare with.

A plain parser claims little: it returns None for whatever is not valid beyond doubt.
"""

from __future__ import annotations

import ast
import gzip
import io
import random
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from fuzz_base import Reader, clean, decimal

NUMBER = re.compile(r"[+-]?\d{1,6}(\.\d{1,6})?")


def options(**given: Any) -> Any:
    """How rows are read for a regression, so that any label will do."""
    from onesfw.data.prepare import ReadOptions

    return ReadOptions(classify=False, **given)


def rows_of(path: Path, **given: Any) -> list[Any]:
    """Each row's target, and its nonzeros by column, as `fit` would learn them."""
    from onesfw.data.blocks import Input
    from onesfw.data.prepare import prepare

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*looks like an identifier")  # which is told, and read
        _, source = prepare(Input(str(path)), options(**given))
    found = []
    for batch in source.batches():
        rows = batch.rows
        assert batch.targets is not None
        for i, target in enumerate(batch.targets.tolist()):
            part = slice(rows.indptr[i], rows.indptr[i + 1])
            pairs = zip(rows.indices[part].tolist(), rows.data[part].tolist(), strict=True)
            found.append((target, sorted((j, v) for j, v in pairs if v != 0)))
    return found


class Libsvm(Reader):
    """LIBSVM text for `fit`."""

    name, suffix, share = "LIBSVM", ".svm", 20

    def make(self, rng: random.Random, folder: Path) -> bytes:
        lines = []
        for _ in range(rng.randint(1, 8)):
            places = sorted(rng.sample(range(1, 40), rng.randint(0, 6)))
            lines.append(" ".join([decimal(rng), *(f"{j}:{decimal(rng)}" for j in places)]))
        text = ("\n".join(lines) + rng.choice(["", "\n"])).encode()
        return gzip.compress(text, mtime=0) if rng.random() < 0.05 else text

    def strange(self, rng: random.Random, whole: bytes) -> bytes:
        index = rng.choice([0, 10**7, 10**9, 2**31 - 2, 2**31 - 1, 2**31, 2**32, 2**63, 10**25, -1])
        label = rng.choice(["1", "1_000", "nan", "1e400", "0x1p3", "+", "1:1", "1,2", "\u0661"])
        return "\n".join(["1 1:1", f"{label} 1:1 {index}:2", ""]).encode()

    def read(self, path: Path) -> Any:
        return rows_of(path)

    def expect(self, data: bytes) -> Any:
        text = clean(data)
        if text is None:
            return None
        found = []
        for line in text.split("\n"):
            words = line.partition("#")[0].rstrip(" ").split(" ")
            if words == [""]:
                continue
            if not NUMBER.fullmatch(words[0]):
                return None
            row, before = [], 0
            for word in words[1:]:
                pair = re.fullmatch(rf"(\d{{1,6}}):({NUMBER.pattern})", word)
                if pair is None or int(pair[1]) <= before:
                    return None
                before = int(pair[1])
                if float(pair[2]) != 0:
                    row.append((before - 1, float(np.float32(float(pair[2])))))
            found.append((float(words[0]), row))
        return found or None


def grid(data: bytes) -> tuple[list[str], list[list[float]]] | None:
    """The names and numbers of a plain CSV text."""
    text = clean(data)
    lines = [line for line in (text or "").split("\n") if line]
    if len(lines) < 2 or text is None or text.startswith("\n") or any(letter in text for letter in " \t"):
        return None
    names, rows = lines[0].split(","), [line.split(",") for line in lines[1:]]
    if len(set(names)) < len(names) or not all(re.fullmatch(r"[a-z]\w*", name) for name in names):
        return None
    if not all(len(row) == len(names) and all(map(NUMBER.fullmatch, row)) for row in rows):
        return None
    return names, [[float(cell) for cell in row] for row in rows]


class Csv(Reader):
    """CSV for `fit`: the target is y."""

    name, suffix, share = "CSV, fit", ".csv", 20

    def make(self, rng: random.Random, folder: Path) -> bytes:
        names = ["y", *rng.sample(["a", "b", "c1", "d_2", "width", "zeta"], rng.randint(1, 5))]
        rows = [[decimal(rng) for _ in names] for _ in range(rng.randint(2, 8))]
        text = "\n".join(",".join(row) for row in [names, *rows]) + rng.choice(["", "\n"])
        return gzip.compress(text.encode(), mtime=0) if rng.random() < 0.05 else text.encode()

    def strange(self, rng: random.Random, whole: bytes) -> bytes:
        mark = rng.choice([b"", b"\xef\xbb\xbf"])
        return mark + rng.choice(
            [b"", b"\n", b"y", b"y,a", b"y,a\n", b"y,y\n1,2\n", b"y,a\n1\r,2\n", b"y,a\n1,\n", b'y,a\n"1\n",2\n',
             b"y,a\n1,word\n2,3\n", b"y," + b"a" * 5000 + b"\n1,2\n", b"y,a\n" + b"1," * 5000 + b"\n", b"1,2\n3,4\n"]
        )  # fmt: skip

    def read(self, path: Path) -> Any:
        return rows_of(path, target="y")

    def expect(self, data: bytes) -> Any:
        found = grid(data)
        if found is None or "y" not in found[0] or len(found[0]) < 2:
            return None
        names, rows = found
        at = names.index("y")
        return [
            (row[at], [(j, float(np.float32(v))) for j, v in enumerate(row[:at] + row[at + 1 :]) if v != 0])
            for row in rows
        ]


def compared(rows: Any) -> list[list[float]]:
    """All columns of a table, as `select` compares rows by them."""
    return rows.compared(rows.table.column_names, (), None).features.tolist()


class Table(Csv):
    """CSV for `select`."""

    name = "CSV, select"

    def read(self, path: Path) -> Any:
        from onesfw.data.table_rows import read_rows

        return compared(read_rows(path))

    def expect(self, data: bytes) -> Any:
        found = grid(data)
        return None if found is None else found[1]


class Parquet(Reader):
    """Parquet for `fit` and `select`; bytes of values may change without anybody noticing."""

    name, suffix = "Parquet", ".parquet"
    kept: tuple[bytes, Any] = b"", None

    def make(self, rng: random.Random, folder: Path) -> bytes:
        import pyarrow as pa
        import pyarrow.parquet as pq

        count = rng.randint(1, 8)
        columns = {name: [float(decimal(rng)) for _ in range(count)] for name in ("y", "a", "b")}
        file = io.BytesIO()
        pq.write_table(pa.table(columns), file, compression=rng.choice(["none", "snappy", "gzip"]))
        self.kept = file.getvalue(), [list(row) for row in zip(*columns.values(), strict=True)]
        return self.kept[0]

    def read(self, path: Path) -> Any:
        from onesfw.data.table_rows import read_rows

        rows_of(path, target="y")
        return compared(read_rows(path))

    def expect(self, data: bytes) -> Any:
        return self.kept[1] if data == self.kept[0] else None


class Npy(Reader):
    """A .npy matrix for `select`."""

    name, suffix = ".npy", ".npy"

    def make(self, rng: random.Random, folder: Path) -> bytes:
        file = io.BytesIO()
        dtype = rng.choice(["<f8", "<f4", "<i4", ">f8", "|u1", "|b1"])
        shape = rng.randint(1, 5), rng.randint(1, 4)
        values = [abs(int(decimal(rng).partition(".")[0])) for _ in range(shape[0] * shape[1])]
        np.save(file, np.array(values).reshape(shape).astype(dtype, order=rng.choice("CF")))
        return file.getvalue()

    def strange(self, rng: random.Random, whole: bytes) -> bytes:
        shapes = ["(1000000, 3000000)", f"(2, {10**19})", "(-1, 2)", "(0, 2)", "(2,)", "()", "2", "[2, 2]"]
        shape = rng.choice(shapes)
        descr = rng.choice(["<f8", "|O", "<U4", "<c16", "<f2", "V8", "[('a', '<f8')]", "nothing"])
        header = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
        return b"\x93NUMPY\x01\x00v\x00" + header.encode() + bytes(32)

    def read(self, path: Path) -> Any:
        from onesfw.data.table_rows import read_rows

        return compared(read_rows(path))

    def expect(self, data: bytes) -> Any:
        if data[:8] != b"\x93NUMPY\x01\x00":
            return None
        end = 10 + int.from_bytes(data[8:10], "little")
        try:
            header = ast.literal_eval(data[10:end].decode("ascii").strip())
            dtype, shape, order = np.dtype(header["descr"]), header["shape"], header["fortran_order"]
            plain = set(header) == {"descr", "shape", "fortran_order"} and dtype.kind in "fiub" and dtype.itemsize <= 8
            if not (plain and dtype.str == header["descr"] and type(order) is bool and data[end - 1 : end] == b"\n"):
                return None
            if not (type(shape) is tuple and len(shape) == 2 and all(type(n) is int and 0 < n < 100 for n in shape)):
                return None
        except Exception:
            return None
        if len(data) - end != dtype.itemsize * shape[0] * shape[1]:
            return None
        flat = np.frombuffer(data[end:], np.uint8 if dtype.kind == "b" else dtype)
        if dtype.kind == "b" and flat.max() > 1:
            return None
        values = flat.reshape(shape, order="F" if order else "C").astype(np.float64)
        return values.tolist() if np.all(np.abs(values) < 1e100) else None


class Edges(Reader):
    """Edges of a graph for `select --influence`."""

    name, suffix = "edges", ".txt"

    def make(self, rng: random.Random, folder: Path) -> bytes:
        gap = rng.choice([" ", "\t", ","])
        lines = [f"{rng.randint(0, 9)}{gap}{rng.randint(10, 30)}" for _ in range(rng.randint(1, 10))]
        return "\n".join(["# a graph", *lines, ""]).encode()

    def strange(self, rng: random.Random, whole: bytes) -> bytes:
        ends = [
            rng.choice([0, 1, -1, 2**31, 2**63 - 1, 2**63, 10**30, "1.5", "1e3", "\u0661", "1_0"]) for _ in range(4)
        ]
        return f"{ends[0]} {ends[1]}\n{ends[2]} {ends[3]}\n".encode()

    def read(self, path: Path) -> Any:
        from onesfw.data.edges import read_edges

        return read_edges(path, False)[0].tolist()

    def expect(self, data: bytes) -> Any:
        text = clean(data)
        if text is None:
            return None
        pairs = []
        for line in text.split("\n"):
            content = line.partition("#")[0]
            if not content:
                continue
            pair = re.fullmatch(r"(\d{1,9})[ \t,](\d{1,9})", content)
            if pair is None:
                return None
            pairs.append([int(pair[1]), int(pair[2])])
        return pairs if any(a != b for a, b in pairs) else None


class RatingsCsv(Reader):
    """CSV of ratings for `complete`, a line an entry."""

    name, suffix = "ratings", ".csv"

    def make(self, rng: random.Random, folder: Path) -> bytes:
        names = ["user", "item", "rating", *rng.sample(["time", "note"], rng.randint(0, 2))]
        rng.shuffle(names)
        rows = [
            [decimal(rng) if name == "rating" else f"{name[0]}{rng.randint(0, 4)}" for name in names]
            for _ in range(rng.randint(1, 8))
        ]
        text = "\n".join(",".join(row) for row in [names, *rows]) + rng.choice(["", "\n"])
        return gzip.compress(text.encode(), mtime=0) if rng.random() < 0.05 else text.encode()

    def strange(self, rng: random.Random, whole: bytes) -> bytes:
        line = rng.choice(
            [b"a,b,", b"a,,1", b",b,1", b"a,b,nan", b"a,b,inf", b"a,b,1e400", b"a,b,word", b"a,b,1_000", b"a,b,0x10",
             b"a,b", b"a,b,1,2", b'"a\n",b,1', b"a\r,b,1", b"\xff,b,1", b"a\0,b,1", b" a,b ,1 ", "é,ü,٣".encode()]
        )  # fmt: skip
        return rng.choice([b"", b"\xef\xbb\xbf"]) + b"user,item,rating\nu,v,1\n" + line + b"\n"

    def read(self, path: Path) -> Any:
        from onesfw.data.ratings import Words
        from onesfw.lowrank import Columns

        found = Columns("user", "item", "rating").read(path, "squared", Words(), Words())
        assert found.values is not None
        users, items = ([names[i] for i in codes] for names, codes in (
            (found.user_labels, found.users), (found.item_labels, found.items),
        ))  # fmt: skip
        return [list(entry) for entry in zip(users, items, found.values.tolist(), strict=True)]

    def expect(self, data: bytes) -> Any:
        text = clean(data)
        lines = [line.split(",") for line in (text or "").split("\n") if line]
        if text is None or text.startswith("\n") or len(lines) < 2 or len(set(lines[0])) < len(lines[0]):
            return None
        if not {"user", "item", "rating"} <= set(lines[0]) or any(len(line) != len(lines[0]) for line in lines):
            return None
        found = [[line[lines[0].index(name)] for name in ("user", "item", "rating")] for line in lines[1:]]
        if not all(re.fullmatch(r"\w+", u + i) and u and i and NUMBER.fullmatch(r) for u, i, r in found):
            return None
        return [[u, i, float(r)] for u, i, r in found]


READERS: list[Reader] = [Libsvm(), Csv(), Table(), Parquet(), Npy(), Edges(), RatingsCsv()]
