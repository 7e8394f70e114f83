"""What a request asks for in its parts is one grammar that its engine compiles, and a turn of nothing is no answer."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any
from zlib import crc32

import pytest
from engines import FULL, PREFIX, compile_for, engines_of
from samples import TOOLS as ALL_KINDS
from samples import tool
from test_matrix import DIALECTS as ALL_DIALECTS
from test_matrix import TOOL_FORMATS, text_of
from test_sampler import end_of
from toy import LlguidanceMask, XgrammarMask, toy_tokenizer

import chatparsers
from chatparsers.core.definition.nodes import Body, Think
from chatparsers.core.definition.tree import walk

WEATHER = tool("get_weather", {"city": {"type": "string"}}, ["city"])
SCHEMA = WEATHER["function"]["parameters"]
ANSWER = {
    "type": "json_schema",
    "json_schema": {
        "name": "answer",
        "schema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
    },
}
DIALECTS = ("lark", "structural_tag")


EACH_FORMAT = pytest.mark.parametrize(
    ("name", "dialect"), [(name, DIALECTS[index % 2]) for index, name in enumerate(TOOL_FORMATS)]
)
"""The formats with the dialects in turn."""


def judge(turn: chatparsers.Turn, dialect: str) -> Any:
    return compile_for(engines_of(dialect)[0], str(turn.grammar(dialect)), dialect)


@EACH_FORMAT
def test_an_answer_without_calls(name: str, dialect: str) -> None:
    """With ``tool_choice="none"`` and a ``response_format`` only the answer is left: the last step of an agent."""
    turn = chatparsers.get_format(name).bind(
        tools=[WEATHER], tool_choice="none", response_format=ANSWER, thinking=False
    )
    assert judge(turn, dialect).status("") == PREFIX


def openers(name: str) -> list[str]:
    """What begins reasoning in a format, as the end of a prompt."""
    tree = chatparsers.get_format(name).bind(tools=[WEATHER]).tree
    spans = [node.span for node in walk(tree, True) if isinstance(node, Think)]
    spans += [node.reasoning for node in walk(tree, True) if isinstance(node, Body) and node.reasoning]
    return [text for span in spans if (text := text_of(span.open))]


@EACH_FORMAT
def test_the_prefix_decides_about_reasoning(name: str, dialect: str) -> None:
    """Reasoning that the prompt has opened must end first, although ``thinking=False`` wished for none; but nothing
    need end a thought that has no closer."""
    for opener in openers(name):
        turn = chatparsers.get_format(name).bind(tools=[WEATHER], prefix=opener, thinking=False)
        message = turn.parse("Hm")
        assert message.reasoning, (opener, message)
        assert (judge(turn, dialect).status("Hm") == FULL) is (
            name in ("smi", "ui-tars") and dialect == "lark"
        ), opener


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_prefix_may_end_inside_the_closer_of_a_value(dialect: str) -> None:
    """The rest of the closer ends the value, and other text shows that it was none."""
    before, rest = (
        "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</para",
        "\n</function>\n</tool_call>",
    )
    turn = chatparsers.get_format("qwen3-coder").bind(tools=[WEATHER], prefix=before, tool_choice="required")
    judged = judge(turn, dialect)
    for text in (f"meter>{rest}", f"de\n</parameter>{rest}"):
        assert judged.status(text) == FULL, text
        assert turn.parse(text).tool_calls[0].complete
    assert judged.status(rest) != FULL


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_value_in_a_prefix_ends_at_its_first_closer(dialect: str) -> None:
    """Its lengths would also hold for all the text up to a later one."""
    tools = [tool("f", {name: {"type": "string", "minLength": 1} for name in "ab"}, ["a"])]
    values = "".join(f"<parameter={name}>\nx\n</parameter>\n" for name in "ab")
    before, rest = f"<tool_call>\n<function=f>\n{values}", "</function>\n</tool_call>"
    turn = chatparsers.get_format("qwen3-coder").bind(tools=tools, prefix=before, tool_choice="required")
    judged = judge(turn, dialect)
    assert judged.status(rest) == FULL
    for text in (f"<parameter=b>\nx\n</parameter>\n{rest}", f"</parameter>\n{rest}"):
        assert judged.status(text) != FULL, text


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", ["hermes-2-pro", "qwen3-coder", "lfm2"])
def test_a_prefix_may_end_anywhere_in_a_call(name: str, dialect: str) -> None:
    """Such as an answer that ran out of length. The rest of the call is allowed, and nothing else in its place."""
    arguments = {"city": 'Os"lo\n\u2028', "days": 12, "unit": "celsius", "tags": ["a", "b c"]}
    texts = {"type": "array", "items": {"type": "string"}}
    types = {"city": {"type": "string"}, "days": {"type": "integer"}, "unit": {"enum": ["celsius", "kelvin"]}}
    tools = [tool("get_weather", {**types, "tags": texts}, ["city"])]
    call = {"function": {"name": "get_weather", "arguments": arguments}}
    format = chatparsers.get_format(name)
    written = format.render({"role": "assistant", "tool_calls": [call]}, tools)
    for end in random.Random(name + dialect).sample(range(len(written)), 6):
        turn = format.bind(tools=tools, prefix=written[:end], tool_choice="required")
        judged = judge(turn, dialect)
        assert judged.status(written[end:]) == FULL, written[:end]
        assert end < 30 or judged.status(written) != FULL, written[:end]


def test_a_prefix_may_end_inside_the_header_of_an_argument() -> None:
    """The arguments that follow are those of the schema, and others if it has some."""
    function = {**WEATHER["function"], "parameters": {**SCHEMA, "additionalProperties": {"type": "integer"}}}
    format, tools = chatparsers.get_format("deepseek-v3-2"), [{"type": "function", "function": function}]
    call = {"function": {"name": "get_weather", "arguments": {"city": "Oslo"}}}
    written = format.render({"role": "assistant", "tool_calls": [call]}, tools)
    end = written.index('ing="true">Oslo')
    turn = format.bind(tools=tools, prefix=written[:end], tool_choice="required")
    judged = compile_for("xgrammar", str(turn.grammar()), "gbnf")
    assert judged.status(written[end:]) == FULL
    assert judged.status(written[end:].replace("true", "false")) != FULL


@pytest.mark.parametrize("others", [[], [WEATHER]], ids=["alone", "beside another"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_tool_whose_calls_begin_in_their_own_way(dialect: str, others: list[Any]) -> None:
    python = tool("python", {"code": {"type": "string"}}, ["code"])
    turn = chatparsers.get_format("functionary-v3-1").bind(tools=[python, *others])
    call = '<|python_tag|>{"code": "print(1)"}'
    assert [one.name for one in turn.parse(call, strict=True).tool_calls] == ["python"]
    assert [judge(turn, dialect).status(text) for text in (call, f"Hm. {call}", "Hm.")] == [FULL] * 3
    assert judge(turn, dialect).status('<function=other>{"a": 1}</function>') != FULL
    assert "<|python_tag|>" in [trigger.value for trigger in turn.grammar().triggers]


@pytest.mark.parametrize("length", [24, 2000, 5000])
@pytest.mark.parametrize("name", ["qwen3-coder", "glm-4-5", "deepseek-v4", "nanbeige", "step-3", "gemma-4"])
def test_text_up_to_a_marker_is_counted_as_far_as_the_engine_bears(name: str, length: int) -> None:
    """llguidance gives up inside the marker behind long counts, and then takes nothing more."""
    schema = {"type": "string", "pattern": "[a-z ]+", "maxLength": length}
    turn = chatparsers.get_format(name).bind(
        tools=[tool("f", {"s": schema}, ["s"])], tool_choice="required", thinking=False
    )
    call = {"function": {"name": "f", "arguments": {"s": "a <b> c"}}}
    text = chatparsers.get_format(name).render({"role": "assistant", "tool_calls": [call]})
    assert judge(turn, "lark").status(text) == FULL
    told = [weak.keyword for weak in turn.grammar("lark").weakened]
    assert told == ["maxLength"] * (length > 24)


@pytest.mark.parametrize("mode", ["auto", "required"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_white_space_behind_a_call_may_be_absent(dialect: str, mode: str) -> None:
    format = chatparsers.get_format("command-r-plus")
    call = {"function": {"name": "get_weather", "arguments": {"city": "Oslo"}}}
    text = format.render({"role": "assistant", "tool_calls": [call]}).rstrip()
    checker = judge(format.bind(tools=[WEATHER], tool_choice=mode), dialect)
    assert [checker.status(one) for one in (text, f"{text}\n")] == [FULL, FULL]


@pytest.mark.parametrize("name", ["qwen3", "llama-3-x", "deepseek-v3-1"])
def test_markers_as_text_beside_their_tokens(name: str) -> None:
    """llguidance takes no special token for its text: by text, a call could never begin."""
    format = chatparsers.get_format(name)
    turn = format.bind(tools=[WEATHER], tokenizer=toy_tokenizer(format, True))
    assert turn.grammar("lark").by_id
    with pytest.warns(UserWarning, match="as one token"):
        turn.grammar("lark", token_references=False)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_white_space_before_reasoning_is_no_text(dialect: str) -> None:
    """A newline before the opener, as GLM-4.5's template writes it, is not the beginning of free text."""
    checker = judge(chatparsers.get_format("glm-4-5").bind(tools=[WEATHER]), dialect)
    call = "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n</tool_call>"
    texts = [f"{space}<think>Hm</think>\n{call}" for space in ("\n", "")]
    assert [checker.status(text) for text in (*texts, "\nHi", f"\n{call}")] == [FULL] * 4


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_preamble_in_the_channel_of_calls(dialect: str) -> None:
    turn = chatparsers.get_format("gpt-oss").bind(tools=[WEATHER], prefix="<|start|>assistant")
    call = (
        '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Oslo"}<|call|>'
    )
    text = f"<|channel|>commentary<|message|>Let me look.<|end|><|start|>assistant{call}"
    message = turn.parse(text, strict=True)
    assert (message.content, len(message.tool_calls)) == ("Let me look.", 1)
    assert [judge(turn, dialect).status(one) for one in (text, call)] == [FULL] * 2


ONE_CALL = {
    "gigachat-3": "<|message_sep|>\n\nfunction call<|role_sep|>\n",
    "gigachat-3-1": "<|function_call|>",
}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", ONE_CALL)
def test_a_format_of_one_call_ends_with_it(name: str, dialect: str) -> None:
    """The marker that ends the message does not begin another call."""
    call = ONE_CALL[name] + '{"name": "get_weather", "arguments": {"city": "Oslo"}}'
    end = "<|message_sep|>"
    checker = judge(chatparsers.get_format(name).bind(tools=[WEATHER]), dialect)
    taken = ["Hi.", call, call + end, f"Hi.{call}", f"Hi.{call}{end}"]
    assert [checker.status(text) for text in taken] == [FULL] * len(taken)
    assert all(checker.status(call + more).kind == "rejected" for more in (call, f"{end}{call}", " Hi."))


@EACH_FORMAT
def test_one_call_where_no_second_is_wanted(name: str, dialect: str) -> None:
    format = chatparsers.get_format(name)
    if not format.features.parallel:
        return
    calls = [
        {"id": f"call0000{n}", "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'}}
        for n in (1, 2)
    ]
    one, two = (
        format.render({"role": "assistant", "content": "", "tool_calls": calls[:n]}, [WEATHER])
        for n in (1, 2)
    )
    checker = judge(format.bind(tools=[WEATHER], parallel_tool_calls=False, thinking=False), dialect)
    assert checker.status(one) == FULL
    assert checker.status(two).kind == "rejected"


CHOICES: dict[str, list[Any]] = {
    "tool_choice": ["auto", "required", "none", "get_weather"],
    "parallel_tool_calls": [True, False],
    "thinking": [None, True, False],
    "response_format": [
        None,
        ANSWER,
        {"type": "json_object"},
        {"type": "grammar", "grammar": 'root ::= "yes" | "no"'},
    ],
    "tools": [
        [WEATHER],
        [WEATHER, tool("python", {"code": {"type": "string"}}, ["code"]), tool("now", {}, [])],
        [
            WEATHER,
            tool("list-pages", {"page[size]": {"type": "integer"}, "a>b": {"type": "string"}}, ["a>b"]),
        ],
    ],
}


def takes_nothing(grammar: str, dialect: str, tokenizer: Any) -> bool:
    """Whether the dialect's engine takes the empty text as a whole answer, by bytes or by the tokens of a tokenizer."""
    if tokenizer is None:
        return bool(compile_for(engines_of(dialect)[0], grammar, dialect).status("") == FULL)
    end = end_of(tokenizer)
    if dialect == "lark":
        mask: Any = LlguidanceMask(tokenizer, grammar, [end])
        if mask.matcher.is_error():
            raise ValueError(mask.matcher.get_error())
    else:
        mask = XgrammarMask(tokenizer, grammar, dialect, [end])
    return bool(mask.allowed()[end])


@pytest.mark.parametrize("name", TOOL_FORMATS)
def test_any_request_compiles_and_wants_an_answer(name: str, amount: Callable[[int, int, int], int]) -> None:
    """Whatever a request combines, its engine takes the grammar; and where it asks for a call or for JSON, a turn of
    nothing is no answer."""
    rng = random.Random(crc32(name.encode()))
    format = chatparsers.get_format(name)
    tokenizer = toy_tokenizer(format, True)
    for _ in range(amount(1, 3, 60)):
        asked = {key: rng.choice(values) for key, values in CHOICES.items()}
        if rng.random() < 0.5:
            asked["tokenizer"] = tokenizer
        asked["prefix"] = rng.choice(
            ["", *(f"{opener}{end}" for opener in openers(name) for end in ("", "\n"))]
        )
        dialect = rng.choice(("gbnf", *DIALECTS))
        turn = format.bind(**asked)
        shown = {**asked, "tools": len(asked["tools"]), "tokenizer": "tokenizer" in asked, "dialect": dialect}
        try:
            grammar = turn.grammar(dialect, engine="xgrammar")
        except chatparsers.RequestError as error:
            raise AssertionError(shown) from error
        if grammar is None:
            assert asked["tool_choice"] == "none" and asked["response_format"] is None, shown
            continue
        try:
            ended = takes_nothing(str(grammar), dialect, asked.get("tokenizer"))
        except (RuntimeError, ValueError) as error:
            raise AssertionError(shown) from error
        if asked["tool_choice"] not in ("auto", "none") or asked["response_format"] is not None:
            assert not ended, shown


@pytest.mark.parametrize("dialect", ["gbnf", "structural_tag"])
def test_older_engines(dialect: str) -> None:
    """Rules in place of regular expressions, of the same language; what a version cannot read is an error."""
    turn = chatparsers.get_format("qwen3").bind(tools=ALL_KINDS, tool_choice="required", thinking=False)
    new, old = (turn.grammar(dialect, engine=f"xgrammar{version}") for version in ("", ">=0.2.4"))
    assert new is not None and old is not None
    assert "Regex(" in str(new) and "Regex(" not in str(old)
    assert str(turn.grammar(dialect, engine="xgrammar==0.2.7")) == str(new)
    text = '<tool_call>\n{"name": "set_value", "arguments": {"key": "a\\n", "value": "b" , "even": 4}}\n</tool_call>'
    for changed in (text, text.replace('"even"', '"odd"'), text.replace(" ,", "\n" + " " * 20 + ",")):
        found = [compile_for("xgrammar", str(grammar), dialect).status(changed) for grammar in (new, old)]
        assert found[0] == found[1], (changed, found)
    with pytest.raises(chatparsers.RequestError, match="engine: expected one of"):
        turn.grammar(dialect, engine="xgrammar~0.2")
    tokenizer = toy_tokenizer(turn.format, True)
    by_id = turn.format.bind(tools=ALL_KINDS, tool_choice="required", tokenizer=tokenizer)
    with pytest.raises(chatparsers.RequestError, match=r"0\.1\.34"):
        by_id.grammar(dialect, engine="xgrammar==0.1.30")


def called(count: int) -> list[dict[str, Any]]:
    calls = ({"name": "f", "arguments": f'{{"a": "x{number}"}}'} for number in range(count))
    return [{"id": f"call{n:05d}", "type": "function", "function": call} for n, call in enumerate(calls)]


@pytest.mark.parametrize("name", TOOL_FORMATS)
def test_the_most_calls(name: str) -> None:
    """So many calls are taken and not one more, in every dialect, where calls are required and where they may come."""
    format = chatparsers.get_format(name)
    tools = [tool("f", {"a": {"type": "string"}}, ["a"])]
    for choice in ("required", "auto"):
        for dialect in ALL_DIALECTS:
            for most, given in ((3, {"max_calls": 3}), (16, {})):
                if choice == "auto" and not given:  # any number
                    continue
                turn = format.bind(tools=tools, tool_choice=choice, **given)
                grammar = turn.grammar(dialect)
                assert grammar is not None
                checker = compile_for(engines_of(dialect)[0], str(grammar), dialect)
                for count in (1, most, most + 1):
                    try:
                        text = format.render({"tool_calls": called(count)}, tools)
                    except chatparsers.RequestError:  # the format writes one call
                        continue
                    status = checker.status(text.lstrip() if grammar.lazy else text)
                    assert (status == FULL) is (count <= most), (choice, dialect, count, status)
    with pytest.raises(chatparsers.RequestError, match="max_calls"):
        format.bind(tools=tools, max_calls=0)
