"""Tools that load later: a message names one, and from there on it can be called.

A host with hundreds of tools shows a few, and a search finds the others. If a tool that was found joined the template's
list, all of the prompt after that list would change. So a tool of ``loaded`` is shown where a part of a message names
it, in the words in which the template's own list would show it, and what stood before stays as it was.

| part of a message | says |
|---|---|
| ``{"type": "tool_reference", "tool_name": NAME}`` | the tool can be called from here on |
| ``{"type": "tool_removal", "tool_name": NAME}`` | it can be called no more; it may be one of ``tools`` |

Invariants: the text of a message depends on that message alone, and not on what other messages name. A tool that no
message names is in no prompt and in no grammar. A message that was written says in `LOADS` what it names, so it is
never written twice.
"""

from __future__ import annotations

import marshal
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..schema.tools import Toolset
from ..templates.messages import is_text

REFERENCE, REMOVAL = "tool_reference", "tool_removal"
LOADS = "loads"
"""The key of a message that was written: the names of tools in turn, each with whether it can be called now."""
Message = Mapping[str, Any]
Loads = tuple[tuple[str, bool], ...]
_LOADED = "[tool {}: it can be called from here on]\n{}"
_NAMED, _REMOVED = "[tool {}]", "[tool {}: it can be called no more]"
_ARROW = re.compile("[-=]>")
_BETWEEN = " \t\r\n,"
"""What may stand between two tools of a list."""


class Loading:
    """The tools of a request that load later. ``shown``: those that the prompt shows from its beginning."""

    def __init__(self, shown: Toolset, later: Toolset) -> None:
        self._shown = shown
        self._all = {_name(tool): tool for tool in (*later.raw, *shown.raw)}
        self._first = {_name(tool): tool for tool in shown.raw}

    def named(self, messages: Iterable[Message]) -> dict[str, Mapping[str, Any]]:
        """The tools that these messages load and the prompt does not show, by their names."""
        contents = (message.get("content") for message in messages)
        parts = (part for one in contents if isinstance(one, (list, tuple)) for part in one)
        names = {str(part.get("tool_name")) for part in parts if _kind(part) == REFERENCE}
        return {name: self._all[name] for name in names & self._all.keys() - self._first.keys()}

    def written(self, messages: Sequence[Message], entries: Mapping[str, str]) -> Sequence[Message]:
        """The messages, in which texts are in the place of names; the same list if none names a tool. ``entries``: how
        the template's list writes the tools that are `named`."""
        found = [self._written(message, entries) for message in messages]
        return messages if all(map(_same, found, messages)) else found

    def _written(self, message: Message, entries: Mapping[str, str]) -> Message:
        content = message.get("content")
        if not isinstance(content, (list, tuple)) or not any(_kind(part) for part in content):
            return message
        loads: list[tuple[str, bool]] = []
        parts: list[Any] = []
        for part in content:
            kind = _kind(part)
            if kind is not None:
                name = str(part.get("tool_name"))
                loads.append((name, kind == REFERENCE))
                part = {"type": "text", "text": _text(name, kind, entries)}
            parts.append(part)
        texts = [part["text"] if isinstance(part, Mapping) else part for part in parts if is_text(part)]
        whole: Any = "\n".join(texts) if len(texts) == len(parts) else parts
        return {**message, "content": whole, LOADS: (*message.get(LOADS, ()), *loads)}

    def tools(self, messages: Iterable[Message], choice: object) -> tuple[Toolset, tuple[str, ...]]:
        """The tools that can be called after these messages, and what is to be said of them. ``choice``: the request's
        ``tool_choice``; a tool that it names can be called, loaded or not."""
        now, warnings = dict(self._first), []
        for place, message in enumerate(messages):
            for name, on in message.get(LOADS, ()):
                if not on:
                    now.pop(name, None)
                elif name in self._all:
                    now[name] = self._all[name]
                else:
                    warnings.append(
                        f"messages[{place}]: it loads the tool {name!r}, which is not among `loaded`"
                    )
        named = _name(choice) if isinstance(choice, Mapping) else ""
        if named in self._all and named not in now:
            now[named] = self._all[named]
            warnings.append(
                f"tool_choice: no message loads {named!r}: the grammar has it, the prompt has not"
            )
        same = now == self._first
        return self._shown if same else Toolset([*now.values()]), tuple(warnings)


def loads_of(messages: Iterable[Message]) -> Loads:
    """What messages that were written name, in turn."""
    return tuple(one for message in messages for one in message.get(LOADS, ()))


def entry_before(others: str, after: str, name: str) -> str | None:
    """What a list that begins with one more tool has more than the list of the others: the tool, without what stands
    between two. None if the texts differ in more than that.

    Where it begins is known up to the characters with which both what stands before the list and what stands between
    two tools end, as `[⏎` and `},⏎` do. So it begins at the first of these places after which no bracket is closed that
    was not opened.
    """
    size = len(after) - len(others)
    pairs = enumerate(zip(others, after, strict=False))
    last = next((at for at, (one, other) in pairs if one != other), len(others))
    if size <= 0 or others[last:] != after[last + size :]:
        return None
    first = last
    while first > 0 and after[first - 1] == after[first - 1 + size]:
        first -= 1
    for at in range(first, last + 1):
        found = after[at : at + size].strip(_BETWEEN)
        if name in found and _closes_its_own(found):
            return found
    return None


def _closes_its_own(text: str) -> bool:
    depth = 0
    for char in _ARROW.sub("", text):
        depth += (char in "<[({") - (char in ">])}")
        if depth < 0:
            return False
    return True


def data_of(tool: Any) -> bytes | None:
    """What tells tools apart; None if that is no plain data."""
    try:
        return marshal.dumps(tool, 2)
    except ValueError:
        return None


def _name(tool: Mapping[str, Any]) -> str:
    function = tool.get("function", tool)
    return str(function.get("name")) if isinstance(function, Mapping) else ""


def _kind(part: object) -> str | None:
    kind = part.get("type") if isinstance(part, Mapping) else None
    return kind if kind in (REFERENCE, REMOVAL) else None


def _text(name: str, kind: str, entries: Mapping[str, str]) -> str:
    if kind == REMOVAL:
        return _REMOVED.format(name)
    return _LOADED.format(name, entries[name]) if name in entries else _NAMED.format(name)


def _same(one: Message, other: Message) -> bool:
    return one is other
