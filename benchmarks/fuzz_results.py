"""The loaders of what runs come to: results, sweeps, paths, selections, matrices; damaged, or forged."""

from __future__ import annotations

import copy
import functools
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from fuzz_base import Reader
from fuzz_saves import forge


def a_result() -> Any:
    """A small result."""
    import jax.numpy as jnp

    import onesfw as fw

    objective = fw.FiniteSum(lambda x, row: jnp.sum((x - row) ** 2), np.eye(3, dtype=np.float32))
    return fw.minimize(objective, fw.sets.L2Ball(1.0), np.zeros(3, np.float32), steps=10, every=[5, 10])


def a_sweep() -> Any:
    """A small sweep."""
    import jax.numpy as jnp

    import onesfw as fw

    rows = np.random.default_rng(0).normal(0.5, 0.2, (12, 3)).astype(np.float32)
    objective = fw.FiniteSum(lambda x, row: jnp.sum((x - row) ** 2) / 2, rows)
    balls = [fw.sets.L2Ball(radius, shape=3) for radius in (0.1, 1.0)]
    return fw.sweep(objective, balls, steps=20, rows=fw.rows.folds(12, 3))


def a_path() -> Any:
    """A small path over radii."""
    from onesfw.linear import radius_path

    rows = np.random.default_rng(0).normal(size=(40, 3))
    return radius_path(rows, np.where(rows[:, 0] > 0, 1.0, -1.0), [1.0, 2.0], passes=2)


def a_stability() -> Any:
    """A small stability selection."""
    from onesfw.linear import LOSSES, Settings, examples, stability_selection

    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 4))
    data = examples(rows, rows[:, 1] + rng.normal(size=40), None, 4, LOSSES["squared"])
    return stability_selection(Settings(4, "squared"), data, [0.1, 1.0], pairs=3, expected_false=None)


def a_selection() -> Any:
    """A small selection."""
    import onesfw as fw
    from onesfw import submodular as sm

    return fw.select(sm.Coverage(np.eye(3) + np.eye(3, k=1)), sm.UniformMatroid(3, 2), steps=10)


def a_matrix() -> Any:
    """A small matrix of low rank, with its path."""
    from onesfw import lowrank

    i, j = np.divmod(np.arange(48), 6)
    return lowrank.complete(i, j, np.random.default_rng(0).normal(size=48) + i)


def a_completion_path() -> Any:
    """The path of that matrix."""
    return made("matrix").path


KINDS: dict[str, Callable[[], Any]] = {
    "result": a_result, "sweep": a_sweep, "path": a_path, "stability": a_stability, "selection": a_selection,
    "matrix": a_matrix, "matrix path": a_completion_path,
}  # fmt: skip


@functools.cache
def made(kind: str) -> Any:
    """An object of a kind, made once."""
    return KINDS[kind]()


class Saved(Reader):
    """What a run came to, as it was saved."""

    share, sealed = 4, True

    def __init__(self, kind: str) -> None:
        self.name = self.kind = kind
        self.suffix = f".{kind.replace(' ', '-')}"

    def make(self, rng: random.Random, folder: Path) -> bytes:
        made(self.kind).save(folder / "made")
        return (folder / "made").read_bytes()

    def read(self, path: Path) -> Any:
        again = path.with_name("again")
        type(made(self.kind)).load(path).save(again)
        data = again.read_bytes()
        return json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]["sha256"]


class Forged(Saved):
    """One whose fields make no sense, under a right checksum: refused, or one that prints, and predicts."""

    sealed = False

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.name = f"forged {kind}"

    def make(self, rng: random.Random, folder: Path) -> bytes:
        from onesfw.files import write_tensors

        content, tensors = copy.deepcopy(made(self.kind).pack())
        forge(rng, content, tensors)
        write_tensors(folder / "made", *made(self.kind).file_kind[:2], content, tensors)
        return (folder / "made").read_bytes()

    def read(self, path: Path) -> Any:
        found = type(made(self.kind)).load(path)
        try:
            table = str(found)
            if self.kind == "matrix":
                assert np.isfinite(found.predict([0], [0])).all(), "a prediction is not finite"
                assert np.isfinite(found.top(1, 3)[1]).all(), "a prediction is not finite"
            if self.kind == "path":
                assert np.isfinite(found.coefs.toarray()).all(), "a coefficient is not finite"
        except (ValueError, TypeError, OSError) as error:  # not the loader's refusal, which comes before any use
            raise AssertionError(f"read, and then: {type(error).__name__}: {error}") from error
        return table


READERS: list[Reader] = [reader(kind) for kind in KINDS for reader in (Saved, Forged)]
