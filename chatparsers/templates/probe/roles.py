"""Finds the text that a template writes before and after a message of each role, in the traces of stand-ins.

Each role is rendered in the middle of a conversation, between messages of other roles, so that neither the beginning
of the text nor its end is taken for a header. A system message is rendered at the start, and late: most templates write
another text before the first. No header begins with what closes a user's message: gpt-oss closes each message with one
marker, but the model's last one with another. The assistant's header
is the text with which its answers, calls and thoughts all begin. Mistral's templates, for example, write no such text:
then the text that closes a user's message or a result is the assistant's header.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ...answers.format import Format
from ...errors import TemplateError
from ..trace import Trace
from .edges import edges_of
from .turns import MARKER, common, outside_marker

if TYPE_CHECKING:
    from ..render import Template

_HELLO, _BYE, _WORDS = "永Hello", "永Bye", "永Words"
_USER, _ANSWER = {"role": "user", "content": _HELLO}, {"role": "assistant", "content": _BYE}
_ID, _NAME = "call00000", "needlename"
_CALL = {"id": _ID, "type": "function", "function": {"name": _NAME, "arguments": {"needle": _BYE}}}
ANY = "\0"
"""In a header: any name or id."""
_TEXTS = ("content", "reasoning", "arguments")
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
    user = _around(template, [_USER, _ANSWER], {"role": "user", "content": _WORDS}, [_ANSWER, _USER])
    answer = _around(template, [_USER], {"role": "assistant", "content": _WORDS}, [_USER, _ANSWER])
    if user is None or answer is None or not _enough(user.before):
        return {}
    header = _assistants(template, fmt, answer.before)
    closes, openers = user.after, [header]
    if _enough(header):
        closes = closes.partition(header)[0]
    else:
        openers, closes = [closes], ""
    user = user._replace(before=_past(user.before, closes))
    found = {"user": Headers((user.before,), closes)}
    result = {"role": "tool", "name": _NAME, "tool_call_id": _ID, "content": _WORDS}
    called = {"role": "assistant", "content": "", "tool_calls": [_CALL]}
    tool = _around(template, [_USER, called], result, [_ANSWER, _USER])
    others = {user.before.strip(), *(text.strip() for text in openers)}
    if tool is not None and _enough(tool.before) and tool.before.strip() not in others:
        if _enough(header) and header in tool.after:
            after = tool.after.partition(header)[0]
        else:
            openers.append(_any(_bare(fmt, tool.after)))
            after = ""
        found["tool"] = Headers((_any(_past(tool.before, closes)),), after)
    found["assistant"] = Headers(
        tuple(text for text in openers if _enough(text)), answer.after.partition(user.before)[0]
    )
    taken = {text.strip() for header in found.values() for text in header.before}
    system = _systems(template, user.before.strip(), closes, taken)
    if system is not None:
        found["system"] = system
    return found if found["assistant"].before else {}


def _systems(template: Template, opens: str, closes: str, taken: Collection[str]) -> Headers | None:
    """The headers of a system message: of the first, and of one that comes late. ``opens``: a user's header;
    ``taken``: those of others."""
    message = {"role": "system", "content": _WORDS}
    shown = _shown(template, [message, _USER])
    gaps = None if shown is None else _gaps(shown, 0)
    if gaps is None or opens not in gaps.after or not _enough(gaps.before):
        return None
    if gaps.before.rstrip().endswith(opens):
        return None
    before = [gaps.before]
    late = _around(template, [_USER, _ANSWER], message, [_USER, _ANSWER])
    header = "" if late is None else _past(late.before, closes)
    shared = header[len(header) - common(header[::-1], gaps.before[::-1]) :]
    if shared == gaps.before or MARKER.match(shared):
        header = shared  # what is before it closes another message
    if _enough(header) and MARKER.search(header) and header.strip() not in taken:
        before.append(header)
    return Headers(tuple(dict.fromkeys(before)), gaps.after.partition(opens)[0])


def _past(header: str, closes: str) -> str:
    """The header without what closes the message before it."""
    rest = header.removeprefix(closes.strip())
    return rest if _enough(rest) else header


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
    thought: dict[str, Any] = {"role": "assistant", "content": _WORDS, "reasoning_content": "永thought"}
    for message in (called, thought):
        plain, shown = _shown(template, [_USER]), _shown(template, [_USER, message])
        if plain is not None and shown is not None and shown.text.startswith(plain.text):
            rest = shown.text[len(plain.text) :]
            at = outside_marker(rest, outside_marker(header, common(header, rest)))
            header = header[:at] if _enough(header[:at]) else header
    return _bare(fmt, header)


def _bare(fmt: Format, header: str) -> str:
    """The header without what the format itself reads of it, if that leaves enough."""
    bare = header.removesuffix(edges_of(fmt).opening(header))
    return bare if _enough(bare) else header


class _Gaps(NamedTuple):
    """The text before and after a message's words, up to those of other messages."""

    before: str
    after: str


def _gaps(trace: Trace, index: int) -> _Gaps | None:
    """What is around the content of a message; None if it is not shown once and whole."""
    places = [place for place in trace.places.get(index, ()) if trace.spans[place].field == "content"]
    if len(places) != 1 or not trace.spans[places[0]].verbatim:
        return None
    others = [span for span in trace.spans if span.message != index and span.field in _TEXTS]
    start, end = trace.spans[places[0]][:2]
    return _Gaps(
        trace.text[max((span.end for span in others if span.end <= start), default=0) : start],
        trace.text[end : min((span.start for span in others if span.start >= end), default=None)],
    )


def _around(
    template: Template, history: list[dict[str, Any]], message: dict[str, Any], rest: list[dict[str, Any]]
) -> _Gaps | None:
    """The header of the message, and the text after its words; None if the message is not shown.

    The text that closes the message before it is not part of its header: the rendering of only the history ends in
    it too.
    """
    shown, plain = _shown(template, [*history, message, *rest]), _shown(template, history)
    gaps = None if shown is None or plain is None else _gaps(shown, len(history))
    if gaps is None or plain is None:
        return None
    closed = plain.text[max((span.end for span in plain.spans if span.field in _TEXTS), default=0) :]
    header = gaps.before[outside_marker(gaps.before, common(closed, gaps.before)) :]
    if message["role"] == "user":  # nor is anything that the first message of a conversation has not
        alone = _shown(template, [message])
        opens = None if alone is None else _gaps(alone, 0)
        if opens is not None:
            shared = len(header) - common(header[::-1], opens.before[::-1])
            inside = next((m for m in MARKER.finditer(header) if m.start() < shared < m.end()), None)
            header = header[inside.end() if inside else shared :] or header
    return _Gaps(header, gaps.after)


def _shown(template: Template, messages: list[dict[str, Any]]) -> Trace | None:
    try:
        return template.shown(messages)
    except TemplateError:
        return None
