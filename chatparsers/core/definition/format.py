"""A format: the syntax that one family of models writes, as data."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from os import urandom
from typing import TYPE_CHECKING, Any

from ...lazy import load_reference
from ..errors import DefinitionError, RequestError
from ..message import Message
from ..parser.tokenizer import read_tokenizer
from ..public import public
from ..schema.tool_shapes import AnyTool
from ..schema.tools import read_tools
from .check import check, check_model
from .idioms import Builder, Options
from .nodes import Args, Body, Calls, EachArg, Header, JsonName, Many, Name, Node, Tag, Tagged, Think
from .tree import children, tokens, walk
from .wrong import check_texts

if TYPE_CHECKING:
    from ..parser.stream import Piece
    from ..parser.turn import ToolChoice, Turn

__all__ = ["Features", "Format"]


@public
@dataclass(frozen=True, slots=True)
class Features:
    """Whether a format has reasoning, tool calls, several calls in a turn, and call ids that the model must write."""

    reasoning: bool
    tools: bool
    parallel: bool
    ids: bool


@public
@dataclass(frozen=True, repr=False)
class Format:
    """One wire format.

    ``build`` makes its tree. It is a module-level function, or a frozen dataclass with ``__call__`` if it is made at
    run time. Programs are cached by it. Two closures or partials are never equal, so each is compiled anew, for each
    unpickled stream too; and a stream of a closure cannot be pickled. ``markers``: texts that every rendering in this
    format holds. Detection tries first the formats whose markers are all there. Of several that fit, it names the one
    with the longest markers. ``stops``: the texts that end the turn. ``aliases``: other names of the format.
    ``models``: regular expressions for the names of its models, as `FormatRef` has them.
    """

    name: str
    title: str
    url: str
    build: Callable[[Builder], Node]
    markers: tuple[str, ...] = ()
    stops: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    models: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for option in ("markers", "stops", "aliases", "models"):
            check_texts(f"format {self.name!r}: {option}", getattr(self, option))
        for pattern in self.models:
            check_model(f"format {self.name!r}: models", pattern)

    def __hash__(self) -> int:
        # Programs, trees and features are kept by format, so it is asked for many times in a request.
        found: int | None = self.__dict__.get("_hash")
        if found is None:
            found = self.__dict__["_hash"] = hash((self.name, self.build, self.markers, self.stops))
        return found

    def __getstate__(self) -> dict[str, Any]:
        # Another process hashes texts in another way.
        return {name: value for name, value in self.__dict__.items() if name != "_hash"}

    def tree(self, options: Options) -> Node:
        """The format's tree for these options, built and checked once. Raises `DefinitionError` if it is wrong."""
        return _tree(self, replace(options, schema=None))

    @property
    def features(self) -> Features:
        """The features of the format, read from its tree."""
        return _features(self)

    @property
    def late_ids(self) -> bool:
        """Whether a call's id may come after its arguments. Then it is not known before the call's end."""
        return _late_ids(self)

    @property
    def preserved_tokens(self) -> tuple[str, ...]:
        """The special tokens that the engine must not drop from the text: the tokens of the tree."""
        return _preserved_tokens(self)

    def render(self, message: Mapping[str, Any] | Message, tools: Iterable[AnyTool] | None = None) -> str:
        """Writes ``message``, a `Message` or an OpenAI-shaped assistant's message, as a model of this format would.

        The text does not hold the end of the turn. ``tools``: the schemas of the tools that the message calls. The
        format's parser reads the message back from the text. Raises `RequestError` if the format has no place for a
        part of the message, or if its parser could not read a name back.
        """
        from ..parser.readable import check_names
        from .write import names_of, write

        plain = message.to_openai() if isinstance(message, Message) else message
        known = read_tools(tools)
        text = write(self, self.tree(Options(tools=True)), plain, known)
        check_names(self, names_of(plain), known)
        return text

    def parse(self, output: Piece, *, tools: Iterable[AnyTool] | None = None, prefix: str = "") -> Message:
        """The message of a whole output: ``bind(tools=tools, prefix=prefix).parse(output)``.

        Raises `RequestError` for malformed tools. `bind` has all options.
        """
        return self.bind(tools=tools, prefix=prefix).parse(output)

    def __repr__(self) -> str:
        return f"<Format: {self.name}, {self.title}>"

    def _repr_html_(self) -> str | None:
        """A notebook shows the railroad diagram, if the package that draws it is there."""
        try:
            shown: str = load_reference("chatparsers.display.diagram:diagram")(self).html()
        except ModuleNotFoundError:
            return None
        return shown

    def bind(
        self,
        *,
        tools: Iterable[AnyTool] | None = None,
        tool_choice: ToolChoice = "auto",
        parallel_tool_calls: bool = True,
        response_format: Mapping[str, Any] | None = None,
        thinking: bool | None = None,
        prefix: str = "",
        tokenizer: Any = None,
        id_seed: str | None = None,
        prompt: str = "",
        token_config: Mapping[str, Any] | None = None,
        polyfills: tuple[str, ...] = (),
    ) -> Turn:
        """A turn of this format.

        ``tools``, ``tool_choice``, ``response_format`` are OpenAI-shaped. Tools may have other shapes too, as in
        `Chat.prepare`, and ``response_format`` may be a JSON Schema. ``prefix`` is what the prompt already wrote
        of the assistant's turn, such as ``"<think>\\n"``. ``tokenizer``: a ``tokenizers.Tokenizer`` or a fast
        tokenizer of transformers, needed to feed ids. ``id_seed``: if the model gives a call no id, the id follows from
        this seed and the call's index; None makes new ids in each turn. ``prompt``, ``token_config`` and ``polyfills``
        are kept for the turn's user. Raises `RequestError` for a request that is malformed or contradicts itself. Warns
        if a tool's schema has Python's names of types (``int``, ``dict``), which are read as JSON's.
        """
        from ..parser.turn import Turn, read_choice, read_response_format, read_schema

        for name, text in (("prefix", prefix), ("prompt", prompt), ("id_seed", id_seed or "")):
            if not isinstance(text, str):
                raise RequestError(f"{name}: expected text, found {type(text).__name__}")
        if thinking is not None and not isinstance(thinking, bool):
            raise RequestError(f"thinking: expected True, False or None, found {type(thinking).__name__}")
        response_format = read_response_format(response_format)
        known = read_tools(tools)
        if known and known.respelt:
            warnings.warn(known.respelt, UserWarning, stacklevel=2)
        mode, named = read_choice(tool_choice, known)
        return Turn._made(
            format=self,
            tools=known,
            options=Options(
                tools=bool(known),
                mode=mode,
                parallel=bool(parallel_tool_calls) and named is None,
                thinking=thinking,
                schema=read_schema(response_format),
            ),
            named=named,
            response_format=response_format,
            prefix=prefix,
            prompt=prompt,
            tokenizer=read_tokenizer(tokenizer),
            token_config=token_config,
            id_seed=urandom(8).hex() if id_seed is None else id_seed,
            polyfills=polyfills,
        )


@lru_cache(maxsize=1024)
def _tree(format: Format, options: Options) -> Node:
    try:
        tree = _built(format, options)
        check(tree)
    except DefinitionError as error:
        raise DefinitionError(f"format {format.name!r}: {error}") from error
    return tree


def _built(format: Format, options: Options) -> Node:
    try:
        return format.build(Builder(options, format.stops))
    except (DefinitionError, KeyboardInterrupt):
        raise
    except BaseException as error:  # whatever an author's code raises
        raise DefinitionError(f"build failed: {type(error).__name__}: {error}") from error


@lru_cache(maxsize=1024)
def _features(format: Format) -> Features:
    nodes = list(walk(format.tree(Options(tools=True))))
    bodies = [n for n in nodes if isinstance(n, Body)]
    return Features(
        reasoning=any(isinstance(n, Think) for n in nodes) or any(b.reasoning is not None for b in bodies),
        tools=any(isinstance(n, Tagged) and n.tag is Tag.CALL for n in nodes),
        parallel=any(isinstance(n, Calls) for n in nodes),
        ids=any(map(_is_id, _written(format.tree(Options(tools=True))))),
    )


def _written(node: Node) -> Iterator[Node]:
    """``node`` and all nodes below it that are always generated."""
    yield node
    for child in children(node, True):
        if not (isinstance(child, Many) and child.least == 0):
            yield from _written(child)


@lru_cache(maxsize=1024)
def _preserved_tokens(format: Format) -> tuple[str, ...]:
    return tokens(format.tree(Options(tools=True)))


@lru_cache(maxsize=1024)
def _late_ids(format: Format) -> bool:
    calls = [n for n in walk(format.tree(Options(tools=True))) if isinstance(n, Tagged) and n.tag is Tag.CALL]
    return any(map(_has_late_id, calls))


def _has_late_id(call: Node) -> bool:
    nodes = iter(walk(call))
    arguments = any(isinstance(n, (Args, EachArg)) for n in nodes)
    return arguments and any(map(_is_id, nodes))


def _is_id(node: Node) -> bool:
    if isinstance(node, Header):
        return "(?P<id>" in node.pattern
    return isinstance(node, (Name, JsonName)) and node.tag is Tag.ID
