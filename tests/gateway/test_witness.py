"""Who broke the prompt cache: what a witness says of each next request, over the templates of all formats, and where
the gateway says it; and what is said to be cached, where an engine was stopped before its end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from making import tool
from scripted import Upstream, Wire, forced, llama_end, llama_piece, sse

pytest.importorskip("starlette", reason="the package starlette is not installed")

import httpx2
from servers import tiny_model
from starlette.datastructures import Headers
from three_apis import PATHS, post, tools_of

from chatparsers import list_formats, load
from chatparsers.chat.chat import Chat
from chatparsers.errors import ChatParsersError
from chatparsers.gateway import (
    VLLM,
    Batch,
    End,
    Engine,
    Job,
    LlamaServer,
    Settings,
    SGLangGenerate,
    create_app,
)
from chatparsers.gateway.witness import Prompt, Seen, Witness, client_of, session_of
from chatparsers.serving import Request, read_chat
from chatparsers.templates.builtins import builtin_source

F, G = tool("f", {"a": {"type": "integer"}}), tool("g", description="Another.")
SYSTEM, HELLO = {"role": "system", "content": "You help."}, {"role": "user", "content": "Hello, who are you?"}
SAID, NEXT = (
    {"role": "assistant", "content": "I am one who helps."},
    {"role": "user", "content": "Well then."},
)
MORE = [{"role": "assistant", "content": "Yes?"}, {"role": "user", "content": "What is it?"}]
TALK: dict[str, Any] = {"messages": [SYSTEM, HELLO, SAID, NEXT], "tools": [F, G]}
CHANGES: list[tuple[dict[str, Any], str | None, str]] = [
    # What a next request has, what changed, and where.
    ({"messages": [*TALK["messages"], *MORE]}, None, ""),
    ({"tools": [G, F]}, "tools_changed", "tools[0]"),
    ({"tools": [F]}, "tools_changed", "tools[1]"),
    ({"tools": [F, tool("g", description="The other.")]}, "tools_changed", "tools[1]"),
    (
        {"messages": [{**SYSTEM, "content": "You help on Monday."}, *TALK["messages"][1:]]},
        "system_changed",
        "messages[0].content",
    ),
    (
        {"messages": [SYSTEM, {**HELLO, "content": "Hullo?"}, SAID, NEXT]},
        "messages_changed",
        "messages[1].content",
    ),
    (
        {"messages": [SYSTEM, HELLO, {**SAID, "content": "No."}, NEXT, *MORE]},
        "messages_changed",
        "messages[2].content",
    ),
    ({"messages": [SYSTEM, HELLO]}, "messages_changed", "messages[2]"),
]


def asked(**changes: Any) -> Request:
    return read_chat({**TALK, **changes})


@pytest.mark.parametrize("name", [one.name for one in list_formats() if one.origin == "chatparsers"])
def test_what_changed_is_named(name: str) -> None:
    """Over the templates: a prompt that only grew is none that changed, and what is shared is shared."""
    try:
        chat = load(builtin_source(name), format=name)
    except (ChatParsersError, LookupError):
        pytest.skip("no template of it is at hand")

    def prompt(request: Request) -> Prompt:
        return Prompt.of([*map(ord, chat.prepare(**request.prepare).prompt)], request)

    before = prompt(asked())
    for changes, reason, path in CHANGES:
        now, witness = prompt(asked(**changes)), Witness(10**6)
        assert witness.see("s", before) == Seen(new=len(before.ids) // 4, first=True)
        seen = witness.see("s", now)
        assert 4 * (seen.shared + seen.again + seen.new) == len(now.ids)
        assert now.ids[: 4 * seen.shared] == before.ids[: 4 * seen.shared]
        if reason is None and seen.reason is not None:  # a template that writes old messages otherwise
            assert seen.reason == "template" and seen.again
        elif seen.again:
            assert (seen.reason, seen.path) == (reason, path)
        else:
            assert seen.reason is None  # what changed stands in no prompt, or at its end


def test_the_prompt_before_is_the_nearest_and_all_are_bounded() -> None:
    def prompt(*ids: int) -> Prompt:
        return replace(Prompt.of([*range(1000), *ids, *range(100)], asked()))

    witness = Witness(100_000)
    assert witness.see("s", prompt(1)).first
    title = Prompt.of([*range(2000, 2100)], asked(messages=[HELLO]))
    assert witness.see("s", title).shared == 0
    assert witness.see("s", prompt(1, 2)).shared == 1001 and witness.see("s", prompt(1, 3)).shared == 1001
    for session in map(str, range(100)):
        assert witness.see(session, prompt(1)).first
        assert witness._size == sum(one.size for one in witness._all()) <= 100_000
    assert witness.see("s", prompt(1)).first, "what was not used for longest is gone"
    assert not Witness(1).see("s", prompt(1)).shared


SESSIONS: list[tuple[dict[str, str], dict[str, Any], str, str]] = [
    # The headers and the fields of a client, its session, and its label.
    (
        {"user-agent": "claude-cli/2.1.332 (external, cli)", "x-claude-code-session-id": "a"},
        {},
        "a",
        "claude-code",
    ),
    ({"user-agent": "codex_exec/0.171.0", "session-id": "b", "x-client-request-id": "z"}, {}, "b", "codex"),
    (
        {"user-agent": "opencode/1.18.33 ai-sdk/provider-utils/4.0.23", "x-session-id": "c"},
        {},
        "c",
        "opencode",
    ),
    ({"user-agent": "QwenCode/0.24.4"}, {"prompt_cache_key": "d"}, "d", "qwen-code"),
    (
        {"user-agent": "Anthropic/Python 0.99"},
        {"metadata": {"user_id": "user_x_account__session_e"}},
        "e",
        "anthropic",
    ),
    ({}, {"metadata": {"user_id": '{"device_id": "x", "session_id": "f"}'}}, "f", "other"),
]


def test_sessions_are_named_as_clients_name_them() -> None:
    for headers, fields, session, client in SESSIONS:
        found = session_of(Headers(headers), replace(asked(), body=fields), "k")
        assert (found, client_of(Headers(headers))) == (f"k {session}", client)
    first, other = asked(), asked(messages=[SYSTEM, {**HELLO, "content": "Hm?"}])
    assert session_of(Headers(), first, "") == session_of(Headers(), asked(messages=[HELLO]), "")
    assert len({session_of(Headers(), one, owner) for one in (first, other) for owner in ("a", "b")}) == 4


class Speaker(Engine):
    """Says Hi, by ids."""

    ids = True

    async def start(self, chat: Chat) -> list[str]:
        return []

    async def generate(self, job: Job) -> AsyncGenerator[Batch, None]:
        yield Batch(ids=tiny_model("qwen3").tokenizer.encode("Hi").ids, end=End())


@pytest.mark.parametrize("api", PATHS)
def test_the_gateway_says_it(api: str, serve: Callable[..., Any], tmp_path: Path) -> None:
    """In a header, in the log, in the metrics; and to Anthropic's clients as their API does, if they ask."""
    log = tmp_path / "log"
    app = create_app(tiny_model("qwen3").chat, Speaker(), Settings(log=str(log)))
    url, prompt = serve(app).url, "input" if api == "responses" else "messages"
    field = {"chat": None, "responses": "instructions", "messages": "system"}[api]
    talk: list[Any] = [HELLO, SAID, NEXT]

    def ask(system: str, tools: list[Any], **more: Any) -> tuple[str, dict[str, Any], dict[str, Any]]:
        said = (
            {field: system, prompt: talk}
            if field
            else {prompt: [{"role": "system", "content": system}, *talk]}
        )
        answer = post(url, api, **said, tools=tools_of(api, *(one["function"] for one in tools)), **more)
        found = json.loads(log.read_text().splitlines()[-1])["cache"]
        return answer.headers["x-chatparsers-cache"], found, answer.json()

    _, first, answer = ask("You help.", [F])
    header, told, same = ask(
        "You help.",
        [F],
        **({"diagnostics": {"previous_message_id": answer["id"]}} if api == "messages" else {}),
    )
    assert told == {"shared": first["new"], "again": 0, "new": 0} and first["shared"] == 0
    assert header == f"shared={first['new']}; again=0; new=0"
    header, told, _ = ask("You help.", [F, G])
    assert told["reason"] == "tools_changed" and "reason=tools_changed; path=tools[1]" in header
    header, told, later = ask(
        "You help me.",
        [F, G],
        **({"diagnostics": {"previous_message_id": same["id"]}} if api == "messages" else {}),
    )
    assert told["reason"] == "system_changed" and told["path"] == "messages[0].content"
    counted = app.state.metrics
    assert [
        counted.value("prompt_cache", client="other", changed=one)
        for one in ("first", "nothing", "tools_changed")
    ] == [1, 1, 1]
    assert counted.value("prompt_cache_tokens", kind="shared") > first["new"]
    if api == "messages":
        assert same["diagnostics"] is None and "diagnostics" not in answer
        missed = later["diagnostics"]["cache_miss_reason"]
        assert missed["type"] == "tools_changed" and missed["cache_missed_input_tokens"] > 0
        _, _, none = ask("You help.", [F], diagnostics={"previous_message_id": "msg_unknown"})
        assert none["diagnostics"] == {"cache_miss_reason": {"type": "previous_message_not_found"}}
        _, _, none = ask("You help.", [F], diagnostics={"previous_message_id": None})
        assert none["diagnostics"] is None


class Caching:
    """A server over HTTP that keeps what it has read, thinks without end, and after the closer says Hi."""

    def __init__(self, kind: type[Engine]) -> None:
        self.kind, self.tokenizer = kind, tiny_model("qwen3").tokenizer
        self.close_id = self.tokenizer.token_to_id("</think>")
        self.read: list[list[int]] = []
        self.had: list[int] = []
        """How much of each it had read before."""

    def held(self, prompt: list[int]) -> int:
        """How much of a prompt it had read before."""
        found = 0
        for before in self.read:
            same = [one == other for one, other in zip(before, prompt, strict=False)]
            found = max(found, same.index(False) if False in same else len(same))
        self.read.append(prompt)
        self.had.append(min(found, len(prompt) - 1))
        return self.had[-1]

    async def __call__(self, path: str, body: dict[str, Any], wire: Wire) -> None:
        if path in ("/v1/models", "/model_info"):
            await wire.head(200, "application/json")
            await wire.send(b'{"data": [{"id": "m", "max_model_len": 900}]}')
            await wire.end()
            return
        sampling = body.get("sampling_params", body)
        one, prompt = forced(sampling), body.get("prompt", body.get("input_ids"))
        await wire.head()
        if one is not None or 1 in (
            sampling.get("n_predict"),
            sampling.get("max_tokens"),
            sampling.get("max_new_tokens"),
        ):
            await self._says([one or 64], wire, 0, len(prompt), True)
        else:
            held, closed = self.held(prompt), prompt[-1] == self.close_id
            if body.get("return_progress"):
                await wire.send(
                    sse(
                        {
                            "content": "",
                            "tokens": [0],
                            "prompt_progress": {"total": len(prompt), "cache": held},
                        }
                    )
                )
            said = self.tokenizer.encode("Hi" if closed else "<think>" + " word" * 20).ids
            await self._says(said, wire, held, len(prompt), closed)
        await wire.end()

    async def _says(self, ids: list[int], wire: Wire, held: int, prompt: int, ends: bool) -> None:
        counts = {"prompt_tokens": prompt, "completion_tokens": len(ids)}
        for place, id in enumerate(ids, 1):
            text = self.tokenizer.decode([id], skip_special_tokens=False)
            if self.kind is LlamaServer:
                await wire.send(llama_piece(text, [id]))
            elif self.kind is VLLM:
                await wire.send(
                    sse({"choices": [{"index": 0, "text": text, "token_ids": [id], "finish_reason": None}]})
                )
            else:
                info = {
                    "finish_reason": None,
                    "prompt_tokens": prompt,
                    "completion_tokens": place,
                    "cached_tokens": held,
                }
                await wire.send(sse({"text": text, "output_ids": ids[:place], "meta_info": info}))
            await asyncio.sleep(0 if ends else 0.002)
        if self.kind is LlamaServer:
            end = json.loads(llama_end(prompt=prompt, completion=len(ids)).partition(b"data: ")[2])
            await wire.send(sse({**end, "timings": {"cache_n": held}}))
        elif self.kind is VLLM:
            usage = {**counts, "prompt_tokens_details": {"cached_tokens": held}}
            await wire.send(
                sse({"choices": [{"index": 0, "text": "", "finish_reason": "stop"}], "usage": usage})
            )
        else:
            info = {"finish_reason": {"type": "stop"}, **counts, "cached_tokens": held}
            await wire.send(sse({"text": "", "output_ids": ids, "meta_info": info}))


@pytest.mark.parametrize("budget", [None, 0, 1, 3], ids=["free", "none", "spent at once", "spent"])
@pytest.mark.parametrize("kind", [LlamaServer, VLLM, SGLangGenerate])
def test_what_is_cached_is_said_rightly(
    kind: Any, budget: int | None, upstream: Callable[..., Upstream], serve: Callable[..., Any]
) -> None:
    """Also where the engine was stopped and went on by another request: a cold prompt is cold."""
    script = Caching(kind)
    engine = upstream(script, context=900)
    url = serve(create_app(tiny_model("qwen3").chat, kind(engine.url))).url
    script.read.clear()

    def cached(*messages: Any) -> tuple[int, int]:
        body = {
            "messages": messages,
            "max_tokens": 400,
            "continue_final_message": messages[-1]["role"] == "assistant",
            **({} if budget is None else {"thinking_budget_tokens": budget}),
        }
        found = httpx2.post(f"{url}/v1/chat/completions", json=body, timeout=20).json()
        usage = found["usage"]
        return usage["prompt_tokens_details"]["cached_tokens"], usage["prompt_tokens"]

    none, first = cached(HELLO)
    assert none == 0
    again, size = cached(HELLO, SAID, NEXT)
    prompts = [ids for ids in script.read if ids[-1] != script.close_id]
    shared = next(
        (at for at, (one, other) in enumerate(zip(prompts[0], prompts[1], strict=False)) if one != other),
        first,
    )
    assert 0 < shared <= first and again == shared < size

    begun = {"role": "assistant", "content": None, "reasoning_content": "Hm"}
    for messages, asked_once in (
        ([{"role": "user", "content": "Something else."}], budget is None),
        ([{"role": "user", "content": "Once more."}, begun], budget in (None, 0)),
    ):
        script.had.clear()
        other, _ = cached(*messages)
        late = (
            kind is VLLM and not asked_once
        )  # it says so at its end, and has read the prompt itself by then
        assert script.had[0] > 0 and other == (0 if late else script.had[0])
