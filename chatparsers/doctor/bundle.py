"""One file with all that mends an answer that was read wrongly: the template, the answer, and what was read."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import PurePath
from typing import Any

from ..chat.chat import Chat
from ..explaining.explain import explain
from ..streams.message import Message

_SECRET = re.compile(
    r"key|secret|password|passwd|authorization|credential|bearer|(?:access|api|auth)[-_]?token", re.I
)
_NAMES = frozenset({"properties", "patternProperties", "$defs", "definitions"})
"""The keywords of JSON Schema below which keys are names."""
_SHOWN = frozenset({"default", "example", "examples", "const", "enum"})
"""The keywords of JSON Schema that show values."""


def bundle(
    chat: Chat,
    version: str,
    *,
    output: str | Sequence[int] | None = None,
    tools: Sequence[Mapping[str, Any]] | None = None,
    prefix: str | None = None,
) -> dict[str, Any]:
    """The report as plain values. ``left_out`` has the path of each value whose key looks secret.

    It is a case of the project's tests as it stands (``format``, ``tools``, ``prefix``, ``text``, ``expect``), with the
    rest below ``about``: whoever mends the fault corrects ``expect``.
    """
    left_out: list[str] = []
    shown = _without_secrets(list(tools or ()), "tools", left_out)
    detection = chat.detection
    about: dict[str, Any] = {
        "detection": {"name": detection.name, "score": detection.score, "evidence": list(detection.evidence)},
        "template": chat.template().source,
        "bos_token": chat.files.bos_token,
        "eos_token": chat.files.eos_token,
        "versions": {"chatparsers": version, "python": platform.python_version()},
        "left_out": left_out,
    }
    report: dict[str, Any] = {
        "title": f"an answer of {PurePath(chat.name).name} that was read wrongly",  # a folder's path names people
        "source": "chatparsers report",
        "format": chat.format.name,
        "tools": shown,
        "about": about,
    }
    if output is None:
        return report
    turn = chat.prepare([{"role": "user", "content": "Hello"}], tools=tools or None, id_seed="")
    if prefix is not None:
        turn = turn._replace(prefix=prefix)
    found = explain(output, turn)
    message = found.message
    if not isinstance(output, str):
        about["ids"] = list(output)
        decode: Any = getattr(chat.tokenizer, "decode", None)
        about["tokens"] = [decode([id], skip_special_tokens=False) for id in output] if decode else []
    about["strip"] = _strip(message)
    about["causes"] = [asdict(cause) for cause in found.causes]
    return {**report, "prefix": turn.prefix, "text": message.text, "expect": _expected(message)}


def _expected(message: Message) -> dict[str, Any]:
    return {
        "content": message.content,
        "reasoning": message.reasoning,
        "calls": [
            {"name": call.name, "arguments": call.arguments, "complete": call.complete}
            for call in message.tool_calls
        ],
        "complete": message.complete,
        "diagnostics": [diagnostic.code for diagnostic in message.diagnostics],
    }


def _strip(message: Message) -> list[list[str]]:
    """Each region's kind and text, in order."""
    return [[region.kind, message.text[region.start : region.end]] for region in message.regions]


def _without_secrets(value: Any, path: str, left_out: list[str], *, names: bool = False) -> Any:
    """The value without what a key that looks secret has. ``names``: its keys are names of arguments, whose
    schemas stay, without the values that they show."""
    if isinstance(value, (list, tuple)):
        return [_without_secrets(inner, f"{path}[{place}]", left_out) for place, inner in enumerate(value)]
    if not isinstance(value, Mapping):
        return value
    kept: dict[str, Any] = {}
    for key, inner in value.items():
        at = f"{path}.{key}"
        if not _SECRET.search(str(key)) or isinstance(inner, (bool, type(None))):
            kept[str(key)] = _without_secrets(inner, at, left_out, names=key in _NAMES)
        elif names and isinstance(inner, Mapping):
            left_out += [f"{at}.{shown}" for shown in inner if shown in _SHOWN]
            schema = {shown: each for shown, each in inner.items() if shown not in _SHOWN}
            kept[str(key)] = _without_secrets(schema, at, left_out)
        else:
            left_out.append(at)
    return kept
