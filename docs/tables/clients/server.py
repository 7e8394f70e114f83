"""Serves the shapes of ``shapes.json`` as event streams: ``/SHAPE/v1/chat/completions``, ``/SHAPE/v1/messages``."""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

SHAPES: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("shapes.json").read_text("utf-8"))


def chat_events(shape: dict[str, Any]) -> list[str]:
    """The lines of OpenAI's chat stream: each item is a delta, or an object with ``finish``, ``usage`` or ``raw``."""
    lines = []
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    for item in shape["chunks"]:
        if "usage" in item:
            body = {**head, "choices": [], "usage": item["usage"]}
        else:
            choice = {"index": 0, "delta": item.get("delta", {}), "finish_reason": item.get("finish")}
            body = {**head, "choices": [choice]}
        lines.append(f"data: {json.dumps(body)}\n\n")
    return [*lines, "data: [DONE]\n\n"]


def message_events(shape: dict[str, Any]) -> list[str]:
    """The lines of Anthropic's stream: items are blocks with their deltas, and the last has ``stop``."""
    usage = {"input_tokens": 7, "output_tokens": 1}
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "usage": usage,
    }
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None}}
    ]
    blocks = [item for item in shape["chunks"] if "block" in item]
    for index, item in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": item["block"]})
        events += (
            {"type": "content_block_delta", "index": index, "delta": delta} for delta in item["deltas"]
        )
        if not item.get("open"):
            events.append({"type": "content_block_stop", "index": index})
    end = shape["chunks"][-1]
    delta = {"stop_reason": end["stop"], "stop_sequence": None}
    events.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 9}})
    events.append({"type": "message_stop"})
    return [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]


class Handler(BaseHTTPRequestHandler):
    """One shape for each first part of the path."""

    def do_POST(self) -> None:
        """Answers with the events of the shape."""
        self.rfile.read(int(self.headers.get("content-length", 0)))
        name = self.path.split("/")[1]
        events = message_events if self.path.split("?")[0].endswith("/messages") else chat_events
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for line in events(SHAPES[name]):
            self.wfile.write(line.encode())
            self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    sys.stdout.flush()
    server.serve_forever()
