"""The grammar of the rest: with what the prompt has written before it, its texts are those of the whole grammar."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from engines import FULL, PREFIX, Status, compile_for
from grammar_report import record
from samples import tool

from chatparsers import ChatParsersError, Format, LoadError, RequestError, get_format, list_formats, load

NAMES = [
    info.name
    for info in list_formats()
    if info.origin == "chatparsers" and get_format(info.name).features.tools
]
PROPERTIES: dict[str, Any] = {
    "city": {"type": "string"},
    "days": {"type": "integer", "minimum": 1, "maximum": 14},
    "unit": {"enum": ["celsius", "kelvin"]},
    "flags": {"type": "array", "items": {"type": "boolean"}},
    "code": {"type": "string", "pattern": "^[A-Z]{3}-[0-9]{2}$"},
    "day": {"type": "string", "format": "date"},
    "short": {"type": "string", "minLength": 2, "maxLength": 8},
    "any": {},
}
VALUE = {
    "city": 'São "Paulo"\nx',
    "days": 12,
    "unit": "kelvin",
    "flags": [True, False],
    "code": "ABC-12",
    "day": "2026-11-26",
    "short": 'a\n"b',
    "any": {"k": [1, "z"], "where": {"lat": -1.5}},
}
ANSWER = {"type": "object", "properties": PROPERTIES, "required": [*PROPERTIES]}
TOOLS = [tool("get_weather", PROPERTIES, [*PROPERTIES]), tool("get_time", {"zone": {"type": "string"}}, [])]
ENGINES = {"lark": "llguidance", "structural_tag": "xgrammar", "gbnf": "xgrammar"}


def call(name: str, arguments: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


CALLS = [call("get_weather", VALUE), call("get_time", {"zone": "UTC"})]
TEXT = {"content": "Let me look."}
SHAPED = {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": ANSWER}}}
CHOICES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "auto": ({"tools": TOOLS}, {**TEXT, "tool_calls": CALLS}),
    "required": ({"tools": TOOLS, "tool_choice": "required"}, {"tool_calls": CALLS}),
    "named": ({"tools": TOOLS, "tool_choice": "get_weather"}, {"tool_calls": CALLS[:1]}),
    "none": ({"tools": TOOLS, "tool_choice": "none"}, TEXT),
    "schema": (SHAPED, {"content": json.dumps(VALUE)}),
    "schema, calls": ({"tools": TOOLS, **SHAPED}, {"tool_calls": CALLS}),
}
"""What is asked for, and what the model writes: with a thought before it, where the format has thoughts."""


def written(format: Format, choice: str) -> str:
    """The answer, as far as the format writes its parts beside one another."""
    _, parts = CHOICES[choice]
    thought = {"reasoning_content": "Hm, the weather."} if format.features.reasoning else {}
    calls = {"tool_calls": parts["tool_calls"]} if "tool_calls" in parts else parts
    for message in (
        {**thought, **parts},
        {**thought, **calls},
        calls,
        {"tool_calls": CALLS[:1]} if calls is not parts else parts,
    ):
        try:
            return format.render({"role": "assistant", **message}, TOOLS)
        except ChatParsersError:
            continue
    pytest.skip(f"{format.name} writes no such answer")


def printed(text: str, whole: Any) -> str:
    """The text with line ends and indents in its JSON, as far as the grammar has them there."""
    for before, after in ((": ", ":\n\t  "), (", ", ",\r\n "), ("{", "{\n  "), ("}", "\n}")):
        at = -1
        while (at := text.find(before, at + 1)) >= 0:
            changed = text[:at] + after + text[at + len(before) :]
            if whole.status(changed) == FULL:
                text, at = changed, at + len(after)
    return text


def shifted(status: Status, by: int) -> Status:
    return status if status in (FULL, PREFIX) else Status(status.kind, status.at + by)


def follows(head: str, tail: str) -> list[str]:
    """What may come after the cut, and what may not."""
    half = tail[: len(tail) // 2]
    others = [
        tail[1:],
        half + tail[len(half) + 1 :],
        head[-3:] + tail,
        "banana",
        '"',
        "}",
        " \n",
        " " * 63 + tail.lstrip(" "),
        "<",
        "\n" + tail,
    ]
    return [tail, half, "", *others]


@pytest.mark.one_in(24)
@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("name", NAMES)
def test_the_rest_and_what_was_written_are_the_whole(
    name: str, choice: str, amount: Any, request: pytest.FixtureRequest
) -> None:
    format = get_format(name)
    text, options = written(format, choice), CHOICES[choice][0]
    chance, cuts, texts = random.Random(name + choice), 0, 0
    for dialect, engine in ENGINES.items():
        if dialect == "gbnf" and choice in ("auto", "none"):
            continue  # it has the calls alone
        whole = compile_for(engine, str(format.bind(**options).grammar(dialect)), dialect)
        if whole.status(text) != FULL:
            continue  # the grammar is narrower than these values
        said = printed(text, whole)
        for end in chance.sample(range(1, len(said)), amount(2, 3, 40)):
            head, tail = said[:end], said[end:]
            rest = compile_for(engine, str(format.bind(**options, prefix=head).grammar(dialect)), dialect)
            for after in follows(head, tail):
                found, expected = shifted(rest.status(after), end), whole.status(head + after)
                assert found == expected, (dialect, head, after)
                texts += 1
            cuts += 1
    record(request, "rest", choice=choice, cuts=cuts, texts=texts)


@pytest.mark.parametrize("name", ["deepseek-v3-2", "deepseek-v4", "gigachat-3-5"])
def test_what_begins_a_call_holds_another_marker(name: str) -> None:
    """A marker at which text ends is inside the one that begins the calls: what is written began before it."""
    format = get_format(name)
    text = format.render({"role": "assistant", "content": "Hi.", "tool_calls": CALLS[1:]}, TOOLS)
    whole = compile_for("llguidance", str(format.bind(tools=TOOLS).grammar("lark")), "lark")
    begin = text.index("<", text.index("Hi."))
    for end in range(begin + 1, text.index("get_time")):
        head, tail = text[:end], text[end:]
        rest = compile_for("llguidance", str(format.bind(tools=TOOLS, prefix=head).grammar("lark")), "lark")
        for after in (tail, "banana"):
            assert shifted(rest.status(after), end) == whole.status(head + after), (head, after)


@pytest.mark.parametrize("dialect", ENGINES)
def test_written_white_space_counts(dialect: str) -> None:
    options: Any = {"tools": [tool("f", {"a": {}}, ["a"])], "tool_choice": "required", "thinking": False}
    format, engine = get_format("hermes-2-pro"), ENGINES[dialect]
    whole = compile_for(engine, str(format.bind(**options).grammar(dialect)), dialect)
    for space in ("\n", "\r", "\r\n\t", "\n" + " " * 15, "\n" + " " * 63):
        head = '<tool_call>\n{"name": "f", "arguments": {' + space
        rest = compile_for(engine, str(format.bind(**options, prefix=head).grammar(dialect)), dialect)
        for more in ("", " ", "\n", "\t" * 5, " " * 6, " " * 20, " " * 49, " " * 64):
            text = more + '"a": 1}}\n</tool_call>'
            expected = whole.status(head + text)
            if whole.status(head).kind != "rejected":
                assert shifted(rest.status(text), len(head)) == expected, (space, more)


@pytest.mark.parametrize("open_", [False, True], ids=["closed", "open"])
@pytest.mark.parametrize("name", ["hermes-2-pro", "qwen3-coder"])
def test_the_members_that_are_left_of_many_come_in_any_order(name: str, open_: bool) -> None:
    """In Lark, where a rule has a bit for each member that was written: also of those that stand in a prefix."""
    names = [f"m{number}" for number in range(9)]
    options: Any = {"tools": [tool("f", {each: {"type": "integer"} for each in names}, names[::3])]}
    options |= {"tool_choice": "required", "parallel_tool_calls": False, "thinking": False}
    format = get_format(name)

    def grammar(prefix: str = "") -> Any:
        turn = format.bind(**options, prefix=prefix)
        return compile_for("llguidance", str(turn.grammar("lark", additional_properties=open_)), "lark")

    def spelt(written: list[str]) -> str:
        call = {
            "type": "function",
            "function": {"name": "f", "arguments": json.dumps(dict.fromkeys(written, 1))},
        }
        return format.render({"role": "assistant", "content": "", "tool_calls": [call]}).strip()

    whole, chance, ends = grammar(), random.Random(1), set()
    for members in (names[::-1], [*names[5:], *names[:5]], names[6::-3], names[7::-1]):
        text = printed(spelt(members), whole)
        for end in chance.sample(range(text.index("m") - 1, len(text)), 12):
            rest, others = grammar(text[:end]), chance.sample(members, len(members))
            for after in (text[end:], text[end:-9], spelt(others)[end:]):
                expected = whole.status(text[:end] + after)
                assert shifted(rest.status(after), end) == expected, (text[:end], after)
                ends.add(expected.kind)
    assert {"full", "rejected"} < ends


@pytest.mark.parametrize("name", NAMES)
def test_gbnf_finishes_a_call_that_began_after_text(name: str) -> None:
    """With auto, it has the rest of that call, and no other text in its place."""
    format = get_format(name)
    text = written(format, "auto")
    whole = format.bind(tools=TOOLS, tool_choice="required").grammar()
    if compile_for("xgrammar", str(whole), "gbnf").status(written(format, "required")) != FULL:
        pytest.skip("the grammar is narrower than these values")
    before = format.bind(tools=TOOLS).parse(text).regions
    begun = next(region.start for region in before if region.kind == "call")
    end = text.index("kelvin", begun) + 3
    judged = compile_for("xgrammar", str(format.bind(tools=TOOLS, prefix=text[:end]).grammar()), "gbnf")
    assert judged.status(text[end:]) == FULL
    assert judged.status("banana").kind == "rejected"


def test_lark_refuses_to_finish_a_number_that_must_be_divided() -> None:
    format = get_format("hermes-2-pro")
    tools = [tool("f", {"n": {"type": "integer", "multipleOf": 7}}, ["n"])]
    head = '<tool_call>\n{"name": "f", "arguments": {"n": 1'
    turn = format.bind(tools=tools, tool_choice="required", prefix=head)
    judged = compile_for("xgrammar", str(turn.grammar()), "gbnf")
    assert judged.status("4}}\n</tool_call>") == FULL
    assert judged.status("5}}\n</tool_call>").kind == "rejected"
    with pytest.raises(RequestError, match="the number '1', which 7 must divide"):
        turn.grammar("lark")


@pytest.mark.filterwarnings("ignore:thinking=False")  # of templates without a switch
@pytest.mark.parametrize("name", NAMES)
def test_the_grammar_goes_on_after_what_the_templates_write(name: str) -> None:
    """A template may write a header that calls go without, or close a thought that it did not open: what the format
    writes after it is a text of the grammar."""
    tools = [tool("get_time", {"zone": {"type": "string"}}, [])]
    try:
        chat = load(template=name)
    except LoadError:
        pytest.skip("it has no built-in template")
    answer = chat.format.render(
        {"role": "assistant", "tool_calls": [call("get_time", {"zone": "UTC"})]}, tools
    )
    for thinking in (None, False):
        try:
            turn = chat.prepare(
                [{"role": "user", "content": "Hi"}], tools=tools, tool_choice="required", thinking=thinking
            )
        except RequestError:
            continue  # the template has no such switch
        assert turn.parse(answer).tool_calls
        if turn.stream().state.kind == "reasoning":
            continue  # the thought is ended first
        for dialect in ("lark", "structural_tag", "gbnf"):
            judge = compile_for(ENGINES[dialect], str(turn.grammar(dialect)), dialect)
            begun = max(n for n in range(len(answer)) if turn.prefix.endswith(answer[:n]))
            spaces = {"", *(space for place in turn.call_spaces for space in place)}
            texts = [space + answer[begun:] for space in spaces]
            assert any(judge.status(text) in (FULL, PREFIX) for text in texts), (dialect, turn.prefix)


@pytest.mark.parametrize("name", NAMES)
def test_a_forced_call_begins_as_the_template_writes_it(name: str) -> None:
    """With the white space of later prompts and no other, so that the model reads its own call as it wrote it."""
    tools = [tool("get_time", {"zone": {"type": "string"}}, [])]
    asked = {"role": "user", "content": "Hi"}
    said = {"role": "assistant", "content": "", "tool_calls": [call("get_time", {"zone": "UTC"})]}
    try:
        chat = load(template=name)
    except LoadError:
        pytest.skip("it has no built-in template")
    turn = chat.prepare([asked], tools=tools, tool_choice="required")
    later = chat.prepare([asked, said], tools=tools, add_generation_prompt=False).prompt
    if turn.stream().state.kind == "reasoning" or not later.startswith(turn.prompt):
        pytest.skip("a thought is ended first, or the template writes a call otherwise than it asks for one")
    written = later[len(turn.prompt) :]
    if turn.prefix and written.lstrip().startswith(turn.prefix):
        pytest.skip("the template writes a header once more before a call")
    opener = written.lstrip()[:3]
    gap = written[: len(written) - len(written.lstrip())]
    for dialect in ("lark", "structural_tag", "gbnf"):
        judge = compile_for(ENGINES[dialect], str(turn.grammar(dialect)), dialect)
        assert judge.status(gap + opener) in (FULL, PREFIX), (dialect, gap, opener)
        for other in {"", " ", "\n", "\n\n", " \n"}.difference([gap], *turn.call_spaces):
            assert judge.status(other + opener).kind == "rejected", (dialect, other, opener)
