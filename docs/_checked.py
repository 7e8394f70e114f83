"""Writes the tables of checked.md and tables/checked.md: what the doctor finds in templates in use, and what it mends.

    python docs/_checked.py [--fix] [--check] SHARED [NAME…]

``SHARED``: a folder with ``templates*/`` and ``tokenizers/``. Each template is checked with the tokenizer that has all
its stops and markers as tokens, if there is one. ``--fix`` also tries the mends (minutes). ``--check``
fails if a row is stale. With names, only these templates are checked; all other rows stay as they are.
"""

from __future__ import annotations

import argparse
import gzip
import os
import sys
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import chatparsers
from chatparsers.doctor.check import examined
from chatparsers.doctor.mend import mends
from chatparsers.errors import ChatParsersError

PAGE = Path(__file__).resolve().parent / "checked.md"
ROWS = PAGE.parent / "tables" / PAGE.name
MODELS = "| Template | Format | Tokenizer | Errors and warnings | Notes |"
MENDS = "| Template | Mended | Not proved |"
CODES = "| Finding | Severity | Templates | Such as |"
TOTALS = "| Finding | Mended | Not proved |"
_MENDED = (
    "arguments-escaped-twice",
    "loses-null-content",
    "loses-tools",
    "no-generation-tags",
    "generation-tags-wrong",
    "not-append-only",
    "stop-differs",
    "stop-missing",
)
"""The findings for which a mend is known."""
_BOS = ("<bos>", "<|begin_of_text|>", "<｜begin▁of▁sentence｜>", "<|startoftext|>", "<s>")
"""The first tokens of models; a model's own is the one that its tokenizer has."""

__all__ = ["main", "row", "rows_of", "templates"]


def templates(shared: Path) -> dict[str, Path]:
    """The templates of the folders, by their name; the newer folder wins."""
    folders = sorted(path for path in shared.glob("templates*") if path.is_dir())
    return {path.stem: path for folder in folders for path in sorted(folder.glob("*.jinja"))}


@cache
def _tokenizers(shared: Path) -> dict[str, tuple[Any, frozenset[str]]]:
    from tokenizers import Tokenizer

    found = {}
    for path in sorted((shared / "tokenizers").glob("*.json.gz")):
        made = Tokenizer.from_str(gzip.decompress(path.read_bytes()).decode("utf-8"))
        added = frozenset(token.content for token in made.get_added_tokens_decoder().values())
        found[path.name.removesuffix(".json.gz")] = made, added
    return found


def _tokenizer_of(shared: Path, chat: chatparsers.Chat) -> tuple[str, Any]:
    """The tokenizer that has all stops of the template and all markers of its format. Without markers it is none,
    as nothing tells then."""
    markers = chat.format.preserved_tokens
    stops = [stop.strip() for stop in chat.template().end_of_turn(chat.format) if stop.strip()]
    for label, (tokenizer, added) in _tokenizers(shared).items():
        if markers and stops and added.issuperset([*markers, *stops]):
            return label, tokenizer
    return "–", None


def _loaded(shared: Path, path: Path) -> tuple[str, chatparsers.Chat]:
    bare = chatparsers.load(path, bos_token="<s>", eos_token="</s>")
    stop = next((s.strip() for s in bare.template().end_of_turn(bare.format) if s.strip()), "</s>")
    label, tokenizer = _tokenizer_of(shared, bare)
    bos = next(
        (text for text in _BOS if tokenizer is not None and tokenizer.token_to_id(text) is not None), "<s>"
    )
    return label, chatparsers.load(path, tokenizer=tokenizer, bos_token=bos, eos_token=stop)


def row(shared: Path, path: Path) -> str:
    """The cells of a template, after its name."""
    label, chat = _loaded(shared, path)
    report = examined(chat)
    worse = [
        f"**{code}**" if severity == "error" else code
        for severity in ("error", "warning")
        for code in dict.fromkeys(f.code for f in report.findings if f.severity == severity)
    ]
    notes = dict.fromkeys(
        finding.code
        for finding in report.findings
        if finding.severity == "note" and finding.code != "renders-otherwise"  # of tables/renderers.md
    )
    return " | ".join((report.format or "–", label, ", ".join(worse) or "–", ", ".join(notes) or "–"))


def mended(shared: Path, path: Path) -> str:
    """The cells of a template's mends."""
    _, chat = _loaded(shared, path)
    report = examined(chat)
    found = {mend.code for mend in mends(chat, report)}
    asked = [code for code in report.codes() if code in _MENDED]
    return " | ".join((", ".join(sorted(found)) or "–", ", ".join(c for c in asked if c not in found) or "–"))


def rows_of(page: str, head: str) -> dict[str, str]:
    """The rows of a table of the page, by their first cell."""
    found = {}
    for line in page.partition(head)[2].partition("\n\n")[0].splitlines():
        name, _, rest = line.removeprefix("| ").removesuffix(" |").partition(" | ")
        if rest and not line.startswith("|--"):
            found[name] = rest
    return found


def _table(head: str, rows: Iterable[str]) -> str:
    return "\n".join([head, "|" + "---|" * head.count(" | ") + "---|", *(f"| {line} |" for line in rows)])


def _codes(models: dict[str, str]) -> Iterator[str]:
    """The rows by finding: how many templates have it."""
    having: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for name, cells in models.items():
        _, _, worse, notes = cells.split(" | ")
        for code in worse.split(", "):
            having["error" if code.startswith("**") else "warning", code.strip("*")].append(name)
        for code in notes.split(", "):
            having["note", code].append(name)
    order = ("error", "warning", "note")
    for (severity, code), names in sorted(
        having.items(), key=lambda item: (order.index(item[0][0]), -len(item[1]))
    ):
        if code != "–":
            yield f"[`{code}`](findings.md#{code}) | {severity} | {len(names)} | {', '.join(sorted(names)[:3])}"


def _totals(rows: dict[str, str]) -> Iterator[str]:
    done, refused = (
        Counter(code for cells in rows.values() for code in cells.split(" | ")[at].split(", "))
        for at in (0, 1)
    )
    for code in _MENDED:
        if done[code] or refused[code]:
            yield f"`{code}` | {done[code]} | {refused[code]}"


def _page(models: dict[str, str], mending: dict[str, str]) -> str:
    intro = PAGE.read_text(encoding="utf-8").partition("## All templates")[0].rstrip()
    parts = [
        intro,
        f"## All templates\n\n[How many of {len(models)} templates each finding has](tables/checked.md#by-finding), "
        "and [each template's row](tables/checked.md#by-template).",
        f"## Mends\n\nWhat `--fix` proved for {len(mending)} templates, and what it refused to write. After each\n"
        "mend the finding is gone, and no check finds more than before, with the same format and with the one\n"
        "that the mended template tells. All else is not proved, and not written.",
        _table(TOTALS, _totals(mending)),
    ]
    return "\n\n".join(parts) + "\n"


def _rows(models: dict[str, str], mending: dict[str, str]) -> str:
    """The page of the rows."""
    parts = [
        "# Templates in use, row by row\n\nWhat [the doctor finds](../checked.md) in each template, and what it mends\n"
        "there. `python docs/_checked.py --fix SHARED` writes this page.",
        f"## By finding\n\n{len(models)} templates.",
        _table(CODES, _codes(models)),
        "## By template\n\nErrors are bold.",
        _table(MODELS, _by_name(models)),
        "## Mends",
        _table(MENDS, _by_name(mending)),
    ]
    return "\n\n".join(parts) + "\n"


def _by_name(rows: dict[str, str]) -> list[str]:
    return [f"{name} | {cells}" for name, cells in sorted(rows.items(), key=lambda item: item[0].lower())]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--fix", action="store_true", help="try the mends too")
    parser.add_argument("--check", action="store_true", help="fail if a row is stale")
    parser.add_argument("shared", type=Path, metavar="SHARED")
    parser.add_argument("names", nargs="*", metavar="NAME")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    page = ROWS.read_text(encoding="utf-8")
    models, mending = rows_of(page, MODELS), rows_of(page, MENDS)
    stale, times = [], []
    _tokenizers(given.shared)  # not counted
    for name, path in templates(given.shared).items():
        if given.names and name not in given.names:
            continue
        started = time.process_time()
        try:
            cells = row(given.shared, path)
            times.append((time.process_time() - started, name))
            mends_of = mended(given.shared, path) if given.fix else None
        except ChatParsersError as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        if cells != models.get(name):
            stale.append(f"{name}: the page says {models.get(name)}, it is {cells}")
        models[name] = cells
        if mends_of is not None:
            mending[name] = mends_of
        if not given.check:
            PAGE.write_text(_page(models, mending), encoding="utf-8")
            ROWS.write_text(_rows(models, mending), encoding="utf-8")
    if times:
        total, slowest = sum(seconds for seconds, _ in times), max(times)
        print(
            f"{len(times)} templates, {total / len(times):.2f} s of CPU each, at most {slowest[0]:.2f} ({slowest[1]})"
        )
    for line in stale if given.check else ():
        print(line, file=sys.stderr)
    return int(given.check and bool(stale))


if __name__ == "__main__":
    raise SystemExit(main())
