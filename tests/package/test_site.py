"""The site: its pages are put together, and a fault of one is found."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

import chatparsers
from chatparsers.doctor import outputs

ROOT = Path(chatparsers.__file__).parents[1]
SITE = ROOT / "docs" / "_site"

pytestmark = pytest.mark.skipif(not SITE.is_dir(), reason="no docs: not a checkout")


@pytest.fixture(autouse=True, scope="module")
def _modules() -> Iterator[None]:
    """The generator's modules, which lie beside one another and are no package."""
    sys.path.insert(0, str(SITE))
    yield
    sys.path.remove(str(SITE))
    for name in ("check", "pages", "public", "stage"):
        sys.modules.pop(name, None)


def test_the_pages_are_put_together(tmp_path: Path) -> None:
    for extra in ("railroad", "httpx2", "pyarrow", "hypothesis"):
        pytest.importorskip(extra)
    import stage

    listed = {"content-only", "hermes-2-pro", "qwen3-coder"}  # the build of the site makes all
    assert stage.stage(tmp_path, listed) == []
    assert listed == {path.stem for path in (tmp_path / "format").glob("*.md")} - {"index"}
    page = (tmp_path / "format" / "qwen3-coder.md").read_text(encoding="utf-8")
    shown = unescape(page)
    for part in (
        "<function=get_weather>",
        "Qwen3-Coder",
        "<svg",
        'class="chip',
        "--tool-call-parser",
        "qwen3_coder",
    ):
        assert part in shown, part
    llms = (tmp_path / "llms.txt").read_text(encoding="utf-8")
    named = set(re.findall(r"\]\(([^)]+)\)", llms))
    assert named == {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.md")}


def test_a_fault_of_a_page_is_found(tmp_path: Path) -> None:
    import check

    good = '<html><title>T</title><h1 id="a b">x</h1><a href="two.html#there">'
    (tmp_path / "index.html").write_text(good + '<a href="https://elsewhere.org/">', encoding="utf-8")
    (tmp_path / "two.html").write_text('<title>T</title><p id="there"><a href="index.html#a%20b">', "utf-8")
    assert check.faults(tmp_path) == []
    bad = '<a href="no.html"><a href="#no"><script src="https://elsewhere.org/a.js"></script>'
    (tmp_path / "three.html").write_text(bad, encoding="utf-8")
    assert check.faults(tmp_path) == [
        "three.html: #no has no such place",
        "three.html: a page without a title",
        "three.html: fetches https://elsewhere.org/a.js from another host",
        "three.html: no.html leads nowhere",
    ]


def test_a_link_that_leads_nowhere_is_found() -> None:
    import stage

    page = ROOT / "docs" / "x.md"
    moved, wrong = stage._moved(
        "[a](../README.md#more) [b](no.md) [c](hosts)", page, Path("x.md"), stage.sources()
    )
    assert moved == "[a](index.md#more) b c"
    assert [each.split(": ")[1].split()[0] for each in wrong] == ["no.md", "hosts"]


def test_what_a_visitor_looks_for_agrees() -> None:
    """One version and one address, wherever they are written."""
    cited = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\nversion: {chatparsers.__version__}\n" in cited
    (home,) = re.findall(r"^repository-code: (.*)$", cited, re.M)
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    urls = re.findall(r'^\w+ = "(.*)"$', project.partition("[project.urls]\n")[2].partition("\n\n")[0], re.M)
    assert len(urls) >= 4
    form = (ROOT / ".github" / "ISSUE_TEMPLATE" / "config.yml").read_text("utf-8")
    for url in (*urls, *re.findall(r"url: (.*)", form), outputs.RULES):
        assert url == home or url.startswith(f"{home}/"), url
    for path in re.findall(rf"{home}/(?:blob|tree)/main/(\S+)", "\n".join([*urls, outputs.RULES])):
        assert (ROOT / path).exists(), path
