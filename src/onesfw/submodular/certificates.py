"""Upper bounds on OPT: what makes a value a certified share of the best possible one.

1. Any monotone submodular f, any x: OPT ≤ F(x) + max_v Σ_i v_i (1 − x_i) ∂_iF(x), v over the bases. For
   F(x*) ≤ F(x ∨ x*) ≤ F(x) + ⟨∇F(x), (x* − x)⁺⟩, and (x* − x)⁺ = x*(1 − x) for an integral x*.
2. f = E_ω max_{i∈S} m_ωi, any thresholds τ_ω ≥ 0: OPT ≤ E τ_ω + max_v Σ_i v_i E (m_ωi − τ_ω)⁺. The thresholds come
   from Frank-Wolfe on the concave relaxation, averaged over its iterates.

From a sample, v is maximised on the same sample as the bound is measured on: too high on average, hence safe.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onesfw.submodular.base import Function
from onesfw.submodular.coverage import Coverage
from onesfw.submodular.matroids import Matroid
from onesfw.submodular.row_functions import RowFunction

ROUNDS = 100  # Frank-Wolfe iterates of the relaxation, fewer on very many entries
LEAST_ROUNDS = 20
WORK = 200_000_000  # entries read in all
KEPT = 15  # iterates whose thresholds are averaged where they must be found anew on another sample
EVALUATIONS = 100_000  # marginals that the chain of sets may cost
CONFIDENCE = 1.6448536269514722  # one-sided 95 %


@dataclass(frozen=True)
class Bound:
    """An upper bound on OPT: the mean of `terms` where it comes from a sample (one per ω), exact without them."""

    value: float
    kind: str
    terms: np.ndarray | None = None

    @property
    def stderr(self) -> float:
        """Of `value`."""
        if self.terms is None or self.terms.size < 2:
            return 0.0
        return float(self.terms.std(ddof=1) / np.sqrt(self.terms.size))

    @property
    def upper(self) -> float:
        """The bound at 95 % confidence, or for certain where it is exact."""
        return self.value + CONFIDENCE * self.stderr


def gradient_bound(value: float, gradient: np.ndarray, x: np.ndarray, matroid: Matroid) -> float:
    """The first certificate from F(x) and ∇F(x)."""
    rest = np.maximum((1.0 - x) * gradient, 0.0)
    return value + float(rest[matroid.base(rest)].sum())


def set_bound(function: Function, chosen: np.ndarray, matroid: Matroid) -> Bound:
    """The first certificate at x = 1_S, where F and ∇F are f and its marginals."""
    x = np.isin(np.arange(function.n), chosen).astype(np.float64)
    return Bound(gradient_bound(function.value(chosen), function.marginals(chosen), x, matroid), "marginals")


def chain_bound(function: Function, matroid: Matroid, evaluations: int = EVALUATIONS) -> Bound:
    """The least of the first certificates at ∅ ⊂ A_1 ⊂ A_2 ⊂ …, the sets that plain greedy without a matroid makes.

    A small A is best where f is nearly modular, a large one where few elements have nearly everything to give; A need
    not be independent.
    """
    state = function.state()
    best, everything = np.inf, np.arange(function.n)
    most = min(function.n, 3 * matroid.rank, max(1, evaluations // function.n))
    for _ in range(most + 1):
        outside = np.setdiff1d(everything, state.chosen)
        gains = np.zeros(function.n)
        gains[outside] = np.maximum(state.gains(outside), 0.0)
        best = min(best, state.value + float(gains[matroid.base(gains)].sum()))
        if outside.size == 0 or len(state.chosen) == most:
            break
        state.add(int(np.argmax(gains)))
    return Bound(float(best), "marginals")


def row_gradient_bound(function: RowFunction, x: np.ndarray, matroid: Matroid) -> Bound:
    """The first certificate on all rows."""
    value, gradient = function.extension(x)
    return Bound(gradient_bound(value, gradient, x, matroid), "gradient")


def sampled_gradient_bound(function: Coverage, x: np.ndarray, matroid: Matroid) -> Bound:
    """The first certificate on rows that are a sample, with a term per row."""
    from onesfw.submodular.bound_kernels import cover_slopes

    rows, gradient = np.arange(function.omegas), np.zeros(function.n)
    served = function.served(x, rows, gradient)
    rest = np.maximum((1.0 - x) * gradient, 0.0)
    direction = np.zeros(function.n)
    base = matroid.base(rest)
    direction[base] = 1.0 - x[base]
    slopes = np.empty(function.omegas)
    cover_slopes(x, direction, function.indptr, function.indices, slopes, np.empty(function.longest))
    terms = function.omegas * function.weights * (served + slopes)
    return Bound(float(terms.mean()), "gradient", terms)


def threshold_bound(function: RowFunction, tau: np.ndarray, matroid: Matroid) -> tuple[float, np.ndarray]:
    """The second certificate for given thresholds on all rows, and its v."""
    excess = function.excess(tau, np.arange(function.omegas))
    base = matroid.base(excess)
    v = np.zeros(function.n)
    v[base] = 1.0
    return float(function.weights @ tau + excess[base].sum()), v


def relaxation(function: RowFunction, matroid: Matroid) -> tuple[Bound, np.ndarray]:
    """The second certificate on all rows, and the last iterates of the relaxation, from which it can be had anew.

    x_{j+1} = x_j + (v_j − x_j)/(j + 1) with v_j the base of the largest excess over τ(x_j); thresholds are averaged
    with weights j. The least bound seen holds: every one does.
    """
    rows = np.arange(function.omegas)
    x = np.full(function.n, matroid.rank / function.n)
    mean, total = np.zeros(function.omegas), 0.0
    best = np.inf
    kept = []
    rounds = min(ROUNDS, max(LEAST_ROUNDS, WORK // function.indices.size))
    for j in range(1, rounds + 1):
        tau = function.thresholds(x, rows)
        mean, total = mean + j * tau, total + j
        if j > rounds - KEPT:
            kept.append(x.copy())
        if j == rounds or j % 25 == 0:
            best = min(best, threshold_bound(function, mean / total, matroid)[0])
        base = matroid.base(function.excess(tau, rows))
        x *= 1.0 - 1.0 / j
        x[base] += 1.0 / j
    return Bound(float(best), "thresholds"), np.array(kept)


def relaxation_anew(function: RowFunction, points: np.ndarray, matroid: Matroid) -> Bound:
    """The second certificate on other rows, the thresholds from the same iterates: they are fixed beforehand."""
    from onesfw.submodular.bound_kernels import row_sums

    rows = np.arange(function.omegas)
    tau = np.mean([function.thresholds(x, rows) for x in points], axis=0)
    value, v = threshold_bound(function, tau, matroid)
    over = np.empty(function.omegas)
    row_sums(v, function.indptr, function.indices, rows, function.values, tau, over)
    return Bound(value, "thresholds", function.omegas * function.weights * (tau + over))
