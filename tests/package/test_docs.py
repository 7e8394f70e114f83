"""The pages are true: their examples run, their tables agree with the code, and their links lead somewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import chatparsers

ROOT = Path(chatparsers.__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
HOSTS, TABLES = sorted((DOCS / "hosts").glob("*.md")), sorted((DOCS / "tables").glob("*.md"))

pytestmark = pytest.mark.skipif(not DOCS.is_dir(), reason="no docs: not a checkout")


def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the script of docs/ in a new process, because examples register formats."""
    given = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}
    for name in ("CHATPARSERS_PLUGINS", "PYTEST_ADDOPTS"):
        given.pop(name, None)
    command = [sys.executable, str(DOCS / script), *arguments]
    return subprocess.run(command, env=given, capture_output=True, text=True, encoding="utf-8", timeout=600)


@pytest.mark.one_in(12)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_run_and_print_what_the_page_says(page: Path) -> None:
    done = run("_examples.py", str(page))
    assert done.returncode == 0, done.stderr + done.stdout
    wanted = len(re.findall(r"^<!-- (?:run|ci: example) -->$", page.read_text(encoding="utf-8"), re.M))
    assert f"{page.name}: {wanted} examples run" in done.stdout, "a mark without a code block behind it"


@pytest.mark.one_in(5)
@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks").glob("[!_]*.py")), ids=lambda path: path.name)
def test_a_benchmark_starts(path: Path) -> None:
    """It finds what it imports; what it measures is for whoever runs it."""
    done = run(str(path), "--help")
    assert done.returncode == 0, done.stderr


def test_a_python_block_says_whether_it_runs(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- run -->\n```python\n1\n```\n\n```python\n2\n```\n", encoding="utf-8")
    done = run("_examples.py", str(page))
    assert done.returncode == 1 and "page.md, line 6: write <!-- run -->" in done.stderr


@pytest.mark.parametrize(
    "script",
    [
        "_builder_table.py",
        "_config_table.py",
        "_mends.py",
        "_response_templates.py",
        pytest.param("_pictures.py", marks=pytest.mark.nightly),
    ],
)
def test_a_table_or_a_picture_is_what_its_script_writes(script: str) -> None:
    done = run(script, "--check")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "page", [*PAGES, *HOSTS, *TABLES], ids=lambda page: f"{page.parent.name}/{page.name}"
)
def test_links_within_the_project_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    broken = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert not broken


@pytest.mark.parametrize("page", [*PAGES, *HOSTS], ids=lambda page: page.name)
def test_a_page_can_be_read_at_one_sitting(page: Path) -> None:
    """What is longer is looked up, not read: it stands in docs/tables."""
    most = {"contract.md": 7000, "README.md": 800, "performance.md": 1500}.get(page.name, 3000)
    assert len(page.read_text(encoding="utf-8").split()) <= most


def test_all_pages_together_can_be_read_in_a_day() -> None:
    """What is looked up does not count: docs/tables."""
    read = [*PAGES, *HOSTS, ROOT / "CHANGELOG.md"]
    assert sum(len(page.read_text(encoding="utf-8").split()) for page in read) <= 60_000
