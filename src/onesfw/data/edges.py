"""The edges of a graph, read from a text: two node numbers a line, and a probability where one is asked for."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from onesfw.data.table_rows import is_number

COLUMN = "column"  # --probability column: the third one


def read_edges(path: Path, with_chances: bool) -> tuple[np.ndarray, np.ndarray | None]:
    """Pairs of node numbers, one a line, separated by blanks, tabs or commas, and the third column; # begins a comment.

    Weights, times and signs stand in third columns too: without `with_chances` a line of more than two is refused.
    """
    from onesfw.data.blocks import Input

    pairs: list[tuple[int, int]] = []
    chances: list[float] = []
    wanted = "two node numbers and a probability" if with_chances else "two node numbers"
    with Input(str(path)).open() as stream:
        for number, line in enumerate(stream, 1):
            text = line.decode("utf-8-sig", "replace").partition("#")[0].strip()
            words = text.replace(",", " ").split()
            if not words or (not pairs and not is_number(words[0])):  # a headline, or the address the file came from
                continue
            if len(words) > 2 and not with_chances:
                raise ValueError(
                    f"{path}, line {number}: two node numbers were expected, got {text[:60]!r}; give --probability "
                    f"{COLUMN} if the third column is an arc's probability, or keep only the first two columns"
                )
            try:
                first, second, *rest = words
                pairs.append((int(first), int(second)))
                if with_chances:
                    (chance,) = map(float, rest)
                    chances.append(chance)
            except ValueError:
                raise ValueError(f"{path}, line {number}: {wanted} were expected, got {text[:60]!r}") from None
            if with_chances and not 0 <= chance <= 1:
                raise ValueError(f"{path}, line {number}: a probability lies in [0, 1], got {rest[0]}")
    if not pairs:
        raise ValueError(f"{path} holds no edges: give text with two node numbers a line, or leave --influence out")
    if all(first == second for first, second in pairs):
        raise ValueError(f"{path} holds no edge between different nodes")
    try:
        ends = np.array(pairs, np.int64)
    except OverflowError:
        raise ValueError(f"{path} has node numbers of more than 64 bits; renumber the nodes") from None
    return ends, one_each(path, ends, np.array(chances)) if with_chances else None


def one_each(path: Path, ends: np.ndarray, chances: np.ndarray) -> np.ndarray:
    """The probabilities; a sentence where an edge stands there twice with two of them."""
    _, first, place = np.unique(ends, axis=0, return_index=True, return_inverse=True)
    other = np.flatnonzero(chances != chances[first][place.ravel()])
    if other.size:
        pair = " ".join(map(str, ends[other[0]]))
        raise ValueError(f"{path} has the edge {pair} twice, with different probabilities; keep one")
    return chances
