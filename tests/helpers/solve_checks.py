"""What the tests of `onesfw solve` share: a file of a user's own, calls that succeed or fail."""

from __future__ import annotations

import json
import sys

from typer.testing import CliRunner

from onesfw import cli

PROGRAM = [sys.executable, "-c", "from onesfw.cli import main; main()"]
PRELUDE = """
import jax, jax.numpy as jnp, numpy as np, onesfw as fw
from onesfw.zoo.base import Problem
rows = np.random.default_rng(0).normal(size=(50, 5)).astype(np.float32)
objective = fw.FiniteSum(lambda x, row: jnp.sum((x - row) ** 2), rows)
constraint = fw.sets.L1Ball(1.0, shape=5)
"""


def onesfw(*arguments: str):
    return CliRunner().invoke(cli.app, list(arguments), env={"COLUMNS": "120"})


def solve(*arguments: str):
    return onesfw("solve", *arguments)


def answer(*arguments: str) -> dict:
    """The JSON answer of a run that must succeed."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    outcome = solve(*arguments, "--json")
    assert outcome.exit_code == 0, outcome.stderr
    assert outcome.stdout.count("\n") == 1
    return json.loads(outcome.stdout, parse_constant=refuse)


def complaint(*arguments: str) -> str:
    """The sentence of a call that must fail."""
    outcome = onesfw(*arguments)
    assert outcome.exit_code == 2, outcome.output
    assert outcome.stdout == ""
    assert outcome.stderr.startswith("onesfw: ")
    assert outcome.stderr.count("\n") == 1
    return outcome.stderr
