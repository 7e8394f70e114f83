"""A turn: one request bound to one format. It makes streams, parses whole outputs and writes the grammar."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ...lazy import load_reference
from ..definition.idioms import Options
from ..definition.nodes import Node
from ..errors import RequestError, did_you_mean
from ..message import Message
from ..public import made_by, public
from ..schema.tools import Toolset
from .alphabet import Alphabet
from .compile import program
from .machine import BROKEN_END, CALL_BEGIN, CALL_END, Item, Machine, Program
from .not_given import NotGiven
from .stream import Piece, Start, Stream, StreamOptions
from .tokenizer import Named
from .transcript import call_id

if TYPE_CHECKING:
    from ...grammar import Grammar
    from ..definition.format import Format

__all__ = [
    "Dialect",
    "GrammarReader",
    "ReasoningMode",
    "ToolChoice",
    "Turn",
    "read_choice",
    "read_response_format",
    "read_schema",
]

_GRAMMAR = "chatparsers.grammar:write"
_ID_FEED = "chatparsers.tokens.feed:id_feed"
_MARKER_IDS = "chatparsers.tokens.feed:marker_ids"
_STOP_IDS = "chatparsers.tokens.feed:stop_ids"
_PLAIN = Alphabet()


ToolChoice: TypeAlias = Literal["auto", "none", "required"] | str | Mapping[str, Any]
"""One of the three modes, or the function that the model must call: its name, or OpenAI's object that names it."""
Dialect: TypeAlias = Literal["gbnf", "lark", "structural_tag"]
GrammarReader: TypeAlias = Literal["llama.cpp", "xgrammar"]
ReasoningMode: TypeAlias = Literal["split", "inline"]


@public
@dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class Turn:
    """One request bound to one format: it makes streams, parses whole outputs and writes the grammar.

    Made by `Format.bind` and `Chat.prepare`; it does not change. The request asks the format's tree for ``options`` and
    ``named`` (the function that must be called, or None). ``token_config`` is as in generation_config.json.
    ``polyfills`` names what the template cannot write, so that it was written in another way.
    """

    format: Format
    tools: Toolset
    options: Options
    named: str | None
    response_format: Mapping[str, Any] | None
    prefix: str
    prompt: str
    tokenizer: Any
    token_config: Mapping[str, Any] | None
    id_seed: str
    polyfills: tuple[str, ...]

    def __init__(self) -> None:
        made_by("a turn", "Format.bind() or Chat.prepare()")

    @classmethod
    def _made(
        cls,
        *,
        format: Format,
        tools: Toolset,
        options: Options,
        named: str | None,
        response_format: Mapping[str, Any] | None,
        prefix: str,
        prompt: str,
        tokenizer: Any,
        token_config: Mapping[str, Any] | None,
        id_seed: str,
        polyfills: tuple[str, ...],
    ) -> Turn:
        turn = object.__new__(cls)
        keep = object.__setattr__
        keep(turn, "format", format)
        keep(turn, "tools", tools)
        keep(turn, "options", options)
        keep(turn, "named", named)
        keep(turn, "response_format", response_format)
        keep(turn, "prefix", prefix)
        keep(turn, "prompt", prompt)
        keep(turn, "tokenizer", tokenizer)
        keep(turn, "token_config", token_config)
        keep(turn, "id_seed", id_seed)
        keep(turn, "polyfills", polyfills)
        return turn

    def _replace(self, **changes: Any) -> Turn:
        """This turn with other values of some fields."""
        return Turn._made(**{**self._values(), **changes})

    def _values(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __repr__(self) -> str:
        tools = f"{len(self.tools.names())} tools" if self.tools else "no tools"
        parts = [self.format.name, tools, f"tool_choice={self.named or self.options.mode!r}"]
        parts += [f"prefix={self.prefix!r}"] if self.prefix else []
        parts += ["a tokenizer"] if self.tokenizer is not None else []
        return f"<Turn: {', '.join(parts)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, ({**self._values(), "tokenizer": Named(self.tokenizer)},)

    @property
    def tree(self) -> Node:
        """The format's tree for this request."""
        return self.format.tree(self.options)

    @property
    def stops(self) -> tuple[str, ...]:
        """The texts that end the turn."""
        return self.format.stops

    @property
    def preserved_tokens(self) -> tuple[str, ...]:
        """The special tokens that the engine must leave in the text: the format's markers."""
        return self.format.preserved_tokens

    def grammar(
        self,
        dialect: Dialect = "gbnf",
        *,
        engine: GrammarReader = "llama.cpp",
        additional_properties: bool = False,
        token_references: bool | None = None,
        max_size: int | None = None,
        max_work: int | None = None,
    ) -> Grammar | None:
        """The grammar that keeps the model to the format and the tools' schemas; None if nothing is constrained.

        ``dialect``: ``gbnf`` (llama.cpp, xgrammar), ``lark`` (llguidance) or ``structural_tag`` (xgrammar,
        vLLM, SGLang). ``engine``: who reads GBNF, because a token reference is spelt in two ways.
        ``additional_properties``: also generate members that an object's schema does not mention.
        ``token_references``: write each marker that is one token by its id; None: yes if the turn has a tokenizer.
        ``max_size`` (characters) and ``max_work`` (steps) limit what schemas may cost; None: 16,000,000 and 3,000,000.
        `chatparsers.grammar.write` says more of each. Raises `RequestError` for an unknown dialect or engine, and
        `SchemaError` for an invalid schema or a grammar that does not fit.
        """
        if not isinstance(dialect, str):
            raise RequestError(f"dialect: expected its name, found {type(dialect).__name__}")
        limits = {"max_size": max_size, "max_work": max_work}
        found: Grammar | None = load_reference(_GRAMMAR)(
            self,
            dialect,
            engine=engine,
            additional_properties=additional_properties,
            token_references=token_references,
            **{name: limit for name, limit in limits.items() if limit is not None},
        )
        return found

    def stream(
        self,
        *,
        strict: bool = False,
        reasoning: ReasoningMode = "split",
        skip_special_tokens: bool = True,
        token_text_fallback: bool = False,
    ) -> Stream:
        """A new stream for this turn.

        ``strict``: `feed` raises `OutputError` if the model leaves its format. ``reasoning``: ``"split"``, or
        ``"inline"`` to leave the reasoning in the content with its markers. Two options concern ids: with
        ``skip_special_tokens`` False, the text shows special tokens that are not markers of the format. With
        ``token_text_fallback``, a marker that the model spells out as ordinary text counts as a marker too.
        """
        if reasoning not in ("split", "inline"):
            raise RequestError(f"reasoning: expected 'split' or 'inline', found {reasoning!r}")
        options = StreamOptions(strict, reasoning == "inline", skip_special_tokens, token_text_fallback)
        return Stream._made(
            self._start(options, self.prefix, _PLAIN),
            None if self.tokenizer is None else partial(self.start_ids, options),
            strict,
            self.tools,
            self.id_seed,
        )

    def _start(self, options: StreamOptions, prefix: str, alphabet: Alphabet, ids: Any = None) -> Start:
        compiled = program(self.format, self.options, options.inline, alphabet.key)
        # A long prefix is read again each time, so that the kept machines are small.
        start = _started if len(prefix) <= _KEPT else _started.__wrapped__
        started, read, call = start(compiled, prefix)
        machine = started.copy()
        machine.tools = self.tools
        not_given = None
        if not self.tools and self.response_format is None and self.format.features.tools:
            not_given = NotGiven(self.format, self.options, alphabet.key, prefix).calls
        return Start(machine, len(prefix), read, call, ids, not_given)

    def start_ids(self, options: StreamOptions) -> Start:
        """How a stream of ids begins: with a program in which markers are single tokens."""
        feed = load_reference(_ID_FEED)(
            self.tokenizer,
            self.preserved_tokens,
            self.stops,
            config=self.token_config,
            skip_special_tokens=options.skip_special_tokens,
            token_text_fallback=options.token_text_fallback,
        )
        return self._start(options, feed.alphabet.encode(self.prefix), feed.alphabet, feed)

    def parse(
        self,
        output: Piece,
        *,
        strict: bool = False,
        reasoning: ReasoningMode = "split",
        skip_special_tokens: bool = True,
        token_text_fallback: bool = False,
    ) -> Message:
        """The message of a whole output, text or ids; the same as a stream's, whatever its pieces.

        The options are those of `stream`. Raises `OutputError` only in strict mode.
        """
        stream = self.stream(
            strict=strict,
            reasoning=reasoning,
            skip_special_tokens=skip_special_tokens,
            token_text_fallback=token_text_fallback,
        )
        stream.feed(output)
        stream.finish()
        return stream.message

    @property
    def marker_ids(self) -> dict[str, int]:
        """The id of each marker and stop that the tokenizer has as one token; empty without a tokenizer."""
        if self.tokenizer is None:
            return {}
        found: dict[str, int] = load_reference(_MARKER_IDS)(
            self.tokenizer, (*self.preserved_tokens, *self.stops)
        )
        return found

    @property
    def stop_ids(self) -> tuple[int, ...]:
        """The ids that end the turn, sorted; empty without a tokenizer."""
        if self.tokenizer is None:
            return ()
        return tuple(sorted(load_reference(_STOP_IDS)(self.tokenizer, self.stops, self.token_config)))

    @property
    def preserved_ids(self) -> tuple[int, ...]:
        """The ids of the preserved tokens that the tokenizer has as one token, sorted; empty without a tokenizer."""
        ids = self.marker_ids
        return tuple(sorted(ids[text] for text in self.preserved_tokens if text in ids))

    def call_id(self, index: int) -> str:
        """The id of the call at ``index`` if the model writes no id."""
        return call_id(self.id_seed, index)


_KEPT = 4096
"""The longest prefix, in characters, whose machine is kept."""


@lru_cache(maxsize=1024)
def _started(compiled: Program, prefix: str) -> tuple[Machine, int, tuple[Item, ...]]:
    """A machine that has read ``prefix``, which the prompt wrote; how many characters of the prefix are decided, which
    leaves out a call that the prefix leaves open; and the items read of that call."""
    machine = Machine(compiled, Toolset())
    if prefix:
        machine.feed(prefix)
    items = machine.take()
    begin = len(items)
    for index, item in enumerate(items):
        if item[0] == CALL_BEGIN:
            begin = index
        elif item[0] in (CALL_END, BROKEN_END):
            begin = len(items)
    return machine, sum(len(item[1]) for item in items[:begin]), tuple(items[begin:])


def read_choice(choice: ToolChoice, tools: Toolset) -> tuple[str, str | None]:
    """The mode, and the name of the function that the model must call. Raises `RequestError` for any other choice."""
    if isinstance(choice, Mapping):
        function = choice.get("function", choice)
        name = function.get("name") if isinstance(function, Mapping) else None
        if not isinstance(name, str) or name not in tools:
            raise RequestError(
                f"tool_choice: no tool is named {name!r}: {did_you_mean(str(name), tools.names())}"
            )
        return "required", name
    if not isinstance(choice, str):
        raise RequestError(
            "tool_choice: expected 'auto', 'none', 'required', a tool's name or an object that names one, "
            f"found {type(choice).__name__}"
        )
    if choice not in ("auto", "none", "required"):
        if choice in tools:
            return "required", choice
        raise RequestError(
            f"tool_choice: expected 'auto', 'none', 'required' or a tool's name, found {choice!r}: "
            f"{did_you_mean(choice, tools.names())}"
        )
    if choice == "required" and not tools:
        raise RequestError("tool_choice: 'required' needs tools, and there are none")
    return choice, None


_KINDS = ("text", "json_object", "json_schema", "grammar")
_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
_KEYWORDS = frozenset({"$ref", "allOf", "anyOf", "const", "enum", "items", "not", "oneOf", "properties"})


def read_response_format(given: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """OpenAI's ``response_format``, made also of a bare JSON Schema. Raises `RequestError` for anything else."""
    if given is None:
        return None
    if not isinstance(given, Mapping):
        hint = f": write {{'type': {given!r}}}" if given in ("text", "json_object") else ""
        raise RequestError(
            "response_format.type: expected an object of OpenAI's response_format or a JSON Schema, found "
            f"{given!r:.60}{hint}"
        )
    kind = given.get("type")
    bare = kind not in _KINDS and (kind is None or isinstance(kind, list) or kind in _TYPES)
    if bare and (kind is not None or not _KEYWORDS.isdisjoint(given)):
        return {"type": "json_schema", "json_schema": {"name": "answer", "schema": given}}
    if (
        kind == "json_schema" and "json_schema" not in given and "schema" in given
    ):  # as the Responses API has it
        return {"type": "json_schema", "json_schema": {"name": "answer", "schema": given["schema"]}}
    return given


def read_schema(response_format: Mapping[str, Any] | None) -> Any:
    """The JSON Schema of the answer, None if it is free text. Raises `RequestError` for an unknown kind."""
    if response_format is None:
        return None
    kind = response_format.get("type")
    if kind == "text":
        return None
    if kind == "json_object":
        return response_format.get("schema", {"type": "object"})
    if kind == "json_schema":
        named = response_format.get("json_schema", {})
        return named.get("schema", True) if isinstance(named, Mapping) else True
    if kind == "grammar":
        return None
    raise RequestError(
        f"response_format.type: expected 'text', 'json_object', 'json_schema' or 'grammar', found {kind!r}"
    )


def _restored(values: dict[str, Any]) -> Turn:
    return Turn._made(**values)
