"""Columns of an Arrow table as Python values, and Python values as columns of a fixed schema.

Nested input may come in any Arrow type (see `typed`), or as JSON text.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import RequestError, did_you_mean
from ..plain import whole_characters
from .arrow import pyarrow as pa
from .typed import RowReport, column_values, is_list, is_text, rows_of, settled

_SLICE = 1024
NUMBER = "__number__"
"""A column that tells, while a batch runs, of which row each of a callable's rows is. No error names it."""
TEXTS = pa.list_(pa.string())
CALLS = pa.list_(pa.struct([("id", pa.string()), ("name", pa.string()), ("arguments", pa.string())]))
DIAGNOSTICS = pa.list_(
    pa.struct([("code", pa.string()), ("at", pa.int64()), ("expected", pa.string()), ("found", pa.string())])
)
_FUNCTION = pa.struct([("name", pa.string()), ("arguments", pa.string())])
_CALL = pa.struct([("id", pa.string()), ("type", pa.string()), ("function", _FUNCTION)])
MESSAGES = pa.list_(
    pa.struct(
        [
            ("role", pa.string()),
            ("content", pa.string()),
            ("reasoning_content", pa.string()),
            ("tool_calls", pa.list_(_CALL)),
            ("tool_call_id", pa.string()),
            ("name", pa.string()),
            ("parts", pa.string()),
        ]
    )
)
"""OpenAI-shaped messages. ``parts``: the content as JSON text, where it is a list of more than text."""


def as_table(table: Any) -> Any:
    """The table of what an engine passes: a table, a record batch, or what gives an Arrow stream, such as a frame of
    Polars or pandas. Raises `RequestError` for anything else."""
    if isinstance(table, pa.Table):
        return table
    if isinstance(table, pa.RecordBatch):
        return pa.Table.from_batches([table])
    if hasattr(table, "__arrow_c_stream__"):
        try:
            return pa.table(table)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            raise RequestError(
                f"the table has a column of a type that pyarrow cannot read: {error}"
            ) from error
    raise RequestError(
        f"expected a pyarrow.Table or RecordBatch, found {type(table).__name__}: in Ray say "
        'batch_format="pyarrow", in datasets with_format("arrow")'
    )


def values(table: Any, name: str, *, needed: bool = True) -> list[Any] | None:
    """The values of a column; None if it is not there and not ``needed``. Raises `RequestError` if it is needed, and
    if several have that name."""
    if table.column_names.count(name) > 1:
        raise RequestError(f"the table has several columns {name!r}: expected one, rename the others")
    if name in table.column_names:
        return column_values(table.column(name))
    if not needed:
        return None
    known = [column for column in table.column_names if column != NUMBER]
    raise RequestError(f"the table has no column {name!r}: {did_you_mean(name, known)}")


def strings(table: Any, name: str) -> list[Any]:
    """The texts of a column, or its lists of ids; also of the ids in a list of ``{id, logprob}``. A value that is
    neither stays as it is: whoever reads the row says so."""
    found, kind = values(table, name) or [], _bare(table.schema.field(name).type)
    if is_list(kind):
        inner = _bare(kind.value_type)
        if pa.types.is_struct(inner):
            keys = [key for key in ("token_id", "id") if inner.get_field_index(key) >= 0]
            if not keys:
                raise RequestError(f"column {name!r}: expected text or ids, found a list of {inner}")
            return [None if row is None else [item.get(keys[0]) for item in row] for row in found]
        if not pa.types.is_integer(inner) and not pa.types.is_null(inner):
            raise RequestError(f"column {name!r}: expected text or ids, found a list of {inner}")
    elif not _is_text(kind):
        raise RequestError(f"column {name!r}: expected text or ids, found {kind}")
    return found


def _bare(kind: Any) -> Any:
    """The type of the values that an encoding stands for."""
    while pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        kind = kind.value_type
    return kind


def _is_text(kind: Any) -> bool:
    if isinstance(kind, pa.BaseExtensionType):
        return bool(kind.extension_name == "arrow.json")
    return is_text(kind) or bool(pa.types.is_null(kind))


def json_texts(table: Any, name: str) -> list[tuple[str | None, str | None]] | None:
    """The values of a column of tools as JSON text, each with why it cannot be read (None if it can); None if the table
    has no such column."""
    found = values(table, name, needed=False)
    return None if found is None else [_json_text(value, name) for value in found]


def _json_text(value: Any, name: str) -> tuple[str | None, str | None]:
    if value is None or type(value) is str:
        return value, None
    report = RowReport(name)
    value = settled(rows_of(value), name, report)
    warn_of(report)
    return (None, report.refused) if report.refused else (json.dumps(value, ensure_ascii=False), None)


def warn_of(report: RowReport) -> None:
    """Warns of what became of a row's values, for a table that has no column of losses."""
    for code, path in report.losses.items():
        warnings.warn(f"{code}: {path} is no value of JSON: {_BECAME[code]}", UserWarning, stacklevel=2)


_BECAME = {
    "as-text": "its text is used",
    "rounded": "the nearest number is used",
    "not-finite": "null is used",
}


def seeds(table: Any, name: str) -> list[str | None]:
    """The names of the rows; None where a row has no name."""
    found = values(table, name, needed=False)
    return [None] * table.num_rows if found is None else [None if v is None else str(v) for v in found]


def table_rows(table: Any, names: Sequence[str]) -> list[dict[str, Any]]:
    """The rows of some columns, by type; a null is a column that the row does not have."""
    columns = [values(table, name) or [] for name in names]
    return [
        {name: value for name, value in zip(names, row, strict=True) if value is not None}
        for row in (zip(*columns, strict=True) if columns else [()] * table.num_rows)
    ]


def plain(value: Any) -> Any:
    """A column's value as data: text that is a JSON list or object is read."""
    if not isinstance(value, str):
        return value
    if value[:1] in ("[", "{") and value.rstrip()[-1:] in ("]", "}"):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def turns_in(value: Any) -> Any:
    """The messages that a column's value holds, as objects: a list of them, each also as JSON text, or an object of
    lists, also of the calls and parts within. Anything else as it is."""
    turns = rows_of(plain(value))
    if not isinstance(turns, list):
        return turns
    turns = [plain(turn) for turn in turns]
    for place, turn in enumerate(turns):
        if isinstance(turn, dict) and any(isinstance(turn.get(key), dict) for key in _LISTS):
            turns[place] = {key: rows_of(item) if key in _LISTS else item for key, item in turn.items()}
    return turns


_LISTS = ("tool_calls", "content")
"""The fields of a message that hold lists of objects."""


def message_lists(table: Any, name: str) -> list[list[dict[str, Any]] | str]:
    """The messages of each row, as the chat-completions API has them; or, as text, why they cannot be read."""
    found = values(table, name) or []
    kind = table.schema.field(name).type
    return [_messages(turns_in(value), name, kind) for value in found]


def _messages(value: Any, name: str, kind: Any) -> list[dict[str, Any]] | str:
    if value is None:
        return f"{name}: expected a list of messages, found null"
    report = RowReport(name)
    value = settled(value, name, report)
    if report.refused:
        return f"{report.refused} (column {name!r})"
    warn_of(report)
    column = f"(the column's type is {kind})" if len(str(kind)) < 200 else "(the column's type)"
    if not isinstance(value, list):
        return f"{name}: expected a list of messages, found {value!r:.60} {column}"
    out = []
    for place, message in enumerate(value):
        if not isinstance(message, Mapping):
            return f"{name}[{place}]: expected an object with a role, found {message!r:.60} {column}"
        message = dict(message)
        parts = message.pop("parts", None)
        if isinstance(parts, str):
            try:
                message["content"] = json.loads(parts)
            except ValueError as error:
                return f"{name}[{place}].parts: expected JSON text: {error}"
        out.append(message)
    return out


def in_slices(run: Callable[[Any], Any], table: Any) -> Any:
    """What ``run`` makes of a table, some rows at a time: so their texts stay in the processor's cache, where a large
    table costs a tenth more a row."""
    if table.num_rows <= _SLICE:
        return run(table)
    return pa.concat_tables([run(table.slice(first, _SLICE)) for first in range(0, table.num_rows, _SLICE)])


class Structs:
    """A column of lists of structs that grows by its fields: no object stands for a row or a struct, which would cost
    memory and the garbage collector's time."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self._fields: list[list[Any]] = [[] for _ in kind.value_type]
        self._ends = [0]
        self._absent: list[bool] = []

    def add(self, *values: Any) -> None:
        """A further struct of the row, a value for each field."""
        for field, value in zip(self._fields, values, strict=True):
            field.append(value)

    def end(self, *, absent: bool = False) -> None:
        """The end of a row; ``absent``: it is null."""
        self._ends.append(len(self._fields[0]))
        self._absent.append(absent)

    def array(self) -> Any:
        """The column as an Arrow array."""
        fields = list(self._kind.value_type)
        columns = [array(values, field.type) for values, field in zip(self._fields, fields, strict=True)]
        inner = pa.StructArray.from_arrays(columns, fields=fields)
        mask = pa.array(self._absent) if any(self._absent) else None
        return pa.ListArray.from_arrays(pa.array(self._ends, pa.int32()), inner, type=self._kind, mask=mask)


def added(table: Any, columns: Mapping[str, tuple[Any, Sequence[Any]]]) -> Any:
    """The table with more columns, each a type and its values. A column that has such a name already becomes
    ``input_`` and its name, so that nothing is lost."""
    names = list(table.column_names)
    for name in columns:
        if name in names:
            free = f"input_{name}"
            while free in names or free in columns:
                free = f"input_{free}"
            names[names.index(name)] = free
    if names != table.column_names:
        table = table.rename_columns(names)
    for name, (kind, found) in columns.items():
        table = table.append_column(pa.field(name, kind), array(found, kind))
    return table


def array(found: Sequence[Any], kind: Any) -> Any:
    """The values as an Arrow array; half characters, which UTF-8 cannot spell, become U+FFFD."""
    try:
        return pa.array(found, kind)
    except UnicodeEncodeError:
        return pa.array([_whole(value) for value in found], kind)


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        return whole_characters(value)
    if isinstance(value, Mapping):
        return {key: _whole(item) for key, item in value.items()}
    return [_whole(item) for item in value] if isinstance(value, (list, tuple)) else value
