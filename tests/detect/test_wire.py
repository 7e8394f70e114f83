"""What a model writes decides, not the roles around it and not what the template keeps of past answers."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import chatparsers
from chatparsers import detect
from chatparsers._detect import CONTENT_ONLY

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
    "calls",
    [
        pytest.param(LISTED, id="a bare list, which some formats read leniently"),
        pytest.param(TAGGED.replace('", "', '","'), id="no white space in the JSON"),
        pytest.param(TAGGED.replace("{{ '\\n</tool_call>' }}", "</tool_call>"), id="no line break"),
    ],
)
def test_a_format_that_would_write_the_call_otherwise_is_not_taken(calls: str) -> None:
    """It would read the call, but its grammar would keep the model from writing it."""
    found = detect(LLAMA_HEADERS.replace("$CALLS$", calls))
    assert found.name == "auto:json-native", found
    assert found.format is not None


def test_reasoning_that_the_template_cuts_out_of_past_answers() -> None:
    source = (OWN / "deepseek-v3.jinja").read_text(encoding="utf-8")
    assert detect(source).name == "deepseek-v3"
    found = detect(source.replace(KEPT, CUT))
    assert (found.name, found.score) == ("deepseek-r1", 1.0)
    assert "the template cuts reasoning between <think> and </think> out of past answers" in found.evidence
    assert "an answer behind reasoning that the template cuts out" in found.evidence[1]


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
    assert "a call behind reasoning" in found.evidence[1]


@pytest.mark.parametrize(
    ("name", "alike"),
    [
        ("laguna", {"glm-4-7", "spark-2-5"}),
        ("granite-4", {"hermes-2-pro"}),
        ("bielik-3", {"qwen3", "reka-edge", "smollm3"}),
        ("nanbeige", {"qwen3-coder"}),
    ],
)
def test_a_template_of_two_families_names_its_own_and_says_the_other(name: str, alike: set[str]) -> None:
    found = detect((OWN / f"{name}.jinja").read_text(encoding="utf-8"))
    (line,) = (
        line for line in found.evidence if line.startswith("written alike, up to the end of the turn: ")
    )
    assert found.name == name
    assert alike <= set(line.partition(": ")[2].split(", ")) and name not in line


def test_a_wire_of_one_family_alone_says_nothing_of_others() -> None:
    found = detect((OWN / "ling-3.jinja").read_text(encoding="utf-8"))
    assert found.name == "ling-3" and not any("alike" in line for line in found.evidence)


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
