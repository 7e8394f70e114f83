"""What a model writes decides, not the roles around it and not what the template keeps of past answers."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

import chatparsers
from chatparsers import Detection, detect
from chatparsers.detection.detect import by_name
from chatparsers.detection.shown import CONTENT_ONLY
from chatparsers.templates import Template

OWN = Path(__file__).parents[1] / "templates_own"
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]
ASK = [{"role": "user", "content": "Find it."}]

# Calls under the role headers of Llama 3; $CALLS$ is how they are written.
LLAMA_HEADERS = """\
{%- if tools %}<|start_header_id|>system<|end_header_id|>

{% for tool in tools %}{{ tool | tojson }}
{% endfor %}<|eot_id|>{% endif %}
{%- for m in messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>

{{ m.content or '' }}$CALLS$<|eot_id|>{% endfor %}
{%- if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>

{% endif %}"""
TAGGED = (
    "{% for c in m.tool_calls or [] %}{% if m.content or not loop.first %}{{ '\\n' }}{% endif %}{{ '<tool_call>\\n' }}"
    '{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}'
    "{{ '\\n</tool_call>' }}{% endfor %}"
)
LISTED = "{% if m.tool_calls %}{{ m.tool_calls | map(attribute='function') | list | tojson }}{% endif %}"

NAMED_TWICE = (
    "{% for tool in tools or [] %}<tool>{{ tool | tojson }}</tool>{% endfor %}"
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% for c in m.tool_calls or [] %}$CALL${% endfor %}<|over|>"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)

# A format that cuts reasoning out of past answers, as DeepSeek R1's templates do.
KEPT = "{{- message.content }}"
CUT = "{{- message.content.split('</think>')[-1] }}"

PLAIN = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content$CUT$ }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>$PROMPT${% endif %}"
)


def plain(*, cut: str = "", prompt: str = "") -> str:
    return PLAIN.replace("$CUT$", cut).replace("$PROMPT$", prompt)


# ChatML whose tools are shown between marks, but whose past turns are their content alone; past thoughts are cut out.
DROPS = (
    "{% if tools %}<|im_start|>system{{ '\\n' }}$MARK${{ tools | tojson }}<|im_end|>{{ '\\n' }}{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}{{ '\\n' }}$CONTENT$<|im_end|>{{ '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant{{ '\\n' }}{% endif %}"
)
CONTENT = "{{ m.content.split('</think>')[-1] | trim if not loop.last else m.content }}"

TELLS = NAMED_TWICE.replace("</tool>{% endfor %}", "</tool>{% endfor %}{% if tools %}$TOLD${% endif %}")
OBJECT = 'Answer with {"name": the name, "arguments": a dictionary}.'
OTHER = 'Answer with {"tool": the name, "tool_input": a dictionary}.'
LIST = "Answer with [func1(param=value, …)]."
MARKED = '<use>{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}</use>'


def own(name: str) -> str:
    return (OWN / f"{name}.jinja").read_text(encoding="utf-8")


def replaced(source: str, old: str, new: str) -> str:
    assert old in source
    return source.replace(old, new)


ANSWER = "{{- start + message.role + '\\n' + message.content }}"
THOUGHT = (
    "'<think>\\n' + message.reasoning_content + '\\n</think>\\n\\n' if message.reasoning_content else ''"
)


NO_FAMILY = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}$CALLS$</{{ m.role }}>{% endfor %}<assistant>"
)
STRANGE = (
    "{% for c in m.tool_calls or [] %}@@{{ c.function.name | upper }}@@"
    "{{ c.function.arguments | tojson }}@@{% endfor %}"
)


class Seen(NamedTuple):
    """A template, the format that is found for it (None: of no family) and the score. ``lines``: what the evidence has
    in these lines; ``says``: its further whole lines; ``unsaid``: what it does not mention; ``limits``: what is not
    proved."""

    source: str
    name: str | None
    score: float
    lines: Mapping[int, str] = MappingProxyType({})
    says: tuple[str, ...] = ()
    unsaid: str | None = None
    limits: tuple[str, ...] = ()


SEEN: dict[str, Seen] = {
    "calls of one family under the headers of another": Seen(
        LLAMA_HEADERS.replace("$CALLS$", TAGGED),
        "qwen3",
        1.0,
        {0: "markers in the rendering: '<tool_call>'", 1: "two calls"},
    ),
    # A format that would read the call, but whose grammar would keep the model from writing it, is not taken.
    **{
        f"calls that no family writes: {how}": Seen(source, "auto:json-native", 1.0)
        for how, source in {
            "a bare list, which some formats read leniently": LLAMA_HEADERS.replace("$CALLS$", LISTED),
            "no white space in the JSON": LLAMA_HEADERS.replace("$CALLS$", replaced(TAGGED, '", "', '","')),
            "no line break": LLAMA_HEADERS.replace(
                "$CALLS$", replaced(TAGGED, "{{ '\\n</tool_call>' }}", "</tool_call>")
            ),
            "plain text": NAMED_TWICE.replace("$CALL$", "{{ m.tool_calls | tojson if loop.first }}"),
        }.items()
    },
    "neither tools nor calls": Seen(
        NO_FAMILY.replace("$CALLS$", ""), CONTENT_ONLY, 1.0, {0: "neither tools nor calls"}
    ),
    "calls that no format explains": Seen(
        "{% if tools %}{{ tools | tojson }}{% endif %}" + NO_FAMILY.replace("$CALLS$", STRANGE), None, 0.0
    ),
    "no messages": Seen("A page about {{ 'templates' }}.", None, 0.0),
    "deepseek-v3 as it is": Seen(own("deepseek-v3"), "deepseek-v3", 1.0),
    "reasoning that the template cuts out of past answers": Seen(
        replaced(own("deepseek-v3"), KEPT, CUT),
        "deepseek-r1",
        1.0,
        {1: "an answer after reasoning that the template cuts out"},
        ("the template cuts reasoning between <think> and </think> out of past answers",),
    ),
    **{
        f"answers whose thought is cut out up to {end}": Seen(
            plain(cut=f".split('{end}')[-1]"),
            CONTENT_ONLY,
            score,
            says=(f"the template cuts reasoning between {begin} and {end} out of past answers",),
        )
        for begin, end, score in (
            ("<think>", "</think>", 1.0),
            ("[THINK]", "[/THINK]", 1.0),
            ("<|START_THINKING|>", "<|END_THINKING|>", 1.0),
        )
    },
    "hermes-2-pro as it is": Seen(own("hermes-2-pro"), "hermes-2-pro", 1.0),
    # Every format reads a thought at the start of a turn, but only one that declares it has it in its grammar.
    "reasoning that the template shows": Seen(
        replaced(
            own("hermes-2-pro"), ANSWER, ANSWER.replace("message.content", f"({THOUGHT}) + message.content")
        ),
        "qwen3",
        1.0,
        {1: "a call after reasoning"},
    ),
    **{
        f"a template that drops calls, {name}{how}": Seen(
            DROPS.replace("$MARK$", mark).replace("$CONTENT$", content),
            name,
            0.5,
            {1: "parsed back exactly: an answer"},
            (
                "the template drops calls, so only markers tell the format",
                f"a call as text, as {name} writes it, is {read}read back from the template's rendering",
            ),
        )
        for name, how, mark, content, read in (
            ("lfm2", "", "List of tools: ", CONTENT, ""),
            (
                "lfm2",
                ", and alters text",
                "List of tools: ",
                replaced(CONTENT, "m.content }}", "m.content | replace('<|', '') }}"),
                "not ",
            ),
            ("qwen3", "", "# Tools\n<tool_call>", CONTENT, ""),
        )
    },
    "a format without calls is not asked for them": Seen(own("kimi-k1-5"), "kimi-k1-5", 1.0, unsaid="drops"),
    # A model that follows the prompt writes the bare object, which the format of the past calls does not read.
    **{
        f"an object that the prompt tells {how} its marker": Seen(
            TELLS.replace("$CALL$", MARKED).replace("$TOLD$", f"{OBJECT} {marker}"),
            "auto:json-native",
            score,
            limits=limits,
        )
        for how, marker, score, limits in (("without", "", 0.9, ("told form",)), ("with", "<use>", 1.0, ()))
    },
}


@pytest.mark.parametrize("case", SEEN)
def test_what_is_found_and_what_the_evidence_says(case: str) -> None:
    seen = SEEN[case]
    found = detect(seen.source)
    assert (found.name, found.score) == (seen.name, seen.score), found
    assert bool(found) is (seen.name is not None)
    assert seen.name is None or (found.format is not None) is seen.name.startswith("auto:")
    for place, text in seen.lines.items():
        assert text in found.evidence[place], found
    assert {*seen.says} <= {*found.evidence}, found
    assert seen.unsaid is None or seen.unsaid not in " ".join(found.evidence)
    assert tuple(limit.part for limit in found.limits) == seen.limits


class Read(NamedTuple):
    """A template, how it is loaded and asked, the prefix, and what is read of a text: thought, content, calls."""

    source: str
    prefix: str
    text: str
    read: tuple[str, str, list[str]]
    load: Mapping[str, Any] = MappingProxyType({})
    request: Mapping[str, Any] = MappingProxyType({})


CALL_F = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'
READ: dict[str, Read] = {
    "calls of one family under the headers of another": Read(
        LLAMA_HEADERS.replace("$CALLS$", TAGGED),
        "",
        f"Hm.\n{CALL_F}<|eot_id|>",
        ("", "Hm.", ["f"]),
        {},
        {"tools": TOOLS},
    ),
    # A thought that no message of the template shows.
    **{
        f"a thought in {begin}{', opened by the prompt' * opened}{', tools in a polyfill' * bool(tools)}": Read(
            plain(prompt=f"{begin}{{{{ '\\n' }}}}" * opened),
            f"{begin}\n" * opened,
            f"{'' if opened else begin}\nHm\n{end}\n\nHi{CALL_F if tools else ''}<|end|>".lstrip(),
            ("Hm", "Hi", ["f"] if tools else []),
            {},
            {"tools": tools},
        )
        for begin, end, opened in (
            ("<think>", "</think>", False),
            ("<think>", "</think>", True),
            ("<thought>", "</thought>", True),
            ("[THINK]", "[/THINK]", False),
        )
        for tools in (None, TOOLS)
    },
    **{
        f"a prompt that opens a thought, for {name}": Read(
            plain(prompt="<think>{{ '\\n' }}"),
            "<think>\n",
            "Hm\n</think>\n\nHi<|end|>",
            ("Hm", "Hi", []),
            {"format": name},
            {"polyfills": False},
        )
        for name in (CONTENT_ONLY, "hermes-2-pro")  # formats without reasoning
    },
}


@pytest.mark.parametrize("case", READ)
def test_what_is_read_of_the_answer(case: str) -> None:
    source, prefix, text, read, options, request = READ[case]
    turn = chatparsers.load(source, **options).prepare(ASK, **request)
    assert turn.prefix == prefix
    message = turn.parse(text)
    assert (message.reasoning, message.content, [call.name for call in message.tool_calls]) == read
    assert pickle.loads(pickle.dumps(turn)).parse(text) == message


BY_NAME: dict[str, tuple[str, str, str | None, float, tuple[str, ...], bool]] = {
    # The template shows no calls, so the model's name tells the format; but what the prompt tells counts too.
    **{
        f"{name}, told {how}": (
            TELLS.replace("$CALL$", "").replace("$TOLD$", told),
            name,
            name,
            0.5 if reads else 0.4,
            () if reads else ("told form",),
            False,
        )
        for how, told, name, reads in (
            ("an object", OBJECT, "pythonic", True),
            ("another object", OTHER, "pythonic", False),
            ("a list", LIST, "pythonic", True),
            ("an object", OBJECT, "llama-3-x", True),
            ("another object", OTHER, "llama-3-x", False),
            ("a list", LIST, "qwen3", False),
        )
    },
    # A name alone never decides against calls that the template shows.
    "calls that the named format reads": (
        LLAMA_HEADERS.replace("$CALLS$", TAGGED),
        "qwen3",
        "qwen3",
        0.5,
        (),
        False,
    ),
    "calls that the named format does not read": (
        LLAMA_HEADERS.replace("$CALLS$", LISTED),
        "qwen3",
        None,
        0.0,
        (),
        True,
    ),
}
"""A template, the format of the model's name, what is found, its score and limits, and whether calls are not read."""


@pytest.mark.parametrize("case", BY_NAME)
def test_a_models_name_tells_what_its_template_does_not_show(case: str) -> None:
    source, name, format, score, limits, told = BY_NAME[case]
    found = by_name(Template(source), Detection(None, 0.0, ()), name, "some model")
    assert (found.name, found.score) == (format, score)
    assert tuple(limit.part for limit in found.limits) == limits
    assert any("does not read a call" in line for line in found.evidence) is told


@pytest.mark.parametrize(
    ("name", "alike"),
    [
        ("laguna", {"glm-4-7", "spark-2-5"}),
        ("bielik-3", {"qwen3", "reka-edge", "smollm3"}),
        ("nanbeige", {"qwen3-coder"}),
        ("ling-3", set()),  # of one family alone: nothing is said of others
    ],
)
def test_a_template_of_two_families_names_its_own_and_says_the_other(name: str, alike: set[str]) -> None:
    found = detect((OWN / f"{name}.jinja").read_text(encoding="utf-8"))
    begin = "written alike, up to the end of the turn: "
    lines = [line.removeprefix(begin) for line in found.evidence if line.startswith(begin)]
    assert found.name == name and len(lines) == bool(alike)
    assert alike <= {other for line in lines for other in line.split(", ")} and name not in " ".join(lines)


ELEMENTS = (
    '<use name="{{ c.function.name }}">{% for key, value in c.function.arguments.items() %}'
    "<{{ key }}>{{ value if value is string else value | tojson }}</{{ key }}>{% endfor %}</use>"
)


def test_a_template_that_names_each_key_twice_keeps_its_calls() -> None:
    template = Template(NAMED_TWICE.replace("$CALL$", ELEMENTS))
    can = template.probe()
    assert can.tool_calls and can.parallel_calls and can.arguments_as == "dict"
    call = {"function": {"name": "f", "arguments": '{"city": "Oslo", "days": 2}'}}
    _, wire = template.assistant_turn({"role": "assistant", "content": "", "tool_calls": [call]})
    assert wire == '<use name="f"><city>Oslo</city><days>2</days></use><|over|>'
    found = detect(
        template.source
    )  # texts with tags in them could not be told from it, and the evidence says so
    assert (found.name, found.score) == ("auto:tagged-args", 0.9)
    assert [limit.part for limit in found.limits] == ["special characters"]
    assert any(
        line.startswith("not proved: special characters: ") and "<use name=" in line
        for line in found.evidence
    )


CHATML = (
    "{% if tools %}<|im_start|>system\nList of tools: {{ tools | tojson }}<|im_end|>\n{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}{% for c in m.tool_calls or [] %}"
    "$CALL${% if not loop.last %}{{ '\n' }}{% endif %}{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
NESTED = "<tool_call>\n{{ c | tojson }}\n</tool_call>"
FLAT = '<tool_call>\n{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}\n</tool_call>'
ON_ONE_LINE = (
    "<tool_call>\n<function={{ c.function.name }}>\n{% for k, v in c.function.arguments.items() %}"
    "<parameter={{ k }}>{{ v }}</parameter>\n{% endfor %}</function>\n</tool_call>"
)
QUOTED = (
    "<|tool_call_start|>[{{ c.function.name }}({% for k, v in c.function.arguments.items() %}{{ k }}="
    """{{ "'" + v + "'" if v is string else v | tojson }}{{ ', ' if not loop.last }}{% endfor %})]<|tool_call_end|>"""
)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (FLAT, "hermes-2-pro"),
        (QUOTED, "lfm2"),
        (NESTED, "auto:json-native"),
        (ON_ONE_LINE, "auto:tagged-args"),
    ],
)
def test_a_family_that_reads_the_calls_but_does_not_write_them(call: str, name: str) -> None:
    """Its grammar would write them in another way, and it would take the line breaks around a text for markup."""
    chat = chatparsers.load(CHATML.replace("$CALL$", call))
    analysed = name.startswith("auto:")
    assert (chat.detection.name, chat.detection.score) == (name, 0.9 if analysed else 1.0)
    assert [limit.part for limit in chat.detection.limits] == ["family"] * analysed
    asked = {"function": {"name": "f", "arguments": '{"a": "\\nno more\\n"}'}, "id": "a12345678"}
    said = {"role": "assistant", "content": "", "tool_calls": [asked]}
    tools = [{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}]
    wire = chat.template().assistant_turn(said, history=ASK, tools=tools)[1]
    with pytest.warns(UserWarning, match="spellings that .* are lost") if analysed else nullcontext():
        found = chat.prepare(ASK, tools=tools).parse(wire)
    assert [call.parsed_arguments for call in found.tool_calls] == [{"a": "\nno more\n"}], wire


LLAMA_4 = (
    "{% if tools %}<|header_start|>user<|header_end|>\n\n{{ TOLD }}{% for t in tools %}{{ t | tojson }}{% endfor %}"
    "<|eot|>{% endif %}"
    "{% for m in messages %}<|header_start|>{{ m.role }}<|header_end|>\n\n{% if m.tool_calls %}<|python_start|>"
    "{{ m.content }}<|python_end|>{% for c in m.tool_calls %}{{ CALL }}{% endfor %}{% else %}{{ m.content }}{% endif %}"
    "<|eot|>{% endfor %}{% if add_generation_prompt %}<|header_start|>assistant<|header_end|>\n\n{% endif %}"
)
WRITTEN = """'{"name": "' + c.function.name + '", "parameters": ' + c.function.arguments | tojson + '}'"""
TOLD = """'Respond in the format {"name": function name, "parameters": dictionary of arguments}.'"""


def test_both_forms_of_llama_4_are_read(tmp_path: Path) -> None:
    """Its template tells and writes objects, its model card lists in Python. What is written otherwise is warned of."""
    path = tmp_path / "Llama-4-Scout.jinja"
    path.write_text(LLAMA_4.replace("TOLD", TOLD).replace("CALL", WRITTEN), encoding="utf-8")
    chat = chatparsers.load(path)
    assert (chat.detection.name, chat.detection.score) == ("pythonic", 0.4)
    assert [limit.part for limit in chat.detection.limits] == ["grammar"]
    with pytest.warns(UserWarning, match='pythonic does not write \'<.python_start.><.python_end.>{"name"'):
        turn = chat.prepare(ASK, tools=TOOLS)
    form = '{"name": "f", "parameters": {"a": 1}}'
    for text in (
        form,
        f"<|python_start|><|python_end|>{form}",
        "[f(a=1)]",
        "<|python_start|>[f(a=1)]<|python_end|>",
    ):
        message = turn.parse(text + "<|eot|>")
        assert [(call.name, call.arguments) for call in message.tool_calls] == [("f", '{"a": 1}')], text
        assert not message.content and message.complete


_TOLD = """{% if tools %}<|system|>Write calls as functools[{"name": [function name], "arguments": [JSON]}, …]
{{ tools | tojson }}<|end|>{% endif %}{% for m in messages %}<|{{ m.role }}|>{{ m.content }}
{%- for call in m.tool_calls or [] %}CALL{% if not loop.last %},{% endif %}{% endfor %}<|end|>{% endfor %}
{%- if add_generation_prompt %}<|assistant|>{% endif %}"""
_JSON = '{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}'


@pytest.mark.parametrize(
    ("written", "reads"),
    [(_JSON, True), (_JSON.replace('"name"', '"call"'), False)],
    ids=["past calls are read", "past calls are not read"],
)
def test_the_prompt_is_believed_over_the_past_calls(written: str, reads: bool) -> None:
    chat = chatparsers.load(_TOLD.replace("CALL", written))
    assert chat.detection.name == "phi-4-mini"
    assert [limit.part for limit in chat.detection.limits] == ([] if reads else ["past calls"])
    told = 'functools[{"name": "f", "arguments": {"a": 1}}]'
    for text in (told, told[len("functools[") : -1])[: 1 + reads]:
        (call,) = chat.format.bind(tools=[{"name": "f"}]).parse(text).tool_calls
        assert (call.name, call.arguments) == ("f", '{"a": 1}')


@pytest.mark.parametrize("suffix", [":6124c78e", ""])
@pytest.mark.parametrize("name", ["hunyuan-v3", "hunyuan-v4"])
def test_the_suffix_of_a_checkpoint_is_read_from_its_template(name: str, suffix: str) -> None:
    """Hunyuan's tags end with a suffix of the checkpoint. The formats know one by name, the template tells any."""
    chat = chatparsers.load(own(name).replace(":opensource", suffix))
    call = {"function": {"name": "f", "arguments": '{"city": "Oslo"}'}}
    message = {"reasoning_content": "Hm.", "content": "Look.", "tool_calls": [call]}
    text = chatparsers.get_format(name).render(message, TOOLS).replace(":opensource", suffix)
    for thinking, begin in ((True, "Hm."), (False, "Look.")):
        turn = chat.prepare(ASK, tools=TOOLS, thinking=thinking)
        read = turn.parse(text[text.index(begin) :])
        assert (read.reasoning, read.content) == ("Hm." if thinking else "", "Look."), read
        assert [one.parsed_arguments for one in read.tool_calls] == [
            {"city": "Oslo"}
        ] and not read.diagnostics
