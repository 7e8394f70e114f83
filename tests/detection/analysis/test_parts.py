"""The parts of the analysis by themselves: units of markup, the grammar's matcher, the role's header."""

from __future__ import annotations

from collections.abc import Callable
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


MARK = "]<m>["
END = "<|close|>message<|sep|><|over|>"
SEP = f"<|sep|>{END}"


@pytest.mark.parametrize(
    ("share", "texts", "marks", "shared"),
    [
        (shared_start, ("</think>\n", "</tool_call>\n"), (), ""),
        (shared_start, ("</v>\n<k>", "</v>\n</f>"), (), "</v>\n"),
        (shared_start, ("<<a>>x", "<</a>>x"), (), ""),
        (shared_start, ("a", "a", "a"), (), "a"),
        (shared_start, ("one",), (), "one"),
        (shared_end, ("<a_b>", "<c_b>"), (), ""),
        (shared_end, (">\n<k>", "</v>\n<k>"), (), "\n<k>"),
        (shared_end, ("]<m>[<a>", "]<m>[</b>]<m>[<a>"), (MARK,), "]<m>[<a>"),
        # The last of a tag's several markers belongs to it, if the texts show elsewhere that it does.
        (shared_end, (f"<|close|>response<|sep|>{END}", f"<|close|>tools<|sep|>{END}"), (), END),
        (shared_end, ("<|a|>one<|b|><|over|>", "<|a|>two<|b|><|over|>"), (), "<|b|><|over|>"),
        (shared_end, (f"Text.{END}", f"<|close|>tools<|sep|>{END}"), (), END),
        (shared_end, (f"<|close|>response {SEP}", f"<|close|>tools\n{SEP}"), (), SEP),
    ],
)
def test_no_marker_is_cut(share: Callable[..., str], texts: tuple[str, ...], marks: Any, shared: str) -> None:
    assert share(*texts, marks=marks) == shared


def test_a_mark_is_a_unit_and_what_is_a_marker() -> None:
    assert units("]<m>[</b>]", marks=(MARK,)) == [MARK, "</b>", "]"]
    markers = {text: is_marker(text) for text in ("<|im_end|>", "[ARGS]", "<parameter=", "[]")}
    assert markers == {"<|im_end|>": True, "[ARGS]": True, "<parameter=": False, "[]": False}


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
        ("content-only", "anything", True),  # nothing is constrained
    ],
)
def test_what_a_grammar_generates(format: str, text: str, generated: bool) -> None:
    request = (
        {"tools": TOOLS, "tool_choice": "required", "thinking": False} if format != "content-only" else {}
    )
    turn = get_format(format).bind(**request)
    assert accepts(turn, text) is generated


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
