"""The files of a model: chat templates, end-of-turn tokens, and the tokenizer, which is loaded at its first use.

If files disagree, the order is that of transformers. A ``chat_template.jinja`` (with the folder
``additional_chat_templates``) replaces the templates of ``chat_template.json``, and these replace those of
``tokenizer_config.json``. ``tokenizer_config.json`` wins over ``special_tokens_map.json``, and
``generation_config.json`` over ``config.json``.
"""

from __future__ import annotations

from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import LoadError
from ..lazy import installed
from .files import kind_of, path_of, read_json, read_text, refused
from .model_files import ModelFiles, no_tokenizer

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_TOKENIZER_BYTES = 256_000_000

FOLDER_FILES = (
    "tokenizer_config.json",
    "tokenizer.json",
    "chat_template.jinja",
    "chat_template.json",
    "special_tokens_map.json",
    "generation_config.json",
    "config.json",
)
_TEMPLATE_FOLDERS = ("additional_chat_templates", "chat_templates")


def read_model(path: str | PathLike[str]) -> ModelFiles:
    """Reads a model folder, one of its JSON files (with the files beside it), a ``.jinja`` or a ``.gguf`` file.

    Raises LoadError, which names the file and the field, if a file is missing, unreadable or of another kind.
    """
    source = path_of(path)
    if source.is_dir():
        return _read_folder(source, source)
    if source.suffix == ".gguf":
        from .gguf_files import read_gguf

        return read_gguf(source)
    if source.name in FOLDER_FILES:
        return _read_folder(source.parent, source)
    if source.suffix in {".jinja", ".jinja2", ".j2"}:
        text = checked_template(read_text(source), str(source))
        return ModelFiles(source, {"default": text}, names=(source.stem,))
    raise LoadError(
        f"{source}: not a model file by its name; expected a folder, a .jinja or .gguf file, or one of "
        + ", ".join(FOLDER_FILES)
    )


def is_template_text(source: object) -> bool:
    """Whether ``source`` is the text of a template, not a path."""
    return isinstance(source, str) and any(mark in source for mark in ("{%", "{{", "\n"))


def checked_template(text: str, name: str) -> str:
    """``text``. Raises LoadError, which names its file, if no part of it is Jinja: it is no chat template."""
    if "{%" not in text and "{{" not in text:
        found = f"neither {{% nor {{{{ in its {len(text):,} characters" if text.strip() else "nothing in it"
        raise LoadError(f"{name}: expected a chat template, found {found}; pass the model's own template")
    return text


def read_tokenizer(path: str | PathLike[str]) -> Tokenizer:
    """The tokenizer of a ``tokenizer.json`` (by any name), a model folder or a ``.gguf`` file.

    Raises LoadError if there is no tokenizer, if it is broken, or if ``tokenizers`` is not installed.
    """
    source = path_of(path, "a tokenizer.json, a model folder or a .gguf file")
    if not installed("tokenizers"):
        raise LoadError(f"{source}: reading it needs tokenizers: pip install tokenizers")
    if source.suffix == ".json" and source.name not in FOLDER_FILES:
        return _tokenizer_json(source)
    tokenizer = read_model(source).tokenizer
    if tokenizer is None:
        raise LoadError(
            f"{source}: no tokenizer there; expected a tokenizer.json, or a .gguf file with a vocabulary"
        )
    return tokenizer


def _read_folder(folder: Path, source: Path) -> ModelFiles:
    if not any((folder / name).is_file() for name in FOLDER_FILES):
        raise LoadError(
            f"{folder}: this folder holds no model files; expected at least one of " + ", ".join(FOLDER_FILES)
        )
    config_file = folder / "tokenizer_config.json"
    tokenizer_config = read_json(config_file)
    special_tokens: dict[str, Any] = {}
    ends: dict[str, tuple[str | int, ...]] = {}
    for file, fields in ((folder / "special_tokens_map.json", None), (config_file, tokenizer_config)):
        found = _special_tokens(file, read_json(file) if fields is None else fields)
        special_tokens.update(found)
        if "eos_token" in found:
            ends[file.name] = (found["eos_token"],)
    eos_ids: tuple[int, ...] = ()
    special_ids: dict[str, int] = {}
    config = read_json(folder / "config.json")
    for file in (folder / "config.json", folder / "generation_config.json"):
        fields = config if file.name == "config.json" else read_json(file)
        nested = fields.get("text_config")
        if isinstance(nested, dict):
            fields = {**nested, **fields}
        found_ids = _ids(file, fields, "eos_token_id")
        eos_ids = found_ids or eos_ids
        if found_ids:
            ends[file.name] = found_ids
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
        ends=ends,
        special_tokens=special_tokens,
        special_ids=special_ids,
        names=_names(folder, config, tokenizer_config),
        response_template=_response_template(folder, tokenizer_config),
        _read_tokenizer=partial(_tokenizer_json, tokenizer_file)
        if tokenizer_file.is_file()
        else no_tokenizer,
    )


def _response_template(folder: Path, tokenizer_config: dict[str, Any]) -> dict[str, Any] | None:
    """The response template in a file of its own, else in the tokenizer's configuration."""
    file = folder / "response_template.json"
    if file.is_file():
        return read_json(file)
    value = tokenizer_config.get("response_template")
    if value is not None and not isinstance(value, dict):
        raise _wrong(folder / "tokenizer_config.json", "response_template", "an object", value)
    return value


def _templates(folder: Path, tokenizer_config: dict[str, Any]) -> dict[str, str]:
    """The chat templates of the first source that has any."""
    found: dict[str, str] = {}
    single = folder / "chat_template.jinja"
    if single.is_file():
        found["default"] = read_text(single)
    for name in _TEMPLATE_FOLDERS:
        for file in sorted((folder / name).glob("*.jinja")):
            found.setdefault(file.stem, read_text(file))
    if found:
        return found
    for file in (folder / "chat_template.json", folder / "tokenizer_config.json"):
        fields = tokenizer_config if file.name == "tokenizer_config.json" else read_json(file)
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
    """The fields ``*_token`` and the fields that list extra tokens, with each token as its text."""
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


def _tokenizer_json(file: Path) -> Tokenizer:
    from tokenizers import Tokenizer

    text, what = read_text(file, _TOKENIZER_BYTES), f"{file}: not a tokenizer that tokenizers can read"
    with refused(lambda error: LoadError(f"{what}: {error}; download it again")):
        return Tokenizer.from_str(text)


def _wrong(file: Path, key: str, expected: str, found: object) -> LoadError:
    return LoadError(f'{file}: field "{key}": expected {expected}, found {kind_of(found)}; correct the file')
