"""Checks a folder of HTML pages: every link leads to a place, and nothing comes from another host."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

__all__ = ["faults"]

# What a browser fetches by itself.
_FETCHED = {("img", "src"), ("script", "src"), ("iframe", "src"), ("source", "src"), ("object", "data")}
_FETCHED_LINKS = {"stylesheet", "icon", "preload", "preconnect", "dns-prefetch", "modulepreload", "manifest"}


class Link(NamedTuple):
    """A link of a page, and whether a browser fetches it by itself."""

    target: str
    fetched: bool


class _Reader(HTMLParser):
    """Collects the links and the places of one page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[Link] = []
        self.places: set[str] = set()
        self.titled = False

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        self.places |= {given[name] for name in ("id", "name") if name in given}
        self.titled |= tag == "title"
        if tag == "link":
            self.links.append(Link(given.get("href", ""), given.get("rel") in _FETCHED_LINKS))
        elif tag == "a" and "href" in given:
            self.links.append(Link(given["href"], False))
        self.links += [Link(given[name], True) for at, name in _FETCHED if at == tag and name in given]


def faults(folder: Path) -> list[str]:
    """What is wrong with the pages of ``folder``, a line for each fault."""
    return sorted(set(_faults(folder)))


def _faults(folder: Path) -> Iterator[str]:
    pages: dict[Path, _Reader] = {}
    for path in folder.rglob("*.html"):
        pages[path.resolve()] = reader = _Reader()
        reader.feed(path.read_text(encoding="utf-8"))
    for path, reader in pages.items():
        name = path.relative_to(folder.resolve()).as_posix()
        if not reader.titled:
            yield f"{name}: a page without a title"
        for target, fetched in reader.links:
            there = urlsplit(target)
            if there.scheme == "data":
                continue
            if there.scheme or there.netloc:
                if fetched:
                    yield f"{name}: fetches {target} from another host"
                continue
            found = path
            if there.path:
                # A page for errors is shown at any place, so its links begin at the root.
                base = folder.resolve() if there.path.startswith("/") else path.parent
                found = (base / unquote(there.path).lstrip("/")).resolve()
            if found.is_dir():
                found = found / "index.html"
            if not found.is_file():
                yield f"{name}: {target} leads nowhere"
            elif there.fragment and found in pages and unquote(there.fragment) not in pages[found].places:
                yield f"{name}: {target} has no such place"
