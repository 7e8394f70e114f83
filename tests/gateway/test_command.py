"""``chatparsers serve`` as a user starts it: one process, one engine, and errors in one line."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import fields
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import StringIO
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from scripted import Llama, Upstream, Wire, soon
from servers import flags, free_port, listens, tiny_model

pytest.importorskip("starlette", reason="the package starlette is not installed")

import httpx2

from chatparsers import CORE
from chatparsers.cli.arguments import build_parser
from chatparsers.cli.main import main
from chatparsers.gateway import Settings
from chatparsers.gateway.kind import _ONLY, kind_at
from chatparsers.operate.settings import settings_of
from chatparsers.operate.team import KINDS
from chatparsers.sessions.session import Limits
from chatparsers.sessions.sessions import Rules

NOWHERE = "http://127.0.0.1:9"
SERVED = f"{NOWHERE} --kind llama-server"
MISTAKES: dict[str, str] = {
    "": "which engine? Say its URL",
    NOWHERE: "which model? Say --model",
    f"{NOWHERE} --model x/": "x/: no such file or folder",
    f"{NOWHERE} --model qwen3": "qwen3: expected a model's folder",
    f"{NOWHERE} MODEL": "no engine answers at http://127.0.0.1:9: start it",
    f"{NOWHERE} --gguf x": "--gguf runs the model in this process",
    "--host 0.0.0.0": "--host: without a key anybody who reaches 0.0.0.0 may use the models: say --api-key",
    "foo": "foo: expected a URL such as http://127.0.0.1:8080",
    "--port 99999": "--port: expected a port from 1 to 65535, found 99999",
    "--api-key-file no/such": "--api-key-file: no/such: expected a file with a key in each line",
    f"--api-key-file {sys.executable}": f"{sys.executable}: expected a file with a key in each line",
    "--keep-alive 0": "expected a number above 0, found '0'",
    "--log no/such/log": "--log: no/such/log: there is no such folder",
    "--tls-key k.pem": "--tls-key: expected a certificate and its private key, found one of both",
    "--port 0": "expected a whole number above 0, found '0'",
    **{
        f"{SERVED} --model x --host 0.0.0.0 --api-key '{key}'": "--api-key: expected a key"
        for key in ("", "   ")
    },
    # Settings that could never match.
    f"{SERVED} MODEL --cors chat.example": (
        "--cors: expected an origin such as https://chat.example, or *, found 'chat.example'"
    ),
    f"{SERVED} MODEL --allowed-hosts ai.example:80": (
        "--allowed-hosts: expected a name such as gateway.example, without a port, found 'ai.example:80'"
    ),
    f"{SERVED} MODEL --pass-on tokenize": (
        "--pass-on: expected a path such as /v1/embeddings, found 'tokenize'"
    ),
}


@pytest.mark.parametrize("command", MISTAKES)
def test_a_mistake_is_said_in_one_line(command: str, model: dict[str, str], capsys: Any) -> None:
    words = [one for word in shlex.split(command) for one in (flags(model) if word == "MODEL" else [word])]
    assert main(["serve", *words]) == 2
    printed = capsys.readouterr().err
    assert MISTAKES[command] in printed and printed.count("\n") == 1


@pytest.mark.parametrize("key", ["", "   "])
def test_an_empty_key_starts_nothing(key: str, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setenv("CHATPARSERS_API_KEY", key)
    assert main(["serve", *shlex.split(SERVED), "--model", "x", "--host", "0.0.0.0"]) == 2
    assert "$CHATPARSERS_API_KEY: expected a key" in capsys.readouterr().err
    with pytest.raises(ValueError, match="api_key"):
        Settings(api_key=key)


def test_an_engine_that_is_not_there(model: dict[str, str], capsys: Any, upstream: Any) -> None:
    """Or still loads its model, or is of another kind: what was asked, and what to do."""

    def said(url: str) -> str:
        engine = ["--upstream", url, "--upstream-kind", "llama-server", "--port", str(free_port())]
        assert main(["serve", *engine, *flags(model)]) == 2
        printed = str(capsys.readouterr().err)
        assert printed.count("\n") == 1
        return printed

    waits = "(--wait 300 waits so many seconds for one that starts)\n"
    assert (
        said("http://127.0.0.1:9")
        == f"chatparsers: no engine answers at http://127.0.0.1:9: start it, or name its URL {waits}"
    )
    answers = {503: "Loading model", 404: "File Not Found"}
    for status, message in answers.items():

        async def script(
            path: str, body: Any, wire: Wire, status: int = status, message: str = message
        ) -> None:
            await wire.head(status, "application/json")
            await wire.send(json.dumps({"error": {"message": message}}).encode())
            await wire.end()

        answers[status] = said(upstream(script).url)
    assert answers[503] == f"chatparsers: the engine is busy: Loading model {waits}"
    assert (
        "answered /completion with the status 404: File Not Found; is the engine of this kind" in answers[404]
    )


def test_the_kind_of_engine_is_found_by_asking() -> None:
    """By what it alone serves."""
    for only in (*_ONLY, ""):

        class Engine(BaseHTTPRequestHandler):
            alone = only

            def do_GET(self) -> None:
                self.send_response(200 if self.path == self.alone else 404)
                self.end_headers()
                self.wfile.write(b'{"version": "1"}')

            def log_message(self, format: str, *args: Any) -> None:
                return

        with ThreadingHTTPServer(("127.0.0.1", 0), Engine) as server:
            Thread(target=server.serve_forever, daemon=True).start()
            url = f"http://127.0.0.1:{server.server_address[1]}/v1"
            assert kind_at(url, None, 0.0) == _ONLY.get(only)
            server.shutdown()


def test_every_setting_has_a_flag() -> None:
    """And each flag reaches its setting, and is on the page. Every kind of engine can be named."""
    for kind in KINDS:
        assert build_parser().parse_args(["serve", "--upstream-kind", kind]).kind == kind
    given = {
        "--name": "mine",
        "--max-body": "3",
        "--max-tools": "7",
        "--concurrency": "9",
        "--max-tokens": "11",
        "--keep-alive": "2.5",
        "--slow-client": "30",
        "--max-schemas": "13",
        "--max-prompt": "17",
        "--max-cpu": "1.5",
        "--body-timeout": "3.5",
        "--store": "kept",
        "--store-entries": "19",
        "--store-size": "23",
        "--store-age": "0.5",
        "--max-images": "29",
        "--rollouts": "runs",
        "--rollouts-name": "10.0.0.5:8000",
        "--history": "exact",
        "--ignore": "^now:.*",
        "--sessions": "31",
        "--session-answers": "37",
        "--session-ids": "41",
        "--session-lines": "43",
        "--session-idle": "4.5",
        "--rollouts-size": "47",
        "--api-key-file": "keys",
        "--seal-key-file": "seal",
        "--log": "log",
        "--thinking": "off",
        "--effort": "low",
        "--template-kwargs": '{"a": 1}',
    }
    lists = ["--allowed-hosts", "a.example", "b.example", "--cors", "*", "--pass-on", "/tokenize"]
    lists += ["--fetch-images", "img.example", "img.example:8443"]
    made = settings_of(
        build_parser().parse_args(
            [
                "serve",
                *flags(given),
                "--no-grammar",
                "--trust-ids",
                "--drop-unsupported",
                "--lenient-calls",
                "--strict-fields",
                "--strict-tools",
                *("--loops", "stop"),
                *("--cache-watch", "53"),
                "--pin-template-kwargs",
                *lists,
            ]
        ),
        "other",
        "key",
    )
    wanted = Settings(
        model="mine",
        api_key="key",
        max_body=3 * 1024 * 1024,
        max_tools=7,
        concurrency=9,
        max_tokens=11,
        keep_alive=2.5,
        slow_client=30.0,
        grammar=False,
        max_schemas=13,
        max_prompt=17,
        max_cpu=1.5,
        body_timeout=3.5,
        hosts=("a.example", "b.example"),
        cors=("*",),
        trust_ids=True,
        drop_unsupported=True,
        lenient_calls=True,
        strict_fields=True,
        strict_tools=True,
        loops="stop",
        cache_watch=53 * 1024 * 1024,
        store="kept",
        store_entries=19,
        store_size=23 * 1024 * 1024,
        store_age=43_200.0,
        max_images=29,
        fetch_images=("img.example", "img.example:8443"),
        rollouts="runs",
        rollouts_name="10.0.0.5:8000",
        rules=Rules(31, 47 * 1024 * 1024, 4.5, ("^now:.*",), "exact", Limits(37, 41, 43)),
        key_file="keys",
        seal_key_file="seal",
        log="log",
        passed=("/tokenize",),
        thinking=False,
        effort="low",
        template_kwargs={"a": 1},
        pin_template_kwargs=True,
    )
    assert made == wanted and settings_of(build_parser().parse_args(["serve"]), "m", None) == Settings("m")
    assert not [name for name in fields(Settings) if getattr(made, name.name) == name.default]
    docs = Path(__file__).parents[2] / "docs"
    page = "".join(
        (docs / name).read_text(encoding="utf-8") for name in ("tables/gateway-flags.md", "gateway.md")
    )
    with pytest.raises(SystemExit), redirect_stdout(StringIO()) as printed:
        build_parser().parse_args(["serve", "--help"])
    known = set(re.findall(r"--[a-z][a-z-]+", printed.getvalue())) - {"--help"}
    assert not [flag for flag in known if not re.search(rf"{flag}\b(?!-)", page)]


def test_a_server_that_answers_and_ends(model: dict[str, str], upstream: Callable[[Any], Upstream]) -> None:
    engine = upstream(Llama(["Hello."], tiny_model("qwen3").tokenizer))
    port = free_port()
    command = [
        *(sys.executable, "-m", "chatparsers", "serve", "--port", str(port), "--api-key", "k"),
        *("--upstream", engine.url, "--upstream-kind", "llama-server", *flags(model)),
    ]
    given = {**os.environ, "PYTHONUNBUFFERED": "1"}
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=given)
    try:
        assert server.stdout is not None
        line = server.stdout.readline()
        assert line == f"chatparsers: chat (Qwen3, Qwen2.5, QwQ; {CORE} core) at http://127.0.0.1:{port}/v1\n"
        url = f"http://127.0.0.1:{port}/v1/chat/completions"
        soon(lambda: listens(port))
        readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
        words = shlex.split(re.search(r"^curl (?:.*\\\n)*.*", readme, re.M)[0])  # type: ignore[index]
        name, _, value = words[words.index("-H") + 1].partition(":")
        headers = {"authorization": "Bearer k", name: value.strip()}
        answer = httpx2.post(url, content=words[words.index("-d") + 1], headers=headers, timeout=20)
        assert answer.json()["choices"][0]["message"]["content"] == "Hello."
        server.send_signal(signal.SIGINT)
        _, errors = server.communicate(timeout=20)
        assert server.returncode in (0, 130) and "Traceback" not in errors
    finally:
        server.kill()
        server.wait()
