"""What a conversation's ids show beside the messages that they were made from, and beside the template's rendering."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..chat.places import words_of
from ..templates.messages import reasoning_of
from ..templates.probe.turns import MARKER
from .alone import once
from .charges import Charge
from .row import Placed, Row

_DATES = re.compile(r"\d{4}-\d\d-\d\d|\d\d? [A-Z][a-z]+ \d{4}|[A-Z][a-z]+ \d\d?, \d{4}|\d\d?:\d\d(?::\d\d)?")
_WORD = re.compile(rf"{MARKER.pattern}|\w+")
Messages = Sequence[Mapping[str, Any]]


def beside(
    row: Row, own: Row | None, messages: Messages, names: Sequence[str], hide: Callable[[str], str]
) -> Iterator[Charge]:
    """The charges. ``own``: the same messages as `Chat.encode` has them; None if it refuses them. ``names``: of the
    tools. ``hide``: makes words that spell a marker comparable."""
    given = [message for message in messages if message.get("role") == "assistant"]
    theirs = [] if own is None else own.answers
    groups = _groups(given, row.answers)
    for number, message in enumerate(given):
        shown = theirs[number] if len(theirs) == len(given) == len(row.answers) else None
        kept = shown is not None and own is not None and own.counted(shown)
        yield from _answer(row, groups[number], message, shown, kept, hide)
    if own is not None:
        yield from _head(row, own, names)
        yield from _later(row, own)
        yield from _results(row, own)


def _answer(
    row: Row,
    mine: Sequence[Placed],
    message: Mapping[str, Any],
    shown: Placed | None,
    kept: bool,
    hide: Callable[[str], str],
) -> Iterator[Charge]:
    """``shown``: the answer as the template shows it; ``kept``: whether `Chat.encode` counts it, so that what it lacks
    there is lost by the template itself."""
    place = mine[0].first if mine else 0
    on = any(row.counted(one) for one in mine)
    if message.get("weight") == 0 and on:
        yield Charge("weight-ignored", place, "the message has the weight 0")

    def lost(words: str, key: str, texts: str) -> bool:
        """Whether words are missing that the template would show."""
        by_template = shown is not None and kept and words not in shown.text(key)
        return bool(words) and words not in texts and not by_template

    thought, content = reasoning_of(message).strip(), "\n".join(words_of(message)).strip()
    thoughts = "\n".join(one.text("reasoning_content") for one in mine)
    texts = "\n".join(one.text("content") for one in mine)
    if on and lost(hide(thought), "reasoning_content", thoughts):
        yield Charge("thought-lost", place, f"{thought[:60]!r}")
    safe = hide(content)
    quoted = safe != content
    own_text = shown.text("content") if shown is not None else ""
    if lost(safe, "content", texts) and not (quoted and safe not in own_text and shown is not None):
        yield Charge("words-are-markers" if quoted else "text-lost", place, f"{content[:60]!r}")
    elif texts.strip() not in ("", safe) and on and safe in texts and texts.strip() != own_text.strip():
        yield Charge("text-added", place, f"{texts.strip()[:60]!r} in the place of {content[:40]!r}")
    calls = [call["function"] for one in mine for call in one.part.message.get("tool_calls") or ()]
    others = [call["function"] for call in (shown.part.message.get("tool_calls") if shown else None) or ()]
    for call in message.get("tool_calls") or ():
        wanted = call.get("function", call)
        same = next((one for one in calls if _same(one, wanted)), None)
        if same is not None:
            calls.remove(same)
            continue
        near = next((one for one in calls if one["name"] == wanted["name"]), None)
        if near is not None and any(_same(one, near) for one in others):
            calls.remove(near)  # the template itself spells it so
        elif not (kept and shown is not None and all(one["name"] != wanted["name"] for one in others)):
            found = "" if near is None else f", found {str(near['arguments'])[:60]}"
            yield Charge("call-lost", place, f"{wanted['name']} {str(wanted.get('arguments'))[:60]}{found}")


def _groups(given: Messages, answers: Sequence[Placed]) -> list[Sequence[Placed]]:
    """The answers that are there for each of the row, in order: a polyfill may write one as several turns, and one may
    be gone."""
    if len(answers) < len(given):
        return _pairs(given, answers)
    found: list[Sequence[Placed]] = []
    at, more = 0, len(answers) - len(given)
    for message in given:
        take, most = 1, bool(message.get("content")) + len(message.get("tool_calls") or ())
        while more > 0 and take < most and at + take < len(answers):
            take, more = take + 1, more - 1
        found.append(answers[at : at + take])
        at += take
    return found


def _pairs(given: Messages, answers: Sequence[Placed]) -> list[Sequence[Placed]]:
    """The answer of each message, in order, of which some have none: those whose place an answer to a later one has."""
    found: list[Sequence[Placed]] = []
    at, gone = 0, len(given) - len(answers)
    for index, message in enumerate(given):
        here = answers[at : at + 1]
        later = given[index + 1 : index + 1 + gone]
        if here and (_alike(message, here[0]) or not any(_alike(one, here[0]) for one in later)):
            at += 1
        else:
            here, gone = (), gone - 1
        found.append(here)
    return found


def _alike(message: Mapping[str, Any], one: Placed) -> bool:
    words = "\n".join(words_of(message)).strip()
    wanted = [call.get("function", call)["name"] for call in message.get("tool_calls") or ()]
    called = [call["function"]["name"] for call in one.part.message.get("tool_calls") or ()]
    return (bool(words) and words in one.text("content")) or bool({*wanted} & {*called})


def _head(row: Row, own: Row, names: Sequence[str]) -> Iterator[Charge]:
    """The words before the first answer: tools, system text, the first question."""
    mine, theirs = (_words_before(one) for one in (row, own))
    lost, added = theirs - mine, mine - theirs
    all_lost = _words_beside(own) - _words_beside(row)
    gone = [name for name in names if any(word in all_lost for word in _WORD.findall(name))]
    if gone:
        yield Charge("tools-lost", 0, ", ".join(gone))
    elif lost:
        yield Charge("text-lost", 0, f"before the first answer: {' '.join(lost)[:80]!r}")
    if added:
        yield Charge("text-added", 0, f"before the first answer: {' '.join(added)[:80]!r}")


def _words_before(row: Row) -> Counter[str]:
    first = _first_answer(row)
    end = row.parts[first].part.begin if first < len(row.parts) else len(row.text)
    words = Counter(_WORD.findall(_DATES.sub(" ", row.text[:end])))
    return Counter({word: number for word, number in words.items() if not word.isdigit()})


def _words_beside(row: Row) -> Counter[str]:
    """The words of users' and system messages, with what is before them: some templates show tools before the last
    question, some under the header of results."""
    found: Counter[str] = Counter()
    first = _first_answer(row)
    for at, one in enumerate(row.parts):
        if at < first or one.role in ("user", "system"):
            found.update(_WORD.findall(row.text[one.part.begin : one.part.end]))
    return found


def _first_answer(row: Row) -> int:
    """The first part that answers a question, or the result of an answer that is gone."""
    asked = next((at for at, one in enumerate(row.parts) if one.role == "user"), 0)
    later = range(asked, len(row.parts))
    return next((at for at in later if row.parts[at].role not in ("user", "system")), len(row.parts))


def _later(row: Row, own: Row) -> Iterator[Charge]:
    """The users' and system texts after the first answer."""
    mine, theirs = (_texts_after(one) for one in (row, own))
    for words in theirs:
        if words not in mine:
            longer = next((text for text in mine if words and words in text), None)
            if longer is None:
                yield Charge("text-lost", 0, f"{words[:60]!r} of a user or a system message")
            else:
                yield Charge("text-added", 0, f"{longer[:80]!r} in the place of {words[:40]!r}")
            return


def _texts_after(row: Row) -> list[str]:
    return [
        one.text("content").strip()
        for one in row.parts[_first_answer(row) :]
        if one.role in ("user", "system")
    ]


def _results(row: Row, own: Row) -> Iterator[Charge]:
    mine, theirs = (_shown_results(one) for one in (row, own))
    if [words for words, _ in mine] != [words for words, _ in theirs]:
        texts = [[words[:30] for words, _ in each] for each in (mine, theirs)]
        yield Charge("result-elsewhere", 0, f"{texts[0]}, the template shows {texts[1]}")
        return
    for (words, line), (_, wanted) in zip(mine, theirs, strict=True):
        if line != wanted:
            yield Charge(
                "result-elsewhere", 0, f"{words[:30]!r} after {line!r}, the template writes {wanted!r}"
            )
            return


def _shown_results(row: Row) -> list[tuple[str, str]]:
    """The results, each with the last line of the text before it. Nothing is one before the first answer."""
    places = [at for at in range(_first_answer(row), len(row.parts)) if row.parts[at].role == "tool"]
    lines = (row.gap(at).strip().rpartition("\n")[2].strip() for at in places)
    return [(row.parts[at].text("content").strip(), line) for at, line in zip(places, lines, strict=True)]


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two calls are one; a format may spell a value of another type than the schema's as JSON."""
    if one["name"] != other.get("name"):
        return False
    mine, theirs = once(one.get("arguments")), once(other.get("arguments"))
    if isinstance(mine, dict) and isinstance(theirs, dict):
        return mine.keys() == theirs.keys() and all(
            mine[key] == theirs[key] or once(mine[key]) == once(theirs[key]) for key in mine
        )
    return bool(mine == theirs)
