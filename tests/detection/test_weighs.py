"""Detection weighs: what a template loses by itself costs score, and an analysis in place of a family is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from chatparsers import detect, get_format, load
from chatparsers.detection.contest import reads
from chatparsers.detection.shown import probes_of
from chatparsers.templates import Template
from chatparsers.templates.probe.turns import MARKER

OWN = sorted((Path(__file__).parents[1] / "templates_own").glob("*.jinja"))
GUARD = (
    "{%- set kept = namespace(all=[]) %}{%- for m in messages %}"
    "{%- if m.role == 'assistant' and m.content is string and '</think>' in m.content %}"
    "{%- set kept.all = kept.all + [dict(m, content=m.content.split('</think>')[-1].lstrip('\\n'))] %}"
    "{%- else %}{%- set kept.all = kept.all + [m] %}{%- endif %}{%- endfor %}{%- set messages = kept.all %}"
)
"""It cuts thoughts out of old answers; templates copy it from others."""
BARE = "'<|start|>assistant<|message|>'"
CHATML = (
    "{% if tools %}<|im_start|>system\n{{ tools | tojson }} $TOLD$<|im_end|>\n{% endif %}{% for m in messages %}"
    "<|im_start|>{{ m.role }}\n{{ m.content }}{% if m.tool_calls %}[{% for c in m.tool_calls %}"
    "{{ c.function.name }}({% for k, v in c.function.arguments.items() %}{{ k }}={{ v | tojson }}"
    "{{ ', ' if not loop.last }}{% endfor %}){{ ', ' if not loop.last }}{% endfor %}]{% endif %}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@pytest.mark.one_in(12)
@pytest.mark.parametrize("path", OWN, ids=lambda path: path.stem)
def test_a_copied_guard_decides_against_no_format(path: Path) -> None:
    """The format stays, or is another known one that reads every turn too."""
    source = path.read_text(encoding="utf-8")
    plain, guarded = detect(source), detect(GUARD + source)
    if plain.name is None or plain.format is not None:
        pytest.skip("no known format reads the template alone")
    assert guarded.format is None and guarded.name is not None, guarded.evidence
    probes = [probe for probe in probes_of(Template(GUARD + source)) if reads(get_format(plain.name), probe)]
    assert all(reads(get_format(guarded.name), probe) for probe in probes)
    assert (guarded.score < plain.score) == bool({limit.part for limit in guarded.limits} & {"reasoning"})


def test_one_turn_that_is_lost_costs_score(own_gpt_oss: str) -> None:
    """A template may write answers, or thoughts too, without the channel that its model writes."""
    answers = own_gpt_oss.replace("role + 'final<|message|>'", BARE)
    both = answers.replace("role + 'analysis<|message|>'", BARE)
    found, less = detect(answers), detect(both)
    assert found.name == less.name == "gpt-oss" and 0 < less.score < found.score < 1
    assert {limit.part for limit in found.limits} == {"turn"}


@pytest.fixture
def own_gpt_oss() -> str:
    return next(path for path in OWN if path.stem == "gpt-oss").read_text(encoding="utf-8")


def test_a_call_right_after_text_is_read() -> None:
    """``pythonic`` reads a call at the beginning alone."""
    found = detect(CHATML.replace("$TOLD$", "[func_name1(params_name1=params_value1)]"))
    assert found.name == "auto:python-call", found


def test_a_marker_ends_with_its_own_brackets() -> None:
    assert MARKER.findall("<|assistant|>>>>f <<think>> <a>") == ["<|assistant|>", "<<think>>", "<a>"]
    calls = (
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% for c in m.tool_calls or [] %}>>>"
        "{{ c.function.name }}\n{{ c.function.arguments | tojson }}{% endfor %}<|e|>{% endfor %}"
        "{{ tools | tojson if tools }}{% if add_generation_prompt %}<|assistant|>{% endif %}"
    )
    assert detect(calls).name == "auto:tagged-json"


ENDLESS = {
    "<call {{ c.function.name }}>$ARGS$": "<call f><arg=x>1</arg>",
    "<function={{ c.function.name }}>\n$ARGS$": "<function=f>\n<arg=x>1</arg>",
    "<call>{{ c.function.name }}$ARGS$": "<call>f<arg=x>1</arg>",
}
"""How calls are written that nothing ends, and one of them."""


@pytest.mark.parametrize("call", ENDLESS)
def test_a_call_that_nothing_ends_is_whole_by_what_follows(call: str) -> None:
    """The definition says what to look for then, and the analysis does."""
    arguments = (
        "{% for k, v in c.function.arguments.items() %}<arg={{ k }}>"
        "{{ v if v is string else v | tojson }}</arg>{% endfor %}"
    )
    source = (
        "{{ tools | tojson if tools }}{% for m in messages %}<|{{ m.role }}|>{{ m.content or '' }}"
        "{% for c in m.tool_calls or [] %}$CALL${% endfor %}<|e|>{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|>{% endif %}"
    ).replace("$CALL$", call.replace("$ARGS$", arguments))
    found = detect(source)
    assert found.name == "auto:tagged-args" and found.format is not None and not found.limits, found
    tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
    for text, whole in ((ENDLESS[call] + "<|e|>", 1), (ENDLESS[call] * 2, 2), (ENDLESS[call], 0)):
        stream = found.format.bind(tools=tools).stream()
        stream.feed(text)
        stream.finish("stop" if whole else "length")
        calls = stream.message.tool_calls
        assert [each.complete for each in calls] == [True] * whole or [False], (text, calls)


OWN_WORDS = {
    "gpt-oss": (
        "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}",
        " to=functions.f<|channel|>analysis <|constrain|>json<|message|>{}",
        "<|channel|>analysis to=functions.f<|message|>{}",
        "<|channel|>commentary to=assistant<|channel|>commentary<|message|>Hi.<|end|><|start|>assistant"
        "<|channel|>commentary to=functions.f<|message|>{}",
    ),
    "qwen3-coder": (
        "<function=f>\n</function>\n</tool_call>",
        "I look.\n<function=f>\n</function>\n</tool_call>\n<tool_call>\n<function=f>\n</function>\n</tool_call>",
    ),
}
"""Calls as models write them, and no template does."""
TOLD = {
    "gpt-oss": ("<|channel|>final<|message|>Write to=functions.f<|message|>{} there.",),
    "qwen3-coder": (
        "Write <function=f>\n</function>\n</tool_call> there.",
        "```\n<function=f>\n</function>\n```\nSo.",
    ),
}


@pytest.mark.parametrize("name", OWN_WORDS)
def test_an_analysis_reads_what_models_write_otherwise(name: str) -> None:
    """The parts of a header in another order, a header that ends in another one, a call without its outer tag; where a
    text tells of them, nothing is called."""
    source = next(path for path in OWN if path.stem == name).read_text(encoding="utf-8")
    chat = load(source, format="auto")
    tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
    turn = chat.prepare([{"role": "user", "content": "Hi"}], tools=tools)
    for text in OWN_WORDS[name]:
        message = turn.parse(text)
        assert [call.name for call in message.tool_calls] == ["f"] * max(1, text.count("<function=f")), text
        assert all(call.complete and call.arguments == "{}" for call in message.tool_calls), text
        assert message.content in ("", "Hi.", "I look.") and message.reasoning == "", text
    for text in TOLD[name]:
        message = turn.parse(text)
        assert not message.tool_calls and message.content.strip() in text, text
