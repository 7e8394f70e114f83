"""Writes conversations of one model, or of a dataset, as another model has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..chat.rows import Model, said_once, source_of
from ..core.definition.format import Format
from ..core.errors import ChatParsersError
from .arrow import pyarrow as pa
from .carry import Changed, carry
from .columns import added, array, as_table
from .normalize import AUTO, Normalize, talk_columns
from .render import Render
from .shapes.talk import Talk, json_text

__all__ = ["Translate"]


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
    instead of ``text``, with ``max_length``. The other options are those of `Normalize`. Each answer is written in the
    other format and read back: ``losses`` names what does not survive.
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
        thinking: bool | None = None,
        tokenizer: str | None = None,
        row_id: str = "row_id",
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
        self.target = source_of(to, tokenizer=tokenizer, thinking=thinking)
        self.render = Render(to, thinking=thinking, tokenizer=tokenizer)
        self.encode = encode
        self.max_length = max_length
        self.row_id = row_id

    def fit(self, table: Any) -> Translate:
        """The same, with the shape and the wire that most rows of the table have, decided once."""
        found = object.__new__(Translate)
        found.__dict__.update(self.__dict__)
        found.normalize = self.normalize.fit(table)
        return found

    def __call__(self, table: Any) -> Any:
        """The table of the conversations, written for the other model."""
        table = as_table(table)
        target = self.target.open().rendering
        format = target.syntax
        with said_once():
            wire = None
            if self.source is not None and self.normalize.text is None:
                wire = self.source.open().format
            talks = [talk for talk, _ in self.normalize.read(table, wire)]
            texts = [self._written(talk, format) for talk in talks]
        names: list[str] = []
        columns: list[Any] = []
        if self.row_id in table.column_names:
            names, columns = [self.row_id], [table.column(self.row_id)]
        for name, (kind, found) in talk_columns(talks).items():
            names.append(name)
            columns.append(array(found, kind))
        made = pa.table(columns, names=names)
        return added(made, {"text": (pa.string(), texts)})

    def _written(self, talk: Talk, format: Format) -> str | None:
        """The text of a conversation; its losses and errors are added to the talk."""
        if not talk.messages:
            return None
        try:
            text = self.render.render(talk.messages, json_text(talk.tools) if talk.tools else None)
            for message in talk.messages:
                if message["role"] == "assistant" and isinstance(message["content"], str):
                    talk.lose(*carry(format, message, talk.tools)[1])
                    thought = str(message.get("reasoning_content") or "").strip()
                    if thought and thought not in text:
                        talk.lose("reasoning")
        except (ChatParsersError, Changed) as error:
            talk.fail(str(error))
            return None
        return text
