"""Which rows of the data a run learns from: folds, bootstraps and half-samples, for `fw.sweep` and `FiniteSum`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from onesfw.arguments import whole_number
from onesfw.engine.keys import Key, generator
from onesfw.trees import HostArray

__all__ = ["bootstrap", "folds", "halves"]


def folds(n: int, k: int = 10, *, labels: npt.ArrayLike | None = None, key: Key = 0) -> list[HostArray]:
    """The training rows of k-fold cross-validation: all but a k-th of the rows, another k-th each time.

    Args:
        n: the number of rows.
        k: the number of folds, from 2 to n.
        labels: one for each row; every fold then has its share of every label.
        key: an integer seed or a JAX key.

    Returns:
        k arrays of row numbers, rising.

    Raises:
        ValueError: where there are fewer rows, or fewer of one label, than folds.

    Example:
        >>> import onesfw as fw
        >>> [len(rows) for rows in fw.rows.folds(10, 3)]
        [6, 7, 7]
    """
    n = whole_number(n, "n", 2)
    k = whole_number(k, "k", 2)
    if k > n:
        raise ValueError(f"k: {k} folds need at least {k} rows, and there are {n}; take fewer folds")
    order = generator(key).permutation(n)
    if labels is not None:
        order = order[np.argsort(checked_labels(labels, n, k)[order], kind="stable")]
    fold = np.empty(n, np.int64)
    fold[order] = np.arange(n) % k
    return [np.flatnonzero(fold != number) for number in range(k)]


def checked_labels(labels: npt.ArrayLike, n: int, k: int, part: str = "fold") -> HostArray:
    """Labels as numbers; raises ValueError where a fold, or a half, would have none of one of them."""
    values = np.asarray(labels)
    if values.shape != (n,):
        raise ValueError(f"labels must be one for each of the {n:,} rows, got shape {values.shape}")
    names, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    if len(names) > 1 and counts.min() < k:
        rare = names[counts.argmin()]
        few = f"only {counts.min()} rows have" if counts.min() > 1 else "only 1 row has"
        fewer, remedy = (f"fewer than {k} folds, and a fold", "take fewer folds, or leave that label out")
        if part == "half":
            fewer, remedy = "and a half", "leave that label out, or join it with another"
        raise ValueError(f"labels: {few} the label {rare}, {fewer} would have none of them; {remedy}")
    return places


def bootstrap(n: int, times: int = 1000, *, key: Key = 0) -> list[HostArray]:
    """Bootstrap samples: n rows each, drawn with replacement.

    Args:
        n: the number of rows.
        times: how many samples.
        key: an integer seed or a JAX key.

    Returns:
        Arrays of n row numbers, rising, some of them several times.

    Raises:
        TypeError, ValueError: where a number is no whole number or too small, or the key is none.

    Example:
        >>> import onesfw as fw
        >>> first, second = fw.rows.bootstrap(100, 2)
        >>> len(first), 55 < len(set(first.tolist())) < 72
        (100, True)
    """
    n, times = whole_number(n, "n", 2), whole_number(times, "times", 1)
    rng = generator(key)
    return [np.sort(rng.integers(0, n, n)) for _ in range(times)]


def halves(n: int, times: int = 100, *, labels: npt.ArrayLike | None = None, key: Key = 0) -> list[HostArray]:
    """Half-samples in complementary pairs (Shah and Samworth 2013): each half, then the other one.

    Args:
        n: the number of rows; of an odd number a row is left out of both halves of a pair.
        times: how many half-samples, an even number.
        labels: one for each row; both halves of a pair then have their share of every label.
        key: an integer seed or a JAX key.

    Returns:
        Arrays of ⌊n/2⌋ row numbers, rising.

    Raises:
        ValueError: where `times` is odd, or a label has one row only.

    Example:
        >>> import onesfw as fw
        >>> first, second = fw.rows.halves(6, 2)
        >>> sorted([*first.tolist(), *second.tolist()])
        [0, 1, 2, 3, 4, 5]
    """
    n, times = whole_number(n, "n", 2), whole_number(times, "times", 2)
    if times % 2:
        raise ValueError(f"times must be even, for half-samples come in pairs, got {times}; take {times + 1}")
    places = np.zeros(n, np.int64) if labels is None else checked_labels(labels, n, 2, "half")
    rng, half, most = generator(key), n // 2, int(np.bincount(places).argmax())
    found = []
    for _ in range(times // 2):
        order = rng.permutation(n)
        if labels is not None:
            if n % 2:  # the row left out is one of the most frequent label
                order = np.delete(order, np.flatnonzero(places[order] == most)[0])
            order = order[np.argsort(places[order], kind="stable")]
            order = np.concatenate([order[0::2], order[1::2]])
        found += [np.sort(order[:half]), np.sort(order[half : 2 * half])]
    return found
