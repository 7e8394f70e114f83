"""Where calls are, and where none are: the white space around them, and prose that explains them, in every format."""

from __future__ import annotations

import json
import re
from itertools import chain, product
from typing import Any

import pytest

import chatparsers
from chatparsers import Format, Message, RequestError
from chatparsers.answers.idioms import Options
from chatparsers.answers.nodes import Args, Body
from chatparsers.answers.without_opener import ending
from chatparsers.core.tree import first, head, once
from chatparsers.testing import check_conservation, check_cuts
from chatparsers.testing.chunkings import random_cuts

from .conftest import TOOLS

BLANK = (" ", "\n", " \n\n", "\r\n\t")


def written(format: Format, content: str = "", calls: int = 1, reasoning: str = "") -> str:
    """What the model writes for such a message."""
    function = {"name": "get_weather", "arguments": json.dumps({"city": "Oslo"})}
    made = [{"id": f"a1b2c3d4{i}", "type": "function", "function": function} for i in range(calls)]
    message: dict[str, Any] = {"role": "assistant", "content": content, "tool_calls": made}
    if reasoning and format.features.reasoning:
        message["reasoning_content"] = reasoning
    return format.render(message, TOOLS)


def read(format: Format, text: str) -> Message:
    """The message of a text; it is the same in every cut."""
    turn = format.bind(tools=TOOLS, id_seed="x")
    message = check_cuts(turn, text, [list(text), *random_cuts(text, 3)])
    check_conservation(message, turn)
    return message


def has_one_object(format: Format) -> bool:
    """Whether a call's arguments are one JSON object."""
    return format.features.tools and any(
        isinstance(node, Args) for node in once(format.tree(Options(tools=True)))
    )


def test_arguments_that_are_no_object_end_where_they_end(format: Format) -> None:
    """Where arguments are one JSON object, another JSON value is the call's arguments, to the character, and no part
    of what closes the call. The call is not complete, and one diagnostic says so. What begins as plain text may be
    prose."""
    before, found, after = (
        written(format).rpartition('{"city": "Oslo"}') if has_one_object(format) else ("",) * 3
    )
    if not found:
        return
    may_be_prose = not any(token in before for token in format.preserved_tokens)
    for value in ("[1, 2]", '[{"city": "Oslo"}]', '"Oslo"', "12", "-1.5e3", "true", "[]"):
        message = read(format, before + value + after)
        calls = [(call.name, call.arguments, call.complete) for call in message.tool_calls]
        wrong = [(found.code, found.position) for found in message.diagnostics if found.code != "mended"]
        if may_be_prose and not calls:
            assert value in message.content and wrong, message
        else:
            assert calls == [("get_weather", value, False)], message
            assert (message.content, wrong) == ("", [("malformed", len(before))]), message


def test_most_formats_have_one_object() -> None:
    """Else the rule above would say nothing."""
    assert sum(has_one_object(info.load()) for info in chatparsers.list_formats()) > 50


@pytest.mark.one_in(8)
def test_white_space_beside_a_call_is_no_content(format: Format) -> None:
    """Models write some before the first call, between calls, before the stop and at the end, and the grammars allow
    it: nothing of it is content, an event or a diagnostic. Beside arguments that are one object it is markup, wherever
    the format itself writes none. Before other text it is content."""
    if not format.features.tools:
        return
    call = written(format)
    stop = format.stops[0] if format.stops else ""
    places = [f"{blank}{call}" for blank in (" ", "\n", "\n\n")]
    places += [f"{call}{blank}{after}" for blank in BLANK for after in {"", stop}]
    for text in places:
        message = read(format, text)
        assert (message.content, len(message.tool_calls)) == ("", 1), text
        assert message.complete and not message.diagnostics, text
    if not call.startswith(("{", "[")):  # else calls stand at the start of the turn alone
        again = read(format, f"{call} \n\n{call}")
        assert (again.content, len(again.tool_calls)) == ("", 2)
    before, object, after = call.partition('{"city": "Oslo"}')
    message = read(format, f"{before} \n {object} {after}")
    assert not object or [one.arguments for one in message.tool_calls] == [object], (before, after)
    for blank in (" ", "\n", "\n\n"):
        assert read(format, blank + "Hello.").content.lstrip() == "Hello.", blank
    stream = format.bind(tools=TOOLS).stream()
    stream.feed(call)
    assert stream.feed("\n") == []


def blocks(format: Format) -> tuple[list[str], list[str]]:
    """The special tokens that end a block of reasoning, of content or of calls, and how blocks begin, if the format
    writes its turns as blocks."""
    body = next((node for node in once(format.tree(Options(tools=True))) if isinstance(node, Body)), None)
    if body is None or body.content is None or body.calls is None:
        return [], []
    spans = [span for span in (body.reasoning, body.content) if span is not None]
    ends = [body.calls, *(span.close for span in spans if span.close is not None)]
    begins = [head(node) for node in (body.calls, *(span.open for span in spans))]
    return sorted({*chain(*map(ending, ends))}), sorted({*chain(*map(first, begins))})


@pytest.mark.one_in(8)
def test_white_space_between_blocks_is_no_content(format: Format) -> None:
    """In every format whose turns are blocks with headers: after a block's end, and before the end of a call."""
    closers, openers = blocks(format)
    if not closers:
        return
    text = written(format, "Hello.", reasoning="Hm.")
    plain = read(format, text)
    assert plain.content.strip() == "Hello." and len(plain.tool_calls) == 1
    places = [at for end in closers for at in range(len(text) + 1) if text.endswith(end, 0, at)]
    called = text.index("get_weather"), text.index("Oslo")
    begun = [at for at in places if text.startswith(tuple(openers), at) and not called[0] < at < called[1]]
    places = [*begun, len(text)]
    places += [at for end in closers for at in [text.rfind(end)] if text.endswith(end) and len(closers) > 1]
    for at in places:
        for blank in BLANK:
            message = read(format, text[:at] + blank + text[at:])
            assert (message.content, message.reasoning) == (plain.content, plain.reasoning), text[:at] + "|"
            assert message.tool_calls == plain.tool_calls and message.complete, text[:at] + "|"
            assert [d.code for d in message.diagnostics] == [d.code for d in plain.diagnostics], (
                text[:at] + "|"
            )


PROSE = ("Docs: write {} to call it.", "`{}` is how.", "See [{}](docs) and {}.")
"""Prose that explains a call in the middle of a line."""
LINES = ("Write:\n{} is a call.", "Write:\n{}\n", "{}")


def unopened(format: Format, text: str, name: str) -> list[str]:
    """The call without its opener: what is left of ``text`` if its beginning is missing, and no special token of what
    is left says that a call begins."""
    named = text.index(name)
    found = [text[start:] for start in range(1, named + 1) if text[start] in "<[{" or start == named]
    tokens = format.preserved_tokens
    return [
        rest
        for rest in found
        if not any(token in rest[: rest.index(name) + len(name) + 40] for token in tokens)
    ]


@pytest.mark.one_in(8)
@pytest.mark.parametrize("arguments", ['{"city": "Oslo"}', "{}"])
def test_prose_that_explains_calls_makes_none(format: Format, arguments: str) -> None:
    """Without its opener, a call needs a declared name and the start of a line. What is not read stands in the content,
    but for a closer that a diagnostic tells."""
    if not format.features.tools:
        return
    turn = format.bind(tools=TOOLS, id_seed="x")
    body = next(node for node in once(format.tree(Options(tools=True))) if isinstance(node, Body))
    started = body.start is not None
    for name, forms in (("get_weather", PROSE), ("get_rain", (*PROSE, *LINES))):
        function = {"name": name, "arguments": arguments}
        tools = [{"type": "function", "function": {**TOOLS[0]["function"], "name": name}}]
        call = {"id": "a1b2c3d40", "type": "function", "function": function}
        whole = format.render({"role": "assistant", "content": "", "tool_calls": [call]}, tools)
        for bare in unopened(format, whole, name):
            parts = [
                bare,
                bare[: bare.index(name) + len(name)],
                *(bare[: end + 1] for end in range(len(bare))),
            ]
            for form, part in product(forms, dict.fromkeys(parts)):
                if form == "{}" and started:
                    continue  # such calls need no opener at the start of the turn
                text = form.format(*[part] * form.count("{}"))
                message = turn.parse(text)
                assert not message.tool_calls, text
                left = [
                    text[region.start : region.end].strip()
                    for region in message.regions
                    if region.kind == "markup"
                ]
                told = {diagnostic.code for diagnostic in message.diagnostics}
                assert not any(left) or told, (text, left)


@pytest.mark.one_in(2)
def test_a_name_between_the_tags_of_a_call_is_prose_where_its_line_goes_on(format: Format) -> None:
    """In formats that end the line of the name: without that, and without arguments, prose spells a call like that."""
    if not format.features.tools:
        return
    tools = [{"type": "function", "function": {"name": "now", "parameters": {"type": "object"}}}]
    call = {"id": "a1b2c3d40", "type": "function", "function": {"name": "now", "arguments": "{}"}}
    text = format.render({"role": "assistant", "content": "", "tool_calls": [call]}, tools)
    opener, space, closer = re.fullmatch(r"(.*now)(\s*)(.*)", text, re.DOTALL).groups()  # type: ignore[union-attr]
    if not space or "\n" in opener or not closer.startswith("</"):
        return
    bare, turn = opener + closer, format.bind(tools=tools, id_seed="x")
    for form in ("Write {} to call it.", "`{}` is how.", "See ({}).", "{}, or {}."):
        prose = "Hi: " + form.replace("{}", bare)
        message = check_cuts(turn, prose, [list(prose), *random_cuts(prose, 3)])
        assert (message.content, message.tool_calls) == (prose, []), prose
    for form in ("{}", "Let me look. {}", "Let me look.\n{} ok", "I look. {}\nok", "I look. {}{}"):
        message = turn.parse(form.replace("{}", bare))
        assert len(message.tool_calls) == form.count("{}"), form
        assert all(one.name == "now" and one.arguments == "{}" for one in message.tool_calls)


@pytest.mark.one_in(8)
def test_a_call_without_its_opener_is_read_at_the_start_of_a_line(format: Format) -> None:
    """Where a format reads one at the start of the turn: after other text too."""
    body = next((node for node in once(format.tree(Options(tools=True))) if isinstance(node, Body)), None)
    if body is None or body.start is not None or not format.features.tools:
        return
    for bare in unopened(format, written(format), "get_weather"):
        if len(read(format, bare).tool_calls) == 1:
            for before in ("I look.\n", "<b>I look</b> at\nit:\n\n"):
                message = read(format, before + bare)
                assert [call.parsed_arguments for call in message.tool_calls] == [{"city": "Oslo"}], bare
                assert message.complete and message.content.strip() == before.strip(), bare


@pytest.mark.one_in(8)
def test_a_leaked_call_is_recovered_without_its_format(format: Format) -> None:
    """From every format's text: the calls, their places, and the rest."""
    if not format.features.tools:
        return
    call = written(format)
    for before in ("",) if call.startswith(("{", "[")) else ("", "I look.\n"):
        found = chatparsers.recover(before + call, TOOLS)
        assert [(one.name, one.parsed_arguments) for one in found.calls] == [
            ("get_weather", {"city": "Oslo"})
        ]
        assert found.content.strip() == before.strip() and not found.reasoning
        assert format.name in found.formats
        ((start, end),) = found.spans
        assert (before + call)[start:end].strip() == call.strip()
    if format.features.parallel:
        twice = written(format, calls=2)
        found = chatparsers.recover(twice, TOOLS)
        assert len(found.calls) == 2 and [start for start, _ in found.spans[1:]] == [found.spans[0][1]]


def test_nothing_is_recovered_where_formats_disagree_or_nothing_is_called() -> None:
    value = "<parameter=city>\nOslo\n</parameter>"
    split = f"<tool_call><function=get_weather>\n{value}</function></tool_call>"
    found = chatparsers.recover(split, TOOLS)
    assert (found.calls, found.formats, found.content) == ([], [], split)
    assert any("Oslo\\n" in doubt for doubt in found.doubts) and any(
        '"Oslo"' in doubt for doubt in found.doubts
    )
    for text, doubts in (
        ("Write <function=get_weather></function> or <tool_call>.", []),
        (split.replace("get_weather", "get_rain"), ["no tool of the request has the name get_rain"]),
        (split.partition("</function>")[0], ["the call of get_weather is not whole"]),
    ):
        found = chatparsers.recover(text, TOOLS)
        assert (found.calls, found.spans, found.content, found.reasoning) == ([], [], text, "")
        assert found.doubts == doubts
    with pytest.raises(RequestError, match="recover: expected at least one tool, found none"):
        chatparsers.recover("Hi", [])
    with pytest.raises(RequestError, match="recover: expected a text, found list"):
        chatparsers.recover(["Hi"], TOOLS)  # type: ignore[arg-type]
