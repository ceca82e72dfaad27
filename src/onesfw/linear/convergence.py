"""Whether a fit came near enough to the best of its set, and what to do where it did not."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from onesfw.arguments import named, warn
from onesfw.linear.examples import Examples
from onesfw.linear.learner import Evaluation
from onesfw.linear.scaling import UNEVEN, column_scales, unevenness
from onesfw.linear.training import LEAST_TOL, Budget, Fit
from onesfw.trees import HostArray

LARGE_SHARE = 0.1  # of the loss: a larger gap says that the model is not the one that was asked for
NEGLIGIBLE = 2e-6  # of the loss of the best constant: nothing is left to gain, however small the loss


def warn_unconverged(text: str) -> None:
    """scikit-learn's ConvergenceWarning, which is imported here alone: that takes longer than most fits."""
    from sklearn.exceptions import ConvergenceWarning

    warn(text, ConvergenceWarning)


def too_large(gap: HostArray, loss: HostArray, units: HostArray) -> HostArray:
    """Which gaps exceed a tenth of the loss."""
    return gap > np.maximum(LARGE_SHARE * np.abs(loss), NEGLIGIBLE * np.abs(units))


def unsolved(found: Evaluation, limits: HostArray, units: HostArray) -> HostArray:
    """Which gaps exceed the limits they were to reach, as far as arithmetic allows."""
    marks: HostArray = found.gap > np.maximum(limits, LEAST_TOL * np.abs(units))
    return marks


def warn_of_unsolved(what: str, data: Examples, advice: str | None = None) -> None:
    """Warn of radii that were not solved; `what` says which. `advice` is what helps; None for what helps a polish."""
    warn_unconverged(f"{what}; {advice or remedy(data, True, [])}")


def gap_message(fit: Fit, data: Examples, budget: Budget) -> str | None:
    """A sentence that says how large the gap is and what will make it smaller; None where it is small enough."""
    gap, loss = fit.evaluation.gap, fit.evaluation.value
    return gap_sentence(
        gap, loss, fit.limits, fit.units, budget.tol, lambda: remedy(data, budget.polish, longer(budget))
    )


def gap_sentence(
    gap: HostArray, loss: HostArray, limits: HostArray, units: HostArray, tol: float | None, advice: Callable[[], str]
) -> str | None:
    """How large the largest gap is, what was allowed, and the advice; None where all are small enough."""
    missed = gap > limits
    if not (missed | too_large(gap, loss, units)).any():
        return None
    worst = int(np.argmax(gap / np.maximum(limits, 1e-300)) if missed.any() else np.argmax(gap))
    allowed = f"{named('tol')}={tol:g} allows {limits[worst]:.2g}" if missed.any() else "over a tenth of it"
    return f"the Frank-Wolfe gap is {gap[worst]:.2g} at a loss of {loss[worst]:.3g}, {allowed}: {advice()}"


def constant_message(share: float, data: Examples, budget: Budget) -> str:
    """A sentence that says that a constant lost less than the model, and what will help."""
    return (
        f"a constant loses less than the model after its passes: the coefficients were multiplied by {share:.2g}: "
        f"{remedy(data, False, longer(budget))}"
    )


def longer(budget: Budget) -> list[str]:
    """How an estimator trains longer."""
    more = [f"raise {named('max_iter')}"]
    return more if budget.gradient == "sag" else [*more, f"set {named('gradient')}='sag'"]


def remedy(data: Examples, polished: bool, more: Sequence[str], smaller: str | None = None) -> str:
    """What will make the gap smaller, the surest first; `more` says how to train longer, `smaller` on which radius."""
    smaller = f"lower {named('radius')}" if smaller is None else smaller
    ratio = unevenness(column_scales(data), data)
    if ratio > UNEVEN:
        return (
            f"the columns' scales differ by a factor of {ratio:.3g}; leave {named('scale')} at its default, or scale "
            "the columns"
        )
    if polished:
        return smaller
    return ", ".join([f"leave {named('polish')} on", *more]) + f", or {smaller}"
