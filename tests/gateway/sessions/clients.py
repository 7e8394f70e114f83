"""Clients of the three APIs, whole or streamed: a talk is a system text and the items that the API has for all else."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx2

TOOLS = [
    {
        "name": name,
        "description": "Does it.",
        "schema": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city"],
        },
    }
    for name in ("get_weather", "book")
]
Items = list[dict[str, Any]]


@dataclass
class Reply:
    """An answer as its client has it: what it sends back, the ids of its calls, and what the headers say."""

    items: Items
    calls: list[str]
    text: str
    session: dict[str, str] = field(default_factory=dict)


class Client:
    """``base``: the address of a session. ``key``: what it sends as its key. ``change``: what the client makes of the
    items before it sends them."""

    path: str
    name: str

    def __init__(self, base: str, *, stream: bool = False, key: str | None = None) -> None:
        self.base, self.stream = base, stream
        self.headers = {} if key is None else {"authorization": f"Bearer {key}"}

    def send(
        self, system: str, items: Items, tools: Sequence[dict[str, Any]] = TOOLS, **more: Any
    ) -> httpx2.Response:
        body = {"model": "m", "stream": self.stream, **self.body(system, items, tools), **more}
        return httpx2.post(f"{self.base}/{self.path}", json=body, headers=self.headers, timeout=60)

    def ask(self, system: str, items: Items, tools: Sequence[dict[str, Any]] = TOOLS, **more: Any) -> Reply:
        response = self.send(system, items, tools, **more)
        assert response.status_code == 200, response.text
        answer = self.joined(events(response.text)) if self.stream else response.json()
        reply = self.reply(answer)
        reply.session = {
            name.removeprefix("x-session-"): value
            for name, value in response.headers.items()
            if name.startswith("x-session-")
        }
        return reply

    def body(self, system: str, items: Items, tools: Sequence[dict[str, Any]]) -> dict[str, Any]:
        raise NotImplementedError

    def joined(self, found: Iterator[dict[str, Any]]) -> Any:
        raise NotImplementedError

    def reply(self, answer: Any) -> Reply:
        raise NotImplementedError

    def results(self, reply: Reply, texts: Sequence[str]) -> Items:
        raise NotImplementedError

    def user(self, text: str) -> dict[str, Any]:
        return {"role": "user", "content": text}


def events(text: str) -> Iterator[dict[str, Any]]:
    for line in text.splitlines():
        if line.startswith("data: ") and line != "data: [DONE]":
            yield json.loads(line[6:])


class Chat(Client):
    path, name = "chat/completions", "chat"

    def body(self, system: str, items: Items, tools: Sequence[dict[str, Any]]) -> dict[str, Any]:
        functions = [
            {
                "type": "function",
                "function": {
                    "name": tool["name"],
                    "description": tool["description"],
                    "parameters": tool["schema"],
                },
            }
            for tool in tools
        ]
        return {"messages": [{"role": "system", "content": system}, *items], "tools": functions}

    def joined(self, found: Iterator[dict[str, Any]]) -> Any:
        message: dict[str, Any] = {"role": "assistant", "content": None}
        calls: dict[int, dict[str, Any]] = {}
        for event in found:
            assert "error" not in event, event
            delta = event["choices"][0]["delta"] if event["choices"] else {}
            for name in ("content", "reasoning_content"):
                if delta.get(name):
                    message[name] = (message.get(name) or "") + delta[name]
            for call in delta.get("tool_calls") or ():
                new = {"id": call.get("id"), "type": "function", "function": {"name": "", "arguments": ""}}
                known = calls.setdefault(call["index"], new)["function"]
                known["name"] += call["function"].get("name") or ""
                known["arguments"] += call["function"].get("arguments") or ""
        if calls:
            message["tool_calls"] = [*calls.values()]
        return {"choices": [{"message": message}]}

    def reply(self, answer: Any) -> Reply:
        message = answer["choices"][0]["message"]
        calls = [call["id"] for call in message.get("tool_calls") or ()]
        return Reply([message], calls, message.get("content") or "")

    def results(self, reply: Reply, texts: Sequence[str]) -> Items:
        pairs = zip(reply.calls, texts, strict=True)
        return [{"role": "tool", "tool_call_id": id, "content": text} for id, text in pairs]


class Messages(Client):
    path, name = "messages", "messages"

    def body(self, system: str, items: Items, tools: Sequence[dict[str, Any]]) -> dict[str, Any]:
        listed = [
            {"name": tool["name"], "description": tool["description"], "input_schema": tool["schema"]}
            for tool in tools
        ]
        return {"system": system, "messages": items, "tools": listed, "max_tokens": 500}

    def joined(self, found: Iterator[dict[str, Any]]) -> Any:
        blocks: Items = []
        for event in found:
            assert event["type"] != "error", event
            if event["type"] == "content_block_start":
                blocks.append({**event["content_block"], "json": ""})
            elif event["type"] == "content_block_delta":
                delta, block = event["delta"], blocks[-1]
                for name, key in (("text", "text"), ("thinking", "thinking"), ("signature", "signature")):
                    if name in delta:
                        block[key] = block.get(key, "") + delta[name]
                block["json"] += delta.get("partial_json", "")
            elif event["type"] == "content_block_stop":
                text = blocks[-1].pop("json")
                if text:
                    blocks[-1]["input"] = json.loads(text)
        return {"content": blocks}

    def reply(self, answer: Any) -> Reply:
        content = answer["content"]
        calls = [block["id"] for block in content if block["type"] == "tool_use"]
        text = "".join(block["text"] for block in content if block["type"] == "text")
        return Reply([{"role": "assistant", "content": content}], calls, text)

    def results(self, reply: Reply, texts: Sequence[str]) -> Items:
        pairs = zip(reply.calls, texts, strict=True)
        blocks = [{"type": "tool_result", "tool_use_id": id, "content": text} for id, text in pairs]
        return [{"role": "user", "content": blocks}]


class Responses(Client):
    path, name = "responses", "responses"

    def body(self, system: str, items: Items, tools: Sequence[dict[str, Any]]) -> dict[str, Any]:
        listed = [
            {
                "type": "function",
                "name": tool["name"],
                "description": tool["description"],
                "parameters": tool["schema"],
            }
            for tool in tools
        ]
        return {"instructions": system, "input": items, "tools": listed, "store": False}

    def joined(self, found: Iterator[dict[str, Any]]) -> Any:
        *_, last = found
        assert last["type"] in ("response.completed", "response.incomplete"), last
        return last["response"]

    def reply(self, answer: Any) -> Reply:
        output = answer["output"]
        calls = [item["call_id"] for item in output if item["type"] == "function_call"]
        texts = [part["text"] for item in output if item["type"] == "message" for part in item["content"]]
        return Reply(output, calls, "".join(texts))

    def results(self, reply: Reply, texts: Sequence[str]) -> Items:
        pairs = zip(reply.calls, texts, strict=True)
        return [{"type": "function_call_output", "call_id": id, "output": text} for id, text in pairs]


CLIENTS: list[type[Client]] = [Chat, Messages, Responses]
Change = Callable[[Items, int], Items]
"""What a client makes of its items before it sends them; the number is that of the request."""
