"""ρ_t and η_t: pure functions of t, and of T where a theorem asks for it, computed in float64 on the host."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from onesfw.arguments import real

Numbers = np.ndarray
ScheduleLike = "Schedule | float | Callable[..., Any]"


@dataclass(frozen=True)
class Schedule:
    """t ↦ number for an array of steps t = 1, 2, …; `formula` is how it prints."""

    formula: str
    function: Callable[[Numbers, int], Numbers]
    uses_horizon: bool = False
    """Whether the values depend on T, so that a run cannot be prolonged."""

    def __call__(self, t: Numbers, horizon: int) -> Numbers:
        """The values at steps `t` of a run of `horizon` steps."""
        return np.broadcast_to(np.asarray(self.function(np.asarray(t, np.float64), horizon), np.float64), np.shape(t))


def constant(value: float) -> Schedule:
    """The same number at every step."""
    return Schedule(f"{value:g}", lambda t, T: np.full(np.shape(t), value))


def inverse(numerator: float) -> Schedule:
    """ρ_t = numerator/(t − 1), at most 1; 1 at t = 1, where there is nothing to average with (Lemma 2)."""
    return Schedule(f"{numerator:g}/(t-1)", lambda t, T: np.minimum(numerator / np.maximum(t - 1, 1.0), 1.0))


def power(exponent: float) -> Schedule:
    """ρ_t = (t − 1)^(−exponent), and 1 at t = 1."""
    if exponent == 1:
        return inverse(1.0)
    return Schedule(f"(t-1)^(-{exponent:.3g})", lambda t, T: np.maximum(t - 1, 1.0) ** -exponent)


def harmonic(numerator: float = 1.0, offset: float = 0.0) -> Schedule:
    """η_t = numerator/(t + offset), at most 1."""
    formula = f"{numerator:g}/t" if offset == 0 else f"{numerator:g}/(t+{offset:g})"
    return Schedule(formula, lambda t, T: np.minimum(numerator / (t + offset), 1.0))


def horizon_power(exponent: float) -> Schedule:
    """η_t = T^(−exponent) at every step."""
    formula = "1/T" if exponent == 1 else f"T^(-{exponent:.3g})"
    return Schedule(formula, lambda t, T: np.full(np.shape(t), float(T) ** -exponent), uses_horizon=True)


def as_schedule(value: Any, name: str) -> Schedule:
    """A number, a function of t or of (t, T), or a `Schedule`, as a `Schedule`."""
    if isinstance(value, Schedule):
        return value
    if callable(value):
        return from_function(value, name)
    checked = real(value)
    if checked is None:
        raise TypeError(f"{name} must be a number in [0, 1], a function of t or of (t, T), got {value!r}")
    return constant(checked)


def from_function(function: Callable[..., Any], name: str) -> Schedule:
    """A user's function of t or of (t, T)."""
    evaluate, uses_horizon = per_step(function, name)
    return Schedule(label_of(function), evaluate, uses_horizon)


def label_of(function: Callable[..., Any]) -> str:
    """How a user's function prints."""
    return getattr(function, "__name__", "function").replace("<lambda>", "user's")


def per_step(function: Callable[..., Any], name: str) -> tuple[Callable[[Numbers, int], Numbers], bool]:
    """A function of (t, T), called on arrays where it can be and number by number elsewhere; whether it uses T."""
    try:
        arity = len([p for p in inspect.signature(function).parameters.values() if p.default is p.empty])
    except ValueError:
        arity = 1
    if arity not in (1, 2):
        raise TypeError(f"{name} must be a function of t or of (t, T); this one takes {arity} arguments")

    def evaluate(t: Numbers, horizon: int) -> Numbers:
        arguments = (horizon,) if arity == 2 else ()
        try:
            values = np.asarray(function(t, *arguments), np.float64)
            if values.shape in ((), t.shape):
                return np.broadcast_to(values, t.shape)
        except (TypeError, ValueError):  # written for one number: `max(t, 1)`, `1 if t < 5 else 0`
            pass
        return np.asarray([float(function(float(s), *arguments)) for s in t])

    return evaluate, arity == 2


def check(schedule: Schedule, name: str, horizon: int, t0: int = 0, most: float = 1.0) -> None:
    """Raise a sentence where a schedule read at t + t0 leaves [0, most]; long runs are checked on a grid of steps."""
    t = np.arange(1, horizon + 1) if horizon <= 1_000_000 else np.unique(np.geomspace(1, horizon, 200_000).astype(int))
    t = t + t0
    try:
        values = schedule(t, horizon)
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ValueError(f"{name} must return a number for every step t; the function failed: {reason}") from error
    require_range(values, t, name, most)


def require_range(values: Numbers, t: Numbers, name: str, most: float = 1.0) -> None:
    """Raise a sentence where a value leaves [0, most], or is infinite."""
    wrong = ~((values >= 0) & (values <= most) & np.isfinite(values))
    if wrong.any():
        first = int(np.argmax(wrong))
        allowed = f"[0, {most:g}]" if np.isfinite(most) else "[0, ∞)"
        raise ValueError(f"{name} must stay in {allowed}; it is {values[first]:g} at t = {t[first]:,}")
