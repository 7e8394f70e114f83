"""Texts that something between the model and the reader has changed: pages, JSON, a vocabulary's own letters."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from typing import NamedTuple

from .causes import CauseCode


class Alteration(NamedTuple):
    """What may have happened to a text. ``undone`` takes it back; it returns the text itself where nothing happened."""

    code: CauseCode
    says: str
    mend: str
    undone: Callable[[str], str]


def _json_text(text: str) -> str:
    if '\\"' not in text and "\\n" not in text:
        return text
    try:
        inside = json.loads('"' + re.sub(r'(?<!\\)"', r"\"", text.replace("\n", "\\n")) + '"')
    except ValueError:
        return text
    return str(inside)


def _letters(text: str) -> str:
    """The text that these pieces of a vocabulary stand for. The fullwidth markers of DeepSeek hold such a letter."""
    if "｜" in text or not re.search("[ĠĊ▁]", text):
        return text
    return text.replace("Ġ", " ").replace("Ċ", "\n").replace("▁", " ")


ALTERATIONS = (
    Alteration(
        "escaped",
        "entities of HTML stand for the markers",
        "read what the engine sent, not what a page shows; html.unescape(text) takes it back",
        html.unescape,
    ),
    Alteration(
        "escaped",
        "the text is the inside of a JSON string",
        "read the JSON first: json.loads",
        _json_text,
    ),
    Alteration(
        "byte-level",
        "these are the pieces of a vocabulary, not the text that they stand for",
        "tokenizer.decode(ids), not convert_ids_to_tokens; or feed the ids",
        _letters,
    ),
)
