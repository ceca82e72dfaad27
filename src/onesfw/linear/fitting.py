"""A run of `onesfw fit`: from a plan and options to a model and its figures."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sklearn.datasets  # noqa: F401  its reader, before the clock runs
import typer

from onesfw import __version__
from onesfw.cli.errors import INTERRUPTED, MISTAKE, sentence
from onesfw.cli.solve_command import BROKEN_DOWN
from onesfw.data.blocks import Input
from onesfw.data.passes import Passes
from onesfw.data.prepare import Prepared, ReadOptions, reopen
from onesfw.engine.checkpoint import open_folder
from onesfw.engine.interrupts import catch_interrupt
from onesfw.linear import CONSTRAINTS, Learner, Settings
from onesfw.linear.file_training import Progress, Saves, train, training_record
from onesfw.linear.model import LinearModel, package_versions
from onesfw.linear.scores import Scores
from onesfw.progress import PassesBar


@dataclass(frozen=True)
class Plan:
    """What is to be trained, and how."""

    loss: str
    constraint: str
    radius: float
    schedule: str | None
    intercept: tuple[float, float] | None
    passes: int
    buffer: int
    seed: int

    def settings(self, n_features: int) -> Settings:
        """The learner's settings."""
        return Settings(n_features, self.loss, self.constraint, self.radius, self.schedule, self.intercept)

    def parts(self) -> dict[str, str]:
        """A name and a text for everything that decides the model, beside the rows; passes may be added later."""
        schedule = self.settings(1).schedule
        return {
            "version of onesfw": __version__,
            "--loss": self.loss,
            "--set": self.constraint,
            "--radius": repr(self.radius),
            "--schedule": str(schedule),
            "--intercept": str(self.intercept),
            "--seed": str(self.seed),
        }


@dataclass(frozen=True)
class Outcome:
    """A finished run: its figures, and the exit code."""

    figures: dict[str, Any]
    code: int


def fit(
    path: str,
    test: str | None,
    plan: Plan,
    options: ReadOptions,
    cache: Path | None,
    checkpoint: Path | None,
    model_path: Path | None,
    *,
    show: bool,
) -> Outcome:
    """Train, write the model, and test it; a failure after the training costs the exit code, not the figures."""
    source = Input(path)
    if test is not None:
        Input(test)
        if test == path == "-":
            raise ValueError("the standard input cannot be both the training and the test file")
    if not source.repeatable and plan.passes > 1 and cache is None:
        raise ValueError(f"{source.name} can be read only once; give --cache PATH for more than one pass")
    saves, saved = None, None
    if checkpoint is not None:
        parts = {**plan.parts(), **options.parts(source), "--buffer": str(plan.buffer)}
        saves = Saves(open_folder(checkpoint, parts), say)
        saved = saves.load()
    progress = saved[0] if saved else Progress()
    if progress.sweep > plan.passes:
        raise ValueError(f"checkpoint: the run has {progress.sweep} passes behind it; give --passes {progress.sweep}")
    clock = time.perf_counter()
    passes = Passes(
        source, options, buffer=plan.buffer, cache=cache, decided=saved[1] if saved else None,
        skipped=progress.skipped, tell=say,
    )  # fmt: skip
    progress.seconds += time.perf_counter() - clock  # a file may be read once to know its features and labels
    settings = plan.settings(passes.prepared.encoding.n_features)
    learner = Learner.from_tensors(settings, saved[2]) if saved else Learner(settings)
    try:
        with PassesBar(show, plan.passes) as bar:
            compiling = learner.compile(passes.prepared.encoding.dtype)
            with catch_interrupt() as interrupted:
                finished = train(
                    passes, learner, progress, sweeps=plan.passes, seed=plan.seed, saves=saves, bar=bar,
                    stop=interrupted.is_set,
                )  # fmt: skip
    except FloatingPointError as error:
        say(str(error))
        raise typer.Exit(BROKEN_DOWN) from None
    if not learner.steps:
        say("interrupted before a row was learnt")
        raise typer.Exit(INTERRUPTED)
    for example in passes.source.bad.examples if passes.source is not None and show else ():
        say(f"skipped {example}")
    model = make_model(plan, passes, learner, progress)
    figures = describe(model, progress, plan, path, test, finished, compiling)
    code = 0 if finished else INTERRUPTED
    try:
        if model_path is not None:
            model.save(model_path)
            figures["model"] = str(model_path)
        if test is not None and finished:
            figures |= tested(model, Input(test), options)
    except (ValueError, OSError) as error:
        say(sentence(error))
        code = MISTAKE
    except KeyboardInterrupt:
        code = INTERRUPTED
    return Outcome(figures, code)


def make_model(plan: Plan, passes: Passes, learner: Learner, progress: Progress) -> LinearModel:
    """The model as it stands."""
    settings = learner.settings
    return LinearModel(
        learner.coef, learner.intercept, plan.loss, plan.constraint, plan.radius, passes.prepared.labels,
        passes.prepared.encoding, package_versions(),
        training_record(progress, progress.sweep, plan.seed, str(settings.schedule)),
    )  # fmt: skip


def tested(model: LinearModel, source: Any, options: ReadOptions) -> dict[str, Any]:
    """Figures on a test file."""
    assert model.encoding is not None
    opened = reopen(source, options, Prepared(model.encoding, model.labels), strict=False)
    scores = Scores.of(model)
    for batch in opened.batches():
        scores.add(batch, opened.bad)
    if not scores.rows:
        raise ValueError(f"{source.name} holds no rows to test on")
    return {**scores.figures(), "test_skipped": opened.bad.count}


def describe(
    model: LinearModel, progress: Progress, plan: Plan, train: str, test: str | None, finished: bool,
    compiling: float,
) -> dict[str, Any]:  # fmt: skip
    """The figures of a run, as JSON has them."""
    return {
        "train": train,
        "test": test,
        "finished": finished,
        "loss": plan.loss,
        "set": plan.constraint,
        "radius": plan.radius,
        "schedule": model.training["schedule"],
        "rows": progress.first_rows,
        "skipped": progress.skipped,
        "features": model.n_features,
        "passes": progress.sweep,
        "steps": progress.all_rows,
        "labels": None if model.labels is None else list(model.labels),
        "progressive_loss": progress.progressive_loss,
        "test_rows": None,
        "test_loss": None,
        "accuracy": None,
        "auc": None,
        "test_skipped": None,
        "nonzeros": int(np.count_nonzero(model.coef)),
        "norm": CONSTRAINTS[plan.constraint].norm(model.coef),
        "intercept": model.intercept,
        "seconds": progress.seconds,
        "pass_seconds": progress.pass_seconds,
        "compile_seconds": compiling,
        "model": None,
    }


def say(text: str) -> None:
    """A sentence on the error stream."""
    print(f"onesfw: {text}", file=sys.stderr)
