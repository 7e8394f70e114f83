"""Python functions and pydantic models as tools, and Python types as schemas.

A function is described as transformers' ``get_json_schema`` does it: the types by its annotations, the texts by its
Google-style docstring. A docstring may be missing here. An annotation may not, because an argument without a type would
be one that takes anything.
"""

from __future__ import annotations

import enum
import inspect
import json
import re
import types
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

from ..errors import RequestError

_OUT = "write its schema as an object instead"
_TYPES: dict[object, dict[str, Any]] = {
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    Any: {},
    list: {"type": "array"},
    tuple: {"type": "array"},
    set: {"type": "array"},
    frozenset: {"type": "array"},
    dict: {"type": "object"},
}
_SCALARS = {int: "integer", float: "number", str: "string", bool: "boolean", type(None): "null"}
_LISTS = (list, set, frozenset, Sequence, MutableSequence)
_OBJECTS = (dict, Mapping, MutableMapping)


def described(tool: object, path: str) -> Mapping[str, Any]:
    """The object that describes a tool which is none: a function, a pydantic model, or a record such as MCP's ``Tool``.

    Raises `RequestError` for anything else.
    """
    if isinstance(tool, type):
        if callable(getattr(tool, "model_json_schema", None)):
            return _model(tool)
        raise RequestError(
            f"{path}: expected a function or a pydantic model, found the class {tool.__name__!r}; {_OUT}"
        )
    dump = getattr(tool, "model_dump", None)
    if callable(dump):
        found: Mapping[str, Any] = dump(mode="json", by_alias=True, exclude_none=True)
        return found
    if callable(tool):
        return _function(tool, path)
    hint = " (json.loads reads it)" if isinstance(tool, str) else ""
    raise RequestError(
        f"{path}: expected an object, found {type(tool).__name__}{hint}; functions and pydantic models are taken too"
    )


def _model(model: Any) -> dict[str, Any]:
    schema = dict(model.model_json_schema())
    schema.pop("title", None)
    text = schema.pop("description", None)
    about = {} if text is None else {"description": text}
    return {"name": model.__name__, **about, "parameters": schema}


def _function(function: Callable[..., Any], path: str) -> dict[str, Any]:
    name = getattr(function, "__name__", None)
    if not isinstance(name, str) or not name.isidentifier():
        raise RequestError(
            f"{path}: expected a function with a name, found {type(function).__name__}; {_OUT}"
        )
    where = f"{path}: the function {name!r}"
    try:
        hints = get_type_hints(function, include_extras=True)
        given = inspect.signature(function).parameters
    except Exception as error:  # an annotation that names nothing, or a function written in C
        raise RequestError(f"{where} cannot be read: {type(error).__name__}: {error}; {_OUT}") from error
    about, texts, returned = _docstring(inspect.getdoc(function) or "")
    defs = Definitions()
    properties: dict[str, Any] = {}
    required: list[str] = []
    for place, (argument, one) in enumerate(given.items()):
        if place == 0 and argument in ("self", "cls") and argument not in hints:
            continue
        if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            continue
        at = f"{where}, argument {argument!r}"
        if one.kind is one.POSITIONAL_ONLY:
            raise RequestError(f"{at}: expected an argument that is passed by its name, found {one}; {_OUT}")
        if argument not in hints:
            raise RequestError(
                f"{at}: expected an annotation, found none: annotate it, as in {argument}: str"
            )
        schema = type_schema(hints[argument], at, defs)
        if argument in texts:
            text, choices = texts[argument]
            schema = {**schema, **({"enum": choices} if choices else {}), "description": text}
        properties[argument] = schema
        if one.default is inspect.Parameter.empty:
            required.append(argument)
    parameters: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        parameters["required"] = required
    if defs:
        parameters["$defs"] = defs
    out: dict[str, Any] = {"name": name}
    if about:
        out["description"] = about
    out["parameters"] = parameters
    if "return" in hints:
        try:
            result = type_schema(hints["return"], where, Definitions())
        except RequestError:  # the model does not write it
            return out
        out["return"] = {**result, "description": returned} if returned else result
    return out


class Definitions(dict[str, Any]):
    """The definitions of a schema, and the classes that they are of."""

    def __init__(self) -> None:
        self.classes: dict[str, type] = {}

    def name(self, kind: type) -> str:
        """The name of a class among the definitions."""
        name, number = kind.__name__, 1
        while self.classes.get(name, kind) is not kind:
            number += 1
            name = f"{kind.__name__}{number}"
        return name


def type_schema(hint: Any, at: str, defs: Definitions) -> dict[str, Any]:
    """The JSON Schema of an annotation. The definitions of classes in it go into ``defs``."""
    try:
        if hint in _TYPES:
            return dict(_TYPES[hint])
    except TypeError:  # not hashable, such as Annotated[str, []]
        pass
    origin, inner = get_origin(hint), get_args(hint)
    if hasattr(hint, "__metadata__"):
        text = next((note for note in hint.__metadata__ if isinstance(note, str)), None)
        found = type_schema(inner[0], at, defs)
        return found if text is None else {**found, "description": text}
    if origin in (Union, types.UnionType):
        return _union(inner, at, defs)
    if origin is Literal:
        return _listed(list(inner), at)
    if origin is tuple:
        return _tuple(inner, at, defs)
    if origin in _LISTS:
        return {"type": "array", "items": type_schema(inner[0], at, defs)}
    if origin in _OBJECTS:
        members = {} if inner[1] is Any else {"additionalProperties": type_schema(inner[1], at, defs)}
        return {"type": "object", **members}
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return _listed([one.value for one in hint], at)
    if isinstance(hint, type) and (is_dataclass(hint) or is_typeddict(hint)):
        return _record(hint, at, defs)
    model_schema = getattr(hint, "model_json_schema", None)
    if isinstance(hint, type) and callable(model_schema):
        whole = model_schema()
        defs.update(whole.pop("$defs", {}))
        return dict(whole)
    shown = getattr(hint, "__name__", None) or str(hint)
    raise RequestError(
        f"{at}: expected a type that JSON can write, such as str, int, list[str], Literal, a dataclass or a pydantic "
        f"model, found {shown}; annotate it with what the model writes, or {_OUT}"
    )


def _record(kind: type, at: str, defs: Definitions) -> dict[str, Any]:
    """The schema of a dataclass or a `TypedDict`: a reference to its definition, as it may contain itself."""
    name = defs.name(kind)
    if name not in defs.classes:
        defs.classes[name] = kind
        members = record_fields(kind, at)
        schema: dict[str, Any] = {
            "type": "object",
            "properties": {
                key: type_schema(hint, f"{at}, field {key!r}", defs) for key, (hint, _) in members.items()
            },
            "required": [key for key, (_, required) in members.items() if required],
            "additionalProperties": False,
        }
        text = inspect.cleandoc(kind.__dict__.get("__doc__") or "")  # not an inherited one, such as dict's
        if text and not text.startswith(f"{kind.__name__}("):  # that of a dataclass without a docstring
            schema["description"] = _docstring(text)[0]
        defs[name] = {key: value for key, value in schema.items() if value != []}
    return {"$ref": f"#/$defs/{name}"}


def record_fields(kind: Any, at: str) -> dict[str, tuple[Any, bool]]:
    """The fields of a dataclass or a `TypedDict`: the annotation of each, and whether it is required. Raises
    `RequestError` for annotations that cannot be read."""
    try:
        hints = get_type_hints(kind, include_extras=True)
    except Exception as error:  # an annotation that names nothing
        raise RequestError(
            f"{at}: {kind.__name__} cannot be read: {type(error).__name__}: {error}"
        ) from error
    if not is_dataclass(kind):
        return {key: (_inner(hint), key in kind.__required_keys__) for key, hint in hints.items()}
    return {
        one.name: (hints[one.name], one.default is MISSING and one.default_factory is MISSING)
        for one in fields(kind)
        if one.init
    }


def _inner(hint: Any) -> Any:
    """The annotation of a key of a `TypedDict`, without what says whether it is there."""
    while str(get_origin(hint)).rpartition(".")[2] in ("Required", "NotRequired", "ReadOnly"):
        (hint,) = get_args(hint)
    return hint


def _union(kinds: tuple[Any, ...], at: str, defs: Definitions) -> dict[str, Any]:
    schemas = [type_schema(kind, at, defs) for kind in kinds if kind is not type(None)]
    if len(schemas) == 1:
        found = schemas[0]
    elif all(list(schema) == ["type"] and isinstance(schema["type"], str) for schema in schemas):
        names = sorted({schema["type"] for schema in schemas})
        found = {"type": names[0] if len(names) == 1 else names}
    else:
        found = {"anyOf": schemas}
    return {**found, "nullable": True} if type(None) in kinds else found


def _listed(values: list[Any], at: str) -> dict[str, Any]:
    wrong = next((value for value in values if type(value) not in _SCALARS), None)
    if wrong is not None or not values:
        raise RequestError(f"{at}: expected values that JSON can write, found {wrong!r}; {_OUT}")
    kinds = list(dict.fromkeys(_SCALARS[type(value)] for value in values))
    return {"type": kinds[0] if len(kinds) == 1 else kinds, "enum": values}


def _tuple(inner: tuple[Any, ...], at: str, defs: Definitions) -> dict[str, Any]:
    if len(inner) == 2 and inner[1] is Ellipsis:
        return {"type": "array", "items": type_schema(inner[0], at, defs)}
    return {"type": "array", "prefixItems": [type_schema(one, at, defs) for one in inner]}


# docstrings in Google's style

_SECTIONS = {"args:": "args", "returns:": "returns", "raises:": "raises"}
_ARGUMENT = re.compile(r"(\w+)\s*(?:\([^)]*\))?:\s*(.*)")
_CHOICES = re.compile(r"\(choices:\s*(.*?)\)\s*$", re.IGNORECASE)


def _docstring(text: str) -> tuple[str, dict[str, tuple[str, list[Any] | None]], str]:
    """What a docstring says of the function, of each argument (with the choices it lists), and of what it returns."""
    lines: dict[str, list[str]] = {"": [], "args": [], "returns": [], "raises": []}
    section = ""
    for line in text.strip().splitlines():
        begins = _SECTIONS.get(line.strip().lower())
        if begins is not None:
            section = begins
        else:
            lines[section].append(line)
    found: dict[str, list[str]] = {}
    current: list[str] = []
    depth = -1
    for line in lines["args"]:
        if not line.strip():
            continue
        indent = len(line) - len(line.lstrip())
        depth = indent if depth < 0 else depth
        begins_one = _ARGUMENT.match(line.strip()) if indent <= depth else None
        if begins_one is not None:
            current = found.setdefault(begins_one.group(1), [])
            line = begins_one.group(2)
        current.append(line.strip())
    texts = {name: _choices(" ".join(filter(None, parts))) for name, parts in found.items()}
    return "\n".join(lines[""]).strip(), texts, "\n".join(lines["returns"]).strip()


def _choices(text: str) -> tuple[str, list[Any] | None]:
    """An argument's text without ``(choices: […])`` at its end, and these choices."""
    said = _CHOICES.search(text)
    if said is None:
        return text, None
    try:
        values = json.loads(said.group(1))
    except ValueError:
        return text, None
    return (text[: said.start()].strip(), values) if isinstance(values, list) else (text, None)
