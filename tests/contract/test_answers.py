"""A JSON answer is content from its first bracket to its last: no marker inside it counts, by text and by ids."""

from __future__ import annotations

import json

import pytest
from making import bytewise

import chatparsers

TOOL_FORMATS = [info.name for info in chatparsers.list_formats() if info.name != "content-only"]


@pytest.mark.one_in(1, quick=64)
@pytest.mark.parametrize("name", TOOL_FORMATS)
def test_markers_in_a_json_answer_are_text(name: str) -> None:
    format = chatparsers.get_format(name)
    markers = [text for text in format.preserved_tokens if text not in format.stops]
    answer = json.dumps({"about": "".join(markers), "list": ["<tool_call>", {"x": "}"}]})
    asked = {"response_format": {"type": "json_object"}, "thinking": False}
    written = format.render({"role": "assistant", "content": answer})
    by_text = format.bind(**asked)
    tokenizer = bytewise(added=format.preserved_tokens)
    by_ids = format.bind(**asked, tokenizer=tokenizer)
    ids = tokenizer.encode(written).ids
    for message in (by_text.parse(written), by_ids.parse(ids)):
        assert (message.content, message.complete) == (answer, True), message
        assert not message.diagnostics
    stream = by_text.stream()
    for character in written:
        stream.feed(character)
    stream.finish()
    assert stream.message == by_text.parse(written)


@pytest.mark.parametrize("text", ["{", "[", "{x} and [", "Sure: {not json} <", '{"a": 1}{"b"'])
def test_text_that_is_no_json_stays_content(text: str) -> None:
    turn = chatparsers.get_format("qwen3").bind(response_format={"type": "json_object"})
    stream = turn.stream()
    for character in text:
        stream.feed(character)
    stream.finish()
    assert stream.message.content == text == turn.parse(text).content
