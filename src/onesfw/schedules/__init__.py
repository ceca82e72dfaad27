"""ρ_t, η_t and sample sizes: pure functions of t, and of T where a theorem asks for it, computed on the host."""

from onesfw.schedules.presets import ADAPTIVE, PACED, PRESETS, TO_THE_LAST, Preset
from onesfw.schedules.rates import (
    Numbers,
    Schedule,
    as_schedule,
    check,
    constant,
    harmonic,
    horizon_power,
    inverse,
    power,
    require_range,
)
from onesfw.schedules.sizes import MOST_SAMPLES, Batches, Epochs, Sizes, as_sizes

__all__ = [
    "ADAPTIVE",
    "MOST_SAMPLES",
    "PACED",
    "PRESETS",
    "TO_THE_LAST",
    "Batches",
    "Epochs",
    "Numbers",
    "Preset",
    "Schedule",
    "Sizes",
    "as_schedule",
    "as_sizes",
    "check",
    "constant",
    "harmonic",
    "horizon_power",
    "inverse",
    "power",
    "require_range",
]
