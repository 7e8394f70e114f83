"""What is public: the modules that users import, in the groups in which the reference shows their names."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

__all__ = ["BEGINNING", "PAGES", "Page", "anchors", "members", "undocumented", "ungrouped"]


class Page(NamedTuple):
    """A page of the reference. ``names``: those that it shows, in order; empty for all of ``module.__all__``."""

    file: str
    title: str
    says: str
    module: str
    names: tuple[str, ...] = ()


PAGES = (
    Page(
        "chat",
        "Load a model",
        "From a model's files to requests, conversations and detection.",
        "chatparsers",
        (
            *("load", "Chat", "Conversation", "Grown", "detect", "Detection", "TemplateFormat"),
            *(
                "PromptMessage",
                "Charge",
                "SpecialTokens",
                "clean_output",
                "RunResult",
                "CallResult",
                "NoAnswer",
            ),
        ),
    ),
    Page(
        "turn",
        "Read an answer",
        "One request and its answer: turns, streams, events, messages.",
        "chatparsers",
        (
            *(
                "Turn",
                "Stream",
                "StreamState",
                "Event",
                "Reasoning",
                "Content",
                "CallStart",
                "CallArguments",
                "CallEnd",
            ),
            *(
                "Thoughts",
                "Loop",
                "Message",
                "ToolCall",
                "Region",
                "Diagnostic",
                "parse_many",
                "recover",
                "Recovered",
            ),
            *("explain", "Explanation", "Cause", "Mention"),
        ),
    ),
    Page(
        "grammar",
        "Grammars",
        "What a sampler may write.",
        "chatparsers",
        ("Grammar", "Trigger", "Weakened"),
    ),
    Page(
        "guide",
        "Steer a generation",
        "Masks, forced ids, budgets and rollback.",
        "chatparsers",
        ("Guide", "GuideState", "Guides"),
    ),
    Page(
        "rollout",
        "Rollouts and samples",
        "Token ids over many turns, and what a trainer eats.",
        "chatparsers",
        ("Rollout", "Sample", "Kind", "Placeholder", "pack", "Packed", "Collator", "Trace", "TraceSpan"),
    ),
    Page(
        "doctor",
        "The doctor",
        "What is wrong with a model's files.",
        "chatparsers",
        ("check", "Report", "Finding", "verify"),
    ),
    Page(
        "formats",
        "Find and add formats",
        "The registry of formats, and the hook for plugins.",
        "chatparsers",
        (
            *("get_format", "list_formats", "Format", "Features", "FormatInfo", "FormatRef"),
            *("register", "unregister", "hookimpl"),
        ),
    ),
    Page(
        "errors",
        "Errors",
        "What the package raises. Nothing is raised for a model's text, unless you ask for it.",
        "chatparsers",
        (
            *("ChatParsersError", "LoadError", "UnknownFormat", "AmbiguousFormat", "TemplateError"),
            *("RequestError", "SchemaError", "DefinitionError", "OutputError"),
        ),
    ),
    Page("core", "Write a format", "What the module of a format imports.", "chatparsers.answers"),
    Page("display", "Pictures", "Readings as text for terminals and as HTML.", "chatparsers.display"),
    Page("data", "Tables", "Whole tables of rows through a model.", "chatparsers.data"),
    Page("serving", "Chat APIs", "OpenAI's and Anthropic's APIs, without any I/O.", "chatparsers.serving"),
    Page("gateway", "The gateway", "The server as an application.", "chatparsers.gateway"),
    Page("verify", "Judge a server", "What is wrong in a chat server's answers.", "chatparsers.verify"),
    Page("testing", "Test a format", "The test matrix as a plugin of pytest.", "chatparsers.testing"),
)
BEGINNING = """\
import chatparsers
from chatparsers.testing.tiny import tiny_model

parameters = {"type": "object", "properties": {"city": {"type": "string"}}}
tools = [{"name": "get_weather", "parameters": parameters}]
messages = [{"role": "user", "content": "Is it cold in Oslo?"}]
call = '<tool_call>\\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\\n</tool_call>'

tokenizer = tiny_model("qwen3").tokenizer  # a small one, for examples
chat = chatparsers.load(template="qwen3", tokenizer=tokenizer)
"""
"""What the examples of the docstrings begin with."""
_NO_OBJECT = {"CORE", "__version__"}


def ungrouped() -> set[str]:
    """Public names of `chatparsers` that no page shows, and names of pages that are not public."""
    grouped = {name for page in PAGES if page.module == "chatparsers" for name in page.names}
    return grouped ^ (set(import_module("chatparsers").__all__) - _NO_OBJECT)


def members(page: Page) -> Iterator[tuple[str, Any]]:
    """Every public object of a page by its dotted name: functions, classes, and the methods and properties of these."""
    module = import_module(page.module)
    for name in page.names or module.__all__:
        found = getattr(module, name)
        yield f"{page.module}.{name}", found
        if not inspect.isclass(found):
            continue
        for attribute in dir(found):
            if attribute.startswith("_"):
                continue
            own = inspect.getattr_static(found, attribute)
            where = next(base for base in found.__mro__ if attribute in vars(base))
            kinds = (property, classmethod, staticmethod)
            if where.__module__.partition(".")[0] == "chatparsers" and (
                isinstance(own, kinds) or inspect.isfunction(own) or hasattr(own, "func")
            ):
                yield f"{page.module}.{name}.{attribute}", getattr(found, attribute)


def undocumented() -> list[str]:
    """The public objects without a docstring. A method may have that of the method which it overrides."""
    return [
        name
        for page in PAGES
        for name, found in members(page)
        if callable(found) or isinstance(found, property)
        if not inspect.getdoc(found)
    ]


@cache
def anchors() -> dict[str, str]:
    """For each public object with a docstring of its own, such as ``Chat.prepare``, its anchor on the site."""
    found: dict[str, str] = {}
    for page in PAGES:
        for name, each in members(page):
            if getattr(each, "__doc__", None):
                found.setdefault(name.removeprefix(f"{page.module}."), name)
    return found
