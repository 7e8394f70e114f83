"""What to do about a row, where it is known: a flag of that engine, with its name for the model's parser."""

from __future__ import annotations

from dataclasses import replace

from .rows import Row
from .subject import Subject

_READS = ("call-lost", "call-in-content", "markup-shown", "call-differs", "cut-markup")
_THINKS = ("reasoning-lost", "reasoning-in-content")
_PROMPTS = ("prompt-differs", "prompt-count", "tools-not-shown")
_FLAGS: dict[str, dict[str, str]] = {
    "vllm": {
        "calls": "--enable-auto-tool-choice --tool-call-parser NAME",
        "reasoning": "--reasoning-parser NAME",
        "prompt": "--chat-template FILE",
    },
    "sglang": {
        "calls": "--tool-call-parser NAME",
        "reasoning": "--reasoning-parser NAME",
        "prompt": "--chat-template FILE",
    },
    "llama-server": {
        "calls": "--jinja",
        "reasoning": "--jinja --reasoning-format deepseek",
        "prompt": "--jinja --chat-template-file FILE",
    },
}


def with_mend(row: Row, engine: str, subject: Subject) -> Row:
    """The row with its mend, if there is one for this engine."""
    kind = "calls" if row.code in _READS else "reasoning" if row.code in _THINKS else ""
    kind = "prompt" if row.code in _PROMPTS else kind
    flag = _FLAGS.get(engine, {}).get(kind)
    if flag is None or row.blame not in ("server", "likely") or row.mend:
        return row
    names = subject.chat.format.aliases
    told = (
        f" ({subject.chat.format.name} is a NAME there, or one of {', '.join(names[:6])})"
        if "NAME" in flag
        else ""
    )
    return replace(row, mend=f"start the server with {flag}{told}")
