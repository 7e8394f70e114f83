"""Reads rows of any shape into messages and tools."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..answers.format import Format
from ..errors import RequestError
from .arrow import pyarrow as pa
from .columns import MESSAGES, TEXTS, array, as_table, plain, seeds, table_rows, turns_in
from .rows import Model, said_once, source_of
from .shapes.catalog import TURNS, Shape, named_shape
from .shapes.read import answers, as_extra, read_rendered, read_row
from .shapes.talk import Talk, Unreadable, json_text
from .shapes.wire import NONE, Decision, decide, wire_named
from .typed import RowReport

AUTO = "auto"
_NESTED = frozenset(
    {
        "chat_template_kwargs",
        "content",
        "details",
        "contents",
        "conversation",
        "conversations",
        "function",
        "history",
        "messages",
        "question",
        "steps",
        "systemInstruction",
        "system_instruction",
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
        return self.table(talks, table.column(self.row_id) if self.row_id in table.column_names else None)

    def table(self, talks: list[Talk], names: Any = None) -> Any:
        """Conversations as a table. ``names``: the column of the rows' names, as it stays."""
        columns = {} if names is None else {self.row_id: names}
        for name, (kind, found) in talk_columns(talks).items():
            columns[name] = array(found, kind)
        return pa.table(columns)

    def talks(self, rows: list[dict[str, Any]], seeds: list[str]) -> list[Talk]:
        """The conversations of rows that are no table; ids that they do not have follow from ``seeds``."""
        with said_once():
            return [talk for talk, _ in self.read_rows(rows, seeds)]

    def read(self, table: Any, wire: Format | None = None) -> list[tuple[Talk, Shape | None]]:
        """The conversation of each row, with its shape. ``wire``: as in `read_rows`."""
        table = as_table(table)
        columns = [name for name in table.column_names if name != self.row_id]
        for name in (self.messages, self.tools, self.text):
            if name is not None and name not in columns:
                raise RequestError(f"the table has no column {name!r}: it has {', '.join(columns) or 'none'}")
        return self.read_rows(table_rows(table, columns), seeds(table, self.row_id), wire)

    def read_rows(
        self, rows: list[dict[str, Any]], seeds: Sequence[str | None], wire: Format | None = None
    ) -> list[tuple[Talk, Shape | None]]:
        """The conversation of each row, with its shape. ``wire``: the format of the assistants' texts, if it is known
        better than ``self.wire`` says."""
        chat = None if self.source is None else self.source.open().rendering
        shape, detect = self._shape(), wire is None and self.wire == AUTO
        wire = wire or self._wire()
        found: list[tuple[Talk, Shape | None]] = []
        for row, seed in zip(rows, seeds, strict=True):
            if self.text is not None and chat is not None:
                text = str(row.get(self.text) or "")
                talk = read_rendered(text, seed if seed is not None else text, chat)
                for key, value in row.items():
                    if key != self.text:
                        talk.keep(key, value)
                found.append((talk, None))
                continue
            report = RowReport("")
            row = {key: report.settled(key, value) for key, value in self._named(row).items()}
            talk, own = read_row(
                row,
                seed if seed is not None else json_text(row),
                shape=shape,
                wire=wire,
                detect=detect,
                roles=self.roles,
            )
            _blame(talk, report, row)
            found.append((talk, own))
        return found

    def with_wire(self, wire: str) -> Normalize:
        """The same, for texts in this wire."""
        made = object.__new__(Normalize)
        made.__dict__.update(self.__dict__)
        made.wire = wire
        made._wire()  # a wrong name raises here
        return made

    def fit(self, table: Any) -> Normalize:
        """The same, with the wire that most texts of the table have, decided once for the column."""
        table = as_table(table)
        columns = [name for name in table.column_names if name != self.row_id]
        return self.fit_rows(table_rows(table, columns))

    def fit_rows(self, rows: list[dict[str, Any]]) -> Normalize:
        """As `fit`, for rows that are no table."""
        if self.wire != AUTO or self.text is not None:
            return self
        with said_once():
            return self.with_wire(self.explain_rows(rows).wire)

    def explain(self, table: Any) -> Report:
        """What the rows of a table are, and how that is known."""
        table = as_table(table)
        columns = [name for name in table.column_names if name != self.row_id]
        return self.explain_rows(table_rows(table, columns))

    def explain_rows(self, rows: list[dict[str, Any]]) -> Report:
        """As `explain`, for rows that are no table."""
        seeds = [str(number) for number in range(len(rows))]
        with said_once():
            read = [] if self.text is not None else self.with_wire(NONE).read_rows(rows, seeds)
            shapes = Counter(shape.name for _, shape in read if shape is not None)
            sources = {shape.name: shape.source for _, shape in read if shape is not None}
            own = next((said for _, shape in read if shape is not None and (said := shape.wire())), None)
            decision = decide((text, talk.tools) for talk, _ in read for text in answers(talk))
            if own is not None:
                decision = Decision(own, decision.marked, ((own.name, len(read)),))
            if self.wire != AUTO:
                decision = Decision(self._wire(), decision.marked, decision.read)
            wire = NONE if decision.format is None else decision.format.name
            talks = [talk for talk, _ in self.with_wire(wire).read_rows(rows, seeds)]
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
            known = self.messages if self.messages in TURNS else "messages"
            row = {key: value for key, value in row.items() if key not in TURNS or key == self.messages}
            row = {(known if key == self.messages else key): value for key, value in row.items()}
        if self.tools is not None and self.tools not in ("tools", "available_tools"):
            row = {("tools" if key == self.tools else key): value for key, value in row.items()}
        return {
            key: turns_in(value) if key in TURNS else plain(value) if key in _NESTED else value
            for key, value in row.items()
        }

    def _shape(self) -> Shape | None:
        if self.shape == AUTO:
            return None
        try:
            return named_shape(self.shape)
        except Unreadable as error:
            raise RequestError(str(error)) from error

    def _wire(self) -> Format | None:
        return None if self.wire == AUTO else wire_named(self.wire)


def _blame(talk: Talk, report: RowReport, row: Mapping[str, Any]) -> None:
    """Names what became of the row's values. One that JSON has not is an error of its column, unless the column is only
    kept: then its text is."""
    talk.lose(*report.losses)
    for column, error in report.errors:
        if talk.error is None and column in talk.extra:
            talk.lose("as-text")
            continue
        talk.error = f"{error} (column {column!r})" if talk.error is None else f"{talk.error}; {error}"
        talk.messages, talk.tools, talk.extra = [], [], {"row": dict(row)}


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
