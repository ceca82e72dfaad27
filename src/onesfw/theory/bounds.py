"""What Lemmas 2 and 3 and Theorems 1–4 promise.

Every bound starts from the gradient error e_t = ∇F(x_t) − d_t. With ρ_{t+1} = t^(−α), η_t ≤ t^(−α) and steps of length
‖x_{t+1} − x_t‖ ≤ η_t S (S = D, or R for continuous greedy) the proof of Lemma 2 gives

    E‖e_{t+1}‖² ≤ (1 − t^(−α))² E‖e_t‖² + a² t^(−2α) + 2b t^(−2α) √E‖e_t‖²,        E‖e_1‖², E‖e_2‖² ≤ g²,

where g bounds the root mean square of ∇F(x_t) − g_t, the gradient term's error; a = g + S·(the same for Δ̃ − Δ, per
length); and b = S·(biases of the gradient term and of Δ̃, per length). From it E‖e_t‖² ≤ C t^(−α) follows by induction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from onesfw.algorithms import CONVEX, DR_SUBMODULAR, NONCONVEX
from onesfw.arguments import choose, number
from onesfw.theory.constants import Constants
from onesfw.trees import Counts, Floats

FORMS = ("homogeneous", "paper")
CORRECTIONS = ("hessian", "difference")
EXPONENTS = {CONVEX: 1.0, NONCONVEX: 2 / 3, DR_SUBMODULAR: 1.0}
Steps = float | Sequence[float] | Counts | Floats  # a step number, or an array of them
MOST_STEPS = 10**300  # beyond, a step number is no floating-point number


@dataclass(frozen=True)
class Bounds:
    """The paper's bounds for one_sfw with the theorems' schedules, from the constants of a problem.

    The correction "importance" has no theorem: its variance depends on the weights p(z; y)/p(z; x), which no assumption
    bounds.

    Args:
        constants: given, or from `estimate`.
        form: of the constant C. "paper" takes the printed maximum, whose terms have different units: what it says
            depends on whether lengths are given in metres or in feet. "homogeneous", never above it in Lemma 2, takes
            the least C that the induction allows, and scales as the error does.
        score: True is the algorithm with the unbiased gradient term ∇F̃ + F̃ ∇log p, as it runs here. False is the
            printed one, whose proof takes E ∇F̃ for ∇F: no guarantee, for the record. Oblivious objectives make no
            difference.
        correction: as in `one_sfw`: None for Algorithm 2 on oblivious objectives and "hessian" on the others (Lemma 2),
            or "difference" (Lemma 3 where samples depend on x, Algorithm 2 again where they do not).

    Raises:
        TypeError: where `constants` are no `Constants`, `score` is neither True nor False, or another argument no word.
        ValueError: where there is no such form or correction; from the bounds, where a constant is needed that was left
            out.

    Example:
        >>> from onesfw import theory
        >>> bounds = theory.Bounds(theory.Constants(G=1.0, L=1.0, D=1.0))
        >>> bounds.convex(100) > bounds.convex(10_000) > 0
        True
        >>> bounds.at(bounds.steps_for(0.5)) <= 0.5
        True
    """

    constants: Constants
    form: str = "homogeneous"
    score: bool = True
    correction: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.constants, Constants):
            raise TypeError(f"constants must be a Constants, such as estimate() returns, got {self.constants!r}")
        choose(self.form, FORMS, "form")
        if self.correction is not None:
            choose(self.correction, CORRECTIONS, "correction")
        if not isinstance(self.score, bool):
            raise TypeError(f"score must be True or False, got {self.score!r}")

    @property
    def smoothness(self) -> float:
        """L̄: √E‖∇̃²F(x; z)‖² ≤ L̄ for all x in K, and F is L̄-smooth (Lemma 1). L for oblivious objectives.

        The Hessian's estimate is F̃ss' + ∇²F̃ + ∇F̃s' + s∇F̃' + F̃∇²log p with s = ∇log p (eq. 6). Homogeneous: the root
        mean squares of its terms add up (Minkowski), and E‖F̃ss'‖² ≤ B²E‖s‖⁴, E‖∇F̃s'‖² ≤ G²E‖s‖² ≤ G²√E‖s‖⁴:

            L̄ = B score_G² + 2G score_G + L + B score_L.

        Paper: (p + q + r + s)² ≤ 4(p² + q² + r² + s²) on the same four terms, and one G and one L for both functions:
        L̄² = 4B²G⁴ + 16G⁴ + 4L² + 4B²L² (Lemma 1 prints L̄ for L̄²). A baseline puts 2B for B.
        """
        c = self.constants
        if c.oblivious:
            return c.L
        size = self.integrand_size()
        if self.form == "homogeneous":
            score = c.of_score("G")
            return size * score**2 + 2 * c.G * score + c.L + size * c.of_score("L")
        gradient, hessian = self.common("G"), self.common("L")
        return 2 * math.sqrt((size**2 + 4) * gradient**4 + (1 + size**2) * hessian**2)

    def error_constant(self, setting: str = CONVEX, alpha: float | None = None) -> float:
        """C in E‖∇F(x_t) − d_t‖² ≤ C t^(−α): Lemma 2, or Lemma 3 for the correction "difference".

        Homogeneous: the induction needs h C − 2·2^(−α/2) b √C − a² ≥ 0, h = 2 − 2^(−α) − α, and C ≥ 2^α g² at t = 2:

            √C = max{[2^(−α/2) b + √(2^(−α) b² + h a²)]/h, 2^(α/2) g}.

        Paper, Lemma 2: C = max{2a²/h, (2/h)⁴, (2b)⁴}. Lemma 3: C = max{8(S²L̄² + G² + GSL̄)/h, (2/h)⁴, (4b)⁴}, whose
        proof drops the products of the difference's bias with e_t and with Δ̃ − Δ.

        What goes in (S = D, or R in the dr_submodular setting; M = L2 + B score_L2):

            ===========================  =====================  ===========  =============================
            oblivious, Algorithm 2       g = 2G                 a = g + SL   b = 0 (paper's form: 2SL)
            oblivious, "hessian"         g = 2G                 a = g + SL   b = SL/2 (paper's form: 2SL)
            "hessian", with the score    g = 2(G + B score_G)   a = g + SL̄   b = SL̄/2
            "hessian", as printed        g = 2G                 a = g + SL̄   b = S(L̄ + L)
            "difference"                 as for "hessian"       S²M/2 more   S²M/2 more
            ===========================  =====================  ===========  =============================

        With the score, z_t is drawn at x_t(u) = x_t − (1 − u)(x_t − x_{t−1}), u uniform, and the gradient term is taken
        there: its bias is at most L̄ E(1 − u)‖x_t − x_{t−1}‖. A difference of gradients over the whole segment is off by
        at most M‖x_t − x_{t−1}‖²/2, and η² ≤ η t^(−α) gives that t^(−2α) too. The paper's form writes 2(1 + B)G for g
        and its one G and L throughout.

        Args:
            setting: "convex", "nonconvex" or "dr_submodular": the exponent α and the length S of a step.
            alpha: another exponent in (0, 1], for ρ_t = (t − 1)^(−α) and η_t ≤ t^(−α); None for the theorem's.
        """
        choose(setting, EXPONENTS, "setting")
        exponent = EXPONENTS[setting] if alpha is None else number(alpha, "alpha", 0, strict=True)
        if exponent > 1:
            raise ValueError(f"alpha must lie in (0, 1], got {alpha!r}")
        span = self.constants.D if setting != DR_SUBMODULAR else self.radius()
        slack = 2 - 2**-exponent - exponent
        return self.homogeneous(span, slack, exponent) if self.form == "homogeneous" else self.printed(span, slack)

    def gradient_error(self, t: Steps, setting: str = CONVEX, alpha: float | None = None) -> float | Floats:
        """E‖∇F(x_t) − d_t‖² ≤ C t^(−α): Lemmas 2 and 3.

        Args:
            t: a step, or an array of steps 1, 2, …
            setting, alpha: as for `error_constant`.

        Returns:
            A number for a number, an array for an array.
        """
        constant = self.error_constant(setting, alpha)
        return plain(constant * step_numbers(t, "t") ** -(EXPONENTS[setting] if alpha is None else alpha))

    def convex(self, steps: Steps) -> float | Floats:
        """E F(x_{T+1}) − F* ≤ 2D√C/√T + L̄D²(1 + ln T)/(2T), for convex F after T steps (Theorem 1; Theorem 4.1)."""
        steps, c = step_numbers(steps, "steps"), self.constants
        noise = 2 * c.D * math.sqrt(self.error_constant(CONVEX)) / np.sqrt(steps)
        return plain(noise + self.smoothness * c.D**2 * (1 + np.log(steps)) / (2 * steps))

    def nonconvex(self, steps: Steps) -> float | Floats:
        """E gap(x_o) ≤ (2B + 3D√C/2)/T^(1/3) + L̄D²/(2T^(2/3)), for any smooth F (Theorem 2; Theorem 4.2).

        gap(x) = max over v in K of ⟨∇F(x), x − v⟩. 2B stands for F(x_1) − min F, so that a constant added to F̃ counts.
        """
        steps, c = step_numbers(steps, "steps"), self.constants
        start = 2 * c.known("B", "the nonconvex setting")
        noise = 3 * c.D * math.sqrt(self.error_constant(NONCONVEX)) / 2
        return plain((start + noise) / np.cbrt(steps) + self.smoothness * c.D**2 / (2 * np.cbrt(steps) ** 2))

    def dr_submodular(self, steps: Steps) -> float | Floats:
        """(1 − 1/e) F* − E F(x_{T+1}) ≤ 4R√C/√T + L̄R²/(2T), for monotone DR-submodular F (Theorem 3; Theorem 4.3).

        x_1 = 0 and F(0) ≥ 0; F and the constants are needed on conv(K ∪ {0}), and K in the non-negative orthant.
        """
        steps, radius = step_numbers(steps, "steps"), self.radius()
        noise = 4 * radius * math.sqrt(self.error_constant(DR_SUBMODULAR)) / np.sqrt(steps)
        return plain(noise + self.smoothness * radius**2 / (2 * steps))

    def at(self, steps: Steps, setting: str = CONVEX) -> float | Floats:
        """The bound of the theorem for that setting."""
        choose(setting, EXPONENTS, "setting")
        theorems: dict[str, Callable[[Steps], float | Floats]] = {
            CONVEX: self.convex, NONCONVEX: self.nonconvex, DR_SUBMODULAR: self.dr_submodular
        }  # fmt: skip
        return theorems[setting](steps)

    def steps_for(self, epsilon: float, setting: str = CONVEX) -> int:
        """The least T ≥ 1 whose bound is at most ε, by bisection.

        Every bound falls with T: (1 + ln T)/T has the slope −ln T/T², which is 0 at T = 1 and negative after it, though
        ln T/T alone would rise up to T = e. Beyond 2⁵³ ≈ 9e15 steps the answer has the precision of floating point.
        """
        epsilon = number(epsilon, "epsilon", 0, strict=True)
        high = 1
        while float(self.at(high, setting)) > epsilon:
            high *= 2
            if high > MOST_STEPS:
                raise ValueError(f"epsilon={epsilon:g} would take more than 1e300 steps by the {self.form} constant")
        low = high // 2  # not enough, or 0
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if float(self.at(middle, setting)) <= epsilon else (middle, high)
        return high

    def homogeneous(self, span: float, slack: float, exponent: float) -> float:
        """C from the recursion itself."""
        c, smooth = self.constants, self.smoothness
        gradient, bias = 2 * c.G, span * smooth / 2
        if c.oblivious:
            bias = bias if self.correction == "hessian" else 0.0
        elif self.score:
            gradient += 2 * self.integrand_size() * c.of_score("G")
        else:
            bias = span * (smooth + c.L)
        spread = gradient + span * smooth
        if self.correction == "difference" and not c.oblivious:
            second = c.known("L2", "the correction 'difference'") + self.integrand_size() * c.of_score("L2")
            spread, bias = spread + span**2 * second / 2, bias + span**2 * second / 2
        late = 2 ** (-exponent / 2) * bias
        root = (late + math.sqrt(late**2 + slack * spread**2)) / slack
        return max(root, 2 ** (exponent / 2) * gradient) ** 2

    def printed(self, span: float, slack: float) -> float:
        """The paper's maximum of unlike terms."""
        c, smooth = self.constants, self.smoothness
        with_score = self.score and not c.oblivious
        gradient = (1 + self.integrand_size()) * self.common("G") if with_score else self.common("G")
        bias = span * smooth / 2 if with_score else span * (smooth + self.common("L"))
        if self.correction == "difference" and not c.oblivious:
            first, bias = 8 * (span**2 * smooth**2 + gradient**2 + gradient * span * smooth) / slack, 2 * bias
        else:
            first = 2 * (2 * gradient + span * smooth) ** 2 / slack
        return max(first, (2 / slack) ** 4, (2 * bias) ** 4)

    def integrand_size(self) -> float:
        """What multiplies the score: |F̃| ≤ B, or |F̃ − b| ≤ 2B. The printed algorithm has no baseline."""
        size = self.constants.known("B", "an objective whose samples depend on x")
        return 2 * size if self.constants.baseline and self.score else size

    def common(self, name: str) -> float:
        """The paper's one constant for F̃ and log p."""
        own: float = getattr(self.constants, name)
        return own if self.constants.oblivious else max(own, self.constants.of_score(name))

    def radius(self) -> float:
        """R, the length of a step of continuous greedy."""
        return self.constants.known("R", "the dr_submodular setting")


def step_numbers(steps: Steps, argument: str) -> Floats:
    """Step numbers as floats; an error where they are none."""
    try:
        numbers = np.asarray(steps, np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{argument} must be a step number or an array of them, got {steps!r}") from None
    if not np.all(np.isfinite(numbers) & (numbers >= 1)):
        raise ValueError(f"{argument} must hold finite numbers of at least 1, got {steps!r}")
    return numbers


def plain(values: Floats) -> float | Floats:
    """A number for a number, an array for an array."""
    return float(values) if np.ndim(values) == 0 else values
