"""A model's JSON files, changed so that each names the stop that the template writes.

An id joins the ids that are there. ``eos_token`` has room for one token, so the one before it joins the ids instead,
and no engine that stopped goes on. Only the value changes in a file's text. The changed files are read again as any
host reads them. A ``.gguf`` file is not written anew: it is as large as the model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..chat.chat import Chat
from ..tokens.files import read_json, read_text
from ..tokens.loaders import read_model
from ..tokens.model_files import ModelFiles

_GENERATION = "generation_config.json"
_NAMING = ("tokenizer_config.json", "special_tokens_map.json", "config.json", _GENERATION)
_TEXTS = [("eos_token", "content"), ("eos_token",)]
_IDS = [("eos_token_id",), ("text_config", "eos_token_id")]
"""Where a file names an end, as a text or as ids; the first place that is there counts."""


def folder_of(files: ModelFiles) -> Path | None:
    """The folder of a model's JSON files; None if it has none."""
    source = Path(files.source)
    return source if source.is_dir() else source.parent if source.suffix == ".json" else None


def naming_stop(chat: Chat) -> tuple[Chat, str, dict[str, tuple[str, str]]] | None:
    """The model with files that all name the template's stop, the stop, and of each file that changed the text before
    and after; None if the stop is not one token, or the model has no such files."""
    files, folder = chat.files, folder_of(chat.files)
    tokenizer: Any = chat.tokenizer
    if folder is None or tokenizer is None:
        return None
    written = (text.strip() for text in chat.template().end_of_turn(chat.format))
    known = {text: id for text in written if (id := tokenizer.token_to_id(text)) is not None}
    if not known:
        return None
    stop, id = next(iter(known.items()))
    texts: dict[str, str] = {}
    kept = [id, *files.eos_ids]
    for name, ends in files.ends.items():
        if not {*ends}.isdisjoint({*known, *known.values()}):
            continue
        ids = [end for end in ends if isinstance(end, int)]
        texts[name] = _changed(folder / name, [id, *ids] if ids else stop)
        others = (tokenizer.token_to_id(end) for end in ends if isinstance(end, str))
        kept += [other for other in others if other is not None]
    if not set(kept) <= set(files.eos_ids):
        ids = list(dict.fromkeys(kept))
        none = json.dumps({**files.special_ids, "eos_token_id": ids}, indent=2) + "\n"
        texts[_GENERATION] = _changed(folder / _GENERATION, ids) or none
    read = _read(folder, texts)
    same = replace(
        files,
        eos_token=read.eos_token,
        eos_ids=read.eos_ids,
        ends=read.ends,
        special_tokens=read.special_tokens,
    )
    before = {name: read_text(folder / name) if (folder / name).is_file() else "" for name in texts}
    both = {name: (before[name], text) for name, text in texts.items()}
    return Chat._made(same, tokenizer=tokenizer, format=chat.format, limits=chat.limits), stop, both


def _read(folder: Path, texts: dict[str, str]) -> ModelFiles:
    """What the folder's JSON files say with these texts."""
    with TemporaryDirectory() as made:
        for name in _NAMING:
            if name in texts or (folder / name).is_file():
                text = texts[name] if name in texts else read_text(folder / name)
                (Path(made) / name).write_text(text, encoding="utf-8")
        return read_model(made)


def _changed(file: Path, value: str | list[int]) -> str:
    """The file's text with this end, and nothing else changed; empty if there is no such file."""
    fields = read_json(file)
    if not fields:
        return ""
    for place in _TEXTS if isinstance(value, str) else _IDS:
        within: Any = fields
        for key in place[:-1]:
            within = within.get(key) if isinstance(within, dict) else None
        if not isinstance(within, dict) or within.get(place[-1]) is None:
            continue
        within[place[-1]] = value
        text = read_text(file)
        for start, end in _spans(text, place):
            new = text[:start] + json.dumps(value, ensure_ascii=False) + text[end:]
            if json.loads(new.removeprefix("\ufeff")) == fields:
                return new
        break
    else:
        fields["eos_token_id"] = value
    return json.dumps(fields, ensure_ascii=False, indent=2) + "\n"


def _spans(
    text: str, place: tuple[str, ...], start: int = 0, end: int | None = None
) -> Iterator[tuple[int, int]]:
    """Where the text may have the value at this place."""
    for found in re.compile(rf'"{place[0]}"\s*:\s*').finditer(text, start, len(text) if end is None else end):
        _, after = json.JSONDecoder().raw_decode(text, found.end())
        if len(place) == 1:
            yield found.end(), after
        else:
            yield from _spans(text, place[1:], found.end(), after)
