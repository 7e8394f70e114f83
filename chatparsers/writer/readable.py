"""Which names of a request the parser reads back from what its format writes for them.

The parser reads a declared name whatever it holds (`names`), but a format may leave no way to do so: a name may be too
long, or begin like what comes beside it, or be the beginning of another name. So each unusual name is tried: a call
that holds it is written and read. A name that holds what ends the turn cannot be written at all; nor can one that holds
a special token where the format writes it twice, because an engine may spell the two in different ways.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..answers.features import Definition
from ..answers.idioms import Options
from ..answers.nodes import SameName
from ..core.tree import walk
from ..errors import RequestError
from ..schema.tools import Tool, Toolset, read_tools
from ..streams.start import start
from ..streams.stream import Stream, begun
from .turn import Call, write

_usual = re.compile(r"[A-Za-z0-9_-]{1,256}").fullmatch


def check_names(format: Definition, calls: Iterable[Call], tools: Toolset) -> None:
    """Raises `RequestError` for a name that the format cannot write so that its parser reads it back."""
    for call in calls:
        name, arguments = call.name, [key for key, _ in call.members]
        if _usual(name) and all(map(_usual, arguments)):
            continue
        known = tools.get(name)
        declared = dict.fromkeys([*(() if known is None else known.arguments), *arguments])
        tool = Tool(name, {"type": "object", "properties": {argument: True for argument in declared}})
        for wrong in unreadable(format, tool, tools.names()):
            if wrong == name or wrong in arguments:
                raise RequestError(
                    f"the format {format.name!r} cannot write the name {wrong!r}: its parser would not read it back"
                )


def check_values(format: Definition, text: str, calls: Iterable[Call], tools: Toolset) -> None:
    """Raises `RequestError` if the parser does not read the calls back from ``text``, which the format wrote for them.

    Only a schema tells the type of a text, so one that no tool declares may be read as another type.
    """
    wanted = [(call.name, json.loads(call.arguments)) for call in calls]
    if not wanted:
        return
    known = tools or read_tools([{"name": name} for name in dict.fromkeys(name for name, _ in wanted)])
    message = read(format, text, known).message
    found = [(call.name, call.parsed_arguments) for call in message.tool_calls]
    for index, (name, arguments) in enumerate(wanted):
        tool = known.get(name)
        declared = () if tool is None else tool.arguments
        back = found[index] if index < len(found) else ("", None)
        wrong = next(
            (key for key in arguments if not _same(key, arguments, back[1] or {}, key in declared)), None
        )
        if wrong is not None or back[0] != name or back[1] is None or len(back[1]) != len(arguments):
            what = "the call" if wrong is None else f"the argument {wrong!r} of the call"
            raise RequestError(
                f"the format {format.name!r} cannot write {what} of {name!r}: its parser would not read it back. "
                "Declare the name with its type, or leave the format's own markers out of the value"
            )


def _same(key: str, wanted: dict[str, Any], found: dict[str, Any], declared: bool) -> bool:
    if key not in found:
        return False
    loose = not declared and isinstance(wanted[key], str) and not isinstance(found[key], str)
    return loose or bool(wanted[key] == found[key])


def read(format: Definition, text: str, tools: Toolset) -> Stream:
    """A stream that has read the whole turn ``text``."""
    stream = begun(start(format, Options(tools=True), ""), tools)
    stream.feed(text)
    stream.finish()
    return stream


def unreadable(format: Definition, tool: Tool, tools: tuple[str, ...]) -> tuple[str, ...]:
    """The names that the parser does not read back: the tool's, or those of its arguments.

    ``tools``: the names of all tools of the request.
    """
    names = tuple(tool.arguments)
    odd = [name for name in names if isinstance(name, str) and not _usual(name)]
    if not odd and _usual(tool.name):
        return ()
    ends = _any_of(format.stops)
    marks = _any_of(format.preserved_tokens if _writes_twice(format) else ())
    if not _usual(tool.name) and (ends(tool.name) or not _reads(format, tool.name, names, {}, tools)):
        return (tool.name,)
    return tuple(
        name
        for name in odd
        if ends(name)
        or marks(name)
        or not _reads(format, tool.name, names, {name: "x"}, tools)
        or not all(_reads(format, tool.name, names, one, tools) for one in _misleading(name, names))
    )


def _any_of(texts: tuple[str, ...]) -> Callable[[str], object]:
    return re.compile("|".join(map(re.escape, texts)) or "(?!)").search


def _writes_twice(format: Definition) -> bool:
    """Whether the name of an argument is in its closing tag too."""
    return any(isinstance(node, SameName) for node in walk(format.tree(Options(tools=True))))


def _misleading(name: str, names: tuple[str, ...]) -> Iterator[dict[str, str]]:
    """Arguments whose value goes on as if the longer ``name`` were theirs."""
    for shorter in names:
        rest = name[len(shorter) :]
        if rest and name.startswith(shorter):
            for at in range(1, min(len(rest), 64) + 1):
                yield {shorter: rest[at:] + rest[:at] + "x"}


def _reads(
    format: Definition, name: str, names: tuple[str, ...], arguments: dict[str, str], tools: tuple[str, ...]
) -> bool:
    """Whether a call of the tool with these arguments is read as it was written."""
    schema = {"type": "object", "properties": {key: {"type": "string"} for key in names}}
    other: list[dict[str, Any]] = [{"name": one} for one in tools if one != name]
    declared = [{"name": name, "parameters": schema}, *other]
    known, options = read_tools(declared), Options(tools=True)
    call = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
    message = read(format, write(format, format.tree(options), {"tool_calls": [call]}, known), known).message
    found = [(call.name, call.complete and json.loads(call.arguments)) for call in message.tool_calls]
    return found == [(name, arguments)] and not message.content
