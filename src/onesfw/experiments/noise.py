"""1-SFW's lead over momentum as the noise grows: `quadratic-interior` with nothing but σ changed."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from onesfw.experiments.compare import Comparison, Plan, prepare
from onesfw.experiments.grids import Grid, mean_text, number_text, ratio_text
from onesfw.experiments.methods import REFERENCE
from onesfw.experiments.slopes import ratio
from onesfw.experiments.subject import Subject
from onesfw.trees import Array
from onesfw.zoo import quadratics
from onesfw.zoo.base import Problem

RIVAL = "momentum_sfw"
DRAWS = 50_000  # that the covariance of a gradient is taken from


def plan_noise(sigmas: Sequence[float], budget: int, seeds: int, key: int = 0) -> dict[float, Plan]:
    """Both methods at every σ, momentum with each of its step rules."""
    problems = {s: quadratics.interior(f"quadratic-interior, σ = {s:g}", "optimum inside", s) for s in sigmas}
    return {
        sigma: prepare(Subject.of(problem), budget, seeds, key, [REFERENCE, RIVAL], step_rules=True)
        for sigma, problem in problems.items()
    }


def sample_average_error(problem: Problem, samples: int) -> float:
    """½ tr(H⁺ Σ)/N, to first order in 1/N the expected error of the sample average's minimiser: F is quadratic, its
    optimum inside the simplex, H its Hessian along the simplex, Σ the covariance of one sample's gradient there."""
    assert problem.gradient is not None
    x = problem.optimum().x
    d = x.size

    def gradient(number: Array) -> Array:
        objective = problem.objective
        return objective.at(objective.draw(jax.random.key(0), number), x, jnp.zeros(())).gradient(x)

    with jax.enable_x64(True):
        gradients = jax.jit(jax.vmap(gradient))(np.arange(DRAWS))
    along = np.eye(d) - 1 / d
    hessian = problem.gradient(np.eye(d)) - problem.gradient(np.zeros(d))
    inverse = np.linalg.pinv(along @ hessian @ along, hermitian=True)
    return float(np.sum(inverse * np.cov(np.asarray(gradients), rowvar=False)) / 2 / samples)


def noise_grid(levels: dict[float, Comparison]) -> Grid:
    """A row for each σ."""
    rows = []
    for sigma, comparison in levels.items():
        ours, theirs = comparison.curve(REFERENCE), comparison.curve(RIVAL)
        problem = comparison.subject.problem
        if ours is None or theirs is None or problem is None:
            continue
        finals = comparison.rules[RIVAL]
        rule = min(finals, key=lambda name: float(finals[name].mean()))
        rows.append(
            (
                f"{sigma:g}", mean_text(ours.final),
                number_text(sample_average_error(problem, comparison.budget), 2),
                f"{mean_text(theirs.final)} ({rule})", ratio_text(ratio(theirs.final, ours.final)),
            )
        )  # fmt: skip
    first = next(iter(levels.values()))
    note = (
        f"F(x) − F* at {first.budget:,} samples, {first.seeds} seeds; momentum with the best of its step rules. Sample "
        "average: ½ tr(H⁺Σ)/N, what minimising the mean of as many samples is expected to leave."
    )
    columns = ("σ", "1-SFW", "sample average", "momentum", "momentum over 1-SFW")
    return Grid("Noise", columns, rows, note)
