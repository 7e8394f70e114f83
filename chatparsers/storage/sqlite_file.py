"""A file of SQLite: how it is begun, and what a store of an earlier version lacks."""

from __future__ import annotations

import sqlite3
import time

from .rows import BEGUN, SEALED, SEALED_IDS, TABLES, about_of, sealed

BUSY = 10.0
"""How many seconds one process waits for another."""
_TRIGGERS = """
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


def begin(db: sqlite3.Connection) -> None:
    """Makes what is not there: the log, the tables, the columns that a store of an earlier version lacks."""
    _keep_log(db)
    db.executescript(
        "PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON; PRAGMA wal_autocheckpoint = 0;"
        f"PRAGMA journal_size_limit = 0; BEGIN IMMEDIATE; {TABLES} {_TRIGGERS}"
    )
    try:
        _upgraded(db)
        db.execute(BEGUN, about_of(0, 0.0))
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def is_damage(error: sqlite3.Error) -> bool:
    """Whether the file is not as SQLite wrote it: its errors have no other name before Python 3.11."""
    return any(word in str(error) for word in ("malformed", "not a database", "decode"))


def _upgraded(db: sqlite3.Connection) -> None:
    """Version 1 had no digests, and the clock of the system: its rows are believed as they are."""
    if any(name == "digest" for _, name, *_ in db.execute("PRAGMA table_info(entries)")):
        return
    columns = [("entries", "digest"), ("entries", "ids_digest"), ("items", "digest"), ("frames", "digest")]
    for table, column in columns:
        db.execute(f"ALTER TABLE {table} ADD COLUMN {column} TEXT NOT NULL DEFAULT ''")
    db.create_function("sealed", -1, sealed, deterministic=True)
    db.execute(f"UPDATE entries SET digest = sealed({SEALED}), ids_digest = sealed({SEALED_IDS})")
    db.execute("UPDATE items SET digest = sealed(entry, number, id, item)")
    db.execute("UPDATE frames SET digest = sealed(entry, number, frame)")
    db.execute("UPDATE entries SET running = used WHERE running IS NOT NULL")
    ((last,),) = db.execute("SELECT coalesce(max(used), 0) FROM entries").fetchall()
    db.execute(BEGUN, about_of(0, last))


def _keep_log(db: sqlite3.Connection) -> None:
    """Turns the log on. Of two who do so in a new file, SQLite refuses one at once: it tries again."""
    last = time.monotonic() + BUSY
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > last:
                raise
            time.sleep(0.01)
