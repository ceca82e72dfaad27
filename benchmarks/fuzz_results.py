"""The loaders of what runs come to: results, sweeps, paths, selections, matrices; damaged, or forged."""

from __future__ import annotations

import functools
import importlib
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


KINDS: dict[str, tuple[Callable[[], Any], str, str]] = {
    "result": (a_result, "onesfw.results.result_file", "onesfw.results.result:Result"),
    "sweep": (a_sweep, "onesfw.results.sweep", "onesfw.results.sweep:Sweep"),
    "path": (a_path, "onesfw.linear.path", "onesfw.linear.path:RadiusPath"),
    "stability": (a_stability, "onesfw.linear.stability", "onesfw.linear.stability:Stability"),
    "selection": (a_selection, "onesfw.submodular.selection", "onesfw.submodular.selection:Selection"),
    "matrix": (a_matrix, "onesfw.lowrank.low_rank", "onesfw.lowrank.low_rank:LowRank"),
    "matrix path": (a_completion_path, "onesfw.lowrank.completion_path", "onesfw.lowrank:CompletionPath"),
}  # fmt: skip


@functools.cache
def made(kind: str) -> Any:
    """An object of a kind, made once."""
    return KINDS[kind][0]()


def load(kind: str, path: Path) -> Any:
    """What the loader of a kind makes of a file."""
    module, _, name = KINDS[kind][2].partition(":")
    return getattr(importlib.import_module(module), name).load(path)


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
        load(self.kind, path).save(again)
        data = again.read_bytes()
        return json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]["sha256"]


class Forged(Saved):
    """One whose fields make no sense, under a right checksum: refused, or one that prints, and predicts."""

    sealed = False

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.name = f"forged {kind}"

    def make(self, rng: random.Random, folder: Path) -> bytes:
        from onesfw.files import read_tensors, write_tensors

        module = importlib.import_module(KINDS[self.kind][1])
        super().make(rng, folder)
        content, tensors = read_tensors(folder / "made", module.FORMAT, module.VERSION, self.kind)
        forge(rng, content, tensors)
        write_tensors(folder / "made", module.FORMAT, module.VERSION, content, tensors)
        return (folder / "made").read_bytes()

    def read(self, path: Path) -> Any:
        found = load(self.kind, path)
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
