"""The grammars' promises beyond the agreement of engines: places of refusal, triggers, dialects, caching, a user's own
grammar."""

from __future__ import annotations

import json
import random
import re
import time
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from engines import FULL, PREFIX, Status, compile_for, engines_of
from samples import MANY, TOOLS, many_tools, tool
from test_generated import names
from test_matrix import DIALECTS, GRAMMAR, TOOL_FORMATS
from toy import toy_tokenizer

import chatparsers
from chatparsers import grammar as grammars
from chatparsers.answers import Builder, Format, Node
from chatparsers.errors import RequestError, SchemaError
from chatparsers.grammar.user import read_gbnf

WEATHER = TOOLS[:1]
HERMES = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo", "days": 3}}\n</tool_call>'
CODER = (
    "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n"
    "<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>"
)


def judge(name: str, dialect: str, **request: Any) -> Any:
    grammar = (
        chatparsers.get_format(name)
        .bind(**{"tools": WEATHER, "tool_choice": "required", **request})
        .grammar(dialect)
    )
    return compile_for(engines_of(dialect)[0], str(grammar), dialect)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("name", "text", "change", "at"),
    [
        ("hermes-2-pro", HERMES, ("get_weather", "get_wether"), "ther"),
        ("hermes-2-pro", HERMES, ('"city": "Oslo", ', ""), "}}\n<"),
        ("hermes-2-pro", HERMES, ('"days": 3', '"days": "3"'), '"3"'),
        ("hermes-2-pro", HERMES, ('"days": 3', '"days": 15'), "5}"),
        ("hermes-2-pro", HERMES, ('"days"', '"hours"'), "hours"),
        ("qwen3-coder", CODER, ("get_weather", "get_wether"), "ther"),
        ("qwen3-coder", CODER, ("<parameter=city>\nOslo\n</parameter>\n", ""), "/function"),
        ("qwen3-coder", CODER, ("\n3\n", "\nx\n"), "x\n"),
        ("qwen3-coder", CODER, ("=days", "=hours"), "hours"),
    ],
)
def test_refused_at_the_right_character(
    name: str, text: str, change: tuple[str, str], at: str, dialect: str
) -> None:
    checker = judge(name, dialect)
    assert checker.status(text) == FULL
    wrong = text.replace(*change)
    assert checker.status(wrong) == Status("rejected", wrong.index(at))


def test_triggers() -> None:
    auto = chatparsers.get_format("hermes-2-pro").bind(tools=WEATHER).grammar()
    assert auto.lazy
    assert [(t.kind, t.value) for t in auto.triggers] == [("word", "<tool_call>")]
    bare = chatparsers.get_format("llama-3-x").bind(tools=WEATHER).grammar()
    (pattern,) = [t.value for t in bare.triggers if t.kind == "pattern"]
    match = re.fullmatch(pattern, '\n{"name": "get_weather"')
    assert match is not None
    assert match[1].startswith('{"name"')
    assert re.fullmatch(pattern, 'Use {"name": 1}') is None
    # The rest of a call is a trigger, however it goes on.
    prefix = '<|action_start|><|plugin|>\n{"name": "get_weather", "parameters": {"city": "Oslo"'
    rest = chatparsers.get_format("internlm2").bind(tools=WEATHER, prefix=prefix).grammar()
    pattern = next(trigger.value for trigger in rest.triggers if trigger.kind == "pattern")
    assert all(re.match(pattern, text) for text in (', "days": 3}}', "}}<|action_end|>"))
    assert re.match(pattern, "Oslo") is None
    # A tool may have a marker of its own.
    turn = chatparsers.get_format("functionary-v3-1").bind(
        tools=[tool("python", {"code": {"type": "string"}}, ["code"])]
    )
    assert "<|python_tag|>" in [trigger.value for trigger in turn.grammar().triggers]
    assert [call.name for call in turn.parse('<|python_tag|>{"code": "1"}', strict=True).tool_calls] == [
        "python"
    ]


def test_triggers_tell_calls_from_the_other_parts() -> None:
    """GPT-OSS' calls begin like its reasoning and content, in the turn and after the text that the prompt wrote."""
    for prefix in ("", "<|start|>assistant"):
        grammar = chatparsers.get_format("gpt-oss").bind(tools=WEATHER, prefix=prefix).grammar()
        patterns = [t.value if t.kind == "pattern" else re.escape(t.value) for t in grammar.triggers]

        def triggered(text: str, patterns: list[str] = patterns) -> bool:
            return any(re.search(pattern, text) for pattern in patterns)

        begun = prefix or "<|start|>assistant"
        for other in ("analysis<|message|>To", "final<|message|>It", "commentary<|message|>I will"):
            assert not triggered(f"{begun}<|channel|>{other}".removeprefix(prefix))
        assert triggered(f"{begun}<|channel|>commentary to=functions.get_weather ".removeprefix(prefix))
        assert triggered(f"{begun} to=functions.get_weather<|channel|>".removeprefix(prefix))


def test_trigger_tokens_and_references() -> None:
    turn = chatparsers.get_format("hermes-2-pro").bind(tools=WEATHER)
    view = SimpleNamespace(
        tree=turn.tree, options=turn.options, tools=turn.tools, named=None, prefix="", response_format=None,
        stops=(), format=turn.format, reasoning=None, max_calls=None, call_within=None, call_spaces=((), (), ()),
        marker_ids={"<tool_call>": 151657, "</tool_call>": 151658},
    )  # fmt: skip
    grammar = grammars.write(view)
    assert grammar is not None and grammar.by_id == ("<tool_call>", "</tool_call>")
    assert [(t.kind, t.value, t.id) for t in grammar.triggers] == [("token", "<tool_call>", 151657)]
    assert "<[151657]>" in str(grammar)
    assert "<[151658]>" in str(grammar)
    assert "Token(151657)" in str(grammars.write(view, engine="xgrammar"))
    lark, tag = str(grammars.write(view, "lark")), str(grammars.write(view, "structural_tag"))
    assert "<[151657]>" in lark and '"<tool_call>"' not in lark
    excluded = r"excludes=(\"<tool_call>\",)"
    assert "Token(151657)" in tag and excluded in tag and "<tool_call>" not in tag.replace(excluded, "")
    for dialect in ("gbnf", "lark", "structural_tag"):
        with pytest.warns(UserWarning, match="'<tool_call>'") if dialect == "lark" else nullcontext():
            as_text = grammars.write(view, dialect, token_references=False)
        assert as_text is not None and as_text.by_id == () and "15165" not in str(as_text)
    with pytest.raises(chatparsers.RequestError, match=r"engine: expected one of llama\.cpp, xgrammar"):
        grammars.write(view, engine="vllm")
    view.marker_ids = {}
    with pytest.raises(chatparsers.RequestError, match="token_references: expected a turn whose tokenizer"):
        grammars.write(view, token_references=True)


@pytest.mark.parametrize(
    ("dialect", "engine", "form"),
    [
        ("gbnf", "llama.cpp", "<[{}]>"),
        ("gbnf", "xgrammar", "Token({})"),
        ("lark", "llama.cpp", "<[{}]>"),
        ("structural_tag", "xgrammar", "Token({})"),
    ],
)
def test_each_engines_form_of_a_token(dialect: str, engine: str, form: str) -> None:
    """Kimi-K2's calls are markers and JSON: all markers are written by id, and `by_id` names no other."""
    format = chatparsers.get_format("kimi-k2")
    tokenizer = toy_tokenizer(format, True)
    turn = format.bind(tools=TOOLS, tool_choice="required", thinking=False, tokenizer=tokenizer)
    grammar = turn.grammar(dialect, engine=engine)
    assert grammar is not None and "<|" not in str(grammar)
    assert set(grammar.by_id) == {
        f"<|tool_call{name}|>"
        for name in ("s_section_begin", "s_section_end", "_begin", "_end", "_argument_begin")
    }
    for marker in grammar.by_id:
        id = tokenizer.token_to_id(marker)
        assert form.format(id) in str(grammar)


def test_nothing_is_weakened_of_usual_tools() -> None:
    """`test_what_is_weakened_is_said` has what is."""
    for name in TOOL_FORMATS:
        assert chatparsers.get_format(name).bind(tools=MANY[:10]).grammar().weakened == ()


@pytest.mark.parametrize("name", TOOL_FORMATS)
def test_listed_values_may_be_empty(name: str) -> None:
    listed = tool("f", {"a": {"enum": ["", "b"]}}, ["a"])
    for dialect in DIALECTS:
        judge(name, dialect, tools=[listed])


@pytest.mark.parametrize("dialect", ["gbnf", "lark"])
@pytest.mark.parametrize("name", ["hermes-2-pro", "qwen3-coder"])
def test_what_tools_have_in_common_is_written_once(name: str, dialect: str) -> None:
    place = {"type": "object", "properties": {"name": {"enum": ["Oslo"]}}}
    tools = [tool(name, {"place": dict(place)}, ["place"]) for name in ("go", "stay")]
    grammar = chatparsers.get_format(name).bind(tools=tools, tool_choice="required").grammar(dialect)
    assert str(grammar).count("Oslo") == 1


@pytest.mark.parametrize(
    "schema", [{"maximum": 1}, {"maximum": 4, "multipleOf": 5}, {"type": "number", "exclusiveMaximum": 2}]
)
@pytest.mark.parametrize("name", ["hermes-2-pro", "qwen3-coder"])
def test_a_tool_that_no_call_can_satisfy_is_an_error(name: str, schema: dict[str, Any]) -> None:
    bad = tool("f", {"a": {"type": "integer", "minimum": 2, **schema}}, ["a"])
    turn = chatparsers.get_format(name).bind(tools=[*WEATHER, bad], tool_choice="required")
    for dialect in DIALECTS:
        with pytest.raises(SchemaError, match=r"^\$\.tools\.f\.parameters.*: no .* valid for the .* 'f'"):
            turn.grammar(dialect)


@pytest.mark.parametrize("name", TOOL_FORMATS)
def test_long_strings(name: str) -> None:
    """Any length is written. A length that the grammar does not count is weakened, and reported."""
    for least, most in ((1, 5), (0, 300), (1, 300), (20, 100_000)):
        long = tool("f", {"a": {"type": "string", "minLength": least, "maxLength": most}}, ["a"])
        turn = chatparsers.get_format(name).bind(tools=[long], tool_choice="required")
        for dialect in DIALECTS:
            grammar = turn.grammar(dialect)
            assert len(str(grammar)) < 50_000
            assert {weak.path for weak in grammar.weakened} <= {"$.tools.f.parameters.properties.a"}
            assert {weak.keyword for weak in grammar.weakened} <= {"minLength", "maxLength"}
            said = [weak.why for weak in grammar.weakened]
            assert dialect != "lark" or all("pattern" in why or "before a marker" in why for why in said)
            assert most != 5 or not said, f"{dialect}: {said}"  # a short length is always counted


@pytest.mark.parametrize(
    ("dialect", "engine"), [("gbnf", "xgrammar"), ("structural_tag", "xgrammar"), ("gbnf", "llama.cpp")]
)
@pytest.mark.parametrize(("least", "most"), [(0, 300), (200, 300), (200, None)])
def test_long_json_strings(dialect: str, engine: str, least: int, most: int | None) -> None:
    """For xgrammar, up to 64 characters are counted, and `weakened` says so."""
    bounds = {"minLength": least, **({} if most is None else {"maxLength": most})}
    long = tool("f", {"a": {"type": "string", **bounds}}, ["a"])
    turn = chatparsers.get_format("hermes-2-pro").bind(tools=[long], tool_choice="required")
    grammar = turn.grammar(dialect, engine=engine)
    loose = engine == "xgrammar"
    expected = {key for key, value in bounds.items() if value} if loose else set()
    assert {weak.keyword for weak in grammar.weakened} == expected
    checker = compile_for("xgrammar", str(grammar), dialect)
    for size in (0, 1, 199, 200, 201, 299, 300, 301):
        valid = size >= min(least, 64) if loose else least <= size and (most is None or size <= most)
        for char in ("x", "\U0001f600"):
            call = f'{{"name": "f", "arguments": {{"a": "{char * size}"}}}}'
            assert (checker.status(f"<tool_call>\n{call}\n</tool_call>") == FULL) is valid, (size, char)
        call = f'{{"name": "f", "arguments": {{"a": "{"x" * 20}{chr(92)}n{"x" * (size - 21)}"}}}}'
        if size > 20:
            assert (checker.status(f"<tool_call>\n{call}\n</tool_call>") == FULL) is valid, size


@pytest.mark.parametrize("dialect", DIALECTS)
def test_reasoning_holds_nothing_that_ends_the_turn(dialect: str) -> None:
    """Found by random walks: GPT-OSS' analysis could hold `<|call|>`, after which nothing is read."""
    thought = "<|channel|>analysis<|message|>Let me {}look.<|end|>"
    call = (
        "<|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>"
        '{"city": "Oslo"}<|call|>'
    )
    checker = judge("gpt-oss", dialect, prefix="<|start|>assistant")
    assert checker.status(thought.format("") + call) == FULL
    for marker in ("<|call|>", "<|return|>", "<|channel|>"):
        wrong = thought.format(marker) + call
        status, begin = checker.status(wrong), wrong.index("me ") + 3
        assert status.kind == "rejected"
        assert begin < status.at < begin + len(marker)


@pytest.mark.parametrize("dialect", [5, None, [], "gbfn"])
def test_unknown_dialect(dialect: Any) -> None:
    said = "did you mean gbnf" if dialect == "gbfn" else "dialect: expected"
    with pytest.raises(RequestError, match=said):
        chatparsers.get_format("hermes-2-pro").bind(tools=WEATHER).grammar(dialect)


def test_additional_properties_option() -> None:
    text = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo", "mood": [1]}}\n</tool_call>'
    turn = chatparsers.get_format("hermes-2-pro").bind(tools=WEATHER, tool_choice="required")
    assert compile_for("xgrammar", str(turn.grammar()), "gbnf").status(text).kind == "rejected"
    assert compile_for("xgrammar", str(turn.grammar(additional_properties=True)), "gbnf").status(text) == FULL


@pytest.mark.parametrize("dialect", DIALECTS)
def test_cached_by_content(dialect: str) -> None:
    tools = many_tools(100, 10)
    first = chatparsers.get_format("hermes-2-pro").bind(tools=tools).grammar(dialect)
    again = chatparsers.get_format("hermes-2-pro").bind(tools=json.loads(json.dumps(tools)))
    start = time.process_time()
    assert again.grammar(dialect) is first
    assert time.process_time() - start < 0.05
    tools[3]["function"]["parameters"]["properties"] = {}
    assert chatparsers.get_format("hermes-2-pro").bind(tools=tools).grammar(dialect) is not first


def test_same_grammar_in_every_process() -> None:
    """What is kept of one grammar changes no other. All names match the tool's pattern, and none do not."""
    any_name = {"name": "any_name", "parameters": {"patternProperties": {"": {"type": "integer"}}}}
    for name in names()[:8]:
        turn = chatparsers.get_format(name).bind(tools=[*TOOLS, any_name], tool_choice="required")
        for dialect in DIALECTS:
            first = turn.grammar(dialect, additional_properties=True)
            grammars._CACHE.clear()
            assert turn.grammar(dialect, additional_properties=True) == first


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ('root ::= "a', "line 1, column 12: expected the end of the literal"),
        ("root ::= foo\n", "line 1, column 10: no rule is named 'foo'"),
        ('root = "a"', "line 1, column 6: expected '::='"),
        ('root ::= ("a"\n', r"line 2, column 1: expected '\)'"),
        ('root ::= "a" )', "line 1, column 14: expected the end of the line"),
        ("root ::= [abc", "line 1, column 14: expected the end of the class"),
        ("root ::= [z-a]\n", "line 1, column 11: the range z-a"),
        ('root ::= "a"{3,2}', "line 1, column 13: the count"),
        pytest.param('root ::= "a"{' + "1" * 5000 + "}", "column 13: expected a count of up to", id="count"),
        (r'root ::= "a\U00110000"', r"line 1, column 12: \\U00110000 is no character"),
        (r"root ::= [\UFFFFFFFF]", r"line 1, column 11: \\UFFFFFFFF is no character"),
        ('root ::= x\nx ::= "b"? root', "left recursion"),
        ('x ::= "a"\n', "expected a rule named 'root'"),
        ('root ::= "a"\nroot ::= "b"\n', "line 2, column 1: the rule 'root' is defined twice"),
        ("", "line 1, column 1: expected a rule: .*, found the end"),
        ('root ::= "\\x4"', r"line 1, column 11: expected an escape, found"),
        ('root ::= "a"*?*?*', "line 1, column 17: more than 4 counts"),
        ("root ::= []", "line 1, column 10: an empty class"),
        (
            'root ::= "(("\nx ::= ' + "(" * 31 + '"a"' + ")" * 31,
            "line 2, column 37: groups are nested deeper",
        ),
        ("root ::= !<[5]>", "line 1, column 10: token references by number"),
    ],
)
def test_errors_in_a_users_grammar(source: str, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        read_gbnf(source)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_users_grammar_behind_reasoning(dialect: str) -> None:
    source = (
        'root ::= answer | ws-x "no" # comment\n\n'
        'answer ::= "yes" [!?]{1,3} | "\\"" [^"\\n]* "\\"" |\n  "(" root "?"{0} ")"\n'
        'ws-x ::= (" " | "\\t")?\n'
    )
    given = {"type": "grammar", "grammar": source}
    turn = chatparsers.get_format("qwen3-coder").bind(response_format=given, prefix="<think>\n")
    grammar = str(turn.grammar(dialect))
    assert "{0}" not in grammar and "{0,0}" not in grammar
    checker = compile_for(engines_of(dialect)[0], grammar, dialect)
    for text, status in (
        ("Hm.\n</think>\n\nyes!?", FULL),
        ("\n</think>\n\n((yes!))", FULL),
        ('\n</think>\n\n"x y"', FULL),
        ("\n</think>\n\n no", FULL),
        ("\n</think>\n\n\tno", FULL),
        ("\n</think>\n\nno", FULL),
        ('\n</think>\n\n""', FULL),
        ("\n</think>\n\n(yes", PREFIX),
        ("\n</think>\n\nno!", Status("rejected", 13)),
        ("\n</think>\n\nyes!!!!", Status("rejected", 17)),
    ):
        assert checker.status(text) == status, text
    plain = chatparsers.get_format("hermes-2-pro").bind(response_format=GRAMMAR).grammar(dialect)
    assert not plain.lazy


def test_a_constrained_string_is_one_lexeme_in_lark() -> None:
    """llguidance makes masks inside a string ahead only for a lexeme with the quotes in each of its constraints. The
    opening quote of a name is in a lexeme with the white space before it."""
    properties = {
        "é": {"type": "string", "pattern": "^a+$", "maxLength": 9},
        "b": {"type": "string", "minLength": 3},
    }
    schema = {"type": "object", "properties": properties, "patternProperties": {"^x": {"type": "integer"}}}
    turn = chatparsers.get_format("hermes-2-pro").bind(
        response_format={"type": "json_schema", "json_schema": {"schema": schema}}, thinking=False
    )
    lines = str(turn.grammar("lark", additional_properties=True)).splitlines()
    strings = [line.partition(":")[2] for line in lines if line.startswith("STRING")]
    terms = [term for body in strings for term in re.split(r"&(?=~?/|STRING)", body)]
    assert any(term.startswith("~") for term in terms) and len(terms) > len(strings) > 3
    assert all(re.fullmatch(r'~?/"?.*"/|STRING_?\d*', term) for term in terms)
    assert sum(line.startswith("LIT") and line.endswith(r'WS? "\""') for line in lines) == 1


BITS, FREE_REQUIRED = 64, 4
"""docs/grammar.md: in Lark, up to so many members come in any order; beyond, up to so many required ones."""


def in_order(written: list[str], listed: list[str]) -> bool:
    """Whether the members were written in the order of ``listed``."""
    return written == [name for name in listed if name in written]


@pytest.mark.one_in(8)
@pytest.mark.parametrize("other", [False, True], ids=["closed", "open"])
@pytest.mark.parametrize("size", [3, 7, 64, 65, 72])
def test_lark_has_the_orders_that_the_page_names(size: int, other: bool) -> None:
    draw = random.Random(size)
    for count in (0, 1, FREE_REQUIRED, FREE_REQUIRED + 1):
        names = draw.sample([f"{letter}{number}" for letter in "abXY" for number in range(20)], size)
        required = sorted(draw.sample(names, min(count, size)), key=names.index)
        optional = [name for name in names if name not in required]
        schema = {
            "type": "object",
            "properties": {name: {"type": "integer"} for name in names},
            "required": required,
        }
        turn = chatparsers.get_format("hermes-2-pro").bind(
            response_format={"type": "json_schema", "json_schema": {"schema": schema}}, thinking=False
        )
        engine = compile_for("llguidance", str(turn.grammar("lark", additional_properties=other)), "lark")
        taken = 0
        for _ in range(60):
            some = draw.sample(optional, draw.randint(0, len(optional)))
            kind = draw.randrange(5)
            first, second = draw.sample(required, len(required)), sorted(some, key=names.index)
            if kind == 1:
                first.sort(key=names.index)
            places = draw.sample([True] * len(first) + [False] * len(second), len(first) + len(second))
            written = [(first if place else second).pop(0) for place in places]
            if kind == 2:
                draw.shuffle(written)
            if kind == 3:
                written.sort(key=draw.choice([names.index, str.lower, str]))
            if kind == 4:
                del written[draw.randrange(len(written) + 1) :]
            right = set(required) <= set(written) and (
                size <= BITS
                or in_order(written, sorted(names, key=str.lower))
                or in_order(written, sorted(names))
                or (
                    in_order([name for name in written if name in optional], optional)
                    and (
                        count <= FREE_REQUIRED
                        or in_order([name for name in written if name in required], required)
                    )
                )
            )
            if other and written:
                written.insert(draw.randrange(len(written)), "else")
            text = json.dumps(dict.fromkeys(written, 1))
            assert (engine.status(text) == FULL) is right, text
            taken += right
        assert taken > 10


def test_the_rules_of_any_value_that_are_kept_are_those_of_the_request() -> None:
    """Lark writes them once for all grammars of one target, and nothing of another grammar stands beside them."""
    form = {
        "type": "json_schema",
        "json_schema": {"schema": {"properties": {"a": {}, "b": {"type": "object"}}}},
    }
    turn = chatparsers.get_format("qwen3").bind(response_format=form, thinking=False)
    first, *others = [str(turn.grammar("lark", whitespace=white)) for white in (64, 0, 2, 65)]
    assert len({first, *others}) == 4 and "WS" not in others[0]
    for said, white in (("\n" + " " * 63, 64), ("", 0), (" ", 1), ("\n ", 2)):
        whether = [
            compile_for("llguidance", text, "lark").status(f'{{"b":{{"c":{said}1}}}}') == FULL
            for text in (first, *others)
        ]
        assert whether == [True, white == 0, white <= 2, True], white
    chatparsers.grammar._CACHE.clear()
    assert str(turn.grammar("lark", whitespace=64)) == first


def test_a_rule_of_a_format_may_have_any_name() -> None:
    """Also one that begins as those of any value in JSON do."""

    def build(p: Builder) -> Node:
        sign = p.rule("json-sign", p.rule("other", p.choice("-", "+")) + "!")
        return p.body(p.each_tool(lambda tool: p.token("<c>") + sign + p.name(tool) + " " + p.args(tool)))

    turn = Format("invented", "Invented", "", build).bind(
        tools=[tool("f", {"a": {}}, [])], tool_choice="required"
    )
    for text, whole in (('<c>+!f {"a": [1]}', True), ('<c>!f {"a": [1]}', False)):
        found = compile_for("llguidance", str(turn.grammar("lark")), "lark").status(text)
        assert (found == FULL) is whole


@pytest.mark.parametrize("engine, dialect", [("llguidance", "lark"), ("llama.cpp", "gbnf")])
def test_a_rule_of_a_format_is_no_rule_of_a_schema(engine: str, dialect: str) -> None:
    """Also if it is named as the one of any value in JSON."""

    def build(p: Builder) -> Node:
        sign = p.rule("json-value", p.choice("-", "+"))
        call = p.each_tool(lambda tool: "<t>" + p.name(tool) + " " + p.args(tool))
        return p.body("<c>" + sign + p.calls(call))

    turn = Format("invented", "Invented", "", build).bind(
        tools=[tool("f", {"a": {}}, ["a"])], tool_choice="required"
    )
    for text, whole in (('<c>+<t>f {"a": [1]}', True), ('<c>+<t>f {"a": +}', False)):
        found = compile_for(engine, str(turn.grammar(dialect)), dialect).status(text)
        assert (found == FULL) is whole


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_object_without_members_has_white_space_once(dialect: str) -> None:
    """As between any two tokens; where members may come too."""
    members = {"x": {"type": "integer"}, "y": {"type": "string"}}
    schemas: list[dict[str, Any]] = [{"properties": members}, {"minProperties": 0}, {"maxProperties": 1}]
    for schema in schemas:
        inner = {"type": "object", "properties": {"o": {"type": "object", **schema}}, "required": ["o"]}
        function = {"name": "f", "parameters": inner}
        checker = judge("hermes-2-pro", dialect, tools=[{"type": "function", "function": function}])
        for space, taken in (("", True), (" ", True), ("\n  ", True), (" \n", False), ("  ", False)):
            text = f'<tool_call>\n{{"name": "f", "arguments": {{"o": {{{space}}}}}}}\n</tool_call>'
            assert (checker.status(text) == FULL) is taken, (schema, text)
