"""A text that is what the format writes, without its special tokens.

The format's own writer says what a call looks like: it writes one with a stand-in for each argument that the text
names, in the text's order. Without the special tokens, and with the stand-ins matching anything, that must be in the
text.
"""

from __future__ import annotations

import json
import re

from ..answers.format import Format, Turn
from ..errors import ChatParsersError
from ..schema.tools import Tool

_STAND_IN = re.compile(r"""(?:"|')?V\\?[0-9]+V(?:"|')?|9170[0-9]+719""")
_ID = "callid000"
_BEGINS = r"(?m)(?:^[ \t]*|[.!?>\]]){}"
"""Where a name begins a call of which only words are left: a line, or right after a sentence or a marker."""


def stripped_markers(turn: Turn, text: str) -> tuple[str, ...]:
    """The special tokens without which the text is a call of this turn's format; none if it is no such text."""
    squeezed = "".join(text.split())
    for name in turn.tools.names():
        if name not in squeezed:
            continue
        written = _written(turn, name, squeezed[squeezed.index(name) + len(name) :])
        tokens = [token for token in _special(turn.format) if token in written]
        for gone in {tuple(tokens), tuple(token for token in tokens if token not in text)}:
            if gone and _is_in(text, squeezed, written, name, gone):
                return gone
    return ()


def _special(format: Format) -> list[str]:
    return sorted({*format.preserved_tokens, *format.stops}, key=len, reverse=True)


def _written(turn: Turn, name: str, after: str) -> str:
    """A call of the tool as the format writes it; "" if it cannot."""
    tool = turn.tools.get(name)
    keys = sorted((key for key in (tool.arguments if tool else ()) if key in after), key=after.index)
    values = {key: _stand_in(tool, key, number) for number, key in enumerate(keys)}
    arguments = json.dumps(values)
    call = {"type": "function", "id": _ID, "function": {"name": name, "arguments": arguments}}
    try:
        return turn.format.render({"role": "assistant", "content": "", "tool_calls": [call]}, turn.tools)
    except ChatParsersError:
        return ""


def _stand_in(tool: Tool | None, key: str, number: int) -> str | int:
    """A value that the argument may have, as some formats write a number in another way than a text."""
    numeric = tool is not None and tool.argument(key).types <= {"integer", "number"}
    return int(f"9170{number}719") if numeric else f"V{number}V"


def _is_in(text: str, squeezed: str, written: str, name: str, gone: tuple[str, ...]) -> bool:
    for token in gone:
        written = written.replace(token, "")
    rest = "".join(written.split())
    stand_ins = _STAND_IN.search(rest) is not None
    named_alone = (
        not any(character.isalnum() for character in rest.replace(name, "")) and len(rest) < len(name) + 3
    )
    if name not in rest or named_alone:
        return False
    if rest.isidentifier() and not re.search(_BEGINS.format(re.escape(name)), text):
        return False  # words alone, as in prose
    pattern = _STAND_IN.sub(".+?", re.escape(rest)).replace(_ID, r"[\w:.-]*?")
    hit = re.search(pattern, squeezed, re.DOTALL)
    return hit is not None and not any(token in hit[0] for token in gone) and (stand_ins or "{}" in rest)
