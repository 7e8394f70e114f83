"""Shapes of calls that several families share. They are here so that no format depends on another family's format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from chatparsers.answers import ANY_TOOL, Argument, Builder, Node, Python, Raw, Tag, Tool

_ATTRIBUTE = r"""[^"'<>\n]"""


def tagged_call(p: Builder, tag: str = "tool_call", pad: str = "\n") -> Node:
    """One call as a JSON object in tags. ``<tool_call>{"name": …, "arguments": …}</tool_call>``

    ``pad``: the white space on each side of the object. Some models write several objects in one pair of tags, or an
    array of them, one bracket too few or too many at the end, or a dictionary of Python.
    """
    closer = p.token(f"</{tag}>")
    call = p.json_call(name="name", args="arguments", closer=closer)
    several = _several(p, call)
    objects = p.reads(several, several, p.array(call), dictionary_call(p))
    end = p.space(pad) + closer
    return p.token(f"<{tag}>") + p.space(pad) + objects + p.reads(end, end, spare(p) + p.space() + closer)


def dictionary_call(p: Builder) -> Node:
    """One call as a dictionary of Python. ``{'name': 'get_weather', 'arguments': {'city': 'Oslo'}}``"""
    quote = p.reads("'", "'", '"')
    colon, comma = p.space() + ":" + p.space(" "), p.space() + "," + p.space(" ")

    def key(name: Node | str) -> Node:
        return quote + name + quote + colon

    def argument(arg: Argument) -> Node:
        return key(p.arg_name(arg)) + p.value(arg, Python())

    def call(tool: Tool) -> Node:
        name = "{" << key("name") + quote + p.name(tool) + quote + comma
        begun = p.reads("{", "{", p.peek("}")) + p.space()
        ended = p.reads("}}", "}" + p.space() + "}", "}")
        return name + key("arguments") + begun + p.each_arg(tool, argument, comma) + p.space() + ended

    return p.each_tool(call)


def spare(p: Builder) -> Node:
    """Brackets too many at the end of a call's JSON."""
    return p.many(p.space() + p.choice("}", "]"), 1)


def listed(p: Builder, call: Node, indent: str = "") -> Node:
    """Calls as a JSON array, as `p.array` has them. The parser also reads calls without the array."""
    array = p.array(call, indent)
    return p.reads(array, array, p.calls(call, _gap(p)))


def _gap(p: Builder) -> Node:
    """What models write between one call and the next."""
    return p.space() + p.optional(",") + p.space()


def _several(p: Builder, call: Node) -> Node:
    """One call of a section of its own; the parser also reads more in it."""
    return call + p.reads("", p.many(_gap(p) + call))


def function_call(p: Builder, open: str, close: str, gap: str = "\n", pad: str = "\n") -> Node:
    """One call with tagged arguments, as several families write it.

    ``gap``: the white space between tags. ``pad``: the white space on each side of a value, which is no part of it.
    """
    also = (pad + "</function>",) if pad else ()
    tag_ends = dict.fromkeys((">" + pad, ">"))
    named = ((pad + "</parameter=", ">"), *(((pad or gap) + "<parameter=", end) for end in tag_ends))
    header, after = open + gap + "<function=", (">", gap, ("<parameter=", "</function>"))
    ends = ((pad or gap) + end for end in (close, "</function>" + gap + close))
    seams = tuple(seam for end in ends for seam in _seams(end, header, *after))
    raw = Raw(until=pad + "</parameter>", also=also, python=True, named=named, seams=seams)
    begun = p.reads(">", p.space() + ">", p.peek("\n")) + p.trim(pad)
    tags = p.choice("<parameter=", "<parameter name=", "</function>")
    missing = p.space() + p.peek(tags | p.token(close))
    closer = "</parameter>"
    careless = ("</parameter=" + p.chars(r"^<>\n") + ">") | missing
    ended = p.trim(pad) + _closed(p, closer, careless) + p.space(gap)

    def argument(arg: Argument) -> Node:
        value = p.value(arg, raw)
        return _named(p, "parameter", p.arg_name(arg)) + begun + value + ended

    # Only what follows tells a careless header from prose about one.
    follows = p.declared() + p.peek(p.space() + p.choice("<parameter", "</function>"))

    def function(tool: Tool) -> Node:
        end = p.reads("</function>", "</function>", p.peek(p.token(close) | "<function="))
        named = _named(p, "function", p.name(tool))
        header = named + ">" + _no_other(p, "<function=")
        return p.reads(header, header, named + follows) + p.space(gap) + p.each_arg(tool, argument) + end

    call = p.each_tool(function) + again(p, p.choice("</function>", "</function_invocation>"))
    end = p.space(gap) + p.token(close)
    whole = p.token(open) + p.space(gap) + _several(p, call) + end
    json = p.token(open) << p.json_calls() << p.token(close)
    return p.reads(whole, whole, json, call + p.optional(end))


def _no_other(p: Builder, header: Node | str) -> Node:
    """After the header of a call: a header that comes twice is not a call without arguments and another call."""
    return p.reads("", p.negate(p.space() + header))


def _named(p: Builder, tag: str, name: Node) -> Node:
    """A tag and its name. ``<tag=name``; models also write ``<tag="name"`` and ``<tag name="name"``."""
    quoted = (quote + p.peek(p.chars(rf"^{quote}<>\n") + quote) for quote in "\"'")  # else a part of the name
    spaced = [f"<{tag} "] if tag == "parameter" else []
    begin = p.reads(f"<{tag}=", f"<{tag}=", f"<{tag} name=", *spaced) + p.reads("", *quoted, "")
    return begin + name + p.reads("", '"', "'", "")


def keyed_call(
    p: Builder,
    call: str = "tool_call",
    arg: str = "arg",
    *,
    line: str = "",
    after: str = "",
    end: str = "",
    also: tuple[str, ...] = (),
    tag: Callable[[str], Node] | None = None,
    name_end: Node | None = None,
    value: Callable[[Argument], Node] | None = None,
) -> Node:
    """One call: a name, then tagged keys and values. ``<tool_call>NAME<arg_key>K</arg_key><arg_value>V</arg_value>…``

    ``call``, ``arg``: the names of the tags. ``line``: the white space after the name and after each key; ``after``:
    after each value; ``end``: before the end of the call. ``also``: other names of the outer tags. ``tag``: makes the
    tag of a name, ``name_end``: what follows the call's name, ``value``: makes a value and its opener, each if the
    family writes it in another way. A key without a value is left out; a value without its opener or closer is read, and
    so are arguments after the closer of a call that had none. Models also write the arguments, or the whole call, as JSON.
    """
    mark = (lambda name: p.token(f"<{name}>")) if tag is None else tag
    opener, closer = mark(call), mark("/" + call)
    key, key_end = mark(arg + "_key"), mark(f"/{arg}_key")
    key_text = p.chars(r"^<>\n") + key_end
    no_value = key + key_text + p.space() + p.peek(key | closer)
    close = mark(f"/{arg}_value")
    # Models also write the opener of the call in place of that of a key, or a key's tags twice.
    careless_key = p.choice(key + again(p, key, 8), opener + p.peek(key_text))
    # The name ends at white space or a tag, but only a tag tells a call from prose about the opener.
    after_name = p.peek(key | closer | "{" | opener + key_text | close)
    begun = p.reads(line, p.space() + after_name) if name_end is None else name_end
    another = opener + p.chars(r"^<>\n") + p.space() + (key | closer)
    stray = again(p, f"</{arg}_value>")  # a text, as the token is only in arguments
    value_begun = mark(arg + "_value")
    careless_value = p.choice(value_begun, p.peek(p.chars("^<", 1, 1)))

    raw = keyed_value(call, arg, line=line, after=after)
    ended = _closed(p, close, p.space() + p.peek(key | closer))

    def valued(argument: Argument, opener: Node) -> Node:
        return (opener + p.value(argument, raw) if value is None else value(argument)) + ended

    def careless(argument: Argument) -> Node:
        any_end = p.choice(key_end + again(p, key_end, 8), p.space() + p.peek(value_begun))
        name = p.arg_name(argument, r"[^<>\n]") + any_end
        return name + p.space() + valued(argument, careless_value) + p.space()

    def argument(argument: Argument) -> Node:
        name = p.arg_name(argument, r"[^<>\n]") + key_end
        written = key + name + p.space(line) + valued(argument, value_begun) + p.space(after)
        return p.reads(written, written, no_value, careless_key + careless(argument))

    def one(tool: Tool, known: Node | str = "", closer: Node = closer) -> Node:
        early = p.reads("", p.optional(closer + p.space() + p.peek(key)))
        header = p.space() + p.name(tool) + known + begun + stray + early
        over = p.reads(closer, closer, p.peek(another))
        return header + p.each_arg(tool, argument) + p.space(end) + over

    def misnamed(name: str) -> list[Node]:
        open, close = p.token(f"<{name}>"), p.token(f"</{name}>")
        declared = open + p.each_tool(lambda tool: one(tool, p.declared(), close))
        return [declared, open << p.json_calls() << close]

    def unopened(tool: Tool) -> Node:
        """A call whose first key has no opener."""
        arguments = p.each_arg(tool, lambda argument: p.optional(key) + careless(argument))
        return p.space() + p.name(tool) + p.declared() + p.space() + p.peek(key_text) + arguments + closer

    json = opener << p.json_calls() << closer
    # A name alone between the tags, in the middle of a line that goes on, is prose.
    over = p.chars(r" \t\r", 0) + p.choice(*p.stops, "\n", p.end(), opener, key)
    prose = opener + p.chars(r"^<>\n ") + p.chars(" ", 0) + closer + p.negate(over)
    whole = p.reads("", p.choice(p.negate(prose), p.line_start())) + opener + p.each_tool(one)
    return p.reads(
        whole, whole, json, opener + p.each_tool(unopened), *(way for name in also for way in misnamed(name))
    )


def headed_call(p: Builder, call: str = "tool_call") -> Node:
    """One call: a name and JSON, which nothing closes. ``<tool_call>NAME>{"city": "Oslo"}``"""

    def one(tool: Tool) -> Node:
        end = p.reads(">", p.space() + ">")
        return p.space() + p.name(tool) + end + p.space() + p.args(tool)

    return (p.token(f"<{call}>") << p.each_tool(one)) + again(p, p.token(f"</{call}>"), 1)


def keyed_value(
    call: str = "tool_call", arg: str = "arg", *suffixes: str, line: str = "", after: str = "", sep: str = ""
) -> Raw:
    """The value of a `keyed_call`. ``suffixes``: what the tags of a checkpoint have after their names; ``sep``: the
    name of the tag after the call's name, if there is one."""

    def tags(name: str) -> tuple[str, ...]:
        return tuple(f"<{name}{suffix}>" for suffix in (*suffixes, ""))

    named: list[tuple[str, str]] = []
    seams: list[tuple[str, str]] = []
    kinds = (call, "/" + call, arg + "_key", f"/{arg}_key", arg + "_value", sep or arg + "_key")
    for open, close, key, key_end, value, begun in zip(*map(tags, kinds), strict=True):
        named += [(after + key, key_end + text) for text in dict.fromkeys((line + value, value, ""))]
        seams += _seams(line + close, open, "", line, tuple(dict.fromkeys((key, close, begun))))
    return Raw(tags(f"/{arg}_value"), named=tuple(named), seams=tuple(seams))


def _seams(close: str, open: str, end: str, gap: str, tags: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """What comes between two calls, where it ends a value whose closer is missing: the texts before and after the
    name of a tool. ``end``: the end of the header; ``gap``: the white space after it; ``tags``: those of which one
    follows."""
    before = [close + space + open for space in ("", "\n")]
    after = [end + space + tag for space in dict.fromkeys((gap, "")) for tag in tags]
    return tuple((one, other) for one in before for other in after)


def invoke(
    p: Builder,
    tool: Tool,
    space: str = "",
    gap: str = "\n",
    name: Node | None = None,
    section: str = "",
) -> Node:
    """One call whose tags name it and its arguments in quotes. ``<invoke name="…">…</invoke>``

    ``space``: the tags' namespace, such as ``"atem:"``. ``gap``: the white space between tags. ``name``: the tool's
    name, where it is not written as it is. ``section``: what ends all calls; it ends this one too.
    """
    quote = p.reads('"', '"', "'", "")
    end = f"</{space}invoke>"

    another = f'<{space}invoke name="'
    after = ('">', gap, (f"<{space}parameter name=", end))
    seams = _seams(gap + end, another, *after)
    if section:
        seams += _seams(gap + end + gap + section, "<" + section[2:] + gap + another, *after)

    def argument(arg: Argument) -> Node:
        begin = f"<{space}parameter name="
        opener = begin + quote + p.arg_name(arg, _ATTRIBUTE) + quote + ">"
        closer = f"</{space}parameter>"
        raw = Raw(closer, named=((gap + begin + '"', '">'),), seams=seams)
        ended = _closed(p, closer, p.space() + p.peek(p.choice(begin, end)))
        return opener + p.value(arg, raw) + ended + p.space(gap)

    attributes = p.chars(r"^<>\n", 1) + ">"
    begun = p.reads(">", ">", p.peek(f"<{space}parameter name="), attributes)
    opener = f"<{space}invoke name=" + quote + (p.name(tool) if name is None else name) + quote + begun
    ended = p.reads(end, end, p.space() + p.peek(p.token(section) | another)) if section else end
    return opener + p.space(gap) + p.each_arg(tool, argument) + ended + again(p, end)


def addressee(p: Builder, tool: Tool) -> Node:
    """The tool to which a message is addressed whose call names it again. Parses any name."""
    return p.reads(p.same_name(tool), p.chars(r"^<\r\n"))


def python_call(p: Builder, begun: Node | str = "", by_place: bool = True) -> Node:
    """One call as in Python. ``get_weather(city="Oslo", days=2)``

    ``begun``: what the parser must find after the name, so that prose is no call. ``by_place``: whether values
    may come without names.
    """
    comma = p.space() + "," + p.space(" ")
    missing = p.chars(r" \t\r\n") + p.peek(p.chars(r"\w") + p.space() + "=")
    comma = p.reads(comma, comma, missing)

    def argument(arg: Argument) -> Node:
        return p.arg_name(arg) << "=" << p.value(arg, Python())

    def call(tool: Tool) -> Node:
        end = p.reads(")", p.space() + ")", p.space() + "," + p.space() + ")")
        return (
            p.name(tool) + p.reads("", begun)
            << "("
            << p.each_arg(tool, argument, comma, Python() if by_place else None)
        ) + end

    return p.each_tool(call)


def python_lines(p: Builder) -> Node:
    """Calls as in Python, one on each line, which nothing marks: a whole line. For parsing only."""
    return p.calls(python_call(p, begun=_in_line(p, ")"), by_place=False), p.space())


def python_list(p: Builder) -> Node:
    """The same as a list, ``[get_weather(city="Oslo")]``, on a line of its own. For parsing only."""
    return p.array(python_call(p, begun=_in_line(p, ")]"), by_place=False))


def _in_line(p: Builder, end: str) -> Node:
    """After the name of a call in a line that nothing marks: its arguments are named, and ``end`` ends the line."""
    ended = end + p.chars(r" \t\r", 0) + ("\n" | p.end())
    line = p.many(p.chars(r"^)\n") | p.negate(ended) + ")") + ended
    named = p.space() + "(" << (p.chars(r"\w") << "=" | ")")
    return p.peek(named) + p.peek(line)


def sections(p: Builder, answer: str) -> Node:
    """A turn of sections between tokens: thoughts, calls as an array of JSON with ids, and the answer.

    ``answer``: the name in the tokens around the answer. Models also write the other family's.
    """
    number = p.chars("0-9", 1, 4)
    call = p.json_call(id="tool_call_id", name="tool_name", args="parameters", id_pattern=number)
    action = p.token("<|START_ACTION|>") << listed(p, call, "\n    ") << p.token("<|END_ACTION|>")
    names = dict.fromkeys((answer, "RESPONSE", "TEXT"))
    begin, end = ([p.token(f"<|{side}_{name}|>") for name in names] for side in ("START", "END"))
    response = p.span(p.reads(begin[0], *begin), p.reads(end[0], *end), optional=True)
    return p.think("<|START_THINKING|>", "<|END_THINKING|>") + p.body(action, content=response)


def again(p: Builder, tag: Node | str, most: int | None = None) -> Node:
    """A tag that models may write again; not generated. ``most``: how often, for a tag before a value. Where no value
    follows, a run is read anew from each of its tags, so without a bound it would cost its square."""
    more = p.space() + tag
    return p.reads("", p.many(more) if most is None else p.repeat(more, 0, most))


def _closed(p: Builder, tag: Node | str, *careless: Node | str) -> Node:
    """A closing tag. Models also write it again, or ``careless`` in its place."""
    return p.reads(tag, tag + again(p, tag), *careless)


def call_id(p: Builder) -> Node:
    """A call's id in its tag."""
    return p.token("[CALL_ID]") + p.id(p.chars("a-zA-Z0-9", 9, 9))


def bracket_calls(p: Builder, header: Node | str = "") -> Node:
    """Calls in bracket tags. ``header``: the text that the family writes between a call's name and its arguments."""
    any_header = p.reads(header, p.optional(call_id(p)))

    def call(tool: Tool) -> Node:
        return p.name(tool) + any_header + _bracket_args(p) + p.args(tool)

    tag, call_list = p.token("[TOOL_CALLS]"), p.each_tool(call)
    return p.calls(tag + again(p, tag, 8) << p.reads(call_list, call_list, p.json_calls()))


def bracket_start(p: Builder, calls: Node) -> Node:
    """Calls that begin the turn; the parser also reads ``get_weather[TOOL_CALLS]{…}`` there."""
    named = p.name(ANY_TOOL) + p.token("[TOOL_CALLS]")
    word = p.tag(Tag.CALL, named + _bracket_args(p) + p.args(ANY_TOOL))
    return p.reads(calls, calls, word)


def _bracket_args(p: Builder) -> Node:
    """The tag before a call's arguments, which models leave out."""
    tag = p.token("[ARGS]")
    return p.reads(tag, tag, p.space() + p.peek("{"))


_MISSPELT = (
    "<｜tool_calls_begin｜>",
    "<｜tool calls begin｜>",
    "<｜tool\\_calls\\_begin｜>",
    "<｜tool▁calls｜>",
)


def deepseek_section(p: Builder, call: Node, separator: Node, kind: str = "") -> Node:
    """The calls of a turn: each in a pair of tokens, and all of them in another pair. Models of this family also write
    V3.1's form, with or without a fence around the arguments, or a brace too many. ``kind``: what stands there in place
    of a name."""
    begin, sep = p.token("<｜tool▁calls▁begin｜>"), p.token("<｜tool▁sep｜>")
    fence = p.space() + p.optional("```" + p.optional("json") + p.space()) + p.peek("{")

    def other(tool: Tool) -> Node:
        named = p.negate(kind + sep) + p.name(tool) if kind else p.name(tool)
        header = named + sep + fence
        return header + p.args(tool) + p.optional(spare(p)) + p.space() + p.optional("```")

    written = p.reads(call, p.each_tool(other), call)
    one = p.token("<｜tool▁call▁begin｜>") + written << p.token("<｜tool▁call▁end｜>")
    end = p.expected(p.space() + p.token("<｜tool▁calls▁end｜>"))
    calls = p.calls(one, separator)
    section = (p.reads(begin, begin, *_MISSPELT) << calls) + end
    return p.reads(section, section, calls + end)


_WRAPPERS = ("arguments", "input")
_SECTIONS = ("function_calls", "tool_calls", "toolcalls", "calls")


def marked_section(p: Builder, mark: str, section: str, gap: str = "") -> Node:
    """Invocations in tags that hold a token, ``mark``. Each value says whether it is a string. ``section``: the name of
    the tag around all calls. ``gap``: the white space after ``mark``.

    Models also write all arguments as one object, bare, or as the value of an argument or a member that the tool has not. The token
    in a closing tag is a node of its own, so that it counts as a token in all tags.
    """
    space = p.space(gap)
    open, close = f"<{mark}" + space, "</" + p.token(mark) + space
    ends = tuple(dict.fromkeys(f"</{mark}{white}parameter>" for white in (gap, "", " ")))
    over, begun = f"</{mark}{gap}invoke", f'<{mark}{gap}invoke name="'
    seams = _seams(f"\n{over}>", begun, '">', "\n", (f"<{mark}{gap}parameter name=", over))
    plain = [(f"</parameter>\n{text}", "") for text in (f"<{mark}{gap}", over)]
    last = [(f"\n{over}>{white}</{mark}{gap}{section}", "") for white in ("", "\n")]
    key = f'\n<{mark}{gap}parameter name="'
    named = [(key, end) for end in ('" string="true">', '" string="false">', '">')]
    raw = Raw(ends, named=(*named, *plain, *last), seams=seams)

    def argument(arg: Argument) -> Node:
        string = ' string="true">' + p.value(arg, replace(raw, type="string"))
        json = ' string="false">' + p.value(arg, replace(raw, type="json"))
        typed = string | json
        value = p.reads(typed, typed, p.space() + ">" + p.value(arg, raw))
        name = p.reads(open, open, "<") + 'parameter name="' + p.arg_name(arg, r'[^"<>\n]') + '"'
        ended = close + "parameter>"
        missing = p.space() + p.peek(open + "parameter " | close + "invoke>")
        closer = _closed(p, ended, "</parameter>", missing)
        return name + value + closer + p.space("\n")

    def wrapped(tool: Tool, name: str) -> Node:
        opener = p.declared(lacks=name) + open + f'parameter name="{name}"' + p.chars("^<>", 0) + ">"
        object_or_end = p.peek(p.choice("{", p.negate(p.any())))
        value = p.space() + object_or_end + p.args(tool) + p.space()
        return opener + value + close + "parameter>" + p.space()

    def member(tool: Tool, name: str) -> Node:
        """All arguments as the only member of another object."""
        opener = p.declared(lacks=name) + "{" << f'"{name}"' << ":"
        return opener << p.peek("{") + p.args(tool) << "}" + p.space()

    def invoke(tool: Tool) -> Node:
        tagged = p.each_arg(tool, argument)
        others = (way(tool, name) for way in (wrapped, member) for name in _WRAPPERS)
        arguments = p.reads(tagged, *others, tagged)
        another = open + 'invoke name="'
        header = p.reads(">", "/>", ">" + _no_other(p, another), p.peek(open + "parameter "))
        opener = another + p.name(tool) + '"' << header + p.space("\n")
        ended = close + "invoke>"
        missing = p.peek(close + p.choice(*_SECTIONS) + ">" | another)
        return opener + arguments + p.reads(ended, ended, "</invoke>", p.space() + missing)

    name = p.reads(section, *_SECTIONS)
    calls, end = p.calls(p.each_tool(invoke), p.space("\n")), p.space("\n") + close + name + ">"
    whole = open + name + ">" + p.space("\n") + calls + end
    return p.reads(whole, whole, calls + p.optional(end))


def marked_end(p: Builder, mark: str) -> Node:
    """The closing tag of a `marked_section` that is not open."""
    return "</" + p.token(mark) + p.space() + p.choice(*_SECTIONS) + ">"
