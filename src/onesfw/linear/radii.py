"""Rising radii, each solved from the solution of the one before; and the radius that held-out rows like best."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from onesfw.arguments import named
from onesfw.linear.convergence import warn_unconverged
from onesfw.linear.defaults import default_radius
from onesfw.linear.examples import Examples, read_only
from onesfw.linear.learner import Evaluation, Settings, Start
from onesfw.linear.polish import Rounds, pools, together
from onesfw.linear.profile import loss_units
from onesfw.trees import HostArray

HELD_OUT = 0.2
FEWEST_ROWS = 40  # with fewer, a held-out part says nothing
MOST_ROWS = 30_000  # that the radius is chosen on
GRID = (1 / 30, 1 / 10, 1 / 3, 1.0, 3.0, 10.0, 30.0)  # of the radius at which a typical row reaches a margin of 10
LARGER = (100.0, 300.0, 1_000.0)  # tried while the largest of those before is the best, by more than its accuracy
ROUGH = 1e-3  # of the loss: accurate enough to compare radii
PATIENCE = 2  # radii in a row that are worse than the best, after which no larger one is tried


def first_start(settings: Settings) -> Start:
    """The origin; on the simplex, the first vertex."""
    coefs = np.zeros((settings.models, settings.n_features))
    if settings.constraint == "simplex":
        coefs[:, 0] = settings.radii
    return Start(coefs, np.zeros(settings.models))


def solve_radii(
    settings: Settings,
    data: Examples,
    radii: Sequence[float],
    limits: HostArray,
    *,
    n_jobs: int | None = None,
    stop: Callable[[], bool] = lambda: False,
    note: Callable[[str], None] = lambda text: None,
) -> Iterator[tuple[HostArray, Evaluation]]:
    """The models of each radius in turn, rising; a solution lies in every larger set, and the next one starts there."""
    models: list[Rounds] = []
    with pools().limit(limits=1):
        for radius in map(float, radii):
            if models:
                for model in models:
                    model.grow(radius)
            else:
                first = replace(settings, radius=radius)
                coefs, intercepts, _ = first_start(first)
                models = [
                    Rounds(first, data, model, coefs[model], float(intercepts[model]), float(limits[model]), stop, note)
                    for model in range(settings.models)
                ]
            found = together(models, n_jobs)
            yield found.coefs, found.evaluation


def is_last(
    settings: Settings, coefs: HostArray, gaps: HostArray, radius: float, largest: float, limits: HostArray
) -> bool:  # fmt: skip
    """Whether the models are those of all larger sets too, up to their limits.

    At x inside of its set the gap is at least (r − ‖x‖) times the dual norm of the gradient, which bounds the gap over
    any larger set. That x is inside is not enough: in a small set the origin has a small gap.
    """
    room = radius - np.array([settings.set.norm(coef) for coef in coefs])
    return bool(((room > 1e-6 * radius) & (gaps * (room + largest - radius) <= limits * room)).all())


def validation_losses(settings: Settings, data: Examples, coefs: HostArray, intercepts: HostArray) -> HostArray:
    """The loss of each row, the mean over the models."""
    total = np.zeros(data.size)
    for model, (coef, intercept) in enumerate(zip(coefs, intercepts, strict=True)):
        targets = settings.targets_of(data.targets, model)
        total += settings.loss_function.value(data.matrix @ coef + intercept, targets, settings.delta)
    return total / settings.models


def chosen_radius(
    settings: Settings,
    data: Examples,
    seed: int,
    *,
    n_jobs: int | None = None,
    stop: Callable[[], bool] = lambda: False,
    note: Callable[[str], None] = lambda text: None,
) -> float:
    """The radius whose rough solution on four fifths of the rows loses least on the others; the same for all models.

    Seven radii from 1/30 to 30 times the one at which a row of average size reaches a margin of 10, and up to 1,000
    times while the largest is the best; each is solved from the one before, until two in a row are worse than the best.
    Of radii below that of the margin none is the last: between models that are hardly more than a constant noise
    decides. With fewer than 40 rows, that radius itself.

    Args:
        settings: what is learnt; its radius does not count.
        data: the rows.
        seed: of the split.
        n_jobs: threads among which the models are divided.
        stop: asked between steps.
        note: hears which radius is being tried.

    Returns:
        The radius.
    """
    around = default_radius(data, settings)
    if data.size < FEWEST_ROWS:
        return around
    order = np.random.default_rng(seed).permutation(data.size)[:MOST_ROWS]
    held = int(HELD_OUT * len(order))
    train, test = part(data, np.sort(order[held:])), part(data, np.sort(order[:held]))
    if not (train.weights.any() and test.weights.any()):
        return around
    radii = [around * factor for factor in GRID + LARGER]
    units = loss_units(settings, train)
    limits, accuracy = np.maximum(ROUGH * units, 1e-12), ROUGH * float(np.mean(np.abs(units)))
    best, least, before, worse = around, np.inf, np.inf, 0
    try:
        for radius, (coefs, found) in zip(
            radii, solve_radii(settings, train, radii, limits, n_jobs=n_jobs, stop=stop), strict=False
        ):
            losses = validation_losses(settings, test, coefs, found.intercepts)
            loss = float(np.average(losses, weights=test.weights))
            note(f"radius {radius:.3g}: {loss:.5g} on held-out rows")
            worse = 0 if loss < least else worse + 1
            if loss < least:
                best, before, least = radius, least, loss
            falling = best == radius and least < before - accuracy
            if stop() or (worse >= PATIENCE and radius >= around) or (radius >= radii[len(GRID) - 1] and not falling):
                break
        else:
            warn_of_edge(best, falling)
    except FloatingPointError:  # a margin beyond the numbers: the radii before it stand
        pass
    return float(best)


def warn_of_edge(best: float, falling: bool) -> None:
    """Warn where the largest radius that was tried was still the best."""
    if falling:
        warn_unconverged(
            f"the loss on held-out rows still fell at the largest radius that was tried, {best:.3g}: give "
            f"{named('radius')}, a larger one"
        )


def part(data: Examples, rows: HostArray) -> Examples:
    """Some of the rows."""
    matrix = data.matrix[rows]
    return Examples(
        read_only(np.ascontiguousarray(matrix.indptr, np.int64)),
        read_only(np.ascontiguousarray(matrix.indices, np.int32).view(np.uint32)),
        read_only(np.ascontiguousarray(matrix.data)),
        read_only(data.targets[rows]), read_only(data.weights[rows]), data.n_features,
    )  # fmt: skip
