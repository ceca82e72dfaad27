"""What a recipe makes: an estimator, a step and schedules, joined under a paper's name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from onesfw import capabilities
from onesfw.arguments import whole_number
from onesfw.capabilities import OBLIVIOUS, ObjectiveLike
from onesfw.estimators import Estimator, OracleCounts
from onesfw.schedules.rates import Schedule
from onesfw.schedules.sizes import MOST_SAMPLES
from onesfw.steps import Step

CORRECTED = "corrected"
LEAST_CORRECTED = 540  # steps of a run that keeps some for a corrected output: fewer make no model worth trusting
SNAPSHOTS = 8  # late iterates that a corrected output mixes, beside the last
MOST_VERTICES = 30  # new vertices that it may ask the oracle for
LINE_POINTS = 3  # points whose gradients its line search takes


def half_kept(steps: int) -> int:
    """B, for each half of a corrected output: a hundredth of the steps, at least 20."""
    return max(20, steps // 100)


def most_vertices(batch: int) -> int:
    """The new vertices that a model from `batch` samples is worth."""
    return min(MOST_VERTICES, batch // 5)


def checked_by(objective: ObjectiveLike, batch: int) -> tuple[int, int]:
    """The gradients that check d̄ and search along a line; Hessian-vector products for the latter if z depends on x."""
    along = LINE_POINTS * batch
    return (2 * batch + along, 0) if OBLIVIOUS in objective.offers else (0, along)


@dataclass(frozen=True)
class Algorithm:
    """A method ready to run: what the loop needs to know, and what a printout says. Recipes make it.

    Args:
        name: the recipe's.
        citation: where the method comes from.
        setting: "convex", "nonconvex", "dr_submodular" or "nonmonotone_dr".
        estimator: from the objective to the estimator, so that one recipe serves oblivious and non-oblivious
            objectives.
        step: the rule for x_{t+1}.
        rho: ρ_t.
        eta: η_t.
        output: "last": x_{T+1}; "random": x_o, uniform over x_1, …, x_T; "average": the mean of x_1, …, x_T;
            "corrected": the minimiser of a quadratic model at the run's averages, as far as samples that were kept for
            it confirm it (`engine/corrected_output.py`).
        t0: η is read at t + t0.
        batch: how the sample sizes print, where they are not 1.
        uncorrected: the method where F̃ cannot be differentiated twice, if its output is "corrected".

    Example:
        >>> import onesfw as fw
        >>> method = fw.one_sfw("nonconvex", schedule="paper")
        >>> method.summary
        'one_sfw[paper], nonconvex (rho=(t-1)^(-0.667), eta=T^(-0.667))'
        >>> objective = fw.FiniteSum(lambda x, row: (x @ row) ** 2, [[1.0, 2.0], [3.0, 4.0]])
        >>> method.steps_for(objective, gradients=1_001)
        501
    """

    name: str
    citation: str
    setting: str
    estimator: Callable[[ObjectiveLike], Estimator]
    step: Step
    rho: Schedule
    eta: Schedule
    output: str = "last"
    t0: int = 0
    batch: str = ""
    uncorrected: Algorithm | None = None

    @property
    def summary(self) -> str:
        """One line for printouts: the name, the setting and the schedules."""
        shift = f", t0={self.t0}" if self.t0 else ""
        batch = f", batch={self.batch}" if self.batch else ""
        output = ", output=corrected" if self.output == CORRECTED else ""
        return f"{self.name}, {self.setting} (rho={self.rho.formula}, eta={self.eta.formula}{batch}{shift}{output})"

    def estimator_for(self, objective: ObjectiveLike) -> Estimator:
        """The estimator for an objective; raises TypeError where the objective lacks what the method needs."""
        estimator = self.estimator(objective)
        capabilities.check(estimator.needs, objective.offers, self.name, type(objective).__name__)
        return estimator

    def kept(self, steps: int) -> int:
        """How many of the last steps give their samples to a corrected output: 2B, B = steps/100 and at least 20."""
        return 2 * half_kept(steps) if self.output == CORRECTED and steps >= LEAST_CORRECTED else 0

    def counts(self, objective: ObjectiveLike, steps: int) -> OracleCounts:
        """Samples, gradients and Hessian-vector products of a run of `steps` steps, known before it is run.

        A corrected output stops asking for Hessian-vector products when its model is solved; here it counts with the
        most that it may ask for.
        """
        return self.counts_with(self.estimator_for(objective), objective, steps)

    def counts_with(self, estimator: Estimator, objective: ObjectiveLike, steps: int) -> OracleCounts:
        """`counts`, for the estimator that `estimator_for` made."""
        kept = self.kept(steps)
        way = estimator.counts(objective, steps - kept, steps)
        if not kept:
            return way
        batch = (estimator.counts(objective, steps, steps).samples - way.samples) // 2
        products = SNAPSHOTS + 1 + most_vertices(batch)
        gradients, hvps = checked_by(objective, batch)
        return OracleCounts(way.samples + 2 * batch, way.gradients + gradients, way.hvps + hvps + products * batch)

    def steps_for(self, objective: ObjectiveLike, *, samples: int | None = None, gradients: int | None = None) -> int:
        """A T whose run stays within a budget of samples, or of gradient evaluations, while that of T + 1 does not.

        Where sizes depend on T, a longer run may cost less now and then (⌈√T⌉ epochs of one step less); the T found is
        then not always the largest.

        Hessian-vector products are counted as gradient evaluations here: each costs about as much as two of them.
        """
        if (samples is None) == (gradients is None):
            raise ValueError("steps_for needs one of samples= and gradients=")
        name = "samples" if gradients is None else "gradients"
        budget = whole_number(samples if gradients is None else gradients, name, 1)
        estimator = self.estimator_for(objective)

        def cost(steps: int) -> int:
            counts = self.counts_with(estimator, objective, steps)
            return counts.samples if gradients is None else counts.gradients + counts.hvps

        if cost(1) > budget:
            raise ValueError(f"{name}: the first step of {self.name} takes {cost(1):,} {name}, more than {budget:,}")
        good, bad = 1, 2
        while bad <= MOST_SAMPLES and cost(bad) <= budget:
            good, bad = bad, 2 * bad
        while bad - good > 1:
            middle = (good + bad) // 2
            good, bad = (middle, bad) if cost(middle) <= budget else (good, middle)
        return good
