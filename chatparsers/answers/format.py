"""A format, the syntax that one family of models writes, and a turn, one request bound to it.

The two stand together because each names the other: `Format.bind` makes a turn, and a turn has its format. The room
`parser` makes a program of a format's tree; the room `streams` reads a model's output by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from os import urandom
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ..core.wrong import check_texts
from ..errors import DefinitionError, RequestError, check_limit, did_you_mean, lacks_tokenizers, warn_user
from ..kept import cached
from ..lazy import load_reference
from ..public import made_by, public
from ..schema.request import ToolChoice, read_choice, read_response_format, read_schema
from ..schema.tools import Tools, Toolset, read_tools
from ..schema.wished import Thoughts
from ..shown import Shown
from .check import check_model
from .features import Features, facts_of, tree_of
from .idioms import Builder, Options
from .mends import NAMES
from .nodes import Node

if TYPE_CHECKING:
    from ..grammar import Grammar
    from ..guide import Guide
    from ..guide.engines import EngineName
    from ..guide.plan import OnLoop
    from ..streams.ids import Piece
    from ..streams.message import Message
    from ..streams.stream import Stream

__all__ = ["Dialect", "Format", "GrammarReader", "ReasoningMode", "ToolChoice", "Turn"]

Dialect: TypeAlias = Literal["gbnf", "lark", "structural_tag"]
GrammarReader: TypeAlias = Literal["llama.cpp", "xgrammar"] | str
ReasoningMode: TypeAlias = Literal["split", "inline"]

_new = object.__new__
_loaded = lru_cache(load_reference)
"""Looked up once: each request opens a stream."""
_OPENED, _BOUND = "chatparsers.streams.stream:opened", "chatparsers.tokens.feed:bound_tokenizer"
_NAMED = "chatparsers.tokens.bound:Named"


@public
@dataclass(frozen=True, repr=False)
class Format(Shown):
    """One wire format.

    ``build`` makes its tree. It is a module-level function, or a frozen dataclass with ``__call__`` if it is made at
    run time. Programs are cached by it. Two closures or partials are never equal, so each is compiled anew, for each
    unpickled stream too; and a stream of a closure cannot be pickled. ``markers``: texts that every rendering in this
    format holds. Detection tries first the formats whose markers are all there. Of several that fit, it names the one
    with the longest markers. ``stops``: the texts that end the turn. ``aliases``: other names of the format.
    ``models``: regular expressions for the names of its models, as `FormatRef` has them. ``mends``: the names of the
    leniencies with which it is read (docs/contract.md); ``replace(format, mends=())`` reads nothing but what the format
    writes.
    """

    name: str
    title: str
    url: str
    build: Callable[[Builder], Node]
    markers: tuple[str, ...] = ()
    stops: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    mends: tuple[str, ...] = NAMES

    def __post_init__(self) -> None:
        for option in ("markers", "stops", "aliases", "models", "mends"):
            check_texts(f"format {self.name!r}: {option}", getattr(self, option))
        for pattern in self.models:
            check_model(f"format {self.name!r}: models", pattern)
        for mend in self.mends:
            if mend not in NAMES:
                known = did_you_mean(mend, NAMES)
                raise DefinitionError(f"format {self.name!r}: mends: there is no {mend!r}: {known}")

    def __hash__(self) -> int:
        # Programs, trees and features are kept by format, so it is asked for many times in a request.
        found: int | None = self.__dict__.get("_hash")
        if found is None:
            found = self.__dict__["_hash"] = hash(
                (self.name, self.build, self.markers, self.stops, self.mends)
            )
        return found

    def __getstate__(self) -> dict[str, Any]:
        # Another process hashes texts in another way, and makes its own turns.
        return {name: value for name, value in self.__dict__.items() if name not in ("_hash", "_options")}

    @cached
    def _options(self) -> dict[tuple[Any, ...], Options]:
        """The options that requests had, by their values."""
        return {}

    def tree(self, options: Options) -> Node:
        """The format's tree for these options, built and checked once. Raises `DefinitionError` if it is wrong.

        >>> from chatparsers.answers.idioms import Options
        >>> chatparsers.get_format("hermes-2-pro").tree(Options(tools=True)).shown()
        'p.body(…)'
        """
        return tree_of(self, options._replace(schema=None, lenient=False))

    def to_data(self) -> dict[str, Any]:
        """The format as a document, an object of JSON that says its definition (docs/formats-as-data.md).

        Raises `DefinitionError` if ``build`` asks a request or a tool for more than a document can say.

        >>> document = chatparsers.get_format("hermes-2-pro").to_data()
        >>> list(document["tree"]["body"])
        ['calls', 'lead']
        >>> chatparsers.Format.from_data(document).name
        'hermes-2-pro'
        """
        found: dict[str, Any] = load_reference("chatparsers.document:to_data")(self)
        return found

    @classmethod
    def from_data(cls, document: Mapping[str, Any]) -> Format:
        """The format that a document describes. Nothing is imported, opened or evaluated for it.

        Raises `DefinitionError`, which names the place in the document, for what is no document, is too large, or is
        no sound definition.

        >>> chatparsers.Format.from_data({"chat_format": 1, "name": "mine", "tree": {"body": {"call": []}}})
        Traceback (most recent call last):
        chatparsers.DefinitionError: $.tree.body.call: there is no such key: did you mean calls?
        """
        return cls(**load_reference("chatparsers.document:read_document")(document))

    @property
    def features(self) -> Features:
        """The features of the format, read from its tree."""
        return facts_of(self).features

    @property
    def late_ids(self) -> bool:
        """Whether a call's id may come after its arguments. Then it is not known before the call's end."""
        return facts_of(self).late_ids

    @property
    def preserved_tokens(self) -> tuple[str, ...]:
        """The special tokens that the engine must not drop from the text: the tokens of the tree."""
        return facts_of(self).preserved_tokens

    def render(
        self, message: Mapping[str, Any] | Message, tools: Tools | None = None, *, read_back: bool = True
    ) -> str:
        """Writes ``message``, a `Message` or an OpenAI-shaped assistant's message, as a model of this format would.

        The text does not hold the end of the turn. ``tools``: the schemas of the tools that the message calls. The
        format's parser reads the message back from the text. ``read_back`` False: values that hold the format's own
        markers are written all the same, as for a history that a model reads. Raises `RequestError` if the format has
        no place for a part of the message, or if its parser would not read a call back.

        >>> chatparsers.get_format("qwen3").render({"reasoning_content": "Hm.", "content": "Hi"})
        '<think>\\nHm.\\n</think>\\n\\nHi'
        """
        plain = message if isinstance(message, Mapping) else message.to_openai()
        text: str = load_reference("chatparsers.writer:render")(self, plain, tools, read_back)
        return text

    def parse(self, output: Piece, *, tools: Tools | None = None, prefix: str = "") -> Message:
        """The message of a whole output: ``bind(tools=tools, prefix=prefix).parse(output)``.

        Raises `RequestError` for malformed tools. `bind` has all options.

        >>> message = chatparsers.get_format("qwen3").parse(call, tools=tools)
        >>> message.tool_calls[0].name
        'get_weather'
        """
        return self.bind(tools=tools, prefix=prefix).parse(output)

    def __repr__(self) -> str:
        return f"<Format: {self.name}, {self.title}>"

    def bind(
        self,
        *,
        tools: Tools | None = None,
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
        lenient_calls: bool = False,
        reasoning: bool | None = None,
        max_calls: int | None = None,
        call_within: int | None = None,
    ) -> Turn:
        """A turn of this format.

        ``tools``, ``tool_choice``, ``response_format`` are OpenAI-shaped. Tools may have other shapes too, as in
        `Chat.prepare`; the ``tools`` of another turn are not read again. ``response_format`` may be a JSON Schema.
        ``prefix`` is what the prompt already wrote of the assistant's turn, such as ``"<think>\\n"``. ``tokenizer``: a
        ``tokenizers.Tokenizer`` or a fast tokenizer of transformers, needed to feed ids. ``id_seed``: if the model
        gives a call no id, the id follows from this seed and the call's index; None makes new ids in each turn.
        ``prompt``, ``token_config`` and ``polyfills`` are kept for the turn's user. ``lenient_calls``: also read calls
        that are the whole answer, as JSON in a fence, in tags or bare. They must name tools of the request, and their
        arguments must fit. An answer that begins so is held until it ends. ``reasoning``: whether this model writes
        reasoning, if its template tells; without ``thinking``, the grammar follows it. ``max_calls``: the most calls
        that the grammar generates; None: 16 where calls are required, else any number. ``call_within``: how many tokens
        of text the grammar generates before the first call; None: any number. Raises `RequestError` for a
        request that is malformed or contradicts itself, and `DefinitionError` if the format's definition is wrong.
        Warns if a tool's schema names types as Python (``int``) or Google's API (``STRING``) does, which are read as
        JSON's.

        >>> turn = chatparsers.get_format("qwen3").bind(tools=tools, prefix="<think>\\n")
        >>> turn.parse("Hm.\\n</think>\\n\\nHi").reasoning
        'Hm.'
        """
        if not (type(prefix) is type(prompt) is str and (id_seed is None or type(id_seed) is str)):
            for name, text in (("prefix", prefix), ("prompt", prompt), ("id_seed", id_seed or "")):
                if not isinstance(text, str):
                    raise RequestError(f"{name}: expected text, found {type(text).__name__}")
            prefix = str.__str__(prefix)  # the compiled core reads no subclass of str, such as a traced text
        if thinking is not None and not isinstance(thinking, bool):
            raise RequestError(f"thinking: expected True, False or None, found {type(thinking).__name__}")
        if not isinstance(parallel_tool_calls, bool):
            raise RequestError(
                f"parallel_tool_calls: expected True or False, found {type(parallel_tool_calls).__name__}"
            )
        if not isinstance(lenient_calls, bool):
            raise RequestError(f"lenient_calls: expected True or False, found {type(lenient_calls).__name__}")
        known = read_tools(tools)
        if known.respelt:
            warn_user(known.respelt)
        mode, named = ("auto", None) if tool_choice == "auto" else read_choice(tool_choice, known)
        asked = (bool(known.raw), mode, parallel_tool_calls and named is None, thinking, None, lenient_calls)
        turn: Turn = _new(Turn)
        # Each request passes here, so a field that has its usual value is not set, and `dict.get` is named.
        found = turn.__dict__
        found["format"] = self
        found["tools"] = known
        found["options"] = dict.get(self._options, asked) or self._read_options(*asked)
        if prefix:
            found["prefix"] = prefix
        if prompt:
            found["prompt"] = prompt
        if named is not None:
            found["named"] = named
        if token_config is not None:
            found["token_config"] = token_config
        if polyfills:
            found["polyfills"] = polyfills
        if reasoning is not None:
            found["reasoning"] = reasoning
        if max_calls is not None:
            check_limit("max_calls", max_calls)
            found["max_calls"] = max_calls
        if call_within is not None:
            check_limit("call_within", call_within)
            found["call_within"] = call_within
        if tokenizer is not None:
            found["tokenizer"] = _loaded(_BOUND)(tokenizer)
        if response_format is not None:
            found["response_format"] = read_response_format(response_format)
            found["options"] = turn.options._replace(schema=read_schema(found["response_format"]))
        if id_seed is not None:
            found["id_seed"] = id_seed
        return turn

    def _read_options(self, *asked: Any) -> Options:
        """Options with these values. Raises `DefinitionError` if the tree for them is wrong."""
        options = Options(*asked)
        self.tree(options)
        self._options[asked] = options
        return options


@public
@dataclass(frozen=True, eq=False, repr=False, init=False)
class Turn(Shown):
    """One request bound to one format: it makes streams, parses whole outputs and writes the grammar.

    Made by `Format.bind` and `Chat.prepare`; it does not change. The request asks the format's tree for ``options`` and
    ``named`` (the function that must be called, or None). ``token_config`` is as in generation_config.json.
    ``polyfills`` names what the template cannot write, so that it was written in another way; ``warnings`` what of the
    messages does not fit, such as a result that no call asked for, each with its place and no text of the messages.
    ``reasoning``: whether the template shows that the model writes reasoning; None: no template was asked.
    ``max_calls``: the most calls of the grammar. ``call_within``: the most tokens of text in it before the first call.
    ``thoughts``: what became of the request's wish for thoughts or effort; None without one. ``call_spaces``: the white
    space that the template writes at an answer's start before a call and before a thought, and between the two.
    """

    format: Format
    tools: Toolset
    options: Options
    named: str | None = None
    response_format: Mapping[str, Any] | None = None
    prefix: str = ""
    prompt: str = ""
    tokenizer: Any = None
    token_config: Mapping[str, Any] | None = None
    polyfills: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    reasoning: bool | None = None
    max_calls: int | None = None
    call_within: int | None = None
    thoughts: Thoughts | None = None
    call_spaces: tuple[tuple[str, ...], ...] = ((), (), ())
    _quoted: Callable[[], Iterable[tuple[int, int]]] | Iterable[tuple[int, int]] | None = None
    """Where words of the prompt spell a special token, or what finds it; None if nobody knows its messages."""

    def __init__(self) -> None:
        made_by("a turn", "Format.bind() or Chat.prepare()")

    @cached
    def id_seed(self) -> str:
        """What the ids of calls follow from, if the model writes none. If the request names no seed, it is made when it
        is first asked for."""
        return urandom(8).hex()

    def _replace(self, **changes: Any) -> Turn:
        """This turn with other values of some fields."""
        return _restored({"id_seed": self.id_seed, **self.__dict__, **changes})

    def __repr__(self) -> str:
        tools = f"{len(self.tools.names())} tools" if self.tools else "no tools"
        parts = [self.format.name, tools, f"tool_choice={self.named or self.options.mode!r}"]
        parts += [f"prefix={self.prefix!r}"] if self.prefix else []
        parts += ["a tokenizer"] if self.tokenizer is not None else []
        return f"<Turn: {', '.join(parts)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        values = {
            "id_seed": self.id_seed,
            **self.__dict__,
            "tokenizer": load_reference(_NAMED)(self.tokenizer),
        }
        if callable(self._quoted):  # without the chat and the messages
            values["_quoted"] = tuple(self._quoted())
        return _restored, (values,)

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
        max_calls: int | None = None,
        call_within: int | None = None,
        thinking_tokens: int | None = None,
        answer_tokens: int | None = None,
        whitespace: int | None = None,
        max_size: int | None = None,
        max_work: int | None = None,
    ) -> Grammar | None:
        """The grammar that keeps the model to the format and the tools' schemas; None if nothing is constrained.

        ``dialect``: ``gbnf`` (llama.cpp, xgrammar), ``lark`` (llguidance) or ``structural_tag`` (xgrammar,
        vLLM, SGLang). ``engine``: who reads GBNF, because a token reference is spelt in two ways; ``xgrammar>=0.2.4``
        names the oldest version that must read the grammar.
        ``additional_properties``: also generate members that an object's schema does not mention.
        ``token_references``: write each marker that is one token by its id; None: yes if the turn has a tokenizer.
        ``max_calls``, ``call_within``: the most calls, and the most tokens of text before the first one, in place of
        the turn's. ``thinking_tokens``, ``answer_tokens``: the most tokens of a thought, and of the answer's text,
        which the engine counts; not in GBNF, and in Lark not where the host takes ids back. ``whitespace``: the most
        characters of white space between two tokens of JSON. ``max_size`` (characters) and ``max_work`` (steps) limit
        what schemas may cost; None: 16,000,000 and 3,000,000. `chatparsers.grammar.write` says more of each. Raises
        `RequestError` for an unknown dialect or engine, `SchemaError` for a schema that is invalid or does not fit.

        >>> turn = chat.prepare(messages, tools=tools, tool_choice="required")
        >>> print(str(turn.grammar(token_references=False)).splitlines()[0])
        root ::= ("<think>" text "\\n\\n")? call ("\\n" call){0,15} "\\n"? gap?
        >>> turn.grammar("lark").dialect
        'lark'
        """
        if not isinstance(dialect, str):
            raise RequestError(f"dialect: expected its name, found {type(dialect).__name__}")
        names = "max_calls call_within thinking_tokens answer_tokens whitespace max_size max_work"
        given = (max_calls, call_within, thinking_tokens, answer_tokens, whitespace, max_size, max_work)
        found: Grammar | None = load_reference("chatparsers.grammar:write")(
            self,
            dialect,
            engine=engine,
            additional_properties=additional_properties,
            token_references=token_references,
            **{name: limit for name, limit in zip(names.split(), given, strict=True) if limit is not None},
        )
        return found

    def stream(
        self,
        *,
        strict: bool = False,
        reasoning: ReasoningMode = "split",
        skip_special_tokens: bool = True,
        token_text_fallback: bool = False,
        id_seed: str | None = None,
        rollback: int = 0,
        check: bool = False,
    ) -> Stream:
        """A new stream for this turn.

        ``strict``: `feed` raises `OutputError` if the model leaves its format, or with ``check`` the schemas.
        ``reasoning``: ``"split"``, or ``"inline"`` to leave the reasoning in the content with its markers. Two options
        concern ids: with
        ``skip_special_tokens`` False, the text shows special tokens that are not markers of the format. With
        ``token_text_fallback``, a marker that the model spells out as ordinary text counts as a marker too.
        ``id_seed``: ids of calls follow from it, not from the turn's, where many outputs share one turn. ``rollback``:
        how many of the last ids `Stream.rollback` can take back. ``check``: judges arguments by their tool's schema,
        and an answer by that of ``response_format``, while they come: the diagnostic ``schema`` tells of the first
        value of which nothing valid is left.

        >>> stream = chat.prepare(messages, tools=tools).stream()
        >>> [type(event).__name__ for event in stream.feed(call) + stream.finish()]
        ['CallStart', 'CallArguments', 'CallEnd']
        """
        if reasoning != "split" and reasoning != "inline":
            raise RequestError(f"reasoning: expected 'split' or 'inline', found {reasoning!r}")
        if type(rollback) is not int or rollback < 0:
            raise RequestError(f"rollback: expected a number of ids, found {rollback!r}")
        asked = (self, reasoning == "inline", skip_special_tokens, token_text_fallback, id_seed, check)
        found: Stream = _loaded(_OPENED)(asked, strict, rollback)
        return found

    def guide(
        self,
        engine: EngineName | None = None,
        *,
        thinking_tokens: int | None = None,
        thinking_message: str = "",
        max_calls: int | None = None,
        call_within: int | None = None,
        on_loop: OnLoop | None = None,
    ) -> Guide:
        """A `Guide` that steers an answer to this turn as it is sampled: what may come next, and what must.

        ``engine``: who reads the turn's grammar, ``"llguidance"`` or ``"xgrammar"``; None takes the first of these that
        is installed (``pip install 'chatparsers[guide]'``). ``thinking_tokens``: how many ids all thoughts of the turn
        may take together; None: as the turn's ``thoughts`` say. Then the thought is ended by force: by
        ``thinking_message``, if there is one, and the format's closer; and no thought begins any more. ``max_calls``:
        as in `grammar`. ``call_within``: after so many ids of content, a call must come; None: as the turn says.
        ``on_loop``: what becomes of a loop that is stuck (`Stream.loop`): ``"close"`` closes a thought, as one that has
        taken all its ids; ``"stop"`` ends the answer, as one that was cut off; None: nothing.

        Raises `RequestError` if the turn has no tokenizer or no token that ends it, for a limit that is none, and if
        the engine is not installed.

        >>> chat.prepare(messages, tools=tools).guide(thinking_tokens=200).state.left
        200
        """
        found: Guide = load_reference("chatparsers.guide:open_guide")(
            self,
            engine,
            thinking_tokens=thinking_tokens,
            thinking_message=thinking_message,
            max_calls=max_calls,
            call_within=call_within,
            on_loop=on_loop,
        )
        return found

    def rest(self, output: Piece) -> Turn:
        """The turn of what comes after ``output``, text or ids that the model has written of the answer: to go on after
        a cut.

        Its prompt and prefix end with ``output``, so its stream reads on there, and its grammar allows what the whole
        grammar allows there. A call that ``output`` leaves open is given whole. If calls were made before, the ids of
        calls differ from theirs. Raises `RequestError` for ids without a tokenizer, and for ids of which no text tells:
        a part of a character, or a marker in ordinary tokens. Where a grammar cannot go on, `grammar` says it.

        >>> turn = chat.prepare(messages, tools=tools)
        >>> rest = turn.rest(call[:40])
        >>> rest.parse(call[40:]).tool_calls == turn._replace(id_seed=rest.id_seed).parse(call).tool_calls
        True
        """
        stream = self.stream()
        stream.feed(output)
        text = (
            output
            if isinstance(output, str)
            else load_reference("chatparsers.tokens.feed:text_of")(self.tokenizer, output, self.marker_ids)
        )
        made = stream.state.call if stream.state.kind == "call" else len(stream._message(False).tool_calls)
        changes: dict[str, Any] = {"prefix": self.prefix + text}
        if self.prompt:
            changes["prompt"] = self.prompt + text
        if made:
            changes["id_seed"] = f"{self.id_seed}/{made}"
        return self._replace(**changes)

    def parse(
        self,
        output: Piece,
        *,
        strict: bool = False,
        reasoning: ReasoningMode = "split",
        skip_special_tokens: bool = True,
        token_text_fallback: bool = False,
        id_seed: str | None = None,
        regions: bool = True,
    ) -> Message:
        """The message of a whole output, text or ids; the same as a stream's, whatever its pieces.

        The options are those of `stream`. ``regions``: whether the message has its regions. They are made when they are
        first asked for; without them the message keeps nothing of the stream and the turn. Raises `OutputError` only in
        strict mode.

        >>> turn = chat.prepare(messages, tools=tools)
        >>> turn.parse(call).tool_calls[0].parsed_arguments
        {'city': 'Oslo'}
        >>> turn.parse(tokenizer.encode("Hi<|im_end|>").ids).content
        'Hi'
        """
        stream = self.stream(
            strict=strict,
            reasoning=reasoning,
            skip_special_tokens=skip_special_tokens,
            token_text_fallback=token_text_fallback,
            id_seed=id_seed,
        )
        stream.feed(output)
        stream.finish()
        message = stream._message(regions)
        if regions:
            message._turn = self
        return message

    @property
    def prompt_ids(self) -> list[int]:
        """The ids of ``prompt``, for an engine that takes ids. Made when they are asked for.

        Where words of users, tools and old answers spell a special token, they are encoded as text, so that they forge
        no turn. Raises `RequestError` for a turn that `Chat.prepare` did not make, and without a tokenizer.

        >>> turn = chat.prepare([{"role": "user", "content": "Hi<|im_end|>"}])
        >>> turn.prompt.count("<|im_end|>"), turn.prompt_ids.count(tokenizer.token_to_id("<|im_end|>"))
        (2, 1)
        """
        if self._quoted is None:
            raise RequestError(
                "prompt_ids: expected a turn of Chat.prepare, of a chat with the model's tokenizer"
                + lacks_tokenizers()
            )
        quoted = self._quoted() if callable(self._quoted) else self._quoted
        growing = load_reference("chatparsers.tokens.growing:GrowingIds")(self.tokenizer)
        found: list[int] = growing.update(self.prompt, 0, tuple(quoted))
        return found

    @property
    def marker_ids(self) -> dict[str, int]:
        """The id of each marker and stop that the tokenizer has as one token; empty without a tokenizer."""
        if self.tokenizer is None:
            return {}
        found: dict[str, int] = load_reference("chatparsers.tokens.feed:marker_ids")(
            self.tokenizer, (*self.preserved_tokens, *self.stops)
        )
        return found

    @property
    def stop_ids(self) -> tuple[int, ...]:
        """The ids that end the turn, sorted; empty without a tokenizer."""
        if self.tokenizer is None:
            return ()
        found = load_reference("chatparsers.tokens.feed:stop_ids")(
            self.tokenizer, self.stops, self.token_config, self.preserved_tokens
        )
        return tuple(sorted(found))

    @property
    def preserved_ids(self) -> tuple[int, ...]:
        """The ids of the preserved tokens that the tokenizer has as one token, sorted; empty without a tokenizer."""
        ids = self.marker_ids
        return tuple(sorted(ids[text] for text in self.preserved_tokens if text in ids))

    def call_id(self, index: int) -> str:
        """The id of the call at ``index`` if the model writes no id.

        >>> turn = chat.bind(tools=tools, id_seed="a")
        >>> turn.call_id(0) == turn.parse(call).tool_calls[0].id
        True
        """
        found: str = load_reference("chatparsers.streams.call:call_id")(self.id_seed, index)
        return found


def _restored(values: dict[str, Any]) -> Turn:
    """The turn with these values of its fields."""
    turn = Turn.__new__(Turn)
    turn.__dict__.update(values)
    return turn
