"""A response template is written from each format, and says what it loses."""

from __future__ import annotations

import json

import pytest

import chatparsers
from chatparsers import RequestError, get_format, list_formats
from chatparsers.interop import read_response_template, write_response_template

NAMES = [info.name for info in list_formats() if info.origin == "chatparsers"]
SAID = "not read back", "cannot read"


@pytest.mark.parametrize("name", NAMES)
def test_what_is_written_is_read_as_it_was_meant(name: str) -> None:
    """Calls are there and come back unchanged, or they are left out and the loss is said."""
    format = get_format(name)
    written = write_response_template(format, "<|assistant|>")
    fields = json.loads(json.dumps(written.spec))["fields"]
    assert "content" in fields
    assert (
        ("reasoning_content" in fields) or not format.features.reasoning or _said(written.lost, "reasoning: ")
    )
    if format.features.tools:
        assert ("tool_calls" in fields) != _said(written.lost, "calls: ")
    assert not [line for line in written.lost if any(said in line for said in SAID)]


def _said(lost: tuple[str, ...], what: str) -> bool:
    return any(line.startswith(what) for line in lost)


def test_a_call_in_tags() -> None:
    written = write_response_template(get_format("qwen3-coder"), "<|im_start|>assistant\n", for_="servers")
    assert written.spec == {
        "version": 1,
        "defaults": {"role": "assistant"},
        "start_anchor": "<|im_start|>assistant\n",
        "fields": {
            "thinking": {"open": "<think>", "close": "</think>", "content": "text"},
            "tool_calls": {
                "open_pattern": r"\s*<tool_call>\s*<function=(?P<name>[^\s>]+)>\s*",
                "close_pattern": r"</function>\s*</tool_call>",
                "repeats": True,
                "content": "xml-inline",
                "content_args": {
                    "tag_pattern": r"<parameter=(?P<key>[^\s>]+)>\s*(?P<value>.*?)\s*</parameter>"
                },
                "transform": {
                    "type": "function",
                    "function": {"name": "{name}", "arguments": "{content}"},
                },
            },
            "content": {"close_pattern": r"\s*(?:<\|im_end\|>|<\|endoftext\|>)", "content": "text"},
        },
    }
    assert written.lost == (
        "white space at the ends of reasoning and content is stripped",
        "a thought is in the field thinking: what asks for reasoning_content does not find it",
        "text before and after a call: the last part replaces the others",
        "prose that holds the opener of a call, and a call that is broken or cut off, raise an error",
        "a value that holds its closing tag is cut there",
    )


def test_what_cannot_be_written_is_said() -> None:
    """The calls of these families are beyond the language; all others' are written."""
    lost = {
        name: line.removeprefix("calls: ")
        for name in NAMES
        for line in write_response_template(get_format(name), ["A:", "B:"], for_="servers").lost
        if line.startswith("calls: ")
    }
    python = "the calls are a list as in Python, which vLLM 0.33 and SGLang 0.5.23 do not know"
    assert lost == {
        "apertus": "the name is a key of the JSON around the arguments",
        "generic": "several JSON objects stand between one pair of markers",
        "lfm2": python,
        "minimax-m1": "several JSON objects stand between one pair of markers",
        "olmo-3": "the calls are as in Python, without a list around them",
        "pythonic": python,
        "sarashina": "values are literals of a programming language",
        "smi": "the name is a key of the JSON around the arguments",
        "ui-tars": "the calls are as in Python, without a list around them",
    }


@pytest.mark.parametrize(
    ("name", "field", "pattern"),
    [
        pytest.param("mistral-nemo", "close_pattern", r"\s*(?:</s>|$)", id="a list, by the end of the turn"),
        pytest.param(
            "phi-4-mini",
            "close_pattern",
            r"\s*(?:<\|end\|>|<\|endoftext\|>|$)",
            id="a list, by one of two ends",
        ),
        pytest.param(
            "magistral",
            "close_pattern",
            r"(?=\s*\[TOOL_CALLS\])|\s*(?:</s>|$)",
            id="a call, by the next",
        ),
        pytest.param(
            "kimi-k2",
            "open_pattern",
            r"(?P<id>functions\.(?P<name>[^\s:]+):\d+)",
            id="an id in the header is read",
        ),
    ],
)
def test_where_a_call_begins_and_ends(name: str, field: str, pattern: str) -> None:
    calls = write_response_template(get_format(name), "<|assistant|>").spec["fields"]["tool_calls"]
    assert calls[field] == pattern if field == "close_pattern" else pattern in calls[field]
    assert ("id" in calls["transform"]) == (name in ("kimi-k2", "mistral-nemo"))


def test_servers_and_transformers_name_the_thought_in_two_ways() -> None:
    format = get_format("qwen3")
    for for_, field in (("transformers", "reasoning_content"), ("servers", "thinking")):
        written = write_response_template(format, "<|im_start|>assistant\n", for_=for_)
        assert field in written.spec["fields"]
        assert any(field in line for line in written.lost)
    with pytest.raises(RequestError, match="expected 'transformers' or 'servers', found 'vllm'"):
        write_response_template(format, "<|im_start|>assistant\n", for_="vllm")  # type: ignore[arg-type]


def test_a_chat_knows_its_anchor() -> None:
    """The anchor is the generation prompt without the thought that it may open."""
    template = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}"
    )
    chat = chatparsers.load(template, format="qwen3")
    written = chat.response_template()
    assert written.spec["start_anchor"] == "<|im_start|>assistant\n"
    assert read_response_template(written.spec).features.tools
