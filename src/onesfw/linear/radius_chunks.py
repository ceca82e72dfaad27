"""A path of radii as independent tasks: chunks, each of whose radii is solved from the one before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse

from onesfw.engine import jobs
from onesfw.linear.examples import Examples
from onesfw.linear.learner import Evaluation, Settings, Start
from onesfw.linear.polish import Rounds, pools
from onesfw.linear.profile import loss_units
from onesfw.trees import HostArray

CHUNKS, RADII_A_CHUNK = 4, 12  # so many chunks, or more where they would be longer
HEAD = 1e-2  # of the loss of the best constant: a gap that is small enough for a chunk to begin at


class Chunk(NamedTuple):
    """Some radii, solved."""

    places: HostArray
    coefs: scipy.sparse.csr_array
    evaluation: Evaluation


def solve_in_chunks(
    settings: Settings,
    data: Examples,
    radii: Sequence[float],
    tol: float,
    start: Start,
    *,
    n_jobs: int | None,
    stop: Callable[[], bool],
    note: Callable[[str], None],
    advance: Callable[[int], None],
) -> list[Chunk]:
    """One model's solutions for rising radii, in chunks that are independent tasks; fewer of them where `stop` said so.

    Where a chunk begins depends on the number of radii alone. The first radius of each is solved roughly from that of
    the one before, here; from there on a chunk needs nobody else. The last one is the first task, for it takes longest.
    """
    chunks = np.array_split(np.arange(len(radii)), min(len(radii), max(CHUNKS, len(radii) // RADII_A_CHUNK)))
    away, found, tasks = jobs.away(), [], []
    heard = (jobs.never, jobs.ignored) if away else (stop, note)
    (unit,) = loss_units(settings, data)
    quiet = np.errstate(over="ignore", invalid="ignore")
    with pools().limit(limits=1), quiet:  # here, for threads would undo one another's limits
        head = Rounds(settings, data, 0, start.coefs[0], float(start.intercepts[0]), max(tol, HEAD) * unit, stop, note)
        for chunk in chunks:
            if chunk[0]:
                head.grow(radii[chunk[0]])
            if len(chunks) > 1:
                head.run()
            model = head.copy(head.rows.nbytes // len(chunks))
            model.tol, model.stop, model.note = tol * unit, *heard
            tasks.append((model, chunk, [radii[place] for place in chunk], jobs.ignored if away else advance))
        for part in jobs.in_order(solve_chunk, tasks[::-1], n_jobs=n_jobs):
            found += [part] if len(part.places) else []
            if away:
                advance(len(part.places))
                if stop():
                    break
    return found[::-1]


def solve_chunk(model: Rounds, places: HostArray, radii: list[float], advance: Callable[[int], None]) -> Chunk:
    """The radii of a chunk, the first of which the model is at; those that were solved before the model was stopped."""
    supports, values, found = [np.zeros(0, np.int64)], [np.zeros(0)], []
    with pools().limit(limits=1), np.errstate(over="ignore", invalid="ignore"):
        for radius in radii:
            if radius > model.radius:
                model.grow(radius)
            x, intercept, value, gap, _ = model.run()
            if model.stop():
                break
            supports.append(np.flatnonzero(x != 0))
            values.append(x[supports[-1]])
            found.append((value, gap, intercept))
            advance(1)
    ends = np.cumsum([len(support) for support in supports])
    coefs = scipy.sparse.csr_array(
        (np.concatenate(values), np.concatenate(supports), ends), (len(found), model.rows.width)
    )  # fmt: skip
    return Chunk(places[: len(found)], coefs, Evaluation(*np.array(found).reshape(-1, 3).T))
