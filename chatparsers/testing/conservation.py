"""C1, exactly: the text that each region of a message holds.

- The regions lie one after the other, from the first character to the last; neighbours differ in kind.
- The text of the ``reasoning`` regions, joined, is `Message.reasoning`.
- The text of the ``content`` regions, joined, is `Message.content`. One exception: where the format writes its answer
  as a JSON string, such a region is that string with its quotes, and the content is what the string says.
- The ``call`` regions of a call are its name, the ids that the model wrote (the first counts), and its arguments: in
  the order of the text and nothing else. The punctuation between them is markup. Without punctuation, name or id and
  the next of them are one region. Arguments are one region, or a region for each argument's name and value. The part of
  a call that the prompt's prefix wrote has no region: it is before the first one.
  A region *is* a name, an id or a value in one of these ways: the same text; a JSON string that says it; a header in
  which the format's own pattern finds it; for a name also the name with the format's escapes, or after a
  namespace; for a value also a
  Python literal of it, nested elements that say it, the text between the format's quotes, or the number itself, with
  or without white space on both sides. An
  object or array that is neither JSON nor Python has the same keys and scalars in the same order between its brackets.
  What a format implies (the name ``python``) and an empty value have no region.
- If a call is not complete, the same holds for its name and for every whole argument. The region of the last argument
  begins with the part that was written. All text after it, up to the next call, belongs to the broken call.
- With ``tool_choice="none"`` and in a message that is not complete, regions of calls that were not emitted may be left.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ..answers.format import Format, Turn
from ..answers.idioms import Options
from ..answers.nodes import Args, EachArg, Header, Implied, JsonText, Name, Value
from ..core.tree import walk
from ..streams.message import Message, ToolCall
from ..values import Elements, Gemma, Json, Raw


def check_conservation(message: Message, turn: Turn | None = None) -> None:
    """Raises AssertionError if a region does not hold the text that its kind promises; see the module.

    ``turn``: the turn that read the message. Without it, the calls' regions are not compared with the calls.
    """
    at, kind = 0, ""
    for region in message.regions:
        assert region.start == at and region.end > at, (
            f"a gap or an overlap at character {at}: {message.regions}"
        )
        assert region.kind != kind, f"two regions of {kind} meet at character {at}"
        at, kind = region.end, region.kind
    assert at == len(message.text), f"{len(message.text) - at} characters are in no region"
    reasoning = "".join(_texts(message, "reasoning"))
    assert reasoning == message.reasoning, (
        f"the regions of reasoning hold {reasoning!r:.200}, the reasoning is {message.reasoning!r:.200}"
    )
    content = _texts(message, "content")
    if "".join(content) != message.content:
        quoted = turn is not None and _spelling(turn.format).quoted_content
        assert quoted and _says(content, message.content, message.complete), (
            f"the regions of content hold {''.join(content)!r:.200}, the content is {message.content!r:.200}"
        )
    if turn is not None:
        _check_calls(message, turn)


def _texts(message: Message, kind: str) -> list[str]:
    return [message.text[region.start : region.end] for region in message.regions if region.kind == kind]


def _says(regions: list[str], content: str, complete: bool) -> bool:
    """Whether ``regions`` are ``content``, each unchanged or with its beginning read as a JSON string."""
    ends = {0}
    for region in regions:
        string = _STRING.match(region)
        forms = {region}
        if string is not None and (string[2] or not complete):
            forms.add(_inside(region) + (region[string.end() :] if string[2] else ""))
        ends = {at + len(form) for at in ends for form in forms if content.startswith(form, at)}
    return len(content) in ends


_STRING = re.compile(r'"((?:[^"\\]|\\.)*)("?)', re.DOTALL)
_ESCAPE = re.compile(
    r'\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|["\\/bfnrt])'
)


_BEGUN = re.compile(r"(?:\\u[dD][89abAB][0-9a-fA-F]{2})?(?:\\(?:u[0-9a-fA-F]{0,3})?)?\Z")
"""The part of an escape that is held back at the end of a string that is cut off."""


def _inside(quoted: str) -> str:
    """What a JSON string says, which may be cut off and hold raw line breaks and backslashes that escape nothing."""
    inside = _STRING.match(quoted)
    text = inside[1] if inside is not None else ""
    if inside is not None and not inside[2]:
        text = _BEGUN.sub("", quoted[1:])
    return re.sub(
        "[\ud800-\udfff]", "\ufffd", _ESCAPE.sub(lambda found: str(json.loads(f'"{found[0]}"')), text)
    )


# The calls


@dataclass(frozen=True)
class _ValueSpelling:
    """How a format spells calls: ``headers`` are patterns with the groups ``name``, ``id`` and ``arg``, ``implied`` the
    names that it does not write, ``positional`` whether values may come without names, ``quotes`` what it writes
    around strings, ``marks`` what it writes before the tags of elements, each with the name of an array's elements,
    ``escapes`` pairs of a character and its spelling in names, ``parted`` what parts a name, ``value_escapes`` the same
    as ``escapes`` for values, ``json_values`` whether values are JSON, which may have white space around it."""

    headers: tuple[tuple[str, bool], ...]
    implied: frozenset[str]
    positional: bool
    quotes: tuple[str, ...]
    quoted_content: bool
    marks: tuple[tuple[str, str], ...]
    escapes: tuple[tuple[str, str], ...]
    parted: tuple[str, ...]
    value_escapes: tuple[tuple[str, str], ...]
    json_values: bool


@lru_cache(maxsize=256)
def _spelling(format: Format) -> _ValueSpelling:
    nodes = list(walk(format.tree(Options(tools=True))))
    headers = dict.fromkeys(
        (pattern, node.id) for node in nodes if isinstance(node, Header) for pattern in node.patterns
    )
    implied = frozenset(node.value for node in nodes if isinstance(node, Implied))
    syntaxes = [node.syntax for node in nodes if isinstance(node, (Args, Value))]
    quotes = dict.fromkeys(syntax.quote for syntax in syntaxes if isinstance(syntax, Gemma))
    quoted_content = any(isinstance(node, JsonText) for node in nodes)
    marks = dict.fromkeys((syntax.prefix, syntax.item) for syntax in syntaxes if isinstance(syntax, Elements))
    escapes = dict.fromkeys(pair for node in nodes if isinstance(node, Name) for pair in node.escapes)
    of_values = dict.fromkeys(pair for one in syntaxes if isinstance(one, Raw) for pair in one.escapes)
    return _ValueSpelling(
        tuple(headers),
        implied,
        any(isinstance(node, EachArg) and node.positional is not None for node in nodes),
        (*quotes, "'", '"'),
        quoted_content,
        tuple(marks),
        tuple(escapes),
        tuple({node.parted for node in nodes if isinstance(node, Name)} - {""}),
        tuple(of_values),
        any(isinstance(node, Value) and isinstance(node.syntax, Json) for node in nodes),
    )


def _check_namespaces(message: Message) -> None:
    """A region with a name after a namespace begins with the namespace, not in the middle of it."""
    names = "|".join(re.escape(call.name) for call in message.tool_calls)
    within = re.compile(rf"(?<=\w){_NAMESPACE}(?:{names})\b")
    for region in message.regions:
        cut = region.kind == "call" and within.match(message.text, region.start)
        assert not cut, f"a region begins within the namespace at character {region.start}: {cut}"


def _check_ids(message: Message) -> None:
    """A region that is one word is not a part of an id: it may be a further id of a call, so no call tells."""
    for id in {call.id for call in message.tool_calls if call.id}:
        for found in re.finditer(re.escape(id), message.text):
            for region in message.regions:
                word = _WORD.fullmatch(message.text, region.start, region.end)
                begins, ends = (
                    found.start() < region.start < found.end(),
                    found.start() < region.end < found.end(),
                )
                cut = region.kind == "call" and word and (begins or ends)
                assert not cut, f"the id {id!r} is cut at character {region.start}"


def _check_calls(message: Message, turn: Turn) -> None:
    if message.tool_calls:
        _check_namespaces(message)
        _check_ids(message)
    regions = _texts(message, "call")
    if turn.prefix and message.tool_calls:
        regions = _joined(_before(turn, message.tool_calls[0].name), message, regions)
    spelling = _spelling(turn.format)
    exact = message.complete and turn.options.mode != "none"
    ends = {0} if exact else set(range(len(regions) + 1))
    # A string that the call's marker ended has no closing quote, and what holds it no closing bracket. A value without
    # quotes may end so, too.
    mended = {
        note.call
        for note in message.diagnostics
        if note.code == "mended" and note.expected in ("the end of a string", "a value in quotes")
    }
    for call in message.tool_calls:
        begins, ends = ends, set()
        for at in begins:
            ends.update(_ends(call, regions, at, spelling, call.complete and call.index not in mended))
        assert ends, (
            f"call {call.index}, {call.name}({call.arguments:.200}), is not what its regions hold: {regions[:40]}"
        )
        if not exact:  # what a broken call has more
            ends = set(range(min(ends), len(regions) + 1))
    assert not exact or len(regions) in ends, f"regions of calls hold more than the calls: {regions[:40]}"


def _before(turn: Turn, name: str) -> list[str]:
    """The texts of the call that the prefix leaves open. The model continues in the middle of the last one, which is in
    no region yet if it is the name of the call."""
    if turn.stream().region != "call":
        return []
    whole = copy(turn)
    object.__setattr__(whole, "prefix", "")
    stream = whole.stream()
    stream.feed(turn.prefix)
    message = stream.message
    last = [region.kind for region in message.regions[-1:]] == ["call"]
    calls = _texts(message, "call")
    held = turn.prefix[message.regions[-1].end if message.regions else 0 :]
    begun = re.split(r"[^\w-]", held)[-1]
    return calls if last else [*calls, begun if name.startswith(begun) else ""]


def _joined(before: list[str], message: Message, regions: list[str]) -> list[str]:
    goes_on = bool(before) and bool(message.regions) and message.regions[0].kind == "call"
    if goes_on:
        return [*before[:-1], before[-1] + regions[0], *regions[1:]]
    return [text for text in before if text] + regions


_Place = tuple[int, int]
"""A place in the regions: the number of one, and how much of it is read."""


def _ends(call: ToolCall, regions: list[str], start: int, spelling: _ValueSpelling, whole: bool) -> set[int]:
    """The ends that the regions of ``call`` may have if they begin at ``start``: the numbers of the next regions.

    ``whole``: the text of the arguments has its own end.
    """
    found: set[int] = set()
    tried: set[tuple[_Place, bool, bool, bool]] = set()
    members = _members(call.arguments)
    open = [((start, 0), call.name in spelling.implied, False, False)]
    while open:
        state = open.pop()
        if state in tried:
            continue
        tried.add(state)
        (at, read), named, identified, argued = state
        if not read and named and (argued or not members):
            found.add(at)
        if not argued and members is not None and not read:
            open += [
                ((end, 0), named, identified, True)
                for end in _argued(members, regions, at, spelling, call.complete)
            ]
        if at == len(regions):
            continue
        text = regions[at][read:]
        groups = _groups(text, spelling)
        for size in _named(text, call.name, spelling):
            open.append((_after(at, read, size, text), True, identified, argued))
        written = groups.get("id") == call.id
        if _means(groups.get("name", ""), call.name) and (written or identified or "id" not in groups):
            open.append(((at + 1, 0), True, identified or written, argued))
        for size in _beginnings(text, call.id, spelling):
            open.append((_after(at, read, size, text), named, True, argued))
        if written or (identified and _WORD.fullmatch(text)):
            open.append(((at + 1, 0), named, True, argued))
        if not argued and _is_object(text, call, spelling, whole):
            open.append(((at + 1, 0), named, identified, True))
    return found


def _beginnings(text: str, value: str, spelling: _ValueSpelling) -> Iterator[int]:
    """How much of ``text`` may be ``value``."""
    if text.startswith(value):
        yield len(value)
    elif _spells(text, value, spelling):
        yield len(text)


def _after(at: int, read: int, size: int, text: str) -> _Place:
    return (at, read + size) if size < len(text) else (at + 1, 0)


def _groups(text: str, spelling: _ValueSpelling) -> dict[str, str]:
    """What the first pattern for headers that fits finds in ``text``."""
    for pattern, is_id in spelling.headers:
        match = re.fullmatch(pattern, text)
        if match is not None:
            return {"name": match["name"], **({"id": text} if is_id else {})}
    return {}


_WORD = re.compile(r"[\w.:-]+")
_BLANK = re.compile(r'"\s*"')
_NAMESPACE = r"[\w-][\w.:/-]*?[.:/]"
_ANY_NAMESPACE = r"\S*?[\w-][.:/]"  # that of a broken header, too


def _named(text: str, name: str, spelling: _ValueSpelling) -> Iterator[int]:
    """How much of ``text`` may be the name, or the name after a namespace."""
    yield from _beginnings(text, name, spelling)
    found = re.match(_ANY_NAMESPACE + re.escape(name), text)
    if found is not None:
        yield found.end()


def _means(text: str, name: str) -> bool:
    """Whether ``text`` is the name, or the name after a namespace."""
    return text == name or re.fullmatch(_ANY_NAMESPACE + re.escape(name), text) is not None


def _spells(text: str, value: str, spelling: _ValueSpelling) -> bool:
    if _is_escaped(text, value, spelling.escapes) or _is_parted(text, value, spelling.parted):
        return True
    return text == value or ("\\" in text and _inside(f'"{text}"') == value)


def _is_parted(text: str, value: str, parted: tuple[str, ...]) -> bool:
    """Whether ``text`` is a name in two parts."""
    halves = (text.split(between) for between in parted if between in text)
    return any(re.fullmatch("[_.]+".join(map(re.escape, parts)), value) for parts in halves)


def _is_escaped(text: str, value: str, escapes: tuple[tuple[str, str], ...]) -> bool:
    """Whether ``text`` is ``value``, its characters spelt as the format spells them, or some of them as they are."""
    if not escapes:
        return False
    chars = {written: char for char, written in escapes}
    return re.sub("|".join(map(re.escape, chars)), lambda found: chars[found[0]], text) == value


class _NumberText(str):
    """A number as it is spelt. It equals no text."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _NumberText) and str(self) == str(other)

    __hash__ = str.__hash__


class _BegunText(str):
    """The written part of a value that is cut off: the text of a string, else the JSON so far."""

    __slots__ = ()


_Pairs = list[tuple[str, Any]]
_decoder = json.JSONDecoder(
    object_pairs_hook=lambda pairs: ("object", pairs), parse_int=_NumberText, parse_float=_NumberText
)


_BETWEEN = re.compile(r"\s*[:,]\s*")


def _members(arguments: str) -> _Pairs | None:
    """The members of an object; None if it is not an object. If it is cut off, the last member is a `_BegunText`."""
    try:
        whole = _decoder.decode(arguments)
        return whole[1] if isinstance(whole, tuple) else None
    except ValueError:
        if not arguments.startswith("{"):
            return None
    found: _Pairs = []
    at = 1
    while True:
        try:
            key, at = _decoder.raw_decode(arguments, at)
            between = _BETWEEN.match(arguments, at)
        except ValueError:
            return found
        if between is None or not isinstance(key, str):
            return found
        at = between.end()
        try:
            value, at = _decoder.raw_decode(arguments, at)
        except ValueError:
            rest = arguments[at:]
            found.append((key, _BegunText(_inside(rest) if rest.startswith('"') else rest)))
            return found
        found.append((key, value))
        between = _BETWEEN.match(arguments, at)
        if between is None:
            return found
        at = between.end()


def _argued(
    members: _Pairs, regions: list[str], start: int, spelling: _ValueSpelling, whole: bool
) -> set[int]:
    """The ends that the regions of the arguments may have. Each argument is a name and a value; they are one region
    where nothing is between them."""
    ends = {start}
    for number, (key, value) in enumerate(members, 1):
        begins, ends = ends, set()
        for at in begins:
            places = [at] if spelling.positional or key in spelling.implied else []
            if at < len(regions) and (
                _spells(regions[at], key, spelling) or _groups(regions[at], spelling).get("arg") == key
            ):
                places.append(at + 1)
            for place in places:
                if (
                    value == ""
                    or isinstance(value, _BegunText)
                    or (spelling.marks and value in ([], ("object", [])))
                ):
                    ends.add(place)
            begun = not whole and number == len(members)
            sources = [(place, regions[place]) for place in places if place < len(regions)]
            if at < len(regions) and regions[at].startswith(key):
                sources.append((at, regions[at][len(key) :]))
            for place, text in sources:
                texts = [text, text.strip()] if spelling.json_values else [text]
                if any(_is_value(text, value, spelling, begun) for text in texts):
                    ends.add(place + 1)
    return ends


def _is_object(text: str, call: ToolCall, spelling: _ValueSpelling, whole: bool) -> bool:
    """Whether ``text`` is the source of all arguments of the call. ``whole``: it is not cut off."""
    arguments = call.arguments
    if text == arguments or (not whole and text.startswith(arguments)):
        return True
    if text in ("null", "None") or _BLANK.fullmatch(text):
        return arguments == "{}"
    if not whole:
        return _agree(text, arguments, spelling, begun=True)
    members = _members(arguments)
    if members is None:
        return False
    string = _STRING.fullmatch(text)
    if string is not None and string[2]:
        text = _inside(text)
        if text == arguments:
            return True
    return _is_value(text, ("object", members), spelling)


def _is_value(text: str, value: Any, spelling: _ValueSpelling, begun: bool = False) -> bool:
    """Whether ``text`` is the source of ``value``. ``begun``: the text may be cut off."""
    if begun and (
        (isinstance(value, str) and text.startswith(value)) or _looks_like(text, value, spelling, True)
    ):
        return True
    if isinstance(value, str):
        if text == str(value) or not (value or text.strip()):
            return True
        if isinstance(value, _NumberText):
            return text[:1].isspace() == text[-1:].isspace() and text.strip() == str(value)
        if _is_escaped(text, value, spelling.value_escapes):
            return True
        if any(text == quote + value + quote for quote in spelling.quotes):
            return True
        string = _STRING.fullmatch(text)
        if string is not None and string[2] and _inside(text) == value:
            return True
    for mark, item in spelling.marks:
        if mark in text and _are_elements(text, value, mark, item, begun):
            return True
    if text != text.strip():  # outside strings, white space on both sides is no part of the value
        inside = text[0].isspace() and text[-1].isspace() and bool(text.strip())
        return inside and not isinstance(value, str) and _is_value(text.strip(), value, spelling)
    try:
        if _decoder.decode(text) == value:
            return True
    except ValueError:
        pass
    return _is_python(text, value) or _looks_like(text, value, spelling)


_QUOTED = re.compile(r"(['\"])(.*)\1", re.DOTALL)


def _is_python(text: str, value: Any) -> bool:
    """Whether ``text`` is a Python literal of ``value``, or a string of Python that says it with bare quotation
    marks inside."""
    sources = [text]
    if quoted := _QUOTED.fullmatch(text):
        mark = quoted[1]
        bare = re.compile(rf"(?<!\\)((?:\\\\)*){mark}")
        sources.append(mark + bare.sub(rf"\1\\{mark}", quoted[2]) + mark)
    for source in sources:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if _plain(ast.literal_eval(source)) == _plain(value):
                    return True
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            pass
    return False


def _are_elements(text: str, value: Any, mark: str, item: str, begun: bool) -> bool:
    """Whether ``text`` says ``value`` in elements, with a mark before each tag; white space before a tag is free."""

    def written(inner: Any) -> str:
        if isinstance(inner, tuple):
            named = inner[1]
        elif isinstance(inner, list):
            named = [(item, one) for one in inner]
        else:
            return str(inner) if isinstance(inner, str) else "" if inner is None else json.dumps(inner)
        return "".join(f"{mark}<{key}>{written(one)}{mark}</{key}>" for key, one in named)

    if begun:  # JSON up to any place: only the names and scalars are compared
        plain = re.sub(re.escape(mark) + rf"(?:</[^<>]*>|<{re.escape(item)}>|<([^<>]*)>)", r" \1 ", text)
        said = value if isinstance(value, str) else "".join(_scalars(value))
        return _PUNCTUATION.sub("", plain).startswith(_PUNCTUATION.sub("", said))
    layout = re.compile(rf"\s*{re.escape(mark)}")
    return layout.sub(mark, text).rstrip() == layout.sub(mark, written(value)).rstrip()


def _plain(value: Any) -> Any:
    """A value without the difference between what Python and JSON make of it; numbers as `repr` spells them."""
    if isinstance(value, tuple) and value and value[0] == "object" and len(value) == 2:
        return {key: _plain(item) for key, item in value[1]}
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, _NumberText):
        return ast.literal_eval(value)
    return value


_ESCAPED_END = re.compile(r"(?<!\\)(?:\\\\)*\\.\Z")
_PUNCTUATION = re.compile(r"[\s{}\[\]():,=\"'\\]+")
_WORDS = {"None": "null", "True": "true", "False": "false"}


def _looks_like(text: str, value: Any, spelling: _ValueSpelling, begun: bool = False) -> bool:
    """Whether an object, an array or a quoted string in another syntax has these keys and scalars between its ends."""
    ends = {"{": "}", "[": "]", "(": ")", **{quote[0]: quote[-1] for quote in spelling.quotes}}
    said = "".join(_scalars(value))
    if not begun and (len(text) < 2 or ends.get(text[0]) != text[-1] or _ESCAPED_END.search(text)):
        return False
    if not begun and _open(text) != _open(said):
        return False
    return _agree(text, said, spelling, begun)


def _open(text: str) -> tuple[int, ...]:
    """How many brackets of each kind are open at the end of ``text``."""
    return tuple(text.count(left) - text.count(right) for left, right in ("{}", "[]", "()"))


def _agree(text: str, said: str, spelling: _ValueSpelling, begun: bool) -> bool:
    """Whether the two are equal except for punctuation and white space. ``begun``: ``text`` may be cut off.

    A backslash may begin an escape in either.
    """
    texts, all_said = ({_bare(one, spelling, escapes) for escapes in (False, True)} for one in (text, said))
    return any(one.startswith(other) if begun else one == other for one in texts for other in all_said)


def _bare(text: str, spelling: _ValueSpelling, escapes: bool) -> str:
    if escapes:
        text = _ESCAPE.sub(lambda found: str(json.loads(f'"{found[0]}"')), text)
    text = re.sub(r"\b(None|True|False)\b", lambda found: _WORDS[found[0]], text)
    for quote in spelling.quotes:
        text = text.replace(quote, "")
    return _PUNCTUATION.sub("", text)


def _scalars(value: Any) -> Iterable[str]:
    if isinstance(value, tuple):
        for key, item in value[1]:
            yield key
            yield " "
            yield from _scalars(item)
            yield " "
    elif isinstance(value, list):
        for item in value:
            yield from _scalars(item)
            yield " "
    elif isinstance(value, str):
        yield value
    else:
        yield json.dumps(value)
