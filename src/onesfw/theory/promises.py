"""What the theorems promise for a problem: its constants, the bound after T steps, the steps for an error."""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass

from onesfw.algorithms import CONVEX
from onesfw.arguments import choose, number, whole_number
from onesfw.objectives import Objective
from onesfw.results.jsonable import Jsonable
from onesfw.results.show import Sheet, lines
from onesfw.sets import ConvexSet
from onesfw.theory.bounds import CORRECTIONS, EXPONENTS, FORMS, Bounds
from onesfw.theory.constants import Constants
from onesfw.theory.estimates import EstimateWarning, estimate
from onesfw.trees import Array, Tree

LABELS = {
    "G": "G, largest ‖∇F̃‖",
    "L": "L, largest ‖∇²F̃‖",
    "B": "B, largest |F̃|",
    "D": "D, diameter of the set",
    "R": "R, largest ‖x‖ in the set",
    "L2": "L2, largest ‖∇³F̃‖",
    "score_G": "score_G, fourth moment of ‖∇log p‖",
    "score_L": "score_L, second moment of ‖∇²log p‖",
    "score_L2": "score_L2, largest ‖∇³log p‖",
}
PROMISES = {
    "convex": "E F(x_T+1) − F*",
    "nonconvex": "E gap(x_o)",
    "dr_submodular": "(1 − 1/e) F* − E F(x_T+1)",
}


@dataclass(frozen=True)
class Promise:
    """What one form of C promises."""

    form: str
    score: bool
    smoothness: float
    C: float
    gradient_error: float
    bound: float
    steps_for_epsilon: int | None


@dataclass(frozen=True)
class Promises:
    """What the theorems promise for a problem, by each form of C.

    Args:
        constants: of the problem.
        setting: "convex", "nonconvex" or "dr_submodular".
        steps: T, after which the bounds hold.
        epsilon: the error that steps were found for; None where none was asked for.
        bounds: a row for each form of C, as `promises_from` gives them.
        warning: how far the constants can be trusted.

    Example:
        >>> from onesfw import theory
        >>> constants = theory.Constants(G=1.0, L=1.0, D=1.0)
        >>> found = theory.Promises(constants, "convex", 100, None, theory.promises_from(constants, steps=100))
        >>> [promise.form for promise in found.bounds]
        ['homogeneous', 'paper']
    """

    constants: Constants
    setting: str
    steps: int
    epsilon: float | None
    bounds: list[Promise]
    warning: str = ""

    @property
    def promise(self) -> str:
        """What is bounded."""
        return PROMISES[self.setting]

    def known(self) -> dict[str, float]:
        """The constants that there are."""
        values = {name: getattr(self.constants, name) for name in LABELS}
        return {name: value for name, value in values.items() if value is not None}

    def sheets(self) -> list[Sheet]:
        """The constants, and the bounds."""
        samples = "samples do not depend on x" if self.constants.oblivious else "samples depend on x"
        first = Sheet(
            f"{self.setting}, {samples}",
            ("constant", "estimate"),
            [(LABELS[k], f"{v:.4g}") for k, v in self.known().items()],
        )
        columns = ["form of C", "L̄", "C", "E‖d_T − ∇F(x_T)‖² ≤", "bound"]
        if self.epsilon is not None:
            columns.append(f"steps for {self.epsilon:g}")
        rows = []
        for row in self.bounds:
            score = "" if self.constants.oblivious else ", with score" if row.score else ", without score"
            found: list[float] = [row.smoothness, row.C, row.gradient_error, row.bound]
            found += [] if row.steps_for_epsilon is None else [row.steps_for_epsilon]
            rows.append((row.form + score, *(f"{figure:.3g}" for figure in found)))
        notes = [] if self.constants.oblivious else [BIASED]
        notes += [f"Note: {self.warning}."] if self.warning else []
        return [first, Sheet(f"{self.promise} after T = {self.steps:,} steps", columns, rows, "\n".join(notes))]

    def __str__(self) -> str:
        return "\n\n".join(lines(sheet) for sheet in self.sheets())

    def as_dict(self) -> dict[str, Jsonable]:
        """The same as JSON has it."""
        return {
            "setting": self.setting,
            "oblivious": self.constants.oblivious,
            "constants": self.known(),
            "promise": self.promise,
            "steps": self.steps,
            "epsilon": self.epsilon,
            "bounds": [asdict(row) for row in self.bounds],
            "warning": self.warning,
        }


BIASED = "Without the score term the gradient estimate is biased, and the bound promises nothing."


def promises(
    objective: Objective,
    constraint: ConvexSet,
    x0: Tree | None = None,
    *,
    setting: str = CONVEX,
    steps: int = 100_000,
    epsilon: float | None = None,
    correction: str | None = None,
    points: int = 64,
    samples: int = 1_000,
    key: int | Array = 0,
) -> Promises:
    """Estimate a problem's constants and put them into the theorems.

    Args:
        objective: `Expectation`, `NonOblivious` or `FiniteSum`.
        constraint: a set from `onesfw.sets`.
        x0: a member of the set, which tells shapes and dtype; None for the set's own.
        setting: "convex", "nonconvex" or "dr_submodular".
        steps: T, to bound the error after.
        epsilon: an error to find the steps for.
        correction: "hessian" or "difference"; None for one_sfw's own.
        points: points of the set to estimate constants at.
        samples: draws at each point.
        key: an integer seed or a JAX key.

    Returns:
        Constants and bounds; `warning` says how far to trust them.

    Raises:
        TypeError, ValueError: where an argument does not fit.

    Example:
        >>> from onesfw import theory, zoo
        >>> problem = zoo.get("quadratic-face")
        >>> found = theory.promises(problem.objective, problem.constraint, steps=1000, points=4, samples=50)
        >>> found.promise, found.bounds[0].bound > 0
        ('E F(x_T+1) − F*', True)
    """
    steps = whole_number(steps, "steps", 1)
    if epsilon is not None:
        epsilon = number(epsilon, "epsilon", 0, strict=True)
    if correction is not None:
        choose(correction, CORRECTIONS, "correction")
    choose(setting, EXPONENTS, "setting")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        constants = estimate(objective, constraint, x0, setting=setting, points=points, samples=samples, key=key)
    doubts = [str(entry.message) for entry in caught if issubclass(entry.category, EstimateWarning)]
    for entry in caught:
        if not issubclass(entry.category, EstimateWarning):
            warnings.warn_explicit(entry.message, entry.category, entry.filename, entry.lineno)
    rows = promises_from(constants, setting=setting, correction=correction, steps=steps, epsilon=epsilon)
    return Promises(constants, setting, steps, epsilon, rows, " ".join(doubts))


def promises_from(
    constants: Constants,
    *,
    setting: str = CONVEX,
    correction: str | None = None,
    steps: int = 100_000,
    epsilon: float | None = None,
) -> list[Promise]:
    """A row for each form of C; where samples depend on x, with the score term and as printed without it.

    Args:
        constants: given, or from `estimate`.
        setting: "convex", "nonconvex" or "dr_submodular".
        correction: "hessian" or "difference"; None for one_sfw's own.
        steps: T, to bound the error after.
        epsilon: an error to find the steps for.

    Returns:
        The rows: form, whether with the score term, L̄, C, the bounds on the gradient's error and on the promise, and
        the steps for ε.

    Raises:
        TypeError: where an argument is something else.
        ValueError: where there is no such setting or correction, a number is out of range, or a constant is needed that
            was left out.

    Example:
        >>> from onesfw import theory
        >>> rows = theory.promises_from(theory.Constants(G=1.0, L=1.0, D=1.0), steps=10_000, epsilon=0.1)
        >>> rows[0].bound < rows[1].bound, rows[0].steps_for_epsilon > 1
        (True, True)
    """
    if not isinstance(constants, Constants):
        raise TypeError(f"constants must be a Constants, as `estimate` gives it, got {constants!r:.200}")
    steps = whole_number(steps, "steps", 1)
    if epsilon is not None:
        epsilon = number(epsilon, "epsilon", 0, strict=True)
    found = []
    for score in (True,) if constants.oblivious else (True, False):
        for form in FORMS:
            bounds = Bounds(constants, form, score, correction)
            found.append(
                Promise(
                    form=form,
                    score=score,
                    smoothness=bounds.smoothness,
                    C=bounds.error_constant(setting),
                    gradient_error=float(bounds.gradient_error(steps, setting)),
                    bound=float(bounds.at(steps, setting)),
                    steps_for_epsilon=None if epsilon is None else bounds.steps_for(epsilon, setting),
                )
            )
    return found
