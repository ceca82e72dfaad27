"""x_{t+1} = step(x_t, v_t, η_t): how the iterate moves towards a vertex, without drifting in float32."""

from onesfw.steps.continuous_greedy import BelowStep as BelowStep
from onesfw.steps.continuous_greedy import ContinuousGreedyStep as ContinuousGreedyStep
from onesfw.steps.continuous_greedy import TwoPhaseStep as TwoPhaseStep
from onesfw.steps.continuous_greedy import greedy_steps as greedy_steps
from onesfw.steps.frank_wolfe import FrankWolfeStep as FrankWolfeStep
from onesfw.steps.frank_wolfe import LazyStep as LazyStep
from onesfw.steps.frank_wolfe import NormalizedStep as NormalizedStep
from onesfw.steps.frank_wolfe import SetLike as SetLike
from onesfw.steps.frank_wolfe import Step as Step
from onesfw.steps.frank_wolfe import StepState as StepState
from onesfw.steps.projected_steps import ProjectedStep as ProjectedStep
from onesfw.steps.projected_steps import SlidingStep as SlidingStep
