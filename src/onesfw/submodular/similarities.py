"""How alike elements are, from one row of features each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from onesfw.arguments import choose

KERNELS = ("rbf", "cosine", "linear")
ACCURACY = 1e-8  # of d² relative to its median


def similarities(features: Any, kernel: str | Callable[..., Any]) -> np.ndarray:
    """The elements' similarities to one another, from one row of numbers each."""
    points = feature_matrix(features, "FacilityLocation")
    if callable(kernel):
        made = np.asarray(kernel(points, points))
        if made.shape != (points.shape[0], points.shape[0]):
            raise ValueError(
                f"FacilityLocation: kernel must return one number per pair, {points.shape[0]} × {points.shape[0]}, "
                f"got shape {made.shape}"
            )
        return made
    choose(kernel, KERNELS, "kernel")
    if kernel == "rbf":
        return gaussian(points)
    if kernel == "cosine":
        points = shrunk(points, axis=1)
        lengths = np.linalg.norm(points, axis=1, keepdims=True)
        points = points / np.where(lengths > 0, lengths, 1.0)
    with np.errstate(over="ignore"):  # what does not fit is refused as a similarity
        products = points @ points.T
    return np.maximum(products, 0.0, out=products)


def gaussian(points: np.ndarray) -> np.ndarray:
    """exp(−d²/median d²) for all pairs; 12 bytes a pair at most.

    d² = |a|² + |b|² − 2ab is one product of matrices, right up to rounding errors of the longest |a|²: points are
    centred first, and where an outlier makes those errors matter, differences are squared instead.
    """
    points = shrunk(points)
    points = shrunk(points - points.mean(0))
    squares = np.einsum("ij,ij->i", points, points)
    distances = points @ points.T
    distances *= -2.0
    distances += squares
    distances += squares[:, None]
    np.maximum(distances, 0.0, out=distances)
    np.fill_diagonal(distances, 0.0)
    scale = median_of_pairs(distances)
    if scale * ACCURACY < np.finfo(float).eps * float(squares.max()):
        from scipy.spatial.distance import cdist

        cdist(points, points, "sqeuclidean", out=distances)
        scale = median_of_pairs(distances)
    distances /= -(scale if scale > 0 else 1.0)
    return np.exp(distances, out=distances)


def median_of_pairs(distances: np.ndarray) -> float:
    """The median of a symmetric matrix that is 0 on the diagonal and nowhere negative, from its upper half."""
    n = distances.shape[0]
    upper = np.empty(n * (n - 1) // 2)
    end = 0
    for i in range(n - 1):
        start, end = end, end + n - 1 - i
        upper[start:end] = distances[i, i + 1 :]
    # In order, the whole matrix is n zeros and then every entry of the upper half twice.
    places = [(rank - n) // 2 for rank in ((n * n - 1) // 2, n * n // 2) if rank >= n]
    if not places:
        return 0.0
    upper.partition(places)
    return float(sum(upper[place] for place in places)) / 2


def shrunk(points: np.ndarray, axis: int | None = None) -> np.ndarray:
    """The points times a power of 2, one for all or one per row: no entry above 1, so that squares neither overflow nor
    vanish, and not one digit lost."""
    _, exponents = np.frexp(np.abs(points).max(axis=axis, keepdims=axis is not None))
    return np.ldexp(points, -exponents)


def feature_matrix(features: Any, name: str) -> np.ndarray:
    """Finite features, a row per element, or a sentence."""
    points = np.asarray(features)
    if points.dtype.kind not in "fiub":
        raise TypeError(f"{name}: features must hold numbers, got dtype {points.dtype}")
    if points.ndim != 2 or 0 in points.shape:
        raise ValueError(f"{name}: features must have a row per element and at least one column, got {points.shape}")
    points = points.astype(np.float64)
    if not np.all(np.isfinite(points)):
        raise ValueError(f"{name}: features has NaN or infinite entries; remove or impute them first")
    return points
