"""Nothing goes by a clock that somebody sets, and what goes is told."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the package starlette is not installed")

from chatparsers.gateway.store import LOST, Store, StoredResponse

DAY = 86_400.0


def kept(id: str, **more: Any) -> StoredResponse:
    return StoredResponse(id, {"id": id, "status": "queued", "output": []}, [], **more)


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """What is added to each clock."""
    added = {"time": 0.0, "monotonic": 0.0}
    real = {name: getattr(time, name) for name in added}
    for name in added:
        monkeypatch.setattr(time, name, lambda name=name: real[name]() + added[name])
    return added


@pytest.mark.parametrize("jump", [20.0, -3600.0, 31 * DAY, -31 * DAY])
def test_a_clock_that_is_set_ages_nothing(jump: float, clocks: dict[str, float], tmp_path: Path) -> None:
    told: list[Any] = []
    with closing(Store(str(tmp_path), tell=lambda *one: told.append(one))) as store:
        store.keep("", kept("old"))
        store.begin("", kept("runs", running=True))
        clocks["time"] = jump
        found = store.response("", "runs")
        assert found is not None and found.running and store.beat("runs")
        clocks["time"] = 0.0
        found = store.response("", "runs")
        assert found is not None and found.running
        clocks["time"] = jump
        store.keep("", kept("new"))
        assert store.response("", "old") is not None
    with closing(Store(str(tmp_path), tell=lambda *one: told.append(one))) as store:
        store.keep("", kept("newer"))
        assert store.response("", "old") is not None and not told


def test_a_clock_that_is_damaged_ages_nothing(tmp_path: Path) -> None:
    told: list[str] = []
    with closing(Store(str(tmp_path), tell=lambda kind, *_: told.append(kind))) as store:
        store.keep("", kept("old"))
        with store.base.reading() as db:
            db.run("UPDATE about SET clock = clock + 1e9")
        store.keep("", kept("new"))
        assert store.response("", "old") is not None and told == ["damaged"]
        store.keep("", kept("newer"))
        assert told == ["damaged"]


def test_what_a_used_store_ages_goes_and_is_told(clocks: dict[str, float], tmp_path: Path) -> None:
    """Of two processes each sees the time that passed, and it passes once."""
    told: list[Any] = []
    with closing(Store(str(tmp_path), tell=lambda *one: told.append(one))) as store:
        with closing(Store(str(tmp_path))) as other:
            store.keep("", kept("old"))
            store.begin("", kept("runs", running=True))
            other.keep("", kept("middle"))
            clocks["monotonic"] += LOST + 1
            for one in (store, other):
                found = one.response("", "runs")
                assert found is not None and not found.running and found.response["status"] == "failed"
            clocks["monotonic"] += 20 * DAY
            other.use("", "middle")
            clocks["monotonic"] += 9 * DAY
            store.keep("", kept("new"))
            assert store.response("", "old") is not None
            clocks["monotonic"] += 2 * DAY
            store.keep("", kept("newer"))
            assert store.response("", "old") is None and store.response("", "middle") is not None
        assert [(kind, number) for kind, _, number in told] == [("aged", 2)]
        told.clear()
        store._entries = 2
        store.keep("", kept("last"))
        assert [(kind, number) for kind, _, number in told] == [("room", 1), ("room", 1)]
