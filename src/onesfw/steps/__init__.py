"""x_{t+1} = step(x_t, v_t, η_t): how the iterate moves towards a vertex, without drifting in float32."""

from onesfw.steps.continuous_greedy import BelowStep, ContinuousGreedyStep, TwoPhaseStep, greedy_steps
from onesfw.steps.frank_wolfe import FrankWolfeStep, LazyStep, NormalizedStep, SetLike, Step, StepState
from onesfw.steps.projected_steps import ProjectedStep, SlidingStep

__all__ = [
    "BelowStep",
    "ContinuousGreedyStep",
    "FrankWolfeStep",
    "LazyStep",
    "NormalizedStep",
    "ProjectedStep",
    "SetLike",
    "SlidingStep",
    "Step",
    "StepState",
    "TwoPhaseStep",
    "greedy_steps",
]
