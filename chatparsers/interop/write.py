"""Writes a ``response_template`` of transformers from a format, and says what it loses.

Strategy: the format writes messages that differ in one thing (`Format.render`), and the template is cut out of the
texts: what comes before and after a thought, between a call's name and its arguments, between two calls. What differs
between calls is a count or an id, and becomes a group; what differs between values of two types is written as
alternatives. Then the template is read again (`read_response_template`). Each message that comes back changed is
reported, next to what the language cannot say at all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ..answers import Format
from ..errors import ChatParsersError, DefinitionError, RequestError
from ..streams.message import Message
from ..templates.probe.differences import shared_end, shared_start
from .read import read_response_template

Readers: TypeAlias = Literal["transformers", "servers"]
"""Who reads a template: transformers and what trains with it, or vLLM and SGLang."""
_THOUGHTS: dict[Readers, str] = {"transformers": "reasoning_content", "servers": "thinking"}
_NAME, _OTHER, _KEY = "probe_tool", "other_tool", "probe_key"
_VALUE, _CONTENT, _THOUGHT = "A needle.", "The answer.", "The thought."
_ID = "needle000"
_TYPED: dict[str, tuple[str, Any]] = {
    "count": ("integer", 375),
    "ratio": ("number", 0.25),
    "flag": ("boolean", True),
    "places": ("array", ["Oslo"]),
    "place": ("object", {"city": "Oslo"}),
}
"""Arguments besides `_KEY`: the type and a value of each."""
_TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {
                "type": "object",
                "properties": {
                    _KEY: {"type": "string"},
                    **{key: {"type": kind} for key, (kind, _) in _TYPED.items()},
                },
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
    format: Format, start_anchor: str | Sequence[str], *, for_: Readers = "transformers"
) -> WrittenTemplate:
    """The ``response_template`` of a format.

    ``start_anchor``: the text of the prompt, or several texts, after which the assistant's message begins (the
    generation prompt). ``for_``: who reads it. For ``"servers"`` (vLLM, SGLang) the field of thoughts is ``thinking``,
    as they refuse any other name; for ``"transformers"`` it is ``reasoning_content``, and calls may be a list as in
    Python, which these servers do not know (vLLM 0.33, SGLang 0.5.23).

    >>> from chatparsers import get_format
    >>> from chatparsers.interop import write_response_template
    >>> list(write_response_template(get_format("qwen3"), "<|im_start|>assistant\\n", for_="servers").spec["fields"])
    ['thinking', 'tool_calls', 'content']
    """
    if for_ not in _THOUGHTS:
        raise RequestError(f"for_: expected 'transformers' or 'servers', found {for_!r}")
    writer = _TemplateWriter(format, for_)
    fields = writer.fields()
    anchor = start_anchor if isinstance(start_anchor, str) else list(start_anchor)
    spec = {"version": 1, "defaults": {"role": "assistant"}, "start_anchor": anchor, "fields": fields}
    writer.read_back(spec)
    return WrittenTemplate(spec, tuple(dict.fromkeys(writer.lost)))


class _Inexpressible(Exception):
    """A part that the language cannot say, and why."""


@dataclass(frozen=True, slots=True)
class _CallPattern:
    """A call as the format writes it. ``open`` and ``close`` are regular expressions; ``each``: one region has
    several calls."""

    open: str
    close: str
    content: str
    transform: dict[str, Any]
    args: dict[str, Any]
    each: bool = False


class _TemplateWriter:
    def __init__(self, format: Format, for_: Readers) -> None:
        self.format = format
        self.for_ = for_
        self.lost: list[str] = []
        self.stops = [*dict.fromkeys(stop.strip() for stop in format.stops if stop.strip())]
        self.begun, _, self.ended = self.text(content=_CONTENT).partition(_CONTENT)
        """What is around an answer."""

    def text(self, *calls: tuple[str, dict[str, Any]], content: str = "", thought: str = "") -> str:
        """A message as the format writes it."""
        return self.format.render(_message(calls, content, thought), _TOOLS)

    def fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        if self.format.features.reasoning:
            try:
                fields[_THOUGHTS[self.for_]] = self.reasoning()
            except (_Inexpressible, ChatParsersError, ValueError) as why:
                self.lost.append(f"reasoning: {why}")
        if self.format.features.tools:
            try:
                fields["tool_calls"] = self.calls()
            except (_Inexpressible, ChatParsersError, ValueError) as why:
                self.lost.append(f"calls: {why}")
        fields["content"] = self.content(fields.get("tool_calls"))
        return fields

    def reasoning(self) -> dict[str, Any]:
        text = self.text(content=_CONTENT, thought=_THOUGHT)
        open, _, rest = text.partition(_THOUGHT)
        close = rest.partition(_CONTENT)[0].removesuffix(self.begun)
        if not open.strip() or not close.strip():
            raise _Inexpressible("it has no opener or no closer of its own")
        self.lost.append("white space at the ends of reasoning and content is stripped")
        if self.for_ == "servers":
            self.lost.append(
                "a thought is in the field thinking: what asks for reasoning_content does not find it"
            )
        else:
            self.lost.append(
                "vLLM and SGLang refuse the field reasoning_content: for_='servers' writes theirs"
            )
        return {"open": open.strip(), "close": close.strip(), "content": "text"}

    def content(self, calls: dict[str, Any] | None) -> dict[str, Any]:
        """The field of the answer. ``calls``: that of calls, which end an answer that has an opener and no closer."""
        begun, ended, ends = self.begun.strip(), self.ended.strip(), "|".join(map(re.escape, self.stops))
        if not begun:
            return {**({"close_pattern": rf"\s*(?:{ends})"} if ends else {}), "content": "text"}
        if not ended and calls:
            opener = re.sub(r"\?P<(name|id)>", "", calls["open_pattern"])
            return {"open": begun, "close_pattern": rf"(?={opener})|\s*(?:{ends})", "content": "text"}
        if ended and self.stops:
            self.lost.append(f"the end of the turn: {' or '.join(map(repr, self.stops))}")
        closes = [ended] if ended else self.stops
        return {"open": begun, "close": closes[0] if len(closes) == 1 else closes, "content": "text"}

    def calls(self) -> dict[str, Any]:
        cut = self.cut()
        opener, begun = r"\s*" + cut.open, self.begun.strip()
        if begun and re.match(opener, begun):  # the answer's marker looks like a tool's
            opener = f"(?!{_pattern(begun)}){opener}"
        self.lost += [
            "text before and after a call: the last part replaces the others",
            "prose that holds the opener of a call, and a call that is broken or cut off, raise an error",
        ]
        if cut.content == "xml-inline":
            self.lost.append("a value that holds its closing tag is cut there")
        if self.format.features.ids and "id" not in cut.transform:
            self.lost.append("the ids that the model writes")
        return {
            "open_pattern": opener,
            "close_pattern": cut.close,
            **({} if cut.each else {"repeats": True}),
            "content": cut.content,
            **({"content_args": cut.args} if cut.args else {}),
            "transform": cut.transform,
            **({"transform_each": True} if cut.each else {}),
        }

    # The texts of one call and of two are cut at the name, at the arguments and between the calls.

    def cut(self) -> _CallPattern:
        """Cuts a call out of the texts. Raises `_Inexpressible` for one that the language cannot say."""
        one = self.text((_NAME, {_KEY: _VALUE}))
        several = self.format.features.parallel
        two = self.text((_NAME, {_KEY: _VALUE}), (_OTHER, {_KEY: _VALUE})) if several else ""
        value = json.dumps(_VALUE)
        found = re.search(rf'\{{\s*"{_KEY}"\s*:\s*{re.escape(value)}\s*\}}', one)
        if found is not None:
            return self.objects(_cut_at(one, two, found[0]))
        found = re.search(rf"\{{{_KEY}:(?P<quote>\S+?){re.escape(_VALUE)}(?P=quote)\}}", one)
        if found is not None:
            pairs = {"unquoted_keys": True, "string_delims": [[found["quote"], found["quote"]]]}
            return self.named(_cut_at(one, two, found[0]), "json", pairs)
        found = re.search(rf"(?P<list>\[)?{_NAME}\({_KEY}=(['\"]){re.escape(_VALUE)}\2\)(?(list)\])", one)
        if found is not None:
            return self.python(found)
        return self.tagged(one, two)

    def objects(self, texts: _CallTexts) -> _CallPattern:
        """Calls whose arguments are a JSON object, after the name or in an object beside it."""
        listed = _listed(texts)
        if listed is None:
            return self.named(texts, "json", {})
        open, close, each, keys = listed
        two = texts.two
        if not open.strip():
            return self.bare(texts, each, keys)
        if two and not each and _counted(two, open.strip()) < 2:
            raise _Inexpressible("several JSON objects stand between one pair of markers")
        end = _pattern(close.strip()) or self.end_of_call("" if each or not two else _pattern(open.strip()))
        return _CallPattern(_pattern(open.strip()), end, "json", _object_of(keys, each), {}, each)

    def bare(self, texts: _CallTexts, each: bool, keys: dict[str, str]) -> _CallPattern:
        """Calls in JSON that no marker begins: a list, or objects with the name first."""
        if each:
            ahead = rf'(?=\[\s*\{{\s*"{re.escape(keys["name"])}"\s*:)'
            return _CallPattern(ahead, self.end_of_call(""), "json", _object_of(keys, True), {}, True)
        if texts.after.strip() != "}" or texts.before != f'{{"{keys["name"]}": "':
            raise _Inexpressible("no marker stands before the calls")
        begun = rf'\{{\s*"{re.escape(keys["name"])}"\s*:\s*"'
        to = rf'"\s*,\s*"{re.escape(keys["args"])}"\s*:\s*'
        between = texts.between.removeprefix(texts.after).removesuffix(texts.before)
        following = f"{_pattern(between)}(?={begun})|" if texts.two else ""
        return _CallPattern(
            f'{begun}(?P<name>[^"]+){to}',
            rf"\}}\s*(?:{following}{self.end_of_turn()})",
            "json",
            _after_name({}),
            {},
        )

    def named(self, texts: _CallTexts, kind: str, args: dict[str, Any]) -> _CallPattern:
        """A call with its name in a header. The markers around all calls may be there or not."""
        two, before, middle, after, between = (
            texts.two,
            texts.before,
            texts.middle,
            texts.after,
            texts.between,
        )
        end = shared_start(after, between) if two else after
        header = shared_end(before, between[len(end) :]) if two else before
        opener, closer = self.section(before[: len(before) - len(header)]), after[len(end) :]
        if not header.strip():
            raise _Inexpressible("no marker stands before each call")
        if end.strip()[:1] in ("}", "]", ","):
            raise _Inexpressible("the name is a key of the JSON around the arguments")
        if two and not two.partition(_OTHER)[2].startswith(middle) and not texts.same_but_counts():
            raise _Inexpressible("the header differs from call to call")
        begins, to = _pattern(header), _pattern(middle)
        names = r"[^\s{<]+" if not middle.strip() else rf"[^\s{re.escape(middle.strip()[0])}]+"
        name = f"(?P<name>{names})"
        if self.format.features.ids and _ID in header + middle:
            begins, to = (side.replace(_ID, f"(?P<id>{_until(side, _ID)}+)") for side in (begins, to))
        elif self.format.features.ids and texts.counts():
            begins, name, to = _around_id(header, name, re.sub(r"\d+", r"\\d+", to))
        elif texts.counts():
            to = re.sub(r"\d+", r"\\d+", to)
        ended = _pattern(end) if end.strip() else self.end_of_call(_pattern(header) if two else "")
        tail = _maybe(closer) if end.strip() else ""
        transform = _after_name({"id": "{id}"} if "(?P<id>" in begins + name + to else {})
        return _CallPattern(_maybe(opener) + begins + name + to, ended + tail, kind, transform, args)

    def section(self, opener: str) -> str:
        """What begins the calls after an answer, if that is a part of ``opener``, which then has an empty answer."""
        if not opener or not self.ended.strip():
            return opener
        after = self.text((_NAME, {_KEY: _VALUE}), content=_CONTENT).partition(_CONTENT)[2]
        rest = after.removeprefix(self.ended)
        return next((opener[at:] for at in range(len(opener)) if rest.startswith(opener[at:])), opener)

    def python(self, found: re.Match[str]) -> _CallPattern:
        """Calls in a list as in Python."""
        if found["list"] is None:
            raise _Inexpressible("the calls are as in Python, without a list around them")
        if self.for_ == "servers":
            raise _Inexpressible(
                "the calls are a list as in Python, which vLLM 0.33 and SGLang 0.5.23 do not know"
            )
        self.lost.append("vLLM 0.33 and SGLang 0.5.23 do not know python-call-list")
        open, close = found.string[: found.start()].strip(), found.string[found.end() :].strip()
        begun = _pattern(open) or r"(?=\[\s*[A-Za-z_][A-Za-z0-9_.-]*\()"
        transform = {"type": "function", "function": {"name": "{name}", "arguments": "{arguments}"}}
        return _CallPattern(
            begun, _pattern(close) or self.end_of_call(""), "python-call-list", transform, {}, True
        )

    def tagged(self, one: str, two: str) -> _CallPattern:
        """A call whose arguments are in tags."""
        name = one.rfind(_NAME, 0, one.find(_KEY))
        after_name = one[name + len(_NAME) :]
        without = self.text((_NAME, {}))
        none = without[without.rfind(_NAME) + len(_NAME) :]
        header = shared_start(none, after_name)
        end = shared_end(none[len(header) :], after_name[len(header) :])
        argument = after_name[len(header) : len(after_name) - len(end)]
        opened, key, rest = argument.partition(_KEY)
        between, value, closed = rest.partition(_VALUE)
        if not (key and value and opened.strip() and between.strip() and closed.strip()):
            raise _Inexpressible("arguments are neither JSON nor in tags of their own")
        if between.strip()[-1] in "'=" or closed.strip()[0] in "\"',":
            raise _Inexpressible("values are literals of a programming language")
        around = [(between, closed.replace(_KEY, "(?P=key)")), *self.typed(opened, end)]
        begins, after = opened.strip(), end.strip()
        no_key = after[len(begins) :][:1] if after.startswith(begins) else ""
        keys = rf"[^\s{re.escape(between.strip()[0] + no_key)}]+"
        to, ended = _either([to for to, _ in around]), _either([ended.rstrip() for _, ended in around])
        tag = f"{_pattern(opened.strip())}(?P<key>{keys}){to}(?P<value>.*?){ended}"
        texts = _cut_at(one, two, argument)
        return self.named(
            texts, "xml-inline", {"tag_pattern": tag.replace(re.escape("(?P=key)"), "(?P=key)")}
        )

    def typed(self, opened: str, end: str) -> Iterator[tuple[str, str]]:
        """What is around a value of each other type."""
        unlike: list[str] = []
        for key, (kind, value) in _TYPED.items():
            text = self.text((_NAME, {key: value}))
            _, found, rest = text.partition(opened + key)
            written = next((text for text in (json.dumps(value), str(value)) if text in rest), "")
            between, found_value, closed = rest.partition(written) if written else (rest, "", "")
            if not (found and found_value) or not closed.endswith(end):
                unlike.append(kind)
                continue
            yield between, closed[: len(closed) - len(end)].replace(key, "(?P=key)")
        if unlike:
            self.lost.append(f"values that are no text between tags: {', '.join(unlike)}")

    def end_of_call(self, following: str) -> str:
        """What closes calls that have no closer of their own. ``following``: the opener of the next call, if there may
        be one in an open region."""
        if not following:
            return rf"\s*(?:{self.end_of_turn()})"
        self.lost.append("a value that holds the opener of a call is cut there")
        return rf"(?=\s*{following})|\s*(?:{self.end_of_turn()})"

    def end_of_turn(self) -> str:
        return "|".join([*map(_pattern, self.stops), "$"])

    def read_back(self, spec: dict[str, Any]) -> None:
        """Reads messages by the template, and reports those that come back changed. Calls that do are left out."""
        try:
            read = read_response_template(spec)
        except DefinitionError as error:
            if spec["fields"].pop("tool_calls", None) is None:
                raise
            self.lost.append(f"calls: this package cannot read them: {error}")
            return
        for what, message in _messages(self.format, spec["fields"]):
            try:
                text = self.format.render(message, _TOOLS)
            except ChatParsersError:
                continue
            if _read_message(read.bind(tools=_TOOLS).parse(text)) == _asked_message(message):
                continue
            if message["tool_calls"] and not _beside(message):
                del spec["fields"]["tool_calls"]
                self.lost.append(f"calls: {what} would not be read back")
                return
            self.lost.append(f"{what}, which the family writes in another form")


@dataclass(frozen=True, slots=True)
class _CallTexts:
    """The text of one call, cut at its name and at its arguments, and the text of two. ``between``: what is between
    the arguments of the first and the name of the second."""

    before: str
    middle: str
    after: str
    between: str
    two: str

    def second(self) -> str:
        """The second call's text after its name, as long as that of the first."""
        return self.two[self.two.rfind(_OTHER) + len(_OTHER) :][: len(self.middle)]

    def same_but_counts(self) -> bool:
        """The headers of the two calls differ in numbers and in ids alone."""
        return _uncounted(self.second()) == _uncounted(self.middle)

    def counts(self) -> bool:
        return bool(self.two) and self.second() != self.middle


def _cut_at(one: str, two: str, arguments: str) -> _CallTexts:
    """Cuts the texts. The name is the last before the arguments; ids are those of the first call."""
    two = two.replace("needle001", _ID)
    at = one.find(arguments)
    name = one.rfind(_NAME, 0, at)
    first = two.find(arguments)
    second = two.rfind(_OTHER, 0, two.rfind(arguments))
    return _CallTexts(
        one[:name].replace(_NAME, _OTHER),
        one[name + len(_NAME) : at],
        one[at + len(arguments) :],
        two[first + len(arguments) : second],
        two,
    )


def _uncounted(text: str) -> str:
    return re.sub(r"\d+", "0", text)


def _counted(text: str, marker: str) -> int:
    """How often the text contains a marker, whatever tool it names."""
    return len(re.findall(_pattern(marker), text.replace(_NAME, _OTHER)))


def _object_of(keys: dict[str, str], each: bool) -> dict[str, Any]:
    """The transform of a call that is a JSON object with ``keys``."""
    place = "{%s}" if each else "{content.%s}"
    function = {"name": place % keys["name"], "arguments": place % keys["args"]}
    id = {"id": place % keys["id"]} if "id" in keys else {}
    return {"type": "function", "function": function, **id}


def _after_name(id: dict[str, str]) -> dict[str, Any]:
    """The transform of a call whose opener contains its name."""
    return {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}, **id}


def _around_id(header: str, name: str, to: str) -> tuple[str, str, str]:
    """Puts the group ``id`` around what is with the name between two markers."""
    marker = max(header.rfind(">"), header.rfind("]")) + 1
    end = re.search(r"<|\\\[", to)
    cut = end.start() if end is not None else len(to)
    return _pattern(header[:marker]), f"(?P<id>{_pattern(header[marker:])}{name}{to[:cut]})", to[cut:]


def _until(side: str, needle: str) -> str:
    """The class of the characters of an id: all but white space and the first of what follows."""
    following = side[side.find(needle) + len(needle) :].lstrip("\\")[:1]
    return rf"[^\s{re.escape(following or '<')}]"


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


def _beside(message: dict[str, Any]) -> bool:
    """Whether there is a text or a thought beside the calls."""
    return bool(message["content"] or message.get("reasoning_content"))


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


def _read_message(message: Message) -> tuple[Any, ...]:
    calls = [(call.name, json.loads(call.arguments)) for call in message.tool_calls if call.complete]
    return message.content.strip(), message.reasoning.strip(), calls


def _asked_message(message: dict[str, Any]) -> tuple[Any, ...]:
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


def _listed(texts: _CallTexts) -> tuple[str, str, bool, dict[str, str]] | None:
    """The markers, whether the calls are in a list, and the keys of a call that is a JSON object; else None."""
    begin, to = _BEFORE_NAME.fullmatch(texts.before), _TO_ARGUMENTS.fullmatch(texts.middle)
    end = _AFTER_ARGUMENTS.fullmatch(texts.after)
    if begin is None or to is None or end is None or bool(begin["list"]) != bool(end["list"]):
        return None
    id = begin["id"] or end["id"]
    keys = {"name": begin["name"], "args": to["args"], **({"id": id} if id else {})}
    return begin["open"], end["close"], bool(begin["list"]), keys


def _pattern(text: str) -> str:
    """A regular expression for markup, with any white space where some is written. A name in it is any tool's."""
    return r"\s*".join(map(re.escape, re.split(r"\s+", text))).replace(_OTHER, r"[^\s<|>]+")


def _either(texts: list[str]) -> str:
    """A regular expression for any of the texts: what they share, and alternatives between."""
    texts = list(dict.fromkeys(texts))
    if len(texts) == 1:
        return _pattern(texts[0])
    begun = end = texts[0]
    for text in texts[1:]:
        begun = shared_start(begun, text)
    for text in texts:
        end = shared_end(end, text[len(begun) :])
    parts = [text[len(begun) : len(text) - len(end)] for text in texts]
    written = "|".join(_pattern(part) for part in dict.fromkeys(parts) if part)
    return f"{_pattern(begun)}(?:{written}){'' if all(parts) else '?'}{_pattern(end)}"


def _maybe(text: str) -> str:
    """The same for markup that only the first or the last call has."""
    return rf"(?:{_pattern(text.strip())}\s*)?" if text.strip() else ""
