"""What stands beside a tool's name in a call, in any dialect: the evidence that a text was meant as one.

A name alone is no evidence: people write about tools. It counts with a key of JSON, a tag, a recipient or an opened
argument beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_TAG = r"<[^<>\s]{0,30}(?:tool|call|invoke|function|sep|name)[^<>\s]{0,30}(?:\s[^<>\n]{0,40})?>"
_BEFORE = re.compile(
    r"(?:"
    r"""["'](?:name|tool_name|tool|function|action|recipient_name)["']\s*:\s*["'](?:functions\.)?"""
    r"""|<function=|call:|to=(?:functions\.)?|(?:name|tool)=["']|<tool: """
    rf"|functions\.|{_TAG}\s*"
    r")\Z"
)
_AFTER = re.compile(
    r"\[ARGS\]|\[CALL_ID\]|\s*<(?:arg|\|?tool|\|content)[^>\n]{0,40}>\s*"
    r"""|\(\{\s*"[^"\n]{1,64}"\s*:|(?::\d+)?(?:<[^<>\s]+>)?\s*(?:```json\s*)?\{(?:\s*["}]|\Z)"""
    r"""|>\s*\{(?:\s*["}]|\Z)"""
)
_PYTHON = re.compile(r"\((?:\w+=|\))")
"""A call as Python writes it: only after a bracket, a tag or a label, as people write ``read(path)`` in prose."""
_PYTHON_AFTER = re.compile(r"""(?:\[|[\w|"']>|\bAction:)\s*\Z""")
_EDGES = frozenset("\"'=:>[")
"""With which one of these ends that stand before a name."""
_FOLLOWS = frozenset("[<({:>` \t\n\r\f\v")
"""With one of these begins what stands after a name."""
_DECLARED = re.compile(r"""["']\s*,\s*["']description""")
"""What follows a name in a list of tools, which a model may quote."""
_AROUND = 64
"""How many characters beside a name are looked at."""


def beside(text: str, names: Iterable[str], begin: int = 0) -> Iterator[tuple[str, int]]:
    """Each of ``names`` that stands in ``text`` as in a call, with the character where it begins, from ``begin`` on."""
    for name in names:
        at = text.find(name, begin) if name else -1
        while at >= 0:
            if _as_called(text, at, at + len(name)):
                yield name, at
            at = text.find(name, at + len(name))


def _as_called(text: str, start: int, end: int) -> bool:
    last, next = text[start - 1 : start], text[end : end + 1]
    if last.isalnum() or last == "_" or next.isalnum() or next in ("_", "-"):
        return False
    # Most names in prose and code stand after a word or a point and before a bracket or a blank: no pattern is tried.
    least, most = max(0, start - _AROUND), end + _AROUND
    if last == ".":
        edged, follows = text.endswith("functions.", least, start), False
    else:
        edged, follows = text[least:start].rstrip()[-1:] in _EDGES, next in _FOLLOWS
    if (edged and _BEFORE.search(text, least, start)) or (follows and _AFTER.match(text, end, most)):
        return not _DECLARED.match(text, end, most)
    return edged and bool(_PYTHON.match(text, end, most) and _PYTHON_AFTER.search(text, least, start))
