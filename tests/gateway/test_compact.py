"""Compaction of Responses: the client gets its own messages and one item, from which the model goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from scripted import Llama
from servers import tiny_model

pytest.importorskip("starlette", reason="the package starlette is not installed")

import httpx2

from chatparsers.gateway import LlamaServer, Settings, create_app

SUMMARY = "Ann wants the weather in Oslo; it was 4 degrees."
CALLED = {"type": "function_call", "call_id": "call00001", "name": "f", "arguments": "{}"}
RESULT = {"type": "function_call_output", "call_id": "call00001", "output": "4 degrees"}
FIRST = {"type": "message", "role": "user", "content": "I am Ann. Weather in Oslo?"}
INPUT: list[Any] = [FIRST, CALLED, RESULT, {"role": "assistant", "content": "Cold."}]


@pytest.fixture
def asked(upstream: Any, serve: Any, openai: Any) -> Iterator[Callable[..., Any]]:
    """``asked(**settings)``: the engine's script, and a client of a gateway before it."""
    made: list[Any] = []

    def make(**settings: Any) -> tuple[Llama, Any, Any]:
        model = tiny_model("qwen3")
        script = Llama([f"<think>\nHm.\n</think>\n\n{SUMMARY}"], model.tokenizer)
        script.stop_id = model.eos_ids[0]
        engine = upstream(script, 5000)
        server = serve(create_app(model.chat, LlamaServer(engine.url), Settings(**settings)), lifespan="on")
        made.append(openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0))
        return script, engine, made[-1]

    yield make
    for client in made:
        client.close()


def prompt_of(engine: Any) -> str:
    found: str = tiny_model("qwen3").tokenizer.decode(
        engine.requests[-1][1]["prompt"], skip_special_tokens=False
    )
    return found


def test_a_conversation_goes_on_from_its_compaction(asked: Any) -> None:
    _, engine, client = asked()
    compacted = client.responses.compact(model="m", input=INPUT, instructions="Be exact.")
    assert compacted.object == "response.compaction" and compacted.usage.output_tokens > 0
    assert "Be exact." in prompt_of(engine) and "4 degrees" in prompt_of(engine)
    first, item = [one.model_dump(warnings=False) for one in compacted.output]
    assert (
        first["role"] == "user" and item["type"] == "compaction" and SUMMARY not in item["encrypted_content"]
    )
    client.responses.create(model="m", input=[first, item, {"role": "user", "content": "And now?"}])
    prompt = prompt_of(engine)
    places = [prompt.index(text) for text in ("I am Ann.", SUMMARY, "And now?")]
    assert places == sorted(places) and "4 degrees\n" not in prompt and "<tool_response>" not in prompt


def test_a_kept_response_is_compacted(asked: Any, openai: Any) -> None:
    _, engine, client = asked(store="memory")
    kept = client.responses.create(model="m", input=INPUT)
    compacted = client.responses.compact(model="m", previous_response_id=kept.id)
    assert [one.type for one in compacted.output] == ["message", "compaction"]
    assert "4 degrees" in prompt_of(engine) and prompt_of(engine).count(SUMMARY) == 1
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(compacted.id)


def test_what_cannot_be_gone_on_from(asked: Any, openai: Any) -> None:
    script, _, client = asked()
    script.kind = "limit"
    script.stop_id = None
    with pytest.raises(openai.InternalServerError, match="cut off"):
        client.responses.compact(model="m", input="Hi")
    script.pieces, script.kind = ["<think>\nHm.\n</think>\n\n"], "eos"
    with pytest.raises(openai.InternalServerError, match="no summary"):
        client.responses.compact(model="m", input="Hi")
    foreign = {"type": "compaction", "encrypted_content": "gAAAAAB"}
    with pytest.raises(openai.BadRequestError, match="another one's") as caught:
        client.responses.create(model="m", input=[foreign, FIRST])
    assert caught.value.param == "input[0].encrypted_content"
    answer = httpx2.post(
        f"{client.base_url}responses/compact", json={"previous_response_id": "resp_1"}, timeout=20
    )
    assert answer.status_code == 400 and "keeps no conversations" in answer.text
