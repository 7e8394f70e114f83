"""What clients want to be kept: responses and conversations, in SQLite (one file, or memory) or in PostgreSQL.

Processes share it, and a restart or a kill keeps it. All of it is bounded: entries, bytes, and the time that an entry
is not used, by the store's own clock, which nobody sets. Each entry has an owner, and nobody else sees it. Where room
is needed, the owner who has most loses what it has not used for longest. So owners who have less than an equal share
lose nothing to others. A response is used as often as one that goes on from it.

A row has a digest. What is not what was written is an error for who asks for it, and told; the others go on.

A method runs one short transaction, and may be called from any thread.
"""

from __future__ import annotations

import json
import sys
import time
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..lazy import load_reference
from ..serving import ApiError
from ..storage.database import Database, Rows, StoreFull, Tell, Told, damaged
from ..storage.rows import INSERT, KEPT, SEALED, row_of, sealed
from ..storage.sqlite import FILE, Sqlite

__all__ = ["FILE", "ResponseIds", "Store", "StoreFull", "StoredResponse"]

LOST = 15.0
"""After how many seconds without a beat a response that runs is lost with the process that made it."""
URLS = "postgresql://", "postgres://"
"""How the place of a store on a server begins."""
_LONGEST = 10_000
"""How many responses a chain may have."""
_CHAIN = """
WITH RECURSIVE chain (id, depth) AS (
    SELECT id, 0 FROM entries WHERE id = ? AND owner = ?
    UNION ALL
    SELECT older.id, depth + 1 FROM chain JOIN entries newer ON newer.id = chain.id
    JOIN entries older ON older.id = newer.parent AND older.owner = newer.owner WHERE depth < ?
)
"""
_ROW = f"{SEALED}, digest, running"
"""What is read of an entry."""


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


class Store:
    """``where``: a folder, ``memory``, or ``postgresql://…``. ``entries``, ``size`` (bytes) and ``age`` (seconds that
    the store is used) bound it. ``tell``: takes what is to be told. Raises `OSError` or `sqlite3.Error` if it cannot be
    used."""

    def __init__(
        self,
        where: str,
        *,
        entries: int = 100_000,
        size: int = 2**30,
        age: float = 30 * 86_400,
        tell: Tell = lambda kind, said, number: print(f"chatparsers: warning: {said}", file=sys.stderr),
    ) -> None:
        self._entries, self._size, self._age, self._tell = entries, size, age, tell
        self.base: Database
        """Where it lives."""
        if where.startswith(URLS):
            try:
                self.base = load_reference("chatparsers.storage.postgresql:Postgresql")(where, tell)
            except ModuleNotFoundError as error:
                raise OSError("PostgreSQL needs pip install 'chatparsers[postgresql]'") from error
        else:
            self.base = Sqlite(None if where == "memory" else where, tell)

    def close(self) -> None:
        """Lets it go; a file has all that was kept."""
        self.base.close()

    def _read(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with self.base.reading() as db:
            return db.all(query, *values)

    def _damaged(self, what: str) -> ApiError:
        """Tells that a row is not what was written."""
        error = damaged(self.base.where, what)
        self._tell("damaged", error.message, 1)
        return error

    # responses

    def begin(self, owner: str, kept: StoredResponse) -> None:
        """Keeps a response that runs. Raises `StoreFull`."""
        with self.base.writing() as db:
            self._insert(db, owner, kept, None)

    def keep(
        self, owner: str, kept: StoredResponse, held: ResponseIds | None = None, *, ran: bool = False
    ) -> None:
        """Keeps a whole response. Its items become those of its conversation. ``ran``: in place of one of its id that
        ran; none if that was deleted. Raises `StoreFull`."""
        with self.base.writing() as db:
            frames = db.all("SELECT number, frame FROM frames WHERE entry = ?", kept.id)
            gone = db.run("DELETE FROM entries WHERE id = ? AND owner = ?", kept.id, owner)
            if ran and not gone:
                return
            self._insert(db, owner, kept, held)
            self._frames(db, kept.id, frames)
            output = kept.response.get("output", [])
            self._place(db, kept.id, [(number, item["id"], "") for number, item in enumerate(output)])
            if kept.conversation is not None:
                self._append(db, kept.conversation, [*kept.input, *output])
                if not db.all("SELECT 1 FROM entries WHERE id = ?", kept.id):
                    raise StoreFull("the response and its conversation are more than the store may have")
                self._reseal(db, owner, kept.conversation, parent=kept.id)

    def _insert(self, db: Rows, owner: str, kept: StoredResponse, held: ResponseIds | None) -> None:
        data, input = json.dumps(kept.response), json.dumps(kept.input)
        given, extends = [] if held is None else [*held.given], False
        parent = kept.parent
        if kept.conversation is not None:
            found = db.all("SELECT parent FROM entries WHERE id = ? AND owner = ?", kept.conversation, owner)
            if not found:
                raise StoreFull("the conversation was deleted")
            parent = found[0][0]
        if held is not None and parent is not None:
            before = self._held(db, owner, parent)
            whole = [] if before is None else [*before.given, *before.sampled]
            extends = bool(whole) and given[: len(whole)] == whole
            given = given[len(whole) :] if extends else given
        blobs = [None, None] if held is None else [_packed(given), _packed(held.sampled)]
        size = len(data) + len(input) + sum(len(blob) for blob in blobs if blob is not None)
        now = db.now
        self._room(db, size, now)
        row = row_of(
            id=kept.id,
            owner=owner,
            made=time.time(),
            used=now,
            size=size,
            data=data,
            input=input,
            parent=parent,
            conversation=kept.conversation,
            running=now if kept.running else None,
            prompt=None if held is None else held.prompt,
            given=blobs[0],
            sampled=blobs[1],
            extends=int(extends),
        )
        db.run(INSERT, *row)

    def _reseal(self, db: Rows, owner: str, id: str, **changed: Any) -> None:
        """Changes ``data`` or ``parent`` of a conversation, if it is there."""
        for row in db.all(f"SELECT {_ROW} FROM entries WHERE id = ? AND owner = ?", id, owner):
            self._whole(row)
            named = {**dict(zip(KEPT, row, strict=False)), **changed}
            size = len(named["data"]) - len(row[2])
            query = "UPDATE entries SET data = ?, parent = ?, digest = ?, size = size + ? WHERE id = ?"
            db.run(query, named["data"], named["parent"], sealed(*named.values(), row[6]), size, id)

    def _room(self, db: Rows, size: int, now: float, entries: int = 1) -> None:
        """Makes room for an entry, or for more of one."""
        if size > self._size:
            raise StoreFull(f"{size:,} bytes are more than the store may have")
        gone = db.run("DELETE FROM entries WHERE used < ?", now - self._age)
        if gone:
            self._went("aged", gone)
        while True:
            query = "SELECT coalesce(sum(entries), 0), coalesce(sum(size), 0) FROM owners"
            ((count, total),) = db.all(query)
            if count + entries > self._entries:
                most = "entries"
            elif total + size > self._size:
                most = "size"
            else:
                return
            largest = db.all(f"SELECT owner, entries FROM owners ORDER BY {most} DESC LIMIT 1")
            if not largest:
                raise StoreFull("the store may have no entry")
            ((owner, number),) = largest
            oldest = "SELECT id FROM entries WHERE owner = ? ORDER BY used LIMIT ?"
            gone = db.run(f"DELETE FROM entries WHERE id IN ({oldest})", owner, max(1, number // 64))
            self._went("room", gone)

    def _went(self, why: Told, gone: int) -> None:
        how = f"were not used for {self._age:,g} seconds" if why == "aged" else "made room for others"
        self._tell(why, f"entries of the store {self.base.where} went, which {how}", gone)

    def response(self, owner: str, id: str) -> StoredResponse | None:
        """A response; None if there is none of this owner."""
        query = f"SELECT {_ROW} FROM entries WHERE id = ? AND owner = ?"
        with self.base.reading() as db:
            rows = db.all(query, _word(id), owner)
            for row in rows:
                self._whole(row)
            return self._kept(db, rows[0]) if rows and rows[0][3] is not None else None

    def _whole(self, row: tuple[Any, ...]) -> None:
        """Raises `ApiError` for a row of `_ROW` that is not what was written."""
        if sealed(*row[:7]) != row[7]:
            raise self._damaged(f"{'the conversation' if row[3] is None else 'the response'} {row[0]!r}")

    def _kept(self, db: Rows, row: tuple[Any, ...]) -> StoredResponse:
        self._whole(row)
        id, _, data, input, parent, conversation, _, _, running = row
        response = json.loads(data)
        if running is not None and db.now - running > LOST:
            response["status"] = "failed"
            response["error"] = {"code": "server_error", "message": "the server that ran it has ended"}
            running = None
        return StoredResponse(id, response, json.loads(input), parent, conversation, running is not None)

    def chain(self, owner: str, id: str, most: int) -> list[StoredResponse]:
        """A response and all from which it goes on, oldest first; [] if one of them is gone. ``most``: bytes.

        Raises `ApiError` if they are more."""
        id = _word(id)
        query = f"{_CHAIN} SELECT sum(size) FROM chain JOIN entries USING (id)"
        ((size,),) = self._read(query, id, owner, _LONGEST)
        if (size or 0) > 2 * most:
            said = f"the conversation has more than {most:,} bytes: begin a new one"
            raise ApiError(said, status=413, code="conversation_too_long")
        query = f"{_CHAIN} SELECT {_ROW} FROM chain JOIN entries USING (id) ORDER BY depth DESC"
        with self.base.reading() as db:
            kept = [self._kept(db, row) for row in db.all(query, id, owner, _LONGEST)]
        return [] if not kept or kept[0].parent is not None else kept

    def use(self, owner: str, id: str) -> None:
        """A response, and those from which it goes on, are used now."""
        with self.base.writing() as db:
            query = f"{_CHAIN} UPDATE entries SET used = ? WHERE id IN (SELECT id FROM chain)"
            db.run(query, _word(id), owner, _LONGEST, db.now)

    def held(self, owner: str, id: str) -> ResponseIds | None:
        """The ids of a response; None if they are not held."""
        with self.base.reading() as db:
            return self._held(db, owner, id)

    def _held(self, db: Rows, owner: str, id: str) -> ResponseIds | None:
        rows = db.all(
            f"{_CHAIN} SELECT id, prompt, given, sampled, extends, ids_digest FROM chain JOIN entries USING (id) "
            "ORDER BY depth",
            *(_word(id), owner, _LONGEST),
        )
        tail: list[list[int]] = []
        first: tuple[str, list[int]] | None = None
        for *values, digest in rows:
            of, prompt, given, sampled, extends = values
            if sealed(*values) != digest:
                self._damaged(f"what is kept of the ids of {of!r}")
                return None
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
            "SELECT entry, number, items.id, item, items.digest FROM items JOIN entries ON entries.id = entry "
            "WHERE items.id = ? AND owner = ?",
            _word(id),
            owner,
        )
        for row in rows:
            kept = None if row[3] else self.response(owner, row[0])
            listed = [self._item(row)] if row[3] else [] if kept is None else kept.response["output"]
            for item in listed:
                if item["id"] == id:
                    return dict(item)
        return None

    def _item(self, row: tuple[Any, ...]) -> dict[str, Any]:
        """The item of a row: entry, number, id, item and digest."""
        if sealed(*row[:4]) != row[4]:
            raise self._damaged(f"the item {row[1]} of {row[0]!r}")
        return dict(json.loads(row[3]))

    def delete(self, owner: str, id: str) -> bool:
        """Whether there was such an entry."""
        with self.base.writing() as db:
            return db.run("DELETE FROM entries WHERE id = ? AND owner = ?", _word(id), owner) > 0

    # responses that run

    def add_frames(self, id: str, frames: Sequence[tuple[int, str]]) -> None:
        """More frames of the stream of a response that runs. Raises `StoreFull`."""
        with self.base.writing() as db:
            self._frames(db, id, frames)

    def _frames(self, db: Rows, id: str, frames: Sequence[tuple[int, str]]) -> None:
        since = min((number for number, _ in frames), default=0)
        there = db.all("SELECT number FROM frames WHERE entry = ? AND number >= ?", id, since)
        known = {number for (number,) in there}
        added = [(id, number, frame) for number, frame in frames if number not in known]
        size, now = sum(len(frame) for _, _, frame in added), db.now
        more = "UPDATE entries SET used = ?, size = size + ? WHERE id = ?"
        if added and db.run(more, now, size, id):
            self._room(db, 0, now, entries=0)
            query = "INSERT INTO frames (entry, number, frame, digest) VALUES (?, ?, ?, ?)"
            db.many(query, [(*one, sealed(*one)) for one in added])

    def frames(self, id: str, after: int) -> list[tuple[int, str]]:
        """The frames after a number, as far as they are there, each with its number. Raises `ApiError` if one is
        damaged or missing."""
        query = "SELECT number, frame, digest FROM frames WHERE entry = ? AND number > ? ORDER BY number"
        found = self._read(query, id, after)
        for place, (number, frame, digest) in enumerate(found, after + 1):
            if number != place or sealed(id, number, frame) != digest:
                raise self._damaged(f"the stream of {id!r}")
        return [(number, frame) for number, frame, _ in found]

    def beat(self, id: str) -> bool:
        """A response still runs. Whether it may: it was neither cancelled nor deleted."""
        with self.base.writing() as db:
            db.run("UPDATE entries SET running = ? WHERE id = ? AND running IS NOT NULL", db.now, id)
            found = db.all("SELECT cancelled FROM entries WHERE id = ?", id)
            return bool(found) and not found[0][0]

    def cancel(self, owner: str, id: str) -> None:
        """Asks whoever runs a response to stop."""
        with self.base.writing() as db:
            db.run("UPDATE entries SET cancelled = 1 WHERE id = ? AND owner = ?", _word(id), owner)

    # conversations

    def begin_conversation(self, owner: str, id: str, data: dict[str, Any], items: list[Any]) -> None:
        """Keeps a new conversation. Raises `StoreFull`."""
        text = json.dumps(data)
        with self.base.writing() as db:
            now = db.now
            self._room(db, len(text), now)
            new = row_of(id=id, owner=owner, made=time.time(), used=now, size=len(text), data=text)
            db.run(INSERT, *new)
            self._append(db, id, items)

    def conversation(self, owner: str, id: str) -> tuple[dict[str, Any], str | None] | None:
        """A conversation without its items, and its last response if nothing was added after it."""
        query = f"SELECT {_ROW} FROM entries WHERE id = ? AND owner = ?"
        for row in self._read(query, _word(id), owner):
            self._whole(row)
            return (json.loads(row[2]), row[4]) if row[3] is None else None
        return None

    def change(self, owner: str, id: str, data: dict[str, Any]) -> None:
        """Replaces what is kept of a conversation besides its items."""
        with self.base.writing() as db:
            self._reseal(db, owner, id, data=json.dumps(data))

    def add_items(self, owner: str, id: str, items: list[Any]) -> None:
        """Adds items to a conversation."""
        with self.base.writing() as db:
            self._reseal(db, owner, id, parent=None)
            self._append(db, id, items)

    def delete_item(self, owner: str, id: str, item: str) -> bool:
        """Whether a conversation had such an item."""
        with self.base.writing() as db:
            self._reseal(db, owner, id, parent=None)
            query = "SELECT number, length(item) FROM items WHERE entry = ? AND id = ?"
            gone = db.all(query, id, _word(item))
            db.many("DELETE FROM items WHERE entry = ? AND number = ?", [(id, number) for number, _ in gone])
            db.run("UPDATE entries SET size = size - ? WHERE id = ?", sum(size for _, size in gone), id)
            return bool(gone)

    def items(self, id: str, most: int) -> list[dict[str, Any]]:
        """The items of a conversation, oldest first. ``most``: bytes. Raises `ApiError` if they are more."""
        id = _word(id)
        query = (
            "SELECT size - length(data), (SELECT sum(length(item)) FROM items WHERE entry = ?) FROM entries"
        )
        ((told, size),) = self._read(f"{query} WHERE id = ?", id, id) or [(0, 0)]
        if told != (size or 0):
            raise self._damaged(f"the conversation {id!r}")
        if told > most:
            said = f"the conversation has more than {most:,} bytes: begin a new one"
            raise ApiError(said, status=413, code="conversation_too_long")
        query = "SELECT entry, number, id, item, digest FROM items WHERE entry = ? ORDER BY number"
        return [self._item(row) for row in self._read(query, id)]

    def _append(self, db: Rows, id: str, items: Sequence[dict[str, Any]]) -> None:
        texts = [json.dumps(item) for item in items]
        size, now = sum(map(len, texts)), db.now
        db.run("UPDATE entries SET used = ?, size = size + ? WHERE id = ?", now, size, id)
        self._room(db, 0, now, entries=0)
        ((last,),) = db.all("SELECT coalesce(max(number), -1) FROM items WHERE entry = ?", id)
        found = enumerate(zip(items, texts, strict=True), last + 1)
        self._place(db, id, [(number, str(item.get("id", "")), text) for number, (item, text) in found])

    def _place(self, db: Rows, id: str, items: Sequence[tuple[int, str, str]]) -> None:
        """Keeps items, each with its number, id and text."""
        rows = [(id, number, _word(of), text) for number, of, text in items]
        query = "INSERT INTO items (entry, number, id, item, digest) VALUES (?, ?, ?, ?, ?)"
        db.many(query, [(*row, sealed(*row)) for row in rows])


def _word(id: str) -> str:
    """A client's id as every database can hold it: without what is no text."""
    return id.replace("\0", "\\0").encode("utf-8", "backslashreplace").decode()


def _packed(ids: Sequence[int]) -> bytes:
    return array("I", ids).tobytes()


def _unpacked(raw: bytes) -> list[int]:
    ids = array("I")
    ids.frombytes(raw)
    return ids.tolist()
