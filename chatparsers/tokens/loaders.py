"""The files of a model: chat templates, end-of-turn tokens, and the tokenizer, loaded when it is asked for.

Where sources disagree, the precedence is that of transformers: a ``chat_template.jinja`` (with the folder
``additional_chat_templates``) replaces the templates of ``chat_template.json``, and these replace those of
``tokenizer_config.json``; ``tokenizer_config.json`` wins over ``special_tokens_map.json``, and
``generation_config.json`` over ``config.json``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ..core.errors import LoadError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["ModelFiles", "read_model", "read_tokenizer"]

_ReadTokenizer: TypeAlias = "Callable[[], Tokenizer | None]"

_FOLDER_FILES = (
    "tokenizer_config.json",
    "tokenizer.json",
    "chat_template.jinja",
    "chat_template.json",
    "special_tokens_map.json",
    "generation_config.json",
    "config.json",
)
_TEMPLATE_FOLDERS = ("additional_chat_templates", "chat_templates")


def _no_tokenizer() -> None:
    return None


@dataclass(frozen=True)
class ModelFiles:
    """What a model's files say about its chat format."""

    source: Path
    """The file or folder that was read."""
    templates: Mapping[str, str] = field(default_factory=dict)
    """The chat templates by name: ``default``, and others such as ``tool_use``; empty if there is none."""
    bos_token: str | None = None
    eos_token: str | None = None
    eos_ids: tuple[int, ...] = ()
    """Every id that ends generation, as the configuration lists them."""
    special_tokens: Mapping[str, Any] = field(default_factory=dict)
    """The named special tokens, role to text: ``bos_token``, …; several texts for extra ones."""
    special_ids: Mapping[str, int] = field(default_factory=dict)
    """The ids that the configuration gives to roles, such as ``bos_token_id``."""
    names: tuple[str, ...] = ()
    """What the model may be called, most telling first: its name, its architecture, its folder."""
    _read_tokenizer: _ReadTokenizer = field(default=_no_tokenizer, repr=False, compare=False)

    @cached_property
    def tokenizer(self) -> Tokenizer | None:
        """The model's ``tokenizers.Tokenizer``, loaded at the first use, or None if the files have none.

        Raises LoadError if it is broken, of a kind that cannot be read, or ``tokenizers`` is not installed.
        """
        return self._read_tokenizer()

    @property
    def special_config(self) -> dict[str, Any]:
        """What ``SpecialTokens.from_tokenizer`` takes as ``config``."""
        ends: dict[str, Any] = {"eos_token_id": list(self.eos_ids)} if self.eos_ids else {}
        return {**self.special_tokens, **self.special_ids, **ends}


def read_model(path: str | PathLike[str]) -> ModelFiles:
    """Read a model folder, one of its JSON files (those beside it are read too), a ``.jinja`` or a ``.gguf``
    file.

    Raises LoadError, naming the file and the field, if a file is missing, unreadable or not what it should
    be.
    """
    source = Path(path)
    if source.is_dir():
        return _read_folder(source, source)
    if not source.exists():
        raise LoadError(
            f"{source}: no such file; expected a model folder, tokenizer_config.json, .jinja or .gguf file"
        )
    if source.suffix == ".gguf":
        from .gguf_files import read_gguf

        return read_gguf(source)
    if source.name in _FOLDER_FILES:
        return _read_folder(source.parent, source)
    if source.suffix in {".jinja", ".jinja2", ".j2"}:
        return ModelFiles(source, {"default": _text(source)}, names=(source.stem,))
    raise LoadError(
        f"{source}: not a model file by its name; expected a folder, a .jinja or .gguf file, or one of "
        + ", ".join(_FOLDER_FILES)
    )


def read_tokenizer(path: str | PathLike[str]) -> Tokenizer:
    """The tokenizer of a ``tokenizer.json`` (by any name), a model folder or a ``.gguf`` file.

    Raises LoadError if there is none, or it is broken.
    """
    source = Path(path)
    if source.suffix == ".json" and source.name not in _FOLDER_FILES:
        return _tokenizer_json(source)
    tokenizer = read_model(source).tokenizer
    if tokenizer is None:
        raise LoadError(
            f"{source}: no tokenizer there; expected a tokenizer.json, or a .gguf file with a vocabulary"
        )
    return tokenizer


def _read_folder(folder: Path, source: Path) -> ModelFiles:
    if not any((folder / name).is_file() for name in _FOLDER_FILES):
        raise LoadError(
            f"{folder}: this folder holds no model files; expected at least one of "
            + ", ".join(_FOLDER_FILES)
        )
    config_file = folder / "tokenizer_config.json"
    tokenizer_config = _json(config_file)
    special_tokens: dict[str, Any] = {}
    for file, fields in ((folder / "special_tokens_map.json", None), (config_file, tokenizer_config)):
        special_tokens.update(_special_tokens(file, _json(file) if fields is None else fields))
    eos_ids: tuple[int, ...] = ()
    special_ids: dict[str, int] = {}
    for file in (folder / "config.json", folder / "generation_config.json"):
        fields = _json(file)
        nested = fields.get("text_config")
        if isinstance(nested, dict):
            fields = {**nested, **fields}
        eos_ids = _ids(file, fields, "eos_token_id") or eos_ids
        for key in ("bos_token_id", "pad_token_id"):
            ids = _ids(file, fields, key)
            if ids:
                special_ids[key] = ids[0]
    tokenizer_file = folder / "tokenizer.json"
    return ModelFiles(
        source=source,
        templates=_templates(folder, tokenizer_config),
        bos_token=special_tokens.get("bos_token"),
        eos_token=special_tokens.get("eos_token"),
        eos_ids=eos_ids,
        special_tokens=special_tokens,
        special_ids=special_ids,
        names=_names(folder, _json(folder / "config.json"), tokenizer_config),
        _read_tokenizer=(lambda: _tokenizer_json(tokenizer_file))
        if tokenizer_file.is_file()
        else _no_tokenizer,
    )


def _templates(folder: Path, tokenizer_config: dict[str, Any]) -> dict[str, str]:
    """The chat templates of the first source that has any."""
    found: dict[str, str] = {}
    single = folder / "chat_template.jinja"
    if single.is_file():
        found["default"] = _text(single)
    for name in _TEMPLATE_FOLDERS:
        for file in sorted((folder / name).glob("*.jinja")):
            found.setdefault(file.stem, _text(file))
    if found:
        return found
    for file in (folder / "chat_template.json", folder / "tokenizer_config.json"):
        fields = tokenizer_config if file.name == "tokenizer_config.json" else _json(file)
        found = _named_templates(file, fields.get("chat_template"))
        if found:
            return found
        if file.name == "chat_template.json" and file.is_file():
            raise LoadError(
                f'{file}: field "chat_template" is missing; expected a template text, or delete the file'
            )
    return {}


def _named_templates(file: Path, value: object) -> dict[str, str]:
    """The value of ``chat_template``: a text, a dict of texts, or a list of ``{"name", "template"}``."""
    if value is None:
        return {}
    if isinstance(value, str):
        return {"default": value}
    if isinstance(value, dict):
        value = [{"name": name, "template": text} for name, text in value.items()]
    if not isinstance(value, list):
        raise _wrong(file, "chat_template", "a template text or a list of {name, template}", value)
    found: dict[str, str] = {}
    for place, entry in enumerate(value):
        if not isinstance(entry, dict):
            raise _wrong(file, f"chat_template[{place}]", "an object with name and template", entry)
        for key in ("name", "template"):
            if not isinstance(entry.get(key), str):
                raise _wrong(file, f"chat_template[{place}].{key}", "a text", entry.get(key))
        found[entry["name"]] = entry["template"]
    return found


def _special_tokens(file: Path, fields: dict[str, Any]) -> dict[str, Any]:
    """The fields ``*_token`` and those that list extra tokens, each token as its text."""
    found: dict[str, Any] = {}
    for key, value in fields.items():
        if key.endswith("_token") and not key.startswith(("add_", "use_")):
            text = value.get("content") if isinstance(value, dict) else value
            if text is None:
                continue
            if not isinstance(text, str):
                if key in {"bos_token", "eos_token", "pad_token", "unk_token"}:
                    raise _wrong(file, key, 'a text, or an object with a text "content"', value)
                continue
            found[key] = text
        elif key in {"additional_special_tokens", "extra_special_tokens"} and value:
            if isinstance(value, dict):
                found[key] = {role: _content(text) for role, text in value.items()}
            elif isinstance(value, list):
                found[key] = [_content(text) for text in value]
            else:
                raise _wrong(file, key, "a list or an object of texts", value)
    return found


def _content(value: object) -> object:
    return value.get("content") if isinstance(value, dict) else value


def _ids(file: Path, fields: dict[str, Any], key: str) -> tuple[int, ...]:
    value = fields.get(key)
    if value is None:
        return ()
    ids = value if isinstance(value, list) else [value]
    if not all(isinstance(one, int) and not isinstance(one, bool) and one >= -1 for one in ids):
        raise _wrong(file, key, "a token id or a list of token ids", value)
    return tuple(one for one in ids if one >= 0)


def _names(folder: Path, config: dict[str, Any], tokenizer_config: dict[str, Any]) -> tuple[str, ...]:
    architectures = config.get("architectures")
    candidates = [
        config.get("_name_or_path"),
        tokenizer_config.get("name_or_path"),
        folder.resolve().name,
        config.get("model_type"),
        *(architectures if isinstance(architectures, list) else []),
    ]
    return tuple(dict.fromkeys(name for name in candidates if isinstance(name, str) and name))


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise LoadError(f"{file}: not UTF-8 at byte {error.start}; save it as UTF-8") from error
    except OSError as error:
        raise LoadError(f"{file}: cannot be read: {error.strerror or error}") from error


def _json(file: Path) -> dict[str, Any]:
    """The object in ``file``, empty if there is no such file."""
    if not file.is_file():
        return {}
    try:
        fields = json.loads(_text(file).removeprefix("\ufeff"))
    except json.JSONDecodeError as error:
        raise LoadError(
            f"{file}: not JSON at line {error.lineno}, column {error.colno}: {error.msg}; download it again"
        ) from error
    if not isinstance(fields, dict):
        raise LoadError(f"{file}: expected a JSON object, found {_kind(fields)}; download it again")
    return fields


def _tokenizer_json(file: Path) -> Tokenizer:
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise LoadError(f"{file}: reading it needs tokenizers: pip install tokenizers") from error
    text = _text(file)
    try:
        return Tokenizer.from_str(text)
    except Exception as error:  # tokenizers raises bare Exception, with the place in its message
        raise LoadError(
            f"{file}: not a tokenizer that tokenizers can read: {error}; download it again"
        ) from error


def _wrong(file: Path, key: str, expected: str, found: object) -> LoadError:
    return LoadError(f'{file}: field "{key}": expected {expected}, found {_kind(found)}; correct the file')


def _kind(value: object) -> str:
    if value is None:
        return "nothing"
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 60 else text[:57] + '...'}"
