"""Tables of words: nothing is cut, whatever the width; and what all public names have in common."""

import importlib
import inspect

import pytest

from onesfw.results.result import Result
from onesfw.results.show import Sheet, Shown, as_html, blocks, lines, markdown

SHEET = Sheet(
    "A title",
    ("method", "F(x) − F*", "slope in samples", "slope in LMO calls", "gradients", "seconds"),
    [
        ("one_sfw", "2.18e-3 ± 3e-5", "−1.08 [−1.10, −1.07]", "−1.08 [−1.10, −1.07]", "1,999", "0.0778"),
        ("momentum_sfw", "0.020 ± 0.002", "−0.52 [−0.52, −0.52]", "−0.52 [−0.52, −0.52]", "1,000", "0.0687"),
    ],
    note="Means over 2 seeds at 1,000 samples, ± one standard error.\nA second line.",
)


@pytest.mark.parametrize("width", [30, 60, 80, 120])
def test_every_cell_is_whole_at_every_width(width):
    printed = lines(SHEET, width)
    longest = max(len(line) for line in printed.splitlines())
    assert longest <= max(width, len("momentum_sfw  −1.08 [−1.10, −1.07]"))
    for row in (SHEET.columns, *SHEET.rows):
        for cell in row:
            assert cell in printed
    names = [line for line in printed.splitlines() if line.startswith("momentum_sfw")]
    assert len(names) == len(blocks(SHEET, width))  # every part of the table names its rows


def test_a_wide_terminal_has_one_table():
    assert len(blocks(SHEET, 120)) == 1
    assert lines(SHEET, 120).splitlines()[1].split()[-1] == "seconds"


@pytest.mark.parametrize("width", [40, 60])
def test_words_are_wrapped_beside_a_whole_name(width):
    words = "a long line of words that no narrow terminal has room for, to be continued below itself"
    printed = lines(Sheet("", ("", ""), [("logistic-generated", words), ("nqp", "short")], words=2), width)
    assert max(len(line) for line in printed.splitlines()) <= width
    assert printed.splitlines()[0].startswith("logistic-generated  a long line")
    assert " ".join(printed.split()).replace("logistic-generated ", "").startswith(words)


def test_markup_in_words_is_no_markup():
    sheet = Sheet("[bold]", ("[red]a", "b"), [("[/x]", "<b>")])
    assert "[red]a" in lines(sheet)
    assert "&lt;b&gt;" in as_html(sheet.title, sheet.columns, sheet.rows)
    assert markdown(Sheet("", ("a|b",), [("c|d",)])).startswith("| a\\|b |")


def test_a_result_keeps_the_contract():
    assert issubclass(Result, Shown)
    with pytest.raises(TypeError, match="abstract"):
        Shown()


@pytest.mark.parametrize("room", ["zoo", "theory", "experiments", "results.show"])
def test_every_public_name_has_an_example_and_says_what_it_takes(room):
    module = importlib.import_module(f"onesfw.{room}")
    for name in module.__all__:
        entry = getattr(module, name)
        text = inspect.getdoc(entry) or ""
        if name not in ("Shown", "as_text"):  # shown at `Result` and at `grid`
            assert ">>> " in text, name
        if inspect.isfunction(entry) and inspect.signature(entry).parameters:
            assert "Args:" in text, name
