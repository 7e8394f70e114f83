"""Streaming parsers and grammars for the answers of open-weights chat models, from one definition per format.

A `Chat` (template, format, tokenizer) prepares a `Turn` (prompt, grammar, stops), which opens a `Stream` (feed, finish,
message). `load` makes a chat from a model's files; `get_format` finds a format by name where there is no template.

Each name is imported when it is first used: ``import chatparsers`` alone loads nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .compiled import chosen_core
from .lazy import lazy_names

if TYPE_CHECKING:
    from .answers.features import Features
    from .answers.format import Format, Turn
    from .chat.asking import CallResult, NoAnswer, RunResult
    from .chat.chat import Chat, clean_output
    from .chat.conversation import Conversation, Grown
    from .chat.load import load
    from .chat.placeholders import Placeholder
    from .chat.read_back import PromptMessage
    from .chat.record import TemplateFormat
    from .chat.rollout import Rollout
    from .chat.sample import Kind, Sample
    from .data.packing import Collator, Packed, pack
    from .data.rows import parse_many
    from .detection.detect import Detection, detect
    from .doctor.check import check
    from .doctor.report import Finding, Report
    from .errors import (
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
    from .explaining.causes import Cause, Explanation, Mention
    from .explaining.explain import explain
    from .explaining.recover import Recovered, recover
    from .formats import FormatRef
    from .grammar import Grammar, Trigger, Weakened
    from .guide import Guide, Guides, GuideState
    from .labels.charges import Charge
    from .plugins import hookimpl
    from .registry import FormatInfo, get_format, list_formats, register, unregister
    from .schema.wished import Thoughts
    from .streams.events import CallArguments, CallEnd, CallStart, Content, Event, Reasoning
    from .streams.message import Diagnostic, Loop, Message, Region, ToolCall
    from .streams.state import StreamState
    from .streams.stream import Stream
    from .templates.trace import Trace, TraceSpan
    from .tokens import SpecialTokens
    from .verify import verify

__version__ = "0.1.0"

__all__ = [
    "CORE",
    "AmbiguousFormat",
    "CallArguments",
    "CallEnd",
    "CallResult",
    "CallStart",
    "Cause",
    "Charge",
    "Chat",
    "ChatParsersError",
    "Collator",
    "Content",
    "Conversation",
    "DefinitionError",
    "Detection",
    "Diagnostic",
    "Event",
    "Explanation",
    "Features",
    "Finding",
    "Format",
    "FormatInfo",
    "FormatRef",
    "Grammar",
    "Grown",
    "Guide",
    "GuideState",
    "Guides",
    "Kind",
    "LoadError",
    "Loop",
    "Mention",
    "Message",
    "NoAnswer",
    "OutputError",
    "Packed",
    "Placeholder",
    "PromptMessage",
    "Reasoning",
    "Recovered",
    "Region",
    "Report",
    "RequestError",
    "Rollout",
    "RunResult",
    "Sample",
    "SchemaError",
    "SpecialTokens",
    "Stream",
    "StreamState",
    "TemplateError",
    "TemplateFormat",
    "Thoughts",
    "ToolCall",
    "Trace",
    "TraceSpan",
    "Trigger",
    "Turn",
    "UnknownFormat",
    "Weakened",
    "__version__",
    "check",
    "clean_output",
    "detect",
    "explain",
    "get_format",
    "hookimpl",
    "list_formats",
    "load",
    "pack",
    "parse_many",
    "recover",
    "register",
    "unregister",
    "verify",
]

_HOME = {
    "AmbiguousFormat": "errors",
    "CallArguments": "streams.events",
    "CallEnd": "streams.events",
    "CallResult": "chat.asking",
    "CallStart": "streams.events",
    "Cause": "explaining.causes",
    "Charge": "labels.charges",
    "Chat": "chat.chat",
    "ChatParsersError": "errors",
    "Collator": "data.packing",
    "Content": "streams.events",
    "Conversation": "chat.conversation",
    "DefinitionError": "errors",
    "Detection": "detection.detect",
    "Diagnostic": "streams.message",
    "Event": "streams.events",
    "Explanation": "explaining.causes",
    "Features": "answers.features",
    "Finding": "doctor.report",
    "Format": "answers.format",
    "FormatInfo": "registry",
    "FormatRef": "formats",
    "Grammar": "grammar",
    "Grown": "chat.conversation",
    "Guide": "guide",
    "GuideState": "guide",
    "Guides": "guide",
    "Kind": "chat.sample",
    "LoadError": "errors",
    "Mention": "explaining.causes",
    "Loop": "streams.message",
    "Message": "streams.message",
    "NoAnswer": "chat.asking",
    "OutputError": "errors",
    "Packed": "data.packing",
    "Placeholder": "chat.placeholders",
    "PromptMessage": "chat.read_back",
    "Reasoning": "streams.events",
    "Recovered": "explaining.recover",
    "Region": "streams.message",
    "Report": "doctor.report",
    "RequestError": "errors",
    "Rollout": "chat.rollout",
    "RunResult": "chat.asking",
    "Sample": "chat.sample",
    "SchemaError": "errors",
    "SpecialTokens": "tokens",
    "Stream": "streams.stream",
    "StreamState": "streams.state",
    "TemplateError": "errors",
    "Thoughts": "schema.wished",
    "ToolCall": "streams.message",
    "Trace": "templates.trace",
    "TraceSpan": "templates.trace",
    "Trigger": "grammar",
    "TemplateFormat": "chat.record",
    "Turn": "answers.format",
    "UnknownFormat": "errors",
    "Weakened": "grammar",
    "check": "doctor.check",
    "clean_output": "chat.chat",
    "detect": "detection.detect",
    "explain": "explaining.explain",
    "get_format": "registry",
    "hookimpl": "plugins",
    "list_formats": "registry",
    "load": "chat.load",
    "pack": "data.packing",
    "parse_many": "data.rows",
    "recover": "explaining.recover",
    "register": "registry",
    "unregister": "registry",
    "verify": "verify",  # the package is the function
}


__getattr__ = lazy_names(__name__, _HOME)


CORE = chosen_core()
"""The core that runs: "compiled" in a platform's wheel, not with ``CHATPARSERS_PURE=1`` or without GIL; else "pure"."""


def __dir__() -> list[str]:
    return sorted(__all__)
