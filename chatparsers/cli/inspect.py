"""``chatparsers inspect``: shows a model's format, the name first; renders a conversation; compares two models."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from .analysis import emit_module, explain_analysis
from .files import Refused, items, print_json, to_json
from .request import chat_of, thinking_of
from .show import show_model

if TYPE_CHECKING:
    from ..chat.chat import Chat

_FIRST = ("format", "score", "stops")
_SAID = ("thinking_switches", "thinking_default", "thoughts")
"""Fields that the rows of thoughts show."""


def run(arguments: Namespace) -> int:
    """Prints the record of the model (`Chat.record`), how it renders ``--messages``, or how it differs from ``--diff``;
    with ``--explain``, the steps of an analysis of its template."""
    tokenizer = None
    if arguments.tokenizer is not None:
        from ..tokens import read_tokenizer

        tokenizer = read_tokenizer(arguments.tokenizer)
    chat = chat_of(arguments.model, arguments, tokenizer=tokenizer)
    if arguments.emit_module is not None:
        emit_module(chat, arguments.emit_module)
    if arguments.form == "data":
        from .export import text_of

        print(text_of(chat.format))
        return 0
    if arguments.form == "html":
        show_model(chat, list(rows(_answer_first(asdict(chat.record())))))
        return 0
    if arguments.explain:
        return explain_analysis(chat, arguments)
    if arguments.emit_module is not None:
        return 0
    if arguments.diff is not None:
        return _diff(chat, chat_of(arguments.diff, arguments), arguments.form == "json")
    if arguments.messages is not None:
        found = _conversation(chat, arguments)
    elif arguments.tools is not None:
        raise Refused("--tools goes with --messages: say --messages FILE as well")
    else:
        found = asdict(chat.record())
        found["bridge"] = {f"{shape}, then {then}": str(one) for (shape, then), one in chat.bridge.items()}
    if arguments.form == "json":
        print_json(found, indent=2)
    else:
        _print(list(rows(found if arguments.messages is not None else _answer_first(found))))
    return 0


def _print(table: list[tuple[str, str]]) -> None:
    width = max((len(label) for label, _ in table), default=0)
    for label, value in table:
        print(f"{label:<{width}}  {value}".rstrip())


def _answer_first(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record in the order in which one reads it: the format, its stops and its thinking, what the template shows
    and lacks; then everything."""
    can: Mapping[str, Any] = record["capabilities"]
    flagged = {name for name, value in can.items() if isinstance(value, bool) and name != "thinking_default"}
    flags = {name.replace("_", " "): value for name, value in can.items() if name in flagged}
    first = {
        **{name: record[name] for name in _FIRST},
        "thoughts": _levels(record["thoughts"]),
        "shows": ", ".join(name for name, value in flags.items() if value),
        "lacks": ", ".join(name for name, value in flags.items() if not value),
    }
    rest = {name: value for name, value in can.items() if name not in {*flagged, *_SAID, "generation_prompt"}}
    details = {name: value for name, value in record.items() if name not in {*_FIRST, *_SAID}}
    details["roles"] = {
        role: f"{marks['before']}…{marks['after']}" for role, marks in record["roles"].items()
    }
    return {**first, **details, "capabilities": rest}


def _levels(thoughts: Mapping[str, Any]) -> Any:
    """The levels of thought and effort, each with its variables."""
    if not thoughts:
        return "none"
    levels = {
        name: ", ".join(f"{key}={to_json(value)}" for key, value in given.items()) or "no variable"
        for name, given in thoughts["levels"].items()
    }
    named = {"without a wish": thoughts["default"], "on": thoughts["on"], "off": thoughts["off"]}
    return {
        "levels": "; ".join(f"{name} ({given})" for name, given in levels.items()) or "none",
        **{label: name or "–" for label, name in named.items()},
    }


def _conversation(chat: Chat, arguments: Namespace) -> dict[str, Any]:
    """How the template renders this conversation: polyfills, size and end of the prompt, prefix and stops."""
    tools = None if arguments.tools is None else items(arguments.tools, "tools")
    messages = items(arguments.messages, "messages")
    turn = chat.prepare(messages, tools=tools, thinking=thinking_of(arguments), effort=arguments.effort)
    return {
        "format": turn.format.name,
        "polyfills": turn.polyfills,
        "warnings": turn.warnings,
        "prompt characters": len(turn.prompt),
        "prompt ends": turn.prompt[-60:],
        "prefix": turn.prefix,
        "stops": turn.stops,
        **({} if turn.thoughts is None else {"thoughts": str(turn.thoughts)}),
    }


def _diff(one: Chat, other: Chat, as_json: bool) -> int:
    """Prints the differences. Returns 0 if there are none, else 1."""
    from ..chat.record import differences

    found = differences(asdict(one.record()), asdict(other.record()))
    if as_json:
        print_json(found, indent=2)
    else:
        for name, (mine, theirs) in found.items():
            print(f"{name.replace('_', ' ')}: {_shown(mine)} -> {_shown(theirs)}")
    return 1 if found else 0


def rows(record: Mapping[str, Any], under: str = "") -> Iterator[tuple[str, str]]:
    """A label and a text for each line of the table. The items of a mapping or list have lines of their own."""
    for key, value in record.items():
        # a marker is written as it is
        label = under + (str(key).replace("_", " ") if str(key).isidentifier() else str(key))
        if isinstance(value, Mapping) and value:
            yield from rows(value, f"{label}: ")
        elif isinstance(value, (list, tuple, set, frozenset)) and any(value):
            for place, item in enumerate(value):
                yield ("" if place else label), _shown(item)
        else:
            yield label, _shown(value)


def _shown(value: object) -> str:
    """A text, as JSON if its ends or line breaks would not be seen."""
    if value is None or value == {} or value == "":
        return "–"
    if isinstance(value, (list, tuple, set, frozenset)) and not any(value):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str) and value == value.strip() and value.isprintable():
        return value
    return to_json(value)
