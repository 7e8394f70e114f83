"""Writes a ``response_template`` of transformers from a format, and says what it loses.

Strategy: the format writes messages that differ in one thing (`Format.render`), and the template is cut out of the
texts: what stands before and after a thought, between a call's name and its arguments, between two calls. Then the
template is read again (`read_response_template`). Each message that comes back changed is reported, next to what the
language cannot say at all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..core import Format
from ..core.message import Message
from ..errors import ChatParsersError, DefinitionError
from ..templates.probe.differences import shared_end, shared_start
from .read import read_response_template

_NAME, _OTHER, _KEY = "probe_tool", "other_tool", "probe_key"
_VALUE, _CONTENT, _THOUGHT = "A needle.", "The answer.", "The thought."
_TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {
                "type": "object",
                "properties": {_KEY: {"type": "string"}, "count": {"type": "integer"}},
            },
        },
    }
    for name in (_NAME, _OTHER)
]


@dataclass(frozen=True, slots=True)
class WrittenTemplate:
    """A ``response_template``, and what is lost by it, a line each."""

    spec: dict[str, Any]
    lost: tuple[str, ...]


def write_response_template(
    format: Format, start_anchor: str | Sequence[str], *, reasoning: str = "reasoning_content"
) -> WrittenTemplate:
    """The ``response_template`` of a format.

    ``start_anchor``: the text of the prompt, or several texts, after which the assistant's message begins (the
    generation prompt). ``reasoning``: the name of the field of reasoning; some engines want ``thinking``.
    """
    writer = _Writer(format)
    fields = writer.fields(reasoning)
    anchor = start_anchor if isinstance(start_anchor, str) else list(start_anchor)
    spec = {"version": 1, "defaults": {"role": "assistant"}, "start_anchor": anchor, "fields": fields}
    writer.read_back(spec)
    return WrittenTemplate(spec, tuple(dict.fromkeys(writer.lost)))


class _Unsaid(Exception):
    """A part that the language cannot say, and why."""


@dataclass(frozen=True, slots=True)
class _Cut:
    """A call as the format writes it. ``open`` and ``close`` are regular expressions; ``each``: several calls stand in
    one region."""

    open: str
    close: str
    content: str
    args: dict[str, Any]
    transform: dict[str, Any]
    each: bool = False
    literal: bool = False


class _Writer:
    def __init__(self, format: Format) -> None:
        self.format = format
        self.lost: list[str] = []

    def text(self, *calls: tuple[str, dict[str, Any]], content: str = "", thought: str = "") -> str:
        """A message as the format writes it."""
        return self.format.render(_message(calls, content, thought), _TOOLS)

    def fields(self, reasoning: str) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        begun, _, ended = self.text(content=_CONTENT).partition(_CONTENT)
        if self.format.features.reasoning:
            try:
                fields[reasoning] = self.reasoning(begun)
            except (_Unsaid, ChatParsersError, ValueError) as why:
                self.lost.append(f"reasoning: {why}")
        if self.format.features.tools:
            try:
                fields["tool_calls"] = self.calls()
            except (_Unsaid, ChatParsersError, ValueError) as why:
                self.lost.append(f"calls: {why}")
        fields["content"] = self.content(begun, ended)
        return fields

    def reasoning(self, content_open: str) -> dict[str, Any]:
        text = self.text(content=_CONTENT, thought=_THOUGHT)
        open, _, rest = text.partition(_THOUGHT)
        close = rest.partition(_CONTENT)[0].removesuffix(content_open)
        if not open.strip() or not close.strip():
            raise _Unsaid("it has no opener or no closer of its own")
        self.lost.append("white space at the ends of reasoning and content is stripped")
        return {"open": open.strip(), "close": close.strip(), "content": "text"}

    def content(self, begun: str, ended: str) -> dict[str, Any]:
        stops = list(dict.fromkeys(stop.strip() for stop in self.format.stops if stop.strip()))
        if begun.strip():
            closes = [ended.strip()] if ended.strip() else stops
            if ended.strip() and stops:
                self.lost.append(f"the end of the turn: {' or '.join(map(repr, stops))}")
            return {
                "open": begun.strip(),
                "close": closes[0] if len(closes) == 1 else closes,
                "content": "text",
            }
        ends = "|".join(map(re.escape, stops))
        return {**({"close_pattern": rf"\s*(?:{ends})"} if ends else {}), "content": "text"}

    def calls(self) -> dict[str, Any]:
        cut = self.cut()
        self.lost += [
            "text before and after a call: the last part replaces the others",
            "prose that holds the opener of a call, and a call that is broken or cut off, raise an error",
        ]
        if cut.content == "xml-inline":
            self.lost.append("a value that holds its closing tag is cut there")
        if self.format.features.ids and "id" not in cut.transform:
            self.lost.append("the ids that the model writes")
        found: dict[str, Any] = {"open": cut.open} if cut.literal else {"open_pattern": cut.open}
        return {
            **found,
            "close_pattern": cut.close,
            **({} if cut.each else {"repeats": True}),
            "content": cut.content,
            **({"content_args": cut.args} if cut.args else {}),
            "transform": cut.transform,
            **({"transform_each": True} if cut.each else {}),
        }

    def cut(self) -> _Cut:
        """Cuts a call out of the texts. Raises `_Unsaid` for one that the language cannot say."""
        one = self.text((_NAME, {_KEY: _VALUE}))
        several = self.format.features.parallel
        two = self.text((_NAME, {_KEY: _VALUE}), (_OTHER, {_KEY: _VALUE})) if several else ""
        before, _, behind = one.partition(_NAME)
        value = json.dumps(_VALUE)
        found = re.search(rf'\{{\s*"{_KEY}"\s*:\s*{re.escape(value)}\s*\}}', behind)
        if found is not None:
            middle, after = behind[: found.start()], behind[found.end() :]
            listed = _listed(before, middle, after)
            if listed is not None:
                return self.json(*listed, two)
            return self.named(before, middle, after, two, found[0], "json", {})
        found = re.search(rf"\{{{_KEY}:(?P<quote>\S+?){re.escape(_VALUE)}(?P=quote)\}}", behind)
        if found is not None:
            pairs = {"unquoted_keys": True, "string_delims": [[found["quote"], found["quote"]]]}
            middle, after = behind[: found.start()], behind[found.end() :]
            return self.named(before, middle, after, two, found[0], "json", pairs)
        return self.tagged(before, behind, two)

    def json(self, open: str, close: str, each: bool, keys: dict[str, str], two: str) -> _Cut:
        """A call that is a JSON object with ``keys``."""
        if not open.strip():
            raise _Unsaid("no marker stands before the calls")
        if two and not each and two.count(open.strip()) < 2:
            raise _Unsaid("several JSON objects stand between one pair of markers")
        place = "{%s}" if each else "{content.%s}"
        function = {"name": place % keys["name"], "arguments": place % keys["args"]}
        transform: dict[str, Any] = {"type": "function", "function": function}
        if "id" in keys:
            transform["id"] = place % keys["id"]
        end = _pattern(close.strip()) or self.end_of_turn(each or not two)
        return _Cut(r"\s*" + _pattern(open.strip()), end, "json", {}, transform, each)

    def end_of_turn(self, last: bool) -> str:
        """What closes calls that have no closer of their own. ``last``: no further call can follow an open one.
        Raises `_Unsaid` if another one can, or if nothing ends the turn."""
        if not last:
            raise _Unsaid("a call has no closer, and another call may follow it")
        stops = "|".join(_pattern(stop.strip()) for stop in self.format.stops if stop.strip())
        if not stops:
            raise _Unsaid("a call has no closer, and no text ends the turn")
        self.lost.append(
            "calls that are not followed by the end of the turn raise an error: they have no closer"
        )
        return f"(?:{stops})"

    def named(
        self,
        before: str,
        middle: str,
        after: str,
        two: str,
        arguments: str,
        kind: str,
        args: dict[str, Any],
    ) -> _Cut:
        """A call with its name in a header. The markers around all calls may be there or not."""
        between = two.partition(_NAME)[2].partition(arguments)[2].partition(_OTHER)[0]
        header = shared_end(before, between) if two else before
        end = shared_start(after, between) if two else after
        opener, closer = before[: len(before) - len(header)], after[len(end) :]
        if not header.strip():
            raise _Unsaid("no marker stands before each call")
        if end.strip()[:1] in ("}", "]", ","):
            raise _Unsaid("the arguments stand inside other JSON")
        if two and not two.partition(_OTHER)[2].startswith(middle):
            raise _Unsaid("the header differs from call to call: it counts the calls, or has an id")
        closed = _pattern(end) if end.strip() else self.end_of_turn(not two)
        names = r"[^\s{<]+" if not middle.strip() else rf"[^\s{re.escape(middle.strip()[0])}]+"
        open = _maybe(opener) + _pattern(header) + f"(?P<name>{names})" + _pattern(middle)
        function = {"name": "{name}", "arguments": "{content}"}
        transform = {"type": "function", "function": function}
        return _Cut(r"\s*" + open, closed + _maybe(closer), kind, args, transform)

    def tagged(self, before: str, behind: str, two: str) -> _Cut:
        """A call whose arguments stand in tags."""
        none = self.text((_NAME, {})).partition(_NAME)[2]
        header = shared_start(none, behind)
        end = shared_end(none[len(header) :], behind[len(header) :])
        argument = behind[len(header) : len(behind) - len(end)]
        opened, key, rest = argument.partition(_KEY)
        between, value, closed = rest.partition(_VALUE)
        if not (key and value and opened.strip() and between.strip() and closed.strip()):
            raise _Unsaid("arguments are neither JSON nor in tags of their own")
        if between.strip()[-1] in "\"'=" or closed.strip()[0] in "\"',":
            raise _Unsaid("values are literals of a programming language")
        keys = rf"[^\s{re.escape(between.strip()[0])}]+"
        tag = f"{_pattern(opened.strip())}(?P<key>{keys}){_pattern(between)}(?P<value>.*?){_pattern(closed.rstrip())}"
        numbered = self.text((_NAME, {"count": 375}))
        if opened + "count" + between + "375" + closed not in numbered:
            raise _Unsaid("the wire says the type of a value")
        return self.named(before, header, end, two, argument, "xml-inline", {"tag_pattern": tag})

    def read_back(self, spec: dict[str, Any]) -> None:
        """Reads messages by the template, and reports those that come back changed. Calls that do are left out."""
        try:
            read = read_response_template(spec)
        except DefinitionError as error:
            self.lost.append(f"this package cannot read it: {error}")
            return
        for what, message in _messages(self.format, spec["fields"]):
            try:
                text = self.format.render(message, _TOOLS)
            except ChatParsersError:
                continue
            if _said(read.bind(tools=_TOOLS).parse(text)) == _asked(message):
                continue
            if message.get("tool_calls") and spec["fields"].pop("tool_calls", None):
                self.lost.append(f"calls: {what} would not be read back")
                return
            self.lost.append(f"not read back: {what}")


def _message(calls: Sequence[tuple[str, dict[str, Any]]], content: str, thought: str) -> dict[str, Any]:
    return {
        "role": "assistant",
        "content": content,
        **({"reasoning_content": thought} if thought else {}),
        "tool_calls": [
            {
                "id": f"needle{number:03d}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for number, (name, arguments) in enumerate(calls)
        ],
    }


def _messages(format: Format, fields: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    call, other = (_NAME, {_KEY: _VALUE, "count": 375}), (_OTHER, {_KEY: "<b> & 'c'"})
    yield "an answer", _message((), _CONTENT, "")
    if len(fields) > 1 and "tool_calls" in fields:
        yield "a call", _message((call,), "", "")
        yield "a call without arguments", _message(((_NAME, {}),), "", "")
        if format.features.parallel:
            yield "two calls", _message((call, other), "", "")
        yield "a call after text", _message((call,), _CONTENT, "")
    if len(fields) > 1 + ("tool_calls" in fields):
        yield "an answer after reasoning", _message((), _CONTENT, _THOUGHT)
        if "tool_calls" in fields:
            yield "a call after reasoning", _message((call,), "", _THOUGHT)


def _said(message: Message) -> tuple[Any, ...]:
    calls = [(call.name, json.loads(call.arguments)) for call in message.tool_calls if call.complete]
    return message.content.strip(), message.reasoning.strip(), calls


def _asked(message: dict[str, Any]) -> tuple[Any, ...]:
    functions = [call["function"] for call in message["tool_calls"]]
    calls = [(function["name"], json.loads(function["arguments"])) for function in functions]
    return message["content"], message.get("reasoning_content", ""), calls


_BEFORE_NAME = re.compile(
    r'(?P<open>.*?)(?P<list>\[\s*)?\{\s*(?:"(?P<id>[^"]+)"\s*:\s*"[^"]*"\s*,\s*)?"(?P<name>[^"]+)"\s*:\s*"',
    re.DOTALL,
)
_TO_ARGUMENTS = re.compile(r'"\s*,\s*"(?P<args>[^"]+)"\s*:\s*')
_AFTER_ARGUMENTS = re.compile(
    r'(?:\s*,\s*"(?P<id>[^"]+)"\s*:\s*"[^"]*")?\s*\}(?P<list>\s*\])?(?P<close>.*)', re.DOTALL
)


def _listed(before: str, middle: str, after: str) -> tuple[str, str, bool, dict[str, str]] | None:
    """The markers, whether the calls stand in a list, and the keys of a call that is a JSON object; else None."""
    begin, to = _BEFORE_NAME.fullmatch(before), _TO_ARGUMENTS.fullmatch(middle)
    end = _AFTER_ARGUMENTS.fullmatch(after)
    if begin is None or to is None or end is None or bool(begin["list"]) != bool(end["list"]):
        return None
    id = begin["id"] or end["id"]
    keys = {"name": begin["name"], "args": to["args"], **({"id": id} if id else {})}
    return begin["open"], end["close"], bool(begin["list"]), keys


def _pattern(text: str) -> str:
    """A regular expression for markup, with any white space where some is written."""
    return r"\s*".join(map(re.escape, re.split(r"\s+", text)))


def _maybe(text: str) -> str:
    """The same for markup that only the first or the last call has."""
    return rf"(?:{_pattern(text.strip())}\s*)?" if text.strip() else ""
