"""Wishes for thoughts at the gateway: what was used is said, and what cannot be is done by a budget, or refused."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the package starlette is not installed")

from servers import Server, tiny_model
from three_apis import PATHS, post

from chatparsers.chat.chat import Chat
from chatparsers.gateway import Batch, End, Engine, Job, Settings, create_app

OFF: dict[str, dict[str, Any]] = {
    "chat": {"reasoning_effort": "none"},
    "responses": {"reasoning": {"effort": "none"}},
    "messages": {"thinking": {"type": "disabled"}},
}
FIELDS = {"chat": "reasoning_effort", "responses": "reasoning.effort", "messages": "thinking"}
HIGH: dict[str, dict[str, Any]] = {
    "chat": {"reasoning_effort": "high"},
    "responses": {"reasoning": {"effort": "high"}},
    "messages": {"output_config": {"effort": "high"}},
}


class Says(Engine):
    """Says one thing. ``jobs``: what it was asked. ``ids``: whether it gives ids."""

    def __init__(self, format: str, ids: bool = True) -> None:
        self.model, self.ids = tiny_model(format), ids
        self.dialect = None
        self.jobs: list[Job] = []

    async def start(self, chat: Chat) -> list[str]:
        return []

    async def generate(self, job: Job) -> AsyncGenerator[Batch, None]:
        self.jobs.append(job)
        ids = list(self.model.tokenizer.encode("Yes", add_special_tokens=False).ids)
        yield Batch(ids=ids) if self.ids else Batch("Yes")
        yield Batch(end=End("stop"))


@pytest.fixture
def gateway() -> Any:
    made: list[Server] = []

    def make(format: str, ids: bool = True, **settings: Any) -> tuple[Says, str]:
        engine = Says(format, ids)
        made.append(Server(create_app(engine.model.chat, engine, Settings(**settings))))
        return engine, made[-1].url

    yield make
    for server in made:
        server.close()


@pytest.mark.parametrize("api", PATHS)
def test_what_was_used_stands_in_the_header_and_the_log(gateway: Any, api: str, tmp_path: Path) -> None:
    engine, url = gateway("deepseek-v4", log=str(tmp_path / "log"))
    chat = engine.model.chat
    for more, level in (
        ({}, None),
        (HIGH[api], "on"),
        (OFF[api], "off"),
        ({"stream": True, **HIGH[api]}, "on"),
    ):
        answer = post(url, api, **more)
        assert answer.status_code == 200, answer.text
        assert answer.headers.get("x-chatparsers-thoughts") == level
        effort = {None: None, "on": "high", "off": "none"}[level]
        right = chat.prepare([{"role": "user", "content": "Hi"}], effort=effort)
        assert engine.jobs[-1].turn.prompt == right.prompt
        line = json.loads((tmp_path / "log").read_text("utf-8").splitlines()[-1])
        assert line.get("thoughts") == level


@pytest.mark.filterwarnings("ignore:thinking=False")  # the template has no switch
@pytest.mark.parametrize("api", PATHS)
def test_a_model_that_always_thinks_gets_no_tokens_for_it_or_the_request_says_why(
    gateway: Any, api: str
) -> None:
    engine, url = gateway("minimax-m2")
    answer = post(url, api, **OFF[api])
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-chatparsers-thoughts"] == "unchanged; budget=0"
    assert engine.jobs[-1].prompt[-1] == engine.model.tokenizer.token_to_id("</think>")
    engine, url = gateway("minimax-m2", ids=False)
    answer = post(url, api, **OFF[api])
    assert answer.status_code == 400
    assert "always thinks" in answer.text and FIELDS[api] in answer.text
    assert post(url, api, **HIGH[api]).status_code == 200
    engine, url = gateway("minimax-m2", ids=False, drop_unsupported=True)
    assert post(url, api, **OFF[api]).status_code == 200


def test_an_operators_default_stands_for_what_a_request_leaves_open(gateway: Any) -> None:
    def used(url: str, **more: Any) -> str | None:
        found: str | None = post(url, "chat", **more).headers.get("x-chatparsers-thoughts")
        return found

    _, url = gateway("deepseek-v4", thinking=True)
    assert used(url) == "on"
    assert used(url, reasoning_effort="none") == "off"
    assert used(url, enable_thinking=False) == "off"
    assert used(url, chat_template_kwargs={"enable_thinking": False}) == "off"
    engine, url = gateway("deepseek-v4", effort="max", template_kwargs={"thinking": False})
    assert used(url) == "on"  # a variable wins for itself
    assert engine.jobs[-1].turn.prompt.endswith("</think>")
    assert used(url, chat_template_kwargs={"thinking": True}) is None
    assert engine.jobs[-1].turn.prompt.endswith("<think>")
    engine, url = gateway("deepseek-v4", thinking=False, pin_template_kwargs=True)
    assert used(url, reasoning_effort="max") == "off"
    assert used(url, thinking={"type": "enabled"}) == "off"
