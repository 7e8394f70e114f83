"""What stands beside a tool's name in a call, in any dialect: the evidence that a text was meant as one.

A name alone is no evidence: people write about tools. It counts with a key of JSON, a tag, a recipient or an opened
argument beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_TAG = r"<[^<>\s]{0,30}(?:tool|call|invoke|function|sep|name)[^<>\s]{0,30}>"
_BEFORE = re.compile(
    r"(?:"
    r"""["'](?:name|tool_name|tool|function|action|recipient_name)["']\s*:\s*["'](?:functions\.)?"""
    r"""|<function=|=|call:|to=(?:functions\.)?|(?:name|tool)=["']|<tool: """
    rf"|functions\.|{_TAG}\s*"
    r")\Z"
)
_AFTER = re.compile(
    r"\[ARGS\]|\[CALL_ID\]|\s*<(?:arg|\|?tool|\|content)[^>\n]{0,40}>\s*"
    r"""|\(\{"|(?::\d+)?(?:<[^<>\s]+>)?\s*(?:```json\s*)?\{(?:\s*["}]|\Z)|"\s*:\s*\{"""
)
_PYTHON = re.compile(r"\((?:\w+=|\))")
"""A call as Python writes it: only after a bracket, a tag or a label, as people write ``read(path)`` in prose."""
_PYTHON_AFTER = re.compile(r"(?:\[|[\w|]>|\bAction:)\s*\Z")
_DECLARED = re.compile(r"""["']\s*,\s*["']description""")
"""What follows a name in a list of tools, which a model may quote."""
_AROUND = 64
"""How many characters beside a name are looked at."""


def beside(text: str, names: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Each of ``names`` that stands in ``text`` as in a call, with the character where it begins."""
    for name in names:
        at = text.find(name) if name else -1
        while at >= 0:
            if _as_called(text, at, at + len(name)):
                yield name, at
            at = text.find(name, at + len(name))


def _as_called(text: str, start: int, end: int) -> bool:
    before, after = text[max(0, start - _AROUND) : start], text[end : end + _AROUND]
    if before[-1:].isalnum() or before[-1:] == "_" or after[:1].isalnum() or after[:1] in ("_", "-"):
        return False
    if _DECLARED.match(after):
        return False
    if _BEFORE.search(before) or _AFTER.match(after):
        return True
    return bool(_PYTHON.match(after) and _PYTHON_AFTER.search(before))
