"""The settings that theorems are about, and what recipes check of their arguments before they join anything."""

from __future__ import annotations

from collections.abc import Iterable

from onesfw import schedules
from onesfw.arguments import choose
from onesfw.schedules.rates import Schedule, ScheduleLike

CONVEX, NONCONVEX, DR_SUBMODULAR, NONMONOTONE_DR = "convex", "nonconvex", "dr_submodular", "nonmonotone_dr"
KNOWN_SETTINGS = (CONVEX, NONCONVEX, DR_SUBMODULAR, NONMONOTONE_DR)
PAPER = "paper"
MAXIMISED = (DR_SUBMODULAR, NONMONOTONE_DR)


def choose_setting(setting: str, settings: Iterable[str], name: str) -> None:
    """Raise ValueError where a method does not have the setting."""
    choose(setting, KNOWN_SETTINGS, "setting")
    if setting not in settings:
        known = ", ".join(map(repr, settings))
        raise ValueError(f"setting={setting!r}: {name} has no such result; it serves {known}")


def convex_schedule(setting: str, schedule: str | None, known: Iterable[str], best: str = PAPER) -> str:
    """The name of a convex step rule: the one asked for, else the `best` published one; elsewhere the paper's.

    Raises:
        ValueError: where the schedule is unknown, or asked for outside the convex setting, whose rules have names.
    """
    if schedule is None:
        return best if setting == CONVEX else PAPER
    choose(schedule, known, "schedule")
    if setting != CONVEX and schedule != PAPER:
        raise ValueError(
            f"schedule={schedule!r} is a step rule of the convex setting; leave it out in the {setting} setting, or "
            "give eta="
        )
    return schedule


def schedule_or(preset: Schedule, value: ScheduleLike | None, name: str) -> Schedule:
    """The preset, unless a user gave another schedule."""
    return preset if value is None else schedules.as_schedule(value, name)
