"""What clients want to be kept: responses and conversations, in one SQLite file or in memory.

Processes share the file, and a restart or a kill keeps it (write-ahead log). All of it is bounded: entries, bytes, and
the time that an entry is not used. Each entry has an owner, and nobody else sees it. Where room is needed, the owner
who has most loses what it has not used for longest. So owners who have less than an equal share lose nothing to others.
A response is used as often as one that goes on from it.

A method runs one short transaction, and may be called from any thread.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..serving import ApiError

FILE = "responses.sqlite3"
"""The name of the file in its folder."""
LOST = 15.0
"""After how many seconds without a beat a response that runs is lost with the process that made it."""
_BUSY = 10.0
"""How many seconds one process waits for another."""
_LONG = 2**22
"""How many bytes the log may have before it is copied into the file."""
_MAKING = threading.Lock()
_LONGEST = 10_000
"""How many responses a chain may have."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS entries (
    id TEXT PRIMARY KEY, owner TEXT NOT NULL, made REAL NOT NULL, used REAL NOT NULL, size INTEGER NOT NULL,
    data TEXT NOT NULL, input TEXT, parent TEXT, conversation TEXT, running REAL, cancelled INTEGER NOT NULL DEFAULT 0,
    prompt TEXT, given BLOB, sampled BLOB, extends INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS by_use ON entries (used);
CREATE INDEX IF NOT EXISTS by_owner ON entries (owner, used);
CREATE TABLE IF NOT EXISTS items (
    entry TEXT NOT NULL REFERENCES entries (id) ON DELETE CASCADE, number INTEGER NOT NULL, id TEXT NOT NULL,
    item TEXT NOT NULL, PRIMARY KEY (entry, number)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS by_item ON items (id);
CREATE TABLE IF NOT EXISTS frames (
    entry TEXT NOT NULL REFERENCES entries (id) ON DELETE CASCADE, number INTEGER NOT NULL, frame TEXT NOT NULL,
    PRIMARY KEY (entry, number)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS owners (owner TEXT PRIMARY KEY, entries INTEGER NOT NULL, size INTEGER NOT NULL)
    WITHOUT ROWID;
CREATE TRIGGER IF NOT EXISTS added AFTER INSERT ON entries BEGIN
    INSERT OR IGNORE INTO owners VALUES (new.owner, 0, 0);
    UPDATE owners SET entries = entries + 1, size = size + new.size WHERE owner = new.owner;
END;
CREATE TRIGGER IF NOT EXISTS removed AFTER DELETE ON entries BEGIN
    UPDATE owners SET entries = entries - 1, size = size - old.size WHERE owner = old.owner;
    DELETE FROM owners WHERE owner = old.owner AND entries = 0;
END;
CREATE TRIGGER IF NOT EXISTS resized AFTER UPDATE OF size ON entries BEGIN
    UPDATE owners SET size = size + new.size - old.size WHERE owner = new.owner;
END;
"""
_CHAIN = """
WITH RECURSIVE chain (id, depth) AS (
    SELECT id, 0 FROM entries WHERE id = ? AND owner = ?
    UNION ALL
    SELECT older.id, depth + 1 FROM chain JOIN entries newer ON newer.id = chain.id
    JOIN entries older ON older.id = newer.parent AND older.owner = newer.owner WHERE depth < ?
)
"""


@dataclass(frozen=True, slots=True)
class ResponseIds:
    """The ids of a response: of its prompt, and what the engine sampled. ``prompt``: the prompt's text, as a digest."""

    prompt: str
    given: Sequence[int]
    sampled: Sequence[int]


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A response. ``input``: the items of its own request. ``running``: it is not yet whole."""

    id: str
    response: dict[str, Any]
    input: list[dict[str, Any]]
    parent: str | None = None
    conversation: str | None = None
    running: bool = False


class StoreFull(Exception):
    """The store cannot take it."""


class Store:
    """``where``: a folder, or ``memory``. ``entries``, ``size`` (bytes) and ``age`` (seconds) bound it."""

    def __init__(
        self, where: str, *, entries: int = 100_000, size: int = 2**30, age: float = 30 * 86_400
    ) -> None:
        self._entries, self._size, self._age = entries, size, age
        self._lock = threading.Lock()
        path = ":memory:"
        if where != "memory":
            Path(where).mkdir(mode=0o700, parents=True, exist_ok=True)
            path = str(Path(where) / FILE)
            _make(path)
        self._log, self._failed = f"{path}-wal", False
        self._db = sqlite3.connect(path, timeout=_BUSY, isolation_level=None, check_same_thread=False)
        self._copying = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            _keep_log(self._db)
            self._db.executescript(
                "PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON; PRAGMA wal_autocheckpoint = 0;"
                f"PRAGMA journal_size_limit = 0; BEGIN IMMEDIATE; {_SCHEMA} COMMIT;"
            )
            self._copying.execute("SELECT count(*) FROM sqlite_master")  # it knows now that there is a log
        except sqlite3.Error:  # no database, or one that another process holds
            self._close()
            raise

    def close(self) -> None:
        """Closes the file."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        self._copying.close()
        self._db.close()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction. Raises `StoreFull` if the disk is full, or the file cannot be written."""
        with self._lock:
            try:
                if self._failed or _size(self._log) > _LONG:
                    with self._alone():
                        self._copy()
                with self._alone() as db:
                    yield db
            except sqlite3.Error as error:
                self._failed = True
                raise StoreFull(str(error)) from error
            self._failed = False

    @contextmanager
    def _alone(self) -> Iterator[sqlite3.Connection]:
        """A transaction, in which no other connection writes."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield self._db
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def _copy(self) -> None:
        """What the log holds goes into the file, so the next write has its space. Within `_alone`: SQLite before 3.51.3
        may lose what others write meanwhile (the WAL-reset bug, sqlite.org/wal.html), so it copies nothing itself."""
        with suppress(sqlite3.Error):  # the disk is full
            self._copying.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def _read(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._reading() as db:
            return db.execute(query, values).fetchall()

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """Raises `ApiError` if the file cannot be read."""
        try:
            with self._lock:
                yield self._db
        except sqlite3.Error as error:
            raise ApiError("the store cannot be read: try again later", status=503) from error

    # responses

    def begin(self, owner: str, kept: StoredResponse) -> None:
        """Keeps a response that runs. Raises `StoreFull`."""
        with self._writing() as db:
            self._insert(db, owner, kept, None)

    def keep(
        self, owner: str, kept: StoredResponse, held: ResponseIds | None = None, *, ran: bool = False
    ) -> None:
        """Keeps a whole response. Its items become those of its conversation. ``ran``: in place of one of its id that
        ran; none if that was deleted. Raises `StoreFull`."""
        with self._writing() as db:
            frames = db.execute("SELECT number, frame FROM frames WHERE entry = ?", (kept.id,)).fetchall()
            gone = db.execute("DELETE FROM entries WHERE id = ? AND owner = ?", (kept.id, owner)).rowcount
            if ran and not gone:
                return
            self._insert(db, owner, kept, held)
            self._frames(db, kept.id, frames)
            output = kept.response.get("output", [])
            places = [(kept.id, number, item["id"], "") for number, item in enumerate(output)]
            db.executemany("INSERT INTO items VALUES (?, ?, ?, ?)", places)
            if kept.conversation is not None:
                self._append(db, kept.conversation, [*kept.input, *output])
                last = "UPDATE entries SET parent = ? WHERE id = ? AND ? IN (SELECT id FROM entries)"
                if not db.execute(last, (kept.id, kept.conversation, kept.id)).rowcount:
                    raise StoreFull("the response and its conversation are more than the store may have")

    def _insert(
        self, db: sqlite3.Connection, owner: str, kept: StoredResponse, held: ResponseIds | None
    ) -> None:
        data, input = json.dumps(kept.response), json.dumps(kept.input)
        given, extends = [] if held is None else [*held.given], False
        parent = kept.parent
        if kept.conversation is not None:
            found = db.execute(
                "SELECT parent FROM entries WHERE id = ? AND owner = ?", (kept.conversation, owner)
            )
            row = found.fetchone()
            if row is None:
                raise StoreFull("the conversation was deleted")
            parent = row[0]
        if held is not None and parent is not None:
            before = self._held(db, owner, parent)
            whole = [] if before is None else [*before.given, *before.sampled]
            extends = bool(whole) and given[: len(whole)] == whole
            given = given[len(whole) :] if extends else given
        blobs = [None, None] if held is None else [_packed(given), _packed(held.sampled)]
        size = len(data) + len(input) + sum(len(blob) for blob in blobs if blob is not None)
        now = time.time()
        self._room(db, size, now)
        values = (
            *(kept.id, owner, now, now, size, data, input, parent, kept.conversation),
            *(now if kept.running else None, held and held.prompt, *blobs, extends),
        )
        db.execute(
            "INSERT INTO entries (id, owner, made, used, size, data, input, parent, conversation, running, prompt, "
            "given, sampled, extends) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            values,
        )

    def _room(self, db: sqlite3.Connection, size: int, now: float, entries: int = 1) -> None:
        """Makes room for an entry, or for more of one."""
        if size > self._size:
            raise StoreFull(f"{size:,} bytes are more than the store may have")
        db.execute("DELETE FROM entries WHERE used < ?", (now - self._age,))
        while True:
            count, total = db.execute("SELECT total(entries), total(size) FROM owners").fetchone()
            if count + entries > self._entries:
                most = "entries"
            elif total + size > self._size:
                most = "size"
            else:
                return
            largest = db.execute(f"SELECT owner, entries FROM owners ORDER BY {most} DESC LIMIT 1").fetchone()
            if largest is None:
                raise StoreFull("the store may have no entry")
            oldest = "SELECT id FROM entries WHERE owner = ? ORDER BY used LIMIT max(1, ? / 64)"
            db.execute(f"DELETE FROM entries WHERE id IN ({oldest})", largest)

    def response(self, owner: str, id: str) -> StoredResponse | None:
        """A response; None if there is none of this owner."""
        rows = self._read(
            "SELECT id, data, input, parent, conversation, running FROM entries WHERE id = ? AND owner = ? AND input "
            "IS NOT NULL",
            id,
            owner,
        )
        return _kept(rows[0]) if rows else None

    def chain(self, owner: str, id: str, most: int) -> list[StoredResponse]:
        """A response and all from which it goes on, oldest first; [] if one of them is gone. ``most``: bytes.

        Raises `ApiError` if they are more."""
        (size,) = self._read(
            _CHAIN + "SELECT sum(size) FROM chain JOIN entries USING (id)", id, owner, _LONGEST
        )[0]
        if (size or 0) > 2 * most:
            said = f"the conversation has more than {most:,} bytes: begin a new one"
            raise ApiError(said, status=413, code="conversation_too_long")
        rows = self._read(
            _CHAIN + "SELECT id, data, input, parent, conversation, running FROM chain JOIN entries "
            "USING (id) ORDER BY depth DESC",
            id,
            owner,
            _LONGEST,
        )
        kept = [_kept(row) for row in rows]
        return [] if not kept or kept[0].parent is not None else kept

    def use(self, owner: str, id: str) -> None:
        """A response, and those from which it goes on, are used now."""
        with self._writing() as db:
            db.execute(
                _CHAIN + "UPDATE entries SET used = ? WHERE id IN (SELECT id FROM chain)",
                (id, owner, _LONGEST, time.time()),
            )

    def held(self, owner: str, id: str) -> ResponseIds | None:
        """The ids of a response; None if they are not held."""
        with self._reading() as db:
            return self._held(db, owner, id)

    def _held(self, db: sqlite3.Connection, owner: str, id: str) -> ResponseIds | None:
        rows = db.execute(
            _CHAIN
            + "SELECT prompt, given, sampled, extends FROM chain JOIN entries USING (id) ORDER BY depth",
            (id, owner, _LONGEST),
        )
        tail: list[list[int]] = []
        first: tuple[str, list[int]] | None = None
        for prompt, given, sampled, extends in rows:
            if given is None:
                return None
            if first is None:
                first = prompt, _unpacked(sampled)
            else:
                tail.append(_unpacked(sampled))
            tail.append(_unpacked(given))
            if not extends:
                return ResponseIds(first[0], [id for part in reversed(tail) for id in part], first[1])
        return None

    def item(self, owner: str, id: str) -> dict[str, Any] | None:
        """An item by its id, of whichever response or conversation."""
        rows = self._read(
            "SELECT item, data FROM items JOIN entries ON entries.id = entry WHERE items.id = ? AND owner = ?",
            id,
            owner,
        )
        for text, data in rows:
            listed = [json.loads(text)] if text else json.loads(data)["output"]
            for item in listed:
                if item["id"] == id:
                    return dict(item)
        return None

    def delete(self, owner: str, id: str) -> bool:
        """Whether there was such an entry."""
        with self._writing() as db:
            return db.execute("DELETE FROM entries WHERE id = ? AND owner = ?", (id, owner)).rowcount > 0

    # responses that run

    def add_frames(self, id: str, frames: Sequence[tuple[int, str]]) -> None:
        """More frames of the stream of a response that runs. Raises `StoreFull`."""
        with self._writing() as db:
            self._frames(db, id, frames)

    def _frames(self, db: sqlite3.Connection, id: str, frames: Sequence[tuple[int, str]]) -> None:
        since = min((number for number, _ in frames), default=0)
        there = db.execute("SELECT number FROM frames WHERE entry = ? AND number >= ?", (id, since))
        known = {number for (number,) in there}
        added = [(id, number, frame) for number, frame in frames if number not in known]
        size, now = sum(len(frame) for _, _, frame in added), time.time()
        more = "UPDATE entries SET used = ?, size = size + ? WHERE id = ?"
        if added and db.execute(more, (now, size, id)).rowcount:
            self._room(db, 0, now, entries=0)
            db.executemany("INSERT INTO frames VALUES (?, ?, ?)", added)

    def frames(self, id: str, after: int) -> list[tuple[int, str]]:
        """The frames after a number, as far as they are there, each with its number."""
        query = "SELECT number, frame FROM frames WHERE entry = ? AND number > ? ORDER BY number"
        return [(number, frame) for number, frame in self._read(query, id, after)]

    def beat(self, id: str) -> bool:
        """A response still runs. Whether it may: it was neither cancelled nor deleted."""
        with self._writing() as db:
            db.execute("UPDATE entries SET running = ? WHERE id = ?", (time.time(), id))
            row = db.execute("SELECT cancelled FROM entries WHERE id = ?", (id,)).fetchone()
            return row is not None and not row[0]

    def cancel(self, owner: str, id: str) -> None:
        """Asks whoever runs a response to stop."""
        with self._writing() as db:
            db.execute("UPDATE entries SET cancelled = 1 WHERE id = ? AND owner = ?", (id, owner))

    # conversations

    def begin_conversation(self, owner: str, id: str, data: dict[str, Any], items: list[Any]) -> None:
        """Keeps a new conversation. Raises `StoreFull`."""
        now, text = time.time(), json.dumps(data)
        with self._writing() as db:
            self._room(db, len(text), now)
            db.execute(
                "INSERT INTO entries (id, owner, made, used, size, data) VALUES (?, ?, ?, ?, ?, ?)",
                (id, owner, now, now, len(text), text),
            )
            self._append(db, id, items)

    def conversation(self, owner: str, id: str) -> tuple[dict[str, Any], str | None] | None:
        """A conversation without its items, and its last response if nothing was added after it."""
        rows = self._read(
            "SELECT data, parent FROM entries WHERE id = ? AND owner = ? AND input IS NULL", id, owner
        )
        return (json.loads(rows[0][0]), rows[0][1]) if rows else None

    def change(self, owner: str, id: str, data: dict[str, Any]) -> None:
        """Replaces what is kept of a conversation besides its items."""
        with self._writing() as db:
            text = json.dumps(data)
            db.execute(
                "UPDATE entries SET data = ?, size = size + ? - length(data) WHERE id = ? AND owner = ?",
                (text, len(text), id, owner),
            )

    def add_items(self, owner: str, id: str, items: list[Any]) -> None:
        """Adds items to a conversation."""
        with self._writing() as db:
            db.execute("UPDATE entries SET parent = NULL WHERE id = ? AND owner = ?", (id, owner))
            self._append(db, id, items)

    def delete_item(self, owner: str, id: str, item: str) -> bool:
        """Whether a conversation had such an item."""
        with self._writing() as db:
            db.execute("UPDATE entries SET parent = NULL WHERE id = ? AND owner = ?", (id, owner))
            found = db.execute(
                "SELECT number, length(item) FROM items WHERE entry = ? AND id = ?", (id, item)
            )
            gone = found.fetchall()
            db.executemany(
                "DELETE FROM items WHERE entry = ? AND number = ?", [(id, number) for number, _ in gone]
            )
            db.execute("UPDATE entries SET size = size - ? WHERE id = ?", (sum(size for _, size in gone), id))
            return bool(gone)

    def items(self, id: str, most: int) -> list[dict[str, Any]]:
        """The items of a conversation, oldest first. ``most``: bytes. Raises `ApiError` if they are more."""
        (size,) = self._read("SELECT sum(length(item)) FROM items WHERE entry = ?", id)[0]
        if (size or 0) > most:
            said = f"the conversation has more than {most:,} bytes: begin a new one"
            raise ApiError(said, status=413, code="conversation_too_long")
        rows = self._read("SELECT item FROM items WHERE entry = ? ORDER BY number", id)
        return [json.loads(item) for (item,) in rows]

    def _append(self, db: sqlite3.Connection, id: str, items: Sequence[dict[str, Any]]) -> None:
        texts = [json.dumps(item) for item in items]
        size, now = sum(map(len, texts)), time.time()
        db.execute("UPDATE entries SET used = ?, size = size + ? WHERE id = ?", (now, size, id))
        self._room(db, 0, now, entries=0)
        (last,) = db.execute("SELECT coalesce(max(number), -1) FROM items WHERE entry = ?", (id,)).fetchone()
        db.executemany(
            "INSERT INTO items VALUES (?, ?, ?, ?)",
            [
                (id, last + 1 + place, str(item.get("id", "")), text)
                for place, (item, text) in enumerate(zip(items, texts, strict=True))
            ],
        )


def _make(path: str) -> None:
    """Makes the file, for nobody else to read. One that is there stays closed: where a process closes a file, the
    system drops all its locks on it, also those of another store."""
    with _MAKING, suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def _keep_log(db: sqlite3.Connection) -> None:
    """Turns the log on. Of two who do so in a new file, SQLite refuses one at once: it tries again."""
    last = time.monotonic() + _BUSY
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > last:
                raise
            time.sleep(0.01)


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


def _kept(row: tuple[Any, ...]) -> StoredResponse:
    id, data, input, parent, conversation, running = row
    response = json.loads(data)
    if running is not None and time.time() - running > LOST:
        response["status"] = "failed"
        response["error"] = {"code": "server_error", "message": "the server that ran it has ended"}
        running = None
    return StoredResponse(id, response, json.loads(input), parent, conversation, running is not None)


def _packed(ids: Sequence[int]) -> bytes:
    return array("I", ids).tobytes()


def _unpacked(raw: bytes) -> list[int]:
    ids = array("I")
    ids.frombytes(raw)
    return ids.tolist()
