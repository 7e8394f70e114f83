"""Makes a format from an analysis, with only the builder's primitives.

`Definition` is a format's ``build`` as data: equal definitions share their compiled programs, and their streams can be
pickled. White space between markers is read leniently and generated as the template writes it. A marker that a
tokenizer may have as one token becomes a token.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ..core import Argument, Builder, Format, Gemma, Json, Node, Python, Raw, Tool
from ..core.nodes import Nodelike, Span
from .differences import is_marker, units
from .found import Analysis, Arguments, CallMarkers, ContentMarkers, ReasoningMarkers

__all__ = ["Definition", "to_format"]


@dataclass(frozen=True, slots=True)
class Definition:
    """Builds the tree of a format that was found."""

    reasoning: ReasoningMarkers | None
    content: ContentMarkers
    calls: CallMarkers | None
    block: str = ""

    def __call__(self, p: Builder) -> Node:
        section = None if self.calls is None else _section(p, self.calls, self.block)
        if self.block:
            return self._blocks(p, section)
        calls, reasoning = self.calls, self.reasoning
        alone = calls is not None and calls.alone
        content = _span(p, self.content.open, self.content.close) if self.content.open.strip() else None
        again = None
        if reasoning is not None and reasoning.left_open:
            again = p.span(*_markers(p, reasoning), optional=True)
        body = p.body(
            None if alone else section,
            start=section if alone else None,
            content=content,
            lead="" if calls is None or alone else calls.lead,
            reasoning=again,
        )
        if self.content.lead:
            body = p.reads("", p.trim(self.content.lead)) + body
        if reasoning is None:
            return body
        always = reasoning.mode == "implicit"
        opener, closer = _markers(p, reasoning)
        if reasoning.left_open:
            return p.think(opener, closer, always=always, until=section, optional=True) + body
        think = p.think(opener, closer, always=always) + body
        return p.reads("", p.optional(_marker(p, reasoning.close))) + think if reasoning.bare_close else think

    def _blocks(self, p: Builder, section: Node | None) -> Node:
        """A turn of blocks, each with its own header; the prompt has written the beginning of the first."""
        assert self.reasoning is not None
        begin = _begin(p, self.block)
        thought = p.span(
            begin + _literal(p, self.reasoning.open.strip()), _literal(p, self.reasoning.close.strip())
        )
        close = self.content.close or self.reasoning.close.strip()
        opener = _literal(p, self.content.open.strip())
        if self.content.also:
            opener = p.reads(opener, opener, _literal(p, self.content.also))
        content = p.span(begin + opener, _literal(p, close), optional=not self.content.close)
        return p.body(section, reasoning=thought, content=content)


def _begin(p: Builder, block: str) -> Node:
    """The opener of a block. It may be missing before the first block."""
    return p.expected(_literal(p, block))


def to_format(analysis: Analysis) -> Format:
    """The format of an analysis."""
    definition = Definition(analysis.reasoning, analysis.content, analysis.calls, analysis.block)
    return Format(
        name=f"auto:{analysis.variant}",
        title=f"Found: {analysis.variant}",
        url="https://huggingface.co/docs/transformers/chat_templating",
        build=definition,
        stops=analysis.stops,
    )


def _markers(p: Builder, reasoning: ReasoningMarkers) -> tuple[Nodelike, Nodelike]:
    """The markers of reasoning, as texts if they are one token each."""
    texts = (reasoning.open, reasoning.close)
    if all(is_marker(text.strip()) for text in texts):
        return texts
    return _marker(p, reasoning.open), _marker(p, reasoning.close)


def _marker(p: Builder, text: str) -> Node:
    """A marker with the white space that the template writes around it. Any part of that space may be missing."""
    core = text.strip()
    before, _, after = text.partition(core)
    return p.trim(before) + _literal(p, core) + p.trim(after)


def _literal(p: Builder, text: str) -> Node:
    """Markup unchanged: whole markers are tokens."""
    pieces: list[str | Node] = [""]
    for unit in units(text):
        if is_marker(unit):
            pieces += [p.token(unit), ""]
        else:
            pieces[-1] = str(pieces[-1]) + unit
    return p.sequence(*(piece for piece in pieces if not isinstance(piece, str) or piece))


def _markup(p: Builder, text: str) -> Node:
    """As `_literal`; but any white space is read wherever some is written, and wherever a marker follows another."""
    pieces: list[str | Node] = []
    for part in re.findall(r"\s+|\S+", text):
        pieces.append(p.space(part) if part.isspace() else _literal(p, part))
    return p.sequence(*pieces)


def _span(p: Builder, open: str, close: str) -> Span:
    return p.span(_literal(p, open), _literal(p, close) if close else None)


def _section(p: Builder, calls: CallMarkers, block: str = "") -> Node:
    """All calls of a turn, with the markup around them."""
    call = _json_call(p, calls) if calls.members or calls.as_key else _named_call(p, calls)
    if calls.array is not None:
        items = _array(p, calls, call)
    elif calls.parallel:
        items = p.calls(
            call, _markup(p, calls.separator) if calls.separator.strip() else p.space(calls.separator)
        )
    else:
        items = call
    before, behind = calls.section
    gap = p.space()
    opener, closer = _markup(p, before), _markup(p, behind)
    if before and not before[-1:].isspace():
        opener = opener + gap
    if behind and not behind[:1].isspace():
        closer = gap + closer
    if calls.end_optional and behind:
        closer = p.expected(closer)
    if block:
        opener = _begin(p, block) + p.space(calls.lead) + opener
    section = opener + items + closer
    own = units(calls.before.strip())
    if before.strip() and calls.array is None and own and is_marker(own[0]):
        return p.reads(section, section, items)  # models leave the section's markers out
    return section


def _array(p: Builder, calls: CallMarkers, call: Node) -> Node:
    assert calls.array is not None
    first, before_comma, after_comma, last = calls.array
    if not calls.parallel:
        return "[" + p.space(first) + call + p.space(last) + "]"
    if (before_comma, after_comma, last) == ("", first or " ", "\n" if first else ""):
        return p.array(call, first)
    comma = p.space(before_comma) + "," + p.space(after_comma)
    return "[" + p.space(first) + p.calls(call, comma) + p.space(last) + "]"


# calls that are JSON objects


def _json_call(p: Builder, calls: CallMarkers) -> Node:
    gap = p.space()
    if calls.as_key:

        def keyed(tool: Tool) -> Node:
            name = "{" + gap + '"' + p.json_name(tool) + '"' + gap
            return name + ":" + p.space(" ") + p.args(tool) + gap + "}"

        call = p.each_tool(keyed)
    else:
        keys: dict[str, Any] = {kind: key for kind, key in calls.members if not kind.startswith("=")}
        call = p.json_call(id_pattern=_id(p, calls) if "id" in keys else None, **keys)
        if calls.nested or len(keys) < len(calls.members):
            call = p.reads(_spelt_out(p, calls), call)
    before = _markup(p, calls.before)
    behind = _markup(p, calls.behind)
    if calls.before.strip() and not calls.before[-1:].isspace():
        before = before + gap
    if calls.behind.strip() and not calls.behind[:1].isspace():
        behind = gap + behind
    return before + call + behind


def _spelt_out(p: Builder, calls: CallMarkers) -> Node:
    """A call's members as the template writes them, constants and a nested object included."""

    def call(tool: Tool) -> Node:
        written = {
            "name": '"' + p.json_name(tool) + '"',
            "args": p.args(tool),
            "id": '"' + p.id(_id(p, calls)) + '"',
        }
        outer: list[Node] = []
        inner: list[Node] = []
        for kind, key in calls.members:
            value = p.literal(kind[1:]) if kind.startswith("=") else written[kind]
            member = p.member(key) + value
            if calls.nested and kind in ("name", "args"):
                if not inner:
                    outer.append(p.literal(""))
                    place = len(outer) - 1
                inner.append(member)
            else:
                outer.append(member)
        if inner:
            outer[place] = p.member(calls.nested) + _object(p, inner)
        return _object(p, outer)

    return p.each_tool(call)


def _object(p: Builder, members: list[Node]) -> Node:
    joined: Node = members[0]
    for member in members[1:]:
        joined = joined + "," + p.space(" ") + member
    return "{" + joined + "}"


def _id(p: Builder, calls: CallMarkers) -> Node:
    if calls.id_form == "counter":
        return p.chars("0-9", 1, 4)
    return p.chars("a-zA-Z0-9", 9, 9) if calls.id_form == "short" else p.chars("a-zA-Z0-9_.:-", 1, 64)


# calls whose name stands in a header


def _named_call(p: Builder, calls: CallMarkers) -> Node:
    separate = calls.arguments.syntax not in ("object", "gemma")
    before, prefix = calls.before, ""
    if calls.id_form == "counter":
        prefix = re.search(r"[^<>\[\]|\s]*\Z", before)[0]  # type: ignore[index]
        before = before[: len(before) - len(prefix)]

    given = calls.arguments
    gap = p.literal("") if separate or calls.behind[:1].isspace() else p.space()
    closer: Node = gap + _markup(p, calls.behind)
    if calls.end_optional and not calls.section[1]:
        closer = p.expected(closer)

    def call(tool: Tool) -> Node:
        header = _header(p, calls, prefix, tool)
        if separate:
            arguments = p.each_arg(tool, lambda arg: _argument(p, given, arg), _comma(p, given.separator))
        elif given.syntax == "gemma":
            arguments = p.args(tool, Gemma(quote=given.quote))
        else:
            arguments = p.args(tool)
        return header + arguments + closer if separate else header + arguments

    item = _markup(p, before) + p.each_tool(call)
    return item if separate else item + closer  # an object says itself that it is whole


def _header(p: Builder, calls: CallMarkers, prefix: str, tool: Tool) -> Node:
    """The markup from the name to the arguments. If prose could begin like it, the parser looks ahead."""
    if calls.id_form == "counter":
        pattern = rf"(?P<id>{re.escape(prefix)}(?P<name>.+?){re.escape(calls.counted)}\d+)"
        name = p.header(pattern, prefix + p.name(tool) + calls.counted + p.chars("0-9", 1, 4))
    elif calls.counted:
        name = p.name(tool) + _markup(p, calls.counted) + p.chars("0-9", 1, 4)
    else:
        name = p.name(tool)
    if calls.id_before:
        name = name + _markup(p, calls.id_before) + p.id(_id(p, calls))
    behind = calls.name_behind
    if calls.arguments.syntax in ("object", "gemma"):
        follows = p.peek(p.space() + "{")
    else:
        starts = [text.split()[0] for text in (calls.arguments.key_before, calls.behind) if text.strip()]
        if len(starts) < 2:
            return name + _markup(p, behind)
        follows = p.peek(p.space() + p.choice(*(_literal(p, text) for text in starts)))
    strict = _markup(p, behind)
    gap = p.space() if calls.arguments.syntax in ("object", "gemma") else ""
    return name + p.reads(strict, strict + follows) + gap


def _comma(p: Builder, separator: str) -> Node | None:
    if not separator.strip():
        return p.space(separator) if separator else None
    core = separator.strip()
    before, _, after = separator.partition(core)
    return p.space(before) + _literal(p, core) + p.space(after)


def _argument(p: Builder, given: Arguments, arg: Argument) -> Node:
    name = _markup(p, given.key_before) + p.arg_name(arg, _name_chars(given.key_behind))
    core, space = given.behind.strip(), given.behind
    before = space[: len(space) - len(space.lstrip())]
    after = space[len(space.rstrip()) :]
    if given.syntax == "raw":
        closer = p.trim(before) + _literal(p, core) + p.space(after)

        def value(key_behind: str, type: str | None) -> Node:
            pad = key_behind[len(key_behind.rstrip()) :]
            opener = _markup(p, key_behind.rstrip()) + p.trim(pad)
            raw = Raw(until=before + core, python=given.python, type=type)
            return opener + p.value(arg, raw)

        if not given.kinds:
            return name + value(given.key_behind, None) + closer
        values = p.choice(value(given.key_behind, "string"), *(value(kind, "json") for kind in given.kinds))
        return name + values + closer
    opener = _markup(p, given.key_behind)
    literal = p.value(arg, Python() if given.syntax == "python" else Json())
    return name + p.space() + opener + p.space() + literal + _markup(p, given.behind)


def _name_chars(behind: str) -> str:
    """The characters of an argument's name: all except those that follow it, tags, quotes and white space."""
    extra = re.escape(behind[:1]) if behind[:1] not in "<>\"'\n" else ""
    return rf"""[^<>"'\n{extra}]""" if behind[:1] in "<>\"'" else r"""[^\s"'<>\[\](){}=,|｜]"""
