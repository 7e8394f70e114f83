"""What a request asks for in its parts is one grammar that its engine compiles, and a turn of nothing is no answer."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple
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
from chatparsers.answers.nodes import Body, Think
from chatparsers.core.tree import walk

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
            name in ("smi", "ui-tars") and dialect in ("lark", "structural_tag")
        ), opener


class Judged(NamedTuple):
    """A request, and which texts its grammar takes as whole answers, which only as beginnings, and which not."""

    name: str
    request: dict[str, Any]
    whole: tuple[str, ...] = ()
    begun: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


def object_call(city: str = "Oslo") -> str:
    return f'{{"name": "get_weather", "arguments": {{"city": "{city}"}}}}'


HERMES = f"<tool_call>\n{object_call()}\n</tool_call>"
VALUE, CODER_END = (
    "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n",
    "\n</function>\n</tool_call>",
)
CODER = f"{VALUE}</parameter>{CODER_END}"
TWO_VALUES = [tool("f", {name: {"type": "string", "minLength": 1} for name in "ab"}, ["a"])]
VALUE_B = "<parameter=b>\nx\n</parameter>\n"
PLUS = 'Action:\n```json\n[\n    {"tool_name": "get_weather", "parameters": {"city": "Oslo"}}\n]```'
GLM = "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n</tool_call>"
HARMONY = (
    '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Oslo"}<|call|>'
)
PREAMBLE = f"<|channel|>commentary<|message|>Let me look.<|end|><|start|>assistant{HARMONY}"
THINKING, THOUGHT = {"prefix": "<think>\n"}, "Hm.\n</think>\n\n"
REQUIRED = {"tool_choice": "required"}
WANTED = {
    "type": "json_schema",
    "json_schema": {
        "name": "a",
        "schema": {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]},
    },
}
PYTHON, PYTHON_CALL = (
    tool("python", {"code": {"type": "string"}}, ["code"]),
    '<|python_tag|>{"code": "print(1)"}',
)
JUDGED: dict[str, Judged] = {
    # A prefix may end inside the closer of a value: its rest ends the value, and other text shows that it was none.
    "a prefix inside a closer": Judged(
        "qwen3-coder",
        {**REQUIRED, "prefix": f"{VALUE}</para"},
        (f"meter>{CODER_END}", f"de\n</parameter>{CODER_END}"),
        (),
        (CODER_END,),
    ),
    # Its lengths would also hold for all the text up to a later one.
    "a value in a prefix ends at its first closer": Judged(
        "qwen3-coder",
        {
            **REQUIRED,
            "tools": TWO_VALUES,
            "prefix": f"<tool_call>\n<function=f>\n<parameter=a>\nx\n</parameter>\n{VALUE_B}",
        },
        (CODER_END[1:],),
        (),
        (VALUE_B + CODER_END[1:], f"</parameter>\n{CODER_END[1:]}"),
    ),
    **{
        f"white space after a call may be absent, {mode}": Judged(
            "command-r-plus", {"tool_choice": mode}, (PLUS, f"{PLUS}\n")
        )
        for mode in ("auto", "required")
    },
    # A newline before the opener, as GLM-4.5's template writes it, is not the beginning of free text.
    "white space before reasoning is no text": Judged(
        "glm-4-5",
        {},
        (f"\n<think>Hm</think>\n{GLM}", f"<think>Hm</think>\n{GLM}", "\nHi", f"\n{GLM}"),
    ),
    "a preamble in the channel of calls": Judged(
        "gpt-oss", {"prefix": "<|start|>assistant"}, (PREAMBLE, HARMONY)
    ),
    # The marker that ends the message does not begin another call.
    **{
        f"{name} ends with its one call": Judged(
            name,
            {},
            ("Hi.", call, f"{call}<|message_sep|>", f"Hi.{call}", f"Hi.{call}<|message_sep|>"),
            (),
            (call + call, f"{call}<|message_sep|>{call}", f"{call} Hi."),
        )
        for name, call in (
            ("gigachat-3", f"<|message_sep|>\n\nfunction call<|role_sep|>\n{object_call()}"),
            ("gigachat-3-1", f"<|function_call|>{object_call()}"),
        )
    },
    "a named tool, once": Judged(
        "hermes-2-pro",
        {"tools": [WEATHER, tool("now", {}, [])], "tool_choice": "get_weather"},
        (HERMES,),
        (),
        (f"{HERMES}\n{HERMES}", '<tool_call>\n{"name": "now'),
    ),
    "several calls": Judged("hermes-2-pro", REQUIRED, (HERMES, f"{HERMES}\n{HERMES}")),
    "no parallel calls": Judged(
        "hermes-2-pro",
        {**REQUIRED, "parallel_tool_calls": False},
        (HERMES, f"{HERMES}\n"),
        (),
        (HERMES + HERMES, f"{HERMES}\n{HERMES}", f"{HERMES}Hi", f"{HERMES}\nHi"),
    ),
    # A call in open reasoning is a draft: the thought must still be closed, and the call be made.
    "the prompt opened the reasoning": Judged(
        "qwen3-coder", {**REQUIRED, **THINKING}, (THOUGHT + CODER,), (f"Hm. {CODER}", "Hm.")
    ),
    "the prompt closed the reasoning": Judged(
        "qwen3-coder", {**REQUIRED, "prefix": "<think>\n\n</think>\n\n"}, (CODER,), (), ("<think>",)
    ),
    "reasoning may come": Judged("qwen3-coder", REQUIRED, (f"<think>\n{THOUGHT}{CODER}", CODER)),
    "no reasoning": Judged("qwen3-coder", {**REQUIRED, "thinking": False}, (CODER,), (), ("<think>",)),
    **{
        f"a tool whose calls begin in their own way, {how}": Judged(
            "functionary-v3-1",
            {"tools": [PYTHON, *others]},
            (PYTHON_CALL, f"Hm. {PYTHON_CALL}", "Hm."),
            (),
            ('<function=other>{"a": 1}</function>',),
        )
        for how, others in {"alone": [], "beside another": [WEATHER]}.items()
    },
    # The format's own answers are not the schema's.
    "an answer that begins like a call": Judged(
        "generic",
        {"response_format": WANTED},
        ('{"answer": "Oslo"}', '{"tool_call": {"name": "get_weather", "arguments": {"city": "Oslo"}}}'),
        (),
        ('{"response": "Oslo"}',),
    ),
}


@pytest.mark.parametrize(
    ("case", "dialect"),
    [  # GBNF has the calls alone where calls may come: it begins at the first
        (case, dialect)
        for case, judged in JUDGED.items()
        for dialect in (
            ALL_DIALECTS if {"tool_choice", "response_format"} & judged.request.keys() else DIALECTS
        )
        if (dialect, judged.request.get("tool_choice")) != ("gbnf", "auto")
    ],
)
def test_what_the_grammar_of_a_request_takes(case: str, dialect: str) -> None:
    """And what it takes as a whole answer is read as one."""
    name, request, whole, begun, refused = JUDGED[case]
    turn = chatparsers.get_format(name).bind(**{"tools": [WEATHER], **request})
    judged = judge(turn, dialect)
    for text in whole:
        assert judged.status(text) == FULL, text
        assert turn.parse(text).complete, text
    assert [judged.status(text) for text in begun] == [PREFIX] * len(begun)
    assert [judged.status(text).kind for text in refused] == ["rejected"] * len(refused)


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


@pytest.mark.parametrize("name", ["qwen3", "llama-3-x", "deepseek-v3-1"])
def test_markers_as_text_beside_their_tokens(name: str) -> None:
    """llguidance takes no special token for its text: by text, a call could never begin."""
    format = chatparsers.get_format(name)
    turn = format.bind(tools=[WEATHER], tokenizer=toy_tokenizer(format, True))
    assert turn.grammar("lark").by_id
    with pytest.warns(UserWarning, match="as one token"):
        turn.grammar("lark", token_references=False)


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


def shaped(schema: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}


WAYS = {"then": {"type": "integer"}, "else": {"type": "boolean"}}
OLD = {"type": "object", "properties": {"n": {"type": "integer", "divisibleBy": 2, "required": True}}}
"""Draft 3."""
FORMS = [
    *((shaped({"if": always, **WAYS}), ["1"], ["true"]) for always in (True, {})),
    *((shaped({"if": never, **WAYS}), ["true"], ["1"]) for never in (False, {"not": {}})),
    (shaped(OLD), ['{"n": 2}'], ['{"n": 1}', "{}"]),
    ({"type": "choice", "choices": ["yes", "no", "yes, but"]}, ["yes", "no", "yes, but"], ["maybe", "yes,", "yesno"]),
    ({"type": "regex", "pattern": "[A-Z]{2}-[0-9]{3,5}|none"}, ["AB-123", "none"], ["AB-12", "AB-123456", "xAB-123"]),
]  # fmt: skip
LARK = """%llguidance {}
start: item ("," item)*  # braces that close nothing: }}
item: "}" | "\\"}" | WORD | %json {"enum": ["}", 7]} | %lark { start: "{" WORD? "}" // }
WORD: /[b-d]+/
}
WORD: /a[}a]*\\//
"""
"""The user's names are also ours, and a rule of a grammar inside it."""


@pytest.mark.parametrize(
    ("form", "taken", "refused", "dialect"),
    [
        *((*form, dialect) for form in FORMS for dialect in ALL_DIALECTS),
        (
            {"type": "lark", "grammar": LARK},
            ["}", '"}', "{b},{}", 'aa}/,"}"', "7"],
            ["", "{a}", "},", "a", "8"],
            "lark",
        ),
        (
            {"type": "lark", "grammar": "start: A+ // start\nA: /[a-c]/\n%ignore / +/"},
            ["a", "a  b", "cc "],
            ["", "a\nb"],
            "lark",
        ),
    ],
)
def test_answers_of_a_form(form: dict[str, Any], taken: list[str], refused: list[str], dialect: str) -> None:
    """The answer alone, and after a thought."""
    for more, before in (({"thinking": False}, ""), ({"thinking": True}, "<think>\nHm.\n</think>\n\n")):
        turn = chatparsers.get_format("qwen3").bind(response_format=form, **more)
        judge = compile_for(engines_of(dialect)[0], str(turn.grammar(dialect)), dialect)
        assert all(judge.status(before + text) == FULL for text in taken)
        assert not any(judge.status(before + text) == FULL for text in refused)
        assert turn.parse(before + taken[0]).content == taken[0]


@pytest.mark.parametrize("dialect", ["gbnf", "lark", "structural_tag"])
@pytest.mark.parametrize("most", [0, 1, 2, 5])
def test_white_space_in_json(most: int, dialect: str) -> None:
    turn = chatparsers.get_format("qwen3").bind(response_format=ANSWER, thinking=False)
    grammar = str(turn.grammar(dialect, whitespace=most))
    judge = compile_for(engines_of(dialect)[0], grammar, dialect)
    for white in ("", " ", "\n", "\r\n", "\n ", "\r\n ", "\n\t  ", "\n    ", "\r\n   ", "\n     "):
        for text in ('{%s"n":1}', '{"n"%s:1}', '{"n":%s1}', '{"n":1%s}'):
            assert (judge.status(text % white) == FULL) is (len(white) <= most), (white, text)


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"type": "choice", "choices": []}, r"choices: expected a list of texts, found \[\]"),
        ({"type": "choice", "choices": "yes"}, "choices: expected a list of texts, found 'yes'"),
        ({"type": "regex"}, "pattern: expected a regular expression as text, found NoneType"),
        ({"type": "regex", "pattern": "(?=a)"}, "lookaround"),
        ({"type": "regex", "pattern": "("}, "pattern: expected a regular expression that a grammar can say"),
        ({"type": "lark"}, "grammar: expected the text of a Lark grammar, found NoneType"),
        *(
            ({"type": "lark", "grammar": text}, message)
            for text, message in (
                ("begin: /a/", "column 1: expected a rule named 'start', found none"),
                ("a: %lark { start: /a/\n}", "expected a rule named 'start', found none"),
                ("a: start\n", "expected a rule named 'start', found none"),
                ("start: /a/ }\nfoo: {", r"line 1, column 12: expected a token of Lark, found '}'"),
                ("start: /a/\n}\nstart: /b/", r"line 2, column 1: expected a token of Lark, found '}'"),
                ('start: "a', """column 8: expected a token of Lark, found '"a'"""),
                ("start: a{1,2", "column 13: expected '}', found the end"),
                ("start: %json {", "column 14: expected JSON after %json"),
                ('start: "a" @}', "column 12: expected a token of Lark, found '@}'"),
                ("start: %json {}\n%ignore / /", "line 2, column 1: beside %json or %lark"),
            )
        ),
    ],
)
def test_a_wrong_form(form: dict[str, Any], message: str) -> None:
    turn = chatparsers.get_format("qwen3").bind(response_format=form, thinking=False)
    with pytest.raises(chatparsers.RequestError, match=message):
        turn.grammar("lark")


@pytest.mark.parametrize("dialect", ["gbnf", "structural_tag"])
def test_a_dialect_that_reads_no_lark(dialect: str) -> None:
    turn = chatparsers.get_format("qwen3").bind(response_format={"type": "lark", "grammar": LARK})
    with pytest.raises(chatparsers.RequestError, match="found 'lark': give dialect=\"lark\""):
        turn.grammar(dialect)
