"""What a model writes decides, not the roles around it and not what the template keeps of past answers."""

from __future__ import annotations

import pickle
from pathlib import Path

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


def test_calls_of_one_family_under_the_headers_of_another() -> None:
    source = LLAMA_HEADERS.replace("$CALLS$", TAGGED)
    found = detect(source)
    assert (found.name, found.score) == ("qwen3", 1.0), found
    assert found.evidence[0] == "markers in the rendering: '<tool_call>'"
    assert "two calls" in found.evidence[1]
    said = chatparsers.load(source).prepare(ASK, tools=TOOLS)
    call = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'
    message = said.parse(f"Hm.\n{call}<|eot_id|>")
    assert (message.content, [c.name for c in message.tool_calls]) == ("Hm.", ["f"])


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(
            LLAMA_HEADERS.replace("$CALLS$", LISTED), id="a bare list, which some formats read leniently"
        ),
        pytest.param(
            LLAMA_HEADERS.replace("$CALLS$", TAGGED.replace('", "', '","')), id="no white space in the JSON"
        ),
        pytest.param(
            LLAMA_HEADERS.replace("$CALLS$", TAGGED.replace("{{ '\\n</tool_call>' }}", "</tool_call>")),
            id="no line break",
        ),
        pytest.param(
            NAMED_TWICE.replace("$CALL$", "{{ m.tool_calls | tojson if loop.first }}"), id="plain text"
        ),
    ],
)
def test_a_format_that_would_write_the_call_otherwise_is_not_taken(source: str) -> None:
    """It would read the call, but its grammar would keep the model from writing it."""
    found = detect(source)
    assert (found.name, found.score) == ("auto:json-native", 1.0), found
    assert found.format is not None


def test_reasoning_that_the_template_cuts_out_of_past_answers() -> None:
    source = (OWN / "deepseek-v3.jinja").read_text(encoding="utf-8")
    assert detect(source).name == "deepseek-v3"
    found = detect(source.replace(KEPT, CUT))
    assert (found.name, found.score) == ("deepseek-r1", 1.0)
    assert "the template cuts reasoning between <think> and </think> out of past answers" in found.evidence
    assert "an answer after reasoning that the template cuts out" in found.evidence[1]


def test_reasoning_that_the_template_shows_is_declared_by_the_format() -> None:
    """Every format reads a thought at the start of a turn, but only one that declares it has it in its grammar."""
    source = (OWN / "hermes-2-pro.jinja").read_text(encoding="utf-8")
    assert detect(source).name == "hermes-2-pro"
    answer = "{{- start + message.role + '\\n' + message.content }}"
    thought = (
        "'<think>\\n' + message.reasoning_content + '\\n</think>\\n\\n' if message.reasoning_content else ''"
    )
    assert answer in source
    thinking = source.replace(
        answer, f"{{{{- start + message.role + '\\n' + ({thought}) + message.content }}}}"
    )
    found = detect(thinking)
    assert (found.name, found.score) == ("qwen3", 1.0), found
    assert "a call after reasoning" in found.evidence[1]


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


@pytest.mark.parametrize("end", ["</think>", "[/THINK]", "<|END_THINKING|>"])
def test_which_markers_are_cut_out(end: str) -> None:
    found = detect(plain(cut=f".split('{end}')[-1]"))
    assert found.name == CONTENT_ONLY
    assert f" and {end} out of past answers" in " ".join(found.evidence)


@pytest.mark.parametrize("tools", [None, TOOLS], ids=["no tools", "tools in a polyfill"])
@pytest.mark.parametrize(
    ("begin", "end", "opened"),
    [
        ("<think>", "</think>", False),
        ("<think>", "</think>", True),
        ("<thought>", "</thought>", True),
        ("[THINK]", "[/THINK]", False),
    ],
)
def test_a_thought_that_no_message_of_the_template_shows(
    begin: str, end: str, opened: bool, tools: list[dict[str, object]] | None
) -> None:
    prompt = f"{begin}{{{{ '\\n' }}}}" if opened else ""
    turn = chatparsers.load(plain(prompt=prompt)).prepare(ASK, tools=tools)
    assert turn.prefix == (f"{begin}\n" if opened else "")
    call = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>' if tools else ""
    text = f"Hm\n{end}\n\nHi{call}<|end|>"
    message = turn.parse(text if opened else f"{begin}\n{text}")
    assert (message.reasoning, message.content) == ("Hm", "Hi")
    assert [found.name for found in message.tool_calls] == ["f"] * bool(tools)
    assert pickle.loads(pickle.dumps(turn)).parse(text) == turn.parse(text)


SEVERAL = (
    "{% for m in messages %}<|open|>{{ m.role }}<|sep|>{% if m.role == 'assistant' %}$HM$<|open|>say<|sep|>{% endif %}"
    "{{ m.content }}{% if m.role == 'assistant' %}<|close|>say<|sep|>{% endif %}<|close|>{{ m.role }}<|end|>"
    "{% endfor %}{% if add_generation_prompt %}<|open|>assistant<|sep|>{% endif %}"
)


@pytest.mark.parametrize(
    ("before", "stops"),
    [
        ("", ("<|close|>",)),
        ("<|open|>hm<|sep|><|close|>hm<|sep|>", ("<|close|>say<|sep|><|close|>assistant<|end|>", "<|end|>")),
    ],
)
def test_what_closes_a_part_of_the_turn_does_not_end_it(before: str, stops: tuple[str, ...]) -> None:
    """Else all that follows the first part would be lost, the answer too."""
    chat = chatparsers.load(SEVERAL.replace("$HM$", before), format=CONTENT_ONLY)
    assert chat.format.stops == stops


@pytest.mark.parametrize("name", [CONTENT_ONLY, "hermes-2-pro"])
def test_a_prompt_that_opens_a_thought_for_a_format_without_reasoning(name: str) -> None:
    turn = chatparsers.load(plain(prompt="<think>{{ '\\n' }}"), format=name).prepare(ASK, polyfills=False)
    assert turn.prefix == "<think>\n"
    message = turn.parse("Hm\n</think>\n\nHi<|end|>")
    assert (message.reasoning, message.content) == ("Hm", "Hi")


# ChatML whose tools are shown between marks, but whose past turns are their content alone; past thoughts are cut out.
DROPS = (
    "{% if tools %}<|im_start|>system{{ '\\n' }}$MARK${{ tools | tojson }}<|im_end|>{{ '\\n' }}{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}{{ '\\n' }}$CONTENT$<|im_end|>{{ '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant{{ '\\n' }}{% endif %}"
)
CONTENT = "{{ m.content.split('</think>')[-1] | trim if not loop.last else m.content }}"


@pytest.mark.parametrize(
    ("mark", "content", "name", "read"),
    [
        ("List of tools: ", CONTENT, "lfm2", ""),
        (
            "List of tools: ",
            CONTENT.replace("m.content }}", "m.content | replace('<|', '') }}"),
            "lfm2",
            "not ",
        ),
        ("# Tools\n<tool_call>", CONTENT, "qwen3", ""),
    ],
)
def test_a_template_that_drops_calls_says_what_it_shows(
    mark: str, content: str, name: str, read: str
) -> None:
    found = detect(DROPS.replace("$MARK$", mark).replace("$CONTENT$", content))
    assert (found.name, found.score) == (name, 0.5)
    assert found.evidence[1].startswith("parsed back exactly: an answer")
    assert "the template drops calls, so only markers tell the format" in found.evidence
    line = f"a call as text, as {name} writes it, is {read}read back from the template's rendering"
    assert line in found.evidence


def test_a_format_without_calls_is_not_asked_for_them() -> None:
    found = detect((OWN / "kimi-k1-5.jinja").read_text(encoding="utf-8"))
    assert (found.name, found.score) == ("kimi-k1-5", 1.0)
    assert "drops" not in " ".join(found.evidence)


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
    assert (chat.detection.name, chat.detection.score, chat.detection.limits) == (name, 1.0, ())
    asked = {"function": {"name": "f", "arguments": '{"a": "\\nno more\\n"}'}, "id": "a12345678"}
    said = {"role": "assistant", "content": "", "tool_calls": [asked]}
    tools = [{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}]
    wire = chat.template().assistant_turn(said, history=ASK, tools=tools)[1]
    found = chat.prepare(ASK, tools=tools).parse(wire)
    assert [call.parsed_arguments for call in found.tool_calls] == [{"a": "\nno more\n"}], wire


TELLS = NAMED_TWICE.replace("</tool>{% endfor %}", "</tool>{% endfor %}{% if tools %}$TOLD${% endif %}")
OBJECT = 'Answer with {"name": the name, "arguments": a dictionary}.'
OTHER = 'Answer with {"tool": the name, "tool_input": a dictionary}.'
LIST = "Answer with [func1(param=value, …)]."


@pytest.mark.parametrize(
    ("told", "name", "reads"),
    [
        (OBJECT, "pythonic", True),
        (OTHER, "pythonic", False),
        (LIST, "pythonic", True),
        (OBJECT, "llama-3-x", True),
        (OTHER, "llama-3-x", False),
        (LIST, "qwen3", False),
    ],
)
def test_a_form_that_the_prompt_tells_and_the_format_does_not_read(told: str, name: str, reads: bool) -> None:
    """The template shows no calls, so the model's name tells the format; but the prompt counts too."""
    template = Template(TELLS.replace("$CALL$", "").replace("$TOLD$", told))
    found = by_name(template, Detection(None, 0.0, ()), name, "some model")
    assert (found.name, found.score) == (name, 0.5 if reads else 0.4)
    assert [limit.part for limit in found.limits] == [] if reads else ["told form"]


MARKED = '<use>{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}</use>'


@pytest.mark.parametrize(("marker", "limits"), [("", ["told form"]), ("<use>", [])])
def test_an_object_that_the_prompt_tells_without_its_marker(marker: str, limits: list[str]) -> None:
    """A model that follows the prompt writes the bare object, which the format of the past calls does not read."""
    found = detect(TELLS.replace("$CALL$", MARKED).replace("$TOLD$", f"{OBJECT} {marker}"))
    assert (found.name, [limit.part for limit in found.limits]) == ("auto:json-native", limits)


@pytest.mark.parametrize(("calls", "name"), [(TAGGED, "qwen3"), (LISTED, None)])
def test_a_name_alone_never_decides_against_calls_that_the_template_shows(
    calls: str, name: str | None
) -> None:
    template = Template(LLAMA_HEADERS.replace("$CALLS$", calls))
    found = by_name(template, Detection(None, 0.0, ()), "qwen3", "Qwen3 8B")
    assert found.name == name
    assert any("does not read a call" in line for line in found.evidence) is (name is None)


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
