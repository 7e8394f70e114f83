"""What a browser sees of a gateway: its page with a chat, and the description of its paths."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from scripted import Llama, Upstream
from servers import tiny_model

pytest.importorskip("starlette", reason="the package starlette is not installed")

import httpx2

from chatparsers.gateway import LlamaServer, Settings, create_app

WROTE = '<think>\nHm.\n</think>\n\nI <b>look</b>.\n<tool_call>\n{"name": "f", "arguments": {"a": "ø"}}\n</tool_call>'
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
BROWSER = {"accept": "text/html,application/xhtml+xml"}


@pytest.fixture
def gateway(upstream: Callable[..., Upstream], serve: Callable[..., Any]) -> Callable[..., Any]:
    def make(**settings: Any) -> Any:
        model = tiny_model("qwen3")
        engine = upstream(Llama([WROTE], model.tokenizer))
        return serve(create_app(model.chat, LlamaServer(engine.url), Settings(**settings)))

    return make


def test_the_pages_ask_nobody_else(gateway: Callable[..., Any]) -> None:
    url = gateway(api_key="k").url
    for path in ("/", "/docs"):
        shown = httpx2.get(url + path, headers=BROWSER)
        assert shown.headers["content-type"].startswith("text/html")
        policy = shown.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
        assert not re.search(r"<script(?! src=)|<style|\son\w+=|style=", shown.text)
        for name in re.findall(r'(?:src|href)="([^"]+)"', shown.text):
            assert name == "data:," or httpx2.get(f"{url}/{name}").status_code == 200
    assert "innerHTML" not in httpx2.get(f"{url}/page.js").text


def test_the_root_tells_what_the_server_is(gateway: Callable[..., Any]) -> None:
    url = gateway(api_key="k", model="mine").url
    assert set(httpx2.get(url).json()) == {"name", "paths"}
    found = httpx2.get(url, headers={"authorization": "Bearer k"}).json()
    assert (found["model"], found["format"], found["keeps"]) == ("mine", "qwen3", False)


@pytest.mark.parametrize("store", [None, "memory"])
def test_the_description_has_every_path(gateway: Callable[..., Any], store: str | None) -> None:
    server = gateway(store=store, api_key="k")
    described = httpx2.get(f"{server.url}/openapi.json").json()
    there = {
        (route.path.replace(":path}", "}"), method.lower())
        for route in server.app.routes
        if hasattr(route, "methods")  # else it is a WebSocket
        for method in route.methods - {"HEAD"}
    }
    own = {(path, "get") for path in ("/", "/docs", "/openapi.json", "/page.css", "/page.js")}
    assert {
        (path, method) for path, methods in described["paths"].items() for method in methods
    } == there - own
    operations = [each for methods in described["paths"].values() for each in methods.values()]
    assert len({each["operationId"] for each in operations}) == len(operations)
    assert all(each["summary"] != "passed on to the engine" for each in operations)
    for path, methods in described["paths"].items():
        for operation in methods.values():
            assert [each["name"] for each in operation.get("parameters", [])] == re.findall(r"{(\w+)}", path)
            keyed = path.startswith(("/v1", "/api/")) and path != "/api/version"
            assert keyed == ("security" in operation)
    body = described["paths"]["/v1/chat/completions"]["post"]["requestBody"]
    fields = body["content"]["application/json"]["schema"]["properties"]
    asked = {
        "messages": [{"role": "user", "content": "Hi"}],
        **{name: None for name in fields if name != "messages"},
    }
    assert (
        httpx2.post(
            f"{server.url}/v1/chat/completions", json=asked | {"model": "m"}, headers={"x-api-key": "k"}
        ).status_code
        == 200
    )


def test_the_parts_of_an_answer_are_all_that_the_model_wrote(gateway: Callable[..., Any]) -> None:
    url = gateway().url + "/v1/chat/completions"
    asked = {"messages": [{"role": "user", "content": "Hi"}], "tools": [TOOL], "return_regions": True}
    whole = httpx2.post(url, json=asked).json()["choices"][0]["regions"]
    streamed = httpx2.post(url, json={**asked, "stream": True}).text
    chunks = [json.loads(line[6:]) for line in streamed.split("\n") if line.startswith("data: {")]
    assert [one["choices"][0]["regions"] for one in chunks if "regions" in one["choices"][0]] == [whole]
    assert "".join(part["text"] for part in whole) == WROTE
    assert {part["kind"] for part in whole} == {"reasoning", "content", "call", "markup"}
    assert "regions" not in httpx2.post(url, json={**asked, "return_regions": False}).json()["choices"][0]
