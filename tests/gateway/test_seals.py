"""Thoughts that clients carry back unread: any gateway with the same key reads them, and no other."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("cryptography", reason="the package cryptography is not installed")
pytest.importorskip("starlette", reason="the package starlette is not installed")

from chatparsers import Content, Reasoning
from chatparsers.gateway.seals import seals_of
from chatparsers.serving import AnthropicMessages, OpenAIResponses, read_messages, read_responses

ASKED = {"role": "user", "content": "Hi"}
THOUGHT = "Hm. \ud800 Oslo?"
EVENTS = [Reasoning("Hm. \ud800"), Reasoning(" Oslo?"), Content("Yes.")]


def keys(folder: Path, *keys: bytes) -> str:
    file = folder / f"{len(list(folder.iterdir()))}.key"
    file.write_bytes(b"\n".join(map(base64.b64encode, keys)))
    return str(file)


def answers(seals: Any) -> tuple[dict[str, Any], dict[str, Any], str]:
    """What the client sends back in two APIs, and what was streamed of the first."""
    writer = AnthropicMessages("m", seals=seals)
    frames = writer.frames(EVENTS)
    writer.finish("stop")
    said = {
        "messages": [ASKED, {"role": "assistant", "content": writer.answer["content"]}, ASKED],
        "max_tokens": 1,
    }
    other = OpenAIResponses("m", request={"include": ["reasoning.encrypted_content"]}, seals=seals)
    other.frames(EVENTS)
    other.finish("stop")
    items = [
        {**item, "content": None} if item["type"] == "reasoning" else item for item in other.answer["output"]
    ]
    return said, {"input": [ASKED, *items, ASKED]}, frames


def test_a_thought_that_is_not_shown_comes_back(tmp_path: Path) -> None:
    old, new = b"a" * 32, b"b" * 32
    here = seals_of(keys(tmp_path, old))
    said, items, frames = answers(here)
    block = said["messages"][1]["content"][0]
    assert block["thinking"] == "" and "Oslo" not in frames and "thinking_delta" not in frames
    assert f'"type":"signature_delta","signature":"{block["signature"]}"' in frames
    shown = THOUGHT.replace("\ud800", "\ufffd")
    for there, known in ((here, True), (seals_of(keys(tmp_path, new, old)), True), (seals_of(None), False)):
        for request in (read_messages(said, seals=there), read_responses(items, seals=there)):
            assert request.messages[1].get("reasoning_content", "") == (shown if known else "")
            assert request.messages[1]["content"] == "Yes."
            assert request.dropped == (() if known else ("encrypted thought of another server",))


def test_a_thought_that_is_shown_is_signed_too() -> None:
    """Clients drop a thought whose signature is empty."""
    writer = AnthropicMessages("m")
    frames = writer.frames(EVENTS)
    writer.finish("stop")
    block = writer.answer["content"][0]
    assert block["thinking"] == THOUGHT.replace("\ud800", "\ufffd") and block["signature"]
    assert "signature_delta" in frames
    back = read_messages({"messages": [ASKED, {"role": "assistant", "content": [block]}], "max_tokens": 1})
    assert back.messages[1]["reasoning_content"] == block["thinking"] and not back.dropped


@pytest.mark.parametrize("wrong", [b"", b"YQ==", b"\xff", b"not base64!"])
def test_a_file_that_is_no_key_is_refused(wrong: bytes, tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(wrong)
    with pytest.raises(ValueError, match="32 random bytes in base64"):
        seals_of(str(tmp_path / "key"))
