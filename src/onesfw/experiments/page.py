"""One self-contained page: curves to play with, tables, and how to make it again. It needs no network."""

from __future__ import annotations

import html
import json
import os
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import metadata, resources
from pathlib import Path

import numpy as np

from onesfw.algorithms import ALGORITHMS
from onesfw.experiments.comparison import Comparison
from onesfw.experiments.curves import LABELS, LOGARITHMIC, Curve
from onesfw.results.jsonable import Jsonable, plain
from onesfw.results.show import Sheet
from onesfw.trees import Floats

BAND = (0.1, 0.9)  # quantiles over the seeds
DIGITS = 5
AXES = {"samples": "samples", "gradients": "gradient evaluations", "lmo_calls": "LMO calls", "seconds": "seconds"}
# Okabe and Ito's palette without its yellow, which is hard to see on white, then Tol's muted one: both are made for
# colour-blind readers, and dashes and symbols tell the rest apart. A method looks the same on every page.
COLOURS = (
    "#D55E00", "#0072B2", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000", "#332288", "#882255", "#44AA99",
    "#999933", "#AA4499", "#661100", "#7A7A7A",
)  # fmt: skip
LEAST_LIGHT = 0.5  # of a line on a dark page
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "star", "cross", "triangle-down", "pentagon")
NO_BREAK = "\u00a0"
PACKAGES = ("onesfw", "jax", "numpy", "scipy")


@dataclass(frozen=True)
class Section:
    """Words and tables below the curves."""

    title: str
    paragraphs: Sequence[str] = ()
    sheets: Sequence[Sheet] = ()


@dataclass(frozen=True)
class Report:
    """What the page shows.

    Args:
        title: of the page.
        lead: the sentence below the title.
        command: what was called, for the foot of the page.
        comparisons: whose curves are drawn.
        sections: words and tables below the curves.
        seconds: wall time of the runs; None where it is not known.
        versions: of the packages and the machine; those of this process where left out.

    Example:
        >>> from onesfw import zoo
        >>> from onesfw.experiments import Comparison, Report
        >>> Report.of([Comparison(zoo.get("quadratic-face"), budget=200, seeds=2)]).title
        'Methods compared on quadratic-face'
    """

    title: str
    lead: str
    command: str
    comparisons: Sequence[Comparison]
    sections: Sequence[Section] = ()
    seconds: float | None = None
    versions: dict[str, str] = field(default_factory=lambda: versions())

    @staticmethod
    def of(comparisons: Sequence[Comparison], command: str = "") -> Report:
        """The page about comparisons.

        Args:
            comparisons: what `compare` returned.
            command: what was called, for the foot of the page.
        """
        title = "Methods compared on " + ", ".join(c.problem.name for c in comparisons)
        lead = "Every method gets the same budget of samples; shown is the error of its own output."
        return Report(title, lead, command, comparisons)


def versions() -> dict[str, str]:
    """What was run, on what."""
    import jax

    found = {name: metadata.version(name) for name in PACKAGES}
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return {**found, "Python": platform.python_version(), "backend": jax.default_backend(), "cores": str(cores)}


def page(report: Report) -> str:
    """The page as one HTML document."""
    from plotly.offline import get_plotlyjs

    template = resources.files("onesfw.experiments").joinpath("page.html").read_text(encoding="utf-8")
    script = resources.files("onesfw.experiments").joinpath("page.js").read_text(encoding="utf-8")
    parts = {
        "title": html.escape(report.title),
        "lead": html.escape(report.lead),
        "sections": "\n".join(section_html(section) for section in report.sections),
        "command": html.escape(report.command),
        "versions": html.escape(", ".join(f"{name} {version}" for name, version in report.versions.items())),
        "seeds": html.escape(seeds_text(report)),
        "data": json_in_html(data_of(report)),
        "plotly": get_plotlyjs(),
        "script": script,
    }
    # One pass: what is put in is not searched for placeholders.
    pieces = template.split("{{")
    filled = [pieces[0]]
    for piece in pieces[1:]:
        name, _, rest = piece.partition("}}")
        filled += [parts[name], rest]
    return "".join(filled)


def write_page(report: Report, path: str | Path) -> None:
    """Write the page: one HTML file that works offline, whole or not at all.

    Args:
        report: what it shows, `Report.of(comparisons)` for instance.
        path: the file.

    Raises:
        OSError: where it cannot be written.

    Example:
        >>> import tempfile, pathlib
        >>> from onesfw.experiments import Report, compare, write_page
        >>> page = pathlib.Path(tempfile.mkdtemp()) / "page.html"
        >>> done = compare("quadratic-face", algorithms=["one_sfw"], samples=200, seeds=2)
        >>> write_page(Report.of(done), page)
        >>> page.read_text(encoding="utf-8")[:15]
        '<!doctype html>'
    """
    from onesfw.files import write_whole

    write_whole(path, page(report).encode())


def seeds_text(report: Report) -> str:
    """Seeds, budgets and the time it took."""
    seeds = sorted({f"{c.seeds} seeds folded from key {c.key}" for c in report.comparisons})
    budgets = sorted({c.budget for c in report.comparisons})
    parts = [*seeds, "budgets of " + ", ".join(f"{b:,}" for b in budgets) + " samples"] if seeds else []
    if report.seconds is not None:
        parts.append(f"{report.seconds:.0f} s in all")
    return "; ".join(parts)


def data_of(report: Report) -> dict[str, Jsonable]:
    """What the script draws."""
    used = {curve.name for c in report.comparisons for curve in c.curves}
    names = [*ALGORITHMS, *sorted(used - set(ALGORITHMS))]
    styles = {
        name: {
            "colour": COLOURS[place % len(COLOURS)],
            "on_dark": lighter(COLOURS[place % len(COLOURS)]),
            "dash": DASHES[place % len(DASHES)] if place else DASHES[0],
            "symbol": SYMBOLS[place % len(SYMBOLS)],
        }
        for place, name in enumerate(names)
        if name in used
    }
    return {"axes": AXES, "styles": styles, "panels": [panel(c) for c in report.comparisons]}


def lighter(colour: str) -> str:
    """A colour for a dark page: what would be hard to see there is mixed with white."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    missing = LEAST_LIGHT - (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 255
    share = max(0.0, missing) / LEAST_LIGHT
    return "#" + "".join(f"{round(part + (255 - part) * share * 0.75):02X}" for part in (red, green, blue))


def panel(comparison: Comparison) -> dict[str, Jsonable]:
    """One subject's curves and table."""
    sheet = comparison.sheet()
    used = [name for name in LABELS if any(name in curve.measures for curve in comparison.curves)]
    return {
        "name": comparison.problem.name,
        "setting": comparison.problem.setting,
        "summary": comparison.problem.summary,
        "measures": [{"name": name, "label": LABELS[name], "log": name in LOGARITHMIC} for name in used],
        "methods": [method(curve, used) for curve in comparison.ranked()],  # the legend in the order of the table
        "skipped": comparison.skipped,
        "columns": sheet.columns,
        "rows": sheet.rows,
        "note": sheet.note,
    }


def method(curve: Curve, used: Sequence[str]) -> dict[str, Jsonable]:
    """One curve: counts along x, and the mean and the band of each measure along y."""
    places = {name: plain(curve.counts[name]) for name in AXES if name != "seconds"}
    places["seconds"] = rounded(curve.seconds.mean(0))
    return {
        "name": curve.name,
        "summary": curve.summary,
        "citation": curve.citation,
        "separate": curve.separate,
        "x": places,
        "y": {name: band(curve.measures[name]) for name in used if name in curve.measures},
    }


def band(values: Floats) -> dict[str, Jsonable]:
    """Mean and 10–90 % of the seeds at each point."""
    low, high = np.quantile(values, BAND, axis=0)
    return {"mean": rounded(values.mean(0)), "low": rounded(low), "high": rounded(high)}


def rounded(values: Floats) -> list[float | None]:
    """Numbers short enough to embed; what is not finite is null."""
    return [float(f"{v:.{DIGITS}g}") if np.isfinite(v) else None for v in np.asarray(values, np.float64)]


def json_in_html(content: Jsonable) -> str:
    """JSON that cannot end the script element it stands in."""
    return json.dumps(content, allow_nan=False).replace("</", "<\\/").replace("<!--", "<\\u0021--")


def section_html(section: Section) -> str:
    """A section as HTML; `code` in backquotes."""
    parts = [f"<section><h2>{html.escape(section.title)}</h2>"]
    parts += [f"<p>{inline(paragraph)}</p>" for paragraph in section.paragraphs]
    parts += [sheet_html(sheet) for sheet in section.sheets]
    return "\n".join([*parts, "</section>"])


def inline(text: str) -> str:
    """Words with `code` and **bold** as HTML."""
    escaped = html.escape(text)
    for mark, tag in (("`", "code"), ("**", "strong")):
        pieces = escaped.split(mark)
        escaped = "".join(piece if place % 2 == 0 else f"<{tag}>{piece}</{tag}>" for place, piece in enumerate(pieces))
    return escaped


def unbroken(cell: str) -> str:
    """A cell that is wrapped between its parts only, not inside an interval or before a standard error."""
    kept = re.sub(r"\[[^\]]*\]", lambda interval: interval[0].replace(" ", NO_BREAK), cell)
    return kept.replace(" ± ", f"{NO_BREAK}±{NO_BREAK}")


def sheet_html(sheet: Sheet) -> str:
    """A table; wide ones scroll."""

    def line(cells: Sequence[str], tag: str) -> str:
        kinds = [' class="word"' if place < sheet.words else "" for place in range(len(cells))]
        boxes = (f"<{tag}{kind}>{inline(unbroken(cell))}</{tag}>" for kind, cell in zip(kinds, cells, strict=True))
        return f"<tr>{''.join(boxes)}</tr>"

    head = line(sheet.columns, "th")
    body = "\n".join(line(row, "td") for row in sheet.rows)
    title = f"<h3>{inline(sheet.title)}</h3>" if sheet.title else ""
    note = f'<p class="note">{inline(sheet.note)}</p>' if sheet.note else ""
    return f'{title}<div class="scroll"><table><thead>{head}</thead><tbody>{body}</tbody></table></div>{note}'
