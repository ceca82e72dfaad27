"""What is to be said of the model of a stream, by the rows that were kept of it."""

from __future__ import annotations

import numpy as np

from onesfw.arguments import named
from onesfw.linear.defaults import BLIND_RADIUS
from onesfw.linear.examples import Examples
from onesfw.linear.finishing import Finished
from onesfw.linear.learner import Settings
from onesfw.linear.profile import Profile, loss_units

TOLD = 1_000  # rows of a stream after which a model that a constant beats is warned of
SOME = 100  # rows after which a model that is hardly better than a constant is
LITTLE = 0.05  # of the loss of the best constant: what such a model explains
NEAR = 0.5  # of the radius: a norm that the set holds back
WHOLE = 0.995  # of the coefficients: where more is left, it was the intercept that was off
OVERFLOWN = 1e100  # a loss that no data have


def against_a_constant(
    settings: Settings, rows: Examples, found: Finished, share: float, seen: int, largest: float, blind: bool
) -> str | None:
    """A sentence where a constant loses less than the model; None where it does not, or it is early.

    Args:
        settings: of the models.
        rows: kept of the stream.
        found: the models, after they were multiplied by shares.
        share: the least of these.
        seen: rows of the stream.
        largest: the largest loss that a call had.
        blind: whether the radius is the default one.
    """
    if seen < TOLD and largest < OVERFLOWN:
        return None
    smaller = f"give a {named('radius')} below {BLIND_RADIUS:g}" if blind else f"lower {named('radius')}"
    advice = f"Scale the columns, {smaller}, or use fit where the rows can be kept"
    if share < WHOLE:
        return (
            f"after {seen:,} rows of the stream a constant loses less than the model: the coefficients were multiplied "
            f"by {share:.2g}. {advice}"
        )
    if settings.constraint == "simplex" and worse(settings, rows, found):
        return (
            f"after {seen:,} rows of the stream a constant loses less than the model, and none lies in the simplex. "
            f"{advice}"
        )
    return None


def held_back(settings: Settings, rows: Examples, found: Finished, seen: int) -> str | None:
    """A sentence where the default radius keeps the models near a constant; None where it does not, or it is early."""
    if seen < SOME:
        return None
    gain, longer = np.zeros(settings.models), np.zeros(settings.models, bool)
    for model, coef in enumerate(found.coefs):
        profile, margins = Profile(settings, rows, model, float(found.intercepts[model])), rows.matrix @ coef
        with np.errstate(over="ignore", invalid="ignore"):
            constant, there = profile.expand(np.zeros(rows.size)).value, profile.expand(margins)
            gain[model] = constant - there.value
            longer[model] = float(there.slopes @ margins) < 0 and settings.set.norm(coef) >= NEAR * found.radius
    explained = float(gain.sum() / max(float(loss_units(settings, rows).sum()), 1e-300))
    if not (longer.any() and explained < LITTLE):
        return None
    return (
        f"after {seen:,} rows of the stream the model explains {100 * max(explained, 0.0):.2g} % of the loss of the "
        f"best constant, held back by the default radius, {BLIND_RADIUS:g}, which knows no units: give "
        f"{named('radius')}, or use fw.linear.train, which compares several"
    )


def worse(settings: Settings, rows: Examples, found: Finished) -> bool:
    """Whether the best constant loses less on these rows than one of the models."""
    for model, coef in enumerate(found.coefs):
        profile, intercept = Profile(settings, rows, model, float(found.intercepts[model])), found.intercepts[model]
        with np.errstate(over="ignore", invalid="ignore"):
            value, _, _ = profile.at(rows.matrix @ coef + intercept)
            if not value <= profile.expand(np.zeros(rows.size)).value:
                return True
    return False
