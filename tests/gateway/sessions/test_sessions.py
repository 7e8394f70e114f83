"""What is promised of recorded sessions: names and keys, the record, rewards, limits, and what nobody took."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from datetime import datetime
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

pytest.importorskip("starlette", reason="the package starlette is not installed")

import httpx2
from behaviours import SYSTEM, Agent
from clients import CLIENTS, TOOLS, Chat, Messages, Responses
from model import Model, chat_of
from scripted import soon
from servers import Server
from test_behaviours import check_rows, rows, script

from chatparsers import Sample
from chatparsers.cli.main import main
from chatparsers.gateway import EngineError, Settings, create_app
from chatparsers.sessions.log import Logs
from chatparsers.sessions.samples import unwanted
from chatparsers.sessions.session import Limits, Sampled, Session
from chatparsers.sessions.sessions import Rules, Sessions
from chatparsers.templates.builtins import builtin_source


class Gateway:
    """A gateway over the model; a restart has the same folder."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.folder, self.settings = folder, settings
        self.model = Model(chat_of("qwen3"), script("", True))
        self.server: Any = None
        self.start()

    def start(self) -> None:
        settings = Settings(rollouts=str(self.folder), **self.settings)
        self.server = Server(create_app(self.model.chat, self.model, settings))
        self.url = self.server.url

    def restart(self) -> None:
        self.server.close()
        self.start()

    def talk(self, session: str | None = "s", kind: type[Any] = Chat, **how: Any) -> Agent:
        base = self.url if session is None else f"{self.url}/sessions/{session}"
        return Agent(kind(f"{base}/v1", **how))

    def post(self, path: str, body: Any = None, **more: Any) -> httpx2.Response:
        return httpx2.post(f"{self.url}{path}", json=body if body is not None else {}, timeout=60, **more)

    def get(self, path: str, **more: Any) -> httpx2.Response:
        return httpx2.get(f"{self.url}{path}", timeout=60, **more)

    def lines(self, session: str) -> list[dict[str, Any]]:
        path = self.folder / f"{session}.jsonl"
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Callable[..., Gateway]]:
    made: list[Gateway] = []

    def make(**settings: Any) -> Gateway:
        made.append(Gateway(tmp_path / "rollouts", **settings))
        return made[-1]

    yield make
    for one in made:
        one.server.close()


def turns(agent: Agent, number: int, items: Any = None) -> Any:
    """Plays some turns, and returns the items."""
    items = agent.begin() if items is None else items
    for _ in range(number):
        items = agent.after(items, agent.ask(items), len(agent.replies))
    return items


def test_three_apis_may_mix(gateway: Callable[..., Gateway]) -> None:
    """What one API told, another one sends back: they go on by the same ids."""
    made = gateway()
    chat, messages, responses = (made.talk("a/b c", kind) for kind in CLIENTS)
    first = chat.ask(chat.begin(), on=False)
    (message,) = first.items
    call = message["tool_calls"][0]
    arguments = json.loads(call["function"]["arguments"])
    block = {"type": "tool_use", "id": call["id"], "name": call["function"]["name"], "input": arguments}
    text = {"type": "text", "text": message["content"]}
    thought = {"type": "thinking", "thinking": message["reasoning_content"], "signature": ""}
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": "RESULT"}
    talk = [*messages.begin(), {"role": "assistant", "content": [thought, text, block]}]
    second = messages.ask([*talk, {"role": "user", "content": [result]}])
    assert second.session["reason"] == "exact" and second.session["parent"] == first.session["answer"]
    item = {"type": "function_call", "call_id": call["id"], "name": call["function"]["name"]}
    talk = [
        *responses.begin(),
        {"role": "assistant", "content": message["content"]},
        {**item, "arguments": json.dumps(arguments, indent=1)},
        {"type": "function_call_output", "call_id": call["id"], "output": "RESULT"},
    ]
    third = responses.ask(talk)
    assert third.session["reason"] == "exact" and third.session["parent"] == first.session["answer"]
    assert {line["api"] for line in made.lines("a%2Fb c") if line["t"] == "answer"} == {
        "chat",
        "messages",
        "responses",
    }
    forgiven = [line["forgiven"] for line in made.lines("a%2Fb c") if line["t"] == "answer"]
    assert forgiven == [[], ["arguments"], ["arguments", "thought"]]


def test_names_and_keys(gateway: Callable[..., Gateway]) -> None:
    """An id opens nothing: the key does. A session's own key opens that session alone, and nothing of the trainer's."""
    made = gateway(api_key="main")
    auth = {"authorization": "Bearer main"}
    begun = made.post("/sessions", {"id": "one", "group": "g", "sampling": {"top_k": 3}}, headers=auth).json()
    other = made.post("/sessions", {}, headers=auth).json()
    assert begun["base_url"].endswith("/sessions/one/v1") and other["id"] != "one"
    assert made.post("/sessions", {"id": "one"}, headers=auth).status_code == 409
    assert made.post("/sessions", {"id": "x" * 500}, headers=auth).status_code == 400
    assert made.post("/sessions", {"history": "all"}, headers=auth).status_code == 400
    own = Agent(Chat(begun["base_url"], key=begun["api_key"]))
    assert turns(own, 1) and own.replies[0].session["id"] == "one"
    keyed = Agent(Chat(f"{made.url}/v1", key=begun["api_key"]))  # the key alone names its session
    turns(keyed, 1)
    assert keyed.replies[0].session["id"] == "one"
    mine = {"authorization": f"Bearer {begun['api_key']}"}
    assert made.get("/sessions/one/v1/models", headers=mine).status_code == 200
    count = {"model": "m", "messages": own.begin()}
    assert made.post("/sessions/one/v1/messages/count_tokens", count, headers=mine).json()["input_tokens"]
    assert Chat(begun["base_url"], key="wrong").send(SYSTEM, own.begin()).status_code == 401
    assert Chat(begun["base_url"]).send(SYSTEM, own.begin()).status_code == 401
    assert Chat(other["base_url"], key=begun["api_key"]).send(SYSTEM, own.begin()).status_code == 403
    for path in ("/sessions", "/sessions/one/samples", "/sessions/one"):
        assert made.get(path, headers={"authorization": f"Bearer {begun['api_key']}"}).status_code == 401
        assert made.get(path, headers=auth).status_code == 200
    assert made.get("/sessions/none/samples", headers=auth).status_code == 404
    body, named = {"messages": own.begin()}, {**auth, "x-session-id": "two"}
    assert made.post("/v1/chat/completions", body, headers=named).headers["x-session-id"] == "two"
    shared = Agent(Chat(f"{made.url}/v1", key="main"))
    turns(shared, 2)
    assert {reply.session["id"] for reply in shared.replies} == {shared.replies[0].session["id"]}
    assert begun["api_key"] not in (made.folder / "one.jsonl").read_text()
    assert [line["sampling"] for line in made.lines("one") if line["t"] == "answer"] == [{"top_k": 3}] * 2
    made.restart()
    again = Agent(Chat(f"{made.url}/sessions/one/v1", key=begun["api_key"]))
    turns(again, 1)
    assert again.replies[0].session["answer"] == "3"


def test_a_restart_goes_on_with_the_same_ids(gateway: Callable[..., Gateway]) -> None:
    made = gateway()
    agent = made.talk()
    items = turns(agent, 2)
    agent.ask([*items, agent.client.user("Another way.")])
    agent.ask([*agent.begin(), agent.client.user("Summary."), *items[-2:]])
    before = made.get("/sessions/s/samples?twins=keep")
    with (made.folder / "s.jsonl").open("ab") as file:
        file.write(b'{"t": "answer", "cut')  # a kill in the middle of a line
    with pytest.raises(ValueError, match="another gateway records there"):
        create_app(made.model.chat, made.model, Settings(rollouts=str(made.folder)))
    made.restart()
    assert made.get("/ready").status_code == 200  # as an engine is that cannot be asked
    assert made.get("/sessions/s/samples?twins=keep").text == before.text
    later = made.talk()
    reply = later.ask(items)
    assert reply.session["reason"] == "exact" and reply.session["answer"] == "5"
    assert all(line["t"] for line in made.lines("s"))
    counted, gap = check_rows(made.model, rows(made.server, "s", twins="keep"))
    assert counted == made.model.sampled and gap < 1e-9
    assert made.post("/sessions/s/close").json()["closed"]
    made.restart()
    assert made.talk().client.send(SYSTEM, items).status_code == 409, "it is closed"
    assert rows(made.server, "s") and made.get("/sessions/s").json()["closed"]


@pytest.mark.parametrize("cut", ["head", "options"])
def test_a_line_that_a_kill_cut_off_is_none(cut: str, tmp_path: Path) -> None:
    """Whatever is written next: a line that it is part of could not be read, and no gateway would start."""
    path, chat = tmp_path / "one.jsonl", chat_of("qwen3")
    if cut == "options":
        with closing(Sessions(chat, str(tmp_path))) as before:
            before.begin("one")
    with path.open("ab") as file:
        file.write(b'{"t":"')
    with closing(Sessions(chat, str(tmp_path))) as sessions:
        if cut == "head":
            sessions.begin("one")
        sessions.end(sessions.get("one"))
    with closing(Sessions(chat, str(tmp_path))) as after:
        found = after.get("one")
        with after.opened(found):
            assert found.closed
    assert [json.loads(line)["t"] for line in path.read_bytes().splitlines()] == ["session", "closed"]


def test_of_answers_to_one_request_one_is_taken() -> None:
    """Those that a later request went on from; without one, the last that came whole to the client."""
    states = list(product((None, "upstream"), (True, False), ((), (1,))))
    for given in product(states, repeat=3):
        asked = SimpleNamespace(asked=[])
        for error, delivered, children in given:
            one = {"error": error, "delivered": delivered, "children": children}
            asked.asked.append(SimpleNamespace(asked=asked, parent=None, **one))
        wanted = {place for place, one in enumerate(asked.asked) if unwanted(one) is None}
        taken = {place for place, one in enumerate(asked.asked) if one.children}
        whole = [place for place, one in enumerate(asked.asked) if one.delivered and not one.error]
        assert wanted == taken | (set() if taken.intersection(whole) else set(whole[-1:])), given


def test_twins_and_rewards(gateway: Callable[..., Gateway]) -> None:
    """Of answers to one request, those that nobody took do not count, unless they are asked for."""
    made = gateway()
    agent = made.talk()
    asked = {"model": "m", **agent.client.body(SYSTEM, agent.begin(), TOOLS), "n": 3}
    response = httpx2.post(f"{made.url}/sessions/s/v1/chat/completions", json=asked, timeout=60)
    choices = response.json()["choices"]
    assert response.headers["x-session-answer"] == "1,2,3" and len(choices) == 3
    call = choices[1]["message"]["tool_calls"][0]
    result = {"role": "tool", "tool_call_id": call["id"], "content": "R"}
    taken = agent.ask([*agent.begin(), choices[1]["message"], result])
    assert taken.session["parent"] == "2"
    sizes = {line["answer"]: len(line["sampled"]) for line in made.lines("s") if line["t"] == "answer"}
    found = rows(made.server, "s")
    assert [row["answers"] for row in found] == [[2, 4]]
    told = made.get("/sessions/s").json()
    assert told["left_out"] == {"twin": sizes[1] + sizes[3]} and told["counted"] == sizes[2] + sizes[4]
    kept = rows(made.server, "s", twins="keep")
    assert sorted(number for row in kept for number in row["answers"]) == [1, 2, 3, 4]
    assert sum(row["weight"] for row in kept) == pytest.approx(1)
    assert made.get("/sessions/s/samples?twins=all").status_code == 400
    assert made.post("/sessions/s/reward", {"value": "high"}).status_code == 400
    assert made.post("/sessions/s/reward", {"value": 1, "answer": 9}).status_code == 404
    log = (made.folder / "s.jsonl").read_text()
    assert made.post("/sessions/s/reward", {"value": 0.5}).status_code == 200
    assert made.post("/sessions/s/reward", {"value": 2, "answer": 4}).status_code == 200
    assert (made.folder / "s.jsonl").read_text().startswith(log)
    made.restart()
    rewards = {tuple(row["answers"]): row["reward"] for row in rows(made.server, "s", twins="keep")}
    assert rewards == {(1,): 0.5, (3,): 0.5, (2, 4): 2}


def test_rewards_of_a_group_are_advantages(gateway: Callable[..., Gateway]) -> None:
    made = gateway()
    for number, value in enumerate((0.0, 1.0)):
        made.post("/sessions", {"id": f"g{number}", "group": "g"})
        turns(made.talk(f"g{number}"), 1)
        made.post(f"/sessions/g{number}/reward", {"value": value})
    turns(made.talk("alone"), 1)
    response = made.get("/samples?group=g")
    found = [json.loads(line) for line in response.text.splitlines()]
    assert [round(row["advantage"], 3) for row in found] == [-1, 1]
    assert json.loads(response.headers["x-counted"]) == sum(sum(row["loss_mask"]) for row in found)
    assert len(made.get("/samples").text.splitlines()) == 3
    pa = pytest.importorskip("pyarrow", reason="the package pyarrow is not installed")
    table = pa.ipc.open_stream(made.get("/samples?group=g&format=arrow").content).read_all()
    assert table.column("input_ids").to_pylist() == [row["input_ids"] for row in found]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_what_cannot_be_a_sample_is_refused_before_anything_is_told(
    stream: bool, gateway: Callable[..., Gateway]
) -> None:
    made = gateway()
    for spoilt in (
        lambda batch: replace(batch, logprobs=(batch.logprobs or [])[:-1]),
        lambda batch: replace(batch, logprobs=None),
    ):
        made.model.spoils = spoilt
        response = made.talk(stream=stream).client.send(SYSTEM, made.talk().begin())
        assert response.status_code == 502, response.text
        assert "log probabilities" in response.json()["error"]["message"]
    soon(lambda: [line["t"] for line in made.lines("s")] == ["session", "failed", "failed"])
    made.model.spoils = lambda batch: batch
    turns(made.talk(), 1)
    assert check_rows(made.model, rows(made.server, "s"))[0] > 0


def test_an_engine_without_ids_records_nothing(tmp_path: Path) -> None:
    model = Model(chat_of("qwen3"), script("", True))
    model.ids = False
    app = create_app(model.chat, model, Settings(rollouts=str(tmp_path)))

    async def start() -> None:
        async with app.router.lifespan_context(app):
            pass

    with pytest.raises(EngineError, match="gives ids"):
        asyncio.run(start())
    app.state.rollouts.sessions.close()


def test_a_client_that_leaves_is_seen(
    gateway: Callable[..., Gateway], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its answer is context: a retry is what counts. No line is written in the event loop, where the others wait."""
    made = gateway()
    write, waited = Logs.write, []

    def seen(logs: Logs, id: str, line: dict[str, Any]) -> None:
        with suppress(RuntimeError):
            waited.append(asyncio.get_running_loop())
        write(logs, id, line)

    monkeypatch.setattr(Logs, "write", seen)
    made.model.pause = 0.02
    client = made.talk(stream=True).client
    body = {"model": "m", "stream": True, **client.body(SYSTEM, made.talk().begin(), TOOLS)}
    with httpx2.stream("POST", f"{client.base}/{client.path}", json=body) as response:
        next(response.iter_bytes())
    soon(lambda: len(made.lines("s")) == 3)
    made.model.pause = 0.0
    turns(made.talk(), 1)
    first, second = (line for line in made.lines("s") if line["t"] == "answer")
    assert (first["delivered"], first["cut"], second["delivered"]) == (False, True, True)
    assert not waited
    told = made.get("/sessions/s").json()
    assert told["left_out"] == {"undelivered": len(first["sampled"])}
    assert [row["answers"] for row in rows(made.server, "s", twins="drop")] == [[2]]


LIMITS: dict[str, tuple[Rules, int]] = {
    "answers": (Rules(limits=Limits(answers=1)), 413),
    "ids": (Rules(limits=Limits(ids=10)), 413),
    "lines": (Rules(limits=Limits(lines=1)), 413),
    "sessions": (Rules(sessions=1), 429),
    "size": (Rules(size=300), 507),
}


@pytest.mark.parametrize("limit", LIMITS)
def test_limits(limit: str, gateway: Callable[..., Gateway]) -> None:
    rules, status = LIMITS[limit]
    made = gateway(rules=rules)
    agent = made.talk()
    turns(agent, 1)
    before = made.model.sampled
    refused = made.talk("other" if limit == "sessions" else "s").client.send(SYSTEM, agent.begin("Else?"))
    assert refused.status_code == status, refused.text
    assert made.model.sampled == before and rows(made.server, "s")


def test_a_full_disk_is_said_before_sampling(
    gateway: Callable[..., Gateway], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = gateway()
    agent = made.talk()
    items = turns(agent, 1)
    before = made.model.sampled
    (made.folder / ".aside").unlink()

    def full(*given: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    refused = agent.client.send(SYSTEM, items)
    assert refused.status_code == 507 and "No space" in refused.json()["error"]["message"]
    assert made.model.sampled == before
    monkeypatch.undo()
    turns(agent, 1, items)
    assert agent.replies[-1].session["reason"] == "exact"


def test_two_at_once_on_one_line_are_two_branches(gateway: Callable[..., Gateway]) -> None:
    """Never a mixture: each has its own ids, and goes on by them."""
    made = gateway()
    items = turns(made.talk(), 1)
    made.model.pause, before = 0.02, len(made.model.asked)
    agents = [made.talk("s", stream=at == 0) for at in range(2)]
    asking = [threading.Thread(target=agent.ask, args=(items,)) for agent in agents]
    for thread in asking:
        thread.start()
    soon(lambda: len(made.model.asked) == before + 2)
    assert len([line for line in made.lines("s") if line["t"] == "answer"]) == 1  # both run
    for thread in asking:
        thread.join()
    for agent in agents:
        (reply,) = agent.replies
        assert (reply.session["reason"], reply.session["parent"]) == ("exact", "1")
        agent.ask(agent.after(items, reply))
        assert agent.replies[1].session["parent"] == reply.session["answer"]
    found = rows(made.server, "s")
    answers = [[int(reply.session["answer"]) for reply in agent.replies] for agent in agents]
    assert sorted(row["answers"] for row in found) == sorted([[1, *answers[0]], answers[1]])
    counted, gap = check_rows(made.model, found)
    assert counted == made.model.sampled and gap < 1e-9


def test_many_sessions_at_once(
    gateway: Callable[..., Gateway], amount: Callable[[int, int, int], int]
) -> None:
    """Each has its own ids, and two requests at once on one line are two branches."""
    made, failed = gateway(), list[Any]()

    def play(number: int) -> None:
        try:
            agent = made.talk(f"s{number}", CLIENTS[number % 3], stream=number % 2 == 0)
            turns(agent, 4)
            assert [reply.session["reason"] for reply in agent.replies] == [
                "first",
                "exact",
                "exact",
                "exact",
            ]
        except BaseException as error:
            failed.append(error)

    number = amount(8, 16, 64)
    threads = [threading.Thread(target=play, args=(one,)) for one in range(number)]
    for thread in threads:
        thread.start()
    agent = made.talk("both")
    items = turns(agent, 1)
    both = [threading.Thread(target=turns, args=(made.talk("both"), 1, items)) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in [*threads, *both]:
        thread.join()
    assert not failed, failed[0]
    counted = 0
    for one in [*(f"s{number}" for number in range(number)), "both"]:
        found, gap = check_rows(made.model, rows(made.server, one, twins="keep"))
        counted += found
        assert gap < 1e-9
    assert counted == made.model.sampled
    assert made.get("/sessions/both").json()["rows"] == 1
    assert len(rows(made.server, "both", twins="keep")) == 2


def test_what_is_no_edit_of_the_history(gateway: Callable[..., Gateway]) -> None:
    """The client's own stop, of which it reads less than was sampled, and sends that back; and that of an idle session,
    which leaves the memory."""
    made = gateway(rules=Rules(idle=0.05))
    made.model.script = lambda job: ({"role": "assistant", "content": "Look.\nObservation: none"}, "stop")
    agent = made.talk()
    first = agent.client.ask(SYSTEM, agent.begin(), (), stop=["Observation:"])
    assert first.text == "Look.\n"
    sessions = made.server.app.state.rollouts.sessions
    soon(lambda: turns(made.talk("other"), 1) and sessions.get("s").session is None)
    second = agent.client.ask(SYSTEM, agent.after(agent.begin(), first), ())
    assert second.session["reason"] == "exact"


def test_the_weights_are_named(gateway: Callable[..., Gateway]) -> None:
    made = gateway()
    agent = made.talk()
    made.post("/weights", {"version": 3})
    items = turns(agent, 1)
    assert made.post("/weights", {"version": 4}).status_code == 200
    turns(agent, 1, items)
    assert made.post("/weights", {"version": "new"}).status_code == 400
    (row,) = rows(made.server, "s")
    own = {"session", "group", "line", "segment", "answers", "delivered", "reward", "advantage", "weight"}
    read = Sample.from_row({name: value for name, value in row.items() if name not in own})
    assert {**row, **read.to_row()} == row and read.prompt_length == row["prompt_length"] > 0
    versions = {version for version, mask in zip(row["versions"], row["loss_mask"], strict=True) if mask}
    assert versions == {3, 4}


def test_the_command_says_what_is_there(
    gateway: Callable[..., Gateway], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    made = gateway()
    agent = made.talk("a/b")
    items = turns(agent, 2)
    agent.ask([*items, agent.client.user("And?")], tools=TOOLS[:1])
    agent.ask([*agent.begin(), {"role": "assistant", "content": "Another's."}, agent.client.user("So?")])
    assert main(["rollouts", str(made.folder), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["all"]["answers"] == 4 and told["all"]["exact"] == round(1 / 3, 4)
    assert told["all"]["reasons"] == {"first": 1, "exact": 1, "variables": 1, "edited": 1}
    assert [one["reason"] for one in told["witnesses"]] == ["variables", "edited(2)"]
    assert main(["rollouts", str(made.folder)]) == 0
    assert "a/b" in capsys.readouterr().out
    tokenizer, template = tmp_path / "tokenizer.json", tmp_path / "chat.jinja"
    made.model.tokenizer.save(str(tokenizer))
    template.write_text(builtin_source("qwen3"), encoding="utf-8")
    flags = ["--model", str(template), "--tokenizer", str(tokenizer), "--twins", "keep"]
    assert main(["rollouts", str(made.folder), "--samples", "-", *flags]) == 0
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert printed == rows(made.server, "a/b", twins="keep")
    assert main(["rollouts", str(made.folder), "--samples", "-"]) == 2
    assert main(["rollouts", str(tmp_path / "none")]) == 2


def test_unchanged_sdks(gateway: Callable[..., Gateway]) -> None:
    """The vendors' own clients, with nothing but another address and key."""
    made = gateway()
    begun = made.post("/sessions", {"id": "sdk"}).json()
    sdk = pytest.importorskip("openai", reason="the package openai is not installed")
    body = Chat("").body(SYSTEM, [{"role": "user", "content": "Weather?"}], TOOLS)
    with sdk.OpenAI(base_url=begun["base_url"], api_key=begun["api_key"], max_retries=0) as client:
        messages: list[Any] = body["messages"]
        for _ in range(3):
            found = client.chat.completions.create(model="m", messages=messages, tools=body["tools"])
            message = found.choices[0].message
            messages.append(message)
            messages += [
                {"role": "tool", "tool_call_id": call.id, "content": "cold"} for call in message.tool_calls
            ]
    other = pytest.importorskip("anthropic", reason="the package anthropic is not installed")
    with other.Anthropic(
        base_url=begun["anthropic_base_url"], api_key=begun["api_key"], max_retries=0
    ) as client:
        given = Messages("").body("Find.", [{"role": "user", "content": "Weather?"}], TOOLS)
        talk: list[Any] = given["messages"]
        for _ in range(2):
            with client.messages.stream(**given, model="m") as stream:
                answer = stream.get_final_message()
            call = next(block for block in answer.content if block.type == "tool_use")
            result = {"type": "tool_result", "tool_use_id": call.id, "content": "cold"}
            talk += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": [result]}]
    reasons = [line["reason"] for line in made.lines("sdk") if line["t"] == "answer"]
    assert reasons == ["first", "exact", "exact", "first", "exact"]
    assert [row["answers"] for row in rows(made.server, "sdk")] == [[1, 2, 3], [4, 5]]


def test_the_responses_store_goes_on_by_its_session(gateway: Callable[..., Gateway]) -> None:
    made = gateway(store="memory")
    agent = made.talk("s", Responses)
    first = agent.client.send(SYSTEM, agent.begin(), store=True)
    response = first.json()
    call = next(item for item in response["output"] if item["type"] == "function_call")
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": "cold"}
    second = agent.client.send(SYSTEM, [result], store=True, previous_response_id=response["id"])
    assert second.headers["x-session-reason"] == "exact"
    made.model.script = lambda job: ({"role": "assistant", "content": "Cold."}, "stop")
    twins = [agent.client.send(SYSTEM, agent.begin("Say it."), store=True) for _ in range(2)]
    more = [agent.client.user("Again.")]
    for twin in twins:  # they say the same, and the client names the one that it means
        last = agent.client.send(SYSTEM, more, store=True, previous_response_id=twin.json()["id"])
        assert last.headers["x-session-parent"] == twin.headers["x-session-answer"]


def test_a_tool_that_loads_later_keeps_the_ids() -> None:
    """A search that finds a tool is a step as any other; the client lists the tools that it knows by then."""
    chat = chat_of()
    session = Session(chat, "s", now=datetime(2026, 1, 1))
    shown, late = ({"type": "function", "function": {"name": name}} for name in ("search", "get_bread"))
    asked = [{"role": "user", "content": "Bread?"}]
    first = session.ask(asked, {"tools": [shown], "loaded": []})
    text = '<tool_call>\n{"name": "search", "arguments": {}}\n</tool_call><|im_end|>'
    answer = session.answered(first, Sampled(chat.tokenizer.encode(text).ids, cut=False))
    found = [{"type": "tool_reference", "tool_name": "get_bread"}]
    result = {"role": "tool", "tool_call_id": answer.told["tool_calls"][0]["id"], "content": found}
    then = session.ask([*asked, answer.told, result], {"tools": [shown], "loaded": [late]})
    assert then.reason == "exact" and then.turn.tools.names() == ("search", "get_bread")
    other = {**result, "content": [{"type": "tool_reference", "tool_name": "other"}]}
    assert (
        session.ask([*asked, answer.told, other], {"tools": [shown], "loaded": []}).rollout.ids
        != then.rollout.ids
    )
