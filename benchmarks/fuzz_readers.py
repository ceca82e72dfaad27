"""What `fuzz.py` reads: each reader and loader with files that are valid, and a plain parser to compare with.

A plain parser claims little: it returns None for whatever is not valid beyond doubt.
"""

from __future__ import annotations

import abc
import ast
import functools
import gzip
import io
import random
import re
import shutil
import string
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

NUMBER = re.compile(r"[+-]?\d{1,6}(\.\d{1,6})?")
JUNK: list[Any] = [
    None, True, -1, 0, 1, 3, 2**31, 2**63, 10**30, 0.5, -0.0, float("nan"), float("inf"), 1e-320, 1e308, "", "x", "3",
    b"x", [], [1.0], [[1.0], [2.0, 3.0]], {"a": 1.0}, (2, 3), np.zeros((0, 3)), np.ones((2, 2)), np.array(3), 1j,
    np.array([np.nan, 1.0]), np.array(["a"]), object(), range(3), {1, 2}, np.float32(2.0), [None], [-1, 5], np.eye(3),
    lambda: 1,
]  # fmt: skip


class Reader(abc.ABC):
    """A reader or loader under test."""

    name: str
    suffix = ""
    share = 10
    """How often it is tried, in relation to the others."""
    sealed = False
    """Whether a checksum guards the file: what is read must then be what was written."""

    @abc.abstractmethod
    def make(self, rng: random.Random, folder: Path) -> bytes:
        """A valid file."""

    @abc.abstractmethod
    def read(self, path: Path) -> Any:
        """What the library makes of a file, in a form that can be compared."""

    def strange(self, rng: random.Random, whole: bytes) -> bytes:
        """A file that is wrong in its meaning rather than in its bytes; the valid one where there is no such thing."""
        return whole

    def expect(self, data: bytes) -> Any:
        """What a plain parser makes of a file; None where it cannot say."""
        return None


def decimal(rng: random.Random) -> str:
    """A number in digits that single precision and every parser agree on."""
    return rng.choice([str(rng.randint(-99, 99)), f"{rng.randint(-9, 9)}.{rng.choice(['5', '25', '125', '0'])}"])


def clean(data: bytes) -> str | None:
    """A text without anything that readers may differ about; it may be compressed."""
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except Exception:
            return None
    try:
        text = data.decode("ascii")
    except UnicodeDecodeError:
        return None
    return text if all(letter in string.printable and letter not in "\r\x0b\x0c\"'" for letter in text) else None


def options(**given: Any) -> Any:
    """How rows are read for a regression, so that any label will do."""
    from onesfw.data.prepare import ReadOptions

    return ReadOptions(classify=False, **given)


def rows_of(path: Path, **given: Any) -> list[Any]:
    """Each row's target, and its nonzeros by column, as `fit` would learn them."""
    from onesfw.data.blocks import Input
    from onesfw.data.prepare import prepare

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
            if not (len(shape) == 2 and all(type(n) is int and 0 < n < 100 for n in shape)):
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


def a_model(rng: random.Random) -> Any:
    """A small linear model."""
    from onesfw.linear.model import LinearModel

    coef = np.array([rng.choice([0.0, 0.0, 1.5, -2.0]) for _ in range(rng.randint(1, 12))])
    labels = rng.choice([None, (0.0, 1.0), ("no", "yes")])
    return LinearModel(coef, 0.5, "squared" if labels is None else "logistic", "l1", 3.0, labels)


def model_parts(model: Any) -> Any:
    """A model in a form that can be compared."""
    return [model.coef.tolist(), model.intercept, model.loss, model.constraint, model.radius, model.labels]


class Model(Reader):
    """A saved linear model."""

    name, suffix, sealed = "model", ".model", True

    def make(self, rng: random.Random, folder: Path) -> bytes:
        a_model(rng).save(folder / "made")
        return (folder / "made").read_bytes()

    def read(self, path: Path) -> Any:
        from onesfw.linear.model import LinearModel

        return model_parts(LinearModel.load(path))


class ForgedModel(Model):
    """A model whose fields make no sense, under a right checksum: refused, or one that predicts."""

    name, share, sealed = "forged model", 5, False

    def make(self, rng: random.Random, folder: Path) -> bytes:
        from onesfw.files import read_tensors, write_tensors
        from onesfw.linear.model import FORMAT, VERSION

        a_model(rng).save(folder / "made")
        content, tensors = read_tensors(folder / "made", FORMAT, VERSION, "model")
        forge(rng, content, tensors)
        write_tensors(folder / "made", FORMAT, VERSION, content, tensors)
        return (folder / "made").read_bytes()

    def read(self, path: Path) -> Any:
        from onesfw.linear import CONSTRAINTS, LOSSES
        from onesfw.linear.model import LinearModel

        model = LinearModel.load(path)
        assert str(model.loss) in LOSSES, f"unknown loss {model.loss!r}"
        assert str(model.constraint) in CONSTRAINTS, f"unknown constraint {model.constraint!r}"
        assert np.isfinite(model.coef).all(), "a coefficient is not finite"
        assert np.isfinite([model.intercept, model.radius]).all(), "the intercept or the radius is not finite"
        model.predict(np.zeros((2, model.n_features)))
        return model_parts(model)


def forge(rng: random.Random, content: dict[str, Any], tensors: dict[str, np.ndarray]) -> None:
    """Change a field or a tensor."""
    if rng.random() < 0.3:
        name = rng.choice(sorted(tensors))
        array = tensors[name].copy()
        if array.size and rng.random() < 0.7:
            array.flat[rng.randrange(array.size)] = rng.choice(
                [-1, 10**6] if array.dtype.kind == "i" else [np.nan, np.inf]
            )
        tensors[name] = array if rng.random() < 0.7 else array[:-1]
        return
    plain = [None, True, -1, 0, 2**40, 0.5, "", "x", "logistic", [], ["a", "b"], [1, [2]], {}, {"a": 1}, "nan"]
    content[rng.choice(sorted(content))] = rng.choice(plain)


@functools.cache
def a_result() -> Any:
    """A small result."""
    import jax.numpy as jnp

    import onesfw as fw

    objective = fw.FiniteSum(lambda x, row: jnp.sum((x - row) ** 2), np.eye(3, dtype=np.float32))
    return fw.minimize(objective, fw.sets.L2Ball(1.0), np.zeros(3, np.float32), steps=10, every=[5, 10])


class SavedResult(Reader):
    """A saved result."""

    name, suffix, sealed = "result", ".result", True

    def make(self, rng: random.Random, folder: Path) -> bytes:
        a_result().save(folder / "made")
        return (folder / "made").read_bytes()

    def read(self, path: Path) -> Any:
        import onesfw as fw

        result = fw.Result.load(path)
        return [np.asarray(result.x).tolist(), result.steps, result.value, result.trace.value.tolist()]


class ForgedResult(SavedResult):
    """A result whose fields make no sense, under a right checksum: refused, or one that prints."""

    name, share, sealed = "forged result", 5, False

    def make(self, rng: random.Random, folder: Path) -> bytes:
        from onesfw.files import read_tensors, write_tensors
        from onesfw.results.result_file import FORMAT, VERSION

        a_result().save(folder / "made")
        content, tensors = read_tensors(folder / "made", FORMAT, VERSION, "result")
        forge(rng, content, tensors)
        write_tensors(folder / "made", FORMAT, VERSION, content, tensors)
        return (folder / "made").read_bytes()

    def read(self, path: Path) -> Any:
        import onesfw as fw

        return str(type(fw.Result.load(path)))


class Cache(Reader):
    """A row cache."""

    name, suffix, sealed = "cache", ".cache", True

    def make(self, rng: random.Random, folder: Path) -> bytes:
        import scipy.sparse as sp

        from onesfw.data.cache import CacheWriter
        from onesfw.data.chunks import Chunk

        path = folder / "made.cache"
        path.unlink(missing_ok=True)
        writer = CacheWriter(path)
        for end in range(1, rng.randint(2, 4)):
            rows = sp.csr_matrix(np.array([[rng.choice([0.0, 1.0, 2.5]) for _ in range(4)] for _ in range(3)], "f4"))
            writer.add(Chunk(rows, np.array([1.0, 0.0, 1.0]), (100 * end, 3 * end)))
        writer.commit({"file": "x"}, {"encoding": {"n_features": 4}, "labels": None, "names": []}, 0, np.float32)
        return path.read_bytes()

    def read(self, path: Path) -> Any:
        from onesfw.data.cache import RowCache

        return [[chunk.targets.tolist(), chunk.rows.toarray().tolist()] for chunk in RowCache(path).chunks()]


class Saves(Reader):
    """A checkpoint of the engine: one of its files is damaged, and the same call is made again."""

    name, suffix, share, sealed = "checkpoint", ".run", 1, True

    def __init__(self) -> None:
        self.home: tempfile.TemporaryDirectory[str] | None = None
        self.kept = self.damaged = Path()

    def call(self, folder: Path) -> Any:
        import jax.numpy as jnp

        import onesfw as fw

        objective = fw.FiniteSum(lambda x, row: jnp.sum((x - row) ** 2), np.eye(3, dtype=np.float32))
        ball, x0 = fw.sets.L2Ball(1.0), np.zeros(3, np.float32)
        return fw.minimize(objective, ball, x0, steps=10, evaluate=False, checkpoint=folder).x.tolist()

    def make(self, rng: random.Random, folder: Path) -> bytes:
        if self.home is None:
            self.home = tempfile.TemporaryDirectory()
            self.kept = Path(self.home.name) / "run"
            self.call(self.kept)
        self.damaged = rng.choice(sorted(path for path in self.kept.rglob("*") if path.is_file()))
        return self.damaged.read_bytes()

    def read(self, path: Path) -> Any:
        data = path.read_bytes()
        path.unlink()
        shutil.copytree(self.kept, path)
        (path / self.damaged.relative_to(self.kept)).write_bytes(data)
        return self.call(path)


def constructors() -> dict[str, Callable[[Any], Any]]:
    """Calls with one argument of a problem left open."""
    import onesfw as fw
    from onesfw import sets
    from onesfw import submodular as sm

    one_argument = ("L1Ball", "L2Ball", "LInfBall", "Simplex", "SubSimplex", "NuclearBall", "SpectralBall",
                    "Spectrahedron", "Birkhoff", "Permutahedron", "VertexHull", "Product")  # fmt: skip
    found: dict[str, Callable[[Any], Any]] = {name: getattr(sets, name) for name in one_argument}
    found |= {
        "Box": lambda v: sets.Box(0.0, v),
        "Knapsack": lambda v: sets.Knapsack(v, 1.0),
        "KSparse": lambda v: sets.KSparse(v, 1.0),
        "GroupBall": lambda v: sets.GroupBall(v, 1.0),
        "Polytope": lambda v: sets.Polytope(v, [1.0, 1.0], bounds=(0, 1)),
        "FiniteSum": lambda v: fw.FiniteSum(lambda x, row: x @ row, v),
        "Expectation": lambda v: fw.Expectation(v, lambda key: 0.0),
        "zoo.get": fw.zoo.get,
        "one_sfw": fw.one_sfw,
        "one_sfw rho": lambda v: fw.one_sfw(rho=v),
        "momentum_sfw batch": lambda v: fw.momentum_sfw(batch=v),
        "Coverage": sm.Coverage,
        "FacilityLocation": sm.FacilityLocation,
        "FeatureBased": sm.FeatureBased,
        "LogDet": sm.LogDet,
        "Influence": lambda v: sm.Influence(v, 0.1),
        "UniformMatroid": lambda v: sm.UniformMatroid(5, v),
        "PartitionMatroid": lambda v: sm.PartitionMatroid(v, 1),
        "LaminarMatroid": lambda v: sm.LaminarMatroid(3, v, [1]),
        "GraphicMatroid": sm.GraphicMatroid,
        "LinearMatroid": sm.LinearMatroid,
        "TransversalMatroid": lambda v: sm.TransversalMatroid(3, v),
    }
    return found


class Arguments(Reader):
    """Arguments of a problem: the file is a number that chooses them."""

    name, suffix, share = "arguments", ".call", 10

    def make(self, rng: random.Random, folder: Path) -> bytes:
        return str(rng.randrange(2**32)).encode()

    def read(self, path: Path) -> Any:
        rng = random.Random(path.read_bytes())
        calls = constructors()
        name, value = rng.choice(sorted(calls)), self.value(rng)
        try:
            calls[name](value)
        except (ValueError, TypeError) as error:
            if not str(error).strip():
                raise AssertionError(f"{name}({value!r}) fails without a message") from error
            raise ValueError(f"{path}: {error}") from error
        except Exception as error:
            raise AssertionError(f"{name}({value!r}): {type(error).__name__}: {error}") from error
        return None

    def value(self, rng: random.Random) -> Any:
        """Something that a user might pass by mistake."""
        kind = rng.random()
        if kind < 0.6:
            return rng.choice(JUNK)
        if kind < 0.8:
            return [rng.choice(JUNK) for _ in range(rng.randint(1, 3))]
        return np.array([[rng.choice([-1.0, 0.0, 1.0, 1e300, np.nan]) for _ in range(2)] for _ in range(2)])


READERS: list[Reader] = [
    Libsvm(), Csv(), Table(), Parquet(), Npy(), Edges(), Model(), ForgedModel(), SavedResult(), ForgedResult(), Cache(),
    Saves(), Arguments(),
]  # fmt: skip
