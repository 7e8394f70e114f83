"""Forks, spawned processes and threads: no lock is left held, nothing changes under an iteration, all that is public
can be sent to another process."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import sys
import threading
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import pytest
from making import tool

import chatparsers
from chatparsers import plugins as plugins_module
from chatparsers.kept import Kept, SharedLock, cached
from chatparsers.schema import tools as tools_module

OWN = Path(__file__).parents[1] / "templates_own"
USER = [{"role": "user", "content": "Hello"}]
CALL = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'


def in_child(work: Callable[[], object]) -> int:
    """The exit code of a forked child that does ``work``; it is killed if it takes 20 seconds."""
    import signal

    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DeprecationWarning
        )  # of a fork beside threads, which is the case here
        child = os.fork()
    if not child:
        signal.alarm(20)
        try:
            work()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
class TestForks:
    def test_a_lock_that_another_thread_holds_is_free_in_the_child(self) -> None:
        cache: Kept[int] = Kept(800)
        cache.add("a", 1, 10)
        forgotten: list[int] = []
        shared = SharedLock(lambda: forgotten.append(1))
        held, done = threading.Event(), threading.Event()

        def hold() -> None:
            with cache._lock, shared:
                held.set()
                done.wait()

        def work() -> None:
            cache.add("b", 2, 10)
            assert (cache.get("a"), cache.get("b"), cache.size) == (None, 2, 10)
            with shared:
                assert forgotten == [1]

        thread = threading.Thread(target=hold)
        thread.start()
        held.wait()
        try:
            assert in_child(work) == 0
        finally:
            done.set()
            thread.join()
        assert cache.get("a") == 1  # the parent's own is as it was

    def test_a_free_cache_stays_warm(self) -> None:
        cache: Kept[int] = Kept(800)
        cache.add("a", 1, 10)
        shared = SharedLock()

        def work() -> None:
            assert cache.get("a") == 1

        assert in_child(work) == 0
        with shared:  # the thread that forks may hold it itself
            assert in_child(shared.__enter__) == 0

    def test_forks_at_any_moment_of_other_threads_work(
        self, busy: Callable[[], None], amount: Callable[[int, int, int], int]
    ) -> None:
        def work() -> None:
            turn = chatparsers.get_format("qwen3").bind(tools=[tool("f")])
            assert turn.grammar() is not None
            assert turn.parse(CALL).complete

        busy()
        for _ in range(amount(4, 12, 200)):
            assert in_child(work) == 0

    def test_a_fork_waits_for_the_import_of_another_thread(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The child has the lock of that module, and no thread that gives it back."""
        (tmp_path / "slow.py").write_text("import time\ntime.sleep(0.3)\n", encoding="utf-8")
        monkeypatch.setattr(chatparsers, "__path__", [*chatparsers.__path__, str(tmp_path)])
        thread = threading.Thread(target=import_module, args=("chatparsers.slow",))
        thread.start()
        while "chatparsers.slow" not in sys.modules:
            time.sleep(0.001)
        assert in_child(lambda: import_module("chatparsers.slow")) == 0
        thread.join()
        del sys.modules["chatparsers.slow"]


@pytest.fixture
def busy() -> Iterator[Callable[[], None]]:
    """Starts threads that bind ever new tools and write grammars."""
    stop = threading.Event()
    failed: list[BaseException] = []
    format = chatparsers.get_format("hermes-2-pro")

    def work(number: int) -> None:
        count = 0
        try:
            while not stop.is_set():
                count += 1
                turn = format.bind(tools=[tool(f"t{number}_{count}", properties={"a": {"type": "integer"}})])
                if count % 8 == 0:
                    turn.grammar()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]

    def start() -> None:
        for thread in threads:
            thread.start()

    yield start
    stop.set()
    for thread in threads:
        if thread.ident is not None:
            thread.join()
    assert not failed


def test_binding_in_threads_that_switch_all_the_time(amount: Callable[[int, int, int], int]) -> None:
    lists = [[tool(f"t{number}")] for number in range(64)]
    format = chatparsers.get_format("qwen3")
    failed: list[BaseException] = []

    def work(start: int) -> None:
        try:
            for count in range(amount(300, 1_000, 50_000)):
                format.bind(tools=lists[(start + count * 7) % 64])
        except BaseException as error:
            failed.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(number * 16,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert not failed


def test_tools_of_strangers_do_not_pile_up() -> None:
    """What stays of requests with many tools is bounded by bytes, and what is counted is no less than what it takes."""
    format = chatparsers.get_format("qwen3")
    tools_module._seen.clear()
    most, tools_module._seen.most = tools_module._seen.most, 4_000_000
    try:
        tracemalloc.start()
        for request in range(40):
            members = {f"m{request}_{number}": {"type": "integer"} for number in range(60)}
            format.bind(tools=[tool("f", properties=members)])
        kept = tracemalloc.get_traced_memory()[0]
        counted = tools_module._seen.size
        assert len(tools_module._seen) and kept < 1.5 * counted <= 6_000_000
        format.bind(
            tools=[tool("f", properties={f"m{number}": {"type": "integer"} for number in range(30_000)})]
        )
        assert tools_module._seen.size == counted  # too large to be kept at all
    finally:
        tracemalloc.stop()
        tools_module._seen.most = most
        tools_module._seen.clear()


def test_a_value_that_two_threads_make_is_one() -> None:
    class Held:
        @cached
        def value(self) -> object:
            """A value."""
            barrier.wait()
            return object()

    barrier = threading.Barrier(2)
    held = Held()
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(held.value)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0] is found[1] is held.value
    assert Held.value.__doc__ == "A value."


def test_a_plugin_that_hangs_is_named_by_the_threads_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def load(self: plugins_module.Plugins) -> None:
        self.loading = "acme 1.0"
        begun.set()
        go_on.wait()

    monkeypatch.setattr(plugins_module, "_loaded", None)
    monkeypatch.setattr(plugins_module, "_PATIENCE", 0.0)
    monkeypatch.setattr(plugins_module.Plugins, "load", load)
    thread = threading.Thread(target=plugins_module.plugins)
    thread.start()
    begun.wait()
    try:
        # turned into an error, the warning also ends the wait
        with warnings.catch_warnings():
            warnings.simplefilter("error", plugins_module.PluginWarning)
            with pytest.raises(
                plugins_module.PluginWarning, match=r"plugin acme 1.0 is still being imported"
            ):
                plugins_module.plugins()
    finally:
        go_on.set()
        thread.join()


def chats() -> Iterator[chatparsers.Chat]:
    yield chatparsers.load(OWN / "qwen3.jinja")
    yield chatparsers.load(OWN / "gemma-4.jinja", format="auto")  # a format that the analysis makes
    yield chatparsers.load(template="chatml")


@pytest.mark.parametrize("used", [False, True], ids=["new", "used"])
def test_what_users_hold_can_be_pickled(used: bool) -> None:
    for chat in chats():
        if used:
            chat.warm()
        request = {"tools": [tool("f", properties={"a": {"type": "integer"}})], "id_seed": ""}
        turn = chat.prepare(USER, **request)
        again = pickle.loads(pickle.dumps(chat))
        assert again.prepare(USER, **request).prompt == turn.prompt
        assert again.format == chat.format and again.detection == chat.detection
        stream = turn.stream()
        stream.feed("Hi")
        restored = pickle.loads(pickle.dumps((chat.format, turn, stream)))
        assert restored[0] == chat.format
        assert restored[1].prompt == turn.prompt
        restored[2].finish()
        assert restored[2].message.text == "Hi"


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
@pytest.mark.nightly
def test_they_work_in_processes_that_are_started_anew(method: str) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} on this system")
    chat = chatparsers.load(OWN / "qwen3.jinja")
    turn = chat.prepare(USER, tools=[tool("f", properties={"a": {"type": "integer"}})], id_seed="")
    with multiprocessing.get_context(method).Pool(1) as pool:
        assert pool.apply(turn.parse, (CALL,)) == turn.parse(CALL)
        theirs = pool.apply(chat.prepare, (USER,), {"id_seed": ""})
        assert theirs.prompt == chat.prepare(USER).prompt
        assert pool.apply(chat.format.bind, (), {"id_seed": "x"}).call_id(0) == chat.format.bind(
            id_seed="x"
        ).call_id(0)
