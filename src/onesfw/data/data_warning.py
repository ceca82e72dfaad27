"""`DataWarning`: what a user should hear of the data although the work goes on."""

from __future__ import annotations

from collections.abc import Sequence

from onesfw import arguments


class DataWarning(UserWarning):
    """Rows were skipped, a cache was written anew, or a file that was asked for could not be written or tested on.

    Example:
        >>> import warnings
        >>> from onesfw.linear import DataWarning
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("error", DataWarning)  # to end a program at the first one
        ...     warnings.warn("3 rows were skipped", DataWarning)
        Traceback (most recent call last):
        onesfw.data.data_warning.DataWarning: 3 rows were skipped
    """


def warn(text: str) -> None:
    """A `DataWarning`."""
    arguments.warn(text, DataWarning)


def warn_skipped(name: str, examples: Sequence[str], count: int) -> None:
    """Warn of rows that were left out, with the first of them by their lines."""
    if examples:
        warn(f"{name}: {count:,} {'row was' if count == 1 else 'rows were'} skipped: " + "; ".join(examples))
