"""The errors of the package, split by whose fault they are."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING

from .public import public

if TYPE_CHECKING:
    from .message import DiagnosticCode, Message

__all__ = [
    "AmbiguousFormat",
    "ChatParsersError",
    "DefinitionError",
    "LoadError",
    "OutputError",
    "RequestError",
    "SchemaError",
    "TemplateError",
    "UnknownFormat",
    "did_you_mean",
]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint for a misspelt ``name``, or all that is ``known`` where nothing is near it."""
    names = sorted(known)
    near = get_close_matches(name, names, n=3, cutoff=0.5)
    if near:
        return f"did you mean {' or '.join(near)}?"
    return f"known are: {', '.join(names)}" if names else "none are known"


@public
class ChatParsersError(Exception):
    """The base of every error that this package raises."""


@public
class DefinitionError(ChatParsersError):
    """A format's definition cannot be compiled: its author's to mend."""


@public
class RequestError(ChatParsersError):
    """What the caller asked for contradicts itself: a tool that is not there, text after ids."""


@public
class LoadError(ChatParsersError):
    """A model file is missing or broken; the message names the file and the field."""


@public
class TemplateError(ChatParsersError):
    """A chat template could not be rendered; the message names the template and the message index."""


@public
class UnknownFormat(ChatParsersError, LookupError):
    """No format goes by that name; the message suggests near ones."""


@public
class AmbiguousFormat(ChatParsersError):
    """Two plugins register the same name."""


@public
class SchemaError(ChatParsersError):
    """A JSON Schema is invalid; ``path`` is its JSON path."""

    def __init__(self, message: str, path: str = "$") -> None:
        super().__init__(f"{path}: {message}")
        self.path = path


@public
class OutputError(ChatParsersError):
    """The model wrote something its format does not allow (raised in strict mode alone).

    ``code`` is ``malformed`` or ``truncated``, ``position`` in characters of the model's text, ``expected`` what the
    format allows there, ``snippet`` the text found, ``message`` what had been read until then.
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
