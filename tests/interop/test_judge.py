"""transformers' own parser reads the same texts by the same response templates, and says the same."""

from __future__ import annotations

import importlib
import json
from typing import Any

import pytest

from chatparsers import get_format
from chatparsers.interop import read_response_template, write_response_template

from . import response_templates as templates
from .template_messages import NAMES, TOOLS, in_short, texts
from .test_read import ROWS


@pytest.fixture(scope="module")
def parse_response() -> Any:
    try:
        return importlib.import_module("transformers.utils.chat_parsing").parse_response
    except ImportError:
        pytest.skip("transformers (5.23 or later) is not installed")


def ours(spec: dict[str, Any], text: str, stops: tuple[str, ...] = ()) -> tuple[str, str, list[Any]]:
    message = read_response_template(spec, stops=stops).bind(tools=TOOLS).parse(text)
    assert message.complete
    calls = [(call.name, json.loads(call.arguments)) for call in message.tool_calls]
    return message.reasoning.strip(), message.content.strip(), calls


@pytest.mark.parametrize(
    "row", [row for row in ROWS if "Use <tool_call>" not in row[1]], ids=lambda row: row[1][:30]
)
def test_what_is_read_is_what_they_read(row: Any, parse_response: Any) -> None:
    spec, text, *_ = row
    opened = "<|im_start|>assistant\n<think>" if spec is templates.OPENED else ""  # by the prompt
    answer = text.removeprefix("<think>") if opened else text
    assert in_short(parse_response(answer, spec, prefix=opened, tools=TOOLS)) == ours(spec, text)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_written_is_what_they_read(name: str, parse_response: Any) -> None:
    """They read a format's own messages by the template that is written from it."""
    format = get_format(name)
    written = write_response_template(format, "<|assistant|>")
    for text, said in texts(format, written):
        assert in_short(parse_response(text, written.spec, prefix="", tools=TOOLS)) == said
        assert ours(written.spec, text, format.stops) == said
