"""Rows of recorded outputs: which model wrote them, which tools they had, and how each is read.

A `Source` names a model or a format. It pickles, and it is opened once in each process, at its first use. A `RowReader`
keeps one turn for each list of tools, so that a column that repeats its tools binds them once. No row raises: what
cannot be read has an ``error``.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypeAlias

from ..answers.format import Format, Turn
from ..chat.chat import Chat
from ..chat.load import load
from ..chat.options import Thinking
from ..errors import ChatParsersError, LoadError, RequestError, UnknownFormat, lacks_tokenizers
from ..public import public
from ..registry import get_format
from ..streams.message import Message
from ..tokens.loaders import is_template_text
from .shapes.talk import read_json

Model: TypeAlias = "str | PathLike[str] | Chat | Format"
"""A model's files (folder, file or template), a format's name, or an object that was made of one."""

_HELLO: list[dict[str, Any]] = [{"role": "user", "content": "Hello"}]
_TOOL: list[dict[str, Any]] = [
    {"type": "function", "function": {"name": "any", "description": "", "parameters": {"type": "object"}}}
]
_KEPT = 4096
"""How many lists of tools are known, so that what is kept does not grow with the table."""
_ENDS = 128


@dataclass(frozen=True)
class Source:
    """A model or a format, and how it is used. It pickles by what it says; `open` loads it once in each process."""

    model: Any
    tokenizer: str | None = None
    thinking: Thinking | None = None
    prefix: str | None = None
    effort: str | None = None

    def open(self) -> Opened:
        """The loaded model. Raises `LoadError`, `UnknownFormat` and `TemplateError` as `load` does."""
        return _opened(self)


@lru_cache(maxsize=64)
def _opened(source: Source) -> Opened:
    return Opened(source)


def source_of(
    model: Model,
    *,
    tokenizer: str | PathLike[str] | None = None,
    thinking: Thinking | None = None,
    prefix: str | None = None,
    effort: str | None = None,
) -> Source:
    """The source that ``model`` names."""
    named = fspath(model) if isinstance(model, PathLike) else model
    if not isinstance(named, (str, Chat, Format)):
        raise RequestError(
            f"model: expected a model's files, a format's name, a Chat or a Format, found {type(model).__name__}"
        )
    if not isinstance(tokenizer, (str, PathLike, type(None))):
        found = type(tokenizer).__name__
        raise RequestError(
            f"tokenizer: expected a path, which workers read too, found {found}: "
            "give load(…, tokenizer=…) instead of the model"
        )
    return Source(named, None if tokenizer is None else fspath(tokenizer), thinking, prefix, effort)


class Opened:
    """A loaded model: its chat (None for a format alone) and the turns that its outputs are read with."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.chat: Chat | None = None
        self.tokenizer: Any = None
        model = source.model
        if isinstance(model, str):
            model = _loaded(model, source.tokenizer)
        elif source.tokenizer is not None and isinstance(model, Format):
            from ..tokens import read_tokenizer

            self.tokenizer = read_tokenizer(source.tokenizer)
        if isinstance(model, Chat):
            self.chat, self.tokenizer = model, model.tokenizer
            self.format: Format = model.format
        elif isinstance(model, tuple):
            self.format, self.tokenizer = model
        else:
            self.format = model
        self._first: dict[bool, Turn] = {}
        self._rendering: Chat | None = self.chat

    @property
    def rendering(self) -> Chat:
        """The chat that renders: for a format alone, that of its built-in template. Raises `LoadError` without one."""
        if self._rendering is None:
            name = self.format.name
            self._rendering = load(template=name, format=name, tokenizer=self.tokenizer)
        return self._rendering

    def encoding(self, wrap: Callable[[Any], Any]) -> Chat:
        """A chat that renders as this one, whose tokenizer is what ``wrap`` makes of it. Raises `RequestError` if there
        is no tokenizer. A `Chat` that the caller made stays as it is."""
        chat = self.rendering
        if chat.tokenizer is None:
            wanted = "give the model's folder, or tokenizer= (--tokenizer)"
            raise RequestError(f"{chat.name} has no tokenizer: {wanted}{lacks_tokenizers()}")
        wrapped = wrap(chat.tokenizer)
        if isinstance(self.source.model, Chat):
            return chat
        if self.chat is None:
            return load(template=self.format.name, format=self.format.name, tokenizer=wrapped)
        return load(self.source.model, tokenizer=wrapped)

    def turn(self, tools: Sequence[Mapping[str, Any]] = ()) -> Turn:
        """The turn of an output whose request had ``tools``. Raises `RequestError` for malformed tools."""
        first = self._first.get(bool(tools))
        if first is None:
            first = self._first[bool(tools)] = self._begun(bool(tools))
        if not tools:
            return first
        return self._bound(first.format, tools, first.prefix, first.token_config)

    def _begun(self, tools: bool) -> Turn:
        """A turn that shows what every turn of this model begins with: the prompt is always the same at its end."""
        given, thinking = _TOOL if tools else None, self.source.thinking
        if self.chat is None:
            return self._bound(self.format, given, self.source.prefix or "")
        turn = self.chat.prepare(
            _HELLO, tools=given, thinking=thinking, effort=self.source.effort, id_seed=""
        )
        if self.source.prefix is None or turn.prefix == self.source.prefix:
            return turn
        return self._bound(turn.format, given, self.source.prefix, turn.token_config)

    def _bound(self, format: Format, tools: Any, prefix: str, token_config: Any = None) -> Turn:
        thinking = self.source.thinking
        return format.bind(
            tools=tools,
            prefix=prefix,
            thinking=thinking if isinstance(thinking, bool) else None,
            tokenizer=self.tokenizer,
            token_config=token_config,
            id_seed="",
        )


def _loaded(model: str, tokenizer: str | None) -> Any:
    """A chat, or a format with its tokenizer."""
    if is_template_text(model) or Path(model).exists():
        return load(model, tokenizer=tokenizer)
    try:
        format = get_format(model)
    except UnknownFormat as error:
        raise LoadError(
            f"{model}: expected a model's folder or file, or a format's name, found neither ({error})"
        ) from error
    if tokenizer is None:
        return format
    from ..tokens import read_tokenizer

    return format, read_tokenizer(tokenizer)


def tool_list(value: object) -> list[Any]:
    """The tools that a column's value names: JSON text, a list of objects, a list of JSON texts, or nothing.

    Raises `RequestError` for anything else.
    """
    value = read_json(value, "tools: expected a list as JSON text", RequestError)
    if value is None:
        return []
    if isinstance(value, Mapping):
        value = value["tools"] if isinstance(value.get("tools"), list) else [value]
    if not isinstance(value, (list, tuple)):
        raise RequestError(f"tools: expected a list, found {type(value).__name__}")
    try:
        return [json.loads(tool) if isinstance(tool, str) else tool for tool in value]
    except (ValueError, RecursionError) as error:
        raise RequestError(f"tools: expected objects, or each as JSON text: {error}") from error


@lru_cache(maxsize=_KEPT)
def tools_of(text: str) -> list[Any]:
    """`tool_list` of a column's text."""
    return tool_list(text)


class RowReader:
    """Reads outputs, each with the tools of its own request. Its turns are kept between rows."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self._turn = lru_cache(maxsize=_KEPT)(self._bound)

    def read(self, output: Any, tools: str | None = None, seed: str = "") -> Message | str:
        """The message of an output, text or ids, without its regions; or, as text, why the row cannot be read.

        ``tools``: a list as JSON text. ``seed``: ids of calls that the wire does not carry follow from it.
        """
        turn = self._turn(tools or "")
        if isinstance(turn, str):
            return turn
        if not output and not isinstance(output, (str, list, tuple)):
            return f"output: expected text or ids, found {'null' if output is None else repr(output)}"
        try:
            return turn.parse(output, id_seed=seed or _seed_of(output), regions=False)
        except (ChatParsersError, TypeError) as error:
            return f"output: {error}"

    def _bound(self, tools: str) -> Turn | str:
        try:
            return self._opened.turn(tool_list(tools))
        except RequestError as error:
            return str(error)


def _seed_of(output: Any) -> str:
    """A seed that follows from the output: of a long one, from its length and both ends."""
    if isinstance(output, (str, list, tuple)) and len(output) > 2 * _ENDS:
        return f"{len(output)} {output[:_ENDS]}{output[-_ENDS:]}"
    return output if isinstance(output, str) else repr(output)


def to_row(found: Message | str) -> dict[str, Any]:
    """The columns of a read output, as `parse_many` says."""
    if isinstance(found, str):
        return {
            "content": None,
            "reasoning": None,
            "tool_calls": None,
            "complete": None,
            "diagnostics": None,
            "error": found,
        }
    return {
        "content": found.content,
        "reasoning": found.reasoning,
        "tool_calls": [
            {"id": call.id, "name": call.name, "arguments": call.arguments} for call in found.tool_calls
        ],
        "complete": found.complete,
        "diagnostics": [
            {"code": d.code, "at": d.position, "expected": d.expected, "found": d.found}
            for d in found.diagnostics
        ],
        "error": None,
    }


@public
def parse_many(
    rows: Iterable[Any],
    model: Model,
    *,
    output: str = "output",
    tools: str | Iterable[Mapping[str, Any]] | None = "tools",
    row_id: str = "row_id",
    tokenizer: str | PathLike[str] | None = None,
    thinking: Thinking | None = None,
    effort: str | None = None,
    prefix: str | None = None,
) -> list[dict[str, Any]]:
    """Reads many recorded outputs of one model: a row of the result for each row, in order.

    >>> rows = [{"output": '<tool_call>\\n{"name": "now", "arguments": {}}\\n</tool_call>'}, {"output": "Hello."}]
    >>> [(row["content"], len(row["tool_calls"])) for row in parse_many(rows, "hermes-2-pro", tools=[{"name": "now"}])]
    [('', 1), ('Hello.', 0)]

    A row is a mapping with the output under the key ``output``, or the output itself: text, or ids. ``model``: its
    files, a format's name, a `Chat` or a `Format`. ``tools``: a list for all rows, or the key of each row's own, which
    are a list or JSON text. ``thinking``, ``effort``: as in `Chat.prepare`. ``row_id``: the key of a name of the row;
    ids of calls that the output does not carry follow from it, else from the output. ``prefix``: what the prompt
    already wrote of each answer; None: as the model's template has it. Each result has ``content``, ``reasoning``,
    ``tool_calls`` (``id``, ``name``, ``arguments`` as JSON text), ``complete``, ``diagnostics`` (``code``, ``at``,
    ``expected``, ``found``) and ``error``: None, or why the row could not be read. Raises `LoadError`, `UnknownFormat`
    or `TemplateError` if the model cannot be loaded.
    """
    source = source_of(model, tokenizer=tokenizer, thinking=thinking, effort=effort, prefix=prefix)
    reader = RowReader(source.open())
    column = tools if isinstance(tools, str) else None
    shared = None if tools is None or column is not None else json.dumps(list(tools))
    out = []
    with said_once():
        for row in rows:
            if isinstance(row, Mapping):
                own = shared if column is None else as_text(row.get(column))
                seed = row.get(row_id)
                found = reader.read(row.get(output), own, "" if seed is None else str(seed))
            else:
                found = reader.read(row, shared)
            out.append(to_row(found))
    return out


def as_text(value: Any) -> str | None:
    """A value of a column of tools as JSON text."""
    return value if value is None or isinstance(value, str) else json.dumps(value)


_said: set[str] = set()


@contextmanager
def said_once(say: Callable[[str], None] | None = None) -> Iterator[None]:
    """Warnings of the rows within are said once in a process, however many rows have them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for text in dict.fromkeys(str(item.message) for item in caught):
        kind = text.split(":", 1)[0]
        if kind not in _said:
            _said.add(kind)
            if say is not None:
                say(text)
            else:
                warnings.warn(f"{text} (said once)", UserWarning, stacklevel=4)
