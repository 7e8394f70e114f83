"""Reads rows of any shape into messages and tools."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ..chat.rows import Model, said_once, source_of
from ..core.definition.format import Format
from ..core.errors import RequestError
from .arrow import pyarrow as pa
from .columns import MESSAGES, TEXTS, array, as_table, plain, seeds, unpadded
from .shapes.catalog import Shape, named_shape
from .shapes.read import answers, as_extra, read_rendered, read_row
from .shapes.talk import Talk, Unreadable, json_text
from .shapes.wire import Decision, decide, wire_named

__all__ = ["Normalize", "Report", "talk_columns"]

AUTO = "auto"
_NESTED = frozenset(
    {
        "chat_template_kwargs",
        "content",
        "contents",
        "conversation",
        "conversations",
        "function",
        "history",
        "messages",
        "question",
        "steps",
        "traj",
        "trajectory",
    }
)
"""Columns whose text is JSON: all others are text."""


@dataclass(frozen=True)
class Report:
    """What `Normalize.explain` found. ``shapes``: rows by shape. ``wire``: the format of the texts that hold calls or
    thoughts, "none" if there are none. ``evidence``: how many of the ``marked`` texts each format explains. ``fit``:
    the share of rows without an error. ``misfits``: at most three rows that have one, by number, with the error."""

    rows: int
    shapes: Mapping[str, int]
    sources: Mapping[str, str]
    wire: str
    marked: int
    evidence: tuple[tuple[str, int], ...]
    losses: Mapping[str, int]
    fit: float
    misfits: tuple[tuple[int, str], ...]

    def to_dict(self) -> dict[str, Any]:
        """The report as plain JSON data."""
        return asdict(self)


class Normalize:
    """Makes ``messages``, ``tools``, ``losses``, ``extra`` and ``error`` of rows of any shape.

    >>> import pyarrow as pa
    >>> turns = [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello."}]
    >>> Normalize()(pa.table({"conversations": [turns]}))["messages"].to_pylist()[0][1]["role"]
    'assistant'

    ``messages``: the column of the turns, if it has another name than the shapes know; ``tools``: that of the tools.
    ``shape``: the name of a shape; "auto" judges each row by itself. ``wire``: the format in which the assistants'
    texts hold calls and thoughts, or "none"; "auto" finds it for each row by reading back. `fit` decides both once for
    a whole column. ``roles``: names of roles and what they stand for, such as ``{"kunde": "user"}``. ``text``: a column
    of rendered prompts, which are read with the template of ``model``. ``row_id``: as in `Parse`; the column stays.
    What has no place in a message stays in ``extra`` (JSON text), with every other column. ``losses`` names what was
    lost. A row that cannot be read has an ``error``, no messages, and stays in ``extra`` whole.
    """

    def __init__(
        self,
        *,
        messages: str | None = None,
        tools: str | None = None,
        shape: str = AUTO,
        wire: str = AUTO,
        roles: Mapping[str, str] | None = None,
        text: str | None = None,
        model: Model | None = None,
        row_id: str = "row_id",
    ) -> None:
        if (text is None) != (model is None):
            raise ValueError(
                "Normalize: text= needs model=, whose template wrote the prompts, and the reverse"
            )
        self.messages, self.tools = messages, tools
        self.shape, self.wire = shape, wire
        self.roles = dict(roles or {})
        self.text = text
        self.source = None if model is None else source_of(model)
        self.row_id = row_id
        self._shape()  # a wrong name raises here
        self._wire()

    def __call__(self, table: Any) -> Any:
        """The table of the conversations."""
        table = as_table(table)
        with said_once():
            talks = [talk for talk, _ in self.read(table)]
        names: list[str] = []
        columns: list[Any] = []
        if self.row_id in table.column_names:
            names, columns = [self.row_id], [table.column(self.row_id)]
        for name, (kind, found) in talk_columns(talks).items():
            names.append(name)
            columns.append(array(found, kind))
        return pa.table(columns, names=names)

    def read(self, table: Any, wire: Format | None = None) -> list[tuple[Talk, Shape | None]]:
        """The conversation of each row, with its shape. ``wire``: the format of the assistants' texts, if it is known
        better than ``self.wire`` says."""
        table = as_table(table)
        for name in (self.messages, self.tools, self.text):
            if name is not None and name not in table.column_names:
                raise RequestError(
                    f"the table has no column {name!r}: it has {', '.join(table.column_names) or 'none'}"
                )
        names = seeds(table, self.row_id)
        chat = None if self.source is None else self.source.open().chat
        if self.source is not None and chat is None:
            raise RequestError("Normalize: model: expected files with a chat template, found a format's name")
        shape, detect = self._shape(), wire is None and self.wire == AUTO
        wire = wire or self._wire()
        columns = [name for name in table.column_names if name != self.row_id]
        found: list[tuple[Talk, Shape | None]] = []
        for row, seed in zip(table.select(columns).to_pylist(), names, strict=True):
            if self.text is not None and chat is not None:
                text = row.pop(self.text)
                own = seed if seed is not None else str(text)
                talk = read_rendered(str(text or ""), own, chat)
                for key, value in row.items():
                    talk.keep(key, plain(value))
                found.append((talk, None))
                continue
            own = seed if seed is not None else json_text(row)
            found.append(
                read_row(
                    self._named(row),
                    own,
                    shape=shape,
                    wire=wire,
                    detect=detect,
                    roles=self.roles,
                )
            )
        return found

    def fit(self, table: Any) -> Normalize:
        """The same, with the shape and the wire that most rows of the table have, decided once."""
        with said_once():
            report = self.explain(table)
        made = Normalize(
            messages=self.messages,
            tools=self.tools,
            roles=self.roles,
            text=self.text,
            row_id=self.row_id,
            model=None if self.source is None else self.source.model,
            shape=max(report.shapes, key=lambda name: report.shapes[name]) if report.shapes else AUTO,
            wire=report.wire,
        )
        return made

    def explain(self, table: Any) -> Report:
        """What the rows are, and how that is known."""
        table = as_table(table)
        plain_reader = Normalize(
            messages=self.messages,
            tools=self.tools,
            shape=self.shape,
            wire="none",
            roles=self.roles,
            row_id=self.row_id,
        )
        read = plain_reader.read(table) if self.text is None else []
        shapes = Counter(shape.name for _, shape in read if shape is not None)
        sources = {shape.name: shape.source for _, shape in read if shape is not None}
        own = next((said for _, shape in read if shape is not None and (said := shape.wire())), None)
        decision = decide((text, talk.tools) for talk, _ in read for text in answers(talk))
        if own is not None:
            decision = Decision(own, decision.marked, ((own.name, len(read)),))
        if self.wire != AUTO:
            decision = Decision(self._wire(), decision.marked, decision.read)
        wire = "none" if decision.format is None else decision.format.name
        settled = Normalize(
            messages=self.messages,
            tools=self.tools,
            shape=self.shape,
            wire=wire,
            roles=self.roles,
            text=self.text,
            model=None if self.source is None else self.source.model,
            row_id=self.row_id,
        )
        talks = [talk for talk, _ in settled.read(table)]
        wrong = [(number, talk.error) for number, talk in enumerate(talks) if talk.error is not None]
        losses = Counter(code for talk in talks for code in talk.losses)
        return Report(
            rows=len(talks),
            shapes=dict(shapes.most_common()),
            sources=sources,
            wire=wire,
            marked=decision.marked,
            evidence=decision.read[:8],
            losses=dict(losses.most_common()),
            fit=1.0 if not talks else 1 - len(wrong) / len(talks),
            misfits=tuple(wrong[:3]),
        )

    def _named(self, row: dict[str, Any]) -> dict[str, Any]:
        """The row as data, under the names that the shapes know."""
        if self.messages is not None:
            row = {("messages" if key == self.messages else key): value for key, value in row.items()}
            if self.messages in ("conversations", "trajectory", "traj", "conversation"):
                row[self.messages] = row.pop("messages")
        if self.tools is not None and self.tools not in ("tools", "available_tools"):
            row["tools"] = row.pop(self.tools)
        return {key: plain(value) if key in _NESTED else unpadded(value) for key, value in row.items()}

    def _shape(self) -> Shape | None:
        if self.shape == AUTO:
            return None
        try:
            return named_shape(self.shape)
        except Unreadable as error:
            raise RequestError(str(error)) from error

    def _wire(self) -> Format | None:
        return None if self.wire == AUTO else wire_named(self.wire)


def talk_columns(talks: list[Talk]) -> dict[str, tuple[Any, list[Any]]]:
    """The columns of conversations: their types and values."""
    return {
        "messages": (MESSAGES, [[_message(m) for m in talk.messages] for talk in talks]),
        "tools": (pa.string(), [json_text(talk.tools) if talk.tools else None for talk in talks]),
        "losses": (TEXTS, [talk.losses for talk in talks]),
        "extra": (pa.string(), [as_extra(talk) for talk in talks]),
        "error": (pa.string(), [talk.error for talk in talks]),
    }


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(message["content"], str):
        return dict(message)
    return {**message, "content": None, "parts": json_text(message["content"])}
