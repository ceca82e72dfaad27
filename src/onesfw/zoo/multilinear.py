"""F(x) = Σ_j w_j (1 − Π_{i covers j} (1 − x_i)): the multilinear extension of a weighted coverage, maximised."""

from __future__ import annotations

from itertools import combinations

import jax.numpy as jnp
import numpy as np

from onesfw.algorithms import DR_SUBMODULAR
from onesfw.objectives import FiniteSum
from onesfw.sets import Knapsack
from onesfw.trees import Array, Floats
from onesfw.zoo.base import Optimum, Problem

ELEMENTS, ITEMS, CHOSEN = 20, 200, 5


def covered(x: Array, row: tuple[Array, Array]) -> Array:
    """w (1 − Π_i (1 − a_i x_i)): the weight of one item times the chance that a chosen element covers it."""
    covers, weight = row
    return weight * (1 - jnp.prod(1 - covers * x))


def coverage(name: str, summary: str) -> Problem:
    """max Σ_j w_j (1 − Π_i (1 − a_ij x_i)) over {0 ≤ x ≤ 1, Σx ≤ 5}: 20 elements, 200 items, seed 35.

    From `numpy.random.default_rng(35)`: element i covers item j (a_ij = 1) with probability 0.15; w_j ~ Exp(1), divided
    by its sum, so that F ≤ 1. A sample is one item, drawn uniformly, with 200 w_j in place of w_j. F is the expected
    weight covered by a random set that holds element i with probability x_i; it is monotone and DR-submodular on
    [0, 1]^d, and F(0) = 0. Its largest value over K is attained at the indicator of a set of 5 elements (F is convex
    along e_i − e_j: Ageev and Sviridenko 2004), found by trying all 15,504.
    """
    rng = np.random.default_rng(35)
    covers = (rng.random((ITEMS, ELEMENTS)) < 0.15).astype(np.float64)
    weights = rng.exponential(size=ITEMS)
    weights /= weights.sum()

    def value(x: Floats) -> Floats:
        found: Floats = (1 - np.prod(1 - covers * np.asarray(x)[..., None, :], -1)) @ weights
        return found

    def gradient(x: Floats) -> Floats:
        factors = 1 - covers * np.asarray(x)[..., None, :]
        one = np.ones_like(factors[..., :1])
        # Products of all factors but one, without dividing: some factors are 0.
        before = np.cumprod(np.concatenate([one, factors[..., :-1]], -1), -1)
        after = np.cumprod(np.concatenate([one, factors[..., :0:-1]], -1), -1)[..., ::-1]
        found: Floats = np.einsum("...ji,ji,j->...i", before * after, covers, weights)
        return found

    def solve() -> Optimum:
        sets = np.array(list(combinations(range(ELEMENTS), CHOSEN)))
        values = covers.astype(bool).T[sets].any(1) @ weights
        x = np.zeros(ELEMENTS)
        x[sets[np.argmax(values)]] = 1.0
        return Optimum(x, float(value(x)), 0.0)

    return Problem(
        name=name,
        summary=summary,
        objective=FiniteSum(covered, (covers, ITEMS * weights)),
        constraint=Knapsack(np.ones(ELEMENTS), float(CHOSEN)),
        setting=DR_SUBMODULAR,
        value=value,
        gradient=gradient,
        solve=solve,
    )
