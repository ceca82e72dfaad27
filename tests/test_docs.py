"""The pages of docs/ are true: their Python runs, page by page, and the links lead somewhere."""

import re
import traceback
import unicodedata
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").glob("**/*.md"))
LINKED = [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]

FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*)[^\n]*\n(?P<body>.*?)^(?P=indent)```[ \t]*$", re.M | re.S)
LINK = re.compile(r"\[[^\]]*\]\(\s*(?P<target>[^)\s]+)")
HEADING = re.compile(r"^#{1,6} +(?P<title>.+?) *$", re.M)


def name(page: Path) -> str:
    """A page as a reader would name it."""
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> list[tuple[int, str]]:
    """The Python blocks of a page, each with the line it begins at; text inside other fences is no Python."""
    text = page.read_text(encoding="utf-8")
    return [
        (text.count("\n", 0, fence.start("body")) + 1, fence["body"])
        for fence in FENCE.finditer(text)
        if fence["language"] == "python"
    ]


def run(page: Path) -> None:
    """Run a page's blocks in order in one namespace; an error says where in the page it comes from."""
    namespace = {"__name__": page.stem.replace("-", "_")}
    for first, body in blocks(page):
        line = first
        try:
            code = compile(
                "\n" * (first - 1) + body, str(page), "exec"
            )  # the lines of the page, so that tracebacks fit
            exec(code, namespace)
        except Exception as error:
            frames = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == str(page)]
            line = frames[-1] if frames else getattr(error, "lineno", None) or first
            source = page.read_text(encoding="utf-8").splitlines()[line - 1].strip()
            pytest.fail(f"{name(page)}:{line}: {type(error).__name__}: {error}\n    {source}", pytrace=False)


def anchors(page: Path) -> set[str]:
    """The fragments that a page's headings make: lower case, hyphens for spaces, letters and digits kept."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    kept = set()
    for heading in HEADING.finditer(text):
        title = heading["title"].replace("`", "").lower()
        letters = (c for c in title if c in " -_" or unicodedata.category(c)[0] in "LN" or unicodedata.combining(c))
        kept.add("".join(letters).replace(" ", "-"))
    return kept


def broken_links(page: Path) -> list[str]:
    """The relative links of a page that lead nowhere, with their lines."""
    text = page.read_text(encoding="utf-8")
    # Code is blanked, not removed, so that line numbers stay.
    prose = FENCE.sub(lambda fence: re.sub(r"[^\n]", " ", fence[0]), text)
    prose = re.sub(r"`[^`\n]*`", lambda code: " " * len(code[0]), prose)
    broken = []
    for link in LINK.finditer(prose):
        target, _, fragment = link["target"].partition("#")
        if re.match(r"[a-z][a-z0-9+.-]*:", target):
            continue
        place = (page.parent / target) if target else page
        if not place.exists() or (fragment and place.suffix == ".md" and fragment not in anchors(place)):
            broken.append(f"{name(page)}:{prose.count(chr(10), 0, link.start()) + 1}: {link['target']}")
    return broken


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=name)
def test_the_python_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(page)


def test_the_pages_that_are_promised_exist():
    guides = {"getting-started", "choosing-a-set", "choosing-an-algorithm", "non-oblivious", "errata", "design"}
    promised = {"README", "sets", *guides}
    assert promised <= {page.stem for page in PAGES}
    without_python = {page.stem for page in PAGES if not blocks(page)}
    assert not without_python & guides


def test_the_index_names_every_page():
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    for page in (p for p in PAGES if p.name != "README.md"):
        assert f"({page.relative_to(ROOT / 'docs').as_posix()})" in index, name(page)


def test_the_sites_contents_name_every_page():
    contents = (ROOT / "docs" / "index.rst").read_text(encoding="utf-8").split(".. toctree::", 1)[1]
    missing = {page.stem for page in PAGES if page.name != "README.md"} - set(contents.split())
    assert not missing, f"docs/index.rst lists the pages of the site; it lacks {missing}"


@pytest.mark.parametrize("page", LINKED, ids=name)
def test_relative_links_resolve(page):
    assert not broken_links(page)


def test_an_error_names_the_page_and_the_line(tmp_path, monkeypatch):
    page = tmp_path / "wrong.md"
    page.write_text("# Wrong\n\n```python\nx = 1\n```\n\ntext\n\n```python\n\nassert x == 2\n```\n", encoding="utf-8")
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    with pytest.raises(pytest.fail.Exception, match=r"wrong\.md:11: AssertionError"):
        run(page)


def test_a_broken_link_is_found(tmp_path, monkeypatch):
    page = tmp_path / "links.md"
    page.write_text(
        "# One title\n\n[good](#one-title) [none](missing.md) `[code](no.md)`\n\n[bad](#two-titles)\n", encoding="utf-8"
    )
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    assert broken_links(page) == ["links.md:3: missing.md", "links.md:5: #two-titles"]
