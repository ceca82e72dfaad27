"""G, L, B, D and their kin: what the assumptions of the theorems bound."""

from __future__ import annotations

from dataclasses import dataclass, fields

from onesfw.arguments import number

SIZES = {
    "B": "a bound on |F̃|",
    "R": "a bound on the norms of K's members",
    "L2": "a Lipschitz constant of the Hessians of F̃",
}


@dataclass(frozen=True)
class Constants:
    """The constants of Assumptions 1–6, those of F̃ and those of log p apart.

    In units of F and x: B in F, G in F/x, L in F/x², L2 in F/x³, D and R in x, and the scores' in 1/x, 1/x², 1/x³. The
    paper writes G for max(G, score_G), likewise L and L2, which adds numbers of different units; a score's constant
    that is left out is taken equal to its partner, as the paper does.

    For the dr_submodular setting the constants must hold on conv(K ∪ {0}), where its iterates live.

    Args:
        G: ‖∇F̃(x; z)‖ ≤ G for all x in K and all z (Assumptions 3 and 6).
        L: ‖∇²F̃(x; z)‖ ≤ L for all x in K and all z: the smoothness of every draw (Assumptions 4 and 6).
        D: ‖x − y‖ ≤ D for all x, y in K (Assumption 1).
        B: |F̃(x; z)| ≤ B (Assumption 2); needed in the nonconvex setting, and where samples depend on x.
        R: ‖x‖ ≤ R for all x in K (Assumption 1); needed in the dr_submodular setting.
        L2: ‖∇²F̃(x; z) − ∇²F̃(y; z)‖ ≤ L2 ‖x − y‖ (Assumption 5); needed by the correction "difference".
        score_G: E‖∇log p(z; x)‖⁴ ≤ score_G⁴ (Assumption 3); None for G.
        score_L: E‖∇²log p(z; x)‖² ≤ score_L² (Assumption 4); None for L.
        score_L2: ‖∇²log p(z; x) − ∇²log p(z; y)‖ ≤ score_L2 ‖x − y‖ (Assumption 5); None for L2.
        oblivious: whether the distribution of z does not depend on x; the scores' constants then play no part.
        baseline: whether a baseline b is taken off F̃: |F̃ − b| ≤ 2B then stands wherever the score multiplies F̃.

    Raises:
        TypeError, ValueError: where a constant is no finite number of at least 0.

    Example:
        >>> from onesfw import theory
        >>> theory.Constants(G=2, L=1, D=1.5).D
        1.5
    """

    G: float
    L: float
    D: float
    B: float | None = None
    R: float | None = None
    L2: float | None = None
    score_G: float | None = None
    score_L: float | None = None
    score_L2: float | None = None
    oblivious: bool = True
    baseline: bool = False

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in ("oblivious", "baseline"):
                if not isinstance(value, bool):
                    raise TypeError(f"{field.name} must be True or False, got {value!r}")
            elif value is not None or field.name in ("G", "L", "D"):
                object.__setattr__(self, field.name, number(value, field.name, 0))

    def known(self, name: str, reason: str) -> float:
        """A constant that may have been left out, or an error that says what needs it."""
        value: float | None = getattr(self, name)
        if value is None:
            raise ValueError(f"{reason} needs {name}, {SIZES[name]}; pass {name}= to Constants")
        return value

    def of_score(self, name: str) -> float:
        """The constant `score_{name}` of log p, or its partner's where it was left out."""
        own: float | None = getattr(self, f"score_{name}")
        return self.known(name, "a score's constant") if own is None else own
