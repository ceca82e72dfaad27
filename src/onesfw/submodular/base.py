"""What a set function is to the library: f(S) = E_ω f_ω(S), its marginals, its samples, and who judges sets by it."""

from __future__ import annotations

import abc
from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from onesfw.engine.keys import Key
from onesfw.submodular.matroids import Matroid
from onesfw.trees import Array, HostArray, Json, Tree

MOST_ENUMERATED = 20
CONFIDENCE = 1.6448536269514722  # one-sided 95 %
Chosen = Collection[int] | HostArray
"""A set: a collection of indices, or a mask of length n."""


class Estimate(NamedTuple):
    """A number and its standard error; 0 where it is exact.

    Args:
        value: the number.
        stderr: its standard error.

    Example:
        >>> from onesfw import submodular as sm
        >>> sm.Estimate(3.0, 0.1).stderr
        0.1
    """

    value: float
    stderr: float


def estimate(terms: HostArray, population: int | None = None) -> Estimate:
    """The mean of a sample and its standard error; drawn without replacement where the population is given."""
    if terms.size < 2:
        return Estimate(float(terms.mean()), 0.0)
    share = 1.0 if population is None else np.sqrt(max(0.0, 1 - terms.size / population))
    return Estimate(float(terms.mean()), float(share * terms.std(ddof=1) / np.sqrt(terms.size)))


@dataclass(frozen=True)
class Bound:
    """An upper bound on OPT: the mean of `terms` where it comes from a sample (one per ω), exact without them."""

    value: float
    kind: str
    terms: HostArray | None = None

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


@dataclass(frozen=True)
class Verdict:
    """f(S), a bound on OPT, and their ratio less what the confidence asks for."""

    value: Estimate
    bound: Bound
    ratio: float
    ratio_stderr: float


class State(abc.ABC):
    """A growing set S and what f says about adding to it: what greedy methods ask."""

    value: float
    chosen: list[int]

    @abc.abstractmethod
    def gains(self, candidates: HostArray) -> HostArray:
        """f(S + i) − f(S) for each candidate i outside S."""

    @abc.abstractmethod
    def add(self, i: int) -> None:
        """S ← S + i."""


class Source(abc.ABC):
    """Where d_t comes from when `select` runs: d_t = (1 − ρ)(d_{t−1} + Δ̃_t) + ρ g_t, from the step's own samples."""

    closed: bool
    """Whether each sample's extension has a closed form."""

    @abc.abstractmethod
    def update(self, d: HostArray, x: HostArray, previous: HostArray, rho: float, t: int) -> None:
        """d_{t−1} becomes d_t, in place."""


class Judge(abc.ABC):
    """How `select` measures sets: exactly, or on samples that had no part in finding them."""

    exact: ClassVar[bool] = True
    """Whether the report is certain; otherwise it holds with 95 % confidence."""

    @abc.abstractmethod
    def choose(self, chosen: HostArray) -> float:
        """f(S), for choosing among sets."""

    @abc.abstractmethod
    def marginals(self, chosen: HostArray) -> HostArray:
        """All marginals at S, on what sets are chosen with."""

    @abc.abstractmethod
    def report(self, chosen: HostArray, x: HostArray) -> Verdict:
        """f(S) and the tightest bound that applies, on what no set was chosen with."""

    @abc.abstractmethod
    def fractional(self, x: HostArray) -> Estimate:
        """F(x)."""

    @abc.abstractmethod
    def glance(self, x: HostArray) -> Estimate:
        """F(x) roughly, for the trace."""


class Function(eqx.Module):
    """f(S) = E_ω f_ω(S) over sets S of the elements 0, …, n − 1, monotone and submodular with f(∅) = 0.

    `value`, `marginals` and `state` are about f itself and run on the host in float64. The methods that end in `_at`
    are about one ω, written in JAX: `MultilinearExtension` makes an objective of them. A function whose multilinear
    extension has a closed form for one ω says so and gives `extension_at` and `extension_gradient_at`. `source` and
    `judge` are what `select` runs on: a function brings its own, or takes `TracedSource` from
    `onesfw.submodular.extension` and `ByMarginals` from `onesfw.submodular.certificates`, which serve any function.

    Example:
        >>> from onesfw import submodular as sm
        >>> f = sm.Coverage([[1, 1, 0], [0, 1, 1]])
        >>> isinstance(f, sm.Function), f.value([0]), f.marginals([0]).tolist()
        (True, 2.0, [2.0, 1.0])
    """

    n: eqx.AbstractVar[int]
    closed_form: ClassVar[bool] = False

    @property
    @abc.abstractmethod
    def omegas(self) -> int | None:
        """How many ω there are, drawn uniformly; None where they are drawn from a distribution."""

    @abc.abstractmethod
    def value(self, chosen: Chosen) -> float:
        """f(S), S a collection of indices or a 0/1 mask of length n."""

    @abc.abstractmethod
    def marginals(self, chosen: Chosen) -> HostArray:
        """g_i(S) = f(S + i) − f(S − i) for all i at once."""

    @abc.abstractmethod
    def state(self) -> State:
        """The empty set, to be added to."""

    @abc.abstractmethod
    def source(self, batch: int, key: Key) -> Source:
        """A stream of samples for `select`, `batch` of them a step, all of them functions of `key`."""

    @abc.abstractmethod
    def judge(self, matroid: Matroid, seed: int, other: int) -> Judge:
        """Who measures sets for `select`.

        Args:
            matroid: which sets there are.
            seed: 64 bits for the samples that sets are chosen with.
            other: 64 bits for the samples that the report is made on.
        """

    @abc.abstractmethod
    def draw(self, key: Array, number: Array) -> Tree:
        """ω number 0, 1, 2, …: a pure function of both arguments, traceable."""

    @abc.abstractmethod
    def value_at(self, s: Array, omega: Tree) -> Array:
        """f_ω(S) for a 0/1 vector s of floats, traceable."""

    def marginals_at(self, s: Array, omega: Tree) -> Array:
        """f_ω(S + i) − f_ω(S − i) for all i, traceable: by default from n + 1 values."""
        here = self.value_at(s, omega)
        places = jax.lax.iota(jnp.int32, self.n)
        flipped = jax.lax.map(lambda i: self.value_at(jnp.where(places == i, 1 - s, s), omega), places, batch_size=64)
        return jnp.where(s > 0.5, here - flipped, flipped - here)

    def extension_at(self, x: Array, omega: Tree) -> Array:
        """F_ω(x) = E f_ω(S), S holding i with probability x_i: the multilinear extension for one ω."""
        raise NotImplementedError(f"{type(self).__name__} has no closed-form multilinear extension")

    def extension_gradient_at(self, x: Array, omega: Tree) -> Array:
        """∇F_ω(x)."""
        raise NotImplementedError(f"{type(self).__name__} has no closed-form multilinear extension")

    def extension(self, x: ArrayLike) -> tuple[float, HostArray]:
        """F(x) and ∇F(x), exact, by a pass over all ω; only where there is a closed form and ω is finite."""
        raise NotImplementedError(f"{type(self).__name__} has no closed-form multilinear extension")

    def table(self, masks: HostArray) -> HostArray:
        """f_ω(S) for each mask (rows) and each ω that stands for the expectation (columns): one where f is exact."""
        return np.array([[self.value(mask)] for mask in masks])

    def sampled(self, count: int, seed: int) -> Function:
        """What greedy methods run on: f itself, or, where f is only sampled, its mean over `count` draws."""
        return self

    def check(self) -> None:
        """Raise an error where f is not what the guarantees need and a constructor could not know."""


def as_mask(chosen: Chosen, n: int) -> HostArray:
    """A set as a mask: from indices, a boolean mask, or a 0/1 vector of floats of length n."""
    array = np.asarray(list(chosen) if isinstance(chosen, set | frozenset | range) else chosen)
    if array.ndim != 1:
        raise ValueError(f"a set must be given as a list of indices or a mask of length {n}, got shape {array.shape}")
    if array.dtype == bool or array.dtype.kind == "f":
        if array.size == 0:
            return np.zeros(n, bool)
        if array.size != n or not np.all((array == 0) | (array == 1)):
            raise ValueError(f"a mask must have {n} entries that are 0 or 1; give indices as whole numbers")
        return array.astype(bool)
    if array.dtype.kind not in "iu":
        raise TypeError(f"a set must be given as a list of indices or a mask of length {n}, got {array.dtype} entries")
    if array.size and not (array.min() >= 0 and array.max() < n):
        wrong = array[(array < 0) | (array >= n)][0]
        raise ValueError(f"a set of elements 0..{n - 1} cannot hold {wrong}")
    mask = np.zeros(n, bool)
    mask[array] = True
    if mask.sum() != array.size:
        raise ValueError("a set cannot hold an element twice; give each index once")
    return mask


def as_point(x: ArrayLike, n: int) -> HostArray:
    """x ∈ [0, 1]ⁿ in float64; an error where it is not."""
    array = np.ascontiguousarray(x, np.float64)
    if array.shape != (n,):
        raise ValueError(f"x must have {n} entries, one per element, got shape {array.shape}")
    if not np.all((array >= -1e-6) & (array <= 1 + 1e-6)):
        raise ValueError("x must lie in [0, 1] in every entry: it holds probabilities")
    return np.clip(array, 0.0, 1.0)


def enumerate_extension(function: Function, x: ArrayLike) -> tuple[float, HostArray]:
    """F(x) and ∇F(x) from all 2ⁿ sets: the reference for small n.

    Args:
        function: a set function of at most 20 elements.
        x: n probabilities.

    Returns:
        F(x) and the gradient there.

    Raises:
        ValueError: where there are more than 20 elements, or x is no vector of n probabilities.

    Example:
        >>> from onesfw import submodular as sm
        >>> value, gradient = sm.enumerate_extension(sm.Coverage([[1, 1, 0], [0, 1, 1]]), [0.5, 0.5])
        >>> value, gradient.tolist()
        (1.75, [1.5, 1.5])
    """
    n = function.n
    if n > MOST_ENUMERATED:
        raise ValueError(f"enumerating 2^{n} sets takes too long; at most n = {MOST_ENUMERATED} elements")
    x = as_point(x, n)
    masks = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    values = np.array([function.value(mask) for mask in masks.astype(bool)])
    factors = np.where(masks == 1, x, 1 - x)
    gradient = np.empty(n)
    for i in range(n):
        others = np.prod(np.delete(factors, i, axis=1), axis=1)
        gradient[i] = np.sum(np.where(masks[:, i] == 1, values, -values) * others)
    return float(np.prod(factors, axis=1) @ values), gradient


def unchecked(kind: type[Json], **fields: Json) -> Json:
    """A set function from its fields, without its constructor's checks and copies."""
    made = object.__new__(kind)
    for name, value in fields.items():
        object.__setattr__(made, name, value)
    return made
