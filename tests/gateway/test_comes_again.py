"""What a client sends again: a request that runs, the ids of items, and what of a request was left out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from scripted import Llama, Upstream, forced, soon
from servers import Server, tiny_model

pytest.importorskip("starlette", reason="the package starlette is not installed")

import httpx2

import chatparsers
from chatparsers.gateway import LlamaServer, Settings, create_app
from chatparsers.gateway.defaults import with_all_thoughts
from chatparsers.gateway.recent import RecentItems
from chatparsers.serving import ApiError, read_messages, read_responses

ASKED = {"role": "user", "content": "Hi"}
FIELDS = {"/v1/chat/completions": "messages", "/v1/responses": "input", "/v1/messages": "messages"}
WROTE = ("<think>\nHm.\n</think>\n\nYes", ", it", " is", ".")


@pytest.fixture
def made(
    upstream: Callable[..., Upstream], serve: Callable[..., Server]
) -> Iterator[tuple[Server, Upstream, Llama]]:
    model = tiny_model("qwen3")
    script = Llama([*WROTE], model.tokenizer, gives_ids=False)
    engine = upstream(script)
    yield (
        serve(create_app(model.chat, LlamaServer(engine.url), Settings(drop_unsupported=True))),
        engine,
        script,
    )


def asked(engine: Upstream) -> int:
    """How often the engine was asked for an answer."""
    return sum(forced(body) is None and body.get("n_predict") != 1 for _, body in engine.requests)


@pytest.mark.parametrize("path", FIELDS)
def test_a_session_that_asks_twice_at_once_gets_one_answer(
    path: str, made: tuple[Server, Upstream, Llama]
) -> None:
    server, engine, script = made
    script.delay = 0.1
    body = {"model": "m", "max_tokens": 99, "stream": True, FIELDS[path]: [ASKED]}
    found: list[tuple[str, bytes]] = []

    def ask(session: str) -> None:
        headers = {"session-id": session} if session else {}
        found.append(
            (session, httpx2.post(server.url + path, json=body, headers=headers, timeout=30).content)
        )

    threads = [threading.Thread(target=ask, args=(session,)) for session in ("a", "a", "b", "", "")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert asked(engine) == 4, "one for a session; two of nobody's are two samples"
    one, two = (text for session, text in found if session == "a")
    assert one == two and len({text for _, text in found}) == 4
    httpx2.post(server.url + path, json=body, headers={"session-id": "a"}, timeout=30)
    assert asked(engine) == 5, "an answer that was had is no more that of a request"
    soon(lambda: server.app.state.repeats.running == 0)


def test_an_sdk_that_names_no_session_gets_what_its_own_client_left(
    made: tuple[Server, Upstream, Llama],
) -> None:
    """Not what another client waits for: two equal requests are two samples."""
    server, engine, script = made
    script.delay = 0.2
    body = {"model": "m", "messages": [ASKED]}
    found: list[str] = []

    def ask(count: int, timeout: float = 30, **more: Any) -> str:
        return httpx2.post(
            server.url + "/v1/chat/completions",
            json={**body, **more},
            headers={"x-stainless-retry-count": str(count)},
            timeout=timeout,
        ).text

    with pytest.raises(httpx2.TimeoutException):
        ask(0, timeout=0.2)
    threads = [threading.Thread(target=lambda: found.append(ask(1))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert asked(engine) == 2 and found[0] != found[1], "one is the client that left, the other a stranger"
    with pytest.raises(httpx2.TimeoutException):
        ask(0, timeout=0.2, stream=True)
    assert server.app.state.repeats.running == 0, "of a stream nobody asks for more"
    ask(1, stream=True)
    assert asked(engine) == 4


def test_the_id_of_a_recent_item_is_the_item(made: tuple[Server, Upstream, Llama]) -> None:
    """As @ai-sdk/openai sends it, which takes for granted that answers are kept."""
    server, engine, _ = made
    url = f"{server.url}/v1/responses"
    first = httpx2.post(url, json={"input": [ASKED]}, timeout=30).json()
    items = [{"type": "item_reference", "id": item["id"]} for item in first["output"]]
    assert len(items) == 2
    for listed in (items, first["output"]):
        assert httpx2.post(url, json={"input": [ASKED, *listed, ASKED]}, timeout=30).status_code == 200
    prompts = [body["prompt"] for _, body in engine.requests if forced(body) is None]
    assert prompts[-1] == prompts[-2]
    unknown = httpx2.post(url, json={"input": [ASKED, {"type": "item_reference", "id": "rs_0"}]}, timeout=30)
    assert unknown.status_code == 404 and unknown.json()["error"]["param"] == "input[1]"


def test_recent_items_are_bounded_and_each_owners_own() -> None:
    recent = RecentItems(size=200)
    for number in range(9):
        recent.keep("ann", [{"id": f"i{number}", "text": "x" * 50}])
    body = {"input": [{"type": "item_reference", "id": "i8"}]}
    assert recent.resolved("ann", body) == {"input": [{"id": "i8", "text": "x" * 50}]}
    for owner, id in (("bob", "i8"), ("ann", "i0")):
        with pytest.raises(ApiError, match="not among the recent ones"):
            recent.resolved(owner, {"input": [{"type": "item_reference", "id": id}]})


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("path", FIELDS)
def test_an_answer_says_what_it_was_written_without(
    path: str, stream: bool, made: tuple[Server, Upstream, Llama]
) -> None:
    orphan: dict[str, Any] = {"role": "tool", "tool_call_id": "9", "content": "7"}
    if path == "/v1/responses":
        orphan = {"type": "function_call_output", "call_id": "9", "output": "7"}
    elif path == "/v1/messages":
        orphan = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "9", "content": "7"}]}
    body = {"model": "m", "max_tokens": 99, "stream": stream, FIELDS[path]: [ASKED, orphan]}
    tool = {"type": "computer_use_preview", "name": "computer"}
    answer = httpx2.post(made[0].url + path, json={**body, "tools": [tool]}, timeout=30).text
    assert '"left out: tool computer_use_preview"' in answer
    assert "messages[1].tool_call_id: no call before it has this id" in answer
    assert (
        '"warnings"'
        not in httpx2.post(made[0].url + path, json={**body, FIELDS[path]: [ASKED]}, timeout=30).text
    )


def test_thoughts_of_earlier_turns_are_kept_where_the_template_can() -> None:
    edits = {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}
    for request in (
        read_responses({"input": [ASKED], "reasoning": {"context": "all_turns"}}),
        read_messages({"messages": [ASKED], "max_tokens": 1, "context_management": edits}),
    ):
        for name, wanted in (("{{ clear_thinking }}", {"clear_thinking": False}), ("{{ messages }}", {})):
            assert with_all_thoughts(request, chatparsers.load(name).template()).template_kwargs == wanted
    plain = read_responses({"input": [ASKED]})
    assert with_all_thoughts(plain, chatparsers.load("{{ clear_thinking }}").template()) is plain
