"""What is not read as a call stands in the content with every character, but for what the contract calls markup."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import product
from typing import Any

import pytest

import chatparsers
from chatparsers import Format, Message
from chatparsers.answers import Builder, Json, Tool
from chatparsers.answers.idioms import Options
from chatparsers.answers.nodes import Body, Node
from chatparsers.answers.roles import roles
from chatparsers.answers.without_opener import ending
from chatparsers.core.tree import first, head, tokens, walk
from chatparsers.errors import DefinitionError
from chatparsers.testing.wild import broken, fragments
from chatparsers.watch import observe, tools_not_given

pytestmark = pytest.mark.one_in(1, quick=64)
CALL = {
    "id": "call00001",
    "type": "function",
    "function": {"name": "get_weather", "arguments": '{"city": "Oslo", "days": 2}'},
}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}]


def beginnings(node: Node | None) -> set[str]:
    try:
        return set() if node is None else {text.strip() for text in first(head(node))} - {""}
    except DefinitionError:  # it begins with any text
        return set()


@cache
def markers(format: Format) -> tuple[set[str], set[str]]:
    """What begins or continues a call and nothing else; the markers with which something ends."""
    tree = format.tree(Options(tools=True))
    known = roles(tree, format.stops)
    openers, others = {text for text, role in known.items() if role == "inner"}, set()
    for body in walk(tree):
        if isinstance(body, Body):
            spans = [span.open for span in (body.reasoning, body.content) if span is not None]
            openers |= beginnings(body.calls) | beginnings(body.start)
            others = others.union(*map(beginnings, (body.marks, body.closers, *spans)))
    return {text for text in openers if not any(text in other for other in others)}, {
        text for text, role in known.items() if role == "closer"
    }


def altered(format: Format, number: int) -> Iterator[str]:
    """A written call, with markers and names that are missing, doubled, moved or of another tool."""
    written = format.render({"role": "assistant", "content": "", "tool_calls": [CALL]}, TOOLS)
    openers, closers = markers(format)
    found = {*openers, *closers, *tokens(format.tree(Options(tools=True)))}
    marks = "|".join(re.escape(text) for text in sorted(found, key=len, reverse=True)) or "(?!)"
    whole = [part for part in re.split(rf"({marks}|</?\w[^<>]*>)", written) if part]
    random_ = random.Random(format.name)
    for _ in range(number):
        parts = whole[:]
        for _ in range(random_.randint(1, 3)):
            at = random_.randrange(len(parts))
            parts = random_.choice(
                [
                    [*parts[:at], *parts[at + 1 :]],
                    [*parts[: at + 1], *parts[at:]],
                    [*parts[:at], random_.choice(parts), *parts[at:]],
                    [part.replace("get_weather", "get_rain") for part in parts],
                    parts[:at],
                    parts[at:],
                ]
            ) or ["Text"]
        yield random_.choice(["", "So. "]) + "".join(parts) + random_.choice(["", " So."])


@cache
def ends_of_content(format: Format) -> set[str]:
    """The markers that end content too: they say nothing of a call."""
    bodies = [body for body in walk(format.tree(Options(tools=True))) if isinstance(body, Body)]
    contents = [body.content for body in bodies if body.content is not None]
    return {end for content in contents if content.close is not None for end in beginnings(content.close)}


def taken_out(format: Format, message: Message) -> Iterator[str]:
    """Markup of calls in a message that has none, but for empty sections."""
    openers, closers = markers(format)
    own = closers - ends_of_content(format)
    spelt = False
    for region in message.regions:
        text = message.text[region.start : region.end]
        if region.kind == "content":
            spelt = spelt or any(opener in text for opener in openers)
        elif region.kind == "markup" and any(stop in text for stop in format.stops):
            return
        elif region.kind == "markup":
            opened = any(
                re.search(rf"(?<!</){re.escape(opener)}", text) for opener in openers
            )  # </ with it closes
            if opened and not re.search(r"</\w+>\s*\Z", text) and not text.rstrip().endswith(tuple(closers)):
                yield text
            if spelt and not opened and any(closer in text for closer in own):
                yield text


def test_nothing_is_taken_out_of_a_call_that_is_not_read(
    format: Format, amount: Callable[[int, int, int], int]
) -> None:
    if not format.features.tools:
        return
    turn = format.bind(tools=TOOLS)
    for text in altered(format, amount(8, 40, 2_000)):
        message = turn.parse(text)
        if not message.tool_calls and not any(note.code == "malformed" for note in message.diagnostics):
            assert not list(taken_out(format, message)), (text, message.content)


@pytest.mark.one_in(8)
def test_only_white_space_is_in_an_empty_section(format: Format) -> None:
    """A bracket too many, which is read after a call, is no part of a section without one."""
    if not format.features.tools:
        return
    written = format.render({"role": "assistant", "content": "", "tool_calls": [CALL]}, TOOLS)
    marks = [found.span() for found in re.finditer(r"<[^<>]+>", written)]
    turn = format.bind(tools=TOOLS)
    for (_, end), (start, _) in product(marks[:2], marks[-2:]):
        for bracket in "}]" if end <= start else "":
            text = f"So. {written[:end]} {bracket} {written[start:]} So."
            message = turn.parse(text)
            assert bracket in message.content or message.tool_calls or message.diagnostics, text


INNER = {"ministral-3": "[ARGS]", "deepseek-v3-2": "｜DSML｜", "pythonic": "<|python_end|>"}


def test_an_inner_marker_alone_is_content_with_a_diagnostic(format: Format) -> None:
    if not format.features.tools:
        return
    known = roles(format.tree(Options(tools=True)), format.stops)
    inner = [text for text, role in known.items() if role == "inner"]
    assert format.name not in INNER or INNER[format.name] in inner
    for marker in inner:
        message = format.bind(tools=TOOLS).parse(f"Take {marker} here.")
        codes = [note.code for note in message.diagnostics]
        assert (message.content, codes) == (f"Take {marker} here.", ["stray-marker"]), marker


def test_without_tools_a_call_is_content_with_all_its_markers_and_named(format: Format) -> None:
    if not format.features.tools:
        return
    written = format.render({"role": "assistant", "content": "", "tool_calls": [CALL]}, TOOLS)
    message = format.parse(written)
    assert not message.tool_calls and message.complete
    rest = written.strip()
    if not rest.endswith(message.content.strip()):
        raise AssertionError((written, message.content))
    before = rest[: len(rest) - len(message.content.strip())]
    assert "get_weather" in message.content and "get_weather" not in before
    assert not any(opener in before for opener in markers(format)[0]), (written, message.content)
    (found,) = tools_not_given(format.bind(), message)
    assert "'get_weather'" in found.expected and written[found.position :].startswith(found.found)
    for turn, text in (
        (format.bind(tools=TOOLS), written),
        (format.bind(), "Weather? I cannot tell."),
        (format.bind(response_format=SCHEMA), written),
    ):
        assert tools_not_given(turn, turn.parse(text)) == []


def test_a_role_header_of_a_call_without_tools() -> None:
    format = chatparsers.get_format("gpt-oss")
    for header in ("<|start|>assistant to=functions.f", " to=functions.f <|constrain|>json"):
        text = header + '<|channel|>commentary<|message|>{"a": 1}'
        message = format.parse(text + "<|call|>")
        assert message.content == text and message.complete


def test_a_turn_that_ends_within_the_next_call(format: Format) -> None:
    """Right behind a call, with only white space between, the beginning of another is markup; behind other text it is
    content."""
    if not format.features.parallel or not format.features.tools:
        return
    message: dict[str, Any] = {"role": "assistant", "content": "", "tool_calls": [CALL]}
    turn = format.bind(tools=TOOLS)
    one = format.render(message, TOOLS)
    if not turn.parse(one).complete:
        return
    two = format.render(message | {"tool_calls": [CALL, CALL | {"id": "call00002"}]}, TOOLS)
    begun = next((at for at in range(len(one), 0, -1) if one[:at] == two[:at]), 0)
    if begun != len(one) or two.startswith(";", begun):
        return  # the calls stand in one section, or more than white space stands between them
    if two[begun:].lstrip().startswith("get_weather"):
        return  # nothing but its name marks the second call
    for end in range(begun, len(two)):
        cut = turn.parse(two[:end])
        assert not cut.content.strip(), (two[:end], cut.content)
        said = turn.parse(one + " Text " + two[begun:end].lstrip()[:3])
        assert said.content.strip().startswith("Text") or said.tool_calls[0].name != "get_weather"


def test_behind_a_closer_without_a_call_an_opener_is_text() -> None:
    for name, opener, closer in (
        ("qwen3", "<tool_call>", "</tool_call>"),
        ("jamba", "<tool_calls>", "</tool_calls>"),
    ):
        for begun in (f"So. {closer}", f"So. {opener}{closer}"):
            message = chatparsers.get_format(name).bind(tools=TOOLS).parse(begun + opener)
            assert message.content == f"So. {opener}", begun


def test_after_the_end_of_the_turn_all_is_markup(format: Format) -> None:
    """By text as by ids. A stop that also ends a call ends as text the call alone: what follows is content."""
    written = {"Hi.": set[str]()}
    if format.features.tools:
        tree = format.tree(Options(tools=True))
        calls = next((body.calls for body in walk(tree) if isinstance(body, Body)), None)
        call = format.render({"role": "assistant", "content": "", "tool_calls": [CALL]}, TOOLS)
        written[call] = set() if calls is None else ending(calls)
    for text, closers in written.items():
        for stop in format.stops:
            message = format.bind(tools=TOOLS).parse(text + stop + " More <b>text</b>.")
            expected = " More <b>text</b>." if stop in closers else ""
            assert message.content.removeprefix("Hi.") == expected and not message.reasoning
            assert message.complete


WORDS_IN_HEADERS = {
    "dots",
    "gpt-oss",
    "inkling",
    "kimi-k3",
    "llm-jp-4-1",
    "minimax-m2",
    "muse",
    "muse-glimmer",
    "smi",
}
"""Formats that pass over words in a header, which say nothing that anybody would read: attributes in the tag of a call
(dots, Kimi K3, MiniMax-M2), the type of an action (SMI), a recipient that the call names again (Inkling, Muse), words
beside a channel (gpt-oss)."""


def is_in_header(format: Format, before: str) -> bool:
    """Whether the last special token is one that does not end anything."""
    last = max(format.preserved_tokens, key=before.rfind)
    return last in before and last not in markers(format)[1] - {"<|constrain|>", "<|sep|>"}


def test_no_text_is_lost_in_silence(format: Format, amount: Callable[[int, int, int], int]) -> None:
    """A word anywhere in a broken or mixed text is in the message, or a diagnostic tells, or the turn was over."""
    turn = format.bind(tools=TOOLS if format.features.tools else None)
    chance = random.Random(format.name)
    names = [info.name for info in chatparsers.list_formats() if info.origin == "chatparsers"]
    other = fragments(chatparsers.get_format(chance.choice(names)))
    for text in broken(format, amount(30, 200, 3_000), seed=7):
        for piece in ([chance.choice(other)] if chance.random() < 0.3 else []) + ["Qzyx"]:
            at = chance.randrange(len(text) + 1)
            text = text[:at] + chance.choice(("{}", " {} ", "\n{}\n")).format(piece) + text[at:]
        message = turn.parse(text)
        calls = [(call.name, call.id, call.arguments) for call in message.tool_calls]
        if "Qzyx" in str((message.content, message.reasoning, calls)) or message.diagnostics:
            continue
        before = text.partition("Qzyx")[0]
        over = any(stop in before for stop in format.stops)
        assert over or (format.name in WORDS_IN_HEADERS and is_in_header(format, before)), text


def test_words_that_no_part_of_the_message_has_are_told(format: Format) -> None:
    """An empty section of calls in a sentence, and what is written after the end of the turn."""
    turn = format.bind(tools=TOOLS)
    openers, closers = markers(format)
    for opener, between, closer in product(openers, ("", "\n", "[]"), closers):
        text = f"I write {opener}{between}{closer} to call."
        message = turn.parse(text)
        if not message.tool_calls and opener not in message.content + message.reasoning:
            assert "stray-marker" in [one.code for one in message.diagnostics], text
    for stop in turn.stops:
        text = f"It is cold.{stop}\n{stop}"
        assert observe(turn, turn.parse(text)) == []
        message = turn.parse(f"{text}And dark.")
        if "And dark." not in message.content:
            (found,) = observe(turn, message)
            assert (found.code, found.found) == ("text-after-end", message.text[found.position :]), stop
            assert message.complete


@pytest.mark.parametrize("choices", [1, 2, 40])
def test_an_empty_section_of_several_choices_is_markup(choices: int) -> None:
    """Of each choice, the calls are left out; not all ways to do so are followed, as there are 3 ** 40."""

    def call(p: Builder, opener: str, tool: Tool) -> Node:
        return p.token(opener) + p.name(tool) + p.token("<args>") + p.args(tool, Json()) + p.token("</call>")

    def build(p: Builder) -> Node:
        section = p.token("<calls>")
        for at in range(choices):
            section += p.choice(p.calls(p.each_tool(partial(call, p, f"<call{at}>"))), f"a{at}", f"b{at}")
        return p.body(section + p.token("</calls>"))

    turn = Format(name="choices", title="", url="", build=build, markers=(), stops=("<end>",)).bind(
        tools=TOOLS
    )
    message = turn.parse("So<calls>\n</calls>")
    assert (message.content, [one.code for one in message.diagnostics]) == ("So", ["stray-marker"])
