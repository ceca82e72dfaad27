"""How many columns stability selection selects by mistake, at most in expectation.

A half-sample selects q of p columns on average. Columns that one of them selects with a probability of at most θ = q/p
are those of low selection probability, noise mostly; the bounds are on how many of these are stable. No one of them
asks for noise columns that are alike, nor for a procedure that is better than guessing (Shah and Samworth 2013).
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil, exp

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from onesfw.arguments import choose
from onesfw.trees import HostArray

ASSUMPTIONS = {
    "none": "q²/((2τ − 1)p), for any distribution (Meinshausen and Bühlmann 2010; Shah and Samworth 2013, theorem 1)",
    "r_concave": "of such a column, the share of pairs that select it twice has a −1/2-concave distribution, and the "
    "share of halves that select it a −1/4-concave one (Shah and Samworth 2013, section 3.3)",
}
WIDEST = 30.0  # log a beyond which (a + i)^(1/r) is as good as constant, or as good as one atom


def false_selections(columns: int, selected: float, threshold: float, pairs: int, assumption: str = "none") -> float:
    """An upper bound of the expected number of stable columns among those of low selection probability.

    Args:
        columns: p.
        selected: q, the columns that a half-sample selects, at most or on average, over all radii together.
        threshold: τ, the share of half-samples that makes a column stable; over a half.
        pairs: B, the complementary pairs of half-samples.
        assumption: "none", or "r_concave"; `ASSUMPTIONS` says what they mean.

    Returns:
        The bound, at most p.

    Example:
        >>> from onesfw.linear.false_selections import false_selections
        >>> false_selections(1000, 50, 0.75, 50)
        5.0
        >>> false_selections(1000, 50, 0.75, 50, "r_concave") < 1
        True
    """
    choose(assumption, ASSUMPTIONS, "assumption")
    share = min(1.0, selected / columns)
    least = ceil(2 * pairs * threshold - 1e-9)  # of the 2B half-samples
    twice = least - pairs  # of the B pairs, at least so many then select it in both halves
    if twice <= 0:
        return float(columns)
    found = share * selected * pairs / twice
    if assumption == "r_concave":
        found = min(
            found,
            columns * largest_tail(share**2, twice, pairs, -1 / 2),
            columns * largest_tail(share, least, 2 * pairs, -1 / 4),
        )
    return float(min(found, columns))


def most_selected(columns: int, wanted: float, threshold: float, pairs: int, assumption: str = "none") -> int:
    """The largest q whose bound is at most `wanted`; 0 where there is none.

    Example:
        >>> from onesfw.linear.false_selections import most_selected
        >>> most_selected(1000, 1.0, 0.75, 50)
        22
    """
    low, high = 0, columns + 1
    while high - low > 1:
        middle = (low + high) // 2
        if false_selections(columns, middle, threshold, pairs, assumption) <= wanted * (1 + 1e-9):
            low = middle
        else:
            high = middle
    return low


@lru_cache(4096)
def largest_tail(mean: float, least: int, most: int, r: float) -> float:
    """max P(X ≥ least) over the r-concave distributions on 0, …, most with E X ≤ mean · most, where r < 0.

    That f is r-concave says that f^r is convex. The maximum is attained where f(i) = c (a + i)^(1/r) up to some k and
    f(k + 1) is anything from 0 to what the formula gives there: c follows from the mean. One number, a, is left to
    search for each k. Up to 2 · mean the formula does not hold, and 1 is returned.
    """
    centre, power = mean * most, 1 / r
    if centre <= 0:
        return 0.0
    if least <= ceil(2 * centre):
        return 1.0
    places = np.arange(most + 1)

    def excess(size: float, k: int) -> float:
        """How far the mean of the truncated shape lies above the one it is to have."""
        shape = weights(size, k)
        return float(places[: k + 1] @ shape / shape.sum()) - centre

    def weights(size: float, k: int) -> HostArray:
        """(a + i)^(1/r) for i up to k, over its value at 0, where log a = size."""
        return (1 + places[: k + 1] * exp(-size)) ** power

    def root(k: int) -> float:
        """log a at which the shape that ends at k has the right mean."""
        if excess(WIDEST, k) <= 0:
            return WIDEST
        return float(brentq(excess, -WIDEST, WIDEST, args=(k,), xtol=1e-12))

    def miss(size: float, k: int) -> float:
        """P(X < least), the last atom at k + 1."""
        shape = weights(size, k)
        return float((k + 1 - centre) * shape[:least].sum() / ((k + 1 - places[: k + 1]) @ shape))

    smallest, wide = 1.0, root(least - 1)
    for k in range(least - 1, most):
        narrow = root(k + 1)
        inside = minimize_scalar(miss, bounds=(narrow, wide), args=(k,), method="bounded", options={"xatol": 1e-9})
        smallest = min(smallest, float(inside.fun), miss(narrow, k), miss(wide, k))
        wide = narrow
    return min(1.0, max(0.0, 1.0 - smallest))
