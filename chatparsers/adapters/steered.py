"""What a request tells an engine in another process, so that it steers the answer by a guide.

    text = to_spec(turn, thinking_tokens=200, max_calls=1)

The text is JSON. It goes where a host takes a grammar: ``ebnf`` of SGLang (``--grammar-backend chatparsers``), the
grammar of vLLM's structured outputs (`chatparsers.adapters.vllm_guide`). Whoever holds the tokenizer makes the turn
anew, and its guide (`guide_of`).
"""

from __future__ import annotations

import json
from typing import Any

from ..answers.format import Turn
from ..chat.chat import Chat
from ..errors import RequestError
from ..guide import Guide

__all__ = ["guide_of", "is_spec", "to_spec"]

_KEY = "chatparsers"
_LIMITS = ("thinking_tokens", "thinking_message", "max_calls", "call_within", "on_loop")


def to_spec(turn: Turn, **limits: Any) -> str:
    """The request of ``turn`` and ``limits`` (`Turn.guide`) as text. Raises `RequestError` for an unknown limit."""
    unknown = sorted(set(limits) - set(_LIMITS))
    if unknown:
        raise RequestError(f"limits: expected some of {', '.join(_LIMITS)}, found {unknown[0]!r}")
    options = turn.options
    request = {
        "tools": list(turn.tools.raw),
        "tool_choice": turn.named or options.mode,
        "parallel_tool_calls": options.parallel or turn.named is not None,
        "response_format": turn.response_format,
        "thinking": options.thinking,
        "lenient_calls": options.lenient,
        "prefix": turn.prefix,
        "max_calls": turn.max_calls,
        "call_within": turn.call_within,
        "call_spaces": turn.call_spaces,
        "limits": limits,
    }
    return json.dumps({_KEY: {name: said for name, said in request.items() if said is not None}})


def is_spec(text: str) -> bool:
    """Whether a grammar's text is one that `to_spec` made."""
    return text.startswith(f'{{"{_KEY}": ')


def guide_of(chat: Chat, spec: str, engine: Any = None) -> Guide:
    """The guide of a request. Raises `RequestError` if ``spec`` is none of `to_spec`, and what `Turn.guide` raises."""
    try:
        request = dict(json.loads(spec)[_KEY])
        limits = dict(request.pop("limits"))
        spaces = tuple(map(tuple, request.pop("call_spaces")))
    except (ValueError, KeyError, TypeError):
        raise RequestError(
            f"grammar: expected the text that chatparsers.adapters.steered.to_spec makes, found {spec:.60}"
        ) from None
    if request["tool_choice"] not in ("auto", "required", "none"):
        request["tool_choice"] = {"type": "function", "function": {"name": request["tool_choice"]}}
    return chat.bind(**request)._replace(call_spaces=spaces).guide(engine, **limits)
