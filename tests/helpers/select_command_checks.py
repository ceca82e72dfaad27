"""What the tests of `onesfw select` share: calls that succeed or fail."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from onesfw import cli

ROWS = 60


def run(*arguments):
    return CliRunner().invoke(cli.app, ["select", *map(str, arguments)], env={"COLUMNS": "120"})


def answer(*arguments):
    outcome = run(*arguments, "--json")
    assert outcome.exit_code == 0, outcome.output
    return json.loads(outcome.stdout)


def complaint(*arguments):
    outcome = run(*arguments)
    assert outcome.exit_code == 2, outcome.output
    assert outcome.stdout == ""
    assert outcome.stderr.startswith("onesfw: ")
    assert outcome.stderr.count("\n") == 1
    return outcome.stderr
