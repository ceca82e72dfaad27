"""(η_t, ρ_t) by name, for convex F: the same names mean the same formulas in `one_sfw` and in linear models."""

from __future__ import annotations

from dataclasses import dataclass

from onesfw.schedules.rates import Schedule, harmonic, inverse


@dataclass(frozen=True)
class Preset:
    """A pair of step sizes and weights of the new gradient.

    Args:
        name: what users write.
        eta: η_t.
        rho: ρ_t; of an adaptive preset the formula alone counts, for the values come from the run itself:
            ρ_t = c/(t + c − 2) with c = (1 + √(1 + 4m²/s²))/2, m² and s² running means of what moves and of what is
            noise in the samples' gradients.
        adaptive: whether ρ_t follows the run.
        pace: where it is not 0, η_t follows the run too: a/(t + a − 1), a = pace · c^(−1/2) with the c of ρ.

    Example:
        >>> from onesfw.schedules import Preset, harmonic, inverse
        >>> Preset("c2", harmonic(2.0, 1.0), inverse(2.0)).formula
        'η = 2/(t+1), ρ = 2/(t-1)'
    """

    name: str
    eta: Schedule
    rho: Schedule
    adaptive: bool = False
    pace: float = 0.0

    @property
    def formula(self) -> str:
        """η and ρ in one line."""
        return f"η = {self.eta.formula}, ρ = {self.rho.formula}"


ADAPTIVE = Schedule("adaptive", inverse(1.0).function)
PACED = Schedule("a/(t+a-1)", harmonic().function)
TO_THE_LAST = 2.0  # of c^(−1/2), where x_{T+1} is the answer; 1 where an average or a corrected output is

PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset("auto", PACED, ADAPTIVE, adaptive=True, pace=TO_THE_LAST),
        Preset("paper", harmonic(), inverse(1.0)),
        Preset("tuned", harmonic(), ADAPTIVE, adaptive=True),
        Preset("adaptive", harmonic(2.0, 1.0), ADAPTIVE, adaptive=True),
        Preset("c2", harmonic(2.0, 1.0), inverse(2.0)),
        Preset("c4", harmonic(2.0, 1.0), inverse(4.0)),
    )
}
