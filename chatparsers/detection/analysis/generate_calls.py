"""Makes the part of a format that reads and writes calls."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from ...answers import Argument, Elements, Json, Node, Python, Raw, Tool
from ...answers.idioms import NAME_CHARS
from ...templates.probe.differences import is_marker, units
from .found import Arguments, CallMarkers, Kind
from .markup import Markup
from .probes import ADDRESSEE, CLOSED


def section_of(m: Markup, calls: CallMarkers, block: str = "") -> Node:
    """All calls of a turn, with the markup around them. ``block``: the text that opens a block of the turn."""
    p = m.p
    each = bool(block) and calls.before.startswith(block)
    begun: Node | None = None
    if each:  # each call is a block
        calls = replace(calls, before=calls.before[len(block) :])
        # A header that begins with any name needs the text before it.
        begun = m.literal(block) if calls.before.startswith(ADDRESSEE) else p.expected(m.literal(block))
    call = _json_call(m, calls) if calls.members or calls.as_key else _named_call(m, calls, block)
    if begun is not None:
        call = begun + call
    if calls.array is not None:
        items = _array(m, calls, call)
    elif calls.parallel:
        items = p.calls(
            call, m.lenient(calls.separator) if calls.separator.strip() else p.space(calls.separator)
        )
    else:
        items = call
    before, after = calls.section
    gap = p.space()
    opener, closer = m.lenient(before.removeprefix(block)), m.lenient(after)
    if before and not before[-1:].isspace():
        opener = opener + gap
    if after and not after[:1].isspace():
        closer = gap + closer
    if calls.end_optional and after:
        closer = p.expected(closer)
    if block and not each:
        lead = "" if before.startswith(block) else calls.lead
        opener = p.expected(m.literal(block)) + p.space(lead) + opener
    section = opener + items + closer
    own = units(calls.before.strip())
    if before.strip() and calls.array is None and own and is_marker(own[0]):
        return p.reads(section, section, items)  # models leave the section's markers out
    return section


def _array(m: Markup, calls: CallMarkers, call: Node) -> Node:
    p = m.p
    assert calls.array is not None
    first, before_comma, after_comma, last = calls.array
    if not calls.parallel:
        return "[" + p.space(first) + call + p.space(last) + "]"
    if (before_comma, after_comma, last) == ("", first or " ", "\n" if first else ""):
        return p.array(call, first)
    comma = p.space(before_comma) + "," + p.space(after_comma)
    return "[" + p.space(first) + p.calls(call, comma) + p.space(last) + "]"


# calls that are JSON objects


def _json_call(m: Markup, calls: CallMarkers) -> Node:
    p = m.p
    gap = p.space()
    if calls.as_key:

        def keyed(tool: Tool) -> Node:
            name = "{" + gap + '"' + p.json_name(tool) + '"' + gap
            return name + ":" + p.space(" ") + p.args(tool) + gap + "}"

        call = p.each_tool(keyed)
    else:
        keys: dict[str, Any] = {kind: key for kind, key in calls.members if not kind.startswith("=")}
        beside = tuple(key for kind, key in calls.members if kind.startswith("="))
        call = p.json_call(*beside, id_pattern=_id(m, calls) if "id" in keys else None, **keys)
        if ADDRESSEE in calls.before:
            header = calls.before[calls.before.index(ADDRESSEE) + 1 :]
            call = p.reads(_spelt_out(m, calls, header), p.chars(_ADDRESSED) + m.lenient(header) + call)
        elif calls.nested or len(keys) < len(calls.members):
            call = p.reads(_spelt_out(m, calls), call)
    before = m.lenient(calls.before.partition(ADDRESSEE)[0])
    after = m.lenient(calls.after)
    if calls.before.strip() and not calls.before[-1:].isspace() and ADDRESSEE not in calls.before:
        before = before + gap
    if calls.after.strip() and not calls.after[:1].isspace():
        after = gap + after
    return before + call + after


_ADDRESSED = r"a-zA-Z0-9_.\-"


def _addressee(m: Markup, tool: Tool) -> Node:
    """The tool to which a message is addressed whose call names it again. Parses any name."""
    return m.p.reads(m.p.same_name(tool), m.p.chars(_ADDRESSED))


def _spelt_out(m: Markup, calls: CallMarkers, header: str | None = None) -> Node:
    """A call's members as the template writes them, constants and a nested object included. ``header``: the markup
    between the tool to which the call is addressed and the object."""
    p = m.p

    def call(tool: Tool) -> Node:
        written = {
            "name": '"' + p.json_name(tool) + '"',
            "args": p.args(tool),
            "id": '"' + p.id(_id(m, calls)) + '"',
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
            outer[place] = p.member(calls.nested) + _object(m, calls, inner)
        written_out = _object(m, calls, outer)
        return written_out if header is None else _addressee(m, tool) + m.lenient(header) + written_out

    return p.each_tool(call)


def _object(m: Markup, calls: CallMarkers, members: list[Node]) -> Node:
    p = m.p
    joined: Node = members[0]
    for member in members[1:]:
        joined = joined + "," + p.space(calls.gap) + member
    return "{" + joined + "}"


def _id(m: Markup, calls: CallMarkers) -> Node:
    p = m.p
    if calls.id_form == "counter":
        return p.chars("0-9", 1, 4)
    return p.chars("a-zA-Z0-9", 9, 9) if calls.id_form == "short" else p.chars("a-zA-Z0-9_.:-", 1, 64)


# calls whose name is in a header


def _named_call(m: Markup, calls: CallMarkers, block: str) -> Node:
    p = m.p
    words = _words(m, calls) if block else None
    separate = not calls.arguments.whole
    before, addressed, again = calls.before.partition(ADDRESSEE)
    prefix = ""
    if calls.id_form == "counter":
        prefix = re.search(r"[^<>\[\]|\s]*\Z", before)[0]  # type: ignore[index]
        before = before[: len(before) - len(prefix)]

    given = calls.arguments
    gap = p.literal("") if calls.after[:1].isspace() else p.space()
    after, named, rest = calls.after.partition(CLOSED)
    closer: Node = gap + m.lenient(after)
    if separate and not calls.after.strip():
        closer = closer + _follows(m, calls)  # else a call that is cut off would pass for a whole one
    if calls.end_optional and not calls.section[1]:
        closer = p.expected(closer)

    def call(tool: Tool) -> Node:
        header = _header(m, calls, prefix, tool, words)
        if separate:
            by_place = given.syntax if given.syntax == Python() and not given.key_before.strip() else None
            comma = _comma(m, given.separator)
            arguments = p.each_arg(tool, lambda arg: _argument(m, calls, arg), comma, by_place)
        else:
            arguments = p.args(tool) if given.syntax == Json() else p.args(tool, given.syntax)
        if addressed:
            header = _addressee(m, tool) + m.lenient(again) + header
        if named:
            return header + arguments + closer + _addressee(m, tool) + m.lenient(rest)
        return header + arguments + closer if separate else header + arguments

    called = p.each_tool(call)
    opener = m.lenient(before)
    if words is not None:
        before_name = p.choice(m.literal(_header_marks(calls)[0]) + words, p.space()) + before.split()[-1]
        opener = p.reads(opener, opener, before_name)
    item = opener + called
    outer = next(iter(units(before.strip())), "")
    inner = before.strip().removeprefix(outer).lstrip()
    if is_marker(outer) and inner.startswith("<"):  # models leave the outer tag out
        item = p.reads(item, item, m.lenient(inner) + called)
    return item if separate or named else item + closer  # an object says itself that it is whole


def _header_marks(calls: CallMarkers) -> list[str]:
    """The markers in the header of a call."""
    return [unit for unit in units(calls.before + calls.name_after) if is_marker(unit)]


def _words(m: Markup, calls: CallMarkers) -> Node | None:
    """What may stand before and after the recipient of a call in a header of several parts: models write them in any
    order, with other words and markers between them. None: the header has one part, or nothing says who is called."""
    p = m.p
    *others, last = _header_marks(calls) or [""]
    *_, to = calls.before.split() or [""]
    plain = to and ADDRESSEE not in to and not any(map(is_marker, units(to)))
    if not (plain and others and calls.arguments.whole and calls.name_after.endswith(last)):
        return None
    word = p.choice(*map(m.literal, others), "<|" + p.chars(r"^<>|\s", 1, 16) + "|>", p.chars(r"^<\s", 1, 16))
    return p.repeat(p.space() + p.negate(m.literal(last)) + p.negate(to) + word, 0, 8) + p.space()


def unaddressed(calls: CallMarkers | None, first: str) -> str:
    """The header of a call without a tool, if it begins with the marker ``first``: models open answers so."""
    if calls is None or not is_marker(first):
        return ""
    word = re.search(re.escape(first) + r"\w+", calls.before + calls.name_after)
    return "" if word is None else word[0] + _header_marks(calls)[-1]


def _follows(m: Markup, calls: CallMarkers, *others: str) -> Node:
    """Looks for what may stand after a call or a name that no markup ends: another call, the end of all calls or of
    the turn, or one of the ``others``."""
    p = m.p
    another = calls.separator.strip() or calls.before.strip()
    known = dict.fromkeys(text for text in (another, calls.section[1].strip(), *others) if text)
    return p.reads("", p.peek(p.space() + p.choice(*map(m.literal, known), *p.stops, p.end())))


def _tool_name(m: Markup, calls: CallMarkers, tool: Tool) -> Node:
    """A tool's name, without the sign that begins the markup after it, or its own closing tag."""
    after = (calls.counted or calls.id_before or calls.name_after).strip()[:1]
    if not re.fullmatch(NAME_CHARS, after) or re.fullmatch(r"[\w.\-:/\\\]^]", after):
        after = ""  # its usual characters end there, or the sign may be in a name
    closer, named, _ = calls.after.partition(CLOSED)
    sign = closer.strip().removeprefix(calls.before.strip())[:1] if named else ""
    if re.fullmatch(r"[\w.\-:\\\]^]", sign):
        sign = ""
    return m.p.name(tool, NAME_CHARS[:-1] + after + sign + "]") if after + sign else m.p.name(tool)


def _header(m: Markup, calls: CallMarkers, prefix: str, tool: Tool, words: Node | None) -> Node:
    """The markup from the name to the arguments. If prose could begin like it, the parser looks ahead. ``words``: what
    else the parser reads in this place, up to the last marker."""
    p = m.p
    if calls.id_form == "counter":
        before = prefix + p.name(tool) + calls.counted
        name = p.header(before + p.chars("0-9"), before + p.chars("0-9", 1, 4), id=True)
    elif calls.counted:
        name = _tool_name(m, calls, tool) + m.lenient(calls.counted) + p.chars("0-9", 1, 4)
    else:
        name = _tool_name(m, calls, tool)
    if CLOSED in calls.after and len(calls.before.strip()) < 2 and not calls.section[0].strip():
        name = name + p.declared()  # any other tag looks like a call
    if calls.id_after:
        name = p.id(_id(m, calls)) + m.lenient(calls.id_after) + name
    if calls.id_before:
        name = name + m.lenient(calls.id_before) + p.id(_id(m, calls))
    after = calls.name_after
    end = calls.after.partition(CLOSED)[0]
    known = [end] if calls.arguments.whole else [calls.arguments.key_before, end]
    starts = ["".join(units(text.split()[0])[:2]) for text in known if text.strip()]
    if not calls.arguments.whole and len(starts) < 2:
        return name + (m.lenient(after) if after.strip() else _follows(m, calls, *starts))
    told = [text for text in starts if not any(text != one and text.startswith(one) for one in starts)]
    follows = p.peek(p.space() + p.choice(*(m.literal(text) for text in dict.fromkeys(told)), "{"))
    strict = m.lenient(after)
    others = [] if words is None else [words + m.literal(units(after)[-1])]
    gap = p.space() if calls.arguments.whole else ""
    return name + p.reads(strict, strict + follows, *others) + gap


def _comma(m: Markup, separator: str) -> Node | None:
    p = m.p
    if not separator.strip():
        return p.space(separator) if separator else None
    core = separator.strip()
    before, _, after = separator.partition(core)
    return p.space(before) + m.literal(core) + p.space(after)


def _argument(m: Markup, calls: CallMarkers, arg: Argument) -> Node:
    p, given = m.p, calls.arguments
    if isinstance(given.syntax, Raw):
        return _raw_argument(m, calls, given.syntax, arg)
    name = _key(m, given.key_before, calls, arg)
    if isinstance(given.syntax, Elements):
        return name + m.literal(given.key_after) + p.value(arg, given.syntax) + _closer(m, given, arg)
    opener = p.space() + m.lenient(given.key_after) + p.space()
    return name + opener + p.value(arg, given.syntax) + m.lenient(given.after)


def _key(m: Markup, before: str, calls: CallMarkers, arg: Argument) -> Node:
    """The argument's name and the markup before it."""
    p, given = m.p, calls.arguments
    end = calls.after.strip()
    chars = _name_chars(given.key_after, end[len(before.strip()) :] if end.startswith(before.strip()) else "")
    name = p.arg_name(arg, chars, dict(given.escapes)) if given.escapes else p.arg_name(arg, chars)
    return m.lenient(before) + name


def _raw_argument(m: Markup, calls: CallMarkers, raw: Raw, arg: Argument) -> Node:
    """An argument whose value is raw text; each kind of value in an option of its own."""
    p, given = m.p, calls.arguments
    closer = _closer(m, given, arg)
    begun, name_end = given.key_before.strip(), given.key_after.lstrip()
    if begun[:1] in ("<", "[") and name_end and not (given.kinds or given.again):
        space = given.after[len(given.after.rstrip()) :]
        ends = dict.fromkeys((name_end, "".join(name_end.split()), name_end.split()[0]))
        raw = replace(raw, named=tuple((space + begun, end) for end in ends))  # models leave the closer out
        again = _closer(m, given, arg)  # not the same node, for which the source would have a name
        closer = p.reads(closer, again, p.space() + p.peek(m.literal(begun)))

    def value(kind: Kind) -> Node:
        pad = kind.after[len(kind.after.rstrip()) :]
        written = replace(raw, type=kind.type, until=kind.close or raw.until, chars=kind.chars or raw.chars)
        return m.lenient(kind.after.rstrip()) + p.trim(pad) + p.value(arg, written) + kind.close

    kinds = given.kinds or (Kind(None, given.key_before, given.key_after),)
    if len({kind.before for kind in kinds}) == 1:
        values = [value(kind) for kind in kinds]
        one = p.choice(*values) if given.kinds else values[0]
        return _key(m, given.key_before, calls, arg) + one + closer
    return p.choice(*(_key(m, kind.before, calls, arg) + value(kind) for kind in kinds)) + closer


def _closer(m: Markup, given: Arguments, arg: Argument) -> Node:
    """The markup after a value. White space before it may be missing."""
    p = m.p
    text = given.again or given.after
    core = text.strip()
    before, _, after = text.partition(core)
    closer = p.trim(before) + m.literal(core)
    if given.again:
        return closer + m.lenient(after) + p.same_name(arg) + m.lenient(given.after)
    return closer + p.space(after)


def _name_chars(after: str, end: str) -> str:
    """The characters of an argument's name: all except those that follow it, tags, quotes and white space. ``end``: the
    text that would be read as a name at the end of a call, if the markup before a name also begins that end."""
    tagged = after[:1] in "<>\"'"
    known = "<>\"'\n" if tagged else "<>\"'\n[](){}=,|｜"
    extra = "".join(re.escape(char) for char in dict.fromkeys(after[:1] + end[:1]) if char not in known)
    return rf"""[^<>"'\n{extra}]""" if tagged else rf"""[^\s"'<>\[\](){{}}=,|｜{extra}]"""
