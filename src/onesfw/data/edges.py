"""The edges of a graph, read from a text: two node numbers a line, and a probability where one is asked for."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator

import numpy as np

from onesfw.arguments import named
from onesfw.data.blocks import Input
from onesfw.data.tables import is_number

COLUMN = "column"  # probability: the third one
MOST_EDGES = 50_000_000  # a small compressed file may hold more


def read_edges(path: str | os.PathLike[str], with_chances: bool) -> tuple[np.ndarray, np.ndarray | None]:
    """Pairs of node numbers, one a line, separated by blanks, tabs or commas, and the third column; # begins a comment.

    Weights, times and signs stand in third columns too: without `with_chances` a line of more than two is refused.
    """
    file = Input(os.fspath(path))
    ends, chances = array("q"), array("d")
    wanted = "two node numbers and a probability" if with_chances else "two node numbers"
    for number, text in numbered_lines(file):
        words = text.replace(",", " ").split()
        if not words or (not ends and not is_number(words[0])):  # a headline, or the address the file came from
            continue
        if len(words) > 2 and not with_chances:
            raise ValueError(
                f"{file.name}, line {number}: two node numbers were expected, got {text[:60]!r}; give "
                f"{named('probability')} {COLUMN} if the third column is an arc's probability, or keep only the first "
                "two columns"
            )
        try:
            first, second, *rest = words
            pair = int(first), int(second)
            (chance,) = map(float, rest) if with_chances else (1.0,)
        except ValueError:
            raise ValueError(f"{file.name}, line {number}: {wanted} were expected, got {text[:60]!r}") from None
        if not 0 <= chance <= 1:
            raise ValueError(f"{file.name}, line {number}: a probability lies in [0, 1], got {rest[0]}")
        try:
            ends.extend(pair)
        except OverflowError:
            raise ValueError(f"{file.name} has node numbers of more than 64 bits; renumber the nodes") from None
        if with_chances:
            chances.append(chance)
        if len(ends) > 2 * MOST_EDGES:
            raise ValueError(f"{file.name} holds more than {MOST_EDGES:,} edges; take a sample of them first")
    if not ends:
        raise ValueError(f"{file.name} holds no edges: they are a text with two node numbers a line")
    pairs = np.frombuffer(ends, np.int64).reshape(-1, 2)
    if np.all(pairs[:, 0] == pairs[:, 1]):
        raise ValueError(f"{file.name} holds no edge between different nodes")
    return pairs, one_each(file.name, pairs, np.frombuffer(chances)) if with_chances else None


def numbered_lines(file: Input) -> Iterator[tuple[int, str]]:
    """Lines without their comments, and their numbers from 1 on."""
    for block in file.blocks():
        for number, line in enumerate(block.lines(), block.first):
            yield number, line.decode("utf-8", "replace").partition("#")[0].strip()


def one_each(name: str, ends: np.ndarray, chances: np.ndarray) -> np.ndarray:
    """The probabilities; an error where an edge stands there twice with two of them."""
    _, first, place = np.unique(ends, axis=0, return_index=True, return_inverse=True)
    other = np.flatnonzero(chances != chances[first][place.ravel()])
    if other.size:
        pair = " ".join(map(str, ends[other[0]]))
        raise ValueError(f"{name} has the edge {pair} twice, with different probabilities; keep one")
    return chances
