"""The loaders of linear models, row caches and checkpoints: what the library saved itself, damaged or forged."""

from __future__ import annotations

import atexit
import hashlib
import json
import random
import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from fuzz_base import Reader

PLAIN = [
    None, True, -1, 0, 2**40, 0.5, "", "x", "logistic", [], ["a", "b"], [1, [2]], {}, {"a": 1}, "nan", [2**40], "1e999",
    {"float": "nan"},
]  # fmt: skip


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
        from onesfw.files import write_tensors

        model = a_model(rng)
        content, tensors = model.pack()
        forge(rng, content, tensors)
        write_tensors(folder / "made", *model.file_kind[:2], content, tensors)
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


STRANGE = {"i": [-1, 10**6], "u": [0, 255], "b": [False, True], "f": [np.nan, np.inf]}
"""What may stand in a tensor of each kind"""


def forge(rng: random.Random, content: dict[str, Any], tensors: dict[str, np.ndarray]) -> None:
    """Change a field or a tensor; a field of a field too."""
    if tensors and rng.random() < 0.3:
        name = rng.choice(sorted(tensors))
        array = tensors[name].copy()
        if array.size and rng.random() < 0.7:
            array.flat[rng.randrange(array.size)] = rng.choice(STRANGE[array.dtype.kind])
        tensors[name] = array if rng.random() < 0.7 else array[:-1]
        return
    name = rng.choice(sorted(content))
    if isinstance(content[name], dict) and content[name] and rng.random() < 0.7:
        forge(rng, content[name], {})
    else:
        content[name] = rng.choice(PLAIN)


class Cache(Reader):
    """A row cache."""

    name, suffix, sealed = "cache", ".cache", True

    def make(self, rng: random.Random, folder: Path) -> bytes:
        import scipy.sparse as sp

        from onesfw.data.cache import CacheWriter
        from onesfw.data.chunks import Chunk
        from onesfw.data.encoding import Encoding
        from onesfw.data.prepare import Prepared

        path = folder / "made.cache"
        path.unlink(missing_ok=True)
        writer = CacheWriter(path)
        for end in range(1, rng.randint(2, 4)):
            rows = sp.csr_matrix(np.array([[rng.choice([0.0, 1.0, 2.5]) for _ in range(4)] for _ in range(3)], "f4"))
            writer.add(Chunk(rows, np.array([1.0, 0.0, 1.0]), (100 * end, 3 * end)))
        writer.commit({"file": "x"}, Prepared(Encoding("libsvm", 4), None).to_json(), 0, np.float32)
        return path.read_bytes()

    def read(self, path: Path) -> Any:
        from onesfw.data.cache import RowCache

        return [[chunk.targets.tolist(), chunk.rows.toarray().tolist()] for chunk in RowCache(path).chunks()]


class ForgedCache(Cache):
    """A row cache whose index makes no sense, under a right checksum: refused, or read without leaving the file."""

    name, share, sealed = "forged cache", 3, False

    def make(self, rng: random.Random, folder: Path) -> bytes:
        from onesfw.data.cache import MAGIC, TAIL

        data = super().make(rng, folder)
        length = int.from_bytes(data[-TAIL : 8 - TAIL], "little")
        content = json.loads(data[-TAIL - length : -TAIL])
        entry = rng.choice([content, content["prepared"], *content["chunks"]])
        entry[rng.choice(sorted(entry))] = rng.choice(PLAIN)
        index = json.dumps(content, sort_keys=True).encode()
        seal = len(index).to_bytes(8, "little") + hashlib.sha256(index).digest() + MAGIC
        return data[: -TAIL - length] + index + seal


class Saves(Reader):
    """A checkpoint of the engine: one of its files is damaged, and the same call is made again."""

    name, suffix, share, sealed = "checkpoint", ".run", 1, True

    def __init__(self) -> None:
        self.home: str | None = None
        self.kept = self.damaged = Path()

    def call(self, folder: Path) -> Any:
        import jax.numpy as jnp

        import onesfw as fw

        objective = fw.FiniteSum(lambda x, row: jnp.sum((x - row) ** 2), np.eye(3, dtype=np.float32))
        ball, x0 = fw.sets.L2Ball(1.0), np.zeros(3, np.float32)
        return fw.minimize(objective, ball, x0, steps=10, evaluate=False, checkpoint=folder).x.tolist()

    def make(self, rng: random.Random, folder: Path) -> bytes:
        if self.home is None:
            self.home = tempfile.mkdtemp()
            atexit.register(shutil.rmtree, self.home, ignore_errors=True)
            self.kept = Path(self.home) / "run"
            self.call(self.kept)
        self.damaged = rng.choice(sorted(path for path in self.kept.rglob("*") if path.is_file()))
        return self.damaged.read_bytes()

    def read(self, path: Path) -> Any:
        data = path.read_bytes()
        path.unlink()
        shutil.copytree(self.kept, path)
        (path / self.damaged.relative_to(self.kept)).write_bytes(data)
        return self.call(path)


class TrainingSaves(Saves):
    """A checkpoint of training from a file, in the middle of it: the same call goes on to the same model."""

    name, share = "training", 3

    def call(self, folder: Path) -> Any:
        from onesfw.linear import train

        rows = folder.parent / "rows.svm"
        if not rows.exists():
            rows.write_text("".join(f"{i % 7} 1:{i % 3} 2:{i % 5}\n" for i in range(30)))
        try:
            model = train(rows, radius=2.0, loss="squared", passes=self.passes, buffer=10, checkpoint=folder)
        except FloatingPointError as error:
            raise ValueError(f"{rows}: {error}") from error
        assert np.isfinite(model.coef).all(), "a coefficient is not finite"
        return [model.coef.tolist(), model.intercept]

    passes = 1

    def make(self, rng: random.Random, folder: Path) -> bytes:
        self.passes = 1
        whole = super().make(rng, folder)
        self.passes = 2
        return whole

    def read(self, path: Path) -> Any:
        (path.parent / "rows.svm").unlink(missing_ok=True)
        return super().read(path)


class ForgedTraining(TrainingSaves):
    """Such a checkpoint whose fields make no sense, under a right checksum: refused, or a finite model."""

    name, share, sealed = "forged training", 2, False

    def call(self, folder: Path) -> Any:
        """With another size of the rows, say, it is not polished, and tells of its gap: that is an answer."""
        from sklearn.exceptions import ConvergenceWarning

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return super().call(folder)

    def make(self, rng: random.Random, folder: Path) -> bytes:
        super().make(rng, folder)
        self.damaged = self.kept / "state.safetensors"
        return forged_state(rng, self.damaged, folder, *rng.choice([(), ("progress",)]))


class CompletionSaves(Saves):
    """A checkpoint of a completion, at its end or on its way: the same call comes to the same matrix."""

    name, share = "completion", 2

    def call(self, folder: Path) -> Any:
        from onesfw import lowrank

        i, j = np.divmod(np.arange(48), 6)
        values = np.random.default_rng(0).normal(size=48) + i
        try:
            model = lowrank.complete(i, j, values, radius=2.0, checkpoint=folder)
        except FloatingPointError as error:
            raise ValueError(f"{folder}: {error}") from error
        assert np.isfinite(model.predict(i, j)).all(), "a prediction is not finite"
        return [model.P.tolist(), model.Q.tolist(), model.row_bias.tolist()]


class ForgedCompletion(CompletionSaves):
    """Such a checkpoint whose fields make no sense, under a right checksum: refused, or a finite matrix."""

    name, share, sealed = "forged completion", 2, False

    def make(self, rng: random.Random, folder: Path) -> bytes:
        super().make(rng, folder)
        self.damaged = self.kept / "state.safetensors"
        return forged_state(rng, self.damaged, folder)


def forged_state(rng: random.Random, path: Path, folder: Path, *within: str) -> bytes:
    """A state of a run with something changed, anywhere or in the field of that name."""
    from onesfw.engine.checkpoint import FORMAT, VERSION
    from onesfw.files import read_tensors, write_tensors

    content, tensors = read_tensors(path, FORMAT, VERSION, "checkpoint")
    parts = content
    for name in within:
        parts = parts[name]
    forge(rng, parts, tensors)
    write_tensors(folder / "made", FORMAT, VERSION, content, tensors)
    return (folder / "made").read_bytes()


READERS: list[Reader] = [
    Model(), ForgedModel(), Cache(), ForgedCache(), Saves(), TrainingSaves(), ForgedTraining(), CompletionSaves(),
    ForgedCompletion(),
]  # fmt: skip
