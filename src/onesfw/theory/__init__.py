"""The theorems of Zhang, Shen, Mokhtari, Hassani and Karbasi (2020) as a calculator: what they promise, and when."""

from onesfw.theory.bounds import Bounds
from onesfw.theory.constants import Constants
from onesfw.theory.estimates import EstimateWarning, estimate
from onesfw.theory.promises import Promises, promises, promises_from

__all__ = ["Bounds", "Constants", "EstimateWarning", "Promises", "estimate", "promises", "promises_from"]
