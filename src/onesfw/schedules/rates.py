"""ρ_t and η_t: pure functions of t, and of T where a theorem asks for it, computed in float64 on the host."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from onesfw.arguments import real
from onesfw.trees import Function, HostArray

Numbers = HostArray
OfSteps = Callable[[Numbers], npt.ArrayLike] | Callable[[Numbers, int], npt.ArrayLike]
"""A user's function of t or of (t, T); called with an array of steps, or with one at a time where it needs that."""


@dataclass(frozen=True)
class Schedule:
    """t ↦ number for an array of steps t = 1, 2, …

    Args:
        formula: how it prints.
        function: (t, T) ↦ values, for an array of steps t of a run of T steps.
        uses_horizon: whether the values depend on T, so that a run cannot be prolonged.

    Example:
        >>> import numpy as np
        >>> from onesfw.schedules import Schedule
        >>> half = Schedule("1/(2t)", lambda t, T: 1 / (2 * t))
        >>> half(np.array([1, 2, 4]), 100).tolist()
        [0.5, 0.25, 0.125]
    """

    formula: str
    function: Callable[[Numbers, int], npt.ArrayLike]
    uses_horizon: bool = False

    def __call__(self, t: Numbers, horizon: int) -> Numbers:
        """The values at steps `t` of a run of `horizon` steps."""
        return np.broadcast_to(np.asarray(self.function(np.asarray(t, np.float64), horizon), np.float64), np.shape(t))


ScheduleLike = Schedule | float | OfSteps


def constant(value: float) -> Schedule:
    """The same number at every step.

    Args:
        value: the number.

    Returns:
        The schedule t ↦ value.

    Example:
        >>> from onesfw.schedules import constant
        >>> constant(0.1).formula
        '0.1'
    """
    return Schedule(f"{value:g}", lambda t, T: np.full(np.shape(t), value))


def inverse(numerator: float) -> Schedule:
    """ρ_t = numerator/(t − 1), at most 1.

    Args:
        numerator: how much more the late samples weigh than the early ones; 1 averages over all alike.

    Returns:
        The schedule.

    Example:
        >>> import numpy as np
        >>> from onesfw.schedules import inverse
        >>> inverse(2.0)(np.array([1, 2, 3, 5]), 100).tolist()
        [1.0, 1.0, 1.0, 0.5]
    """
    return Schedule(f"{numerator:g}/(t-1)", lambda t, T: np.minimum(numerator / np.maximum(t - 1, 1.0), 1.0))


def power(exponent: float) -> Schedule:
    """ρ_t = (t − 1)^(−exponent), and 1 at t = 1, where there is nothing to average with (Lemma 2).

    Args:
        exponent: how fast ρ falls; 1 averages over all samples alike.

    Returns:
        The schedule.

    Example:
        >>> import numpy as np
        >>> from onesfw.schedules import power
        >>> power(1.0)(np.array([1, 2, 3, 5]), 100).tolist()
        [1.0, 1.0, 0.5, 0.25]
    """
    if exponent == 1:
        return inverse(1.0)
    return Schedule(f"(t-1)^(-{exponent:.3g})", lambda t, T: np.maximum(t - 1, 1.0) ** -exponent)


def harmonic(numerator: float = 1.0, offset: float = 0.0) -> Schedule:
    """η_t = numerator/(t + offset), at most 1.

    Args:
        numerator: above the line.
        offset: added to t.

    Returns:
        The schedule.

    Example:
        >>> import numpy as np
        >>> from onesfw.schedules import harmonic
        >>> harmonic(2.0, 1.0)(np.array([1, 3, 7]), 100).tolist()
        [1.0, 0.5, 0.25]
    """
    formula = f"{numerator:g}/t" if offset == 0 else f"{numerator:g}/(t+{offset:g})"
    return Schedule(formula, lambda t, T: np.minimum(numerator / (t + offset), 1.0))


def horizon_power(exponent: float) -> Schedule:
    """η_t = T^(−exponent) at every step.

    Args:
        exponent: of T, the number of steps of the run.

    Returns:
        The schedule; it depends on T.

    Example:
        >>> import numpy as np
        >>> from onesfw.schedules import horizon_power
        >>> horizon_power(0.5)(np.array([1, 2]), 100).tolist()
        [0.1, 0.1]
    """
    formula = "1/T" if exponent == 1 else f"T^(-{exponent:.3g})"
    return Schedule(formula, lambda t, T: np.full(np.shape(t), float(T) ** -exponent), uses_horizon=True)


def as_schedule(value: ScheduleLike, name: str) -> Schedule:
    """A number, a function of t or of (t, T), or a `Schedule`, as a `Schedule`.

    Args:
        value: what a user gave for ρ or η.
        name: the argument, for error messages.

    Returns:
        The schedule; its values are checked by `check`, once T is known.

    Raises:
        TypeError: where the value is none of these, or the function takes another number of arguments.

    Example:
        >>> from onesfw.schedules import as_schedule
        >>> as_schedule(0.5, "eta").formula
        '0.5'
        >>> as_schedule(lambda t: 1 / t, "eta").uses_horizon
        False
    """
    if isinstance(value, Schedule):
        return value
    if callable(value):
        return from_function(value, name)
    checked = real(value)
    if checked is None:
        raise TypeError(f"{name} must be a number in [0, 1], a function of t or of (t, T), got {value!r}")
    return constant(checked)


def from_function(function: OfSteps, name: str) -> Schedule:
    """A user's function of t or of (t, T)."""
    evaluate, uses_horizon = per_step(function, name)
    return Schedule(label_of(function), evaluate, uses_horizon)


def label_of(function: OfSteps) -> str:
    """How a user's function prints."""
    return str(getattr(function, "__name__", "function")).replace("<lambda>", "user's")


def per_step(function: OfSteps, name: str) -> tuple[Callable[[Numbers, int], Numbers], bool]:
    """A function of (t, T), called on arrays where it can be and number by number elsewhere; whether it uses T."""
    try:
        arity = len([p for p in inspect.signature(function).parameters.values() if p.default is p.empty])
    except ValueError:
        arity = 1
    if arity not in (1, 2):
        raise TypeError(f"{name} must be a function of t or of (t, T); this one takes {arity} arguments")

    given: Function = function
    called: Function = given if arity == 2 else lambda t, horizon: given(t)

    def evaluate(t: Numbers, horizon: int) -> Numbers:
        try:
            values = np.asarray(called(t, horizon), np.float64)
            if values.shape in ((), t.shape):
                return np.broadcast_to(values, t.shape)
        except (TypeError, ValueError):  # written for one number: `max(t, 1)`, `1 if t < 5 else 0`
            pass
        return np.asarray([float(called(float(s), horizon)) for s in t])

    return evaluate, arity == 2


def check(schedule: Schedule, name: str, horizon: int, t0: int = 0, most: float = 1.0) -> None:
    """Check that a schedule read at t + t0 stays in [0, most]; long runs are checked on a grid of steps.

    Args:
        schedule: ρ or η.
        name: the argument, for the message.
        horizon: T, the steps of the run.
        t0: added to t.
        most: the largest value allowed.

    Raises:
        ValueError: where a value leaves [0, most] or is not finite, or the user's function failed.

    Example:
        >>> from onesfw.schedules import check, constant
        >>> check(constant(0.5), "eta", horizon=10)
        >>> check(constant(2.0), "eta", horizon=10)
        Traceback (most recent call last):
        ValueError: eta must stay in [0, 1]; it is 2 at t = 1
    """
    t = np.arange(1, horizon + 1) if horizon <= 1_000_000 else np.unique(np.geomspace(1, horizon, 200_000).astype(int))
    t = t + t0
    try:
        values = schedule(t, horizon)
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ValueError(f"{name} must return a number for every step t; the function failed: {reason}") from error
    require_range(values, t, name, most)


def require_range(values: Numbers, t: Numbers, name: str, most: float = 1.0) -> None:
    """Check that values stay in [0, most] and are finite.

    Args:
        values: of a schedule.
        t: the steps they belong to.
        name: the argument, for the message.
        most: the largest value allowed.

    Raises:
        ValueError: with the first value that does not, and its step.

    Example:
        >>> import numpy as np
        >>> from onesfw.schedules import require_range
        >>> require_range(np.array([0.5, -1.0]), np.array([1, 2]), "rho")
        Traceback (most recent call last):
        ValueError: rho must stay in [0, 1]; it is -1 at t = 2
    """
    wrong = ~((values >= 0) & (values <= most) & np.isfinite(values))
    if wrong.any():
        first = int(np.argmax(wrong))
        allowed = f"[0, {most:g}]" if np.isfinite(most) else "[0, ∞)"
        raise ValueError(f"{name} must stay in {allowed}; it is {values[first]:g} at t = {t[first]:,}")
