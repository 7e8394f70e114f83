"""The judge over real engines: llama-server, our gateway before it, vLLM's render server, SGLang's parsers.

An engine that is not installed is skipped. What is wrong in an engine changes with its version; what is tested is that
the judge gets its raw text, judges every answer, and charges our gateway with nothing.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

httpx2 = pytest.importorskip("httpx2", reason="the packages of the gateway are not installed")
pytest.importorskip("jsonschema", reason="the package jsonschema is not installed")

from servers import Server
from tinies import tiny

import chatparsers
from chatparsers.gateway import LlamaServer, Settings, create_app
from chatparsers.verify import Verdict
from chatparsers.verify.plan import Plan
from chatparsers.verify.run import dictation

LLAMA = os.environ.get("CHATPARSERS_LLAMA_SERVER") or shutil.which("llama-server")
VLLM = Path(sys.executable).with_name("vllm")
FORMATS = ("qwen3", "gpt-oss")
NOISE: dict[str, Any] = {"extra": {"temperature": 0.7, "seed": 11}}


@contextmanager
def started(*command: str, alive: str = "/health", seconds: int = 300) -> Iterator[str]:
    """The address of a server that a command starts; ``PORT`` in it is a free port."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    process = subprocess.Popen(
        [str(port) if part == "PORT" else part for part in command],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1", "VLLM_TARGET_DEVICE": "cpu"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + seconds
        while not _answers(f"{url}{alive}"):
            assert process.poll() is None and time.monotonic() < until, "the server did not start"
            time.sleep(0.2)
        yield url
    finally:
        process.terminate()
        process.wait(30)


def _answers(url: str) -> bool:
    try:
        return bool(httpx2.get(url, timeout=5).status_code == 200)
    except httpx2.HTTPError:
        return False


@contextmanager
def llama_server(name: str, folder: Path) -> Iterator[tuple[str, chatparsers.Chat]]:
    pytest.importorskip("gguf", reason="the package gguf is not installed")
    if LLAMA is None:
        pytest.skip("llama-server is not installed: tests/hosts/install llama-server")
    path = tiny(name).write_gguf(folder / f"{name}.gguf")
    with started(
        LLAMA, "-m", str(path), "--jinja", "--port", "PORT", "-c", "8192", "-np", "1", "-t", "1"
    ) as url:
        yield url, chatparsers.load(path)


def all_judged(verdict: Verdict, raw: str, answers: int) -> None:
    assert raw in verdict.facts["raw"] and verdict.facts["answers"] >= answers
    assert verdict.judged["content-differs"] > 10 and verdict.status() in (0, 1)


@pytest.mark.parametrize("name", FORMATS)
def test_llama_server_tells_its_raw_text(name: str, tmp_path: Path) -> None:
    with llama_server(name, tmp_path) as (url, chat):
        verdict = chatparsers.verify(url, chat, **NOISE)
    all_judged(verdict, "verbose", 30)
    assert verdict.facts["engine"] == "llama-server" and verdict.judged["nothing-enforced"]
    assert not [row for row in verdict.rows if row.code == "prompt-differs" and row.blame == "server"]


@pytest.mark.parametrize("name", FORMATS)
def test_our_gateway_before_llama_server_is_charged_with_nothing(name: str, tmp_path: Path) -> None:
    with llama_server(name, tmp_path) as (upstream, chat):
        server = Server(create_app(chat, LlamaServer(upstream), Settings(model="m")))
        try:
            verdict = chatparsers.verify(server.url, chat, answer_tokens=400, **NOISE)
        finally:
            server.close()
    all_judged(verdict, "return_token_ids", 30)
    assert not verdict.blamed("server", "likely"), verdict


def test_vllm_reads_what_is_dictated(tmp_path: Path) -> None:
    if not VLLM.exists():
        pytest.skip("vLLM is not installed: tests/hosts/install vllm")
    folder = tiny("qwen3").write_folder(tmp_path / "model")
    flags = ("--enable-auto-tool-choice", "--tool-call-parser", "hermes", "--reasoning-parser", "qwen3")
    command = (
        str(VLLM),
        "launch",
        "render",
        str(folder),
        "--served-model-name",
        "m",
        "--port",
        "PORT",
        *flags,
    )
    with started(*command) as url:
        verdict = dictation(url, chatparsers.load(folder), Plan())
    all_judged(verdict, "derender", 30)


def test_sglang_reads_what_is_dictated(tmp_path: Path) -> None:
    """Its server needs a GPU to be imported. Its own parsers answer here, behind bodies of its two endpoints."""
    if importlib.util.find_spec("sglang") is None:
        pytest.skip("SGLang is not installed: tests/hosts/install sglang")
    from fastapi import FastAPI
    from stand_ins import stand_in

    stand_in()
    from sglang.srt.entrypoints.openai.protocol import Tool
    from sglang.srt.function_call.function_call_parser import FunctionCallParser
    from sglang.srt.parser.reasoning_parser import ReasoningParser

    app = FastAPI()
    app.get("/v1/models")(lambda: {"data": [{"id": "m", "owned_by": "sglang"}]})
    app.get("/server_info")(lambda: {"tool_call_parser": "qwen25", "reasoning_parser": "qwen3"})

    @app.post("/separate_reasoning")
    def separate(body: dict[str, Any]) -> Any:
        thought, rest = ReasoningParser(model_type=body["reasoning_parser"]).parse_non_stream(body["text"])
        return {"reasoning_text": thought, "text": rest}

    @app.post("/parse_function_call")
    def parse(body: dict[str, Any]) -> Any:
        parser = FunctionCallParser([Tool(**tool) for tool in body["tools"]], body["tool_call_parser"])
        rest, calls = parser.parse_non_stream(body["text"])
        return {"normal_text": rest, "calls": [call.model_dump() for call in calls]}

    server = Server(app)
    try:
        verdict = dictation(server.url, tiny("qwen3").chat, Plan())
    finally:
        server.close()
    all_judged(verdict, "parse_function_call", 30)
