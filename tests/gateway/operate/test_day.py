"""A team's day: one gateway from one file, with two models, three keys, and all that happens to it.

Each step is one that an operator does or suffers; what the gateway says of it is a line, which ``pytest -s`` shows.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="the package uvicorn is not installed")

import httpx2
import tomli_w
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from databases import made_earlier
from scripted import Llama, Upstream, Wire, soon
from servers import free_port, listens, model_files, tiny_model

URL = "/v1/chat/completions"
ASK: dict[str, Any] = {"messages": [{"role": "user", "content": "Hello?"}]}


SLOW: dict[str, Any] = {"max_tokens": 77, "stream": True}
"""A request that the engine answers after some seconds."""


class Engine(Llama):
    """An engine that answers ``/health`` too, and is slow if it is asked to be."""

    async def __call__(self, path: str, body: dict[str, Any], wire: Wire) -> None:
        if path == "/health":
            await wire.head(200, "application/json")
            await wire.send(b"{}")
            await wire.end()
            return
        if body.get("n_predict") == SLOW["max_tokens"]:
            await asyncio.sleep(5)
        await super().__call__(path, body, wire)


class Gateway:
    """A gateway as a process, from a file."""

    def __init__(self, folder: Path, tables: dict[str, Any]) -> None:
        self.folder = folder
        self.port = free_port()
        self.file = folder / "gateway.toml"
        self.errors = folder / "errors"
        self.log = folder / "log"
        tables["server"] |= {"port": self.port, "log": str(self.log)}
        self.tables = tables
        self.url = f"http://127.0.0.1:{self.port}"

    def write(self) -> None:
        self.file.write_text(tomli_w.dumps(self.tables))

    def start(self, up: Callable[[], object] | None = None) -> None:
        """``up``: whether it is there."""
        self.write()
        with open(self.errors, "a") as errors:
            command = [sys.executable, "-m", "chatparsers", "serve", "--config", str(self.file)]
            self.process = subprocess.Popen(command, stderr=errors, stdout=subprocess.DEVNULL)
        soon(up or (lambda: listens(self.port)), 90)

    def again(self, said: str) -> str:
        """Has the file read again, and waits for what is said of it."""
        before = len(self.errors.read_text())
        self.process.send_signal(signal.SIGHUP)
        soon(lambda: said in self.errors.read_text()[before:], 60)
        return self.errors.read_text()[before:]

    def ask(self, key: str, model: str, status: int = 200, **more: Any) -> Any:
        head = {"authorization": f"Bearer sk-{key}"}
        found = httpx2.post(self.url + URL, json={**ASK, "model": model, **more}, headers=head, timeout=60)
        assert found.status_code == status, found.text
        return found

    def show(self, step: str) -> None:
        """What is said last of a step: in the log, or on standard error."""
        lines = self.log.read_text().splitlines()[-1:] if self.log.exists() else []
        print(f"{step}:", *lines, *self.errors.read_text().splitlines()[-1:], sep="\n  ")

    def said(self, key: str, model: str) -> str:
        return str(self.ask(key, model).json()["choices"][0]["message"]["content"])

    def lines(self, file: Path, count: int) -> list[Any]:
        soon(lambda: file.exists() and file.read_text().count("\n") >= count)
        return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.fixture
def engines(upstream: Callable[..., Upstream]) -> dict[str, Upstream]:
    return {
        name: upstream(Engine([f"I am {name}."], tiny_model("qwen3").tokenizer), context=500)
        for name in ("qwen", "oss", "spare")
    }


@pytest.fixture
def gateway(engines: dict[str, Upstream], tmp_path: Path) -> Iterator[Gateway]:
    files = model_files(tmp_path)
    model = {
        "files": files["--model"],
        "tokenizer": files["--tokenizer"],
        "format": "qwen3",
        "kind": "llama-server",
    }
    made = Gateway(
        tmp_path,
        {
            "server": {"drain": 20},
            "store": {"path": str(tmp_path / "kept")},
            "models": {
                "qwen": {**model, "aliases": ["gpt-4o"], "upstream": engines["qwen"].url},
                "oss": {**model, "upstreams": [engines["oss"].url, engines["spare"].url]},
            },
            "keys": {
                "team-a": {"key": "sk-a", "requests_per_minute": 6},
                "team-b": {"key": "sk-b", "models": ["oss"]},
                "team-c": {"key": "sk-c", "tokens_per_day": 8},
            },
        },
    )
    yield made
    made.process.kill()
    made.process.wait()


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="this system has no SIGHUP")
def test_a_day(gateway: Gateway, engines: dict[str, Upstream]) -> None:
    gateway.start()
    # The models and the keys of the file.
    assert gateway.said("a", "gpt-4o") == gateway.said("a", "qwen") == "I am qwen."
    assert gateway.said("b", "oss") in ("I am oss.", "I am spare.")
    gateway.ask("b", "qwen", 403)
    gateway.show("another model than the key's")
    # A budget is spent, a rate is reached.
    gateway.ask("c", "qwen")
    assert "tokens of this day" in gateway.ask("c", "qwen", 429).json()["error"]["message"]
    gateway.show("a budget is spent")
    for _ in range(4):
        gateway.ask("a", "qwen")
    assert int(gateway.ask("a", "qwen", 429).headers["retry-after"]) <= 10
    gateway.show("a rate is reached")
    first = gateway.lines(gateway.log, 11)
    assert [line["status"] for line in first] == [200, 200, 200, 403, 200, 429, 200, 200, 200, 200, 429]
    line = first[2]
    assert (line["key"], line["model"]) == ("team-b", "oss") and len(line["session"]) == 16
    assert line["engine"] in (engines["oss"].url, engines["spare"].url)
    assert line["cache"]["shared"] == 0 and line["prompt_tokens"] == 5 and line["completion_tokens"] > 1
    # The log is rotated: the next line is in the new file.
    os.rename(gateway.log, gateway.folder / "log.1")
    gateway.ask("b", "oss")
    assert len(gateway.lines(gateway.log, 1)) == 1 and len(gateway.lines(gateway.folder / "log.1", 11)) == 11
    gateway.show("the log is rotated")
    # A file with a mistake leaves what runs; a good one is served, while a stream goes on.
    gateway.tables["server"]["loops"] = "never"
    gateway.write()
    assert "what runs stays as it is" in gateway.again("invalid choice: 'never'")
    gateway.show("a file with a mistake")
    assert gateway.said("b", "oss")
    gateway.tables["server"]["loops"] = "tell"
    gateway.tables["server"]["concurrency"] = 7
    gateway.tables["keys"]["team-d"] = {"key": "sk-d"}
    del gateway.tables["keys"]["team-b"]
    gateway.tables["models"]["oss"]["thinking"] = "on"
    gateway.write()
    with ThreadPoolExecutor() as pool:
        running = pool.submit(gateway.ask, "b", "oss", **SLOW)
        soon(lambda: "requests 1.0" in httpx2.get(f"{gateway.url}/metrics").text)
        assert "3 keys; only a restart changes concurrency" in gateway.again("is read: models qwen, oss")
        assert not running.done()
        gateway.show("a file that is read again under a stream")
        assert running.result().text.endswith("data: [DONE]\n\n")
    gateway.ask("b", "oss", 401)
    assert gateway.said("d", "oss")
    # An engine is lost: its sessions go to the other one, and come back when it is there.
    of_session = {"prompt_cache_key": "s"}
    where = gateway.ask("d", "oss", **of_session).json()["choices"][0]["message"]["content"][5:-1]
    port = engines[where].port
    engines[where].close()
    other = {"oss": "spare", "spare": "oss"}[where]
    for _ in range(3):
        found = gateway.ask("d", "oss", **of_session).json()["choices"][0]["message"]["content"]
        assert found == f"I am {other}."
    gateway.show("an engine of two is lost")
    assert httpx2.get(f"{gateway.url}/ready", timeout=20).json()["models"] == {"qwen": True, "oss": True}
    # The engine of the other model is lost and back: meanwhile that model alone has errors.
    script = Engine(["I am back."], tiny_model("qwen3").tokenizer)
    port = engines["qwen"].port
    engines["qwen"].close()
    gateway.ask("d", "qwen", 502)
    gateway.show("the engine of a model is lost")
    gateway.ask("d", "oss")
    back = Upstream(script, 500, port)
    try:
        assert gateway.said("d", "qwen") == "I am back."
        gateway.show("it is back")
    finally:
        back.close()
    counted = httpx2.get(f"{gateway.url}/metrics").text
    assert 'chatparsers_key_requests_total{key="team-d",model="qwen",status="502"} 1.0\n' in counted
    # The gateway is killed: what it kept is there for the next one, also of a later version.
    head = {"authorization": "Bearer sk-d"}
    kept = httpx2.post(
        f"{gateway.url}/v1/responses",
        json={"model": "oss", "input": "Hi", "store": True},
        headers=head,
        timeout=60,
    ).json()
    gateway.process.kill()
    gateway.process.wait()
    made_earlier(gateway.folder / "kept")
    gateway.start()
    found = httpx2.get(f"{gateway.url}/v1/responses/{kept['id']}", headers=head)
    assert found.json()["output"] == kept["output"]
    assert "the model qwen is not served yet" in gateway.errors.read_text()
    gateway.show("killed, and a later version on an earlier one's store")
    gateway.ask("c", "oss", 429)
    # It is told to end, while a stream runs.
    with ThreadPoolExecutor() as pool:
        running = pool.submit(gateway.ask, "d", "oss", **SLOW)
        soon(lambda: "requests 1.0" in httpx2.get(f"{gateway.url}/metrics").text)
        gateway.process.send_signal(signal.SIGTERM)
        assert running.result().text.endswith("data: [DONE]\n\n")
    assert gateway.process.wait(60) in (0, -signal.SIGTERM)
    assert "ended: 1 requests were answered, 0 cut off" in gateway.errors.read_text()
    gateway.show("it ends")


def issue(folder: Path) -> int:
    """Writes a certificate and its key. Returns its number."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "gateway.example")])
    now = datetime.now(timezone.utc)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    kind = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (folder / "k.pem").write_bytes(key.private_bytes(serialization.Encoding.PEM, *kind))
    (folder / "c.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    return made.serial_number


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="this system has no SIGHUP")
def test_https_with_a_certificate_that_changes(gateway: Gateway, tmp_path: Path) -> None:
    """SIGHUP reads it anew: a connection after it has the new one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

    def served() -> int:
        try:
            with (
                socket.create_connection(("127.0.0.1", gateway.port), timeout=20) as plain,
                context.wrap_socket(plain) as wrapped,
            ):
                raw = wrapped.getpeercert(binary_form=True)
        except OSError:
            return 0
        assert raw is not None
        return x509.load_der_x509_certificate(raw).serial_number

    first = issue(tmp_path)
    gateway.tables["server"] |= {"tls_cert": str(tmp_path / "c.pem"), "tls_key": str(tmp_path / "k.pem")}
    gateway.start(lambda: served() == first)
    second = issue(tmp_path)
    gateway.again("is read")
    assert served() == second != first
