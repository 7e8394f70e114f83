"""Writes the document of a format.

The format's function builds its tree once more, with a builder that keeps what a request would decide: whether there
are tools, and the stops. ``make(tool)`` is called with a placeholder, whose name nothing else spells. So one document
says every tree of the format. A function that asks a request or a tool for more than that cannot be written as data,
and the error says what to write instead.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NoReturn

from ..answers import nodes as n
from ..answers.format import Format
from ..answers.idioms import Builder, Options, escaped
from ..answers.nodes import Node, Nodelike, Tag, as_node
from ..core.wrong import described, wrong
from ..errors import DefinitionError, author_line
from ..schema.tools import Argument, Tool
from .kinds import IF_TOOLS, OPTIONAL, ROWS, IfTools
from .parts import STOPS, VERSION, Data

_NAME = {Tag.NAME: "\uf8f0", Tag.ARG_NAME: "\uf8f1"}
"""The names of the placeholders."""
_SHARED = 60
"""The fewest characters of a node that is written once and used in several places."""


class _Asked(str):
    """A name that must not be compared."""

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str) and not str.__eq__(self, other):
            raise DefinitionError(
                f"it compares the name it is given with {other!r}; a document makes all calls alike: write the call of "
                f"one tool as p.each_tool(make, {other}=…)"
            )
        return str.__eq__(self, str(other))

    __hash__ = str.__hash__


def _unknown(given: str, name: str) -> NoReturn:
    if name.startswith("__"):
        raise AttributeError(name)
    raise DefinitionError(
        f"it asks for the {name} of the {given}; a document makes all calls alike: pass the {given} on to the builder"
    )


class _AnyTool(Tool):
    __slots__ = ()

    def __init__(self) -> None:
        object.__setattr__(self, "name", _Asked(_NAME[Tag.NAME]))

    def __getattr__(self, name: str) -> Any:
        _unknown("tool", name)


class _AnyArgument(Argument):
    __slots__ = ()

    def __init__(self) -> None:
        object.__setattr__(self, "name", _Asked(_NAME[Tag.ARG_NAME]))

    def __getattr__(self, name: str) -> Any:
        _unknown("argument", name)

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = Argument.__hash__


_TOOL, _ARGUMENT = _AnyTool(), _AnyArgument()


class _Recorder(Builder):
    """Builds a tree that keeps what a request decides."""

    def __init__(self) -> None:
        super().__init__(Options(tools=True), (STOPS,))

    @property
    def options(self) -> Options:
        raise DefinitionError(
            "build asks for p.options; a document says a tree for all of them: write p.if_tools(with, without)"
        )

    def if_tools(self, node: Nodelike, otherwise: Nodelike | None = None) -> Node | None:
        return IfTools(as_node(node), None if otherwise is None else as_node(otherwise))


def to_data(format: Format) -> dict[str, Any]:
    """The document of ``format``. Raises `DefinitionError` for a function that data cannot say."""
    try:
        writer = _Writer()
        tree = writer.node(format.build(_Recorder()))
    except DefinitionError as error:
        raise DefinitionError(
            f"format {format.name!r} cannot be written as data: {error}"
        ) from error.__cause__
    except Exception as error:  # whatever an author's code raises
        what = f"build failed: {type(error).__name__}: {error}{author_line(error)}"
        raise DefinitionError(f"format {format.name!r} cannot be written as data: {what}") from error
    shared = _Shared(writer.contents, tree)
    document = {"chat_format": VERSION, "name": format.name, "title": format.title, "url": format.url}
    lists = {name: list(getattr(format, name)) for name in ("aliases", "models", "markers", "stops")}
    document |= {name: texts for name, texts in lists.items() if texts}
    document["tree"] = shared.expanded(tree)
    if shared.found:
        document["shared"] = shared.found
    return document


class _Ref(int):
    """A node that was written: its place in `_Writer.contents`."""


class _Writer:
    """Writes nodes. Equal nodes are written once, so that a tree which shares its parts costs no more than they do."""

    def __init__(self) -> None:
        self.contents: list[Data] = []
        self.places: dict[str, _Ref] = {}
        self.known: dict[int, tuple[Node, _Ref]] = {}

    def node(self, node: Node) -> _Ref:
        kept = self.known.get(id(node))
        if kept is None:
            content = self.content(node)
            key = json.dumps(content, default=repr)
            found = self.places.setdefault(key, _Ref(len(self.contents)))
            if found == len(self.contents):
                self.contents.append(content)
            kept = self.known[id(node)] = (node, found)
        return kept[1]

    def content(self, node: Node) -> Data:
        if isinstance(node, n.Literal):
            return self.literal(node)
        if isinstance(node, n.Sequence):
            return [self.node(item) for item in node.items]
        if isinstance(node, IfTools):
            return IF_TOOLS.write(self, node)
        if isinstance(node, n.Tagged) and node.tag is Tag.THOUGHT and isinstance(node.node, n.Think):
            node = node.node
        if isinstance(node, (n.Name, n.JsonName)) and node.tag is not Tag.ID:
            node = _unnamed(node)
        row = (
            OPTIONAL
            if isinstance(node, n.Many) and (node.least, node.most) == (0, 1)
            else ROWS.get(type(node))
        )
        if row is None:
            raise DefinitionError(f"{type(node).__name__} is no kind of node: use what the builder makes")
        return row.write(self, node)

    def literal(self, node: n.Literal) -> Data:
        for tag, mark in _NAME.items():
            if mark in node.text:
                given = "tool" if tag is Tag.NAME else "arg"
                mend = f"write p.same_name({given}), or p.name(tool) or p.arg_name(arg) where it is read"
                wrong(f"{given}.name", "it stands in a text", mend)
        return {"stops": True} if node.text == STOPS else node.text

    # what an author's function makes

    def call(self, node: n.EachTool) -> _Ref:
        return self.made("p.each_tool", node.make(_TOOL), node.any)

    def own(self, node: tuple[tuple[str, Callable[[Tool], Node]], ...]) -> Data:
        return {name: self.node(_untagged(make(_TOOL))) for name, make in node}

    def argument(self, node: n.EachArg) -> _Ref:
        return self.made("p.each_arg", node.make(_ARGUMENT), node.any)

    def made(self, method: str, given: Node, any: Node) -> _Ref:
        """What is made for each tool, or each argument. Raises `DefinitionError` if the parser reads something else."""
        found, read = self.node(_untagged(given)), self.node(_untagged(any))
        if not self.alike(found, read):
            what = "make() makes for the placeholder of all what it makes for none of them"
            wrong(
                method, what, "make the same, and write what the parser reads with p.reads(generated, parsed)"
            )
        return found

    def alike(self, made: Data, read: Data) -> bool:
        """Whether the parser reads both alike."""
        if type(made) is not type(read):
            return False
        if isinstance(made, _Ref):
            return made == read or self.alike(self.contents[made], self.contents[read])
        if isinstance(made, list):
            return len(made) == len(read) and all(map(self.alike, made, read))
        if not isinstance(made, dict):
            return bool(made == read)
        if "read" in made and "read" in read:
            return self.alike(made["read"], read["read"])
        return made.keys() == read.keys() and all(self.alike(made[key], read[key]) for key in made)


def _untagged(node: Node) -> Node:
    """The call in its tag, which each one has."""
    return node.node if isinstance(node, n.Tagged) and node.tag is Tag.CALL else node


def _unnamed(node: n.Name | n.JsonName) -> Node:
    """The node of a name without what it writes, which is the name that is given."""
    mark = _NAME[node.tag]
    written = escaped(mark, node.escapes) if isinstance(node, n.Name) else mark
    if node.generate not in (None, n.Literal(written)):
        wrong(node, f"it writes {described(node.generate)}, and not the name that is given", "pass it on")
    return replace(node, generate=None)


class _Shared:
    """The nodes that are in several places, each with a name."""

    def __init__(self, contents: list[Data], tree: _Ref) -> None:
        self.contents = contents
        self.uses: dict[_Ref, int] = {}
        self.names: dict[_Ref, str] = {}
        self.found: dict[str, Data] = {}
        left = [tree]
        while left:
            for ref in _refs(contents[left.pop()]):
                self.uses[ref] = self.uses.get(ref, 0) + 1
                if self.uses[ref] == 1:
                    left.append(ref)

    def expanded(self, data: Data) -> Data:
        """``data`` with the nodes in it."""
        if isinstance(data, list):
            return [self.expanded(item) for item in data]
        if isinstance(data, dict):
            return {key: self.expanded(item) for key, item in data.items()}
        if not isinstance(data, _Ref):
            return data
        if data not in self.names:
            content = self.expanded(self.contents[data])
            if self.uses.get(data, 0) < 2 or len(json.dumps(content, ensure_ascii=False)) < _SHARED:
                return content
            self.names[data] = self.named(content)
            self.found[self.names[data]] = content
        return {"use": self.names[data]}

    def named(self, content: Data) -> str:
        """A new name that begins with the kind of the node."""
        kind = "sequence" if isinstance(content, list) else next(iter(content), "")
        number = sum(name.split("-")[0] == kind for name in self.found) + 1
        return kind if number == 1 else f"{kind}-{number}"


def _refs(data: Data) -> Iterator[_Ref]:
    """The nodes in ``data``."""
    if isinstance(data, _Ref):
        yield data
    elif isinstance(data, (list, dict)):
        for item in data.values() if isinstance(data, dict) else data:
            yield from _refs(item)
