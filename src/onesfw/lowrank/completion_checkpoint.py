"""The state of a completion in a checkpoint: a path as far as it came, or the last stage of the fit."""

from __future__ import annotations

import numpy as np

from onesfw.engine.checkpoint import Checkpoint
from onesfw.files import Tensors
from onesfw.lowrank.corrective import Point, Stage
from onesfw.lowrank.warm_path import Figures, PathState
from onesfw.trees import Json

FIELDS = ("P", "Q", "bu", "bi", "s")
NUMBERS = ("radius", "value", "gap", "multiplier", "steps", "rounds")


class Saves:
    """What a run of a matrix of that shape saves and goes on from; None for one that is not kept."""

    def __init__(self, store: Checkpoint | None, shape: tuple[int, int] = (0, 0)) -> None:
        self.store, self.shape = store, shape
        self.path = PathState()
        self.stage: Stage | None = None
        loaded = None if store is None else store.load()
        if store is not None and loaded is not None:
            content, tensors = loaded
            try:
                self.path = unpack_path(content["path"], tensors)
                self.stage = unpack_stage(content["fit"], "fit.", tensors)
                self.check()
            except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
                raise store.damaged() from error

    def check(self) -> None:
        """Raise ValueError where what was saved is no point of this run."""
        stages = [stage for stage in (self.path.stage, self.stage) if stage is not None]
        points = [point for point in (self.path.best, self.path.last) if point is not None]
        for point in [*points, *(stage.point for stage in stages)]:
            check_point(point, self.shape)
        for stage in stages:
            if not 0 < stage.drop < 1 or np.isnan(stage.before):
                raise ValueError("a stage")
        if self.path.figures and not (self.path.best and self.path.last):
            raise ValueError("a path without its points")

    def path_state(self) -> PathState:
        """Where the path stood."""
        return self.path

    def fit_stage(self, radius: float) -> Stage | None:
        """Where the fit of that radius stood; a path that went on after it may have found a better one."""
        return self.stage if self.stage is not None and self.stage.point.radius == radius else None

    def keep_path(self, state: PathState) -> None:
        """Save the path when it is time."""
        self.path = state
        if self.store is not None and self.store.due():
            self.finish()

    def keep_fit(self, stage: Stage) -> None:
        """Save the fit when it is time."""
        self.stage = stage
        if self.store is not None and self.store.due():
            self.finish()

    def finish(self) -> None:
        """Save what is known now."""
        if self.store is None:
            return
        tensors: Tensors = {}
        content = {"path": pack_path(self.path, tensors), "fit": pack_stage(self.stage, "fit.", tensors)}
        self.store.save(content, tensors)


def pack_point(point: Point | None, prefix: str, tensors: Tensors) -> Json:
    """A point as JSON and tensors."""
    if point is None:
        return None
    tensors |= {f"{prefix}{name}": np.ascontiguousarray(getattr(point, name)) for name in FIELDS}
    # Infinity is no number of JSON's.
    return {name: str(float(getattr(point, name))) for name in NUMBERS}


def unpack_point(content: Json, prefix: str, tensors: Tensors) -> Point | None:
    """What `pack_point` made."""
    if content is None:
        return None
    numbers = {name: float(content[name]) for name in NUMBERS}
    fields: dict[str, Json] = {name: tensors[f"{prefix}{name}"] for name in FIELDS} | numbers
    return Point(**{**fields, "steps": int(numbers["steps"]), "rounds": int(numbers["rounds"])})


def check_point(point: Point, shape: tuple[int, int]) -> None:
    """Raise ValueError where it is no point of a matrix of that shape."""
    rank, (m, n) = point.P.shape[1], shape
    shapes = {"P": (m, rank), "Q": (n, rank), "bu": (m,), "bi": (n,), "s": point.s.shape[:1]}
    fits = all(getattr(point, name).shape == wanted for name, wanted in shapes.items()) and len(point.s) <= rank
    finite = all(np.isfinite(getattr(point, name)).all() for name in FIELDS)
    if not (fits and finite and 0 < point.radius < np.inf) or np.isnan([point.value, point.gap]).any():
        raise ValueError("a point")
    if not np.isfinite(point.multiplier) or min(point.steps, point.rounds) < 0:
        raise ValueError("a point")


def pack_stage(stage: Stage | None, prefix: str, tensors: Tensors) -> Json:
    """A stage as JSON and tensors."""
    if stage is None:
        return None
    return {
        "point": pack_point(stage.point, prefix, tensors), "before": str(stage.before), "drop": stage.drop,
    }  # fmt: skip


def unpack_stage(content: Json, prefix: str, tensors: Tensors) -> Stage | None:
    """What `pack_stage` made."""
    if content is None:
        return None
    point = unpack_point(content["point"], prefix, tensors)
    if point is None:
        raise ValueError("a stage without its point")
    return Stage(point, float(content["before"]), float(content["drop"]))


def pack_path(state: PathState, tensors: Tensors) -> Json:
    """A path as JSON and tensors."""
    for place, losses in enumerate(state.losses):
        tensors[f"path.losses.{place}"] = losses
    return {
        "figures": [list(entry) for entry in state.figures],
        "best": pack_point(state.best, "path.best.", tensors),
        "last": pack_point(state.last, "path.last.", tensors),
        "stage": pack_stage(state.stage, "path.stage.", tensors),
        "first": pack_point(state.first, "path.first.", tensors),
        "max_rank": state.max_rank,
        "entries": state.entries,
    }


def unpack_path(content: Json, tensors: Tensors) -> PathState:
    """What `pack_path` made."""
    figures = [Figures(*entry) for entry in content["figures"]]
    return PathState(
        figures,
        [tensors[f"path.losses.{place}"] for place in range(len(figures))],
        unpack_point(content["best"], "path.best.", tensors),
        unpack_point(content["last"], "path.last.", tensors),
        unpack_stage(content["stage"], "path.stage.", tensors),
        unpack_point(content["first"], "path.first.", tensors),
        int(content["max_rank"]),
        int(content["entries"]),
    )
