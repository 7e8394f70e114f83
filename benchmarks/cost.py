"""Measures what the most expensive requests that the gateway allows cost: memory, CPU, and the delay of others.

    python benchmarks/cost.py

Each hostile request goes to a gateway of its own process, over a scripted engine, beside another client that asks for
short answers. Shown are the growth of the process's peak memory, and how long its event loop was held at most, in
milliseconds of the process's CPU: that is what all others wait, and it does not depend on other work of the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from gateway import Process, settled

MEGA = 1_000_000


def tool(parameters: dict[str, Any]) -> dict[str, Any]:
    function = {"name": "f", "parameters": {"type": "object", "properties": parameters}}
    return {**says("Hi"), "tools": [{"type": "function", "function": function}]}


def says(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


def requests() -> dict[str, dict[str, Any] | bytes]:
    """The requests by their names; each is just within its limits, or just beyond one."""
    words = "the weather in Oslo is often cold and wet "
    return {
        "prompt of 1.9 M characters of prose": says(words * (1_900_000 // len(words))),
        "prompt of 250,000 emoji": says("\U0001f600" * 249_000),
        "prompt of 1.3 M emoji (413)": says("\U0001f600" * 1_300_000),
        "16 MB of text with commas": {**says("Hi"), "user": ("x" * 50 + ",") * 300_000},
        "64 answers": {**says("Hi"), "n": 64, "stream": True},
        "16 MB of text in one field": {**says("Hi"), "user": "x" * (16 * MEGA)},
        "49,000 empty lists": {**says("Hi"), "user": [[]] * 49_000},
        "99,000 messages that are none (400)": {"messages": [0] * 99_000},
        "40,000 messages": {"messages": [{"role": "user", "content": "x"}] * 40_000},
        "arguments of 3.6 M characters (413)": {
            "messages": [
                *says("Hi")["messages"],
                {
                    "role": "assistant",
                    "tool_calls": [
                        {"function": {"name": "f", "arguments": '{"a": [' + "[]," * 1_200_000 + "0]}"}}
                    ],
                },
            ]
        },
        "enum of 450 kB": tool({"a": {"enum": [f"one of the values {i}" for i in range(17_000)]}}),
        "properties of 450 kB": tool(
            {f"p{i}": {"type": "string", "description": "one of many"} for i in range(6_500)}
        ),
        "ranges of 450 kB": tool(
            {
                f"p{i}": {
                    "type": "integer",
                    "minimum": i,
                    "maximum": 10**15 + i,
                    "description": "one of many",
                }
                for i in range(5_000)
            }
        ),
        "patterns of 450 kB": tool(
            {
                f"p{i}": {
                    "type": "string",
                    "pattern": f"^(a|b)*{i}[0-9]{{1,30}}x$",
                    "description": "one of many",
                }
                for i in range(5_000)
            }
        ),
    }


def post(port: int, body: bytes) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
    response = connection.getresponse()
    response.read()
    connection.close()
    return response.status


def peak(pid: int) -> float:
    """The peak of a process's resident memory, in MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1e3


def asks(port: int, over: threading.Event) -> None:
    """Another client: short requests, until ``over`` is set."""
    body = json.dumps({**says("Hi"), "max_tokens": 2}).encode()
    while not over.is_set():
        post(port, body)
        time.sleep(0.01)


def held(beats: Path, since: float) -> list[float]:
    """For how many milliseconds of CPU the event loop was held, each time, the longest first."""
    rows = [map(float, line.split()) for line in beats.read_text(encoding="utf-8").splitlines()]
    return sorted((took * 1e3 for at, took in rows if at > since), reverse=True) or [0.0]


def measure(tokenizer: str | None, only: str) -> None:
    engine = Process("engine")
    print("| request | status | CPU s | MB more | others wait, ms of CPU, at most | the tenth longest |")
    print("|---|---:|---:|---:|---:|---:|")
    with TemporaryDirectory() as folder:
        beats = Path(folder) / "beats"
        for name, body in requests().items():
            if only not in name:
                continue
            more = () if tokenizer is None else ("--tokenizer", tokenizer)
            server = Process("gateway", "--engine", engine.port, "--beats", str(beats), *more)
            over = threading.Event()
            other = threading.Thread(target=asks, args=(server.port, over))
            try:
                asyncio.run(settled(server.port, "gateway"))
                raw = body if isinstance(body, bytes) else json.dumps({**body, "max_tokens": 2}).encode()
                for _ in range(20):
                    post(server.port, json.dumps({**says("Hi"), "max_tokens": 2}).encode())
                before, cpu = peak(server.process.pid), server.cpu()
                other.start()
                since = time.monotonic()
                status = post(server.port, raw)
                spent, grown = server.cpu() - cpu, peak(server.process.pid) - before
                late = held(beats, since)
                tenth = late[min(9, len(late) - 1)]
                row = (name, status, f"{spent:.1f}", f"{grown:.0f}", f"{late[0]:.0f}", f"{tenth:.0f}")
                print("| " + " | ".join(map(str, row)) + " |", flush=True)
            finally:
                over.set()
                other.join()
                server.close()
    engine.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--tokenizer", help="a tokenizer.json (its markers must be those of qwen3); default: a tiny one"
    )
    parser.add_argument("--only", default="", help="measure the requests with this in their name")
    options = parser.parse_args()
    measure(options.tokenizer, options.only)


if __name__ == "__main__":
    main()
