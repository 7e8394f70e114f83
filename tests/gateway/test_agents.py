"""What coding agents really sent (`agents/play.py` recorded it) is answered, in the form that they sent it for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scripted import Llama, Upstream, forced
from servers import tiny_model

pytest.importorskip("starlette", reason="the package starlette is not installed")

import httpx2

from chatparsers.gateway import LlamaServer, Settings, create_app

SENT = sorted((Path(__file__).parent / "agents").glob("*.json"))
REAL = sorted((Path(__file__).parent / "agents" / "real").glob("*.json"))

CHANGES = {"claude": "Edit", "cline": "editor", "codex": "exec_command", "opencode": "edit", "qwen": "edit"}
"""The tool by which an agent changes a file. Aider has none: it reads the answer's text."""


def said_of(path: str, text: str) -> tuple[str, str | None, str]:
    """The content of a streamed answer, and the name and the arguments of its call."""
    events = [json.loads(line[6:]) for line in text.split("\n") if line.startswith("data: {")]
    content, name, arguments = "", None, ""
    for event in events:
        if path == "/v1/responses" and event["type"] == "response.completed":
            for item in event["response"]["output"]:
                name, arguments = item.get("name"), item.get("arguments", "")
                content += "".join(part["text"] for part in item.get("content", ()))
        elif path == "/v1/messages":
            block, delta = event.get("content_block", {}), event.get("delta", {})
            name, arguments = block.get("name", name), arguments + delta.get("partial_json", "")
            content += delta.get("text", "")
        for choice in event.get("choices", ()):
            content += choice["delta"].get("content") or ""
            for call in choice["delta"].get("tool_calls", ()):
                name = call["function"].get("name") or name
                arguments += call["function"].get("arguments", "")
    return content, name, arguments


@pytest.mark.parametrize("file", SENT, ids=lambda file: file.stem)
def test_what_agents_send(
    file: Path, upstream: Callable[[Any], Upstream], serve: Callable[[Any], Any], capsys: Any
) -> None:
    name = CHANGES.get(file.stem)
    wrote = "note.txt\n<<<<<<< SEARCH\nhello\n=======\ngoodbye\n>>>>>>> REPLACE"
    if name is not None:
        wrote = f'<tool_call>\n{{"name": "{name}", "arguments": {{"cmd": "x"}}}}\n</tool_call>'
    model = tiny_model("qwen3")
    engine = upstream(Llama([wrote], model.tokenizer, gives_ids=False))
    server = serve(create_app(model.chat, LlamaServer(engine.url), Settings(drop_unsupported=True)))
    for sent in json.loads(file.read_text(encoding="utf-8")):
        path, body = sent["path"], sent["body"]
        answer = httpx2.post(server.url + path, json=body, timeout=30)
        assert answer.status_code == 200, answer.text
        if name is None:
            assert said_of(path, answer.text) == (wrote, None, "")
        else:
            assert said_of(path, answer.text) == ("", name, '{"cmd": "x"}')
            asked = [one for _, one in engine.requests if forced(one) is None]
            assert asked[-1]["grammar_lazy"] is True
    warned = capsys.readouterr().err
    assert ("a tool web_search, which is left out" in warned) == (file.stem == "codex")
    assert "context_management" not in warned, "Claude Code asks that all thoughts are kept, as they are"
    assert "which no API has" not in warned
    plain = serve(create_app(model.chat, LlamaServer(engine.url), Settings(strict_fields=True)))
    assert httpx2.post(plain.url + path, json=body, timeout=30).status_code == 200, "and no flag is needed"


@pytest.mark.parametrize("file", REAL, ids=lambda file: file.stem)
def test_what_a_real_model_wrote_for_them(
    file: Path, upstream: Callable[[Any], Upstream], serve: Callable[[Any], Any]
) -> None:
    """A call that it wrote in a fence or bare is the agent's call; what is no whole call is content."""
    model = tiny_model("qwen3")
    script = Llama((), model.tokenizer, gives_ids=False)
    settings = Settings(drop_unsupported=True, lenient_calls=True)
    server = serve(create_app(model.chat, LlamaServer(upstream(script).url), settings))
    found = json.loads(file.read_text(encoding="utf-8"))
    for sent, wrote in zip(found["sent"], found["written"], strict=True):
        text, body = wrote["text"], sent["body"]
        script.pieces = [text[start : start + 5] for start in range(0, len(text), 5)]
        answer = httpx2.post(server.url + sent["path"], json=body, timeout=30)
        assert answer.status_code == 200, answer.text
        call = called(text)
        content, name, arguments = said_of(sent["path"], answer.text)
        if call is None or not body.get("tools"):
            assert (content.strip(), name) == (text.strip(), None)
        else:
            assert (content, name, json.loads(arguments)) == ("", call["name"], call["arguments"])


def called(text: str) -> Any:
    """The call that a text is, in a fence or bare."""
    try:
        call = json.loads(text.strip().removeprefix("```json").removeprefix("```").removesuffix("```"))
    except ValueError:
        return None
    return call if isinstance(call, dict) and "name" in call and "arguments" in call else None


def test_six_agents_are_kept() -> None:
    """And nothing in what they sent tells of whoever recorded it."""
    assert len(SENT) >= 6
    for file in (*SENT, *REAL):
        text = file.read_text(encoding="utf-8")
        assert (
            ('"tools"' in text or file.stem == "aider")
            and "/tmp/" not in text.replace("/tmp/place", "")
            and "/root/" not in text
        )
