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


@pytest.mark.parametrize("file", SENT, ids=lambda file: file.stem)
def test_what_agents_send(
    file: Path, upstream: Callable[[Any], Upstream], serve: Callable[[Any], Any], capsys: Any
) -> None:
    for sent in json.loads(file.read_text(encoding="utf-8")):
        path, body = sent["path"], sent["body"]
        names = [tool.get("name") or tool.get("function", {}).get("name") for tool in body["tools"]]
        name = next(name for name in names if name in ("edit", "exec_command"))
        call = f'<tool_call>\n{{"name": "{name}", "arguments": {{"cmd": "x"}}}}\n</tool_call>'
        model = tiny_model("qwen3")
        engine = upstream(Llama([call], model.tokenizer, gives_ids=False))
        server = serve(create_app(model.chat, LlamaServer(engine.url), Settings(drop_unsupported=True)))
        answer = httpx2.post(server.url + path, json=body, timeout=30)
        assert answer.status_code == 200, answer.text
        said = [json.loads(line[6:]) for line in answer.text.split("\n") if line.startswith("data: {")]
        if path == "/v1/responses":
            last = said[-1]
            assert last["type"] == "response.completed"
            (item,) = last["response"]["output"]
            assert (item["type"], item["name"], item["arguments"]) == ("function_call", name, '{"cmd": "x"}')
        else:
            deltas = [chunk["choices"][0]["delta"] for chunk in said if chunk.get("choices")]
            calls = [one for delta in deltas for one in delta.get("tool_calls", ())]
            assert calls[0]["function"]["name"] == name
            assert "".join(one["function"].get("arguments", "") for one in calls) == '{"cmd": "x"}'
        asked = [one for _, one in engine.requests if forced(one) is None]
        assert asked[-1]["grammar_lazy"] is True
    warned = capsys.readouterr().err
    assert ("a tool web_search, which is left out" in warned) == (file.stem == "codex")
    assert "which no API has" not in warned
    plain = serve(create_app(model.chat, LlamaServer(engine.url)))
    assert httpx2.post(plain.url + path, json=body, timeout=30).status_code == 200, "and no flag is needed"


def test_three_agents_are_kept() -> None:
    """And nothing in what they sent tells of whoever recorded it."""
    assert len(SENT) >= 3
    for file in SENT:
        text = file.read_text(encoding="utf-8")
        assert '"tools"' in text and "/tmp/" not in text.replace("/tmp/place", "") and "/root/" not in text
