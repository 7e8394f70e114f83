"""Finds the text that a template writes before and after a message of each role, in renderings of needles.

Each role is rendered in the middle of a conversation, between messages of other roles, so that neither the beginning
of the text nor its end is taken for a header. Only a system message is rendered at the start. The assistant's header
is the text with which its answers, calls and thoughts all begin. Mistral's templates, for example, write no such text:
then the text that closes a user's message or a result is the assistant's header.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...core.format import Format
from ...errors import TemplateError
from .edges import opening
from .turns import MARKER, common, outside_marker

if TYPE_CHECKING:
    from ..render import Template

_NEEDLE = "永N33DLE"
_HELLO, _BYE = "永Hello", "永Bye"
_USER, _ANSWER = {"role": "user", "content": _HELLO}, {"role": "assistant", "content": _BYE}
_ID, _NAME = "call00000", "needlename"
_CALL = {"id": _ID, "type": "function", "function": {"name": _NAME, "arguments": {"needle": _BYE}}}
ANY = "\0"
"""In a header: any name or id."""
_LEAST = 3  # characters: a shorter text may occur anywhere


@dataclass(frozen=True, slots=True)
class Headers:
    """``before``: the alternative texts before a message's content, with `ANY` for a name or an id. ``after``: the
    text after it, up to the next header."""

    before: tuple[str, ...]
    after: str


def role_headers(template: Template, fmt: Format) -> Mapping[str, Headers]:
    """The headers of the roles that the template tells apart: ``system``, ``user``, ``assistant``, ``tool``.

    A role is left out if the template refuses it, drops its text, or gives it the header of another role.
    """
    user = _around(template, [_USER, _ANSWER], {"role": "user", "content": _NEEDLE}, [_ANSWER, _USER])
    answer = _around(template, [_USER], {"role": "assistant", "content": _NEEDLE}, [_USER, _ANSWER])
    if user is None or answer is None or not _enough(user[0]):
        return {}
    header = _assistants(template, fmt, answer[0])
    closes = user[1].partition(_BYE)[0]  # up to the answer after it
    openers = [header]
    if _enough(header):
        closes = closes.partition(header)[0]
    else:
        openers, closes = [closes], ""
    found = {"user": Headers((user[0],), closes)}
    result = {"role": "tool", "name": _NAME, "tool_call_id": _ID, "content": _NEEDLE}
    called = {"role": "assistant", "content": "", "tool_calls": [_CALL]}
    tool = _around(template, [_USER, called], result, [_ANSWER, _USER])
    others = {user[0].strip(), *(text.strip() for text in openers)}
    if tool is not None and _enough(tool[0]) and tool[0].strip() not in others:
        between = tool[1].partition(_BYE)[0]
        if _enough(header) and header in between:
            after = between.partition(header)[0]
        else:
            openers.append(_any(_bare(fmt, between)))
            after = ""
        found["tool"] = Headers((_any(tool[0]),), after)
    behind = answer[1].partition(_HELLO)[0]
    found["assistant"] = Headers(
        tuple(text for text in openers if _enough(text)), behind.partition(user[0])[0]
    )
    first = _rendered(template, [{"role": "system", "content": _NEEDLE}, _USER])
    if first is not None and first.count(_NEEDLE) == 1:
        before, _, behind = first.partition(_NEEDLE)
        between = behind.partition(_HELLO)[0]
        own = not before.rstrip().endswith(user[0].strip())
        if own and _enough(before) and user[0].strip() in between:
            found["system"] = Headers((before,), between.partition(user[0].strip())[0])
    return found if found["assistant"].before else {}


def _enough(header: str) -> bool:
    return len(header.strip()) >= _LEAST


def _any(header: str) -> str:
    """The header with any id and name in the place of the needle's."""
    return header.replace(_ID, ANY).replace(_NAME, ANY)


def _assistants(template: Template, fmt: Format, before: str) -> str:
    """What all that an assistant says begins with, without what the format itself reads of it, if that leaves
    enough."""
    header = before
    called: dict[str, Any] = {"role": "assistant", "content": "", "tool_calls": [_CALL]}
    thought: dict[str, Any] = {"role": "assistant", "content": _NEEDLE, "reasoning_content": "永thought"}
    for message in (called, thought):
        plain, text = _rendered(template, [_USER]), _rendered(template, [_USER, message])
        if plain is not None and text is not None and text.startswith(plain):
            rest = text[len(plain) :]
            at = outside_marker(rest, outside_marker(header, common(header, rest)))
            header = header[:at] if _enough(header[:at]) else header
    return _bare(fmt, header)


def _bare(fmt: Format, header: str) -> str:
    """The header without what the format itself reads of it, if that leaves enough."""
    bare = header.removesuffix(opening(fmt, header))
    return bare if _enough(bare) else header


def _around(
    template: Template, history: list[dict[str, Any]], message: dict[str, Any], rest: list[dict[str, Any]]
) -> tuple[str, str] | None:
    """The header of the message, and everything after its text; None if the message is not shown.

    The text that closes the message before it is not part of its header: the rendering of only the history ends in
    it too.
    """
    text, plain = _rendered(template, [*history, message, *rest]), _rendered(template, history)
    if text is None or plain is None or text.count(_NEEDLE) != 1:
        return None
    before, _, behind = text.partition(_NEEDLE)
    said = history[-1].get("content") or _BYE
    if said in before and said in plain:
        before, plain = before.rpartition(said)[2], plain.rpartition(said)[2]
    header = before[outside_marker(before, common(plain, before)) :]
    if message["role"] == "user":  # nor is anything that the first message of a conversation has not
        opens, shown, _ = (_rendered(template, [message]) or "").partition(_NEEDLE)
        if shown:
            shared = len(header) - common(header[::-1], opens[::-1])
            inside = next((m for m in MARKER.finditer(header) if m.start() < shared < m.end()), None)
            header = header[inside.end() if inside else shared :] or header
    return header, behind


def _rendered(template: Template, messages: list[dict[str, Any]]) -> str | None:
    try:
        return template.render(messages, strftime_now=lambda pattern: "today")
    except TemplateError:
        return None
