"""The errors of the package. Each class says whose mistake it is."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable
from types import FrameType
from typing import TYPE_CHECKING, Literal

from .lazy import installed
from .public import public

if TYPE_CHECKING:
    from .streams.message import DiagnosticCode, Message

_MOST_TEXTS, _LONGEST_TEXT = 256, 1_000
_warned: dict[str | tuple[str, type[Warning], int], int] = {}
"""What `warnings` remembers of the texts of `warn_user`."""


def lacks_tokenizers() -> str:
    """What an error for want of a tokenizer adds where the package that reads one from a file is not installed."""
    return "" if installed("tokenizers") else "; a file's needs tokenizers: pip install tokenizers"


_ENDED = frozenset(
    (
        *("stop", "eos", "eos_token", "end", "end_turn", "end_of_turn", "done", "complete", "completed"),
        *("stop_sequence", "stop_string", "stop_str", "stop_token", "stop_word", "matched_stop"),
        *("tool_calls", "tool_call", "tool_use", "function_call"),
    )
)
_CUT = frozenset(
    (
        *("length", "limit", "max_tokens", "max_new_tokens", "max_output_tokens", "max_length"),
        *("model_length", "context_length", "model_context_window_exceeded", "incomplete", "timeout"),
        *("abort", "aborted", "cancel", "cancelled", "canceled", "error", "content_filter"),
    )
)
"""Why engines say that an answer ended: the model ended it, or it was cut off, so that it is not whole."""


def read_reason(reason: object) -> Literal["stop", "length"] | None:
    """``stop`` or ``length`` for an engine's word. Raises `RequestError` for an unknown one: its answer would pass for
    whole."""
    if reason is None or reason == "stop" or reason == "length":
        return reason
    word = reason.lower() if isinstance(reason, str) else ""
    if word in _ENDED:
        return "stop"
    if word in _CUT:
        return "length"
    raise RequestError(
        f"finish: expected the reason 'stop' or 'length', or an engine's word, found {reason!r:.60}"
    )


def check_limit(name: str, number: object, least: int = 1) -> None:
    """Raises `RequestError` if ``number``, the keyword ``name``, is neither None nor a whole number from ``least``
    on."""
    if number is not None and (type(number) is not int or number < least):
        raise RequestError(f"{name}: expected a number from {least} on, or None, found {number!r:.60}")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint for a misspelt ``name``: near names, or all ``known`` names if no name is near."""
    names = sorted(known)
    from difflib import get_close_matches  # only errors need it

    near = get_close_matches(name, names, n=3, cutoff=0.5)
    if near:
        return f"did you mean {' or '.join(near)}?"
    return f"known are: {', '.join(names)}" if names else "none are known"


def warn_user(text: str) -> None:
    """Warns of what a user gave or asked for, at the line outside the package that did.

    `warnings` remembers each text for ever, and a stranger may make any number of texts: of these it forgets all when
    they are too many, and each has at most 1,000 characters.
    """
    place = sys._getframe(1)
    while place.f_back is not None and _module(place).partition(".")[0] == _PACKAGE:
        place = place.f_back
    if len(_warned) > _MOST_TEXTS:
        _warned.clear()
    text = text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…"
    warnings.warn_explicit(
        text, UserWarning, place.f_code.co_filename, place.f_lineno, _module(place), _warned
    )


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


_PACKAGE = __name__.partition(".")[0]


@public
class ChatParsersError(Exception):
    """The base of every error that this package raises."""


@public
class DefinitionError(ChatParsersError):
    """A format's definition is wrong. Its author must mend it. ``node``: the node that is wrong, where it is one."""

    node: object = None


@public
class RequestError(ChatParsersError):
    """A request is malformed or contradicts itself, such as a choice of an unknown tool, or text after ids."""


@public
class LoadError(ChatParsersError):
    """A model file is missing or broken. The message names the file and the field."""


@public
class TemplateError(ChatParsersError):
    """A chat template could not be rendered. The message names the template and the index of the chat message."""


@public
class UnknownFormat(ChatParsersError, LookupError):
    """No format has that name. The message suggests near names."""


@public
class AmbiguousFormat(ChatParsersError):
    """Two plugins register the same name."""


@public
class SchemaError(ChatParsersError):
    """A JSON Schema is invalid, or its grammar is too large. ``path`` is the JSON path of the mistake."""

    def __init__(self, message: str, path: str = "$") -> None:
        super().__init__(f"{path}: {message}")
        self.path = path


@public
class OutputError(ChatParsersError):
    """The model wrote a text that its format does not allow. Raised only in strict mode.

    ``code`` is ``malformed`` or ``truncated``. ``position`` counts characters of the model's text. ``expected`` names
    what the format allows there, ``snippet`` is the text found there, and ``message`` is the message so far.
    """

    def __init__(
        self, code: DiagnosticCode, position: int, expected: str, snippet: str, message: Message
    ) -> None:
        found = repr(snippet) if snippet else "the end of the text"
        super().__init__(f"{code} at character {position}: expected {expected}, found {found}")
        self.code = code
        self.position = position
        self.expected = expected
        self.snippet = snippet
        self.message = message

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.code, self.position, self.expected, self.snippet, self.message)


def author_line(error: BaseException) -> str:
    """Where in the module of the author's function, which the caller called, ``error`` came from. Empty if the call
    itself failed."""
    at = error.__traceback__ and error.__traceback__.tb_next  # the first frame is the caller's
    module = at and at.tb_frame.f_code.co_filename
    line = 0
    while at is not None:
        if at.tb_frame.f_code.co_filename == module:
            line = at.tb_lineno
        at = at.tb_next
    return f" ({os.path.basename(module)}, line {line})" if module else ""
