"""Puts the pages of the site together: those of the repository, and the generated ones."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Collection, Iterator
from pathlib import Path

import pages

ROOT = Path(__file__).resolve().parents[2]
_HERE = Path(__file__).resolve().parent
_LINK = re.compile(r"(?P<text>!?\[(?:[^\[\]]|\[[^\]]*\])*\])\((?P<target>[^)\s#]*)(?P<anchor>#[^)\s]*)?\)")
_COMMENT = re.compile(r"^<!--.*?-->\n+", re.MULTILINE | re.DOTALL)
_FENCE = re.compile(r"^(?:```|~~~).*?^(?:```|~~~)[ \t]*$", re.MULTILINE | re.DOTALL)


def sources() -> dict[Path, Path]:
    """The files of the repository that the site shows: where each is, and where it stands on the site."""
    docs = ROOT / "docs"
    found = {ROOT / "README.md": Path("index.md")}
    found |= {ROOT / name: Path(name) for name in ("CHANGELOG.md", "CONTRIBUTING.md")}
    for path in sorted([*docs.rglob("*.md"), *(docs / "img").iterdir()]):
        found[path] = path.relative_to(docs)
    return found


def stage(folder: Path, formats: Collection[str] | None = None) -> list[str]:
    """Writes all pages into ``folder``, or those of some formats alone, and returns what is wrong with them."""
    places = sources()
    problems: list[str] = []
    for source, place in places.items():
        target = folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix != ".md":
            shutil.copy(source, target)
            continue
        text = _COMMENT.sub("\n", source.read_text(encoding="utf-8"))
        moved, wrong = _moved(text, source, place, places)
        problems += wrong
        target.write_text(moved, encoding="utf-8", newline="\n")
    for place, text in pages.generated(formats).items():
        target = folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8", newline="\n")
    (folder / "assets").mkdir()
    for name in ("site.css", "site.js"):
        shutil.copy(_HERE / name, folder / "assets" / name)
    (folder / "llms.txt").write_text(_llms(folder), encoding="utf-8", newline="\n")
    return problems + list(_lost(folder))


def _moved(text: str, source: Path, place: Path, places: dict[Path, Path]) -> tuple[str, list[str]]:
    """The page with its links as the site has them, and the links that lead nowhere.

    The site has no place for a file of the sources, so a link to one becomes its name.
    """
    wrong: list[str] = []

    def moved(link: re.Match[str]) -> str:
        target, anchor = link["target"], link["anchor"] or ""
        if not target or ":" in target:
            return link[0]
        path = Path(os.path.normpath(source.parent / target))
        if path in places:
            there = os.path.relpath(places[path], place.parent).replace(os.sep, "/")
            return f"{link['text']}({there}{anchor})"
        if not path.exists():
            wrong.append(f"{source.relative_to(ROOT)}: {target} leads nowhere")
        if path.is_dir():
            wrong.append(f"{source.relative_to(ROOT)}: {target} is a folder: link to a page")
        return link["text"].strip("![]")

    parts: list[str] = []
    at = 0
    for fence in _FENCE.finditer(text):
        parts += [_LINK.sub(moved, text[at : fence.start()]), fence[0]]
        at = fence.end()
    return "".join([*parts, _LINK.sub(moved, text[at:])]), wrong


def _nav() -> Iterator[tuple[str, str]]:
    """The pages of the navigation, as mkdocs.yml has them: a title, or none, and the file."""
    _, _, nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")
    for line in nav.splitlines():
        if found := re.fullmatch(r"\s+- (?:(?P<title>.*): )?(?P<page>[\w/.-]+\.md)", line):
            yield found["title"] or "", found["page"]


def _lost(folder: Path) -> Iterator[str]:
    """Pages that the navigation misses, or names though they are not there; two folders have an index of their own."""
    named = {page for _, page in _nav()}
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*.md")}
    yield from (f"mkdocs.yml: {page} is not there" for page in sorted(named - there))
    own = ("format/", "reference/")
    yield from (
        f"mkdocs.yml: nav misses {page}" for page in sorted(there - named) if not page.startswith(own)
    )


def _begins(text: str) -> str:
    """The first sentence of a page, without its links."""
    for paragraph in re.split(r"\n{2,}", _FENCE.sub("", text)):
        if re.match(r"[A-Z`\[]", paragraph):
            plain = " ".join(re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", paragraph).split())
            return ": " + re.split(r"(?<=[.!?]) |:(?: |$)", plain)[0]
    return ""


def _llms(folder: Path) -> str:
    """``llms.txt`` (llmstxt.org): the pages for a model that reads them, each with its first sentence."""
    lines = ["# chatparsers", "", f"> {pages.SUMMARY}", "", "## Pages", ""]
    groups = {"format": "Formats", "reference": "Reference"}
    rest: dict[str, list[str]] = {group: [] for group in groups}
    named = [page for _, page in _nav()]
    for page in named + sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*.md")
        if path.relative_to(folder).as_posix() not in named
    ):
        text = (folder / page).read_text(encoding="utf-8")
        title = re.search(r"^# (.*)$", text, re.MULTILINE)
        line = f"- [{title[1] if title else page}]({page})" + _begins(text)
        rest.get(page.partition("/")[0], lines).append(line)
    for group, title_of in groups.items():
        lines += ["", f"## {title_of}", "", *rest[group]]
    return "\n".join(lines) + "\n"
