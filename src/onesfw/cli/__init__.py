"""The command `onesfw`: one file per command, errors as one sentence."""

from __future__ import annotations

import contextlib
import io
import sys
from typing import Any, cast

import typer

from onesfw.cli.bounds_command import EXAMPLES as BOUNDS_EXAMPLES
from onesfw.cli.bounds_command import bounds_command
from onesfw.cli.compare_command import EXAMPLES as COMPARE_EXAMPLES
from onesfw.cli.compare_command import compare_command
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

UsageError = cast(
    type[Exception], typer.BadParameter.__bases__[0]
)  # a wrong option; Typer exports only this child of it

app = typer.Typer(
    name="onesfw",
    no_args_is_help=True,
    add_completion=False,
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
    "onesfw solve my_problem.py --steps 1e6 --json"
)
def entry(
    version: bool = typer.Option(False, "--version", is_eager=True, callback=show_version, help="Print the version."),
) -> None:
    """Constrained stochastic optimisation from one sample per iteration, without projections."""


def main() -> None:
    """The entry point: whatever goes wrong is one sentence on the error stream and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without ± shows a question mark, not a traceback
    try:
        code = app(standalone_mode=False)
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
