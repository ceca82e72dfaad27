"""What follows the passes of `train` where its rows fit in memory: the radius, the polish, a word on a large gap."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from onesfw.arguments import named
from onesfw.data.batch import joined
from onesfw.data.chunks import Chunk
from onesfw.linear.convergence import LARGE_SHARE, remedy, too_large, warn_unconverged
from onesfw.linear.examples import Examples, examples
from onesfw.linear.learner import Evaluation, Settings, Start, evaluate
from onesfw.linear.model import Training
from onesfw.linear.parallel_learners import ParallelLearners
from onesfw.linear.polish import polish
from onesfw.linear.profile import Profile, loss_units
from onesfw.linear.radii import chosen_radius, first_start
from onesfw.linear.scaling import divided
from onesfw.linear.training import Fit
from onesfw.trees import HostArray

TOL = 1e-6  # the gap at which a polish ends, of the loss of the best constant


SEGMENT_STEPS = 40  # halvings


class Finished(NamedTuple):
    """Models at the end of `train`."""

    coefs: HostArray
    intercepts: HostArray
    radius: float
    evaluation: Evaluation | None = None
    rounds: int = 0

    def unshifted(self, means: HostArray | None) -> Finished:
        """The same models of rows from which no means were taken off."""
        return self if means is None else self._replace(intercepts=self.intercepts - self.coefs @ means)


def gathered(chunks: Iterable[Chunk], settings: Settings, scales: HostArray | None) -> Examples:
    """All rows as one piece, each column divided by its scale."""
    # A cache takes memory back.
    kept = [replace(chunk, rows=chunk.rows.copy(), targets=chunk.targets.copy()) for chunk in chunks]
    rows = joined([chunk.rows for chunk in kept], settings.n_features)
    targets = np.concatenate([chunk.targets for chunk in kept])
    data = examples(rows, targets, None, settings.n_features, settings.loss_function, settings.labels)
    return divided(data, scales)


def finish(
    settings: Settings,
    data: Examples,
    begun: Finished,
    *,
    choose: bool,
    key: int,
    stop: Callable[[], bool],
    note: Callable[[str], None],
) -> Finished:
    """The models at the optimum of their sets; with `choose`, at the radius that held-out rows like best."""
    start = begun
    if choose:
        radius = chosen_radius(settings, data, key, stop=stop, note=note)
        origin = first_start(replace(settings, radius=radius))
        start = Finished(origin.coefs, begun.intercepts, radius)
    stage = replace(settings, radius=start.radius)
    limits = TOL * np.abs(loss_units(stage, data))
    found = polish(
        stage, data, start.coefs, start.intercepts, limits, stop=stop,
        note=note,
    )  # fmt: skip
    return Finished(found.coefs, found.evaluation.intercepts, start.radius, found.evaluation, found.rounds)


def no_worse_than_a_constant(settings: Settings, rows: Examples, begun: Finished) -> tuple[Finished, float]:
    """The models, each on the segment to the best constant where that loses less on these rows; the least share left.

    Steps cannot know of a row that lies far out before it comes, and one pass leaves no time to make good for it.
    """
    coefs, intercepts, shares = begun.coefs.copy(), begun.intercepts.copy(), np.ones(settings.models)
    if settings.constraint == "simplex":  # no segment from its members to a constant lies in it
        return begun, 1.0
    for model in range(settings.models):
        profile, margins = Profile(settings, rows, model, float(intercepts[model])), rows.matrix @ coefs[model]
        with np.errstate(over="ignore", invalid="ignore"):
            value, _, _ = profile.at(margins + intercepts[model])
            constant = profile.expand(np.zeros(rows.size))
            if value <= constant.value:
                continue
            low, high = 0.0, 1.0  # φ is convex along the segment, and its slope at 0 tells whether to leave it at all
            for _ in range(SEGMENT_STEPS if float(constant.slopes @ margins) < 0 else 0):
                middle = (low + high) / 2
                falls = float(profile.expand(middle * margins).slopes @ margins) <= 0
                low, high = (middle, high) if falls else (low, middle)
        shares[model], intercepts[model] = low, profile.expand(low * margins).intercept
        coefs[model] *= low
    return begun._replace(coefs=coefs, intercepts=intercepts), float(shares.min())


def at_most_a_constant(fit: Fit, settings: Settings, rows: Examples, n_jobs: int | None) -> tuple[Fit, float]:
    """A fit whose models were not polished, none of them worse than the best constant; the least share left."""
    learners = fit.learners
    begun = Finished(learners.coefs, learners.intercepts, float(settings.radii[0]))
    found, share = no_worse_than_a_constant(settings, rows, begun)
    if share == 1:
        return fit, share
    start = Start(found.coefs, found.intercepts, learners.t0 + learners.steps)
    learners = ParallelLearners(settings, n_jobs=n_jobs, start=start)
    return replace(fit, learners=learners, evaluation=evaluate(settings, rows, found.coefs, found.intercepts)), share


def smaller(chosen: float | None) -> str:
    """The advice of a smaller radius; `chosen`: the radius, where the user gave none."""
    return f"lower {named('radius')}" if chosen is None else f"give a {named('radius')} below the chosen {chosen:.3g}"


def warn_of_constant(share: float, data: Examples | None, chosen: float | None) -> None:
    """Warn that a constant lost less than the model; `data`: the rows, where they are at hand but not polished."""
    if data is not None:
        advice = ": " + remedy(data, False, [f"raise {named('passes')}"], smaller(chosen))
    else:
        advice = (
            f". Rows that come later lie far out of the first ones: raise {named('buffer')}, give rows that can be "
            f"read again, a file or arrays, or {smaller(chosen)}"
        )
    warn_unconverged(
        "a constant loses less than the model after its passes, on rows that were kept to judge it: the coefficients "
        f"were multiplied by {share:.2g}{advice}"
    )


def stream_converged(training: Training, chosen: float | None) -> bool | None:
    """Whether the gap after the passes of a stream is small, where it is known; a warning where it is not."""
    gap, loss = training.gap, None if training.scores is None else training.scores.loss
    if gap is None or loss is None:
        return None
    if gap <= LARGE_SHARE * abs(loss):
        return True
    warn_unconverged(
        f"the Frank-Wolfe gap is {gap:.2g} at a loss of {loss:.3g}, over a tenth of it: give rows that can be read "
        f"again, a file or arrays, and raise {named('passes')}, or {smaller(chosen)}"
    )
    return False


def converged(
    settings: Settings, data: Examples, gap: HostArray, loss: HostArray, polished: bool, chosen: float | None
) -> bool:
    """Whether the gaps are small enough; a warning with the remedy that fits where they are not."""
    units = loss_units(settings, data)
    missed = gap > 2 * TOL * np.abs(units) if polished else np.zeros(len(gap), bool)
    if not (missed | too_large(gap, loss, units)).any():
        return True
    worst = int(np.argmax(gap))
    advice = remedy(data, polished, [f"raise {named('passes')}"], smaller(chosen))
    warn_unconverged(f"the Frank-Wolfe gap is {gap[worst]:.2g} at a loss of {loss[worst]:.3g}: {advice}")
    return False
