"""Runs several gateways as docs/tables/fleets.md has them, before a scripted engine; run by hand.

    python tests/gateway/fleet.py litellm    # LiteLLM's proxy before two gateways, one of which is killed then
    python tests/gateway/fleet.py ray        # Ray Serve with two replicas

It needs an environment with chatparsers[gateway], gguf, openai, and litellm[proxy] or ray[serve]. The YAML and the
module are the page's own; only the ports are others.
"""

from __future__ import annotations

import argparse
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import openai

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from scripted import Llama, Upstream
from servers import tiny_model

PAGE = (HERE.parents[1] / "docs" / "tables" / "fleets.md").read_text(encoding="utf-8")
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
CITY = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": CITY}}]
KEY = "sk-local"
BIN = Path(sys.executable).parent


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def block(language: str, mark: str) -> str:
    """The code block of the page that has ``mark``."""
    found = [code for code in re.findall(rf"```{language}\n(.*?)```", PAGE, re.S) if mark in code]
    return str(found[0])


def ask(url: str, stream: bool) -> bool:
    """Whether the call came whole."""
    client = openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0, timeout=60)
    given: Any = {
        "model": "mine",
        "messages": [{"role": "user", "content": "Weather?"}],
        "tools": TOOLS,
        "stream": stream,
    }
    answer: Any = client.chat.completions.create(**given)
    if not stream:
        (call,) = answer.choices[0].message.tool_calls
        return bool(call.function.arguments == '{"city": "Oslo"}')
    text, reason = "", None
    for chunk in answer:
        for choice in chunk.choices:
            reason = choice.finish_reason or reason
            text += "".join(call.function.arguments or "" for call in choice.delta.tool_calls or ())
    return text == '{"city": "Oslo"}' and reason == "tool_calls"


def many(url: str, number: int) -> str:
    """How many of so many requests, half of them streamed, were answered rightly."""

    def one(way: int) -> str:
        try:
            return "whole" if ask(url, stream=way % 2 == 0) else "wrong"
        except openai.OpenAIError as error:
            return type(error).__name__

    with ThreadPoolExecutor(8) as pool:
        return ", ".join(f"{count} {kind}" for kind, count in Counter(pool.map(one, range(number))).items())


def counted(url: str) -> int:
    """The chat requests with the status 200 that ``/metrics`` shows."""
    text = urlopen(f"{url}/metrics", timeout=10).read().decode()
    found = re.findall(r'^chatparsers_requests_total\{api="chat",status="200"\} (\d+)', text, re.M)
    return sum(map(int, found))


def soon(check: Callable[[], object], seconds: int) -> None:
    until = time.monotonic() + seconds
    while True:
        try:
            if check():
                return
        except OSError:
            pass
        assert time.monotonic() < until, "it did not start in time"
        time.sleep(0.5)


@contextmanager
def running(command: list[str], log: Path, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, **options)
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()


def litellm(folder: Path, engine: Upstream) -> None:
    ports = [free_port(), free_port()]
    proxy = free_port()
    config = block("yaml", "router_settings")
    for known, port in zip(("8001", "8002"), ports, strict=True):
        config = config.replace(f":{known}/", f":{port}/")
    (folder / "config.yaml").write_text(config)

    def gateway(port: int) -> list[str]:
        serve = [sys.executable, "-m", "chatparsers", "serve", "--port", str(port), "--model", "model.gguf"]
        return [*serve, "--upstream", engine.url, "--upstream-kind", "llama-server"]

    url = f"http://127.0.0.1:{proxy}"
    command = [str(BIN / "litellm"), "--config", "config.yaml", "--port", str(proxy), "--host", "127.0.0.1"]
    with (
        running(gateway(ports[0]), folder / "one.log", cwd=folder) as first,
        running(gateway(ports[1]), folder / "two.log", cwd=folder),
        running(command, folder / "litellm.log", cwd=folder, env={**os.environ, "LITELLM_MASTER_KEY": KEY}),
    ):
        for port in ports:
            soon(lambda port=port: urlopen(f"http://127.0.0.1:{port}/ready").status == 200, 60)  # type: ignore[misc]
        soon(lambda: urlopen(f"{url}/health/liveliness").status == 200, 180)
        print("80 requests:", many(url, 80))
        print("counted by the gateways:", [counted(f"http://127.0.0.1:{port}") for port in ports])
        first.kill()
        first.wait()
        print("20 requests, one gateway killed:", many(url, 20))
        print("counted by the other:", counted(f"http://127.0.0.1:{ports[1]}"))
        asked = Request(f"{url}/metrics/", headers={"authorization": f"Bearer {KEY}"})
        text = urlopen(asked, timeout=10).read().decode()
        ours = re.findall(r"^(litellm_proxy_total_requests_metric_total)\{[^\n]*\} ([\d.]+)", text, re.M)
        print("LiteLLM's own /metrics counts:", sum(float(count) for _, count in ours))


def ray(folder: Path, engine: Upstream) -> None:
    port = free_port()
    code = block("python", "serve.deployment").replace("http://127.0.0.1:8080", engine.url)
    (folder / "module.py").write_text(code)
    several = folder / "metrics"
    several.mkdir()
    given = {
        **os.environ,
        "PROMETHEUS_MULTIPROC_DIR": str(several),
        "PYTHONPATH": str(folder),
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    options = f"from ray import serve; serve.start(http_options={{'port': {port}}})"
    run = f"{options}; import module; serve.run(module.app, blocking=True)"
    url = f"http://127.0.0.1:{port}"
    with running([sys.executable, "-c", run], folder / "ray.log", cwd=folder, env=given):
        soon(lambda: urlopen(f"{url}/ready").status == 200, 240)
        print("80 requests:", many(url, 80))
        each = [done for path in several.glob("counter_*.db") if (done := answered(path))]
        print("counted by any replica:", {counted(url) for _ in range(6)}, "| of each replica:", each)


def answered(path: Path) -> int:
    """The chat requests with the status 200 that one process has counted in its file."""
    from prometheus_client.mmap_dict import MmapedDict

    found = MmapedDict.read_all_values_from_file(str(path))  # type: ignore[no-untyped-call]
    wanted = ("chatparsers_requests_total", '"chat"', '"200"')
    return sum(int(value) for key, value, *_ in found if all(word in key for word in wanted))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("litellm", "ray"))
    what = parser.parse_args().what
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        folder = Path(place)
        tiny = [sys.executable, "-m", "chatparsers.testing.tiny", "qwen3", "model.gguf"]
        subprocess.run(tiny, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        engine = Upstream(Llama([CALL], tiny_model("qwen3").tokenizer))
        try:
            (litellm if what == "litellm" else ray)(folder, engine)
        except BaseException:
            for log in folder.glob("*.log"):
                print(f"== {log.name}", log.read_text(errors="replace")[-3000:], sep="\n")
            raise
        finally:
            engine.close()


if __name__ == "__main__":
    main()
