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
from typing import Any, NamedTuple

from ..core.definition.format import Format
from ..core.errors import ChatParsersError
from ..core.parser.turn import Turn
from ..templates.messages import reasoning_of
from ..templates.probe.turns import MARKER, common, outside_marker

__all__ = ["Before", "Behind", "Frames", "Shape", "needle_answer", "needle_next", "shape_of"]

_USER, _SYSTEM, _RESULT = "永N33DLEuser", "永N33DLEsystem", "永N33DLEresult"
_WORDS = ("永N33DLEfirst", "永Other answer")
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
    """What stands between the text before an answer and the answer. ``header``: its least part, without what of the
    answer the prompt writes. ``asked``: all of it, as the prompt writes it."""

    header: str
    asked: str


@dataclass(frozen=True, slots=True)
class Behind:
    """What stands between an answer and the text of the next message. ``stop``: how many of its first characters the
    model writes; 0 if the template writes no stop there."""

    text: str
    stop: int


class Frames:
    """The frames of one request. ``prepare(messages, **options)`` renders messages for it; ``name``: of a tool."""

    def __init__(self, prepare: Callable[..., Turn], fmt: Format, name: str) -> None:
        self._prepare = prepare
        self._format = fmt
        self._name = name
        self._before: dict[str, Before | None] = {}
        self._behind: dict[tuple[Shape, str], Behind | None] = {}
        self.proved: dict[Any, str] = {}
        """What rollouts found of steps of a kind: see `bridge`."""
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
            self._behind[key] = self._find_behind(*key)
        return self._behind[key]

    def _find_before(self, role: str) -> Before | None:
        answer = needle_answer(Shape(False, role != "tool", int(role == "tool")), _WORDS[0], self._name)
        last = needle_next(role)
        turn = self._rendered([{"role": "user", "content": _USER}, answer, last], generate=True)
        needle = last["content"]
        if turn is None or needle not in turn.prompt:
            return None
        asked = turn.prompt[turn.prompt.rindex(needle) + len(needle) :]
        return Before(asked.removesuffix(turn.prefix), asked)

    def _find_behind(self, shape: Shape, role: str) -> Behind | None:
        text = self._after(shape, role)
        if text is None:
            return None
        stop = _stop(self._format, text, bool(shape.calls))
        if stop is not None:
            return Behind(text[stop[0] :], stop[1] - stop[0])
        alone = self._after(shape, "") if role else None
        if alone is None:
            return Behind(text, 0) if not shape.calls else None
        ended = _stop(self._format, alone, bool(shape.calls))
        if ended is not None and text.startswith(alone[: ended[0]]):
            # The template writes another marker in the place of the stop.
            text = text[ended[0] :]
            marker = MARKER.match(text)
            return Behind(text, marker.end() if marker else 0)
        return (
            Behind(text[outside_marker(text, common(text, alone.rstrip())) :], 0)
            if shape.calls
            else Behind(text, 0)
        )

    def _after(self, shape: Shape, role: str) -> str | None:
        """What two renderings write alike between the last words of an answer and the next message's."""
        found = set()
        for words in _WORDS:
            messages = [{"role": "user", "content": _USER}, needle_answer(shape, words, self._name)]
            after = [needle_next(role)] if role else []
            turn = self._rendered([*messages, *after], generate=False)
            if turn is None or words not in turn.prompt:
                return None
            rest = turn.prompt[turn.prompt.rindex(words) + len(words) :]
            if after and after[0]["content"] not in rest:
                return None
            found.add(rest.partition(after[0]["content"])[0] if after else rest)
        return found.pop() if len(found) == 1 else None

    def _rendered(self, messages: Sequence[Mapping[str, Any]], *, generate: bool) -> Turn | None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return self._prepare(messages, add_generation_prompt=generate)
            except ChatParsersError:
                return None


def needle_answer(shape: Shape, words: str, name: str) -> dict[str, Any]:
    """An answer of this shape that ends in ``words``."""
    message: dict[str, Any] = {"role": "assistant", "content": words if shape.content else ""}
    if shape.thought:
        message["reasoning_content"] = _THOUGHT
    if shape.calls:
        message["tool_calls"] = [
            {
                "id": f"call0000{n}",
                "type": "function",
                "function": {"name": name, "arguments": {"needle": words}},
            }
            for n in range(shape.calls)
        ]
    return message


def needle_next(role: str) -> dict[str, Any]:
    """A message of this role."""
    if role == "tool":
        return {"role": role, "name": "needle", "tool_call_id": "call00000", "content": _RESULT}
    return {"role": role, "content": _USER + "next" if role == "user" else _SYSTEM}


def _stop(fmt: Format, text: str, anywhere: bool) -> tuple[int, int] | None:
    """The span of the first stop in ``text``, with which it must begin unless ``anywhere``."""
    found = [(at, -len(stop)) for stop in fmt.stops if (at := text.find(stop)) >= 0]
    if not found:
        return None
    start, length = min(found)
    if not anywhere and text[:start].strip():
        return None
    return start if anywhere else 0, start - length
