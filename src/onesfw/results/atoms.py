"""x as a mean of vertices that a run has kept."""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np

from onesfw.trees import Floats, HostArray, Tree


class Atoms(NamedTuple):
    """Vertices and their weights: Σ weights · vertices is a point of the set.

    Args:
        vertices: along a leading axis, the one with the largest weight first.
        weights: above 0, adding up to 1.
    """

    vertices: Tree
    weights: Floats


def atoms_of(x: Tree, vertices: Tree) -> Atoms:
    """The mean of given vertices that is nearest to x, by non-negative least squares, which takes few of them."""
    from scipy.optimize import nnls  # a quarter of a second to import: only where it is needed

    table, point = rows_of(vertices), np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(x)]).astype(float)
    unit = max(1.0, float(np.abs(table).max()) * np.sqrt(table.shape[1]))  # the weight of "they add up to 1"
    system = np.concatenate([table.T, np.full((1, len(table)), unit)])
    aim = np.append(point, unit)
    if len(system) > len(table):  # the same problem in as many rows as there are vertices
        q, system = np.linalg.qr(system)
        aim = q.T @ aim
    weights = nnls(system, aim)[0]
    order = np.argsort(-weights, kind="stable")[: np.count_nonzero(weights)]
    return Atoms(jax.tree.map(lambda leaf: leaf[order], vertices), weights[order] / weights.sum())


def rows_of(vertices: Tree) -> HostArray:
    """Every vertex as a row."""
    return np.concatenate([np.reshape(leaf, (len(leaf), -1)) for leaf in jax.tree.leaves(vertices)], 1).astype(float)
