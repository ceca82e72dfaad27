"""What an estimator may need of an objective, and what to do where it is missing."""

from __future__ import annotations

from collections.abc import Set

UNBIASED = "unbiased gradients from one sample, the score included where p depends on x"
OBLIVIOUS = "samples whose distribution does not depend on x"
DENSITY = "a log-density of the samples"
FULL_GRADIENT = "a full gradient"
ROWS = "numbered rows"

REMEDIES = {
    UNBIASED: "write the objective as NonOblivious with log_prob=, or, where z = T(x, ε), as Expectation of "
    "F̃(x; T(x, ε))",
    OBLIVIOUS: "write the objective as Expectation or FiniteSum, or choose a method whose samples may depend on x, "
    "such as one_sfw, momentum_sfw, minibatch_sfw or scg_plus_plus",
    DENSITY: "write the objective as NonOblivious with log_prob=",
    ROWS: "write the objective as FiniteSum",
    FULL_GRADIENT: "write the objective as FiniteSum; a deterministic function is a FiniteSum over one row; for a set "
    "function take one with a closed form, Coverage or FacilityLocation, or a method that samples, such as one_sfw",
}


def check(needs: Set[str], offers: Set[str], algorithm: str, objective: str) -> None:
    """Raise a sentence that names the algorithm, the objective, what is missing and the remedy."""
    for need in sorted(needs - offers):
        raise TypeError(f"{algorithm} needs {need}, which objective {objective} does not offer: {REMEDIES[need]}")
