"""Arguments of problems, sets and set functions, whatever a user might pass by mistake."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from fuzz_base import Reader

JUNK: list[Any] = [
    None, True, -1, 0, 1, 3, 2**31, 2**63, 10**30, 0.5, -0.0, float("nan"), float("inf"), 1e-320, 1e308, "", "x", "3",
    b"x", [], [1.0], [[1.0], [2.0, 3.0]], {"a": 1.0}, (2, 3), np.zeros((0, 3)), np.ones((2, 2)), np.array(3), 1j,
    np.array([np.nan, 1.0]), np.array(["a"]), object(), range(3), {1, 2}, np.float32(2.0), [None], [-1, 5], np.eye(3),
    lambda: 1,
]  # fmt: skip


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
            about = name.split()[-1].rpartition(".")[2]
            if not any(word in str(error) for word in (about, "must", "is not known")):
                raise AssertionError(f"{name}({value!r}) fails without naming what is wrong: {error}") from error
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
