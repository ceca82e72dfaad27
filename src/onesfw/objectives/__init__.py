"""F: how to sample z, and its value, gradient and Hessian-vector product."""

from onesfw.objectives.base import Objective
from onesfw.objectives.expectation import Expectation
from onesfw.objectives.finite_sum import FiniteSum
from onesfw.objectives.non_oblivious import NonOblivious
from onesfw.objectives.surrogates import Surrogate

__all__ = ["Expectation", "FiniteSum", "NonOblivious", "Objective", "Surrogate"]
