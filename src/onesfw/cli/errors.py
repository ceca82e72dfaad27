"""Errors on the command line: one sentence on the error stream, exit code 2."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

INTERRUPTED = 130
MISTAKE = 2


@contextmanager
def sentences(traceback: bool) -> Iterator[None]:
    """Turn whatever goes wrong inside into a sentence and an exit code; with `traceback`, let it through."""
    try:
        yield
    except (typer.Exit, BrokenPipeError):
        raise
    except KeyboardInterrupt:
        print("onesfw: interrupted before the first step", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    except Exception as error:  # a user's file may raise anything
        if traceback:
            raise
        print(f"onesfw: {sentence(error)}", file=sys.stderr)
        raise typer.Exit(MISTAKE) from None


def sentence(error: BaseException) -> str:
    """An error in one line: ours are sentences already, a stranger's gets its type's name in front."""
    message = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    first = lines[0] if lines else "failed without a message"
    return first if isinstance(error, ValueError | TypeError | OSError) else f"{type(error).__name__}: {first}"
