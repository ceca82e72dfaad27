"""Several models that learn from the same rows, divided among threads or workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from onesfw.engine import jobs
from onesfw.linear.examples import Examples
from onesfw.linear.learner import Learner, Settings, Start
from onesfw.trees import HostArray


class ParallelLearners:
    """The models of one `Settings`, divided among threads: kernels run without the interpreter's lock.

    Each model comes out bit for bit the same, however many threads or workers there are.

    Args:
        settings: of all models.
        n_jobs: threads, as joblib counts them: None for 1 or what `joblib.parallel_config` says, −1 for all cores.
        rows: for SAG, the number of rows.
        start: where the models start.
    """

    streams = False
    """Whether rows come once: they are then learnt in this process, for to send them would cost more than to learn
    them. Otherwise models go to the joblib backend that the user chose, and come back."""

    def __init__(
        self, settings: Settings, *, n_jobs: int | None = None, rows: int | None = None, start: Start | None = None
    ) -> None:
        self.settings, self.n_jobs = settings, n_jobs
        workers = min(settings.models, jobs.workers(n_jobs)) if settings.models > 1 else 1
        self.parts: list[Learner] = []
        for share in np.array_split(np.arange(settings.models), workers):
            begun = None if start is None else Start(start.coefs[share], start.intercepts[share], start.t0)
            self.parts.append(Learner(settings if workers == 1 else some(settings, share), rows=rows, start=begun))

    def learn_examples(self, data: Examples, order: HostArray) -> HostArray:
        """A step of each model for each row of the order; the sums of the losses before, one a model."""
        if len(self.parts) == 1:
            return self.parts[0].learn_examples(data, order)
        done = jobs.together(learnt, [(part, data, order) for part in self.parts], shared=self.streams)
        self.parts = [part for part, _ in done]
        return np.concatenate([totals for _, totals in done])

    def compile(self, value_type: object = np.float64) -> float:
        """Compile the kernel without a step; the seconds it took."""
        return self.parts[0].compile(value_type)

    @property
    def steps(self) -> int:
        """Rows learnt so far."""
        return self.parts[0].steps

    @property
    def t0(self) -> int:
        """η is read at t + t0."""
        return self.parts[0].t0

    @property
    def coefs(self) -> HostArray:
        """x of each model, models × features."""
        return np.concatenate([part.coefs for part in self.parts])

    @property
    def intercepts(self) -> HostArray:
        """The intercepts, one a model."""
        return np.concatenate([part.intercepts for part in self.parts])

    def set_intercepts(self, values: HostArray) -> None:
        """Put the intercepts elsewhere."""
        begin = 0
        for part in self.parts:
            part.set_intercepts(values[begin : begin + part.settings.models])
            begin += part.settings.models

    @property
    def remembers(self) -> bool:
        """Whether SAG's table of rows is kept."""
        return len(self.parts[0].table) > 0

    def tensors(self) -> dict[str, HostArray]:
        """The whole state."""
        return {f"{place}.{name}": a for place, part in enumerate(self.parts) for name, a in part.tensors().items()}


def learnt(part: Learner, data: Examples, order: HostArray) -> tuple[Learner, HostArray]:
    """The learner after these rows, and their losses: in another process it is a copy that has learnt."""
    return part, part.learn_examples(data, order)


def some(settings: Settings, share: Sequence[int] | HostArray) -> Settings:
    """The settings of some of the models."""
    intervals = settings.intervals
    return replace(
        settings,
        radius=tuple(float(settings.radii[i]) for i in share),
        labels=None if settings.labels is None else tuple(settings.labels[i] for i in share),
        intercept=None if intervals is None else tuple(intervals[i] for i in share),
    )
