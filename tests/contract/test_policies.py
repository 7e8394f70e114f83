"""The policies of docs/contract.md, a row for each: the meaning of a text that leaves its format, in any chunking."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

import pytest
from making import bytewise
from tokenizers import Tokenizer

import chatparsers
from chatparsers import CallEnd, CallStart, Format
from chatparsers.answers.idioms import Options
from chatparsers.answers.nodes import Args, Body, EachArg, Header, Name, Peek, Tag, Think
from chatparsers.answers.thoughts import THOUGHTS
from chatparsers.core.tree import begins, walk
from chatparsers.testing import check_conservation, check_cuts
from chatparsers.testing.wild import broken

from .conftest import TOOLS

pytestmark = pytest.mark.one_in(1, quick=64)
JSON_CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
TAGGED_CALL = (
    "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n</function>\n</tool_call>"
)


MINIMAX_CALL = (
    '<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="city">Oslo</parameter>\n</invoke>\n'
    "</minimax:tool_call>"
)
LLAMA_CALL = '{"name": "get_weather", "parameters": {"city": "Oslo"}}'


class Row(NamedTuple):
    """A text of a format, and its meaning: content, reasoning, number of calls, codes of diagnostics."""

    format: str
    text: str
    content: str
    reasoning: str = ""
    calls: int = 0
    codes: tuple[str, ...] = ()
    request: dict[str, Any] | None = None


EMPTY_SECTIONS = [
    Row("qwen3", "<tool_call></tool_call>", "", codes=("stray-marker",)),
    Row("hermes-2-pro", "a<tool_call>\n</tool_call>b", "ab", codes=("stray-marker",)),
    Row("qwen3-coder", "<tool_call>\n</tool_call>", "", codes=("stray-marker",)),
    Row("glm-4-5", "<tool_call></tool_call>", "", codes=("stray-marker",)),
    Row("seed-oss", "<seed:tool_call>\n</seed:tool_call>", "", codes=("stray-marker",)),
    Row("minimax-m2", "<minimax:tool_call>\n</minimax:tool_call>", "", codes=("stray-marker",)),
    Row("nemotron-v2", "<TOOLCALL>[]</TOOLCALL>", "", codes=("stray-marker",)),
    Row("mistral-nemo", "[TOOL_CALLS][]", "", codes=("stray-marker",)),
    Row("kimi-k2", "<|tool_calls_section_begin|><|tool_calls_section_end|>", "", codes=("stray-marker",)),
    Row("deepseek-v3", "<｜tool▁calls▁begin｜><｜tool▁calls▁end｜>", "", codes=("stray-marker",)),
    Row("deepseek-v3-1", "<｜tool▁calls▁begin｜><｜tool▁calls▁end｜>", "", codes=("stray-marker",)),
    Row("lfm2", "<|tool_call_start|>[]<|tool_call_end|>", "", codes=("stray-marker",)),
    Row("apertus", "<|tools_prefix|>[]<|tools_suffix|>", "", codes=("stray-marker",)),
    Row("granite", "<|tool_call|>[]", "", codes=("stray-marker",)),
    Row("command-r7b", "<|START_ACTION|>[]<|END_ACTION|>", "", codes=("stray-marker",)),
]
PROSE = [
    Row("qwen3", t := "Use <tool_call> and </tool_call>.", t, codes=("stray-marker",)),
    Row("qwen3", t := "`<think>` and `</think>` are tags", t, codes=("stray-marker",)),
    Row("kimi-k2", t := "<|tool_call_begin|> then <|tool_call_end|>", t, codes=("stray-marker",)),
    Row(
        "gpt-oss",
        '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"a":1}',
        '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"a":1}',
        codes=("stray-marker",),
        request={"tools": None},
    ),
    Row("qwen3", f"No, <tool_call> is one. {JSON_CALL}</tool_call>", "No, <tool_call> is one. ", calls=1,
        codes=("stray-marker", "stray-marker")),
    Row("qwen3", "</think></think>x", "x", codes=("stray-marker", "stray-marker")),
    *(  # a closer that closes nothing is markup, though it is several tokens
        Row(name, f"Hello {closer} there.", "Hello  there.", codes=("stray-marker",))
        for name, closer in (
            ("minimax-m3", "]<]minimax[>[</tool_call>"),
            ("deepseek-v4", "</｜DSML｜tool_calls>"),
            ("plamo-3", "<|plamo:end_tool_requests:plamo|>"),
        )
    ),
]  # fmt: skip
AGAIN = [
    Row("qwen3", "\n<think>R</think>\nA", "A", "R"),
    Row("qwen3", f"<think>\nR1\n</think>\n\n{JSON_CALL}\n<think>\nR2\n</think>\n\nok", "ok", "R1R2", 1),
    Row("qwen3", "<think>\nR1\n</think>\n\n<think>\nR2\n</think>\n\nok", "ok", "R1R2"),
    Row("qwen3", "<think>\nR\n</think>\n\nmid <think>x</think> ok", "mid <think>x</think> ok", "R",
        codes=("stray-marker",)),
    Row("qwen3", "A\n<think>\nR\n</think>\n\n<think>R2</think>B", "A\nB", "RR2", codes=("stray-marker",)),
    Row("qwen3", f"A\n<think>\nR {JSON_CALL}\n</think>\n\nB", "A\n<think>\nR \n\nB", "", 1,
        codes=("stray-marker", "stray-marker")),
    Row("deepseek-v3-1", "<think>Hm</think>Hi", "Hi", "Hm", request={"prefix": "</think>"}),
]  # fmt: skip
OUT_OF_REASONING = [
    Row("qwen3-coder", f"I need {TAGGED_CALL}\nNow I wait.\n</think>\n\nok", "ok", f"I need {TAGGED_CALL}\nNow I wait.",
        request={"prefix": "<think>\n"}),
    Row("qwen3-coder", f"I need {TAGGED_CALL}", "", "I need ", 1, request={"prefix": "<think>\n"}),
    Row("qwen3-coder", f"A {TAGGED_CALL}B{TAGGED_CALL}", "", f"A {TAGGED_CALL}B", 1, request={"prefix": "<think>\n"}),
    Row("minimax-m2", f"I need {MINIMAX_CALL}\n{MINIMAX_CALL}\n</think>\n\n", "", "I need ", 2,
        codes=("repeated-call",), request={"prefix": "<think>\n"}),
    Row("qwen3", f"I need {JSON_CALL}\nNow I wait.\n</think>\n\nok", "ok", f"I need {JSON_CALL}\nNow I wait.",
        request={"prefix": "<think>\n"}),
    Row("qwen3", f"I need {JSON_CALL}\n</think>\n\n{JSON_CALL}", "", f"I need {JSON_CALL}", 1,
        request={"prefix": "<think>\n"}),
    Row("qwen3", f"I need {JSON_CALL}<|im_end|>", "", "I need ", 1, request={"prefix": "<think>\n"}),
]  # fmt: skip
UNWANTED = [
    Row("qwen3", f"Hi. {JSON_CALL} So.", "Hi.  So.", codes=("unwanted-call",), request={"tool_choice": "none"}),
    Row("qwen3", f"Hi. {JSON_CALL}", f"Hi. {JSON_CALL}", request={"tools": None}),
    Row("qwen3", JSON_CALL[:-20], JSON_CALL[:-20], request={"tools": None}),
    Row("llama-3-x", '{"name": "get_weather", "parameters": {}}', "", codes=("unwanted-call",),
        request={"tool_choice": "none"}),
]  # fmt: skip
UNDECLARED = [
    Row("content-only", "<think>\nHm\n</think>\n\nHi", "Hi", "Hm"),
    Row("hermes-2-pro", f"[THINK]Hm[/THINK]Hi {JSON_CALL}", "Hi ", "Hm", 1),
    Row("content-only", t := "Hi <think>Hm</think>", t),
]
GLM_SWALLOWED = (
    "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>NYC</tool_call><tool_call>get_weather\n"
    "<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n</tool_call>"
)
GLM_QUOTED = GLM_SWALLOWED.replace("><tool", "> and <tool").replace(
    "<arg_key>city</arg_key>\n<arg_value>Oslo", "Oslo"
)
MARKUP_IN_VALUES = [
    Row("glm-4-5", GLM_SWALLOWED, "", calls=2, codes=("mended",)),
    Row("glm-4-5", GLM_QUOTED, "", calls=1, codes=("markup-in-value",)),
    Row("minimax-m2", '<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="city">NYC</invoke>\n'
        '</minimax:tool_call></parameter>\n</invoke>\n</minimax:tool_call>', "", calls=1, codes=("markup-in-value",)),
    Row("qwen3-coder", TAGGED_CALL.replace("Oslo", "Oslo <tool_call> <tool_call>"), "", calls=1,
        codes=("markup-in-value",)),
    Row("qwen3-coder", TAGGED_CALL.replace("Oslo", "Oslo <tool_cal"), "", calls=1),
    Row("seed-oss", "<seed:tool_call>\n<function=get_weather>\n<parameter=city></seed:tool_call></parameter>\n"
        "</function>\n</seed:tool_call>", "", calls=1, codes=("markup-in-value",)),
    Row("qwen3-coder", TAGGED_CALL.replace("Oslo", "x </parameter> y"), "", calls=1, codes=("markup-in-value",)),
    Row("qwen3-coder", TAGGED_CALL.replace("Oslo", f"{TAGGED_CALL}\nEnd."), "", calls=1, codes=("markup-in-value",)),
    Row("qwen3-coder", TAGGED_CALL.replace("</function", "<parameter=city>\nRome\n</parameter>\n</function"), "",
        calls=1, codes=("repeated-argument",)),
    Row("lfm2", "<|tool_call_start|>[get_weather(city='print('hi')')]<|tool_call_end|>", "", calls=1,
        codes=("mended",)),
    Row("gemma-4", '<|tool_call>call:get_weather{city:<|"|>x = sql(<|"|>1<|"|>)<|"|>,days:1}<tool_call|>', "", calls=1,
        codes=("markup-in-value",)),
]  # fmt: skip
IN_PROSE = [
    Row("llama-3-x", f"Here:\n{LLAMA_CALL}", "Here:", calls=1, codes=("unopened-call",)),
    Row("llama-3-x", f"Here:\n{LLAMA_CALL} \nOk", "Here: \nOk", calls=1, codes=("unopened-call",)),
    Row("llama-3-x", f"Here:\n{LLAMA_CALL}<|eot_id|>", "Here:", calls=1, codes=("unopened-call",)),
    Row("llama-3-x", t := f"Here: {LLAMA_CALL}", t),
    Row("llama-3-x", t := f"Write\n{LLAMA_CALL} to call it.", t),
    Row("llama-3-x", t := f"Write\n{LLAMA_CALL} to call it.\nOk?", t),
    Row("llama-3-x", t := "Here:\n" + LLAMA_CALL.replace("get_weather", "get_time"), t),
]
FUMBLED = [
    Row("qwen3", "Use <tool_call>. <tool_call></tool_call> </tool_call>", "Use <tool_call>.  </tool_call>",
        codes=("stray-marker", "stray-marker")),
    Row("qwen3", JSON_CALL.replace('{"city": "Oslo"}', '""'), "", calls=1, codes=("mended",)),
    Row("lfm2", t := "[get_weather(city='Oslo')]", t),
    Row("lfm2", "<|tool_call_start|><|tool_call_end|>[get_weather(city='Oslo')]", "[get_weather(city='Oslo')]",
        codes=("stray-marker",)),
    Row("qwen3-coder", TAGGED_CALL.replace("</tool_call>", TAGGED_CALL.partition("\n")[2]), "", calls=2,
        codes=("repeated-call",)),
]  # fmt: skip
ROWS = [
    *IN_PROSE,
    *FUMBLED,
    *MARKUP_IN_VALUES,
    *EMPTY_SECTIONS,
    *PROSE,
    *AGAIN,
    *OUT_OF_REASONING,
    *UNWANTED,
    *UNDECLARED,
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.format}: {row.text[:40]!r}")
def test_what_a_text_means(row: Row) -> None:
    turn = chatparsers.get_format(row.format).bind(**{"tools": TOOLS, "id_seed": "x", **(row.request or {})})
    message = turn.parse(row.text)
    assert (message.content, message.reasoning, len(message.tool_calls)) == (
        row.content,
        row.reasoning,
        row.calls,
    )
    assert tuple(diagnostic.code for diagnostic in message.diagnostics) == row.codes
    assert message.complete and all(call.complete for call in message.tool_calls)
    for size in (1, 2, 3, 7):
        stream = turn.stream()
        for start in range(0, len(row.text), size):
            stream.feed(row.text[start : start + size])
        stream.finish()
        assert stream.message == message, size


def test_a_call_in_open_reasoning_counts_if_the_turn_ends_with_it(format: chatparsers.Format) -> None:
    """In every format that declares reasoning: a call at the end of the turn, and a draft where the thought goes on."""
    nodes = list(walk(format.tree(Options(tools=True))))
    thought = next((node for node in nodes if isinstance(node, Think)), None)
    if thought is None or not any(isinstance(node, (Args, EachArg)) for node in nodes):
        return
    if any(isinstance(node, Peek) for node in walk(thought) if node is not thought):
        return  # the calls begin with an answer, which ends the thought
    call = {"id": "a12345678", "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'}}
    wire = format.render({"role": "assistant", "content": "", "tool_calls": [call]}, tools=TOOLS)
    turn = format.bind(tools=TOOLS)
    opener = format.render({"role": "assistant", "reasoning_content": "Hm."}).partition("Hm.")[0]
    closer = next((text for text in format.preserved_tokens if wire.endswith(text)), "")
    for end in ("", "\n", *format.stops, closer, "\n" + closer + closer):
        message = turn.parse(opener + "Hm. " + wire + end)
        assert [json.loads(call.arguments) for call in message.tool_calls] == [{"city": "Oslo"}], end
        assert (message.reasoning.strip(), message.content.strip()) == ("Hm.", ""), end
        assert [one.code for one in message.diagnostics] == ["stray-marker"] * end.count(closer or "\0"), end
    drafted = turn.parse(opener + "Hm. " + wire + " So.")
    assert not drafted.tool_calls and not drafted.content
    assert drafted.reasoning.strip() == ("Hm. " + wire + " So.").strip()


def test_an_unwanted_call_is_no_event_and_no_content() -> None:
    turn = chatparsers.get_format("qwen3").bind(tools=TOOLS, tool_choice="none")
    stream = turn.stream()
    events = [*stream.feed(f"Hi. {JSON_CALL}"), *stream.finish()]
    assert {type(event) for event in events} == {chatparsers.Content}
    calls = [region for region in stream.message.regions if region.kind == "call"]
    assert "".join(stream.message.text[r.start : r.end] for r in calls) == 'get_weather{"city": "Oslo"}'


def tokenizer_of(format: chatparsers.Format, special: bool) -> Tokenizer:
    markers = format.preserved_tokens
    return bytewise(*markers) if special else bytewise(added=markers)


@pytest.mark.parametrize("schema", [{"type": "string"}, {}], ids=str)
def test_a_marker_of_a_call_as_a_token_ends_a_value(schema: dict[str, Any]) -> None:
    """The call that swallows the next one is broken, and the next one is read, however the ids come."""
    parameters = {"type": "object", "properties": {"city": schema}}
    tools = [{"type": "function", "function": {"name": "get_weather", "parameters": parameters}}]
    format = chatparsers.get_format("glm-4-5")
    tokenizer = tokenizer_of(format, True)
    ids = tokenizer.encode(GLM_SWALLOWED.replace("NYC", "NYC<tool_call>")).ids
    turn = format.bind(tools=tools, tokenizer=tokenizer, id_seed="x")
    message = turn.parse(ids)
    broken, whole = message.tool_calls
    assert not broken.complete and broken.arguments == '{"city": "NYC'
    assert whole.complete and whole.arguments == '{"city": "Oslo"}'
    assert message.diagnostics[0].code == "malformed" and message.content == ""
    for size in (1, 2, 5):
        stream = turn.stream()
        for start in range(0, len(ids), size):
            stream.feed(ids[start : start + size])
        stream.finish()
        assert stream.message == message, size


def test_a_marker_of_a_call_as_a_token_is_text_in_a_string_of_an_object() -> None:
    """JSON says where the object ends. Where the schema also admits a string, the closing tag does, so it breaks."""
    text = GLM_SWALLOWED.partition("NYC")[0] + '{"a": "</tool_call>"}</arg_value>\n</tool_call>'
    format = chatparsers.get_format("glm-4-5")
    tokenizer = tokenizer_of(format, True)
    for schema, whole in (({"type": "object"}, True), ({"type": ["object", "string"]}, False)):
        parameters = {"type": "object", "properties": {"city": schema}}
        tools = [{"type": "function", "function": {"name": "get_weather", "parameters": parameters}}]
        turn = format.bind(tools=tools, tokenizer=tokenizer)
        (call,) = turn.parse(tokenizer.encode(text).ids).tool_calls
        assert call.complete == whole, schema
        if whole:
            assert call.arguments == '{"city": {"a": "</tool_call>"}}'
        (call,) = turn.parse(text).tool_calls
        assert call.complete, schema


CLOSERS = "<|[`｜"


def test_a_call_is_whole_where_its_object_is(format: chatparsers.Format) -> None:
    """One rule for all formats whose arguments are one object: a call that only lacks its closing marker is complete,
    and the message is not."""
    nodes = list(walk(format.tree(Options(tools=True)), True))
    if not any(isinstance(node, Args) for node in nodes) or any(isinstance(node, EachArg) for node in nodes):
        return
    function = {"name": "get_weather", "arguments": '{"days": 375}'}
    message = {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "abcdefghi", "type": "function", "function": function}],
    }
    parameters = {"type": "object", "properties": {"days": {"type": "integer"}}}
    tools = [{"type": "function", "function": {"name": "get_weather", "parameters": parameters}}]
    text = format.render(message, tools)
    turn = format.bind(tools=tools)
    ends = [at for at in range(len(text) + 1) if any(c.complete for c in turn.parse(text[:at]).tool_calls)]
    assert not set(CLOSERS) & set(text[text.index("375") : ends[0]]), text[: ends[0]]


@pytest.mark.parametrize("special", [True, False])
def test_a_special_token_opens_reasoning_anywhere(special: bool) -> None:
    format = chatparsers.get_format("magistral")
    tokenizer = tokenizer_of(format, special)
    turn = format.bind(tools=TOOLS, tokenizer=tokenizer)
    text = "[THINK]a[/THINK]mid [THINK]b[/THINK]done"
    message = turn.parse(tokenizer.encode(text).ids)
    if special:
        assert (message.content, message.reasoning, message.diagnostics) == ("mid done", "ab", [])
    else:
        assert (message.content, message.reasoning) == ("mid [THINK]b[/THINK]done", "a")
    spelt = [id for character in "[THINK]x" for id in tokenizer.encode(character).ids]
    assert turn.parse(spelt).content == "[THINK]x"


def test_a_thought_after_the_answer_began(format: Format) -> None:
    """It is read at the start of a line if its closer comes before a call and the end, and told; else it is content:
    in a line, within a fence, not closed, or in an answer between markers of its own. An opener with the bar of special
    tokens counts anywhere."""
    if not format.features.reasoning or not any(isinstance(x, Think) for x in walk(format.tree(Options()))):
        return
    call = {"id": "a1b2c3d4e", "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'}}
    written = format.render({"reasoning_content": "Why?", "content": "That."})
    calls = format.render({"content": "", "tool_calls": [call]}, TOOLS) if format.features.tools else ""
    opener, closer = written.partition("That.")[0].split("Why?")
    again, turn = f"{opener}So?{closer}", format.bind(tools=TOOLS)
    bar = "|" in opener

    def read(text: str) -> tuple[str, str, int, bool]:
        whole = f"{opener}Why?{closer}That.{text}"
        message = check_cuts(turn, whole, [list(whole)])
        check_conservation(message, turn)
        told = any(one.code == "stray-marker" for one in message.diagnostics)
        return message.content, message.reasoning, len(message.tool_calls), told

    plain = opener.lstrip("\n")
    if written.partition("That.")[2]:
        content, reasoning, *_ = read(f"\n{plain}So?{closer}Yes.")
        assert plain in content and reasoning == "Why?"
        return
    assert read(f"\n{plain}So?{closer}Yes.")[1:] == ("Why?So?", 0, not bar)
    assert read(f"\n{again}{again}Yes.")[1:] == ("Why?So?So?", 0, not bar)
    if bar:
        assert read(f" {plain}So?{closer}Yes.")[:2] == ("That. Yes.", "Why?So?")
        return
    for text in (f" {plain}So?{closer}Yes.", f"\n```\n{plain}So?{closer}\n```\nYes.", f"\n{plain}So?\nYes."):
        assert read(text) == ("That." + text, "Why?", 0, True), text
    if calls:
        content, *others = read(f"\n{plain}So?{calls}")
        assert plain in content and others == ["Why?", 1, True]


def test_every_format_reads_the_thoughts_of_all(format: Format) -> None:
    """A format that declares no reasoning reads a thought between any pair of markers that a built-in format has."""
    assert {"<think:opensource>", "<ifm|think_fast>", "<ifm|think_faster>"} <= dict(THOUGHTS).keys()
    if format.features.reasoning or not isinstance(format.tree(Options()), Body):
        pytest.skip("it declares reasoning, or its answers begin with a header")
    for opener, closer in THOUGHTS:
        message = format.parse(f"{opener}\nWhy?\n{closer}\n\nThat.")
        assert (message.reasoning, message.content) == ("Why?", "That."), opener


def test_a_host_may_leave_out_calls_that_are_not_complete() -> None:
    turn = chatparsers.get_format("hermes-2-pro").bind(tools=TOOLS)
    message = turn.parse(JSON_CALL + "\n" + JSON_CALL[:-30])
    assert [call.complete for call in message.tool_calls] == [True, False]
    assert len(message.to_openai()["tool_calls"]) == 2
    assert [call["id"] for call in message.to_openai(incomplete="drop")["tool_calls"]] == [
        message.tool_calls[0].id
    ]
    assert "tool_calls" not in turn.parse(JSON_CALL[:-30]).to_openai(incomplete="drop")
    with pytest.raises(ValueError, match="incomplete: expected 'keep' or 'drop', found 'hide'"):
        message.to_openai(incomplete="hide")  # type: ignore[arg-type]


def test_json_calls_in_markers_are_read_as_objects_or_as_an_array(format: Format) -> None:
    """Whichever of the two the format generates, and with or without commas between the objects."""
    if not format.features.parallel:
        return
    call = {"id": "a1b2c3d4e", "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'}}
    written = format.render({"role": "assistant", "content": "", "tool_calls": [call]}, TOOLS)
    found = re.fullmatch(r"([^{[]*)\[?\s*(\{.*\})\s*\]?(.*?)", written, re.DOTALL)
    markers = format.preserved_tokens
    if not found or not found[1].strip().endswith(markers) or not found[3].strip().startswith(markers):
        return
    opener, one, closer = found.groups()
    if "get_weather" in opener:  # the name stands in a header, and the object is its arguments
        return
    for forms in ("{0}", "[{0}]", "{0}\n{0}", "{0}, {0}", "[{0}, {0}]", "[{0} {0}]"):
        message = format.bind(tools=TOOLS).parse(opener + forms.format(one) + closer)
        read = [each.arguments for each in message.tool_calls]
        assert read == ['{"city": "Oslo"}'] * forms.count("{"), forms
        codes = [diagnostic.code for diagnostic in message.diagnostics]
        assert codes == ["repeated-call"] * (forms.count("{") - 1), forms
        assert message.complete and not message.content.strip(), forms


def _slips(format: Format, text: str, bare: str) -> dict[str, list[str]]:
    """What a careless call means, and the texts that it may be. ``text`` has one argument, ``bare`` has none."""
    nodes = list(walk(format.tree(Options(tools=True)), True))
    each = [node for node in nodes if isinstance(node, EachArg) and node.most is None]
    found: dict[str, list[str]] = {}
    given = next((one for one in ('{"city": "Oslo"}', '{"city":"Oslo"}') if one in text), "")
    if given:
        found[given.replace('"}', '" }')] = [text.replace(given, given[:-1] + ", }")]
        found['{"city": "NaN"}'] = [text.replace(given, '{"city": NaN}')]
        other = re.sub(r'"(arguments|parameters)": {', '"args": {', text)
        found['{"city": "Oslo"}'] = [] if other == text else [other]
        if '"name": "get_weather"' in other:
            found['{"city": "Oslo"}'] += [text.replace('"name"', key) for key in ('"function"', '"tool"')]
    if "{}" in bare:
        without = re.sub(r', "(arguments|parameters)": {}|"(arguments|parameters)": {}, ', "", bare)
        found["{}"] = [] if without == bare else [without]
        if not bare.endswith("{}"):  # the marker of the end tells that there are no arguments
            found["{}"].append(bare.replace("{}", ""))
    if any(node.positional is not None for node in each) and "city=" in text:
        found['{"city": "Oslo"}'] = [text.replace("city=", "")]
        found['{"city": "Rome", "days": 2}'] = [text.replace('city="Oslo"', "'Rome', 2")]
    elif each and not given and begins(each[0].any):  # else a brace may begin an argument's name
        begun = next(at for at in range(len(text)) if text[at] != bare[at : at + 1])
        if bare[begun - 1] == "{":  # the arguments stand in an object already
            return found
        at = next(at for at in range(begun, -1, -1) if bare[at] in "<]\n" or text[at - 1] in ">]")
        start = bare.rindex("]<]minimax[>[", 0, at + 9) if "minimax[>" in bare else at
        found['{"city": "Rome, </x>"}'] = [bare[:start] + '{"city": "Rome, </x>"}' + bare[start:]]
    return found


def test_slips_that_can_mean_only_one_thing_are_mended(format: Format) -> None:
    """A comma too much, no arguments at all, `NaN`, JSON in place of tags, values without names."""
    function = {"city": {"type": "string"}, "days": {"type": "integer"}}
    tools = [{"name": "get_weather", "parameters": {"type": "object", "properties": function}}]
    if not format.features.tools:
        return
    texts = [
        format.render(
            {
                "content": "",
                "tool_calls": [{"id": "a1b2c3d4e", "function": {"name": "get_weather", "arguments": given}}],
            },
            tools,
        )
        for given in ('{"city": "Oslo"}', "{}")
    ]
    for meant, careless in _slips(format, *texts).items():
        for text in careless:
            turn = format.bind(tools=tools)
            whole = turn.parse(text, strict=True)
            assert [call.parsed_arguments for call in whole.tool_calls] == [json.loads(meant)], text
            assert whole.complete and not whole.content.strip(), text
            check_cuts(turn, text, [list(text)])
            check_conservation(whole, turn)


def test_arguments_are_never_left_out_in_silence(format: Format) -> None:
    """A JSON call whose other members could be its arguments is no call without arguments, but text; members beside the
    arguments are told."""
    if not format.features.tools:
        return
    call = {"id": "a1b2c3d4e", "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'}}
    written = format.render({"content": "", "tool_calls": [call]}, TOOLS)
    for more in ('"city": "Oslo"', '"data": {"city": "Oslo"}'):
        text = re.sub(r'"(arguments|parameters)": {.*?}', more, written)
        if text != written:
            message = format.bind(tools=TOOLS).parse(text)
            assert not message.tool_calls and more in message.content, text
    text = re.sub(r'"(arguments|parameters)": {.*?}', r'\g<0>, "days": 2', written)
    if text != written:
        message = format.bind(tools=TOOLS).parse(text)
        assert [call.arguments for call in message.tool_calls] == ['{"city": "Oslo"}'], text
        told = [(one.code, one.call, one.found[:9]) for one in message.diagnostics]
        assert told == [("unread-member", 0, '"days": 2')], text


def test_white_space_around_a_name_is_no_part_of_it(format: Format) -> None:
    """Of a tool, an argument or a call, where the name stands alone in a header and not in JSON."""
    nodes = list(walk(format.tree(Options(tools=True)), True))
    if not format.features.tools or any(isinstance(node, Header) for node in nodes):
        return
    call = {"id": "a1b2c3d4e", "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'}}
    text = format.render({"content": "", "tool_calls": [call]}, TOOLS)
    turn = format.bind(tools=TOOLS)
    for tag, name in ((Tag.NAME, "get_weather"), (Tag.ARG_NAME, "city"), (Tag.ID, "a1b2c3d4e")):
        alone = any(isinstance(node, Name) and node.tag is tag for node in nodes)
        if not alone or f': "{name}"' in text or f'{{"{name}"' in text:
            continue
        for spaced in (f" {name}", f"\n{name}\n"):
            given = text.replace(name, spaced, 1)
            message = turn.parse(given, strict=True)
            assert [(one.name, one.parsed_arguments) for one in message.tool_calls] == [
                ("get_weather", {"city": "Oslo"})
            ], given
            check_cuts(turn, given, [list(given)])
            check_conservation(message, turn)


def test_a_thought_may_follow_another(format: Format) -> None:
    said = {"role": "assistant", "content": "Hi.", "reasoning_content": "Hm."}
    try:
        text = format.render(said, [])
    except chatparsers.RequestError:
        return  # it writes no thoughts
    message = format.bind(thinking=True).parse(text.replace("Hi.", "") + text)
    assert message.reasoning.count("Hm.") == 2 and message.content.strip() == "Hi.", text


@pytest.mark.parametrize("name", ["qwen3", "qwen3-coder", "llama-3-x", "deepseek-v3-1"])
def test_a_token_has_the_first_region_that_is_no_markup(name: str) -> None:
    call = {
        "id": "1",
        "type": "function",
        "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'},
    }
    said = {"role": "assistant", "content": "", "tool_calls": [call]}
    format = chatparsers.get_format(name)
    text = format.render(said, TOOLS)
    for long in range(1, 40):
        stream = format.bind(tools=TOOLS).stream()
        stream.feed(text)
        stream.finish()
        kinds = [region.kind for region in stream.message.regions for _ in range(region.start, region.end)]
        starts = range(0, len(text), long)
        expected = [
            next((kind for kind in kinds[at : at + long] if kind != "markup"), "markup") for at in starts
        ]
        assert stream.token_regions(starts=starts) == expected, long


@pytest.mark.one_in(8)
def test_an_open_call_is_the_region(format: Format) -> None:
    """From its start to its end, also while a broken call is read over."""
    for text in broken(format, 8, 3):
        stream, calls = format.bind(tools=TOOLS).stream(), 0
        for at, char in enumerate(text):
            for event in stream.feed(char):
                calls += isinstance(event, CallStart) - isinstance(event, CallEnd)
            assert not calls or stream.region == "call", text[: at + 1]


@pytest.mark.one_in(8)
def test_the_region_is_decided_at_the_closer_of_a_thought(format: Format) -> None:
    """By text and by ids: where the next word would be content, the stream is no longer in the reasoning."""
    if not format.features.reasoning:
        return
    message = {"role": "assistant", "reasoning_content": "Hm.", "content": "So"}
    try:
        opener, _, rest = format.render(message).partition("Hm.")
    except chatparsers.RequestError:  # nothing but a call ends a thought
        assert format.name == "ui-tars"
        return
    closer = rest.rpartition("So")[0]
    turn = format.bind(tools=TOOLS, tokenizer=tokenizer_of(format, True))
    ends = [at for at in range(len(closer) + 1) if turn.parse(f"{opener}Hm.{closer[:at]}So").content == "So"]
    at = min(ends, default=len(closer))
    tokens = tokenizer_of(format, True)
    for pieces in (list(opener + "Hm." + closer[:at]), tokens.encode(opener + "Hm." + closer[:at]).ids):
        stream = turn.stream()
        regions = [stream.region for piece in pieces if stream.feed(piece) is not None]
        assert "reasoning" in regions and regions[-1] != "reasoning", (pieces, regions)
