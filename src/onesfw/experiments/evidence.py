"""What the rates say: expectations met or not, where 1-SFW loses and why; as Markdown, JSON and the page."""

from __future__ import annotations

import json
import os
import textwrap
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from onesfw.algorithms import CONVEX, DR_SUBMODULAR, NONCONVEX
from onesfw.arguments import choose, whole_number
from onesfw.experiments import studies
from onesfw.experiments.comparison import OURS, REFERENCE, TRIED, Comparison
from onesfw.experiments.curves import Curve, final_of, number_text, ratio, ratio_text, rise, slope_text
from onesfw.experiments.page import Report, Section, seeds_text, versions, write_page
from onesfw.experiments.paper_tables import (
    FULL,
    QUICK,
    TITLES,
    Rates,
    claims_sheet,
    plan_rates,
    run_rates,
    submodular_sheet,
)
from onesfw.experiments.winners import Winner, winners, winners_sheet
from onesfw.files import check_target, write_whole
from onesfw.progress import RunsBar
from onesfw.results.jsonable import Jsonable, plain
from onesfw.results.show import Sheet
from onesfw.results.show import markdown as as_markdown
from onesfw.zoo import find
from onesfw.zoo.base import Problem

SIZES = {"full": FULL, "quick": QUICK}
WIDTH = 120
TITLE = "Stochastic Frank-Wolfe: the claims and the measurements"
LEAD = (
    "The paper's Tables 1–3 as measurements. Every method gets the same number of samples (online_fw the same number "
    "of gradient evaluations), and the error is that of its own output: F(x) − F* for convex problems, the Frank-Wolfe "
    "gap for non-convex ones, E‖d_T − ∇F(x_T)‖² for DR-submodular ones, where the value says little about rates."
)
SKETCH = "Short, on few problems and seeds: it shows that the command works and says little about rates."
RULES = (
    "`one_sfw[paper]`, called 1-SFW here, runs its theorem's schedule, untuned; `one_sfw[auto]` is this library's "
    "default. Every convex competitor has the best of its documented step rules, and where it has a constant that "
    "theory takes to be known (`noise=`, `constant=`, `smoothness=`), the best of several values of it: chosen by the "
    f"final error of {TRIED} other seeds on the same problem, which favours it."
)
WINNERS = (
    "The best of all other methods on each problem, with the step rule and the constants that did best there in "
    "hindsight, and 1-SFW without any choice. The error is that of the method's own output: F(x) − F* for convex "
    "problems, the Frank-Wolfe gap for non-convex ones, F* − F(x) for DR-submodular ones. Ratios have 95 % bootstrap "
    "intervals over the seeds; below 1, 1-SFW is better. Methods that project or pass over all rows count too: where "
    "the budget buys many passes over few rows, full gradients leave no noise to average away."
)

NOISE = (
    "`quadratic-interior` with nothing but the noise σ of its linear term changed; its own σ is 1. 1-SFW ends near "
    "the error of minimising the average of its samples, which no method can expect to beat and which grows like σ²; "
    "momentum's grows like σ. So the factor between the two at a given budget depends on the noise, and a lead at one "
    "σ says nothing about another."
)
EXPECTED_RATIOS = {"momentum_sfw": 5.0, "minibatch_sfw": 5.0, "spider_fw": 1.5}
EXPECTED_ON = ("logistic", "quadratic-interior", "quadratic-face")
NONCONVEX_SLOPE = -1 / 3 + 0.08
ESTIMATE_SLOPE, MOMENTUM_SLOPE = -0.9, -0.85


def sections(rates: Rates, found: list[Finding]) -> list[Section]:
    """Words and tables, in the order of the page."""
    quick = rates.size is QUICK
    made = (
        [Section("A quick run", [SKETCH])]
        if quick
        else [Section("Expected and measured", [RULES], [findings_sheet(found)])]
    )
    table = winners(rates.comparisons.values())
    if table:
        made.append(Section("Who wins where", [WINNERS, tally(table)], [untitled(winners_sheet(table))]))
    for setting in TITLES:
        if rates.of(setting):
            made.append(Section(TITLES[setting], [], [untitled(claims_sheet(rates, setting))]))
    if rates.of("dr_submodular"):
        made.append(Section("DR-submodular: regret and value", [], [untitled(submodular_sheet(rates))]))
    made.append(losses(rates))
    if rates.noise:
        made.append(Section("Noise", [NOISE], [untitled(studies.noise_sheet(rates.noise))]))
    if rates.study is not None:
        about = (
            "ρ and η of 1-SFW, over radius (`logistic`, `logistic-wide`), noise (`quadratic-face`, `quadratic-noisy`) "
            "and interpolation. `adaptive` weighs the drift of the gradient against its noise, as both are observed; a "
            "heuristic of this library; the default, `one_sfw[auto]`, takes it with steps and an output of its own."
        )
        made.append(
            Section("Tuning study", [about, studies.verdict(rates.study)], [untitled(studies.study_sheet(rates.study))])
        )
    return made


def tally(table: list[Winner]) -> str:
    """On how many problems the default is best or nearly so, in a sentence."""
    missed = [f"`{w.problem}`" for w in table if not w.met]
    said = f"`one_sfw[auto]` is best or within 1.1 of the best on {len(table) - len(missed)} of {len(table)} problems"
    return f"{said}, and not on {', '.join(missed)}." if missed else f"{said}."


def in_short(found: list[Finding], table: list[Winner]) -> str:
    """What to take away from a full run, in two sentences."""
    met = sum(finding.met for finding in found)
    expected = [f"Of {len(found)} figures that were expected, {met} are as expected."] if found else []
    return " ".join([*expected, *([tally(table)] if table else [])])


def untitled(sheet: Sheet) -> Sheet:
    """The table under its section's title."""
    return replace(sheet, title="")


def rates(
    size: str = "full",
    *,
    also: Sequence[Problem | str] = (),
    key: int = 0,
    progress: bool = False,
    out: str | Path | None = None,
    markdown: str | Path | None = None,
    command: str = "",
) -> Rates:
    """Measure the paper's Tables 1–3: all methods in all settings.

    Args:
        size: "full", about half an hour on one core, or "quick", to try it.
        also: problems beside the zoo's, or the words that `zoo.find` understands.
        key: the seed that all others are folded from.
        progress: whether to show a bar.
        out: a folder for rates.md, rates.json and rates.html; None writes nothing.
        markdown: another place for the Markdown file.
        command: what was called, for the foot of the page.

    Returns:
        The rates; `files` says where they were written to.

    Raises:
        ValueError: where an argument does not fit, before anything is run.
        OSError: where a file cannot be written.
        KeyboardInterrupt: after Ctrl-C; nothing is written then.

    Example:
        >>> from onesfw.experiments import rates
        >>> rates("quik")
        Traceback (most recent call last):
        ValueError: size='quik' is not known; choose one of 'full', 'quick'; did you mean 'quick'?
    """
    choose(size, SIZES, "size")
    key = whole_number(key, "key", 0, 2**32 - 1)
    places = {} if out is None else places_in(Path(out), None if markdown is None else Path(markdown))
    begun = time.perf_counter()
    work = plan_rates(SIZES[size], key, [find(word) if isinstance(word, str) else word for word in also])
    with RunsBar(work.runs, progress) as bar:
        found = run_rates(work, bar.begin)
    found.seconds = time.perf_counter() - begun
    if places:
        write_rates(found, places, command)
    return found


def places_in(folder: Path, page: Path | None) -> dict[str, Path]:
    """Where the three files go; an error where one of them cannot be written."""
    places = {"markdown": page or folder / "rates.md", "json": folder / "rates.json", "page": folder / "rates.html"}
    if os.path.realpath(places["markdown"]) in map(os.path.realpath, (places["json"], places["page"])):
        raise ValueError(f"markdown: {page} is where another of the three files goes; name another place")
    for path in places.values():
        check_target(path)
    return places


def write_rates(rates: Rates, places: dict[str, Path], command: str = "") -> None:
    """Write Markdown, JSON and the page, each whole or not at all."""
    found = findings(rates)
    lead = f"{LEAD} {in_short(found, winners(rates.comparisons.values()))}".strip()
    report = Report(TITLE, lead, command, list(rates.comparisons.values()), sections(rates, found), rates.seconds)
    content = {
        "command": command,
        "versions": versions(),
        "seconds": rates.seconds,
        "findings": [asdict(finding) for finding in found],
        "comparisons": [c.as_dict() for c in rates.comparisons.values()],
        "winners": [
            {
                "problem": w.problem,
                "method": w.method,
                "error": plain(w.error),
                "auto": plain(w.auto),
                "paper": plain(w.paper),
                "met": w.met,
            }
            for w in winners(rates.comparisons.values())
        ],
        "noise": {f"{sigma:g}": c.as_dict() for sigma, c in rates.noise.items()},
        "tuning": None if rates.study is None else study_content(rates.study),
    }
    write_whole(places["json"], json.dumps(content, allow_nan=False).encode())
    write_page(report, places["page"])
    write_whole(places["markdown"], evidence(report).encode())
    rates.files = dict(places)


def study_content(study: studies.Study) -> dict[str, Jsonable]:
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
        parts += [as_markdown(sheet).strip() for sheet in section.sheets]
    return "\n\n".join(parts) + "\n"


def wrapped(text: str) -> str:
    """A paragraph in lines of at most 120 characters."""
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)


@dataclass(frozen=True)
class Finding:
    """A measured number beside what is expected of it."""

    problem: str
    what: str
    measured: str
    expected: str
    met: bool


def findings(rates: Rates) -> list[Finding]:
    """Every expectation whose problem was run; a quick run says too little to be held against any."""
    if rates.size is QUICK:
        return []
    found: list[Finding] = []
    for name in EXPECTED_ON:
        if name in rates.comparisons:
            found += convex_findings(rates.comparisons[name])
    for comparison in rates.of(NONCONVEX):
        curve = comparison.curve(REFERENCE)
        if curve is not None:
            slope = rise(curve, "samples")
            what = "slope of 1-SFW's gap, E over its output"
            met = slope.value <= NONCONVEX_SLOPE
            found.append(Finding(comparison.problem.name, what, slope_text(slope), "at most −0.25 (−1/3 + 0.08)", met))
    for comparison in rates.of(DR_SUBMODULAR):
        found += submodular_findings(comparison)
    return found


def convex_findings(comparison: Comparison) -> list[Finding]:
    """How many times 1-SFW's suboptimality a competitor's is, with its best step rule."""
    ours = comparison.curve(REFERENCE)
    found = []
    for name, least in EXPECTED_RATIOS.items():
        theirs = comparison.curve(name)
        if ours is None or theirs is None:
            continue
        rules = comparison.rules.get(name, {"preset": theirs.final})
        tried = comparison.tried.get(name, rules)
        documented = {rule: errors for rule, errors in rules.items() if "=" not in rule}
        plain_rules = sum("=" not in rule for rule in tried)
        choices = [("its step rules", documented, plain_rules), ("its step rules and constants", rules, len(tried))]
        for label, among, count in choices[: 1 if plain_rules == len(tried) else 2]:
            rule = min(among, key=lambda r: float(among[r].mean()))
            times = ratio(among[rule], ours.final)
            what = f"`{name}`, the best of {count} of {label} ({rule}), over 1-SFW"
            measured = f"{ratio_text(times, 3)} times"
            found.append(Finding(comparison.problem.name, what, measured, f"at least {least:g}", times.value >= least))
    return found


def submodular_findings(comparison: Comparison) -> list[Finding]:
    """The slopes of E‖d_T − ∇F(x_T)‖² of 1-SFW and of momentum, and whether their intervals are apart."""
    ours, theirs = comparison.curve(REFERENCE), comparison.curve("momentum_sfw")
    name = comparison.problem.name
    found = []
    what = "slope of E‖d_T − ∇F(x_T)‖²"
    if ours is not None:
        slope = rise(ours, "samples")
        found.append(Finding(name, f"{what}, 1-SFW", slope_text(slope), "at most −0.9", slope.value <= ESTIMATE_SLOPE))
    if ours is not None and theirs is not None:
        slope, other = rise(ours, "samples"), rise(theirs, "samples")
        gentle = other.value >= MOMENTUM_SLOPE
        found.append(Finding(name, f"{what}, momentum", slope_text(other), "no steeper than −0.85", gentle))
        apart = slope.high < other.low
        found.append(Finding(name, "the two intervals", "apart" if apart else "overlap", "apart", apart))
    return found


def findings_sheet(found: list[Finding]) -> Sheet:
    """The findings as a table."""
    rows = [(f.problem, f.what, f.measured, f.expected, "yes" if f.met else "**no**") for f in found]
    return Sheet("", ("problem", "figure", "measured", "expected", "met"), rows, words=5)


def losses(rates: Rates) -> Section:
    """Where 1-SFW loses, and why."""
    paragraphs = [
        *loss_on(rates, "logistic-wide", "**Large diameter.**", WIDE),
        *loss_on(rates, "interpolation", "**Interpolation.**", EXACT),
        *oracle_bound(rates),
        *small_sums(rates),
        *interior(rates),
    ]
    return Section("Where the theorem's schedule loses, and why", paragraphs)


WIDE = (
    "A step of length η_t moves x by up to η_t D, and the gradient moves with it. ρ = 1/(t−1) keeps all past samples "
    "with equal weight, so every early error of the differences, which grows with D, is remembered for good; a larger "
    'ρ forgets it. `rho="adaptive"` weighs the two against one another.'
)
EXACT = (
    "Every sample's gradient is right at the optimum, so there is no noise to average away, and forgetting fast costs "
    "nothing. ρ = 1/(t−1) averages all the same, over samples that were drawn far from the optimum."
)


def loss_on(rates: Rates, name: str, head: str, why: str) -> list[str]:
    """1-SFW against the best other method and the best schedule on one problem."""
    comparison = rates.comparisons.get(name)
    ours = None if comparison is None else comparison.curve(REFERENCE)
    if comparison is None or ours is None:
        return []
    others = [c for c in comparison.curves if c.name not in (REFERENCE, OURS)]
    text = f"{head} On `{name}` 1-SFW ends at {number_text(final_of(ours), 2)}"
    if others:
        best = min(others, key=final_of)
        times = ratio(best.final, ours.final)
        word = "loses to" if times.value < 1 else "still beats"
        text += (
            f" and {word} `{best.name}`, the best of the others, at {number_text(final_of(best), 2)} "
            f"({ratio_text(times, 3)} times 1-SFW's error)"
        )
    if rates.study is not None and name in rates.study.errors:
        errors = rates.study.errors[name]
        rule = min(errors, key=lambda r: float(errors[r].mean()))
        if rule != studies.PAPER:
            text += f"; 1-SFW itself with (ρ, η) = `{rule}` at {number_text(float(errors[rule].mean()), 2)}"
    default = comparison.curve(OURS)
    if default is not None:
        text += f"; the default, `{OURS}`, at {number_text(final_of(default), 2)}"
    return [f"{text}. {why}"]


def oracle_bound(rates: Rates) -> list[str]:
    """Errors after equally many oracle calls, on the first convex problem that has SPIDER."""
    for comparison in rates.of(CONVEX):
        ours, theirs = comparison.curve(REFERENCE), comparison.curve("spider_fw")
        if ours is None or theirs is None:
            continue
        calls = int(theirs.counts["lmo_calls"][-1])
        mine = error_after(ours, calls)
        if np.isnan(mine):
            continue
        return [
            "**Problems whose oracle is the bottleneck.** 1-SFW calls the oracle once for every sample. On "
            f"`{comparison.problem.name}` SPIDER has used {int(theirs.counts['samples'][-1]):,} samples after "
            f"{calls:,} calls and is at {number_text(final_of(theirs), 2)}; 1-SFW after as many calls, and samples, is "
            f"at {number_text(mine, 2)}. At the full budget of samples 1-SFW has called it "
            f"{int(ours.counts['lmo_calls'][-1]):,} times for {number_text(final_of(ours), 2)}. Where a call costs "
            "far more than a gradient, take `batch=` in `one_sfw`, or SPIDER."
        ]
    return []


def small_sums(rates: Rates) -> list[str]:
    """Where passes over all rows are cheap."""
    for comparison in rates.of(CONVEX):
        ours, theirs = comparison.curve(REFERENCE), comparison.curve("frank_wolfe")
        if ours is None or theirs is None or final_of(theirs) >= final_of(ours):
            continue
        passes = int(theirs.counts["lmo_calls"][-1])
        return [
            f"**Few rows.** The budget buys {passes:,} passes over the rows of `{comparison.problem.name}`, and "
            f"`frank_wolfe` with the full gradient ends at {number_text(final_of(theirs), 2)}, 1-SFW at "
            f"{number_text(final_of(ours), 2)}. One sample at a time pays where a pass is dear: many rows, or a stream."
        ]
    return []


def interior(rates: Rates) -> list[str]:
    """Where a competitor that averages the vertices comes close."""
    comparison = rates.comparisons.get("quadratic-interior")
    ours = None if comparison is None else comparison.curve(REFERENCE)
    theirs = None if comparison is None else comparison.curve("momentum_sfw")
    if comparison is None or ours is None or theirs is None:
        return []
    times = ratio(theirs.final, ours.final)
    return [
        "**Optimum inside K.** No vertex is right there: x is a mean of many, and a noisy direction picks now one, now "
        "another. With η ≈ 1/t the mean over the vertices averages the noise that momentum leaves in the "
        f"direction. On `quadratic-interior` `momentum_sfw` ends at {number_text(final_of(theirs), 2)}, "
        f"{ratio_text(times, 3)} times 1-SFW's error; its slope is {slope_text(rise(theirs, 'samples'))}, 1-SFW's "
        f"{slope_text(rise(ours, 'samples'))}. The factor shrinks as the noise grows; the table below shows how."
    ]


def error_after(curve: Curve, calls: int) -> float:
    """The mean error at so many oracle calls, read off the curve on log-log axes; NaN outside it."""
    counts, errors = curve.counts["lmo_calls"].astype(float), curve.measures[curve.primary].mean(0)
    if not counts[0] <= calls <= counts[-1] or np.any(errors <= 0):
        return float("nan")
    return float(np.exp(np.interp(np.log(calls), np.log(counts), np.log(errors))))
