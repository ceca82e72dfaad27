"""`onesfw rates`: the paper's Tables 1–3 as measurements."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Any

import typer

from onesfw.cli.errors import INTERRUPTED, sentences
from onesfw.cli.solve_command import whole

EXAMPLES = """[bold]Examples[/bold]

onesfw rates --quick

onesfw rates --out out/rates --markdown docs/evidence.md

The folder gets rates.md, rates.json and rates.html, an interactive page that works offline. A full run takes about a \
quarter of an hour on two cores, a quick one less than two minutes; nothing is written after Ctrl-C."""


def rates_command(
    quick: bool = typer.Option(False, "--quick", help="Short runs, few problems and seeds: to try the command."),
    out: Path = typer.Option(Path("out/rates"), metavar="FOLDER", help="Where the three files go."),
    markdown: Path = typer.Option(None, metavar="PATH", help="Another place for the Markdown file."),
    seed: Any = typer.Option("0", parser=whole, metavar="N", help="The seed that all others are folded from."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="Show no progress bar."),
    traceback: bool = typer.Option(False, "--traceback", help="Show where an error came from."),
) -> None:
    """Measure the rates of all methods in all settings; write Markdown, JSON and an interactive page."""
    with sentences(traceback):
        with contextlib.redirect_stdout(sys.stderr):
            import shlex
            import time

            from onesfw.arguments import whole_number
            from onesfw.experiments.evidence import write_rates
            from onesfw.experiments.rates import FULL, QUICK, plan_rates, run_rates
            from onesfw.files import check_target
            from onesfw.progress import RunsBar

            seed = whole_number(seed, "--seed", 0, 2**32 - 1)
            page = out / "rates.md" if markdown is None else markdown
            others = (out / "rates.json", out / "rates.html")
            if page.resolve() in [path.resolve() for path in others]:
                raise ValueError(f"--markdown {page} is where another of the three files goes; name another place")
            for path in (*others, page):
                check_target(path)
            begun = time.perf_counter()
            work = plan_rates(QUICK if quick else FULL, seed)
            try:
                with RunsBar(work.runs, not quiet) as bar:
                    rates = run_rates(work, bar.begin)
            except KeyboardInterrupt:
                print("onesfw: interrupted; nothing was written", file=sys.stderr)
                raise typer.Exit(INTERRUPTED) from None
            command = shlex.join(["onesfw", *sys.argv[1:]])
            paths = write_rates(rates, command, time.perf_counter() - begun, out, page)
        for label, path in paths.items():
            print(f"{label}: {path}")
