"""What the Responses API keeps: a client goes on from it, follows it, cancels and deletes it; it outlives a kill."""

from __future__ import annotations

import itertools
import json
import random
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from scripted import Llama, Slow, Upstream, forced, soon
from servers import free_port, served, tiny_model

pytest.importorskip("starlette", reason="the package starlette is not installed")

import httpx2

from chatparsers.gateway import LlamaServer, Settings, create_app
from chatparsers.gateway.store import FILE, ResponseIds, Store, StoredResponse, StoreFull

TOOL = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}
# Other white space and escapes than the template writes.
CALL = '<think>\nHm.\n</think>\n\n<tool_call>\n{"name":"get_weather", "arguments":{"city":  "Oslo"}}\n</tool_call>'


@pytest.fixture
def opened(place: Callable[[str], str]) -> Iterator[Callable[..., Store]]:
    """Opens stores, and closes them when the test is over."""
    with ExitStack() as stack:
        yield lambda where, **named: stack.enter_context(closing(Store(place(where), **named)))


in_a_file = pytest.mark.parametrize("place", ["sqlite"], indirect=True)
"""A test of SQLite alone."""


@pytest.fixture
def gateway(
    upstream: Callable[..., Upstream], serve: Callable[..., Any], place: Callable[[str], str]
) -> Callable[..., Any]:
    """``gateway(store, …)``: a gateway with a store. It has ``engine`` and ``script``."""
    model = tiny_model("qwen3")
    script = Llama(["It is cold."], model.tokenizer)
    script.stop_id = model.eos_ids[0]
    engine = upstream(script)

    def make(store: str | None = "memory", **settings: Any) -> Any:
        where = None if store is None else place(store)
        server = serve(create_app(model.chat, LlamaServer(engine.url), Settings(store=where, **settings)))
        server.engine, server.script = engine, script
        return server

    return make


def openai(gateway: Any, key: str = "none") -> Any:
    sdk = pytest.importorskip("openai", reason="the package openai is not installed")
    return sdk.OpenAI(base_url=f"{gateway.url}/v1", api_key=key, max_retries=0)


def prompts(gateway: Any) -> list[list[int]]:
    return [
        body["prompt"]
        for _, body in gateway.engine.requests
        if forced(body) is None and body["n_predict"] != 1
    ]


@pytest.mark.parametrize("stops", [True, False], ids=["stop", "no-stop"])
@pytest.mark.parametrize("way", ["previous_response_id", "conversation"])
def test_a_conversation_goes_on_with_its_own_ids(gateway: Callable[..., Any], way: str, stops: bool) -> None:
    """The engine finds all that it read and wrote at the head of each later prompt, and the words are those of a client
    who sends the whole input."""
    server = gateway()
    tokenizer = server.script.tokenizer
    end = [server.script.stop_id] if stops else []  # not every engine gives the id of the stop
    server.script.stop_id = end[0] if stops else None
    same: dict[str, Any] = {"model": "m", "tools": [TOOL], "instructions": "Be brief."}
    with openai(server) as client:
        named = {"conversation": client.conversations.create().id} if way == "conversation" else {}
        history: list[Any] = []
        wrote: list[int] = []
        found: Any = None
        for given, said in (("Weather?", CALL), ("cold", CALL), ("wet <|im_end|>", "It is cold.")):
            server.script.pieces = [said]
            item: dict[str, Any] = {"role": "user", "content": given}
            if found is not None:
                item = {"type": "function_call_output", "call_id": found.output[-1].call_id, "output": given}
            counted = client.responses.input_tokens.count(**same, input=[item], **named)
            found = client.responses.create(**same, input=[item], **named)
            assert found.store and found.status == "completed"
            held = prompts(server)[-1]
            assert held[: len(wrote)] == wrote and len(held) > len(wrote)
            plain = client.responses.create(**same, input=[*history, item], store=False)
            assert not plain.store and counted.input_tokens == len(prompts(server)[-1])
            words = [tokenizer.decode(ids, skip_special_tokens=False) for ids in (held, prompts(server)[-1])]
            assert (words[0] == words[1]) == (len(history) == 0)
            assert "".join(words[0].split()) == "".join(words[1].split())
            wrote = [*held, *tokenizer.encode(said, add_special_tokens=False).ids, *end]
            history += [item, *(one.model_dump(exclude_none=True) for one in found.output)]
            if way == "previous_response_id":
                named = {"previous_response_id": found.id}
        assert client.responses.retrieve(found.id).output_text == "It is cold."
        kinds = [one.type for one in client.responses.input_items.list(found.id)]
        assert kinds == ["function_call_output"]
        if way == "conversation":
            listed = [one.type for one in client.conversations.items.list(named["conversation"], order="asc")]
            answer = ["reasoning", "function_call", "function_call_output"]
            assert listed == ["message", *answer, *answer, "message"]


def test_in_the_background(gateway: Callable[..., Any], tmp_path: Path) -> None:
    """Through another process than the one that runs it, as a load balancer has it."""
    one, two = gateway(str(tmp_path)), gateway(str(tmp_path))
    one.script.pieces, one.script.delay = ["one ", "two ", "three"], 0.1
    asked = {"model": "m", "input": "Count.", "background": True}
    sdk = pytest.importorskip("openai", reason="the package openai is not installed")
    with openai(one) as client, openai(two) as other:
        begun = client.responses.create(**asked)
        assert begun.status == "queued" and begun.background
        soon(lambda: other.responses.retrieve(begun.id).status == "completed")
        assert other.responses.retrieve(begun.id).output_text == "one two three"
        with client.responses.create(**asked, stream=True) as stream:
            first = [event for event, _ in zip(stream, range(4), strict=False)]
        id = first[0].response.id
        whole = list(other.responses.retrieve(id, stream=True))
        assert [event.sequence_number for event in whole] == list(range(len(whole)))
        assert whole[:4] == first and whole[-1].response.output_text == "one two three"
        for after in range(len(whole)):
            rest = list(other.responses.retrieve(id, stream=True, starting_after=after))
            assert rest == whole[after + 1 :]
        one.script.pieces = ["word "] * 400
        endless = client.responses.create(**asked, stream=True)
        id = next(iter(endless)).response.id
        assert other.responses.cancel(id).status == "cancelled"
        assert client.responses.retrieve(id).status == "cancelled"
        soon(lambda: one.app.state.metrics.active == 0 and one.engine.left > 0)
        gone = client.responses.create(**asked)
        other.responses.delete(gone.id)
        soon(lambda: one.app.state.metrics.active == 0)
        with pytest.raises(sdk.NotFoundError):
            client.responses.retrieve(gone.id)
        with pytest.raises(sdk.BadRequestError, match="store"):
            client.responses.create(**asked, store=False)
        three = gateway(str(tmp_path))
        with openai(three) as last:
            ended = last.responses.create(**asked)
        three.close()
        soon(lambda: other.responses.retrieve(ended.id).status == "failed")
        one.engine.close()
        failed = client.responses.create(**asked)
        soon(lambda: other.responses.retrieve(failed.id).status == "failed", 20)
        assert other.responses.retrieve(failed.id).error.code == "server_error"


def test_what_fails_in_the_background_ends_alone(
    gateway: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as a thread that the system does not give: the others go on, and the store stays open."""
    server = gateway()
    failed: list[str] = []

    def keep(*given: Any, **named: Any) -> None:
        if not failed:
            failed.append("keep")
            raise RuntimeError("can't start new thread")
        Store.keep(store, *given, **named)

    store = server.app.state.storing.store
    monkeypatch.setattr(store, "keep", keep)
    with httpx2.Client(base_url=f"{server.url}/v1", timeout=20) as client:
        asked = {"input": "Hi", "background": True}
        first = client.post("/responses", json=asked).json()["id"]
        soon(lambda: bool(failed))
        second = client.post("/responses", json=asked).json()["id"]
        soon(lambda: client.get(f"/responses/{second}").json()["status"] == "completed")
        found = client.get(f"/responses/{first}").json()
        assert found["status"] == "queued", "it is lost some seconds later"


def test_each_key_has_its_own(gateway: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("a\nb\n")
    server = gateway(key_file=str(tmp_path / "keys"))
    sdk = pytest.importorskip("openai", reason="the package openai is not installed")
    with openai(server, "a") as mine, openai(server, "b") as theirs:
        found = mine.responses.create(model="m", input="A secret.")
        conversation = mine.conversations.create(items=[{"type": "message", "role": "user", "content": "Hi"}])
        item = found.output[0].id
        for ask in (
            lambda client: client.responses.retrieve(found.id),
            lambda client: client.responses.input_items.list(found.id),
            lambda client: client.conversations.retrieve(conversation.id),
            lambda client: client.conversations.items.list(conversation.id),
            lambda client: client.responses.create(model="m", input="x", conversation=conversation.id),
            lambda client: client.responses.create(model="m", input="x", previous_response_id=found.id),
            lambda client: client.responses.create(model="m", input=[{"type": "item_reference", "id": item}]),
        ):
            assert ask(mine)
            with pytest.raises((sdk.NotFoundError, sdk.BadRequestError)) as caught:
                ask(theirs)
            assert "is kept here" in str(caught.value)
        for take in (theirs.responses.delete, theirs.responses.cancel):
            with pytest.raises(sdk.NotFoundError):
                take(found.id)
        assert mine.responses.retrieve(found.id)


@in_a_file
def test_without_a_store_nothing_is_promised(gateway: Callable[..., Any]) -> None:
    url = f"{gateway(None).url}/v1/responses"
    assert httpx2.post(url, json={"input": "Hi"}).json()["store"] is False
    for field in (
        {"store": True},
        {"background": True},
        {"conversation": "c"},
        {"previous_response_id": "r"},
    ):
        error = httpx2.post(url, json={"input": "Hi", **field}).json()["error"]
        assert error["param"] in field and error["code"] == "unsupported_parameter"
    assert httpx2.get(f"{url}/resp_1").status_code == 404


@in_a_file
@pytest.mark.parametrize("stream", [False, True])
def test_what_cannot_be_kept_is_said(gateway: Callable[..., Any], stream: bool, tmp_path: Path) -> None:
    """A full disk ends no answer: the response says that it is not stored. One in the background is refused."""
    server = gateway(str(tmp_path))
    db = server.app.state.storing.store.base._db
    (pages,) = db.execute("PRAGMA page_count").fetchone()
    db.execute(f"PRAGMA max_page_count = {pages}")
    body = {"input": "Hi " * 9000, "stream": stream}
    answer = httpx2.post(f"{server.url}/v1/responses", json=body, timeout=20)
    assert answer.status_code == 200
    if stream:
        events = [json.loads(line[6:]) for line in answer.text.split("\n") if line.startswith("data: ")]
        assert [event["sequence_number"] for event in events] == list(range(len(events)))
        found = events[-1]["response"]
    else:
        found = answer.json()
    assert found["store"] is False and found["output"][-1]["content"][0]["text"] == "It is cold."
    assert httpx2.get(f"{server.url}/v1/responses/{found['id']}").status_code == 404
    refused = httpx2.post(f"{server.url}/v1/responses", json={**body, "background": True}, timeout=20)
    assert (refused.status_code, refused.json()["error"]["code"]) == (507, "store_full")
    assert server.app.state.metrics.value("store_failures") == 2
    db.execute(f"PRAGMA max_page_count = {pages + 1000}")
    again = httpx2.post(f"{server.url}/v1/responses", json={"input": "Hi"}, timeout=20).json()
    assert again["store"] and httpx2.get(f"{server.url}/v1/responses/{again['id']}").json() == again


@in_a_file
@pytest.mark.skipif(sys.platform == "win32", reason="no limit of a file's size on this system")
def test_what_cannot_be_deleted_stays(gateway: Callable[..., Any], tmp_path: Path) -> None:
    """On a full disk it is said, and the store is as it was; once there is room, it goes."""
    import resource

    server = gateway(str(tmp_path))
    with httpx2.Client(base_url=f"{server.url}/v1", timeout=20) as client:
        item = {"role": "user", "content": "Hi", "type": "message"}
        named = client.post("/conversations", json={"items": [item]}).json()["id"]
        listed = f"/conversations/{named}/items"
        paths = [f"{listed}/{client.get(listed).json()['data'][0]['id']}", f"/conversations/{named}"]
        paths.append(f"/responses/{client.post('/responses', json={'input': 'Hi'}).json()['id']}")
        before = [client.get(path).json() for path in paths]
        usual = resource.getrlimit(resource.RLIMIT_FSIZE)
        ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1, usual[1]))
        try:
            refused = [client.delete(path) for path in paths]
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, usual)
            signal.signal(signal.SIGXFSZ, ignored)
        found = [(one.status_code, one.json()["error"]["code"]) for one in refused]
        assert found == [(507, "store_full")] * 3
        assert [client.get(path).json() for path in paths] == before
        checked = server.app.state.storing.store.base._db.execute("PRAGMA integrity_check").fetchall()
        assert checked == [("ok",)]
        for path in paths:
            assert client.delete(path).status_code == 200 and client.get(path).status_code == 404


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGTERM on this system")
def test_sigterm_leaves_the_rows_in_the_file(
    model: dict[str, str], upstream: Callable[..., Upstream], tmp_path: Path
) -> None:
    """Also those of a response that ran: then the log holds nothing that a damage could take."""
    engine, port, folder = (
        upstream(Slow(tokenizer=tiny_model("qwen3").tokenizer)),
        free_port(),
        tmp_path / "kept",
    )
    process = served(port, engine, model, "--store", str(folder), "--drain", "1")
    url = f"http://127.0.0.1:{port}/v1/responses"
    asked = {"input": "Hi", "max_output_tokens": 3}
    ids = [
        httpx2.post(url, json=asked | more, timeout=60).json()["id"] for more in ({}, {"background": True})
    ]
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGTERM
    log = folder / f"{FILE}-wal"
    assert not log.exists() or not log.stat().st_size
    with closing(sqlite3.connect(folder / FILE)) as db:
        assert sorted(ids) == [id for (id,) in db.execute("SELECT id FROM entries ORDER BY id")]


# the store by itself


def response(id: str, text: str = "") -> dict[str, Any]:
    return {"id": id, "status": "completed", "output": [{"id": f"msg_{id}", "text": text}]}


def kept(id: str, text: str = "", **more: Any) -> StoredResponse:
    return StoredResponse(id, response(id, text), [{"id": f"in_{id}"}], **more)


def test_a_file_of_another_kind_is_left_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[sqlite3.Connection] = []
    connect = sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda *given, **named: made.append(connect(*given, **named)) or made[-1]
    )
    (tmp_path / FILE).write_bytes(b"no database " * 100)
    with pytest.raises(ValueError, match="file is not a database"):
        create_app(tiny_model("qwen3").chat, None, Settings(store=str(tmp_path)))
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        made[0].execute("SELECT 1")


def test_a_server_that_is_not_there_is_said_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("psycopg", reason="the package psycopg is not installed")
    from chatparsers.storage import postgresql

    monkeypatch.setattr(postgresql, "_WAIT", 0.5)
    with pytest.raises(ValueError, match=r"postgresql://127.0.0.1/it cannot be used") as caught:
        create_app(tiny_model("qwen3").chat, None, Settings(store="postgresql://me:secret@127.0.0.1:1/it"))
    assert "secret" not in str(caught.value)


def test_the_bounds_hold(opened: Callable[..., Store]) -> None:
    store = opened("memory", entries=10, size=20_000, age=3600)
    for number in range(30):
        store.keep("", kept(str(number)))
        store.use("", "0")
    there = [number for number in range(30) if store.response("", str(number)) is not None]
    assert there == [0, *range(21, 30)], "what was used last stays"
    for number in range(30):
        store.keep("", kept(f"large{number}", "x" * 5000))
    assert sum(store.response("", f"large{number}") is not None for number in range(30)) == 3
    with pytest.raises(StoreFull):
        store.keep("", kept("larger", "x" * 20_000))
    assert store.response("", "large29") is not None
    store._age = -1
    store.keep("", kept("late"))
    assert store._read("SELECT entries FROM owners") == [(1,)]
    assert store._read("SELECT count(*) FROM items") == [(1,)]
    store.begin_conversation("", "conv", {"id": "conv"}, [])
    store._age = 3600
    with pytest.raises(StoreFull):
        store.add_items("", "conv", [{"id": "x", "text": "x" * 30_000}])


def test_deleted_items_leave_room(opened: Callable[..., Store]) -> None:
    store = opened("memory", size=20_000)
    store.begin_conversation("", "conv", {"id": "conv"}, [{"id": "first"}])
    (before,) = store._read("SELECT size FROM entries")
    for number in range(9):
        store.add_items("", "conv", [{"id": "x", "text": "é" * 500}, {"id": "x", "text": ""}])
        assert store.delete_item("", "conv", "x") and not store.delete_item("", "conv", "x")
        store.change("", "conv", {"id": "conv", "metadata": {"number": number}})
    assert store.items("conv", 10**6) == [{"id": "first"}]
    store.change("", "conv", {"id": "conv"})
    assert store._read("SELECT size FROM entries") == [before] == store._read("SELECT size FROM owners")


def test_what_is_kept_makes_no_room_for_itself(opened: Callable[..., Store]) -> None:
    """A response and its conversation do not fit together: nothing is kept, and it is said."""
    store = opened("memory", size=20_000)
    store.begin_conversation("", "conv", {"id": "conv"}, [])
    with pytest.raises(StoreFull):
        store.keep("", kept("long", "x" * 12_000, conversation="conv"))
    assert store.response("", "long") is None and store.items("conv", 10**6) == []


@pytest.mark.parametrize("bound", [{"entries": 60}, {"size": 30_000}], ids=str)
def test_no_owner_loses_its_share_to_others(bound: dict[str, int], opened: Callable[..., Store]) -> None:
    """Who writes most makes room with its own oldest. Frames of what runs make room too."""
    store, draw = opened("memory", **bound), random.Random(7)
    wrote: dict[str, list[str]] = {owner: [] for owner in "abcd"}
    for number in range(600):
        owner = draw.choices("abcd", [100, 20, 2, 1])[0]
        wrote[owner].append(str(number))
        store.keep(owner, kept(str(number), "x" * draw.randrange(900)))
        if not number % 50:
            store.begin("a", StoredResponse("runs", response("runs"), [], running=True))
            store.add_frames("runs", [(place, "x" * 100) for place in range(40)])
            assert len(store.frames("runs", -1)) == 40 and store.delete("a", "runs")
        totals = store._read("SELECT sum(entries), sum(size) FROM owners")
        assert totals == store._read("SELECT count(*), sum(size) FROM entries")
        assert totals[0][0] <= bound.get("entries", 600) and totals[0][1] <= bound.get("size", 10**6)
    for owner, ids in wrote.items():
        there = [store.response(owner, id) is not None for id in ids]
        assert there == sorted(there), "the oldest go first"
        assert all(there) == (owner in "cd"), "two have less than a fourth"


def test_a_frame_that_comes_again_counts_once(opened: Callable[..., Store]) -> None:
    """Where a writer does not know whether its frames were taken, it sends them once more."""
    store = opened("memory")
    store.begin("a", StoredResponse("runs", response("runs"), [], running=True))
    ((before,),) = store._read("SELECT size FROM entries")
    for last in (3, 5, 5):
        store.add_frames("runs", [(place, "x" * 100) for place in range(last)])
    assert store._read("SELECT size FROM entries") == [(before + 500,)]
    assert [number for number, _ in store.frames("runs", -1)] == [*range(5)]


def test_ids_of_a_chain_are_kept_once(opened: Callable[..., Store]) -> None:
    store, held, parent = opened("memory"), [7] * 1000, None
    for number in range(50):
        given, sampled = [*held, 1, 2], [3, number]
        store.keep("", kept(str(number), parent=parent), ResponseIds("d", given, sampled))
        held, parent = [*given, *sampled], str(number)
        found = store.held("", parent)
        assert found is not None and (found.given, found.sampled) == (given, sampled)
    assert store._read("SELECT sum(size) FROM entries")[0][0] < 20_000
    store.delete("", "7")
    assert store.held("", "49") is None and store.chain("", "49", 10**6) == [] and store.chain("", "6", 10**6)


_WRITER = """
import sys
from chatparsers.gateway.store import StoredResponse, Store
store = Store(sys.argv[1])
for number in range(200):
    id = f"{sys.argv[2]}-{number}"
    store.keep("", StoredResponse(id, {"id": id, "output": [{"id": id}]}, []))
    sys.stdout.write(f"{id}\\n")  # one write: a print without a buffer is two, and a kill can come between them
    sys.stdout.flush()
sys.stdin.read()
"""


def _writers(folder: Path) -> Iterator[subprocess.Popen[str]]:
    for name in "ab":
        given = [sys.executable, "-c", _WRITER, str(folder), name]
        yield subprocess.Popen(given, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@in_a_file
def test_it_outlives_a_kill(tmp_path: Path, opened: Callable[..., Store]) -> None:
    """Two processes write one file and are killed: all that they said to be kept is there, whole."""
    writers = list(_writers(tmp_path))
    said: list[str] = []
    for writer in writers:
        assert writer.stdout is not None
        said += [writer.stdout.readline() for _ in range(20)]
    for writer in writers:
        writer.kill()
        with writer:
            said += writer.stdout or []
    assert len(said) >= 40 and all(line.endswith("\n") for line in said), "a writer ended by itself"
    said = [line.strip() for line in said]
    store = opened(str(tmp_path))
    assert [id for id in said if store.response("", id) is None] == []
    assert store._read("PRAGMA integrity_check") == [("ok",)]
    count = store._read("SELECT count(*), sum(size) FROM entries")
    assert store._read("SELECT entries, size FROM owners") == count
    store.begin("", StoredResponse("lost", {"id": "lost", "status": "in_progress"}, [], running=True))
    store.base._db.execute("UPDATE entries SET running = running - 60 WHERE id = 'lost'")
    found = store.response("", "lost")
    assert found is not None and not found.running and found.response["status"] == "failed"


@in_a_file
def test_two_begin_a_file_at_once(tmp_path: Path, opened: Callable[..., Store]) -> None:
    """SQLite refuses one of two who turn the log on, without waiting."""
    with closing(sqlite3.connect(tmp_path / FILE, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        ends = threading.Timer(0.3, other.rollback)
        ends.start()
        opened(str(tmp_path)).keep("", kept("first"))
        ends.join()


@in_a_file
def test_two_in_a_process_lose_nothing(tmp_path: Path, opened: Callable[..., Store]) -> None:
    """Another process that comes and goes takes the log with it, unless it sees that others have the file open."""
    one, _ = opened(str(tmp_path)), opened(str(tmp_path))
    other = (
        "import sys; from chatparsers.gateway.store import Store; store = Store(sys.argv[1]); "
        "print(store.response('', 'it') is not None); store.close()"
    )
    found = []
    for _ in range(2):
        ran = subprocess.run([sys.executable, "-c", other, str(tmp_path)], capture_output=True, text=True)
        found.append(ran.stdout.strip())
        one.keep("", kept("it"))
    assert found == ["False", "True"]


@in_a_file
def test_the_log_is_copied_while_nobody_writes(tmp_path: Path, opened: Callable[..., Store]) -> None:
    """Within a transaction: where others write meanwhile, SQLite before 3.51.3 may lose it (the WAL-reset bug)."""
    store = opened(str(tmp_path))
    seen: list[tuple[str, int]] = []  # what begins, and how large the file is before it
    store.base._db.set_trace_callback(lambda said: seen.append((said, (tmp_path / FILE).stat().st_size)))
    logs = []
    for number in range(1000):
        store.keep("", kept(str(number), "x" * 9000))
        logs.append((tmp_path / f"{FILE}-wal").stat().st_size)
    ran = [(said, end) for (said, size), (end, after) in itertools.pairwise(seen) if size != after]
    assert len(ran) > 2 and set(ran) == {("BEGIN IMMEDIATE", "COMMIT")}
    assert max(logs) < 2**23 and logs[-1] < max(logs)


def test_threads_and_processes_take_turns(tmp_path: Path, opened: Callable[..., Store]) -> None:
    stores = [opened(str(tmp_path)) for _ in range(3)]
    stores[0].begin_conversation("", "conv", {"id": "conv"}, [])

    def add(number: int) -> None:
        stores[number % 3].keep("", kept(str(number), conversation="conv"))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(60)))
    items = stores[0].items("conv", 10**6)
    pairs = [(items[at]["id"][3:], items[at + 1]["id"][4:]) for at in range(0, 120, 2)]
    assert len(items) == 120 and all(first == second for first, second in pairs)


@in_a_file
def test_a_file_is_its_users_alone(tmp_path: Path, opened: Callable[..., Store]) -> None:
    opened(str(tmp_path))
    assert (tmp_path / FILE).stat().st_mode & 0o077 == 0
    with closing(sqlite3.connect(tmp_path / FILE)) as db:
        db.execute("PRAGMA foreign_keys = ON")
        with pytest.raises(sqlite3.Error):
            db.execute("INSERT INTO items VALUES ('none', 0, 'x', 'x', '')")
