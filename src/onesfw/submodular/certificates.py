"""Upper bounds on OPT: what makes a value a certified share of the best possible one.

Any monotone submodular f, any x: OPT ≤ F(x) + max_v Σ_i v_i (1 − x_i) ∂_iF(x), v over the bases. For
F(x*) ≤ F(x ∨ x*) ≤ F(x) + ⟨∇F(x), (x* − x)⁺⟩, and (x* − x)⁺ = x*(1 − x) for an integral x*.

From a sample, v is maximised on the same sample as the bound is measured on: too high on average, hence safe. Functions
that are sums over rows have a second certificate, in `row_functions`.
"""

from __future__ import annotations

import numpy as np

from onesfw.submodular.base import CONFIDENCE, Bound, Estimate, Function, Judge, Verdict, estimate
from onesfw.submodular.matroids import Matroid
from onesfw.trees import HostArray

EVALUATIONS = 100_000  # marginals that the chain of sets may cost
FRACTIONAL, GLANCED = 500, 32  # sets drawn from x for F(x), and for a point of the trace


def gradient_bound(value: float, gradient: HostArray, x: HostArray, matroid: Matroid) -> float:
    """The certificate from F(x) and ∇F(x)."""
    rest = np.maximum((1.0 - x) * gradient, 0.0)
    return value + float(rest[matroid.base(rest)].sum())


def set_bound(function: Function, chosen: HostArray, matroid: Matroid) -> Bound:
    """The certificate at x = 1_S, where F and ∇F are f and its marginals."""
    x = np.isin(np.arange(function.n), chosen).astype(np.float64)
    return Bound(gradient_bound(function.value(chosen), function.marginals(chosen), x, matroid), "marginals")


def chain_bound(function: Function, matroid: Matroid, evaluations: int = EVALUATIONS) -> Bound:
    """The least of the certificates at ∅ ⊂ A_1 ⊂ A_2 ⊂ …, the sets that plain greedy without a matroid makes.

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
        if len(state.chosen) == most or gains.max() <= 0:  # nothing left to gain: all further bounds are this one
            break
        state.add(int(np.argmax(gains)))
    return Bound(float(best), "marginals")


def verdict(value: Estimate, bound: Bound, terms: HostArray | None = None) -> Verdict:
    """The ratio f̂/Û with its standard error sd(f_ω − (f̂/Û) c_ω)/(Û √N) on the same sample; exact without terms."""
    if terms is None and bound.value < value.value * (1 + 1e-12):  # optimal up to rounding
        bound = Bound(value.value, bound.kind)
    if bound.value <= 0:
        return Verdict(value, bound, 1.0, 0.0)  # OPT = 0: every set is best
    ratio = value.value / bound.value
    error = 0.0
    if terms is not None and bound.terms is not None and terms.size > 1:
        error = float((terms - ratio * bound.terms).std(ddof=1) / (bound.value * np.sqrt(terms.size)))
    return Verdict(value, bound, min(1.0, ratio - CONFIDENCE * error), error)


class ByMarginals(Judge):
    """Any function whose values are exact: the bound is at the chosen set or along a chain."""

    def __init__(self, function: Function, matroid: Matroid, seed: int) -> None:
        self.function, self.matroid = function, matroid
        self.rng = np.random.default_rng(seed)

    def choose(self, chosen: HostArray) -> float:
        return self.function.value(chosen)

    def marginals(self, chosen: HostArray) -> HostArray:
        return self.function.marginals(chosen)

    def report(self, chosen: HostArray, x: HostArray) -> Verdict:
        bounds = [set_bound(self.function, chosen, self.matroid), chain_bound(self.function, self.matroid)]
        bound = min(bounds, key=lambda bound: bound.value)
        return verdict(Estimate(self.function.value(chosen), 0.0), bound)

    def fractional(self, x: HostArray) -> Estimate:
        return self.drawn(x, FRACTIONAL)

    def glance(self, x: HostArray) -> Estimate:
        return self.drawn(x, GLANCED)

    def drawn(self, x: HostArray, count: int) -> Estimate:
        """The mean of f over sets drawn from x."""
        return estimate(np.array([self.function.value(self.rng.random(x.size) < x) for _ in range(count)]))
