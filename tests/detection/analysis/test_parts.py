"""The parts of the analysis by themselves: units of markup, the grammar's matcher, the role's header."""

from __future__ import annotations

from typing import Any

import pytest
from making import tool

from chatparsers import get_format
from chatparsers.detection.analysis.accepted import accepts
from chatparsers.detection.analysis.probes import Asker
from chatparsers.templates import Template
from chatparsers.templates.probe.differences import is_marker, shared_end, shared_start, units


@pytest.mark.parametrize(
    "text",
    [
        "</think>\n\n<tool_call>",
        '<｜DSML｜invoke name="f">',
        "[TOOL_CALLS]f[ARGS]{}",
        "<<a>><</a>>",
        "<|im_start|>assistant\n",
        "a<b and [c, d] >>> e]",
        "",
    ],
)
def test_units_are_the_text(text: str) -> None:
    assert "".join(units(text)) == text


def test_markers_are_never_cut() -> None:
    assert shared_start("</think>\n", "</tool_call>\n") == ""
    assert shared_end("<a_b>", "<c_b>") == ""
    assert shared_start("</v>\n<k>", "</v>\n</f>") == "</v>\n"
    assert shared_end(">\n<k>", "</v>\n<k>") == "\n<k>"
    assert shared_start("<<a>>x", "<</a>>x") == ""
    assert shared_start("a", "a", "a") == "a" and shared_start("one") == "one"
    assert shared_end("]<m>[<a>", "]<m>[</b>]<m>[<a>", marks=("]<m>[",)) == "]<m>[<a>"
    assert units("]<m>[</b>]", marks=("]<m>[",)) == ["]<m>[", "</b>", "]"]
    assert (
        is_marker("<|im_end|>")
        and is_marker("[ARGS]")
        and not is_marker("<parameter=")
        and not is_marker("[]")
    )


def test_a_tag_of_several_markers_is_not_cut() -> None:
    """Its last marker belongs to it, if the texts show elsewhere that it does."""
    end = "<|close|>message<|sep|><|over|>"
    assert shared_end(f"<|close|>response<|sep|>{end}", f"<|close|>tools<|sep|>{end}") == end
    assert shared_end("<|a|>one<|b|><|over|>", "<|a|>two<|b|><|over|>") == "<|b|><|over|>"
    assert shared_end(f"Text.{end}", f"<|close|>tools<|sep|>{end}") == end
    sep = f"<|sep|>{end}"
    assert shared_end(f"<|close|>response {sep}", f"<|close|>tools\n{sep}") == sep


TOOLS: list[dict[str, Any]] = [
    tool(
        "f",
        {
            "a": {"type": "string", "maxLength": 5},
            "b": {"type": "array", "items": {"type": "integer"}},
            "c": {"enum": ["x", "y"]},
        },
        ["a"],
    )
]


@pytest.mark.parametrize(
    ("format", "text", "generated"),
    [
        ("hermes-2-pro", '<tool_call>\n{"name": "f", "arguments": {"a": "\\u00e9\\n"}}\n</tool_call>', True),
        (
            "hermes-2-pro",
            '<tool_call>\n{"name": "f", "arguments": {"a": "x", "b": [1, 2], "c": "y"}}\n</tool_call>',
            True,
        ),
        ("hermes-2-pro", '<tool_call>\n{"name": "g", "arguments": {"a": "x"}}\n</tool_call>', False),
        ("hermes-2-pro", '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>', False),
        ("hermes-2-pro", '<tool_call>\n{"name": "f", "arguments": {"a": "longer"}}\n</tool_call>', False),
        (
            "hermes-2-pro",
            '<tool_call>\n{"name": "f", "arguments": {"a": "x", "c": "z"}}\n</tool_call>',
            False,
        ),
        ("hermes-2-pro", '<tool_call>\n{"name": "f", "arguments": {"a": "x"}}\n</tool_call>x', False),
        ("glm-4-5", "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>x<y</arg_value>\n</tool_call>", True),
        (
            "glm-4-5",
            "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>x</arg_value></arg_value>\n</tool_call>",
            False,
        ),
        ("glm-4-5", "<tool_call>f\n</tool_call>", False),
        ("lfm2", """<|tool_call_start|>[f(a="it's", b=[1])]<|tool_call_end|>""", True),
        ("lfm2", "<|tool_call_start|>[f(a='longer')]<|tool_call_end|>", False),
    ],
)
def test_what_a_grammar_generates(format: str, text: str, generated: bool) -> None:
    turn = get_format(format).bind(tools=TOOLS, tool_choice="required", thinking=False)
    assert accepts(turn, text) is generated


def test_nothing_constrained_generates_all() -> None:
    assert accepts(get_format("content-only").bind(), "anything")


@pytest.mark.parametrize(
    ("user", "assistant", "prefill"),
    [
        ("<|im_start|>user\n", "<|im_start|>assistant\n", "<think>\n"),
        ("<|user|>", "<|assistant|>", "<think>"),
        ("<|im_user|>user<|im_middle|>", "<|im_assistant|>assistant<|im_middle|>", "<think>"),
        ("<|start|>user<|message|>", "<|start|>assistant", ""),
        ("<role>HUMAN</role>", "<role>ASSISTANT</role>", "\n<think>"),
        ("User: ", "Assistant: ", ""),
        ("[INST]", "", ""),
    ],
)
def test_the_header_ends_where_a_users_would(user: str, assistant: str, prefill: str) -> None:
    """Though every answer of the template begins with the prefill."""
    source = (
        "{% for m in messages %}{% if m.role == 'user' %}USER{{ m.content }}<end>{% else %}ASSISTANT{{ m.content }}"
        "<end>{% endif %}{% endfor %}{% if add_generation_prompt %}ASSISTANT{% endif %}"
    )
    asker = Asker(Template(source.replace("USER", user).replace("ASSISTANT", assistant + prefill)))
    asker.ask("an answer", content="Basalt rests here.")
    assert asker.header() == assistant
