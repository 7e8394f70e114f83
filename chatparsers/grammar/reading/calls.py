"""The calls of a grammar: each tool by its name, its arguments one by one or as one object."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...answers import nodes as n
from ...answers.nodes import Node, Tag
from ...core.tree import walk
from ...errors import DefinitionError, SchemaError
from ...schema.tools import ANY_ARGUMENT, ANY_TOOL, Argument, Tool
from ...writer.readable import unreadable
from ..ir import EMPTY, NOTHING, Ir, Lang, Text, alt, never
from ..schemas import TWICE, Located, Output
from .place import At, OtherName
from .request import Request
from .values import JSON, ValueReader

_OBJECT: Mapping[str, Any] = {"type": "object"}


class Uncallable(SchemaError):
    """A tool of which no call is valid."""


def _of_any_object(tool: Tool) -> Tool:
    """The tool without its schema: any object is right."""
    return Tool(tool.name, _OBJECT, tool.description)


class CallReader(ValueReader):
    """Reads the nodes of calls."""

    def __init__(self, request: Request, output: Output) -> None:
        super().__init__(request, output)
        self._spelt: set[str] = set()
        """The tools whose name can be written in at least one place."""
        self._left_out: set[str] = set()
        """The tools that no call can be written of."""
        self._unreadable: dict[str, tuple[str, ...]] = {}
        """The names that the parser would not read back, of each tool."""

    def each_tool(self, node: n.EachTool, at: At) -> Ir:
        """A call of each tool."""
        options: list[Ir] = []
        for tool in self.tools:
            unread = self._unread(tool)
            if tool.name in unread or not self._ordinary(node, tool) or tool.name in self._left_out:
                continue
            self._spelt.add(tool.name)
            try:
                meant = tool if tool.strict else _of_any_object(tool)
                options.append(self._call(node.call(meant), meant, at))
            except Uncallable as error:
                self._leave_out(tool, error)
            except SchemaError as error:
                if self._forced:
                    raise
                meant = _of_any_object(tool)
                options.append(self._call(node.call(meant), meant, at))
                why = f"the tool is guided to its name and any object: {error}"
                self.output.tell(f"$.tools.{tool.name}", "*", why)
        return alt(*options)

    @property
    def _forced(self) -> bool:
        """Whether the model must call the only tool that there is."""
        return self.request.options.mode != "auto" and len(self.tools) == 1

    def _call(self, call: Node, tool: Tool, at: At) -> Ir:
        """A call of a tool. Raises SchemaError if there is none."""
        made = self.read(call, replace(at, tool=tool, call=call))
        if never(made):
            raise Uncallable(
                f"no arguments are valid for the tool {tool.name!r}: it could never be called",
                f"$.tools.{tool.name}.parameters",
            )
        return made

    def _leave_out(self, tool: Tool, error: SchemaError) -> None:
        """Leaves out a tool that cannot be called, where the model need not call it. Raises the error where it must, or
        if no tool is left."""
        self._left_out.add(tool.name)
        if self.request.options.mode != "auto" or len(self._left_out) == len(self.tools):
            raise error
        why = f"the tool is left out of the grammar: {error}"
        self.output.tell(f"$.tools.{tool.name}", "*", why)

    def check_names(self) -> None:
        """Leaves out the tools that no call can name, as `_leave_out` does."""
        for tool in self.tools:
            if tool.name not in self._spelt:
                why = (
                    f"the format cannot write the name of the tool {tool.name!r}, as its parser would not read it "
                    "back: use letters, digits, '_' and '-'"
                )
                self._leave_out(tool, SchemaError(why, f"$.tools.{tool.name}.name"))

    def each_arg(self, node: n.EachArg, at: At) -> Ir:
        """The arguments, written one by one."""
        tool = node.tool
        if tool is ANY_TOOL:
            raise DefinitionError("each_arg: make() must pass on the tool that it was given")
        form = _Arguments(self, node, tool, at)
        options = self.compiler(tool.document, JSON).arguments(_schemas(tool), form)
        if not options and form.refused:
            raise Uncallable(
                f"no value is valid for the required argument {form.refused!r} of the tool {tool.name!r}",
                f"$.tools.{tool.name}.parameters.properties.{form.refused}",
            )
        return alt(*options)

    def args(self, node: n.Args, at: At) -> Ir:
        """The arguments as one object."""
        tool = node.tool
        if tool is ANY_TOOL:
            raise DefinitionError("args: make() must pass on the tool that it was given")
        for name in self._unread(tool):
            self.output.tell(
                _schemas(tool)[0][1], "properties", f"the parser would not read the name {name!r} back"
            )
        return self.compiler(tool.document, node.syntax).value(_schemas(tool))

    def value(self, node: n.Value, at: At) -> Ir:
        """The value of one argument."""
        argument = node.argument
        if argument is ANY_ARGUMENT or at.tool is None:
            raise DefinitionError("value: make() must pass on the argument that it was given")
        path = f"$.tools.{at.tool.name}.parameters.properties.{argument.name}"
        return self.argument(node, list(at.schemas) or [(argument.schema, path)])

    def name(self, node: n.Name | n.JsonName | n.Header, at: At) -> Ir:
        """The name of a tool or an argument, or an id."""
        if at.other is not None and isinstance(node, n.Name) and node.tag is Tag.ARG_NAME:
            return at.other.made(node.chars, "".join(char for char, _ in node.escapes))
        if node.generate is None:
            raise DefinitionError("name: make() must pass on the tool or argument that it was given")
        return self.read(node.generate, at)

    def same_name(self, node: n.SameName, at: At) -> Ir:
        """A name, written again."""
        if at.other is not None:
            at.other.twice = True
            return NOTHING
        return Text(node.of.name)

    def _ordinary(self, node: n.EachTool, tool: Tool) -> bool:
        """Whether the tool's name has only characters of names here, or has others wherever it is written."""
        places = (part for part in walk(self.request.tree, True) if isinstance(part, n.EachTool))
        others = (part for part in places if part is not node)
        return _ordinary(node, tool) or not any(_ordinary(part, tool) for part in others)

    def _unread(self, tool: Tool) -> tuple[str, ...]:
        """The tool's name, and the names of its arguments, if the parser would not read them back."""
        found = self._unreadable.get(tool.name)
        if found is None:
            turn = self.request.turn
            found = unreadable(turn.format, tool, turn.tools.names())
            self._unreadable[tool.name] = found
        return found


class _Arguments:
    """The members of a tool's arguments, as a format writes them one by one."""

    def __init__(self, reader: CallReader, node: n.EachArg, tool: Tool, at: At) -> None:
        self.reader = reader
        self.node = node
        self.tool = tool
        self.at = at
        self.refused = ""
        """A required argument for which no value is valid."""
        self.separator = EMPTY if node.separator is None else reader.read(node.separator, at)

    def member(self, name: str, schemas: list[Located], required: bool, depth: int) -> Ir:
        if name in self.reader._unread(self.tool):
            why = f"the parser would not read the name {name!r} back: it is not generated"
            self.reader.output.tell(f"{schemas[0][1] if schemas else '$'}", "properties", why)
            self.refused = name if required else self.refused
            return NOTHING
        argument = self.tool.arguments.get(name)
        made = self.made(replace(self.tool.other, name=name) if argument is None else argument, schemas)
        if required and never(made):
            self.refused = name
        return made

    def other(self, name: Lang, schemas: list[Located], depth: int) -> Ir:
        other = OtherName(name)
        made = self.made(self.tool.other, schemas, other)
        if other.node is not None and name.parts:
            named = self.reader.output.names(other.node, schemas[0][1])
            if never(named):
                return NOTHING
            if named is not other.node:
                return self.other(Lang((), name.least, name.most), schemas, depth)
        if other.twice:
            self.reader.output.tell(schemas[0][1], "additionalProperties", TWICE)
        return made if never(made) else other.beside(made)

    def made(self, argument: Argument, schemas: list[Located], other: OtherName | None = None) -> Ir:
        at = replace(self.at, schemas=tuple(schemas), other=other)
        return self.reader.read(self.node.make(argument), at)

    def whole(self, body: Ir) -> Ir:
        return body


def _ordinary(node: n.EachTool, tool: Tool) -> bool:
    names = (part for part in walk(node.any, True) if isinstance(part, n.Name) and part.tag is Tag.NAME)
    return all(re.fullmatch(f"(?:{name.chars})+", tool.name) is not None for name in names)


def _schemas(tool: Tool) -> list[Located]:
    """The schemas of a tool's arguments, and that the arguments are an object."""
    path = f"$.tools.{tool.name}.parameters"
    parameters = tool.parameters
    if isinstance(parameters, Mapping) and parameters.get("type") == "object":
        return [(parameters, path)]
    return [(parameters, path), (_OBJECT, path)]
