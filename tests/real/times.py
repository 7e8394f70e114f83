"""The gateway's times by llama-server's: ``python tests/real/times.py FOLDER MODEL PAIRS OUT.json``.

Each pair asks both for the same answer, streamed, one after the other, and the next pair in the other order.
"""

from __future__ import annotations

import json
import signal
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import mean, median
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import httpx2
from processes import servers

_CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
_TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": _CITY}}]
KINDS: list[tuple[str, int, dict[str, Any]]] = [
    ("one stream of text", 1, {}),
    ("one stream of text, with a tool", 1, {"tools": _TOOLS}),
    ("four streams of text at once", 4, {}),
]


def timed(url: str, question: str, fields: dict[str, Any]) -> tuple[float, float]:
    """Seconds to the first token, and seconds a token after it."""
    message = {"role": "user", "content": question}
    body = {"messages": [message], "temperature": 0, "max_tokens": 40, "stream": True, **fields}
    begin = time.perf_counter()
    stamps = []
    with httpx2.stream(
        "POST", f"{url}/v1/chat/completions", json=body, timeout=1800, trust_env=False
    ) as answer:
        for line in answer.iter_lines():
            if line.startswith("data: {") and (choices := json.loads(line[6:]).get("choices")):
                stamps += [time.perf_counter()] * bool(choices[0]["delta"].get("content"))
    return stamps[0] - begin, (stamps[-1] - stamps[0]) / max(len(stamps) - 1, 1)


def several(url: str, streams: int, salt: str, fields: dict[str, Any]) -> tuple[float, float]:
    questions = [
        f"[{salt}-{one}] Tell me about the history of Oslo, in many words." for one in range(streams)
    ]
    with ThreadPoolExecutor(streams) as pool:
        found = list(pool.map(lambda question: timed(url, question, fields), questions))
    return mean(first for first, _ in found), mean(token for _, token in found)


def main(folder: Path, model: str, pairs: int, out: Path) -> None:
    rows = []
    path = folder / "models" / f"{model}.gguf"
    with tempfile.TemporaryDirectory() as logs, servers(folder, path, Path(logs), slots=4) as running:
        for what, streams, fields in KINDS:
            ratios = []
            for number in range(pairs):
                seen = {}
                for url in (running.engine, running.gateway)[:: 1 if number % 2 else -1]:
                    before = running.cpu()
                    times = several(url, streams, f"{what} {number} {url}", fields)
                    seen[url] = (*times, running.cpu() - before)
                ratios.append(
                    [
                        ours / own
                        for ours, own in zip(seen[running.gateway], seen[running.engine], strict=True)
                    ]
                )
            first, token, cpu = (round(median(column), 2) for column in zip(*ratios, strict=True))
            rows.append({"what": what, "pairs": pairs, "first": first, "token": token, "cpu": cpu})
            print(rows[-1], flush=True)
    out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the servers end too
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
