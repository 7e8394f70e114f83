"""Known model names, for models whose template does not show their format.

A row has a pattern, the format that the model was trained on, and the built-in template to serve it with. The pattern
is searched in the name (in lower case, every run of other characters replaced by one ``-``). The first row that is
found decides, so a variant stands before its family.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Known", "known"]


@dataclass(frozen=True, slots=True)
class Known:
    """``name`` was found by ``pattern``. ``format`` is ``""`` for models that were taught no calls."""

    name: str
    format: str
    template: str


_ROWS: tuple[tuple[str, str, str], ...] = (
    ("hermes-?[234]", "hermes-2-pro", "hermes-2-pro"),
    ("functionary.*3-2", "functionary-v3-2", "functionary-v3-2"),
    ("functionary", "functionary-v3-1", "functionary-v3-1"),
    ("firefunction", "firefunction-v2", "firefunction-v2"),
    ("deepseek-r1-distill|deepseek-r1|r1-1776", "deepseek-r1", "deepseek-r1"),
    ("deepseek-v3-[12]", "deepseek-v3-1", "deepseek-v3-1"),
    ("deepseek-(v3|v2-5)", "deepseek-v3", "deepseek-v3"),
    ("deepseek", "", "deepseek"),
    ("devstral|ministral-3", "ministral-3", "ministral-3"),
    ("magistral", "magistral", "magistral"),
    ("mistral-small-(3-2|.*2506)", "mistral-small-3-2", "mistral-small-3-2"),
    ("mistral-(nemo|large|small)|(mistral|mixtral).*(v0-3|8x22b)", "mistral-nemo", "mistral-nemo"),
    ("mistral|mixtral", "", "mistral"),
    ("command-(r7b|a)", "command-r7b", "command-r7b"),
    ("c4ai-command-r|command-r-(plus|v01|08|35b|latest)", "command-r-plus", "command-r-plus"),
    ("qwen3.*coder", "qwen3-coder", "qwen3-coder"),
    ("qwen-?(2-5|3)|qwq", "qwen3", "qwen3"),
    ("qwen", "", "chatml"),
    ("mimo", "xiaomi-mimo", "xiaomi-mimo"),
    ("llama-?3-[123]", "llama-3-x", "llama-3-x"),
    ("nemotron.*nano.*v2", "nemotron-v2", "nemotron-v2"),
    ("nemotron-?3", "nemotron-v3", "nemotron-v3"),
    ("llama-?3", "", "llama-3"),
    ("llama-?2", "", "llama-2"),
    ("glm-4-[5-9]", "glm-4-5", "glm-4-5"),
    ("glm-?4", "", "glm-4"),
    ("kimi-k2", "kimi-k2", "kimi-k2"),
    ("minimax-m2", "minimax-m2", "minimax-m2"),
    ("gpt-oss", "gpt-oss", "gpt-oss"),
    ("granite-?4", "granite-4", "granite-4"),
    ("granite-?3.*guardian", "", "granite"),
    ("granite-?3", "granite", "granite"),
    ("lfm2", "lfm2", "lfm2"),
    ("function-?gemma", "function-gemma", "function-gemma"),
    ("gemma", "", "gemma"),
    ("seed-oss", "seed-oss", "seed-oss"),
    ("apertus", "apertus", "apertus"),
    ("apriel-1-6", "apriel-1-6", "apriel-1-6"),
    ("apriel", "apriel-1-5", "apriel-1-5"),
    ("phi-?4(?!-mini)", "", "phi-4"),
    ("phi-?[34]", "", "phi"),
    ("yi-", "", "chatml"),
)


def known(names: Iterable[str]) -> Known | None:
    """The row of the first of these names that is known; None if all are unknown."""
    for name in names:
        key = re.sub(r"[^a-z0-9]+", "-", name.lower())
        for pattern, format, template in _ROWS:
            if re.search(rf"(?<![a-z0-9])(?:{pattern})", key):
                return Known(name, format, template)
    return None
