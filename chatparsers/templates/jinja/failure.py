"""What went wrong in a template: the line, the message it was at, the reason, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import FrameType

from ...errors import TemplateError


class Exhausted(Exception):
    """The template wants to do more than `Limits` allow. No `TemplateError`: probing must not take it for an answer."""


_LONGEST = 1000
"""The characters of a reason that an error repeats; a template may make it as long as it likes."""


def place(name: str, line: int | None = None, index: int | None = None) -> str:
    """``template NAME, line 3, messages[2]``, as much of it as is known."""
    parts = [f"template {name}"]
    if line is not None:
        parts.append(f"line {line}")
    if index is not None:
        parts.append(f"messages[{index}]")
    return ", ".join(parts)


def explain(error: Exception, name: str, messages: Sequence[object] = ()) -> TemplateError:
    """The ``TemplateError`` that tells of ``error``, raised while a template rendered ``messages``."""
    from jinja2 import TemplateSyntaxError

    line, index = None, None
    for frame, number in _template_frames(error):
        line = number
        at = _message_in(frame, messages)
        index = index if at is None else at
    text = _short(str(error)) or type(error).__name__
    if isinstance(error, TemplateSyntaxError):
        line, text = error.lineno, _short(error.message or text)
    message = messages[index] if index is not None else None
    return TemplateError(f"{place(name, line, index)}: {text} ({_advice(error, message)})")


def _template_frames(error: Exception) -> Iterator[tuple[FrameType, int]]:
    """The frames that jinja2 maps back to lines of the template, outermost first."""
    trace = error.__traceback__
    while trace is not None:
        if "__jinja_exception__" in trace.tb_frame.f_globals:
            yield trace.tb_frame, trace.tb_lineno
        trace = trace.tb_next


def _message_in(frame: FrameType, messages: Sequence[object]) -> int | None:
    """The last message that a variable of the frame holds: loops are past ``system_message`` and its like."""
    held = {id(value) for value in frame.f_locals.values()}
    return next((i for i in range(len(messages) - 1, -1, -1) if id(messages[i]) in held), None)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _advice(error: Exception, message: object) -> str:
    from jinja2 import exceptions

    if isinstance(error, Exhausted):
        return "use a template that does less, or pass other Limits"
    if isinstance(error, RecursionError):
        return "a macro or a loop of the template calls itself without an end, or a value nests too deep"
    if isinstance(error, exceptions.TemplateSyntaxError):
        return "the template is not valid Jinja2: mend it at that line"
    if isinstance(error, exceptions.SecurityError):
        return "the sandbox refuses this to every template: use a template that does without"
    if isinstance(error, exceptions.UndefinedError):
        return (
            "the template reads a variable or field that is not there: pass it as a keyword or in the message"
        )
    if isinstance(error, exceptions.TemplateError):
        return "the template refuses this conversation: change what it names"
    content = message.get("content") if isinstance(message, Mapping) else None
    if not isinstance(content, (str, Sequence, type(None))) or isinstance(content, bytes):
        return f"its content: expected text or a list of parts, found {type(content).__name__}"
    return f"{type(error).__name__}: the template cannot read a value of this shape: change it"
