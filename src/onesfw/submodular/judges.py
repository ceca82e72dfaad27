"""How `select` measures sets: exactly, or on samples that had no part in finding them."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from onesfw.submodular.base import Estimate, Function, as_mask
from onesfw.submodular.certificates import (
    CONFIDENCE,
    Bound,
    chain_bound,
    gradient_bound,
    relaxation,
    relaxation_anew,
    row_gradient_bound,
    sampled_gradient_bound,
    set_bound,
)
from onesfw.submodular.coverage import Coverage
from onesfw.submodular.custom import SetFunction
from onesfw.submodular.influence import Influence
from onesfw.submodular.matroids import Matroid
from onesfw.submodular.row_functions import RowFunction

GLANCES = 256  # rows, or sets drawn from x, that a point of the trace is measured on
GLANCED_SETS, GLANCED_ENTRIES = 10_000, 500_000  # the same for reverse-reachable sets
FRACTIONAL = 500  # sets drawn from x for F(x), where there is no closed form
EVALUATIONS, LEAST, MOST = 2_000_000, 1_000, 100_000  # of one's own f_ω for the report, and how many ω they may be
SETS, ENTRIES = 400_000, 8_000_000  # reverse-reachable sets of one sample, and the most nodes they may hold


@dataclass(frozen=True)
class Verdict:
    """f(S), a bound on OPT, and their ratio less what the confidence asks for."""

    value: Estimate
    bound: Bound
    ratio: float
    ratio_stderr: float


def verdict(value: Estimate, bound: Bound, terms: np.ndarray | None = None) -> Verdict:
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


class Judge(abc.ABC):
    """What `select` asks about sets and points."""

    exact: ClassVar[bool] = True
    """Whether the report is certain; otherwise it holds with 95 % confidence."""

    @abc.abstractmethod
    def choose(self, chosen: np.ndarray) -> float:
        """f(S), for choosing among sets."""

    @abc.abstractmethod
    def marginals(self, chosen: np.ndarray) -> np.ndarray:
        """All marginals at S, on what sets are chosen with."""

    @abc.abstractmethod
    def report(self, chosen: np.ndarray, x: np.ndarray) -> Verdict:
        """f(S) and the tighter bound that applies, on what no set was chosen with."""

    @abc.abstractmethod
    def fractional(self, x: np.ndarray) -> Estimate:
        """F(x)."""

    @abc.abstractmethod
    def glance(self, x: np.ndarray) -> Estimate:
        """F(x) roughly, for the trace."""


class ExactRows(Judge):
    """Coverage and facility location: everything by passes over all rows."""

    def __init__(self, function: RowFunction, matroid: Matroid, seed: int) -> None:
        self.function, self.matroid = function, matroid
        count = min(GLANCES, function.omegas)
        self.some = np.random.default_rng(seed).choice(function.omegas, count, replace=False)

    def choose(self, chosen: np.ndarray) -> float:
        return self.function.value(chosen)

    def marginals(self, chosen: np.ndarray) -> np.ndarray:
        return self.function.marginals(chosen)

    def report(self, chosen: np.ndarray, x: np.ndarray) -> Verdict:
        bounds = [
            relaxation(self.function, self.matroid)[0],
            row_gradient_bound(self.function, x, self.matroid),
            set_bound(self.function, chosen, self.matroid),
        ]
        best = min(bounds, key=lambda bound: bound.value)
        return verdict(Estimate(self.function.value(chosen), 0.0), best)

    def fractional(self, x: np.ndarray) -> Estimate:
        return Estimate(self.function.extension(x)[0], 0.0)

    def glance(self, x: np.ndarray) -> Estimate:
        function = self.function
        terms = function.omegas * function.weights[self.some]
        terms = terms * function.served(x, self.some, np.zeros(function.n))
        return estimate(terms, function.omegas)


class SampledSets(Judge):
    """Influence: one sample of reverse-reachable sets to choose with, another to report on."""

    exact: ClassVar[bool] = False

    def __init__(self, function: Influence, matroid: Matroid, seed: int, other: int) -> None:
        self.function, self.matroid, self.seed, self.other = function, matroid, seed, other
        self.few = function.sample(GLANCED_SETS, seed, first=2**40, entries=GLANCED_ENTRIES)

    @cached_property
    def one(self) -> Coverage:
        """What sets are chosen with."""
        return self.function.sample(SETS, self.seed, entries=ENTRIES)

    @cached_property
    def another(self) -> Coverage:
        """What the report is about."""
        return self.function.sample(SETS, self.other, entries=ENTRIES)

    def choose(self, chosen: np.ndarray) -> float:
        return self.one.value(chosen)

    def marginals(self, chosen: np.ndarray) -> np.ndarray:
        return self.one.marginals(chosen)

    def report(self, chosen: np.ndarray, x: np.ndarray) -> Verdict:
        corner = as_mask(chosen, self.function.n).astype(np.float64)
        relaxed, points = relaxation(self.one, self.matroid)
        bounds = {"thresholds": relaxed.value}
        for name, point in (("x", x), ("set", corner)):
            bounds[name] = row_gradient_bound(self.one, point, self.matroid).value
        best = min(bounds, key=bounds.__getitem__)
        sample = self.another
        if best == "thresholds":
            bound = relaxation_anew(sample, points, self.matroid)
        else:
            bound = sampled_gradient_bound(sample, x if best == "x" else corner, self.matroid)
        terms = sample.omegas * sample.weights * sample.served_by(chosen)
        return verdict(estimate(terms), bound, terms)

    def fractional(self, x: np.ndarray) -> Estimate:
        sample = self.another
        return estimate(sample.n * sample.served(x, np.arange(sample.omegas), np.zeros(sample.n)))

    def glance(self, x: np.ndarray) -> Estimate:
        few = self.few
        return estimate(few.n * few.served(x, np.arange(few.omegas), np.zeros(few.n)))


class Deterministic(Judge):
    """Functions without a closed form whose values are exact: the bound is at the chosen set or along a chain."""

    def __init__(self, function: Function, matroid: Matroid, seed: int) -> None:
        self.function, self.matroid = function, matroid
        self.rng = np.random.default_rng(seed)

    def choose(self, chosen: np.ndarray) -> float:
        return self.function.value(chosen)

    def marginals(self, chosen: np.ndarray) -> np.ndarray:
        return self.function.marginals(chosen)

    def report(self, chosen: np.ndarray, x: np.ndarray) -> Verdict:
        bounds = [set_bound(self.function, chosen, self.matroid), chain_bound(self.function, self.matroid)]
        bound = min(bounds, key=lambda bound: bound.value)
        return verdict(Estimate(self.function.value(chosen), 0.0), bound)

    def fractional(self, x: np.ndarray) -> Estimate:
        return self.drawn(x, FRACTIONAL)

    def glance(self, x: np.ndarray) -> Estimate:
        return self.drawn(x, GLANCES // 8)

    def drawn(self, x: np.ndarray, count: int) -> Estimate:
        """The mean of f over sets drawn from x."""
        return estimate(np.array([self.function.value(self.rng.random(x.size) < x) for _ in range(count)]))


class SampledOwn(Deterministic):
    """A user's stochastic function: one sample of ω to choose with, another to report on."""

    exact: ClassVar[bool] = False

    def __init__(self, function: SetFunction, matroid: Matroid, seed: int, other: int) -> None:
        super().__init__(function.resampled(seed), matroid, seed)
        draws = min(max(EVALUATIONS // (function.n + 1), LEAST), MOST) // LEAST * LEAST
        self.fresh = function.resampled(other, draws)

    def report(self, chosen: np.ndarray, x: np.ndarray) -> Verdict:
        mask = as_mask(chosen, self.fresh.n)
        draws = self.fresh.draws
        terms = self.fresh.terms(chosen)
        flipped = mask[None] ^ np.eye(self.fresh.n, dtype=bool)
        rises = np.where(mask[:, None], 0.0, self.fresh.values(flipped, draws) - terms)
        gains = np.maximum(rises.mean(1), 0.0)
        base = self.matroid.base(gains)
        base = base[gains[base] > 0]
        sums = terms + rises[base].sum(0)
        value = gradient_bound(float(terms.mean()), gains, mask.astype(np.float64), self.matroid)
        return verdict(estimate(terms), Bound(value, "marginals", sums), terms)


def estimate(terms: np.ndarray, population: int | None = None) -> Estimate:
    """The mean of a sample and its standard error; drawn without replacement where the population is given."""
    if terms.size < 2:
        return Estimate(float(terms.mean()), 0.0)
    share = 1.0 if population is None else np.sqrt(max(0.0, 1 - terms.size / population))
    return Estimate(float(terms.mean()), float(share * terms.std(ddof=1) / np.sqrt(terms.size)))


def judge_of(function: Function, matroid: Matroid, seed: int, other: int) -> Judge:
    """The judge that suits a function."""
    if isinstance(function, RowFunction):
        return ExactRows(function, matroid, seed)
    if isinstance(function, Influence):
        return SampledSets(function, matroid, seed, other)
    if isinstance(function, SetFunction) and function.omegas is None:
        return SampledOwn(function, matroid, seed, other)
    return Deterministic(function, matroid, seed)
