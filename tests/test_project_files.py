"""What an open project keeps beside its code agrees with it: citation, workflow, site and security policy."""

import re
from pathlib import Path

import pytest
import yaml

import onesfw

ROOT = Path(__file__).parent.parent
TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))


def read(name):
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def test_the_citation_is_of_this_version():
    citation = read("CITATION.cff")
    assert citation["version"] == onesfw.__version__
    assert citation["license"] == "BSD-3-Clause"
    page = (ROOT / "docs" / "citation.md").read_text(encoding="utf-8")
    assert f"{{{onesfw.__version__}}}" in page
    for author in citation["references"][0]["authors"]:
        assert f"{author['family-names']}, {author['given-names']}" in page


def test_the_workflow_runs_what_make_runs():
    job = read(".github/workflows/check.yml")["jobs"]["check"]
    assert set(job["strategy"]["matrix"]["target"]) == {"check", "test", "site"} <= TARGETS
    assert [step["run"] for step in job["steps"] if "run" in step] == ["make ${{ matrix.target }}"]
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert re.findall(r"^make (\w+)", script, re.M) == ["check", "test", "site"]
    hooks = read(".pre-commit-config.yaml")["repos"][0]["hooks"]
    assert [hook["entry"] for hook in hooks] == ["make check"]


def test_the_hosted_site_is_built_as_here():
    hosted = read(".readthedocs.yaml")
    assert hosted["sphinx"]["fail_on_warning"]
    assert (ROOT / hosted["sphinx"]["configuration"]).exists()
    assert hosted["python"]["install"][0]["extra_requirements"] == ["docs"]


@pytest.mark.parametrize("path", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")), ids=lambda p: p.stem)
def test_templates_can_be_read(path):
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert path.stem == "config" or {"name", "description", "body"} <= content.keys()


def test_the_security_policy_tells_the_truth_about_pickles():
    """Nothing in the library unpickles, so opening a file runs nothing of it."""
    calls = re.compile(
        r"\bpickle\.loads?\(|\ballow_pickle=True|\bjoblib\.load\(|\bcloudpickle\.loads?\(|\beval\(|\bexec\("
    )
    broken = [path for path in (ROOT / "src").rglob("*.py") if calls.search(path.read_text(encoding="utf-8"))]
    assert not broken
    assert "no pickle" in (ROOT / "SECURITY.md").read_text(encoding="utf-8")
