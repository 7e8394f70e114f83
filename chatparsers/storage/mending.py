"""A damaged file of SQLite is made anew of its rows that are what was written; the damaged one stays beside it.

Strategy. A damaged page hides the rows on it, and ends every walk that comes to it. So the names of the entries are
gathered by walks from both ends of the table and of each index, and each entry is then looked up by itself: only those
on damaged pages fail. An entry is left out as a whole, with its items: none comes back shorter than it was.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from .rows import BEGUN, ENTRY, INSERT, about_of, is_sound, sealed
from .sqlite_file import begin

_SHOWN = 5
_COLUMNS = ", ".join(ENTRY)
_NUMBERS = [ENTRY.index(name) for name in ("made", "used", "cancelled")]
"""The columns that no digest is of."""
_COUNTED = "SELECT owner, count(*), sum(size) FROM entries NOT INDEXED GROUP BY owner"
_OWNERS = "SELECT owner, entries, size FROM owners"
"""What is counted of each owner's entries, and what the file says of it."""
_WALKS = [
    f"SELECT id FROM entries {by} ORDER BY {column} {way}"
    for by, column in (
        ("NOT INDEXED", "id"),
        ("INDEXED BY by_use", "used"),
        ("INDEXED BY by_owner", "owner"),
    )
    for way in ("", "DESC")
]


def is_whole(path: str, *, earlier: bool) -> bool:
    """Whether nothing of a file is hidden: its pages and indexes are whole, and what is counted is there. Whether an
    entry is what was written, its digest says when it is read: to look at all of them would take a start minutes.
    ``earlier``: it may be of an earlier version. Raises `sqlite3.Error` for one that is none of ours."""
    with closing(_opened(path)) as db:
        try:
            known = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
            whole = db.execute("PRAGMA integrity_check(1)").fetchall() == [("ok",)]
            if whole and "about" in known:
                counted, told = (sorted(db.execute(query), key=str) for query in (_COUNTED, _OWNERS))
                return counted == told
        except sqlite3.DatabaseError as error:
            if "malformed" not in str(error):
                raise
            return False
    if earlier and not whole and "entries" in known and "about" not in known:
        raise sqlite3.DatabaseError(
            "it is damaged, and of an earlier version: put a copy back, or take it away"
        )
    return whole


def mended(path: str) -> Iterator[tuple[str, int]]:
    """Makes a damaged file anew. What is to be said of it, and how many entries are left out."""
    new, old = f"{path}.new", _aside(path)
    with suppress(FileNotFoundError):
        os.unlink(new)
    os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    with closing(_opened(path)) as db, closing(sqlite3.connect(new, isolation_level=None)) as made:
        begin(made)
        lost, kept = [], 0
        made.execute("BEGIN")
        for id in _names(db):
            found = _sound(db, id)
            if found is None:
                lost.append(id)
                continue
            row, items, frames = found
            kept += 1
            made.execute(INSERT, row)
            made.executemany("INSERT INTO items VALUES (?, ?, ?, ?, ?)", [(id, *one) for one in items])
            made.executemany("INSERT INTO frames VALUES (?, ?, ?, ?)", [(id, *one) for one in frames])
        ((last,),) = made.execute("SELECT coalesce(max(used), 0) FROM entries").fetchall()
        made.execute("DELETE FROM about")
        made.execute(BEGUN, about_of(*_about(db, last)))
        made.execute("COMMIT")
        made.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for ending in ("-wal", "-shm", ""):
        with suppress(FileNotFoundError):
            os.replace(f"{path}{ending}", f"{old}{ending}")
    os.replace(new, path)
    shown = ", ".join(lost[:_SHOWN]) + (", …" if len(lost) > _SHOWN else "")
    what = f"{len(lost):,} entries are left out ({shown})" if lost else "no known entry is left out"
    yield f"{what}, {kept:,} are kept; it is now {old}", max(len(lost), 1)


def _opened(path: str) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA writable_schema = ON")  # opens also a file that was cut
    db.execute("PRAGMA wal_autocheckpoint = 0")
    db.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
    return db


def _sound(db: sqlite3.Connection, id: str) -> tuple[Any, list[Any], list[Any]] | None:
    """An entry with its items and frames; None if one of them is not what was written."""
    try:
        row = db.execute(f"SELECT {_COLUMNS} FROM entries WHERE id = ?", (id,)).fetchone()
        items = db.execute(
            "SELECT number, id, item, digest FROM items WHERE entry = ? ORDER BY number", (id,)
        ).fetchall()
        frames = db.execute(
            "SELECT number, frame, digest FROM frames WHERE entry = ? ORDER BY number", (id,)
        ).fetchall()
    except (sqlite3.DatabaseError, UnicodeError):
        return None
    usual = row is not None and all(isinstance(row[place], (int, float)) for place in _NUMBERS)
    return (row, items, frames) if usual and is_sound(row, items, frames) else None


def _names(db: sqlite3.Connection) -> list[str]:
    """The entries that were there, as far as anything names them."""
    found: dict[str, None] = {}
    for walk in _WALKS:
        with suppress(sqlite3.DatabaseError):
            for (id,) in db.execute(walk):
                if isinstance(id, str):
                    found[id] = None
    return [*found]


def _about(db: sqlite3.Connection, last: float) -> tuple[int, float]:
    """How many writes there were, and the clock; none and ``last`` if that is not what was written."""
    with suppress(sqlite3.DatabaseError, UnicodeError):
        for writes, clock, digest in db.execute("SELECT writes, clock, digest FROM about"):
            if sealed(writes, clock) == digest:
                return writes, clock
    return 0, last


def _aside(path: str) -> str:
    number = 1
    while Path(f"{path}.damaged-{number}").exists():
        number += 1
    return f"{path}.damaged-{number}"
