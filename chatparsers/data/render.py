"""Renders a column of conversations as a model reads them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from os import PathLike
from typing import Any

from ..chat.options import PrepareOptions, Thinking
from ..errors import ChatParsersError
from ..templates.trace import Trace
from .arrow import pyarrow as pa
from .columns import added, as_table, json_texts, message_lists
from .rows import Model, said_once, source_of, tools_of


class Tools:
    """The tools of each row: of a column, one list for all, or none. Lists that repeat are read once."""

    def __init__(self, tools: str | Iterable[Mapping[str, Any]] | None) -> None:
        self.column = tools if isinstance(tools, str) else None
        self.shared = None if tools is None or isinstance(tools, str) else json.dumps(list(tools))

    def texts(self, table: Any) -> list[tuple[str | None, str | None]]:
        """The tools of each row as JSON text, each with why they cannot be read."""
        found = None if self.column is None else json_texts(table, self.column)
        return [(self.shared, None)] * table.num_rows if found is None else found

    def read(self, text: str | None) -> list[Any] | None:
        """The tools of a text; None for none. Raises `RequestError` if it is no list."""
        return (tools_of(text) or None) if text else None


class Render:
    """Adds ``text``, each conversation as the model's template writes it, and ``error``.

    >>> import pyarrow as pa
    >>> table = pa.table({"messages": [[{"role": "user", "content": "Hi"}]]})
    >>> Render("hermes-2-pro")(table)["text"].to_pylist()
    ['<|im_start|>user\\nHi<|im_end|>\\n']

    ``model``: a model's files, or the name of a format, whose built-in template is used. ``messages``: the column of
    messages, nested or as JSON text; ``tools`` as in `Parse`. ``add_generation_prompt``: whether the text ends where an
    answer begins. ``thinking``, ``effort``, ``template_kwargs``: as in `Chat.prepare`. ``now``: the time that a
    template writes; by default that at which this was made, for all rows. A row that cannot be rendered has an
    ``error``, and its text is null.
    """

    def __init__(
        self,
        model: Model,
        *,
        messages: str = "messages",
        tools: str | Iterable[Mapping[str, Any]] | None = "tools",
        add_generation_prompt: bool = False,
        thinking: Thinking | None = None,
        effort: str | None = None,
        template_kwargs: Mapping[str, Any] | None = None,
        tokenizer: str | PathLike[str] | None = None,
        now: datetime | None = None,
    ) -> None:
        self.source = source_of(model, tokenizer=tokenizer, thinking=thinking, effort=effort)
        self.messages = messages
        self.tools = Tools(tools)
        self.add_generation_prompt = add_generation_prompt
        self.template_kwargs = dict(template_kwargs or {})
        self.now = now or datetime.now()

    def __call__(self, table: Any) -> Any:
        """The table with the rendered texts."""
        table = as_table(table)
        self.source.open().rendering  # noqa: B018 - a model that cannot be loaded raises here
        texts: list[str | None] = []
        errors: list[str | None] = []
        with said_once():
            rows = zip(message_lists(table, self.messages), self.tools.texts(table), strict=True)
            for messages, (tools, wrong) in rows:
                messages = wrong or messages
                try:
                    found = messages if isinstance(messages, str) else None
                    texts.append(None if isinstance(messages, str) else self.render(messages, tools))
                except ChatParsersError as error:
                    texts.append(None)
                    found = str(error)
                errors.append(found)
        return added(table, {"text": (pa.string(), texts), "error": (pa.string(), errors)})

    def render(self, messages: list[dict[str, Any]], tools: str | None) -> str:
        """The text of one conversation; ``tools`` as JSON text. Raises `TemplateError` or `RequestError`."""
        return self.source.open().rendering.prepare(messages, **self._request(tools)).prompt

    def trace(self, messages: list[dict[str, Any]], tools: str | None) -> Trace:
        """The text, and whose each character of it is. Raises the same."""
        return self.source.open().rendering.trace(messages, **self._request(tools))

    def _request(self, tools: str | None) -> PrepareOptions:
        return {
            "tools": self.tools.read(tools),
            "thinking": self.source.thinking,
            "effort": self.source.effort,
            "add_generation_prompt": self.add_generation_prompt,
            "template_kwargs": self.template_kwargs or None,
            "now": self.now,
            "id_seed": "",
        }
