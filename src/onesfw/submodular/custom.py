"""A user's own set function, written in JAX, and a check of what the guarantees need of it."""

from __future__ import annotations

import warnings
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from onesfw.arguments import whole_number
from onesfw.engine.keys import Key, generator
from onesfw.objectives.user_functions import require_callable, require_scalar, shape_of, step_key
from onesfw.submodular.base import (
    Bound,
    Chosen,
    Function,
    Judge,
    Source,
    State,
    Verdict,
    as_mask,
    estimate,
    unchecked,
)
from onesfw.submodular.certificates import ByMarginals, gradient_bound, verdict
from onesfw.submodular.extension import TracedSource
from onesfw.submodular.matroids import Matroid
from onesfw.trees import Array, HostArray, Tree
from onesfw.trees import Function as UserFunction

AVERAGED = 1_000  # draws of ω that stand for the expectation on the host, and that are evaluated at once
EVALUATIONS, LEAST, MOST = 2_000_000, 1_000, 100_000  # of f_ω for a report, and how many ω they may be
SLACK = 5.0  # standard errors by which a violation must exceed 0


class SetFunction(Function):
    """f(S) = value(s) or E_ω value(s, ω), s the 0/1 vector of S: any function, written in JAX.

    f must be monotone and submodular with f(∅) ≥ 0 for the guarantees to hold; `check=True` looks for a counterexample
    before anything else. With `sample`, a step draws one ω; on the host f is the mean over a fixed 1,000 draws. All
    marginals cost n + 1 evaluations.

    Args:
        value: s ↦ one number, or (s, ω) ↦ one number where `sample` is given.
        n: the number of elements.
        sample: key ↦ ω.
        check: whether to look for a violation of monotonicity or submodularity now.

    Raises:
        TypeError: where value or sample cannot be called, or value does not return one number.
        ValueError: where n is no positive whole number, or, with `check`, where a counterexample was found.

    Example:
        >>> import jax.numpy as jnp
        >>> from onesfw import submodular as sm
        >>> f = sm.SetFunction(lambda s: jnp.sqrt(jnp.sum(s)), 9)
        >>> f.value([0, 1, 2, 3])
        2.0
    """

    function: UserFunction = eqx.field(static=True)
    n: int = eqx.field(static=True)
    sample: UserFunction | None = eqx.field(static=True)
    many: UserFunction = eqx.field(static=True)
    seed: int = eqx.field(static=True)
    count: int = eqx.field(static=True)

    def __init__(self, value: UserFunction, n: int, sample: UserFunction | None = None, *, check: bool = False) -> None:
        require_callable(value, "SetFunction", "value")
        require_callable(sample, "SetFunction", "sample", optional=True)
        self.n = whole_number(n, "n", 1)
        self.function, self.sample = value, sample
        like = jax.ShapeDtypeStruct((self.n,), jnp.float32)
        if sample is None:
            require_scalar(shape_of(value, "SetFunction", "value(s)", like), "SetFunction", "value(s)")
        else:
            omega = shape_of(sample, "SetFunction", "sample(key)", jax.random.key(0))
            require_scalar(
                shape_of(value, "SetFunction", "value(s, omega)", like, omega), "SetFunction", "value(s, omega)"
            )
        self.many, self.seed, self.count = evaluator(value, sample), 0, 1 if sample is None else AVERAGED
        if check:
            check_submodular(self)

    @property
    def omegas(self) -> int | None:
        return 1 if self.sample is None else None

    def draw(self, key: Array, number: Array) -> Tree:
        return jnp.zeros((), jnp.int32) if self.sample is None else self.sample(step_key(key, number))

    def value_at(self, s: Array, omega: Tree) -> Array:
        with warnings.catch_warnings():  # JAX remembers arrays that it met in double precision, and cuts them to s's
            warnings.filterwarnings("ignore", "Explicitly requested dtype float64", UserWarning)
            result = self.function(s) if self.sample is None else self.function(s, omega)
        return jnp.asarray(result, s.dtype)

    @property
    def draws(self) -> HostArray:
        """The numbers of the draws that stand for the expectation on the host; one where nothing is random."""
        return np.arange(self.count, dtype=np.int32)

    def resampled(self, seed: int, count: int = AVERAGED) -> SetFunction:
        """The same function on other draws: `count` of those that belong to the 64 bits of `seed`."""
        return unchecked(
            SetFunction, function=self.function, n=self.n, sample=self.sample, many=self.many, seed=seed, count=count
        )

    def values(self, masks: HostArray, numbers: HostArray) -> HostArray:
        """f_ω(S) for each mask (rows) and each draw (columns), some of both at a time."""
        words = np.array([self.seed >> 32, self.seed & 0xFFFFFFFF], np.uint32)
        parts = [np.asarray(part, np.float64) for part in np.array_split(masks, slices(len(masks)))]
        blocks = np.array_split(numbers, -(-numbers.size // AVERAGED))
        with jax.enable_x64(True):
            rows = [np.hstack([np.asarray(self.many(part, block, words)) for block in blocks]) for part in parts]
        return np.concatenate(rows).astype(np.float64)

    def value(self, chosen: Chosen) -> float:
        """f(S), or its mean over a fixed 1,000 draws of ω."""
        return float(self.terms(chosen).mean())

    def terms(self, chosen: Chosen) -> HostArray:
        """f_ω(S) for each of the fixed draws."""
        return self.values(as_mask(chosen, self.n)[None], self.draws)[0]

    def marginals(self, chosen: Chosen) -> HostArray:
        """g_i(S) = f(S + i) − f(S − i) for all i, from n + 1 evaluations."""
        mask = as_mask(chosen, self.n)
        flipped = mask[None] ^ np.eye(self.n, dtype=bool)
        numbers = self.draws
        here = self.values(mask[None], numbers).mean()
        there = self.values(flipped, numbers).mean(1)
        return np.where(mask, here - there, there - here)

    def state(self) -> State:
        """The empty set; a gain costs one evaluation."""
        return Evaluated(self)

    def table(self, masks: HostArray) -> HostArray:
        return self.values(masks, self.draws)

    def source(self, batch: int, key: Key) -> Source:
        """Draws of ω, and sets drawn from x."""
        return TracedSource(self, batch, key)

    def judge(self, matroid: Matroid, seed: int, other: int) -> Judge:
        """Exact where nothing is random; two samples of ω otherwise."""
        if self.omegas is None:
            return SampledValues(self, matroid, seed, other)
        return ByMarginals(self, matroid, seed)

    def check(self) -> None:
        """Raise an error where f(∅) < 0: no share of OPT is promised then."""
        nothing = estimate(self.terms([]))
        if nothing.value < -SLACK * nothing.stderr - 1e-9:
            raise ValueError(
                f"function is negative on the empty set, {nothing.value:.6g}; add a constant so that f(∅) ≥ 0"
            )


class Evaluated(State):
    """The set as a mask, and f there."""

    def __init__(self, function: SetFunction) -> None:
        self.function = function
        self.mask = np.zeros(function.n, bool)
        self.value, self.chosen = function.value(np.zeros(0, int)), []

    def gains(self, candidates: HostArray) -> HostArray:
        numbers = self.function.draws
        grown = self.mask[None] | (np.arange(self.mask.size) == candidates[:, None])
        return self.function.values(grown, numbers).mean(1) - self.value

    def add(self, i: int) -> None:
        self.value += float(self.gains(np.array([i]))[0])
        self.mask[i] = True
        self.chosen.append(i)


class SampledValues(ByMarginals):
    """A stochastic function of one's own: one sample of ω to choose with, another to report on."""

    exact: ClassVar[bool] = False

    def __init__(self, function: SetFunction, matroid: Matroid, seed: int, other: int) -> None:
        super().__init__(function.resampled(seed), matroid, seed)
        draws = min(max(EVALUATIONS // (function.n + 1), LEAST), MOST) // LEAST * LEAST
        self.fresh = function.resampled(other, draws)

    def report(self, chosen: HostArray, x: HostArray) -> Verdict:
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


def slices(count: int) -> int:
    """Into how many parts evaluations are cut, so that a part stays small."""
    return max(1, count // 256)


def evaluator(value: UserFunction, sample: UserFunction | None) -> UserFunction:
    """(masks, draw numbers, the words of a key) ↦ f_ω(S) for all pairs, compiled."""

    def one(s: Array, number: Array, words: Array) -> Array:
        if sample is None:
            return jnp.asarray(value(s), s.dtype)
        return jnp.asarray(value(s, sample(step_key(jax.random.wrap_key_data(words), number))), s.dtype)

    across = jax.vmap(one, (None, 0, None))
    return jax.jit(lambda masks, numbers, words: jax.lax.map(lambda s: across(s, numbers, words), masks, batch_size=16))


def check_submodular(function: Function, trials: int = 300, key: Key = 0) -> None:
    """Look for sets that violate monotonicity or diminishing returns; raise a ValueError that shows one.

    Random S ⊂ T and i outside T: f(S + i) − f(S) ≥ f(T + i) − f(T) and f(S + i) ≥ f(S), up to rounding; for a random
    f_ω, up to five standard errors on the same 1,000 draws. Nothing found is no proof.

    Args:
        function: a set function from `onesfw.submodular`.
        trials: how many pairs of sets to try.
        key: of the sets, an integer seed or a JAX key.

    Raises:
        TypeError: where the key is none.
        ValueError: where f(∅) < 0, or some sets violate monotonicity or diminishing returns.

    Example:
        >>> import jax.numpy as jnp
        >>> from onesfw import submodular as sm
        >>> sm.check_submodular(sm.SetFunction(lambda s: jnp.sqrt(jnp.sum(s)), 5), trials=20)
    """
    rng = generator(key)
    n = function.n
    quadruples = [draw_sets(n, rng) for _ in range(trials)]
    masks = np.array([np.zeros(n, bool), *(mask for sets in quadruples for mask in sets)])
    values = function.table(masks)

    def violates(difference: HostArray, scale: float) -> bool:
        error = difference.std(ddof=1) / np.sqrt(difference.size) if difference.size > 1 else 0.0
        return bool(difference.mean() < -(1e-6 * scale + SLACK * error))

    if violates(values[0], 1.0):
        raise ValueError(f"value is negative on the empty set, {values[0].mean():.6g}; add a constant so that f(∅) ≥ 0")
    for number, (smaller, grown, larger, _) in enumerate(quadruples):
        low, low_plus, high, high_plus = values[1 + 4 * number : 5 + 4 * number]
        scale = max(1.0, *(float(abs(v.mean())) for v in (low, low_plus, high, high_plus)))
        i = int(np.flatnonzero(grown & ~smaller)[0])
        small, large = np.flatnonzero(smaller).tolist(), np.flatnonzero(larger).tolist()
        for before, after, inside in ((low, low_plus, small), (high, high_plus, large)):
            if violates(after - before, scale):
                raise ValueError(
                    f"value is not monotone: f(S) = {before.mean():.6g} for S = {inside}, but f(S + {i}) = "
                    f"{after.mean():.6g}"
                )
        if violates((low_plus - low) - (high_plus - high), scale):
            raise ValueError(
                f"value is not submodular: adding {i} to S = {small} gains {(low_plus - low).mean():.6g}, but adding "
                f"it to the larger T = {large} gains {(high_plus - high).mean():.6g}"
            )


def draw_sets(n: int, rng: np.random.Generator) -> tuple[HostArray, HostArray, HostArray, HostArray]:
    """Random S, S + i, T, T + i with S ⊂ T and i outside T."""
    larger = rng.random(n) < rng.random()
    plus = np.arange(n) == rng.integers(n)
    larger &= ~plus
    smaller = larger & (rng.random(n) < rng.random())
    return smaller, smaller | plus, larger, larger | plus
