"""How far to go from the factors along a direction, and back into their ball; compiled, for it is asked every step."""

from __future__ import annotations

from numba import njit

from onesfw.trees import HostArray

GOLDEN = 0.6180339887498949

Polynomial = tuple[float, float, float]
"""Its coefficients, those of higher powers last."""


@njit(cache=True, nogil=True)
def room(norms: Polynomial, radius: float, boundary: bool, t: float) -> float:
    """What X is multiplied by after a step t, back into the ball, or onto its boundary.

    The squared size of the factors is norms_0 + norms_1 t + norms_2 t².
    """
    share = 2 * radius / max(norms[0] + t * (norms[1] + t * norms[2]), 1e-300)
    return share if boundary else min(1.0, share)


@njit(cache=True, nogil=True)
def height(
    a: HostArray, norms: Polynomial, shares: Polynomial, radius: float, boundary: bool, t: float
) -> float:  # fmt: skip
    """Σ c (s(t) (x0 + t x1 + t² x2) + t w − T)² and the biases' part, from the sums of `moments`."""
    s = room(norms, radius, boundary, t)
    squares = a[0] + t * (2 * a[1] + t * (2 * a[2] + a[3] + t * (2 * a[4] + t * a[5])))
    cross, beside = a[6] + t * (a[7] + t * a[8]), a[10] + t * (a[11] + t * a[12])
    entries = s * s * squares + 2 * s * (t * beside - cross) + t * t * a[13] - 2 * t * a[14] + a[9]
    return entries + shares[0] + t * (shares[1] + t * shares[2])


@njit(cache=True, nogil=True)
def search(a: HostArray, norms: Polynomial, shares: Polynomial, radius: float, boundary: bool) -> float:
    """argmin of `height` over t ≥ 0: a bracket, then golden sections; no pass over the entries."""
    here, reach = height(a, norms, shares, radius, boundary, 0.0), 1.0
    while height(a, norms, shares, radius, boundary, reach) >= here and reach > 1e-9:
        reach *= 0.25
    while reach < 1e6 and height(a, norms, shares, radius, boundary, 2 * reach) < height(
        a, norms, shares, radius, boundary, reach
    ):
        reach *= 2
    low, high = 0.0, 2 * reach
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left = height(a, norms, shares, radius, boundary, left)
    at_right = height(a, norms, shares, radius, boundary, right)
    for _ in range(32):
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = height(a, norms, shares, radius, boundary, left)
        else:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = height(a, norms, shares, radius, boundary, right)
    t = (low + high) / 2
    return t if height(a, norms, shares, radius, boundary, t) < here else 0.0
