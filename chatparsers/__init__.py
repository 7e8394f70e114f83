"""Streaming parsers and grammars for the answers of open-weights chat models, from one definition per format.

A `Chat` (template, format, tokenizer) prepares a `Turn` (prompt, grammar, stops), which opens a `Stream` (feed, finish,
message). `load` makes a chat from a model's files; `get_format` finds a format by name where there is no template.

Each name is imported when it is first used: ``import chatparsers`` alone loads nothing else.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._chat import Chat, clean_output, load
    from ._conversation import Conversation, Grown
    from ._detect import Detection, detect
    from ._read_back import PromptMessage
    from ._record import TemplateFormat
    from .core.errors import (
        AmbiguousFormat,
        ChatParsersError,
        DefinitionError,
        LoadError,
        OutputError,
        RequestError,
        SchemaError,
        TemplateError,
        UnknownFormat,
    )
    from .core.events import CallArguments, CallEnd, CallStart, Content, Event, Reasoning
    from .core.format import Features, Format
    from .core.message import Diagnostic, Message, Region, ToolCall
    from .core.stream import Stream
    from .core.turn import Turn
    from .formats import FormatRef
    from .grammar import Grammar, Trigger
    from .plugins import hookimpl
    from .registry import FormatInfo, formats, get_format, register
    from .tokens import SpecialTokens

__version__ = "0.1.0"

__all__ = [
    "AmbiguousFormat",
    "CallArguments",
    "CallEnd",
    "CallStart",
    "Chat",
    "ChatParsersError",
    "Content",
    "Conversation",
    "DefinitionError",
    "Detection",
    "Diagnostic",
    "Event",
    "Features",
    "Format",
    "FormatInfo",
    "FormatRef",
    "Grammar",
    "Grown",
    "LoadError",
    "Message",
    "OutputError",
    "PromptMessage",
    "Reasoning",
    "Region",
    "RequestError",
    "SchemaError",
    "SpecialTokens",
    "Stream",
    "TemplateError",
    "TemplateFormat",
    "ToolCall",
    "Trigger",
    "Turn",
    "UnknownFormat",
    "__version__",
    "clean_output",
    "detect",
    "formats",
    "get_format",
    "hookimpl",
    "load",
    "register",
]

_HOME = {
    "AmbiguousFormat": "core.errors",
    "CallArguments": "core.events",
    "CallEnd": "core.events",
    "CallStart": "core.events",
    "Chat": "_chat",
    "ChatParsersError": "core.errors",
    "Content": "core.events",
    "Conversation": "_conversation",
    "DefinitionError": "core.errors",
    "Detection": "_detect",
    "Diagnostic": "core.message",
    "Event": "core.events",
    "Features": "core.format",
    "Format": "core.format",
    "FormatInfo": "registry",
    "FormatRef": "formats",
    "Grammar": "grammar",
    "Grown": "_conversation",
    "LoadError": "core.errors",
    "Message": "core.message",
    "OutputError": "core.errors",
    "PromptMessage": "_read_back",
    "Reasoning": "core.events",
    "Region": "core.message",
    "RequestError": "core.errors",
    "SchemaError": "core.errors",
    "SpecialTokens": "tokens",
    "Stream": "core.stream",
    "TemplateError": "core.errors",
    "ToolCall": "core.message",
    "Trigger": "grammar",
    "TemplateFormat": "_record",
    "Turn": "core.turn",
    "UnknownFormat": "core.errors",
    "clean_output": "_chat",
    "detect": "_detect",
    "formats": "registry",
    "get_format": "registry",
    "hookimpl": "plugins",
    "load": "_chat",
    "register": "registry",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


class _Package(ModuleType):
    """Keeps ``chatparsers.formats`` the function: an import of the package of that name would put itself there."""

    def __setattr__(self, name: str, value: object) -> None:
        if name != "formats" or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
