"""A store whose file or log was damaged: what is read is what was written, and what is not is told."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from databases import made_earlier

pytest.importorskip("starlette", reason="the package starlette is not installed")

from chatparsers.gateway.store import FILE, ResponseIds, Store, StoredResponse
from chatparsers.serving import ApiError

LOG = f"{FILE}-wal"
HOW = ("flip", "flips", "cut", "zero", "page", "append", "gone")


def kept(number: int) -> StoredResponse:
    text = f"word{number} " * (number * 37 % 90)
    response = {"id": f"r{number}", "status": "completed", "output": [{"id": f"m{number}", "text": text}]}
    parent = f"r{number - 1}" if number % 5 else None
    return StoredResponse(f"r{number}", response, [{"id": f"in{number}", "role": "user"}], parent)


def conversation(number: int) -> list[dict[str, Any]]:
    return [{"id": f"i{number}-{place}", "text": "said " * 20 * place} for place in range(number)]


def fill(store: Store) -> None:
    for number in range(120):
        store.keep("", kept(number), ResponseIds("d", [number] * 9, [7, number]))
    for number in range(9):
        store.begin_conversation("", f"c{number}", {"id": f"c{number}"}, conversation(number))


def damage(path: Path, how: str, draw: random.Random) -> None:
    raw = bytearray(path.read_bytes())
    for _ in range({"flip": 1, "flips": 50}.get(how, 0)):
        raw[draw.randrange(len(raw))] ^= 1 << draw.randrange(8)
    if how == "cut":
        del raw[draw.randrange(len(raw)) :]
    elif how in ("zero", "page"):
        size = 16 if how == "zero" else 4096
        at = draw.randrange(len(raw)) // size * size
        raw[at : at + size] = bytes(len(raw[at : at + size]))
    elif how == "append":
        raw += draw.randbytes(5000)
    path.write_bytes(raw)
    if how == "gone":
        path.unlink()


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A store that was killed, with all in its log, and one that was closed, with all in its file."""
    base = tmp_path_factory.mktemp("stores")
    store = Store(str(base / "open"))
    fill(store)
    shutil.copytree(base / "open", base / "killed")
    store.close()
    return {"killed": base / "killed", "closed": base / "open"}


def test_a_clean_stop_leaves_all_in_the_file(folders: dict[str, Path], tmp_path: Path) -> None:
    closed = folders["closed"]
    assert not (closed / LOG).exists() or not (closed / LOG).stat().st_size
    (tmp_path / FILE).write_bytes((closed / FILE).read_bytes())
    with closing(Store(str(tmp_path))) as store:
        assert store.response("", "r119") == kept(119)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("which", [("closed", FILE), ("killed", FILE), ("killed", LOG)], ids=str)
def test_nothing_is_lost_in_silence(
    which: tuple[str, str],
    how: str,
    folders: dict[str, Path],
    tmp_path: Path,
    amount: Callable[[int, int, int], int],
) -> None:
    """Each entry is as it was written, or what became of it is told; none stops another, or a later write."""
    for seed in range(amount(2, 6, 60)):
        folder = tmp_path / str(seed)
        shutil.copytree(folders[which[0]], folder)
        damage(folder / which[1], how, random.Random(f"{which} {how} {seed}"))
        told: list[tuple[str, str, int]] = []
        try:
            store = Store(str(folder), tell=lambda *one: told.append(one))  # noqa: B023
        except sqlite3.Error as error:
            assert "not a database" in str(error) and which[1] == FILE, (seed, error)
            continue
        with closing(store):
            missing = 0
            for number in range(120):
                try:
                    found = store.response("", f"r{number}")
                    chain = store.chain("", f"r{number}", 10**7)
                except ApiError:
                    missing += 1
                    continue
                assert found in (None, kept(number)), (seed, number)
                assert len(chain) in (0, number % 5 + 1)
                held = store.held("", f"r{number}")
                assert held is None or (list(held.given), list(held.sampled)) == ([number] * 9, [7, number])
                missing += found is None or held is None
            for number in range(9):
                try:
                    items = store.conversation("", f"c{number}") and store.items(f"c{number}", 10**6)
                except ApiError:
                    missing += 1
                    continue
                assert items in (None, conversation(number)), (seed, number)
                missing += items is None
            assert not missing or told, (seed, missing)
            assert all(str(folder / FILE) in said for _, said, _ in told)
            store.keep("", kept(500))
            assert store.response("", "r500") == kept(500)
        again: list[Any] = []
        with closing(Store(str(folder), tell=lambda *one: again.append(one))) as store:  # noqa: B023
            assert store.response("", "r500") == kept(500)
        assert not again, (seed, again)


@pytest.mark.parametrize(
    "changed", ["UPDATE owners SET entries = 9", "INSERT INTO owners VALUES ('x', 10000000, 0)"]
)
def test_what_is_counted_of_owners_is_counted_anew(changed: str, tmp_path: Path) -> None:
    """Else a store that looks full would let go what it has."""
    with closing(Store(str(tmp_path))) as store:
        fill(store)
    with closing(sqlite3.connect(tmp_path / FILE)) as db:
        db.execute(changed)
        db.commit()
    told: list[str] = []
    with closing(Store(str(tmp_path), tell=lambda kind, *_: told.append(kind))) as store:
        store.keep("", kept(500))
        assert all(store.response("", f"r{number}") == kept(number) for number in range(120))
        assert told == ["damaged"]


def test_a_row_that_was_changed_is_an_error_for_its_reader(tmp_path: Path) -> None:
    """While the store is open: by whoever writes into its file."""
    told: list[str] = []
    with closing(Store(str(tmp_path), tell=lambda kind, *_: told.append(kind))) as store:
        fill(store)
        store.begin("", StoredResponse("runs", {"id": "runs", "status": "queued"}, [], running=True))
        store.add_frames("runs", [(place, f"frame {place}") for place in range(9)])
        with closing(sqlite3.connect(tmp_path / FILE)) as db:
            db.execute("UPDATE entries SET data = replace(data, 'word7', 'word9') WHERE id = 'r7'")
            db.execute("UPDATE entries SET sampled = given WHERE id = 'r9'")
            db.execute("UPDATE entries SET input = NULL WHERE id = 'r11'")
            db.execute("UPDATE entries SET input = '[]' WHERE id = 'c3'")
            db.execute(
                "UPDATE items SET item = replace(item, 'said', 'sold') WHERE entry = 'c5' AND number = 2"
            )
            db.execute("DELETE FROM items WHERE entry = 'c7' AND number = 6")
            db.execute("DELETE FROM frames WHERE number = 5")
            db.commit()
        for ask in (
            lambda: store.response("", "r7"),
            lambda: store.chain("", "r8", 10**6),
            lambda: store.response("", "r11"),
            lambda: store.conversation("", "c3"),
            lambda: store.item("", "i5-2"),
            lambda: store.items("c5", 10**6),
            lambda: store.items("c7", 10**6),
            lambda: store.frames("runs", -1),
        ):
            with pytest.raises(ApiError, match="is damaged in the store") as caught:
                ask()
            assert caught.value.status == 410
        assert store.held("", "r9") is None and store.held("", "r11") is not None
        assert told == ["damaged"] * 9
        assert store.response("", "r6") == kept(6) and store.items("c6", 10**6) == conversation(6)


def test_a_store_that_is_gone_beside_its_log_is_told(folders: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(folders["killed"], tmp_path / "store")
    (tmp_path / "store" / FILE).unlink()
    told: list[tuple[str, str, int]] = []
    with closing(Store(str(tmp_path / "store"), tell=lambda *one: told.append(one))):
        assert [kind for kind, *_ in told] == ["lost", "lost"]
        assert "is gone" in told[0][1] and told[1][2] == 129
        assert os.path.exists(tmp_path / "store" / f"{LOG}.damaged")


def test_a_store_of_an_earlier_version_is_taken(tmp_path: Path) -> None:
    with closing(Store(str(tmp_path))) as store:
        fill(store)
    made_earlier(tmp_path)
    told: list[Any] = []
    with closing(Store(str(tmp_path), age=60, tell=lambda *one: told.append(one))) as store:
        store.keep("", kept(200))
        assert [store.response("", f"r{number}") for number in range(120)] == [*map(kept, range(120))]
        held = store.held("", "r7")
        assert held is not None and held.sampled == [7, 7] and not told
