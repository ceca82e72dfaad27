"""Radii side by side on a stream, judged by the loss that each row had before it was first learnt."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from onesfw.arguments import named
from onesfw.linear.defaults import default_radius
from onesfw.linear.examples import Examples
from onesfw.linear.learner import Learner, Settings
from onesfw.trees import HostArray

TOGETHER = 256  # rows whose losses have one weight
FACTORS = (1 / 10, 1.0, 10.0)  # of the radius at which a row of average size reaches a margin of 10


def radii_for(first: Examples, settings: Settings) -> tuple[float, ...]:
    """The radii that are compared, from the first rows of the stream."""
    around = default_radius(first, settings)
    return tuple(around * factor for factor in FACTORS)


class RadiusCandidates:
    """All models of the settings once for each radius; `coefs` and `intercepts` are those of the radius that leads.

    What leads is decided by progressive validation over the first pass: a row's loss counts before it is learnt, so
    that it is that of an unseen row; and by the square of its number, since the first rows tell more of where a model
    begins than of where it goes, the more so the larger its set.

    Args:
        settings: of the models; the radius does not count.
        radii: that are compared.
        tensors: the state of a comparison that goes on.
    """

    def __init__(
        self, settings: Settings, radii: tuple[float, ...], tensors: dict[str, HostArray] | None = None
    ) -> None:
        self.radii, self.models = radii, settings.models
        labels = None if settings.labels is None else settings.labels * len(radii)
        several = tuple(float(radius) for radius in np.repeat(radii, settings.models))
        wide = replace(settings, radius=several, labels=labels)
        self.learner = Learner(wide) if tensors is None else Learner.from_tensors(wide, tensors)
        self.totals = np.zeros(len(radii)) if tensors is None else tensors["candidates.totals"].copy()
        self.over = tensors is not None and bool(tensors["candidates.over"][0])

    @property
    def steps(self) -> int:
        """Rows learnt so far."""
        return self.learner.steps

    @property
    def leader(self) -> int:
        """The place of the radius that leads."""
        return int(np.argmin(self.totals))

    @property
    def radius(self) -> float:
        """The radius that leads."""
        return float(self.radii[self.leader])

    def learn_examples(self, data: Examples, order: HostArray) -> HostArray:
        """A step of each model for each row of the order; the sums of the losses of the radius that leads.

        Raises:
            FloatingPointError: where at no radius the loss stayed within the range of numbers: one that left is out.
        """
        sums = np.zeros((len(self.radii), self.models))
        for begin in range(0, len(order), TOGETHER):
            number = self.steps + 1.0
            totals = self.learner.learn_unchecked(data, order[begin : begin + TOGETHER])
            lost = ~self.learner.finite(totals)
            self.learner.forget(np.flatnonzero(lost))
            totals = np.where(lost, np.inf, totals).reshape(sums.shape)
            sums += totals
            if not self.over:
                self.totals += number**2 * totals.mean(axis=1)
            self.totals[lost.reshape(sums.shape).any(axis=1)] = np.inf
        if not np.isfinite(self.totals[self.leader]):
            raise FloatingPointError(
                f"the loss is not finite after {self.steps:,} steps at any radius: scale rows and targets, or give a "
                f"small {named('radius')}"
            )
        return sums[self.leader]

    def first_pass_is_over(self) -> bool:
        """Rows that come from now on were seen before, and judge no more; False, for there is more to learn."""
        self.over = True
        return False

    def compile(self, value_type: object = np.float64) -> float:
        """Compile the kernel without a step; the seconds it took."""
        return self.learner.compile(value_type)

    @property
    def coefs(self) -> HostArray:
        """x of each model at the radius that leads."""
        return self.learner.coefs.reshape(len(self.radii), self.models, -1)[self.leader]

    @property
    def intercepts(self) -> HostArray:
        """The intercepts at the radius that leads."""
        return self.learner.intercepts.reshape(len(self.radii), self.models)[self.leader]

    def tensors(self) -> dict[str, HostArray]:
        """The whole state."""
        return {
            **self.learner.tensors(),
            "candidates.totals": self.totals.copy(),
            "candidates.over": np.array([int(self.over)]),
        }
