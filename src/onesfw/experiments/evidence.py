"""The rates as Markdown, JSON and the page."""

from __future__ import annotations

import json
import textwrap
from dataclasses import replace
from pathlib import Path

from onesfw.experiments import noise, tuning
from onesfw.experiments.claims import TITLES
from onesfw.experiments.export import comparison_content
from onesfw.experiments.findings import Finding, findings, findings_grid, losses
from onesfw.experiments.grids import Grid, markdown
from onesfw.experiments.page import Report, Section, seeds_text, versions, write_page
from onesfw.experiments.rates import QUICK, Rates, claims_grid, submodular_grid
from onesfw.files import write_whole
from onesfw.results.jsonable import plain

WIDTH = 120
TITLE = "Stochastic Frank-Wolfe: the claims and the measurements"
LEAD = (
    "The paper's Tables 1–3 as measurements. Every method gets the same number of samples (online_fw the same number "
    "of gradient evaluations), and the error is that of its own output: F(x) − F* for convex problems, the Frank-Wolfe "
    "gap for non-convex ones, E‖d_T − ∇F(x_T)‖² for DR-submodular ones, where the value says little about rates."
)
SKETCH = "Short, on few problems and seeds: it shows that the command works and says little about rates."
RULES = (
    "1-SFW runs its theorem's schedule, untuned. Every convex competitor has the best of its documented step rules, "
    "and where its batch has a constant that theory takes to be known (`noise=`), the best of four values of it: "
    "chosen by the final error, which favours it."
)

NOISE = (
    "`quadratic-interior` with nothing but the noise σ of its linear term changed; its own σ is 1. 1-SFW ends near "
    "the error of minimising the average of its samples, which no method can expect to beat and which grows like σ²; "
    "momentum's grows like σ. So the factor between the two at a given budget depends on the noise, and a lead at one "
    "σ says nothing about another."
)


def sections(rates: Rates, found: list[Finding]) -> list[Section]:
    """Words and tables, in the order of the page."""
    quick = rates.size is QUICK
    made = (
        [Section("A quick run", [SKETCH])]
        if quick
        else [Section("Expected and measured", [RULES], [findings_grid(found)])]
    )
    for setting in TITLES:
        if rates.of(setting):
            made.append(Section(TITLES[setting], [], [untitled(claims_grid(rates, setting))]))
    if rates.of("dr_submodular"):
        made.append(Section("DR-submodular: regret and value", [], [untitled(submodular_grid(rates))]))
    made.append(losses(rates))
    if rates.noise:
        made.append(Section("Noise", [NOISE], [untitled(noise.noise_grid(rates.noise))]))
    if rates.study is not None:
        about = (
            "ρ and η of 1-SFW, over radius (`logistic`, `logistic-wide`), noise (`quadratic-face`, `quadratic-noisy`) "
            "and interpolation. `adaptive` weighs the drift of the gradient against its noise, as both are observed; a "
            "heuristic of this library. The theorem's schedule stays the default."
        )
        made.append(
            Section("Tuning study", [about, tuning.verdict(rates.study)], [untitled(tuning.study_grid(rates.study))])
        )
    return made


def untitled(grid: Grid) -> Grid:
    """The grid under its section's title."""
    return replace(grid, title="")


def write_rates(rates: Rates, command: str, seconds: float, folder: Path, page: Path) -> dict[str, Path]:
    """Write Markdown to `page`, JSON and HTML into `folder`, each whole or not at all; return where they are."""
    found = findings(rates)
    report = Report(TITLE, LEAD, command, list(rates.comparisons.values()), sections(rates, found), seconds)
    content = {
        "command": command,
        "versions": versions(),
        "seconds": seconds,
        "findings": [vars(finding) for finding in found],
        "comparisons": [comparison_content(c) for c in rates.comparisons.values()],
        "noise": {f"{sigma:g}": comparison_content(c) for sigma, c in rates.noise.items()},
        "tuning": None if rates.study is None else study_content(rates.study),
    }
    paths = {"markdown": page, "json": folder / "rates.json", "page": folder / "rates.html"}
    write_whole(paths["json"], json.dumps(content, allow_nan=False).encode())
    write_page(report, paths["page"])
    write_whole(paths["markdown"], evidence(report).encode())
    return paths


def study_content(study: tuning.Study) -> dict[str, object]:
    """The tuning study as plain numbers."""
    return {
        "samples": study.budget,
        "seeds": study.seeds,
        "errors": {p: {rule: plain(e) for rule, e in errors.items()} for p, errors in study.errors.items()},
        "offered": study.offered(),
    }


def evidence(report: Report) -> str:
    """The page's words and tables as Markdown."""
    made_with = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    parts = [
        "# Evidence",
        wrapped(report.lead),
        f"```sh\n{report.command}\n```",
        wrapped(f"wrote this page, beside JSON with every seed's curve and an interactive page. {made_with}; "
                f"{seeds_text(report)}."),
    ]  # fmt: skip
    for section in report.sections:
        parts.append(f"## {section.title}")
        parts += [wrapped(paragraph) for paragraph in section.paragraphs]
        parts += [markdown(grid).strip() for grid in section.grids]
    return "\n\n".join(parts) + "\n"


def wrapped(text: str) -> str:
    """A paragraph in lines of at most 120 characters."""
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)
