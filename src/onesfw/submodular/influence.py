"""f(S) = the expected number of nodes that a cascade started at S reaches."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from onesfw.arguments import real, whole_number
from onesfw.engine.keys import Key, seed_of
from onesfw.sets.host import on_host
from onesfw.submodular.base import (
    Bound,
    Chosen,
    Estimate,
    Function,
    Judge,
    Source,
    State,
    Verdict,
    as_mask,
    estimate,
)
from onesfw.submodular.certificates import verdict
from onesfw.submodular.coverage import Coverage
from onesfw.submodular.matroids import Matroid
from onesfw.submodular.row_functions import Stepper, relaxation, relaxation_anew, row_gradient_bound
from onesfw.trees import Array, HostArray, Tree, as_array

AVERAGED = 10_000  # reverse-reachable sets that stand for the expectation on the host
WEIGHTED_CASCADE = "weighted-cascade"
Arcs = tuple[HostArray, HostArray, HostArray]
BLOCK, BLOCK_ENTRIES = 1 << 16, 2_000_000  # sets drawn at once by a run, and the most nodes they may hold
SETS, ENTRIES = 400_000, 8_000_000  # of one sample that sets are judged on, and the most nodes they may hold
GLANCED, GLANCED_ENTRIES = 10_000, 500_000  # the same for a point of the trace


class Influence(Function):
    """f(S) = E(nodes reached from S) in the independent cascade: arc (u, v) is open with its probability.

    ω is a reverse-reachable set A, the nodes from which a uniformly drawn root is reached; f_ω(S) = n [S meets A], and
    E f_ω = f (Borgs, Brautbar, Chayes and Lucier 2014). So F_ω(x) = n (1 − ∏_{i∈A}(1 − x_i)), as for coverage. On the
    host `value`, `marginals` and greedy methods use a fixed sample of 10,000 sets; `sample` draws more,
    `spread` runs cascades.

    Args:
        edges: pairs of node labels, whole numbers; self-loops and repetitions are dropped.
        probability: of every arc; one number per given edge (undirected: both ways); or "weighted-cascade", one over
            the indegree of the arc's end.
        directed: whether influence runs only from the first node of a pair to the second.

    Raises:
        ValueError: where edges are no pairs of whole numbers, or a probability lies outside [0, 1].

    Example:
        >>> from onesfw import submodular as sm
        >>> f = sm.Influence([[1, 2], [1, 3], [1, 4]], 1.0, directed=True)
        >>> f.nodes.tolist(), f.spread([0], cascades=100).value
        ([1, 2, 3, 4], 4.0)
    """

    n: int = eqx.field(static=True)
    nodes: HostArray  # the labels, in order: element i is nodes[i]
    outward: Arcs  # (indptr, targets, chances) along the arcs
    inward: Arcs  # (indptr, sources, chances) against them
    closed_form: ClassVar[bool] = True

    def __init__(
        self, edges: ArrayLike, probability: float | str | ArrayLike = WEIGHTED_CASCADE, *, directed: bool = False
    ) -> None:
        pairs = as_array(edges, "Influence: edges")
        if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.shape[0] == 0 or pairs.dtype.kind not in "iu":
            raise ValueError(
                f"Influence: edges must be pairs of whole numbers, one pair a row, got {pairs.dtype} of {pairs.shape}"
            )
        self.nodes, flat = np.unique(pairs, return_inverse=True)
        self.n = int(self.nodes.size)
        ends = flat.reshape(pairs.shape)
        chances = edge_chances(probability, len(pairs))
        if not directed:
            ends = np.concatenate([ends, ends[:, ::-1]])
            chances = None if chances is None else np.concatenate([chances, chances])
        codes = ends[:, 0].astype(np.int64) * self.n + ends[:, 1]
        codes, kept = np.unique(codes[ends[:, 0] != ends[:, 1]], return_index=True)
        if codes.size == 0:
            raise ValueError("Influence: edges has no pair of different nodes")
        tails, heads = codes // self.n, codes % self.n
        if chances is None:
            arc_chances = 1.0 / np.bincount(heads, minlength=self.n)[heads]
        else:
            arc_chances = chances[ends[:, 0] != ends[:, 1]][kept]
        self.outward = by_node(tails, heads, arc_chances, self.n)
        self.inward = by_node(heads, tails, arc_chances, self.n)

    @property
    def omegas(self) -> None:
        return None

    def sample(self, count: int, seed: Key = 0, *, first: int = 0, entries: int = 50_000_000) -> Coverage:
        """Reverse-reachable sets number first, first + 1, … as `Coverage` with weights n/count: an estimate of f.

        Args:
            count: how many.
            seed: a number of up to 64 bits, or a JAX key; set number s is a pure function of (seed, s).
            first: the first one's number.
            entries: stop early once that many nodes are stored in all.
        """
        whole_number(count, "count", 1)
        indptr, indices = Sets(self, as_seed(seed)).draw(first, count, entries)
        drawn = indptr.size - 1
        return Coverage.from_rows(self.n, indptr, indices, np.full(drawn, self.n / drawn))

    def draw(self, key: Array, number: Array) -> Tree:
        words = jax.random.key_data(jax.random.fold_in(key, number))
        indptr, sources, chances = self.inward
        return on_host(reverse_set, jax.ShapeDtypeStruct((self.n,), jnp.float32), words, indptr, sources, chances)

    def value_at(self, s: Array, omega: Tree) -> Array:
        return self.n * jnp.any((omega > 0) & (s > 0.5)).astype(s.dtype)

    def extension_at(self, x: Array, omega: Tree) -> Array:
        return self.n * (1 - jnp.prod(jnp.where(omega > 0, 1 - x, 1.0)))

    def marginals_at(self, s: Array, omega: Tree) -> Array:
        return self.extension_gradient_at(s, omega)

    def extension_gradient_at(self, x: Array, omega: Tree) -> Array:
        factors = jnp.where(omega > 0, 1 - x, 1.0)
        one = jnp.ones(1, x.dtype)
        before = jnp.concatenate([one, jax.lax.cumprod(factors)[:-1]])
        after = jnp.concatenate([jax.lax.cumprod(factors, reverse=True)[1:], one])
        return jnp.where(omega > 0, self.n * before * after, 0.0)

    def spread(self, chosen: Chosen, cascades: int = 10_000, seed: Key = 0) -> Estimate:
        """f(S) from that many forward cascades, with its standard error: independent of every reverse-reachable set.

        `seed` is a number of up to 64 bits or a JAX key.
        """
        from onesfw.submodular.kernels import cascades as run

        count = whole_number(cascades, "cascades", 2)
        out = np.empty(count)
        seeds = np.flatnonzero(as_mask(chosen, self.n)).astype(np.int32)
        run(np.uint64((as_seed(seed) + (1 << 40)) % 2**64), 0, count, seeds, *self.outward, out)
        return Estimate(float(out.mean()), float(out.std(ddof=1) / np.sqrt(count)))

    def value(self, chosen: Chosen) -> float:
        """f(S), estimated from a fixed 10,000 reverse-reachable sets."""
        return self.sample(AVERAGED).value(chosen)

    def marginals(self, chosen: Chosen) -> HostArray:
        """g_i(S) = f(S + i) − f(S − i) for all i, estimated from a fixed 10,000 reverse-reachable sets."""
        return self.sample(AVERAGED).marginals(chosen)

    def state(self) -> State:
        """The empty set, on a fixed 10,000 reverse-reachable sets; `sample(count).state()` for more."""
        return self.sample(AVERAGED).state()

    def sampled(self, count: int, seed: int) -> Function:
        """`sample(count, seed)`: greedy methods run on a sample of reverse-reachable sets."""
        return self.sample(count, seed)

    def source(self, batch: int, key: Key) -> Source:
        """Reverse-reachable sets."""
        return Cascades(self, batch, seed_of(key))

    def judge(self, matroid: Matroid, seed: int, other: int) -> Judge:
        """Two samples of reverse-reachable sets."""
        return SampledSets(self, matroid, seed, other)


class Sets:
    """A stream of reverse-reachable sets with its working memory."""

    def __init__(self, function: Influence, seed: int) -> None:
        self.arcs = function.inward
        self.seed = np.uint64(seed)
        self.reached = np.zeros(function.n, np.int64)
        self.stamps = np.zeros(1, np.int64)
        self.queue = np.empty(function.n, np.int32)

    def draw(self, first: int, count: int, entries: int = 50_000_000) -> tuple[HostArray, HostArray]:
        """Sets number first, …: indptr and the nodes; fewer than `count` once `entries` nodes are stored."""
        from onesfw.submodular.kernels import reverse_sets

        lengths = np.zeros(count, np.int64)
        nodes = reverse_sets(
            self.seed, first, count, *self.arcs, entries, self.reached, self.stamps, self.queue, lengths
        )
        lengths = lengths[: np.count_nonzero(lengths)]  # a set holds at least its root
        return np.concatenate([[0], np.cumsum(lengths)]), nodes


class Cascades(Source):
    """Reverse-reachable sets, drawn in blocks and thrown away after use."""

    closed = True

    def __init__(self, function: Influence, batch: int, seed: int) -> None:
        self.n, self.batch, self.sets = function.n, batch, Sets(function, seed)
        self.drawn, self.used, self.held = 0, 0, 0
        self.advance: Stepper | None = None

    def update(self, d: HostArray, x: HostArray, previous: HostArray, rho: float, t: int) -> None:
        if self.advance is None or self.used + self.batch > self.held:
            self.drawn += self.used
            # a block may end early; the batch must fit all the same
            room = max(BLOCK_ENTRIES, self.batch * self.n)
            indptr, nodes = self.sets.draw(self.drawn, max(BLOCK, self.batch), room)
            self.used, self.held = 0, indptr.size - 1
            weights = np.full(self.held, self.n / self.held)
            self.advance = Coverage.from_rows(self.n, indptr, nodes, weights).stepper(float(self.held))
        which = np.arange(self.used, self.used + self.batch)
        self.used += self.batch
        self.advance(d, x, previous, rho, which)


class SampledSets(Judge):
    """One sample of reverse-reachable sets to choose with, another to report on."""

    exact: ClassVar[bool] = False

    def __init__(self, function: Influence, matroid: Matroid, seed: int, other: int) -> None:
        self.function, self.matroid, self.seed, self.other = function, matroid, seed, other
        self.few = function.sample(GLANCED, seed, first=2**40, entries=GLANCED_ENTRIES)

    @cached_property
    def one(self) -> Coverage:
        """What sets are chosen with."""
        return self.function.sample(SETS, self.seed, entries=ENTRIES)

    @cached_property
    def another(self) -> Coverage:
        """What the report is about."""
        return self.function.sample(SETS, self.other, entries=ENTRIES)

    def choose(self, chosen: HostArray) -> float:
        return self.one.value(chosen)

    def marginals(self, chosen: HostArray) -> HostArray:
        return self.one.marginals(chosen)

    def report(self, chosen: HostArray, x: HostArray) -> Verdict:
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

    def fractional(self, x: HostArray) -> Estimate:
        sample = self.another
        return estimate(sample.n * sample.served(x, np.arange(sample.omegas), np.zeros(sample.n)))

    def glance(self, x: HostArray) -> Estimate:
        few = self.few
        return estimate(few.n * few.served(x, np.arange(few.omegas), np.zeros(few.n)))


def sampled_gradient_bound(function: Coverage, x: HostArray, matroid: Matroid) -> Bound:
    """The certificate by F(x) and ∇F(x) on rows that are a sample, with a term per row."""
    from onesfw.submodular.kernels import cover_slopes

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


def reverse_set(words: HostArray, indptr: HostArray, sources: HostArray, chances: HostArray) -> HostArray:
    """One reverse-reachable set as a 0/1 vector, from two words of a key."""
    from onesfw.submodular.kernels import reverse_sets

    n = indptr.size - 1
    seed = np.uint64(words[0]) << np.uint64(32) | np.uint64(words[1])
    nodes = reverse_sets(
        seed, 0, 1, indptr.astype(np.int64), sources.astype(np.int32), chances.astype(np.float64), n,
        np.zeros(n, np.int64), np.zeros(1, np.int64), np.empty(n, np.int32), np.zeros(1, np.int64),
    )  # fmt: skip
    mask = np.zeros(n, np.float32)
    mask[nodes] = 1.0
    return mask


def as_seed(seed: Key) -> int:
    """64 bits from a number or a JAX key; an error where it is none."""
    if isinstance(seed, int | np.integer) and not isinstance(seed, bool):
        if not 0 <= seed < 2**64:
            raise ValueError(f"seed must lie in 0..2^64 − 1, got {seed}")
        return int(seed)
    try:
        return seed_of(seed)
    except TypeError:
        raise TypeError(f"seed must be a whole number or one JAX key, got {seed!r:.200}") from None


def edge_chances(probability: float | str | ArrayLike, count: int) -> HostArray | None:
    """A probability per given edge; None for the weighted cascade, which needs the indegrees."""
    if isinstance(probability, str):
        if probability != WEIGHTED_CASCADE:
            raise ValueError(f"Influence: probability must be a number, an array or {WEIGHTED_CASCADE!r}")
        return None
    one = real(probability)
    chances = np.full(count, one) if one is not None else as_array(probability, "Influence: probability")
    if chances.dtype.kind not in "fiu" or chances.shape != (count,):
        raise ValueError(
            f"Influence: probability must be one number, {WEIGHTED_CASCADE!r}, or one number per edge ({count}), got "
            f"{probability!r:.200}"
        )
    if not np.all((chances >= 0) & (chances <= 1)):
        raise ValueError("Influence: probability must lie in [0, 1]")
    return chances.astype(np.float64)


def by_node(tails: HostArray, heads: HostArray, chances: HostArray, n: int) -> Arcs:
    """Arcs sorted by their tails: indptr, heads, chances."""
    order = np.argsort(tails, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(tails, minlength=n))])
    return indptr, heads[order].astype(np.int32), chances[order]
