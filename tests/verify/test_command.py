"""The command: what it prints, writes and returns, what it keeps to itself, and how it behaves."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from xml.etree import ElementTree

import pytest

pytest.importorskip("starlette", reason="the packages of the gateway are not installed")
pytest.importorskip("httpx2", reason="the packages of the gateway are not installed")
pytest.importorskip("jsonschema", reason="the package jsonschema is not installed")

from broken import FAULTS, Fault, broken
from models import tiny
from servers import Server

from chatparsers.cli.main import main
from chatparsers.verify.client import Budget, Client, Spent

MODEL = str(Path(__file__).parents[1] / "templates_own" / "qwen3.jinja")
KEY = "sk-very-secret"


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("model") / "tokenizer.json"
    tiny("qwen3").tokenizer.save(str(path))
    return str(path)


@pytest.fixture(scope="module")
def servers() -> Iterator[Callable[[str], str]]:
    """``servers(fault)``: the address of a server with that fault; "" for none."""
    made: dict[str, Server] = {}

    def get(name: str) -> str:
        if name not in made:
            made[name] = Server(broken(tiny("qwen3").chat, FAULTS[name] if name else Fault(())))
        return made[name].url

    yield get
    for server in made.values():
        server.close()


def test_every_form_of_the_report(
    servers: Callable[[str], str],
    tokenizer: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One run writes rows as JSON, a page, and a record; the record, judged again, gives the same codes."""
    monkeypatch.setenv("CHATPARSERS_VERIFY_KEY", KEY)
    files = {name: str(tmp_path / name) for name in ("rows.json", "page.html", "run.jsonl")}
    model = ["--model", MODEL, "--tokenizer", tokenizer]
    asked = ["--probes", "auto,two,prompt/user", "--answer-tokens", "600"]
    written = ["--json", files["rows.json"], "--html", files["page.html"], "--record", files["run.jsonl"]]
    url = servers("second-call-dropped")
    assert main(["verify", url, *model, *asked, *written]) == 1
    text = capsys.readouterr().out
    assert (
        "call-lost · 2 of 4 · server · two, two/stream" in text
        and "curl -s" in text
        and "not judged: speed" in text
    )
    rows = json.loads(Path(files["rows.json"]).read_text(encoding="utf-8"))
    assert {row["code"] for row in rows["rows"]} == {"call-lost"} and rows["rows"][0]["blame"] == "server"
    page = Path(files["page.html"]).read_text(encoding="utf-8")
    assert "what the model wrote" in page and 'class="chip' in page and "http://" not in page.replace(url, "")
    assert (
        all(KEY not in Path(path).read_text(encoding="utf-8") for path in files.values()) and KEY not in text
    )

    judge = ["verify", "--judge", files["run.jsonl"], *model]
    for form, codes in {
        "json": lambda out: [row["code"] for row in json.loads(out)["rows"]],
        "sarif": lambda out: [found["ruleId"] for found in json.loads(out)["runs"][0]["results"]],
        "github": lambda out: ["call-lost"] if "::error file=" in out and "title=call-lost::" in out else [],
        "junit": lambda out: [
            case.get("name") for case in ElementTree.fromstring(out).iterfind(".//*[failure]")
        ],
    }.items():
        assert main([*judge, "--format-output", form]) == 1
        assert set(codes(capsys.readouterr().out)) == {"call-lost"}, form


def test_the_smallest_request_that_shows_a_fault(
    servers: Callable[[str], str], tokenizer: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two calls are lost as one only where two are written: the words stay, the schema goes."""
    asked = [
        "--model",
        MODEL,
        "--tokenizer",
        tokenizer,
        "--probes",
        "two",
        "--answer-tokens",
        "600",
        "--json",
        "-",
    ]
    bodies = []
    for more in ([], ["--shrink"]):
        assert main(["verify", servers("second-call-dropped"), *asked, *more]) == 1
        rows = json.loads(capsys.readouterr().out)["rows"]
        assert rows[0]["code"] == "call-lost" and "two calls" in str(rows[0]["request"])
        bodies.append(rows[0]["request"])
    assert len(bodies[0]["tools"]) == 2 and bodies[0]["tool_choice"] == "required"
    assert len(bodies[1]["tools"]) == 1 and "tool_choice" not in bodies[1]
    assert "description" not in bodies[1]["tools"][0]["function"]


def test_a_plan_sends_nothing(tokenizer: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "http://127.0.0.1:9", "--model", MODEL, "--tokenizer", tokenizer, "--plan"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("prompt/user: 1 request") and "it stops at 60 requests" in lines[-1]


def test_replayed_texts_stay_out_of_reports(
    servers: Callable[[str], str], tokenizer: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tool = {"type": "function", "function": {"name": "find_train", "parameters": {"type": "object"}}}
    secret = "My name is Ingeborg. Make two calls."
    line = {
        "messages": [{"role": "user", "content": secret}],
        "tools": [tool],
        "temperature": 0.6,
        "stream": True,
    }
    path = tmp_path / "samples.jsonl"
    path.write_text(json.dumps({"request": line}) + "\n", encoding="utf-8")
    given = [
        "verify",
        servers("second-call-dropped"),
        "--model",
        MODEL,
        "--tokenizer",
        tokenizer,
        "--json",
        "-",
    ]
    for more, shown in (([], False), (["--show-texts"], True)):
        assert main([*given, "--replay", str(path), *more]) == 1
        out = capsys.readouterr().out
        assert ("Ingeborg" in out) == shown and json.loads(out)["rows"][0]["probe"] == "samples.jsonl:1"


def test_two_servers_side_by_side(
    servers: Callable[[str], str], tokenizer: str, capsys: pytest.CaptureFixture[str]
) -> None:
    url, other = servers(""), servers("second-call-dropped")
    given = ["--model", MODEL, "--tokenizer", tokenizer, "--probes", "auto,two", "--answer-tokens", "600"]
    assert main(["verify", url, *given, "--against", other]) == 0
    out = capsys.readouterr().out
    assert "2 pairs; better in 1, worse in 0 (p = 1.000)" in out and "trigger F1 1.00" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["http://127.0.0.1:9"], "the server does not answer"),
        (["no-url"], "expected the address of a server"),
        ([], "which server?"),
        (["http://127.0.0.1:9", "--probes", "nothing"], "no probe 'nothing': expected one of prompt/user"),
        (["http://127.0.0.1:9", "--extra", "[1]"], "--extra: expected a JSON object"),
        (["http://127.0.0.1:9", "--extra", "[" * 100_000], "--extra: expected a JSON object, found '[[[["),
        (["http://127.0.0.1:9", "--replay", "missing.jsonl"], "missing.jsonl: no such file"),
    ],
)
def test_what_cannot_be_judged_is_said_in_a_line(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", *arguments, "--model", MODEL]) == 2
    assert said in capsys.readouterr().err


class _Busy(BaseHTTPRequestHandler):
    """Answers as its class is told: a status and headers for each request in turn."""

    answers: ClassVar[list[tuple[int, dict[str, str]]]] = []
    seen: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.seen.append(self.headers.get("authorization", ""))
        status, headers = self.answers.pop(0)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *arguments: Any) -> None:
        """Says nothing."""


@pytest.fixture
def busy() -> Iterator[Callable[..., tuple[Client, type[_Busy]]]]:
    made: list[ThreadingHTTPServer] = []

    def get(*answers: tuple[int, dict[str, str]], **options: Any) -> tuple[Client, type[_Busy]]:
        handler = type("Handler", (_Busy,), {"answers": list(answers), "seen": []})
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        made.append(server)
        budget = options.pop("budget", Budget(5, 100))
        return Client(f"http://127.0.0.1:{server.server_port}/v1", budget, **options), handler

    yield get
    for server in made:
        server.shutdown()
        server.server_close()


def test_it_waits_as_it_is_told_and_tries_three_times(busy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("chatparsers.verify.client.time.sleep", waits.append)
    client, _ = busy((429, {"retry-after": "7"}), (200, {}))
    assert client.post("/x", {}).ok and waits == [7.0]
    client, _ = busy((503, {}), (503, {}), (503, {}))
    response = client.post("/x", {})
    assert (response.inconclusive, response.tries) == (True, 3)
    client, _ = busy((500, {}), (500, {}), (500, {}))
    response = client.post("/x", {})
    assert (response.inconclusive, response.same, response.status) == (False, True, 500)


def test_the_key_goes_to_one_host_and_no_redirect_is_followed(busy: Any) -> None:
    client, handler = busy((307, {"location": "http://127.0.0.2/steal"}), key=KEY)
    assert client.post("/x", {}).status == 307 and handler.seen == [f"Bearer {KEY}"]
    assert KEY not in client.url


def test_it_stops_at_its_budget(busy: Any) -> None:
    client, _ = busy((200, {}), (200, {}), budget=Budget(1, 100))
    client.post("/x", {})
    with pytest.raises(Spent, match="--requests 1"):
        client.post("/x", {})
    client, _ = busy((200, {}), budget=Budget(5, 100))
    client.used(100)
    with pytest.raises(Spent, match="--tokens 100"):
        client.post("/x", {})
