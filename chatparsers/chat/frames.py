"""The texts that a template writes around an answer, found by rendering needles, and kept.

Strategy. What stands behind an answer does not depend on the answer's words, only on its shape and on the role of what
follows: two renderings with different needles say what it is (`Frames.behind`). What stands before it is the end of the
prompt that asks for it (`Frames.before`). Both go through `Chat.prepare`, so that polyfills, tools and variables are
those of the request. A text that cannot be found so is None, and the caller renders more.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from ..core.errors import ChatParsersError
from ..core.format import Format, Turn
from ..core.message import Message
from ..templates.messages import reasoning_of
from ..templates.probe.edges import opening
from ..templates.probe.turns import MARKER, common, outside_marker
from .around import Around

__all__ = [
    "NEEDLE_ID",
    "Before",
    "Behind",
    "Frames",
    "Shape",
    "needle_answer",
    "needle_next",
    "read_answer",
    "shape_of",
    "written_behind",
]

_USER, _SYSTEM, _RESULT = "永N33DLEuser", "永N33DLEsystem", "永N33DLEresult"
_WORDS = ("永N33DLEfirst", "永Other answer")
_IDS = (("call00000", "call00001"), ("qz7QZ7qz7", "xk3XK3xk3"))
NEEDLE_ID = _IDS[0][0]
"""The id of the call whose result stands before an answer."""
_THOUGHT = "永N33DLEthought"


class Shape(NamedTuple):
    """What an answer has: a thought, content, and how many calls (2 stands for several)."""

    thought: bool
    content: bool
    calls: int

    def __str__(self) -> str:
        calls = ("", "call", "parallel calls")[self.calls]
        parts = ("thought" if self.thought else "", "text" if self.content else "", calls)
        named = [part for part in parts if part]
        return "answer" if named == ["text"] else " and ".join(named) or "nothing"


def shape_of(message: Mapping[str, Any]) -> Shape:
    """The shape of an assistant's message."""
    calls = message.get("tool_calls") or ()
    return Shape(bool(reasoning_of(message)), bool(message.get("content")), min(len(calls), 2))


@dataclass(frozen=True, slots=True)
class Before:
    """What stands between the text before an answer and the answer.

    ``header``: its least part in a prompt, without what of the answer the prompt writes; ``past``: the same in a
    history. ``asked``: all of it, as the prompt writes it. ``generated``: its last part, which only the generation
    prompt has.
    """

    header: str
    past: str
    asked: str
    generated: str

    def with_id(self, id: str) -> Before:
        """The same behind a result of the call ``id``: some templates write it behind the result's words."""
        return Before(
            *(text.replace(NEEDLE_ID, id) for text in (self.header, self.past, self.asked, self.generated))
        )


@dataclass(frozen=True, slots=True)
class Behind:
    """What stands between an answer and the text of the next message. ``stop``: how many of its first characters the
    model writes; 0 if the template writes no stop there. ``whole``: whether that is all; else a name or an id follows.
    """

    text: str
    stop: int
    whole: bool = True


class Frames:
    """The frames of one request. ``prepare(messages, **options)`` renders messages for it; ``names``: of tools."""

    def __init__(self, prepare: Callable[..., Turn], fmt: Format, names: Sequence[str]) -> None:
        self._prepare = prepare
        self._format = fmt
        self._names = names[0], names[-1]
        self._before: dict[str, Before | None] = {}
        self._behind: dict[tuple[Shape, str], Behind | None] = {}
        self.proved: dict[Any, str] = {}
        """What rollouts found of steps of a kind: see `bridge`."""
        self.around: Around | None = None
        """What stands around answers, read off traces."""
        self.facts: dict[str, bool] = {}
        """What else was found by rendering."""

    def before(self, role: str) -> Before | None:
        """What stands between a message of ``role`` and the answer to it."""
        if role not in self._before:
            self._before[role] = self._find_before(role)
        return self._before[role]

    def behind(self, shape: Shape, role: str) -> Behind | None:
        """What stands between an answer and a message of ``role``; an empty role is the conversation's end."""
        key = Shape(False, shape.content or not shape.calls, shape.calls), role
        if key not in self._behind:
            found = self._find_behind(*key)
            if found is None and key[0].content and shape.calls:
                # The text stands elsewhere, such as behind the results.
                found = self.behind(Shape(False, False, shape.calls), role)
            self._behind[key] = found
        return self._behind[key]

    def opens_results(self, stop: str) -> bool:
        """Whether this text stands before each of several results, and not behind the last."""
        key = f"opens results: {stop}"
        if key not in self.facts:
            answer = needle_answer(Shape(False, False, 2), _WORDS[0], self._names[0])
            results = [
                {**needle_next("tool", self._names[0], id), "content": words}
                for id, words in zip(_IDS[0], (_RESULT, _WORDS[1]), strict=True)
            ]
            messages = [{"role": "user", "content": _USER}, answer, *results]
            turn = self._rendered(messages, generate=False)
            text = "" if turn is None else turn.prompt.partition(_RESULT)[2]
            between, last, behind = text.partition(_WORDS[1])
            calls = _WORDS[0] in between  # the template writes one call at a time
            self.facts[key] = bool(last) and stop in between and stop not in behind and not calls
        return self.facts[key]

    def _find_before(self, role: str) -> Before | None:
        answer = needle_answer(
            Shape(False, role != "tool", int(role == "tool")), _WORDS[0], self._names[0], _IDS[0]
        )
        last = needle_next(role, self._names[0], _IDS[0][0])
        messages = [{"role": "user", "content": _USER}, answer, last]
        needle = last["content"]
        asked = _behind_last(self._rendered(messages, generate=True), needle)
        if asked is None:
            return None
        prompt, prefix = asked
        plain = _behind_last(self._rendered(messages, generate=False), needle)
        shared = outside_marker(prompt, common(prompt, plain[0])) if plain is not None else 0
        header = prompt.removesuffix(prefix)
        return Before(header, self._history_header(messages, needle) or header, prompt, prompt[shared:])

    def _history_header(self, messages: Sequence[Mapping[str, Any]], needle: str) -> str:
        """What all shapes of answers have before them in a history."""
        found: str | None = None
        for shape in (Shape(False, True, 0), Shape(True, True, 0), Shape(False, False, 1)):
            answer = needle_answer(shape, _WORDS[1], self._names[0], _IDS[1])
            turn = self._rendered([*messages, answer, {"role": "user", "content": _THOUGHT}], generate=False)
            text = _behind_last(turn, needle)
            if text is None:
                continue
            found = text[0] if found is None else found[: outside_marker(found, common(found, text[0]))]
        header = (found or "").partition(_WORDS[1])[0]
        return header[: len(header) - len(opening(self._format, header))]

    def _find_behind(self, shape: Shape, role: str) -> Behind | None:
        first, other = (self._after(shape, role, which) for which in (0, 1))
        if first is None or other is None:
            return None
        if role == "user":  # some templates write more before the last one
            other = self._after(shape, role, 0, more=True) or other
        stops = [_stop(self._format, text, bool(shape.calls)) for text in (first, other)]
        if stops[0] is not None and stops[1] is not None:
            first, other = first[stops[0][0] :], other[stops[1][0] :]
            return self._cut(first, other, stops[0][1] - stops[0][0])
        if not role and shape.calls:
            return Behind("", 0)  # the calls themselves end the text
        alone = self._after(shape, "", 0) if role else None
        if alone is None:
            return None if shape.calls else self._cut(first, other, 0)
        ended = _stop(self._format, alone, bool(shape.calls))
        at = common(first, alone)
        if ended is not None and at >= ended[0]:
            # The template writes another marker in the place of the stop.
            first, other = first[ended[0] :], other[common(other, first[: ended[0]]) :]
            marker = MARKER.match(first)
            return self._cut(first, other, marker.end() if marker else 0)
        if shape.calls:
            at = outside_marker(first, common(first, alone.rstrip()))
            first, other = first[at:], other[at:]
        return self._cut(first, other, 0)

    @staticmethod
    def _cut(first: str, other: str, stop: int) -> Behind | None:
        """What two texts begin with; None if that is nothing."""
        if first == other:
            return Behind(first, stop)
        text = first[: outside_marker(first, common(first, other))]
        return Behind(text, stop, False) if text.strip() and len(text) >= stop else None

    def _after(self, shape: Shape, role: str, which: int, *, more: bool = False) -> str | None:
        """What a rendering writes between the last words of an answer and the next message's."""
        words, name, ids = _WORDS[which], self._names[which], _IDS[which]
        messages = [{"role": "user", "content": _USER}, needle_answer(shape, words, name, ids)]
        after = [needle_next(role, name, ids[0])] if role else []
        last = [needle_answer(Shape(False, True, 0), _THOUGHT, name), {"role": "user", "content": _THOUGHT}]
        turn = self._rendered([*messages, *after, *(last if more else ())], generate=False)
        if turn is None or words not in turn.prompt:
            return None
        rest = turn.prompt[turn.prompt.rindex(words) + len(words) :]
        if not after:
            return rest
        before, needle, _ = rest.partition(after[0]["content"])
        return before if needle else None

    def _rendered(self, messages: Sequence[Mapping[str, Any]], *, generate: bool) -> Turn | None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return self._prepare(messages, add_generation_prompt=generate)
            except ChatParsersError:
                return None


def _behind_last(turn: Turn | None, needle: str) -> tuple[str, str] | None:
    """The prompt behind the last needle, and the turn's prefix."""
    if turn is None or needle not in turn.prompt:
        return None
    return turn.prompt[turn.prompt.rindex(needle) + len(needle) :], turn.prefix


def needle_answer(shape: Shape, words: str, name: str, ids: Sequence[str] = _IDS[0]) -> dict[str, Any]:
    """An answer of this shape that ends in ``words``."""
    message: dict[str, Any] = {"role": "assistant", "content": words if shape.content else ""}
    if shape.thought:
        message["reasoning_content"] = _THOUGHT
    if shape.calls:
        message["tool_calls"] = [
            {"id": id, "type": "function", "function": {"name": name, "arguments": {"needle": words}}}
            for id in ids[: shape.calls]
        ]
    return message


def needle_next(role: str, name: str, id: str) -> dict[str, Any]:
    """A message of this role."""
    if role == "tool":
        return {"role": role, "name": name, "tool_call_id": id, "content": _RESULT}
    return {"role": role, "content": _USER + "next" if role == "user" else _SYSTEM}


def _stop(fmt: Format, text: str, anywhere: bool) -> tuple[int, int] | None:
    """The span of the first stop in ``text``. Unless ``anywhere``, the text must begin with it, or with what the format
    writes between content and stop."""
    found = [(at, -len(stop)) for stop in fmt.stops if (at := text.find(stop)) >= 0]
    if not found:
        return None
    start, length = min(found)
    before = text[:start].strip()
    if anywhere or (before and before == written_behind(fmt)[1].strip()):
        return start, start - length
    return None if before else (0, start - length)


def read_answer(turn: Turn, text: str, given: Mapping[str, Any]) -> Message:
    """Reads the text of the answer ``given`` in a history. It may go on in a thought that an earlier answer left open:
    Apertus' template closes a thought only before content. Then it is read as a thought from its beginning."""
    read = turn.parse(text)
    thought = reasoning_of(given).strip()
    if not thought or read.reasoning.strip() == thought:
        return read
    inside = turn._replace(prefix=_opened_thought(turn.format)).parse(text)
    return inside if inside.reasoning.strip() == thought else read


@lru_cache(maxsize=256)
def _opened_thought(fmt: Format) -> str:
    """What the format itself writes before a thought."""
    try:
        return fmt.render({"role": "assistant", "content": "", "reasoning_content": _THOUGHT}).partition(
            _THOUGHT
        )[0]
    except ChatParsersError:
        return ""


@lru_cache(maxsize=256)
def written_behind(fmt: Format) -> tuple[str, str]:
    """What the format itself writes behind a thought and behind content, such as the end of a channel."""
    message = {"role": "assistant", "content": _WORDS[0], "reasoning_content": _THOUGHT}
    try:
        thought, words, content = fmt.render(message).partition(_THOUGHT)[2].partition(_WORDS[0])
    except ChatParsersError:
        return "", ""
    return thought if words else "", content
