"""One scenario fed in every way, and the table of all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any
from zlib import crc32

from ..streams.message import Message
from .check import check_expected, check_prefixes, check_stream, longest_silence, smallest
from .chunkings import characters, random_cuts, token_ends, token_pieces
from .needles import prose
from .rendering import Case

CHUNKINGS = ("whole", "characters", "random", "tokens", "five tokens", "prefixes")
_HEAVY = 100_000
_FEW = 20
"""Random cuts of a heavy text, at most; an eighth of those of any other text."""


@dataclass(slots=True)
class Record:
    """The results of one scenario of one format and template. It is plain data, as it is sent between processes.

    ``counts`` and ``failures``: how many feedings, by chunking. ``skipped``: why the template does not show it,
    though its probe says that it can. ``text``: identifies the text. ``silence``: the longest run of characters
    without an event in the middle of a long text; None without a long text.
    """

    format: str
    template: str
    scenario: str
    real: bool = False
    counts: dict[str, int] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)
    skipped: str = ""
    text: int = 0
    silence: int | None = None
    tokenizers: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """The record as JSON data."""
        return asdict(self)


def feed_in_every_way(
    case: Case, record: Record, tokenizers: Mapping[str, Callable[[], Any]], cuts: int = 24
) -> list[str]:
    """Feeds the case's text in every way and counts in ``record``. Returns the failures, each with what to run again.

    ``tokenizers``: by name, each loaded on first use. ``cuts``: how many random ways to cut a text that
    is not heavy. It is cut off at up to five times as many places.
    """
    turn = case.turn()
    problems: list[str] = []
    record.text = crc32(case.text.encode("utf-8", "surrogatepass"))

    def attempt(
        chunking: str, check: Callable[[], object], pieces: Callable[[], Sequence[str]] | None = None
    ) -> None:
        record.counts[chunking] = record.counts.get(chunking, 0) + 1
        try:
            check()
        except Exception as error:
            record.failures[chunking] = record.failures.get(chunking, 0) + 1
            if record.failures[chunking] == 1:
                problems.append(
                    f"{chunking}: {_error_text(error)}\n{_again(case, pieces() if pieces else None)}"
                )

    message: list[Message] = []

    def whole() -> None:
        found = turn.parse(case.text)
        message.append(found)
        check_expected(case, found)
        check_stream(turn, case.text, [case.text], whole=found)

    attempt("whole", whole)
    if not message:
        return problems

    def fails(pieces: Sequence[str]) -> bool:
        try:
            check_stream(turn, case.text, pieces, whole=message[0])
        except Exception:
            return True
        return False

    for chunking, pieces in _pieces(case, record, tokenizers, cuts):
        attempt(
            chunking,
            lambda p=pieces: check_stream(turn, case.text, p, whole=message[0]),  # type: ignore[misc]
            lambda p=pieces: smallest(fails, p) if len(p) < 5000 else p[:50],  # type: ignore[misc]
        )
    if not case.heavy:
        try:
            every = 1 + len(case.text) // (5 * cuts)
            record.counts["prefixes"] = check_prefixes(turn, case.text, every)
        except Exception as error:
            record.counts["prefixes"] = record.failures["prefixes"] = 1
            problems.append(f"prefixes: {_error_text(error)}\n{_again(case)}")
    _listen(case, record, problems)
    return problems


def _pieces(
    case: Case, record: Record, tokenizers: Mapping[str, Callable[[], Any]], cuts: int
) -> Iterator[tuple[str, Sequence[str]]]:
    text = case.text
    if len(text) < _HEAVY:
        yield "characters", characters(text)
    for pieces in random_cuts(text, min(_FEW, cuts // 8) if case.heavy else cuts):
        yield "random", pieces
    for step in (4, 20) if len(text) < _HEAVY else (20,):
        yield (
            "five tokens" if step == 20 else "tokens",
            [text[at : at + step] for at in range(0, len(text), step)],
        )
    if len(text) < _HEAVY:
        names = list(tokenizers)
        if case.heavy and names:  # two of them, other ones for another text
            first = record.text % len(names)
            names = (names * 2)[first : first + 2]
        for name in names:
            ends = token_ends(tokenizers[name](), text)
            record.tokenizers.append(name)
            yield "tokens", token_pieces(text, ends)
            yield "five tokens", token_pieces(text, ends, 5)


def _listen(case: Case, record: Record, problems: list[str]) -> None:
    """C4: in the middle of a long text of plain words every character brings an event, but for a few."""
    words = prose(1400)
    at = case.text.find(words)
    if at < 0 or len(case.text) > _HEAVY:
        return
    record.silence = longest_silence(case.turn(), case.text, at, at + len(words))
    record.counts["characters"] = record.counts.get("characters", 0) + 1
    if record.silence > 8:
        record.failures["characters"] = record.failures.get("characters", 0) + 1
        problems.append(
            f"characters: {record.silence} characters of plain words in a row brought no event\n{_again(case)}"
        )


def _error_text(error: Exception) -> str:
    # pytest appends what it saw of the values: the message says that already.
    text = str(error).partition("\nassert ")[0] or repr(error)
    return text if isinstance(error, AssertionError) else f"{type(error).__name__}: {text}"


def _again(case: Case, pieces: Sequence[str] | None = None) -> str:
    """What to run to see it again."""
    options = {key: value for key, value in case.options.items() if value not in (None, "auto", True)}
    tools = options.pop("tools", None)
    if tools:
        called = {name for name, _ in case.expected.calls}
        options["tools"] = [tool for tool in tools if tool["function"]["name"] in called] or tools[:1]
    given = "".join(f", {key}={value!r}" for key, value in options.items())
    text = case.text if len(case.text) < 4000 else case.text[:2000] + "…"
    lines = [
        f"  turn = get_format({case.format.name!r}).bind(prefix={case.prefix!r}{given})",
        f"  text = {text!r}",
    ]
    if pieces is not None:
        lines.append(f"  pieces = {list(pieces)!r}"[:4000])
    return "\n".join(lines)


def table(records: Iterable[Mapping[str, Any]], full: bool = False) -> list[str]:
    """The matrix format × scenario × chunking in lines of text.

    One line a format: a letter for each scenario (``.`` passed, ``F`` failed, ``-`` no template can show
    it), then the number of feedings by chunking and the longest silence. ``full``: one line for each
    scenario of each format.
    """
    rows = [dict(record) for record in records]
    if not rows:
        return []
    names = list(dict.fromkeys(row["scenario"] for row in rows))
    letters = dict(zip(names, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", strict=False))
    lines = ["scenarios: " + "  ".join(f"{letters.get(name, '?')} {name}" for name in names), ""]
    width = max(6, *(len(row["format"]) for row in rows))
    heads = "".join(f"{chunking:>12}" for chunking in CHUNKINGS)
    lines.append(
        f"{'format':{width}}  templates  {''.join(letters.get(n, '?') for n in names)}{heads}  failed  silence"
    )
    for format in sorted({row["format"] for row in rows}):
        own = [row for row in rows if row["format"] == format]
        marks = "".join(_mark([row for row in own if row["scenario"] == name]) for name in names)
        counts, failed = _sum(own, "counts"), _sum(own, "failures")
        silent = [row["silence"] for row in own if row["silence"] is not None]
        numbers = "".join(f"{counts[chunking]:>12}" for chunking in CHUNKINGS)
        templates = len({row["template"] for row in own})
        quiet = str(max(silent)) if silent else "-"
        lines.append(f"{format:{width}}  {templates:>9}  {marks}{numbers}  {failed.total():>6}  {quiet:>7}")
        if full:
            for name in names:
                some = [row for row in own if row["scenario"] == name]
                counts, failed = _sum(some, "counts"), _sum(some, "failures")
                numbers = "".join(f"{counts[chunking]:>12}" for chunking in CHUNKINGS)
                lines.append(f"  {name:{width + 9 + len(names)}}{_mark(some)} {numbers}  {failed.total():>6}")
    return [*lines, "", *_totals(rows)]


def _totals(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The feedings that really took place."""
    counts, failed = _sum(rows, "counts"), _sum(rows, "failures")
    fed = [row for row in rows if row["counts"]]
    texts = {(row["format"], row["text"]) for row in fed}
    yield (
        f"{len(fed)} cells run, {len(texts)} distinct texts of a format, {counts.total()} feedings, "
        f"{failed.total()} failed"
    )
    reasons = Counter(row["skipped"].partition(":")[0] for row in rows if row["skipped"])
    for reason, number in reasons.most_common():
        yield f"{number:>6} not shown: {reason}"


def _mark(rows: Sequence[Mapping[str, Any]]) -> str:
    if any(row["failures"] for row in rows):
        return "F"
    return "." if any(row["counts"] for row in rows) else "-"


def _sum(rows: Iterable[Mapping[str, Any]], what: str) -> Counter[str]:
    total: Counter[str] = Counter()
    for row in rows:
        total.update(row[what])
    return total
