"""What is to be trained from files, and how: everything that decides the model beside the rows."""

from __future__ import annotations

from dataclasses import dataclass

from onesfw import __version__
from onesfw.arguments import named, number
from onesfw.data.labels import Label
from onesfw.linear.defaults import ANYWHERE
from onesfw.linear.learner import Settings


def interval(wanted: bool, bound: float | None) -> tuple[float, float] | None:
    """The interval of the intercept."""
    if bound is None:
        return ANYWHERE if wanted else None
    bound = number(bound, "intercept_bound", 0.0, strict=True)
    if not wanted:
        raise ValueError(f"{named('intercept_bound')} needs an intercept; leave it out, or {named('intercept')} on")
    return (-bound, bound)


@dataclass(frozen=True)
class Plan:
    """What is to be trained, and how."""

    loss: str
    constraint: str
    radius: float | None
    scale: bool | str
    polish: bool
    schedule: str
    intercept: tuple[float, float] | None
    delta: float
    passes: int
    buffer: int
    key: int

    def settings(self, n_features: int, labels: tuple[Label, ...] | None) -> Settings:
        """The learner's settings: with more than two labels, a model a label. A radius that is to be chosen is 1."""
        several = tuple(range(len(labels))) if labels is not None and len(labels) > 2 else None
        radius = 1.0 if self.radius is None else self.radius
        return Settings(
            n_features, self.loss, self.constraint, radius, self.schedule, self.intercept, self.delta, several
        )

    def parts(self) -> dict[str, str]:
        """A name and a text for everything that decides the model, beside the rows; passes may be added later."""
        fixed = {
            "loss": self.loss,
            "constraint": self.constraint,
            "radius": repr(self.radius),
            "scale": str(self.scale),
            "polish": str(self.polish),
            "schedule": self.schedule,
            "intercept": str(self.intercept),
            "delta": repr(self.delta),
            "key": str(self.key),
            "buffer": str(self.buffer),
        }
        return {"version of onesfw": __version__, **fixed}
