"""Writes conversations of one model, or of a dataset, as another model has them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ..answers.format import Format
from ..chat.options import Thinking
from ..chat.sample import Sample
from ..errors import ChatParsersError
from ..templates.trace import covered
from .arrow import pyarrow as pa
from .carry import Changed, carry
from .columns import added, as_table
from .encode import Encode, sample_columns
from .normalize import AUTO, Normalize
from .render import Render
from .rows import Model, said_once, source_of
from .shapes.talk import Talk, json_text


class Translate:
    """Reads rows of any shape as `Normalize` does, and adds ``text``: each conversation as the model ``to`` has it.

    >>> import pyarrow as pa
    >>> call = '<tool_call>\\n{"name": "now", "arguments": {}}\\n</tool_call>'
    >>> turns = [{"role": "user", "content": "Time?"}, {"role": "assistant", "content": call}]
    >>> table = Translate("hermes-2-pro", to="olmo-3")(pa.table({"messages": [turns]}))
    >>> "<function_calls>now()</function_calls>" in table["text"].to_pylist()[0]
    True

    ``model``: the model (or format) whose wire the assistants' texts are in; None finds it by reading back. ``to``: the
    other model's files, or a format's name, whose built-in template is used. ``encode``: adds the columns of `Encode`
    instead of ``text``, with ``max_length``. ``now``: as in `Render`. The other options are those of `Normalize`. Each
    answer is written in the other format and read back: ``losses`` names what does not survive.
    """

    def __init__(
        self,
        model: Model | None = None,
        to: Model | None = None,
        *,
        encode: bool = False,
        max_length: int | None = None,
        messages: str | None = None,
        tools: str | None = None,
        shape: str = AUTO,
        wire: str = AUTO,
        roles: Mapping[str, str] | None = None,
        text: str | None = None,
        thinking: Thinking | None = None,
        effort: str | None = None,
        tokenizer: str | None = None,
        row_id: str = "row_id",
        now: datetime | None = None,
    ) -> None:
        if to is None:
            model, to = None, model
        if to is None:
            raise ValueError("Translate: expected to=, the model to write for, found none")
        self.source = None if model is None else source_of(model)
        self.normalize = Normalize(
            messages=messages,
            tools=tools,
            shape=shape,
            wire=wire,
            roles=roles,
            text=text,
            model=model if text is not None else None,
            row_id=row_id,
        )
        self.target = source_of(to, tokenizer=tokenizer, thinking=thinking, effort=effort)
        self.render = Render(to, thinking=thinking, effort=effort, tokenizer=tokenizer, now=now)
        self.encode: Encode | None = None
        if encode:
            self.encode = Encode(
                to, max_length=max_length, thinking=thinking, effort=effort, tokenizer=tokenizer, now=now
            )
        self.row_id = row_id

    def fit(self, table: Any) -> Translate:
        """The same, with the wire that most texts of the table have, decided once for the column."""
        return self._with(self.normalize.fit(table)) if self.source is None else self

    def fit_rows(self, rows: list[dict[str, Any]]) -> Translate:
        """As `fit`, for rows that are no table."""
        return self._with(self.normalize.fit_rows(rows)) if self.source is None else self

    def with_wire(self, wire: str) -> Translate:
        """The same, for texts in this wire."""
        return self._with(self.normalize.with_wire(wire))

    def _with(self, normalize: Normalize) -> Translate:
        made = object.__new__(Translate)
        made.__dict__.update(self.__dict__)
        made.normalize = normalize
        return made

    def __call__(self, table: Any) -> Any:
        """The table of the conversations, written for the other model."""
        table = as_table(table)
        with said_once():
            talks = [talk for talk, _ in self.normalize.read(table, self._wire())]
        return self.table(talks, table.column(self.row_id) if self.row_id in table.column_names else None)

    def talks(self, rows: list[dict[str, Any]], seeds: list[str]) -> list[Talk]:
        """The conversations of rows that are no table; ids that they do not have follow from ``seeds``."""
        with said_once():
            return [talk for talk, _ in self.normalize.read_rows(rows, seeds, self._wire())]

    def table(self, talks: list[Talk], names: Any = None) -> Any:
        """Conversations as a table, written for the other model. ``names``: the column of the rows' names."""
        format = self.target.open().rendering.syntax
        with said_once():
            texts = [self._written(talk, format) for talk in talks]
        if self.encode is None:
            return added(self.normalize.table(talks, names), {"text": (pa.string(), texts)})
        samples: list[Sample | None] = []
        for talk, text in zip(talks, texts, strict=True):
            tools = json_text(talk.tools) if talk.tools else None
            found = None if text is None else self.encode.samples(talk.messages, tools)
            sample, error = self.encode.fitted(found[0]) if isinstance(found, list) else (None, found)
            samples.append(sample)
            if error is not None:
                talk.fail(error)
        table = self.normalize.table(talks, names)
        errors = table.column("error").to_pylist()
        return sample_columns(table.drop_columns(["error"]), samples, errors)

    def _wire(self) -> Format | None:
        """The format of the assistants' texts, if the model of the rows is known."""
        return None if self.source is None or self.normalize.text is not None else self.source.open().format

    def _written(self, talk: Talk, format: Format) -> str | None:
        """The text of a conversation; its losses and errors are added to the talk."""
        if not talk.messages:
            return None
        try:
            tools = json_text(talk.tools) if talk.tools else None
            thoughts = any(message.get("reasoning_content") for message in talk.messages)
            trace = self.render.trace(talk.messages, tools) if thoughts else None
            text = self.render.render(talk.messages, tools) if trace is None else trace.text
            for index, message in enumerate(talk.messages):
                if message["role"] == "assistant" and isinstance(message["content"], str):
                    talk.lose(*carry(format, message, talk.tools)[1])
                    thought = str(message.get("reasoning_content") or "")
                    if trace is not None and not covered(thought, trace.of(index, "reasoning")):
                        talk.lose("reasoning")
        except (ChatParsersError, Changed) as error:
            talk.fail(str(error))
            return None
        return text
