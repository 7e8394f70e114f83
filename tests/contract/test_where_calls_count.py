"""A call that lacks its opener, or spells it otherwise, counts where a model makes it, not where it tells of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from chatparsers import Format, Message, get_format
from chatparsers.answers.format import Turn
from chatparsers.answers.idioms import Options
from chatparsers.answers.nodes import Body
from chatparsers.answers.openers import openers as written_openers
from chatparsers.answers.roles import roles
from chatparsers.core.tree import once
from chatparsers.streams import known
from chatparsers.testing import check_cuts, load_cases
from chatparsers.testing.cases import bound

CASES = Path(__file__).parents[1] / "needle" / "cases"
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}
CALL = {
    "id": "call00001",
    "type": "function",
    "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'},
}
CODE = "unopened-call"
RUNS = (*(bar * number for bar in "｜|" for number in (1, 2, 3)), "‖", "| |")
BARS = [
    (space, bars + white, white + bars)
    for bars in RUNS
    for white in ("", " ")
    for space in sorted({"", white})
    if bars + white != "｜"
]
"""Runs of bars around a name, also with white space around it, and then before them too."""
BARE = {"generic", "llama-3-x", "pythonic", "xlam"}
"""The formats whose calls are written without an opener: in prose they lack it."""
AFTER_TEXT = {
    *(
        "deepseek-v3-2",
        "deepseek-v4",
        "deepseek-v4-1",
        "dots",
        "gemma-4",
        "gigachat-3-5",
        "llama-3-x",
        "muse",
    ),
    *("muse-glimmer", "nanbeige", "nemotron-v3", "pythonic", "qwen3-coder", "rwkv", "seed-oss"),
}
"""The formats with a form that is also read after text; the others stand at the start of a turn and after a call."""


def written(format: Format) -> str:
    message: dict[str, Any] = {"role": "assistant", "content": "", "tool_calls": [CALL]}
    return format.render(message, [TOOL]).strip()


def openers(format: Format) -> tuple[str, ...]:
    body = next(node for node in once(format.tree(Options(tools=True))) if isinstance(node, Body))
    return () if body.calls is None else written_openers(body.calls) or ()


def forms(format: Format) -> Iterator[tuple[Turn, str]]:
    """Whole calls of the format that lack their opener, each with a turn that declares its tool: from the cases of
    models' outputs, and what the format writes, also with other bars and from a later tag on."""
    turn = format.bind(tools=[TOOL], id_seed="")
    text = written(format)
    found = {text: turn} | {text[tag.start() :]: turn for tag in re.finditer("<", text)}
    found |= {one: turn for one in barred(text, Random(format.name).sample(BARS, 5))}
    folder = CASES / format.name
    for _, case in load_cases(folder) if folder.is_dir() else ():
        given = bound(format, case)._replace(id_seed="", prefix="")
        noted = [one.position for one in given.parse(case["text"]).diagnostics if one.code == CODE]
        for form in (case["text"], case["text"][min(noted, default=0) :]):
            ends = [form.partition(stop)[0] for stop in format.stops if stop in form]
            found.setdefault(min([form, *ends], key=len).strip(), given)
    for form, given in found.items():
        alone = given.parse(form)
        whole = alone.complete and not (alone.content or alone.reasoning)
        messages = (alone, given.parse(f"I look.\n{form}"))
        if whole and len(alone.tool_calls) == 1 and any(map(lacks_openers, messages)):
            yield given, form


def barred(text: str, bars: Iterable[tuple[str, str, str]]) -> Iterator[str]:
    """The text with other bars around each name that is between bars."""
    for space, left, right in bars:
        yield re.sub("｜([A-Z]+)｜", rf"{space}{left}\1{right}", text)


def lacks_openers(message: Message) -> bool:
    codes = [diagnostic.code for diagnostic in message.diagnostics]
    return {*codes} == {CODE} and len(codes) == len(message.tool_calls)


def told(form: str) -> dict[str, str]:
    """The form where a text tells of it."""
    return {
        "prose": f"To call it, write {form} and wait.",
        "fence": f"Write it so:\n\n```\n{form}\n```\n\nThat is all.",
        "fence with a name": f"So:\n```xml\nAn example:\n{form}\n```\n",
        "tildes": f"~~~\n{form}\n~~~\nThat is how.",
        "fence at the start": f"```json\n{form}\n```\nis a call.",
        "fence in a fence": f"````\n```\n{form}\n```\n````\n",
        "list": "Ways:\n- " + form.replace("\n", "\n  "),
        "quote": "They say:\n> " + form.replace("\n", "\n> "),
        "code": f"Write `{form}` there.",
    }


def made(format: Format, form: str, after_text: bool) -> dict[str, tuple[str, int]]:
    """The form where it is a call, with how many calls are before it."""
    if not after_text:
        return {}
    places = {
        "in a fence that is all": (f"```\n{form}\n```", 0),
        "after text": (f"I look.\n{form}", 0),
        "after an empty line": (f"I look.\n\n{form}\n", 0),
        "after a fence": (f"So:\n```python\nx = 1\n```\n\n{form}", 0),
        "after inline code": (f"So:\n```x = 1```\n{form}", 0),
        "after a fence that tells it": (f"So:\n```\n{form}\n```\n\n{form}", 0),
    }
    if format.name not in BARE:  # there it is one list of calls
        places["after a call"] = f"{written(format)}\n{form}", 1
    return places


def parsed(turn: Turn, text: str) -> Message:
    """The message of the text, which does not depend on the pieces."""
    message = turn.parse(text)
    stream = turn.stream()
    for start in range(0, len(text), 3):
        stream.feed(text[start : start + 3])
    stream.finish()
    assert stream.message == message
    return message


def test_a_call_counts_where_it_stands(format: Format) -> None:
    if not format.features.tools:
        return
    known = openers(format)
    read_after_text = []
    for turn, form in forms(format):
        alone = turn.parse(form).tool_calls
        opened = any(opener in form for opener in known)  # a call in it has its own
        for place, text in told(form).items():
            message = parsed(turn, text)
            assert opened or not message.tool_calls, (place, text)
            assert CODE not in [diagnostic.code for diagnostic in message.diagnostics], (place, text)
        for opener in known:  # which opens nothing, as a call begins in it twice
            parsed(turn, f"```\n{opener}\n{form[: len(form) // 3]}\n{form}\n```")
        after_text = not opened and bool(turn.parse(f"I look.\n{form}").tool_calls)
        read_after_text.append(after_text)
        for place, (text, before) in made(format, form, after_text).items():
            message = parsed(turn, text)
            calls = [(call.name, call.arguments, call.complete) for call in message.tool_calls[before:]]
            assert calls == [(call.name, call.arguments, call.complete) for call in alone], (place, text)
            codes = [diagnostic.code for diagnostic in message.diagnostics]
            assert codes.count(CODE) == len(alone), (place, text)
    assert any(read_after_text) == (format.name in AFTER_TEXT)


def test_any_run_of_bars_is_a_spelling(format: Format) -> None:
    turn = format.bind(tools=[TOOL], id_seed="")
    text = written(format) if format.features.tools else ""
    for form in barred(text, BARS) if re.search("｜[A-Z]+｜", text) else ():
        for before in ("", "I look.\n"):
            message = parsed(turn, before + form)
            calls = [(call.name, json.loads(call.arguments), call.complete) for call in message.tool_calls]
            assert calls == [("get_weather", {"city": "Oslo"}, True)], (before, form)
            assert {diagnostic.code for diagnostic in message.diagnostics} == {CODE}, (before, form)


def test_half_a_call_at_the_end_of_prose_is_prose() -> None:
    turn = get_format("gemma-4").bind(tools=[TOOL])
    for text in ("Use call:", "Use call:get_weather", "- call:forecast.day-1"):
        message = turn.parse(text)
        assert message.content == text and message.complete, text


def test_an_opener_keeps_its_meaning_everywhere(format: Format) -> None:
    turn = format.bind(tools=[TOOL], id_seed="")
    if format.features.tools and format.name not in BARE:
        text = written(format)
        for place in ("I look.{}", "So:\n```\n{}\n```\n", "> {}"):
            assert len(turn.parse(place.format(text)).tool_calls) == 1, place


def test_an_opener_in_a_fence_is_forgotten_after_it(format: Format) -> None:
    turn = format.bind(tools=[TOOL], id_seed="")
    closers = [
        text
        for text, role in roles(format.tree(Options(tools=True)), format.stops).items()
        if role == "closer"
    ]
    for closer in closers if format.features.tools else ():
        for opener in openers(format) if parsed(turn, f"That.{closer}").content == "That." else ():
            told = f"So:\n```\n{opener}, {closer}.\n```\nThat."
            if parsed(turn, told).content == told:  # else they are a header, or end the turn
                assert parsed(turn, told + closer).content == told


def test_the_start_of_a_line_is_known_in_every_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in a format in which only calls without their opener ask for it: after a call, no text is before it."""
    call = "get_weather<|tool_arg:start|>city<|tool_arg:value|><|tool_arg:end|><|tool_call:end|><|tool_arg:va"
    pieces = [".<|tool_call:start|>", call, "lue|>"]
    monkeypatch.setattr(known, "enabled", False)  # the machine alone
    check_cuts(get_format("solar-open-2").bind(tools=[TOOL]), "".join(pieces), [pieces])


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", ("f g", "f  g h", "page[s]", "<f", "g>"))
def test_a_declared_name_of_any_characters_depends_on_no_cut(format: Format, name: str) -> None:
    """At the start of a turn or of a line, in its call and without what opens the call, at every cut."""
    if not format.features.tools:
        return
    call = written(format).replace(CALL["function"]["name"], name)
    tool = {**TOOL, "function": {**TOOL["function"], "name": name}}
    turn = format.bind(tools=[tool], id_seed="a")
    for text in (call, call[call.index(name) :], "x\n" + call[call.index(name) :]):
        near = range(1, text.index(name) + len(name) + 24)
        check_cuts(turn, text, [[text[:cut], text[cut:]] for cut in near if cut < len(text)])
