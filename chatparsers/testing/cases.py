"""Cases as data: JSON files with texts that models wrote and the messages that must be read in them.

Fields: ``title``, ``source`` (where the text is from), ``text``; ``prefix``, ``tools`` (OpenAI-shaped, or names of
`chatparsers.testing.TOOLS`), ``options`` (more of what `Format.bind` takes) where needed;
``about`` (what `chatparsers report` adds; nothing reads it); and one of

- ``expect``: ``content``, ``reasoning`` (``""`` where absent), ``calls`` (``name``, ``arguments`` as JSON
  text or as data, and
  ``id`` if the model writes one), ``complete`` (true if absent), ``diagnostics`` (their codes in order);
- ``message``: all of `Message.to_dict` but the text, written by `update_golden`.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..answers.format import Format, Turn
from ..streams.message import Diagnostic, Message
from ..watch import observe
from .check import check_prefixes, check_stream
from .chunkings import characters, random_cuts
from .rendering import exact
from .scenarios import TOOLS
from .wild import call_openers

_NAMED = {tool["function"]["name"]: tool for tool in TOOLS}
_TEXTS = ("title", "source", "text")
_FIELDS = (*_TEXTS, "prefix", "tools", "options", "expect", "message", "format", "about")
_EXPECT = ("reasoning", "content", "calls", "diagnostics", "complete")
_CALL = ("name", "arguments", "id", "complete")


def load_cases(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The cases of a folder, sorted by file. Raises ValueError for one with a wrong field, or with an unknown one,
    which nothing would check; it names the file and the field."""
    for path in sorted(folder.glob("*.json")):
        try:
            case = json.loads(path.read_text(encoding="utf-8"))
            _check_fields(case)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        yield path, case


def _check_fields(case: Any) -> None:
    """Raises ValueError for a case that `run_case` cannot read, or not all of it."""
    _check_known("a case", case, _FIELDS)
    for name in _TEXTS:
        if not isinstance(case.get(name), str):
            raise ValueError(f"{name}: expected a text, found {case.get(name)!r}")
    expect = case.get("expect", {})
    _check_known("expect", expect, _EXPECT)
    for index, call in enumerate(expect.get("calls", ())):
        _check_known(f"expect.calls[{index}]", call, _CALL)
        if not {"name", "arguments"} <= call.keys():
            raise ValueError(f"expect.calls[{index}]: expected name and arguments, found {sorted(call)}")
    for tool in case.get("tools", ()):
        if isinstance(tool, str) and tool not in _NAMED:
            raise ValueError(
                f"tools: expected a whole tool, or the name of one of {sorted(_NAMED)}, found {tool!r}"
            )


def _check_known(what: str, given: Any, fields: tuple[str, ...]) -> None:
    if not isinstance(given, dict):
        raise ValueError(f"{what}: expected an object, found {type(given).__name__}")
    if unknown := sorted(given.keys() - set(fields)):
        raise ValueError(f"{what}: expected {', '.join(fields)}, found {', '.join(unknown)}")


def bound(format: Format, case: Mapping[str, Any], **more: Any) -> Turn:
    """The turn of the case. ``more``: other options of `Format.bind`.

    A case may have schemas with other names of types, such as Python's."""
    tools = [_NAMED[tool] if isinstance(tool, str) else tool for tool in case.get("tools", ())]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "tools: expected JSON's names of types")
        options = {"id_seed": "", **case.get("options", {}), **more}
        return format.bind(tools=tools or None, prefix=case.get("prefix", ""), **options)


def run_case(format: Format, case: Mapping[str, Any], cuts: int = 24) -> dict[str, int]:
    """Feeds the text in every way, ``cuts`` of them random; returns the number of feedings by chunking.

    Raises AssertionError.
    """
    turn, text = bound(format, case), case["text"]
    message = turn.parse(text)
    check_case(case, message, observe(turn, message))
    check_stream(turn, text, [text], whole=message)
    counts = {"whole": 1, "characters": 1, "random": 0}
    check_stream(turn, text, characters(text), whole=message)
    for pieces in random_cuts(text, cuts):
        check_stream(turn, text, pieces, whole=message)
        counts["random"] += 1
    counts["prefixes"] = check_prefixes(turn, text, 1 + len(text) // (5 * cuts))
    return counts


def check_case(case: Mapping[str, Any], message: Message, observed: Sequence[Diagnostic] = ()) -> None:
    """Raises AssertionError if the case expects another message. ``observed``: what was found beside the message."""
    if "expect" in case:
        _expect(case["expect"], message, observed)
    else:
        assert "message" in case, "neither expect nor message: write the golden with --update-goldens"
        assert _golden(message) == case["message"], "the message is not the golden one: see --update-goldens"


def _expect(expect: Mapping[str, Any], message: Message, observed: Sequence[Diagnostic]) -> None:
    assert message.reasoning == expect.get("reasoning", ""), f"reasoning is {message.reasoning!r}"
    assert message.content == expect.get("content", ""), f"content is {message.content!r}"
    calls = expect.get("calls", [])
    names = [call.name for call in message.tool_calls]
    assert names == [call["name"] for call in calls], f"calls are {names}"
    for call, wanted in zip(message.tool_calls, calls, strict=True):
        if isinstance(wanted["arguments"], str):
            assert call.arguments == wanted["arguments"], f"arguments are {call.arguments!r}"
        else:
            assert exact(call.arguments) == exact(json.dumps(wanted["arguments"])), (
                f"arguments are {call.arguments!r}"
            )
        if "id" in wanted:
            assert call.id == wanted["id"], f"id is {call.id!r}"
        if "complete" in wanted:
            assert call.complete == wanted["complete"], f"call {call.index}: complete is {call.complete}"
    found = [*message.diagnostics, *observed]
    codes = [diagnostic.code for diagnostic in found]
    assert codes == expect.get("diagnostics", []), f"diagnostics are {[str(d) for d in found]}"
    assert message.complete == expect.get("complete", True), f"complete is {message.complete}"


def _golden(message: Message) -> dict[str, Any]:
    found = message.to_dict()
    del found["text"]
    return found


def update_golden(format: Format, path: Path) -> None:
    """Writes what the format now reads into the golden case of that file.

    Raises ValueError for a text with a call in it and no ``tools``: without tools a call is content, and the golden
    would say so for ever. A case that means this says ``"tools": []``.
    """
    case = json.loads(path.read_text(encoding="utf-8"))
    begun = [text for text in call_openers(format) if text.strip() in case["text"]]
    if begun and "tools" not in case:
        raise ValueError(
            f"{path}: the text has {begun[0].strip()!r}, with which a call of {format.name} begins, and the case names "
            'no tools, so that the call would be content. Add "tools": ["get_weather"], or "tools": [] if that is meant'
        )
    case["message"] = _golden(bound(format, case).parse(case["text"]))
    path.write_text(json.dumps(case, ensure_ascii=False, indent=2) + "\n", encoding="utf-8", newline="\n")
