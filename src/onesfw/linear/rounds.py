"""Rows dealt to shards, and rounds over them until all passes are made; saved and resumed between rounds."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from onesfw.arguments import named
from onesfw.data.batch import joined
from onesfw.data.blocks import Input
from onesfw.data.passes import Passes
from onesfw.data.prepare import Prepared, ReadOptions, find_format, prepare
from onesfw.data.row_groups import Group, cores, read_groups
from onesfw.data.sources import Files, RowsFrom
from onesfw.engine.checkpoint import Checkpoint, saved_after
from onesfw.linear.examples import examples
from onesfw.linear.learner import Settings
from onesfw.linear.losses import LOSSES
from onesfw.linear.shards import GroupShard, RowShard, Shard, State, digest, do_round, refuse_sorted

MOST_BYTES = 2 << 30  # of rows that are kept in memory, and sent from there


@dataclass(frozen=True)
class Split:
    """How rows are divided: so many shards, so many rows of each between two averages."""

    shards: int
    round_rows: int

    def parts(self) -> dict[str, str]:
        """A name and a text for each."""
        return {"shards": str(self.shards), "round_rows": str(self.round_rows)}


@dataclass(frozen=True)
class Done:
    """How far the rounds came."""

    state: State
    rows: int
    """Learnt over all shards and passes."""
    seconds: float
    finished: bool


def deal(rows: RowsFrom, options: ReadOptions, split: Split, key: int, buffer: int) -> tuple[Prepared, list[Shard]]:
    """What was decided about the rows, and the shards, to which the key deals them.

    Of Parquet files each worker reads its own row groups; whatever else is read here, and sent from memory.
    """
    if options.skip_bad:
        raise ValueError(f"{named('skip_bad')} and {named('shards')} exclude each other: clean the rows first")
    if isinstance(rows, Input) and rows.repeatable and find_format(rows, options.format) == "parquet":
        rows = Files([rows.path], [rows])
    if isinstance(rows, Files) and find_format(rows.inputs[0], options.format) == "parquet":
        return deal_groups(rows, options, split, key, buffer)
    passes = Passes(rows, options, buffer=1)
    prepared, size, parts = passes.prepared, 0, []
    for chunk in passes.chunks():
        size += chunk.nbytes
        if size > MOST_BYTES:
            raise ValueError(
                f"{named('shards')}: {rows.name} takes more than {MOST_BYTES >> 30} GB in memory; write the rows as "
                "Parquet files, of which each worker reads its own"
            )
        parts.append(chunk)
    matrix = joined([part.rows for part in parts], prepared.encoding.n_features)
    targets = np.concatenate([part.targets for part in parts])
    enough(len(targets), split, "rows")
    several = tuple(range(len(prepared.labels))) if prepared.labels is not None and len(prepared.labels) > 2 else None
    loss = LOSSES["logistic" if several else "squared"]  # of the checks of targets the source has made all
    order = np.random.default_rng([key, split.shards]).permutation(len(targets))
    return prepared, [
        RowShard(number, examples(matrix[mine], targets[mine], None, matrix.shape[1], loss, several), key)
        for number, mine in enumerate(np.sort(part) for part in np.array_split(order, split.shards))
    ]


def deal_groups(
    files: Files, options: ReadOptions, split: Split, key: int, buffer: int
) -> tuple[Prepared, list[Shard]]:
    """Shards of row groups, the larger ones dealt first, each to whoever has the fewest rows."""
    groups = read_groups(files, options, cores())
    enough(len(groups), split, "row groups")
    prepared, _ = prepare(files, options)
    shuffled = np.random.default_rng([key, split.shards]).permutation(len(groups)).tolist()
    hands: list[list[Group]] = [[] for _ in range(split.shards)]
    for place in sorted(shuffled, key=lambda place: -groups[place].rows):
        min(hands, key=lambda hand: sum(group.rows for group in hand)).append(groups[place])
    shards: list[Shard] = []
    stamp = digest(files.fingerprint(), options, prepared)
    for number, hand in enumerate(hands):
        numbers = sorted({group.file for group in hand})
        own = tuple(
            Group(numbers.index(group.file), group.number, group.rows, group.size)
            for group in sorted(hand, key=lambda group: (group.file, group.number))
        )
        inputs = tuple(files.inputs[file] for file in numbers)
        shards.append(GroupShard(number, inputs, own, options, prepared, buffer, key, stamp))
    return prepared, shards


def enough(count: int, split: Split, what: str) -> None:
    """Raise ValueError where there is less than one for each shard."""
    if count < split.shards:
        raise ValueError(
            f"{named('shards')}={split.shards} is more than there are {what}, {count:,}; take fewer shards"
            + (", or write more and smaller row groups" if what == "row groups" else "")
        )


def learn_shards(
    settings: Settings,
    shards: list[Shard],
    split: Split,
    passes: int,
    saves: Checkpoint | None = None,
    stop: Callable[[], bool] = lambda: False,
    report: Callable[[int, int, float, float | None], None] = lambda *told: None,
    check: Callable[[], None] = lambda: None,
) -> Done:
    """So many passes over all shards, each round a pure function of the state before it.

    Args:
        settings: what is learnt.
        shards: the rows of each worker.
        split: the rows of a round.
        passes: over all rows.
        saves: where the state is kept between rounds.
        stop: asked after each round.
        report: hears the pass, the rows learnt, their loss, and the rows of all passes.
        check: called where a pass begins, but for the first; raises where the rows are no longer what they were.

    Returns:
        The last state and what it took.

    Raises:
        ValueError: where the shards are sorted by label, or `check` says so.
    """
    size = sum(shard.rows for shard in shards)
    rounds = -(-passes * size // (len(shards) * split.round_rows))
    state, first, before = State.start(settings), 0, 0.0
    found = None if saves is None else saves.load()
    if saves is not None and found is not None:
        try:
            state, first = State.from_tensors(found[1]), int(found[0]["round"])
            before = float(found[0]["seconds"])
        except (KeyError, ValueError, TypeError) as error:
            raise saves.damaged() from error
    clock, place = time.perf_counter(), first

    def seconds() -> float:
        return before + time.perf_counter() - clock

    def save() -> None:
        if saves is not None and place > first:
            saves.save({"round": place, "seconds": seconds()}, state.tensors())

    sweep = first * split.round_rows * len(shards) // size
    while place < rounds and not stop():
        if sweep < (sweep := place * split.round_rows * len(shards) // size):
            check()
        with saved_after(OSError, save):
            state, learnt = do_round(settings, state, shards, place, split.round_rows)
        if place == 0:
            refuse_sorted(settings, learnt, split.round_rows)
        place += 1
        rows = place * split.round_rows * len(shards)
        loss = sum(one.loss for one in learnt) / (split.round_rows * len(shards))
        report(min(passes - 1, rows // size), rows, loss, passes * size)
        if saves is not None and saves.due():
            save()
    save()
    return Done(state, min(place * split.round_rows * len(shards), passes * size), seconds(), place >= rounds)
