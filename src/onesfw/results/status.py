"""Why a run ended: an enum whose members carry a sentence."""

from __future__ import annotations

from enum import Enum


class Status(Enum):
    """Why a run ended. `status.value` is a sentence with advice.

    Example:
        >>> import onesfw as fw
        >>> print(fw.Status.STEPS_DONE)
        All steps were done.
    """

    STEPS_DONE = "All steps were done."
    GAP_REACHED = "The upper confidence limit of the Frank-Wolfe gap fell below gap_tol."
    TIME_UP = "The time limit was reached; x is feasible, from the steps done. Raise time_limit for more steps."
    INTERRUPTED = "The run was interrupted; x is feasible, from the steps done."
    STOPPED = "A callback returned False; x is feasible, from the steps done."
    NOT_FINITE = (
        "A gradient or an iterate became NaN or infinite; x is the last finite iterate. "
        "Check the objective's values and derivatives near it (log 0 and 0/0 are the usual causes)."
    )

    def __str__(self) -> str:
        return self.value
