"""Progress bars on narrow terminals."""

import io

import pytest
from rich.console import Console

from onesfw import progress


def shown(bar, width):
    """What a terminal of that width shows."""
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(bar.display.get_renderable())
    return console.file.getvalue()


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_figures_are_never_cut(width, monkeypatch):
    monkeypatch.setattr(
        progress, "Console", lambda stderr: Console(file=io.StringIO(), width=width, force_terminal=True)
    )
    steps = progress.ProgressBar(200_000_000, True)
    steps.advance(150_000_000)
    steps.note("value 0.123456, gap 1.2e-5")
    rows = progress.PassesBar(True, 20)
    rows.report(0, 123_456, 0.12345, 2e6)
    said = progress.PassesBar(True, 20)
    said.report(19, 123_456, 0.12345, 2e6)
    said.say("polishing, gap 1.2e-05 after 0.1 s")
    for bar, words in (
        (steps, "150000000/200000000 value 0.123456, gap 1.2e-5"),
        (rows, "pass 1/20 123,456 rows loss on unseen rows 0.12345"),
        (said, "pass 20/20, then polishing, gap 1.2e-05 after 0.1 s"),
    ):
        text = shown(bar, width)
        assert "…" not in text
        assert text.count("\n") == 1
        assert set(words.split()) <= set(text.split())
    assert ("━" in shown(steps, width)) == (width >= 100)
