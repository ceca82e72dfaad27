"""Errors and warnings on the command line: one sentence on the error stream; a mistake has exit code 2."""

from __future__ import annotations

import inspect
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer

from onesfw.engine.interrupts import INTERRUPTED

MISTAKE = 2
BROKEN_DOWN = 1


@contextmanager
def readable_errors(traceback: bool, command: Callable[..., Any] | None = None, **spelling: str) -> Iterator[None]:
    """Turn whatever goes wrong inside into a sentence and an exit code; with `traceback`, let it through.

    Inside, messages call arguments by the options of `command`: `radius` is `--radius`. `spelling` adds those whose
    option has another name.
    """
    from onesfw.arguments import spelled

    names = ({} if command is None else options_of(command)) | spelling
    try:
        with spelled(names), warnings.catch_warnings():
            if not sys.warnoptions:
                warnings.simplefilter("always", UserWarning)
            warnings.showwarning = show_warning
            yield
    except (typer.Exit, BrokenPipeError):
        raise
    except KeyboardInterrupt:
        print("onesfw: interrupted before the first step", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    except FloatingPointError as error:
        if traceback:
            raise
        say(str(error))
        raise typer.Exit(BROKEN_DOWN) from None
    except Exception as error:  # a user's file may raise anything
        if traceback:
            raise
        say(as_options(message_of(error), names))
        raise typer.Exit(MISTAKE) from None


@contextmanager
def interruptible(outcome: str) -> Iterator[None]:
    """Ctrl-C ends the command with the outcome in words and exit code 130."""
    try:
        yield
    except KeyboardInterrupt:
        say(f"interrupted; {outcome}")
        raise typer.Exit(INTERRUPTED) from None


def options_of(command: Callable[..., Any]) -> dict[str, str]:
    """The options of a command by the names of its parameters: what `radius` is called on the command line."""
    found = {}
    for name, parameter in inspect.signature(command).parameters.items():
        declared = getattr(parameter.default, "param_decls", None)
        if declared is None or type(parameter.default).__name__ != "OptionInfo":
            continue
        found[name] = declared[0].split("/")[0] if declared else f"--{name.replace('_', '-')}"
    return found


def as_options(message: str, names: dict[str, str]) -> str:
    """A message that begins with an argument's name, with the option's name instead."""
    found = re.match(r"(\w+)(?=[ :=])", message)
    return message if found is None or found[1] not in names else names[found[1]] + message[found.end() :]


def say(text: str) -> None:
    """A sentence on the error stream."""
    print(f"onesfw: {text}", file=sys.stderr)


def show_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, file: Any = None, line: Any = None
) -> None:
    """A warning as a sentence."""
    say(str(message))


def message_of(error: BaseException) -> str:
    """An error in one line: ours are sentences already, a stranger's gets its type's name in front."""
    message = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    first = lines[0] if lines else "failed without a message"
    return first if isinstance(error, ValueError | TypeError | OSError) else f"{type(error).__name__}: {first}"
