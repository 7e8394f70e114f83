"""Measures what the most expensive requests that the gateway allows cost: memory, CPU, and the delay of others.

    python benchmarks/cost.py

Each hostile request goes to a gateway of its own process, over a scripted engine. Meanwhile another client asks for a
short answer again and again; what is shown is the longest that it waited, less what it waits alone, and the growth of
the process's peak memory.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import statistics
import threading
import time
from pathlib import Path
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
        "prompt of 1.9 M emoji (413)": says("\U0001f600" * 1_900_000),
        "16 MB of text in one field": {**says("Hi"), "user": "x" * (16 * MEGA)},
        "49,000 empty lists": {**says("Hi"), "user": [[]] * 49_000},
        "99,000 messages that are none (400)": {"messages": [0] * 99_000},
        "40,000 messages": {"messages": [{"role": "user", "content": "x"}] * 40_000},
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
                for i in range(6_500)
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


def waits(port: int, over: threading.Event) -> list[float]:
    """How many milliseconds each of some short requests takes, until ``over`` is set."""
    found = []
    body = json.dumps({**says("Hi"), "max_tokens": 2}).encode()
    while not over.is_set():
        start = time.perf_counter()
        post(port, body)
        found.append((time.perf_counter() - start) * 1e3)
        time.sleep(0.01)
    return found


def measure(tokenizer: str | None, only: str) -> None:
    engine = Process("engine")
    print("| request | status | seconds | CPU s | MB more | others wait at most, ms | 99 % |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name, body in requests().items():
        if only not in name:
            continue
        more = () if tokenizer is None else ("--tokenizer", tokenizer)
        server = Process("gateway", "--engine", engine.port, *more)
        try:
            asyncio.run(settled(server.port, "gateway"))
            raw = body if isinstance(body, bytes) else json.dumps({**body, "max_tokens": 2}).encode()
            for _ in range(20):
                post(server.port, json.dumps({**says("Hi"), "max_tokens": 2}).encode())
            before, cpu = peak(server.process.pid), server.cpu()
            over = threading.Event()
            late: list[float] = []
            other = threading.Thread(
                target=lambda late=late, over=over, port=server.port: late.extend(waits(port, over))
            )
            other.start()
            time.sleep(0.3)
            alone = len(late)
            start = time.perf_counter()
            status = post(server.port, raw)
            took = time.perf_counter() - start
            over.set()
            other.join()
            usual = statistics.median(late[:alone] or late)
            worst, most = max(late), sorted(late)[int(len(late) * 0.99) - 1]
            spent, grown = server.cpu() - cpu, peak(server.process.pid) - before
            row = (
                name,
                status,
                f"{took:.1f}",
                f"{spent:.1f}",
                f"{grown:.0f}",
                f"{worst - usual:.0f}",
                f"{most - usual:.0f}",
            )
            print("| " + " | ".join(map(str, row)) + " |", flush=True)
        finally:
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
