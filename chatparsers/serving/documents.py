"""Documents that are text, as parts of messages in three APIs: the model reads their text."""

from __future__ import annotations

import base64
import binascii
import mimetypes
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote_to_bytes

from .errors import ApiError
from .fields import mapping, sequence, string

_URL = re.compile(r"data:([^;,]*)([^,]*?)(;base64)?,", re.IGNORECASE)
_TEXT = re.compile(
    r"text/.*|application/(?:.*\+)?(?:json|xml|yaml|x-yaml|toml|javascript|x-sh|sql|x-ndjson|jsonl?)"
)
_UNTOLD = ("", "application/octet-stream")
_NAMES = {".md": "text/markdown", ".jsonl": "application/jsonl", ".yaml": "text/yaml", ".yml": "text/yaml"}


def document_text(part: Mapping[str, Any], path: str) -> str | None:
    """The text of a part that is a document or a search result, its name before it; None if it is none, or none that
    is text.

    Raises `ApiError` for one whose bytes are not what it says.

    >>> from chatparsers.serving.documents import document_text
    >>> file = {"filename": "a.txt", "file_data": "data:text/plain;base64,SGk="}
    >>> document_text({"type": "file", "file": file}, "messages[0].content[0]")
    'a.txt:\\nHi'
    """
    kind = part.get("type")
    if kind == "search_result":
        return _found(part, path)
    if kind == "document":
        text = _source(mapping(part.get("source"), f"{path}.source"), f"{path}.source")
        name = part.get("title")
    elif kind in ("file", "input_file"):
        file, at = (
            (mapping(part.get("file"), f"{path}.file"), f"{path}.file") if kind == "file" else (part, path)
        )
        name = file.get("filename")
        if file.get("file_data") is None:
            return None
        text = _data(string(file["file_data"], f"{at}.file_data"), name, f"{at}.file_data")
    else:
        return None
    return text if text is None or not isinstance(name, str) or not name else f"{name}:\n{text}"


def _found(part: Mapping[str, Any], path: str) -> str:
    """The text of a search result of Anthropic's API: its title, its source and its words."""
    heads = [string(part[name], f"{path}.{name}") for name in ("title", "source") if part.get(name)]
    listed = sequence(part.get("content"), f"{path}.content")
    blocks = [
        (mapping(block, f"{path}.content[{at}]"), f"{path}.content[{at}]") for at, block in enumerate(listed)
    ]
    return "\n".join([*heads, *(string(block.get("text"), f"{at}.text") for block, at in blocks)])


def _source(source: Mapping[str, Any], path: str) -> str | None:
    """The text of a document of Anthropic's API."""
    kind = source.get("type")
    if kind == "text":
        return string(source.get("data"), f"{path}.data")
    if kind == "base64" and _TEXT.fullmatch(str(source.get("media_type"))):
        return _decoded(string(source.get("data"), f"{path}.data"), f"{path}.data")
    if kind == "content":
        content = source.get("content")
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        texts = [
            block.get("text")
            for block in blocks
            if isinstance(block, Mapping) and block.get("type") == "text"
        ]
        return "\n".join(map(str, texts)) if len(texts) == len(blocks) else None
    return None


def _data(text: str, name: object, path: str) -> str | None:
    """The text of a ``data:`` URL, or of base64 alone."""
    url = _URL.match(text)
    kind = url[1].lower() if url is not None else ""
    if kind in _UNTOLD and isinstance(name, str):
        end = name[name.rfind(".") :].lower()
        kind = _NAMES.get(end) or mimetypes.guess_type(name)[0] or ""
    if not _TEXT.fullmatch(kind):
        return None
    if url is None or url[3]:
        return _decoded(text[url.end() if url is not None else 0 :], path)
    return _utf8(unquote_to_bytes(text[url.end() :]), path)


def _decoded(text: str, path: str) -> str:
    try:
        return _utf8(base64.b64decode(text, validate=True), path)
    except binascii.Error as error:
        raise ApiError(f"expected base64: {error}", param=path) from error


def _utf8(raw: bytes, path: str) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ApiError("expected a text in UTF-8, found other bytes", param=path) from error
