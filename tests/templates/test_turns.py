"""Cutting assistant turns out of renderings, and what templates can show."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from making import tool

from chatparsers import get_format
from chatparsers.errors import TemplateError
from chatparsers.templates import Template
from chatparsers.templates.probe.roles import role_headers
from chatparsers.templates.probe.turns import outside_marker

USER = [{"role": "user", "content": "Hi"}]
TOOLS = [
    tool(name, {"city": {"type": "string", "description": "c"}}, description="d")
    for name in ("get_weather", "ping")
]


@cache
def load(path: Path) -> Template:
    return Template(path.read_text(encoding="utf-8"), bos_token="<BOS>", eos_token="<EOS>", name=path.stem)


def answer(content: str = "", reasoning: str = "", **calls: Any) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if reasoning:
        message["reasoning"] = reasoning
    if calls:
        message["tool_calls"] = [
            {"function": {"name": n, "arguments": json.dumps(a)}} for n, a in calls.items()
        ]
    return message


NESTED = {"city": "NeedleCity", "deep": {"list": [{"k": "NeedleDeep"}]}}
# Scenario: the answer, its needles in order, what the template must be able to show.
SCENARIOS: dict[str, tuple[dict[str, Any], tuple[str, ...], tuple[str, ...]]] = {
    "content": (answer("NeedleContent"), ("NeedleContent",), ()),
    "reasoning": (answer("NeedleContent", "NeedleReason"), ("NeedleReason", "NeedleContent"), ("reasoning",)),
    "call": (answer(get_weather=NESTED), ("get_weather", "NeedleCity", "NeedleDeep"), ("tool_calls",)),
    "no arguments": (answer(ping={}), ("ping",), ("tool_calls",)),
    "content, call": (
        answer("NeedleContent", get_weather=NESTED),
        ("NeedleContent", "get_weather", "NeedleCity"),
        ("tool_calls", "content_beside_calls"),
    ),
    "reasoning, call": (
        answer("", "NeedleReason", get_weather=NESTED),
        ("NeedleReason", "get_weather", "NeedleCity"),
        ("tool_calls", "reasoning_with_calls"),
    ),
    "two calls": (
        answer(get_weather=NESTED, ping={}),
        ("get_weather", "NeedleCity", "ping"),
        ("tool_calls", "parallel_calls"),
    ),
}
HISTORIES: dict[str, list[dict[str, Any]]] = {
    "user": USER,
    "tool loop": [
        *USER,
        answer("", "OldReason", get_weather={"city": "OldCity"}),
        {"role": "tool", "name": "get_weather", "content": "OldResult"},
    ],
}


def shown(wire: str, needles: tuple[str, ...]) -> bool:
    """Whether the needles stand in the wire text, in their order."""
    at = 0
    for needle in needles:
        at = wire.find(needle, at) + len(needle)
        if at < len(needle):
            return False
    return True


def test_the_wire_text_has_what_the_template_can_show(any_template: Path) -> None:
    template = load(any_template)
    for scenario in SCENARIOS:
        for thinking in (None, True, False):
            _the_wire_text_has(template, scenario, thinking)


def _the_wire_text_has(template: Template, scenario: str, thinking: bool | None) -> None:
    message, needles, needed = SCENARIOS[scenario]
    can = template.probe()
    if not all(getattr(can, name) for name in needed):
        try:
            _, wire = template.assistant_turn(message, tools=TOOLS, thinking=thinking)
        except TemplateError:
            return
        # Content beside calls may come out after all, but as reasoning or as a turn of its own.
        assert not shown(wire, needles) or not can.content_beside_calls
        return
    # After a tool's result some templates show no reasoning.
    loop = can.tool_role and can.tool_calls and "reasoning" not in message
    switch = {**template.thinking_kwargs(thinking), "strftime_now": lambda pattern: "today"}
    for history in [HISTORIES["user"]] + ([HISTORIES["tool loop"]] if loop else []):
        prompt, wire = template.assistant_turn(message, history=history, tools=TOOLS, **switch)
        whole = template.render([*history, message], tools=TOOLS, **switch)
        told = needles
        if thinking is not True and "NeedleReason" not in whole:
            told = tuple(needle for needle in needles if needle != "NeedleReason")
        if scenario == "content, call" and whole.find("NeedleCity") < whole.find("NeedleContent"):
            told = (*needles[1:], needles[0])  # some templates write the text after the calls
        assert shown(wire, told), wire
        assert "Old" not in wire and wire.count("NeedleCity") <= 1
        assert not any(needle in prompt for needle in needles if needle.startswith("Needle"))
        whole = template.render(history, tools=TOOLS, add_generation_prompt=True, **switch)
        header = template.generation_prompt(history, tools=TOOLS, **switch)
        assert whole.startswith(prompt) and whole.endswith(header)
        assert len(whole) - len(prompt) <= len(header)


def test_a_result_with_its_id_after_it_is_rendered_once() -> None:
    template = Template(
        "{{ strftime_now('%Y') }}{% for m in messages %}<|{{ m.role }}|>{{ m.content }}"
        "{% for c in m.tool_calls or [] %}{{ c.id }}{{ c.function | tojson }}{% endfor %}"
        "{{ ' of ' + m.tool_call_id if m.role == 'tool' }}<|end|>{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|>{% endif %}"
    )
    rendered: list[str] = []
    same: dict[str, Any] = {"tools": TOOLS, "strftime_now": lambda pattern: rendered.append(pattern) or ""}
    call = {"id": "call_7", "type": "function", "function": {"name": "ping", "arguments": {}}}
    messages: list[dict[str, Any]] = [
        *USER,
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_7", "content": "It is there."},
    ]
    text = template.render(messages, add_generation_prompt=True, **same)
    assert text.endswith("It is there. of call_7<|end|><|assistant|>") and len(rendered) == 1
    assert template.generation_prompt_of(text, messages, **same) == "<|assistant|>" and len(rendered) == 1


def test_a_prompt_without_messages_ends_as_any() -> None:
    template = Template(
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|>{% endif %}"
    )
    text = template.render([], add_generation_prompt=True)
    assert template.generation_prompt_of(text, []) == "<|assistant|>"


FUNCTION_F = "<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{}<|tool_call_end|>"
FUNCTION_G = "<|tool_call_begin|>functions.g:1<|tool_call_argument_begin|>{}<|tool_call_end|>"
CHATML, LLAMA = "<|im_start|>assistant\n", "<|start_header_id|>assistant<|end_header_id|>\n\n"
# A template of ours, the answer, how the prompt ends, the wire text.
WIRES: list[tuple[str, dict[str, Any], str, str]] = [
    ("hermes-2-pro", answer("Hi"), CHATML, "Hi<|im_end|>"),
    (
        "hermes-2-pro",
        answer(ping={}),
        CHATML,
        '<tool_call>\n{"name": "ping", "arguments": {}}\n</tool_call><|im_end|>',
    ),
    ("qwen3", answer("Hi", "R"), CHATML, "<think>\nR\n</think>\n\nHi<|im_end|>"),
    (
        "mistral-nemo",
        answer("Hi", ping={}),
        "[/INST]",
        'Hi[TOOL_CALLS][{"name": "ping", "arguments": {}, "id": "call00000"}]<EOS>',
    ),
    (
        "qwen3-coder",
        answer(f={"a": 1, "b": "x"}),
        CHATML,
        "<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n<parameter=b>\nx\n</parameter>\n"
        "</function>\n</tool_call><|im_end|>",
    ),
    (
        "kimi-k2",
        answer(f={}, g={}),
        "<|im_assistant|>assistant<|im_middle|>",
        f"<|tool_calls_section_begin|>{FUNCTION_F}{FUNCTION_G}<|tool_calls_section_end|><|im_end|>",
    ),
    (
        "gpt-oss",
        answer("Hi", "R"),
        "<|start|>assistant",
        "<|channel|>analysis<|message|>R<|end|><|start|>assistant<|channel|>final<|message|>Hi<|return|>",
    ),
    (
        "gpt-oss",
        answer(f={}),
        "<|start|>assistant",
        "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>",
    ),
    ("llama-3-x", answer(f={"a": 1}), LLAMA, '{"name": "f", "parameters": {"a": 1}}<|eot_id|>'),
    ("deepseek-v3-1", answer("Hi"), "<think></think>", "Hi<｜end▁of▁sentence｜>"),
    ("deepseek-v3-1", answer("Hi", "R"), "<｜Assistant｜><think>", "R</think>Hi<｜end▁of▁sentence｜>"),
    (
        "glm-4-5",
        answer("Hi", "R", f={"a": 1}),
        "<|assistant|>",
        "\n<think>R</think>\nHi\n<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n</tool_call>",
    ),
    ("minimax-m2", answer("Hi", "R"), "]~b]ai\n<think>\n", "R\n</think>\n\nHi[e~["),
    (  # The prefilled <think> is not in this rendering: the prompt ends before it.
        "minimax-m2",
        answer(f={"a": "x"}),
        "]~b]ai\n",
        '\n<minimax:tool_call>\n<invoke name="f">\n<parameter name="a">x</parameter>\n</invoke>\n'
        "</minimax:tool_call>[e~[",
    ),
]


CHAT = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>\n{% endfor %}"
ASKED = "<|user|>Hi<|end|>\n"
LAST_THOUGHT = (
    "{% set ns = namespace(done=-1) %}{% for m in messages %}"
    "{% if m.role == 'assistant' and not m.tool_calls %}{% set ns.done = loop.index0 %}{% endif %}{% endfor %}"
    "{% for m in messages %}<|{{ m.role }}|>{% if m.role == 'assistant' %}"
    "<think>{{ m.reasoning_content if loop.index0 >= ns.done }}</think>{% endif %}{{ m.content }}"
    "{% for c in m.tool_calls or [] %}<call>{{ c.function.name }}{{ c.function.arguments | tojson }}</call>{% endfor %}"
    "<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
COMMAND = (
    "{% for m in messages %}{{ ' ASSISTANT:' if m.role == 'assistant' else 'USER:' }}"
    "{% if m.reasoning_content %}<t>{{ m.reasoning_content }}</t>{% endif %}{{ m.content }}"
    "{{ '</s>' if m.role == 'assistant' }}{% endfor %}"
    "{% if add_generation_prompt %} /think_on  ASSISTANT:<t>{% endif %}"
)
BASALT = answer("Basalt.")


def headed(prompt: str, past: str) -> str:
    """A template whose prompt ends with a header, and whose answers begin with another."""
    return (
        f"{{% for m in messages %}}{{{{ {past!r} if m.role == 'assistant' else '<|user|>' }}}}{{{{ m.content }}}}"
        f"<|end|>{{% endfor %}}{{% if add_generation_prompt %}}{{{{ {prompt!r} }}}}{{% endif %}}"
    )


SYSTEM_FIRST = (
    "{% if messages[0].role != 'system' %}{{ raise_exception('a system message comes first') }}{% endif %}"
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}"
    "{{ '<|end|>' if add_generation_prompt or not loop.last else '<eos>' }}{% endfor %}"
    "{{ '<|assistant|>' if add_generation_prompt }}"
)
LOOP = (
    '<|user|>Hi<|end|><|assistant|><think>OldReason</think><call>get_weather{"city": "OldCity"}</call><|end|>'
    "<|tool|>OldResult<|end|><|assistant|>"
)
# A template or the name of one of ours, the answer, the prompt (after … its end alone), the wire text, and what is
# before it, if that is not the user's "Hi" alone.
CUTS: dict[str, tuple[Any, ...]] = {
    **{f"{name}: {wire:.40}": (name, message, f"…{ends}", wire, None) for name, message, ends, wire in WIRES},
    # The clock does not move between two renderings.
    "a time in the prompt": (
        "{{ strftime_now('%f') }}|" + CHAT,
        answer("Hello"),
        f"…|{ASKED}",
        "<|assistant|>Hello<|end|>",
    ),
    "a history that changes with the answer": (
        LAST_THOUGHT,
        answer("Hello", "R"),
        LOOP,
        "<think>R</think>Hello<|end|>",
        HISTORIES["tool loop"],
    ),
    "a question alone is refused": (
        SYSTEM_FIRST,
        answer("Hello"),
        "<|system|>S<|end|><|user|>Hi<|end|><|assistant|>",
        "Hello",
        [{"role": "system", "content": "S"}, *USER],
    ),
    "a header that is always written": (
        CHAT + "<|assistant|>",
        answer("Hello"),
        ASKED + "<|assistant|>",
        "Hello<|end|>",
    ),
    "instructions after the last message": (
        CHAT + "<|system|>Be brief.<|end|>\n{% if add_generation_prompt %}<|assistant|>{% endif %}",
        answer("Hello"),
        ASKED + "<|system|>Be brief.<|end|>\n<|assistant|>",
        "Hello<|end|>",
    ),
    "content put into a prefilled opener": (
        "{% for m in messages %}<|{{ m.role }}|>{{ '<think>' if loop.last and m.role == 'assistant' }}"
        "{{ m.content }}<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|><think>{% endif %}",
        answer("Hello"),
        "<|user|>Hi<|end|><|assistant|>",
        "Hello<|end|>",
    ),
    "content that begins like the prefill": (
        CHAT + "{% if add_generation_prompt %}<|assistant|>Here are my steps:{% endif %}",
        answer("Here we go"),
        ASKED + "<|assistant|>",
        "Here we go<|end|>",
    ),
    "reasoning that continues a prefill without markers": (
        CHAT.replace("{{ m.c", "{{ m.reasoning_content + '[FINAL]' if m.reasoning_content }}{{ m.c")
        + "{% if add_generation_prompt %}<|assistant|>My steps:{% endif %}",
        answer("C", "R"),
        ASKED + "<|assistant|>My steps:",
        "R[FINAL]C<|end|>",
    ),
    "a command that only the prompt has before the header": (
        COMMAND,
        answer("Hello"),
        "USER:Hi /think_on  ASSISTANT:",
        "Hello</s>",
    ),
    "the same, with a thought": (
        COMMAND,
        answer("Hello", "R"),
        "USER:Hi /think_on  ASSISTANT:<t>",
        "R</t>Hello</s>",
    ),
    # The answer does not begin with a header that the prompt has already, but for white space.
    "a blank after the header": (
        headed("<|assistant|>\n", "<|assistant|> \n"),
        BASALT,
        "<|user|>Hi<|end|><|assistant|>\n",
        "Basalt.<|end|>",
    ),
    "white space about the header's marker": (
        headed("<|role|>assistant\n", "\n<|role|> assistant\n"),
        BASALT,
        "<|user|>Hi<|end|><|role|>assistant\n",
        "Basalt.<|end|>",
    ),
    "a blank within the header": (
        headed("<|role|> assistant:", "<|role|>assistant:"),
        BASALT,
        "<|user|>Hi<|end|><|role|> assistant:",
        "Basalt.<|end|>",
    ),
    "a blank before a marker of the header": (
        headed("<|assistant|></think>", "<|assistant|> </think>"),
        BASALT,
        "<|user|>Hi<|end|><|assistant|></think>",
        "Basalt.<|end|>",
    ),
    "a blank before a marker in place of the prefill": (
        headed("<|bot|><think>", "<|bot|> </think>"),
        BASALT,
        "<|user|>Hi<|end|><|bot|>",
        "</think>Basalt.<|end|>",
    ),
    # No header of the prompt is before it: what every answer has there is the template's.
    "a classifier, which writes the answer into its question": (
        "<|user|>Asked: {{ messages[0].content }}{% if messages[1] %}\nAnswered: {{ messages[1].content }}{% endif %}"
        "<|end|>{% if add_generation_prompt %}<|assistant|>{% endif %}",
        BASALT,
        "<|user|>Asked: Hi<|end|><|assistant|>",
        "Basalt.<|end|>",
    ),
}


@pytest.mark.parametrize("case", CUTS)
def test_where_the_answer_begins(own_folder: Path, case: str) -> None:
    source, message, expected, wire, *before = CUTS[case]
    template = Template(source) if "{" in source else load(own_folder / f"{source}.jinja")
    prompt, written = template.assistant_turn(message, history=before[0] if before else USER)
    assert written == wire
    assert prompt.endswith(expected[1:]) if expected.startswith("…") else prompt == expected


@pytest.mark.parametrize(
    ("text", "at", "outside"),
    [
        ("ab<|start|>", 5, 2),
        ("ab<|start|>", 2, 2),
        ("ab<|start|>", 11, 11),
        ("ab<<start>>", 3, 2),
        ("ab<<start>>", 10, 2),
    ],
)
def test_no_marker_is_cut_in_two(text: str, at: int, outside: int) -> None:
    assert outside_marker(text, at) == outside


def test_a_template_that_refuses_the_answer(own_folder: Path) -> None:
    with pytest.raises(TemplateError, match=r"template llama-3-x.*messages\[1\]: this model makes one call"):
        load(own_folder / "llama-3-x.jinja").assistant_turn(answer(f={}, g={}))


@pytest.mark.parametrize(
    ("name", "default", "on", "off"),
    [
        ("qwen3", True, {"enable_thinking": True}, {"enable_thinking": False}),
        ("deepseek-v3-1", False, {"thinking": True}, {"thinking": False}),
        ("hermes-2-pro", None, {}, {}),
        ("kimi-k2", None, {}, {}),
        # A budget, an effort that is named, and one that is a switch.
        ("{{ messages[0].content }}{{ '<no>' if thinking_budget == 0 }}", True, {}, {"thinking_budget": 0}),
        (
            "Effort: {{ reasoning_effort or 'medium' }}.{{ messages[0].content }}",
            True,
            {},
            {"reasoning_effort": "low"},
        ),
        (
            "{{ messages[0].content }}<a>{{ '<t></t>' if reasoning_effort == 'none' }}",
            True,
            {},
            {"reasoning_effort": "none"},
        ),
    ],
)
def test_switches_of_thinking_are_found(
    own_folder: Path, name: str, default: bool | None, on: dict[str, Any], off: dict[str, Any]
) -> None:
    template = Template(name) if "{{" in name else load(own_folder / f"{name}.jinja")
    assert [template.thinking_kwargs(thinking) for thinking in (True, False, None)] == [on, off, {}]
    assert template.probe().thinking_default is default


def test_what_stands_between_two_messages_is_of_the_first_one() -> None:
    source = (
        "{% for m in messages %}{{ '' if loop.first else '--' }}<|{{ m.role }}|>{{ m.content }}{% endfor %}"
        "{% if add_generation_prompt %}--<|assistant|>{% endif %}"
    )
    headers = role_headers(Template(source), get_format("content-only"))
    assert headers["system"].before == ("<|system|>",) and headers["user"].before == ("<|user|>",)
    assert headers["system"].after == headers["assistant"].after == "--"
