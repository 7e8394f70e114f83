"""Reads a column of recorded outputs into messages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import repeat
from os import PathLike
from typing import Any

from ..chat.options import Thinking
from ..errors import ChatParsersError, RequestError, UnknownFormat
from ..registry import get_format
from ..streams.message import Message
from .arrow import pyarrow as pa
from .columns import (
    CALLS,
    DIAGNOSTICS,
    Structs,
    added,
    as_table,
    in_slices,
    json_texts,
    message_lists,
    seeds,
    strings,
    values,
)
from .rows import Model, RowReader, Source, as_text, said_once, source_of


class Parse:
    """Adds what each output says: ``content``, ``reasoning``, ``tool_calls``, ``complete``, ``diagnostics``, ``error``.

    >>> import pyarrow as pa
    >>> table = pa.table({"output": ['<tool_call>\\n{"name": "now", "arguments": {}}\\n</tool_call>']})
    >>> Parse("hermes-2-pro", tools=[{"name": "now"}])(table)["tool_calls"].to_pylist()[0][0]["name"]
    'now'

    ``model``: a model's files or a format's name. ``output``: the column of text or ids. ``tools``: the column of each
    request's tools (JSON text, objects, or JSON texts), one list for all rows, or None. ``model_column``: a column that
    names each row's model instead: a format's name, or ``model`` itself, which is also for rows where it is null.
    ``model_paths``: that column may name files too, which are opened. ``row_id``: the column of a name of the row; ids
    of calls that the output does not carry follow from it, else from the output. ``tokenizer``: for ids, if the model's
    files have none. ``thinking``, ``effort``, ``prefix``: as in `parse_many`. ``append_to``: the column of the messages
    that asked for the outputs: each gets its answer at the end, as JSON text, which `Encode` reads. A row that cannot
    be read has an ``error`` and nulls. Calling it raises `LoadError` or `UnknownFormat` if the model cannot be loaded,
    and `RequestError` if the table has no such column.
    """

    def __init__(
        self,
        model: Model | None = None,
        *,
        output: str = "output",
        tools: str | Iterable[Mapping[str, Any]] | None = "tools",
        model_column: str | None = None,
        model_paths: bool = False,
        row_id: str = "row_id",
        tokenizer: str | PathLike[str] | None = None,
        thinking: Thinking | None = None,
        effort: str | None = None,
        prefix: str | None = None,
        append_to: str | None = None,
    ) -> None:
        if model is None and model_column is None:
            raise ValueError("Parse: expected a model, or model_column=, found neither")
        self.options: dict[str, Any] = {"tokenizer": tokenizer, "thinking": thinking, "effort": effort}
        self.options["prefix"] = prefix
        self.source: Source | None = None if model is None else source_of(model, **self.options)
        self.output = output
        self.tools = tools if tools is None or isinstance(tools, str) else json.dumps(list(tools))
        self.tools_column = tools if isinstance(tools, str) else None
        self.model_column = model_column
        self.model_paths = model_paths
        self.row_id = row_id
        self.append_to = append_to
        self._readers: dict[str | None, RowReader | str] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_readers": {}}

    def __call__(self, table: Any) -> Any:
        """The table with the columns of what its outputs say."""
        return in_slices(self._read, as_table(table))

    def _read(self, table: Any) -> Any:
        outputs, names = strings(table, self.output), seeds(table, self.row_id)
        tools = None if self.tools_column is None else json_texts(table, self.tools_column)
        if tools is None:
            tools = [(self.tools if self.tools_column is None else None, None)] * len(outputs)
        readers: Iterable[RowReader | str] = repeat(self._reader(None), len(outputs))  # raises LoadError
        if self.model_column is not None:
            readers = map(self._reader, values(table, self.model_column) or [])
        columns = _Columns(answers=self.append_to is not None)
        with said_once():
            for reader, output, (own, wrong), seed in zip(readers, outputs, tools, names, strict=True):
                if wrong is not None or isinstance(reader, str):
                    columns.add(wrong or str(reader))
                else:
                    columns.add(reader.read(output, own, seed or ""))
        table = added(table, columns.typed())
        return table if self.append_to is None else self._appended(table, columns.answers)

    def _appended(self, table: Any, answers: list[dict[str, Any] | None]) -> Any:
        """The table with each answer at the end of its messages; null where one of both cannot be read."""
        name = self.append_to
        assert name is not None
        talks = [
            None if answer is None or isinstance(messages, str) else json.dumps([*messages, answer])
            for messages, answer in zip(message_lists(table, name), answers, strict=True)
        ]
        return table.set_column(table.column_names.index(name), name, pa.array(talks, pa.string()))

    def _reader(self, model: str | None) -> RowReader | str:
        reader = self._readers.get(model)
        if reader is None:
            reader = self._readers[model] = self._opened(model)
        return reader

    def _opened(self, model: str | None) -> RowReader | str:
        if model is None:
            if self.source is None:
                return f"{self.model_column}: expected a model's name, found null"
            return RowReader(self.source.open())
        try:
            return RowReader(self._named(as_text(model) or "").open())
        except ChatParsersError as error:
            return f"{self.model_column}: {error}"

    def _named(self, name: str) -> Source:
        """The source that a row names. Rows come from strangers, so files are opened only if the caller says so."""
        if self.model_paths:
            return source_of(name, **self.options)
        if self.source is not None and self.source.model == name:
            return self.source
        try:
            return source_of(get_format(name), **self.options)
        except UnknownFormat as error:
            hint = "files that rows name are opened only with model_paths=True (--model-paths)"
            raise RequestError(f"{error}; {hint}") from error


class _Columns:
    """What outputs say, column by column. A message is taken apart as soon as it is read, so that few are held."""

    def __init__(self, *, answers: bool) -> None:
        self.answers: list[dict[str, Any] | None] = []
        """The messages for `Parse` to append, if it is asked to."""
        self._keeps_answers = answers
        self.content: list[str | None] = []
        self.reasoning: list[str | None] = []
        self.calls = Structs(CALLS)
        self.complete: list[bool | None] = []
        self.diagnostics = Structs(DIAGNOSTICS)
        self.errors: list[str | None] = []

    def add(self, found: Message | str) -> None:
        if self._keeps_answers:
            self.answers.append(None if isinstance(found, str) else found.to_openai())
        if isinstance(found, str):
            self.content.append(None)
            self.reasoning.append(None)
            self.calls.end(absent=True)
            self.complete.append(None)
            self.diagnostics.end(absent=True)
            self.errors.append(found)
            return
        self.content.append(found.content)
        self.reasoning.append(found.reasoning)
        for call in found.tool_calls:
            self.calls.add(call.id, call.name, call.arguments)
        self.calls.end()
        self.complete.append(found.complete)
        for d in found.diagnostics:
            self.diagnostics.add(d.code, d.position, d.expected, d.found)
        self.diagnostics.end()
        self.errors.append(None)

    def typed(self) -> dict[str, tuple[Any, Any]]:
        return {
            "content": (pa.string(), self.content),
            "reasoning": (pa.string(), self.reasoning),
            "tool_calls": (CALLS, self.calls.array()),
            "complete": (pa.bool_(), self.complete),
            "diagnostics": (DIAGNOSTICS, self.diagnostics.array()),
            "error": (pa.string(), self.errors),
        }
