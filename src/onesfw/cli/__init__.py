"""The command `onesfw`: one file per command, errors as one sentence."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import platform
import sys
from pathlib import Path
from typing import Any, cast

import typer

from onesfw.cli.bounds_command import EXAMPLES as BOUNDS_EXAMPLES
from onesfw.cli.bounds_command import bounds_command
from onesfw.cli.compare_command import EXAMPLES as COMPARE_EXAMPLES
from onesfw.cli.compare_command import compare_command
from onesfw.cli.complete_command import EXAMPLES as COMPLETE_EXAMPLES
from onesfw.cli.complete_command import complete_command
from onesfw.cli.fit_command import EXAMPLES as FIT_EXAMPLES
from onesfw.cli.fit_command import fit_command
from onesfw.cli.list_command import list_command
from onesfw.cli.predict_command import EXAMPLES as PREDICT_EXAMPLES
from onesfw.cli.predict_command import predict_command
from onesfw.cli.rates_command import EXAMPLES as RATES_EXAMPLES
from onesfw.cli.rates_command import rates_command
from onesfw.cli.select_command import EXAMPLES as SELECT_EXAMPLES
from onesfw.cli.select_command import select_command
from onesfw.cli.solve_command import EXAMPLES, solve_command
from onesfw.cli.stability_command import EXAMPLES as STABILITY_EXAMPLES
from onesfw.cli.stability_command import stability_command

UsageError = cast(
    type[Exception], typer.BadParameter.__bases__[0]
)  # a wrong option; Typer exports only this child of it

CACHE_VARIABLE = "ONESFW_COMPILATION_CACHE"
CACHE_BYTES = 2**30  # what the kept programs may take; the oldest go first
SHORTEST = "0.1"  # seconds of a compilation that is worth keeping: many short ones make a long start

app = typer.Typer(
    name="onesfw",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("solve", no_args_is_help=True, epilog=EXAMPLES)(solve_command)
app.command("list")(list_command)
app.command("compare", no_args_is_help=True, epilog=COMPARE_EXAMPLES)(compare_command)
app.command("rates", epilog=RATES_EXAMPLES)(rates_command)
app.command("bounds", no_args_is_help=True, epilog=BOUNDS_EXAMPLES)(bounds_command)
app.command("fit", no_args_is_help=True, epilog=FIT_EXAMPLES)(fit_command)
app.command("predict", no_args_is_help=True, epilog=PREDICT_EXAMPLES)(predict_command)
app.command("complete", no_args_is_help=True, epilog=COMPLETE_EXAMPLES)(complete_command)
app.command("stability", no_args_is_help=True, epilog=STABILITY_EXAMPLES)(stability_command)
app.command("select", no_args_is_help=True, epilog=SELECT_EXAMPLES)(select_command)


def show_version(wanted: bool) -> None:
    """Print the version and leave."""
    if wanted:
        from onesfw import __version__

        typer.echo(f"onesfw {__version__}")
        raise typer.Exit()


@app.callback(
    epilog="[bold]Examples[/bold]\n\n"
    "onesfw list\n\n"
    "onesfw solve logistic --steps 200000 --plot out/logistic.png\n\n"
    "onesfw solve my_problem.py --steps 1e6 --json\n\n"
    "[bold]Environment[/bold]: compiled programs are kept in the user's cache folder, so that the second call starts "
    "sooner; ONESFW_COMPILATION_CACHE names another folder, or says off."
)
def entry(
    version: bool = typer.Option(False, "--version", is_eager=True, callback=show_version, help="Print the version."),
) -> None:
    """Constrained stochastic optimisation from one sample per iteration, without projections."""


def keep_programs() -> None:
    """Let JAX keep compiled programs between calls, unless the user says otherwise; before JAX is loaded.

    A program for one processor does not run on another, so that each kind has a folder of its own.
    """
    wish = os.environ.get(CACHE_VARIABLE, "")
    if wish.strip().lower() in ("off", "0", "no", "false") or "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    folder = Path(wish) if wish else cache_home() / "onesfw" / "programs" / processor()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        drop_oldest(folder)
    except OSError:  # a home that cannot be written to is no reason to fail
        return
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(folder)
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", SHORTEST)


def drop_oldest(folder: Path) -> None:
    """Remove the programs kept longest, until the others take no more than they may."""
    kept = [(entry.stat(), entry.path) for entry in os.scandir(folder) if entry.is_file(follow_symlinks=False)]
    total = sum(state.st_size for state, _ in kept)
    for state, path in sorted(kept, key=lambda pair: pair[0].st_mtime):
        if total <= CACHE_BYTES:
            break
        os.unlink(path)
        total -= state.st_size


def cache_home() -> Path:
    """The user's cache folder."""
    home = os.environ.get("XDG_CACHE_HOME")
    return Path(home) if home else Path.home() / ".cache"


def processor() -> str:
    """A short name for what compiled programs depend on: the processor's kind and its features."""
    features = ""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        described = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        features = next((line for line in described if line.startswith(("flags", "Features"))), "")
    return f"{platform.machine() or 'unknown'}-{hashlib.sha256(features.encode()).hexdigest()[:12]}"


def main() -> None:
    """The entry point: whatever goes wrong is one sentence on the error stream and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without ± shows a question mark, not a traceback
    keep_programs()
    try:
        code = app(prog_name="onesfw", standalone_mode=False)
        sys.stdout.flush()
    except UsageError as error:
        message = cast(Any, error).format_message()
        stop = "" if message.endswith((".", "?", "!")) else "."
        typer.echo(f"onesfw: {message}{stop} See onesfw --help.", err=True)
        code = 2
    except (KeyboardInterrupt, typer.Abort):
        code = 130
    except BrokenPipeError:  # `onesfw list | head`
        with contextlib.suppress(OSError):
            sys.stdout.close()
        code = 0
    sys.exit(code if isinstance(code, int) else 0)
