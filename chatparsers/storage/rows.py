"""The tables, and the digest by which a row is known to be what was written.

A digest is of the values that stay as they are written, among them the row's own name. What changes all the time (when
an entry was used, its beat) has none; the ids of a response have one of their own, because most reads leave them out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

VERSION = 2
KEPT = ("id", "owner", "data", "input", "parent", "conversation")
_IDS = ("id", "prompt", "given", "sampled", "extends")
SEALED = f"{', '.join(KEPT)}, CASE WHEN running IS NULL THEN 0 ELSE 1 END"
"""What the digest of an entry is of: the columns `KEPT`, and whether it runs."""
SEALED_IDS = ", ".join(_IDS)
"""What the digest of its ids is of."""
ENTRY = (
    "id", "owner", "made", "used", "size", "data", "input", "parent", "conversation", "running", "cancelled",
    "prompt", "given", "sampled", "extends", "digest", "ids_digest",
)  # fmt: skip
"""The columns of an entry."""
INSERT = f"INSERT INTO entries ({', '.join(ENTRY)}) VALUES ({', '.join('?' * len(ENTRY))})"
TABLES = """
CREATE TABLE IF NOT EXISTS entries (
    id TEXT PRIMARY KEY, owner TEXT NOT NULL, made DOUBLE PRECISION NOT NULL, used DOUBLE PRECISION NOT NULL,
    size BIGINT NOT NULL, data TEXT NOT NULL, input TEXT, parent TEXT, conversation TEXT, running DOUBLE PRECISION,
    cancelled INTEGER NOT NULL DEFAULT 0, prompt TEXT, given BLOB, sampled BLOB, extends INTEGER NOT NULL DEFAULT 0,
    digest TEXT NOT NULL DEFAULT '', ids_digest TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS by_use ON entries (used);
CREATE INDEX IF NOT EXISTS by_owner ON entries (owner, used);
CREATE TABLE IF NOT EXISTS items (
    entry TEXT NOT NULL REFERENCES entries (id) ON DELETE CASCADE, number INTEGER NOT NULL, id TEXT NOT NULL,
    item TEXT NOT NULL, digest TEXT NOT NULL DEFAULT '', PRIMARY KEY (entry, number)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS by_item ON items (id);
CREATE TABLE IF NOT EXISTS frames (
    entry TEXT NOT NULL REFERENCES entries (id) ON DELETE CASCADE, number INTEGER NOT NULL, frame TEXT NOT NULL,
    digest TEXT NOT NULL DEFAULT '', PRIMARY KEY (entry, number)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS owners (owner TEXT PRIMARY KEY, entries BIGINT NOT NULL, size BIGINT NOT NULL)
    WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sessions (
    id TEXT PRIMARY KEY, gateway TEXT NOT NULL, owner TEXT, grouped TEXT, key TEXT, reward DOUBLE PRECISION,
    digest TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS by_key ON sessions (key);
CREATE INDEX IF NOT EXISTS by_group ON sessions (grouped);
CREATE TABLE IF NOT EXISTS about (
    one INTEGER PRIMARY KEY CHECK (one = 1), version INTEGER NOT NULL, writes BIGINT NOT NULL,
    clock DOUBLE PRECISION NOT NULL, digest TEXT NOT NULL
);
"""
"""As SQLite has them. ``sessions``: the index of `chatparsers.storage.session_index`. ``about``: how many writes there
were, and the store's own clock."""


BEGUN = "INSERT INTO about VALUES (1, ?, ?, ?, ?) ON CONFLICT DO NOTHING"


def about_of(writes: int, clock: float) -> tuple[Any, ...]:
    """What `BEGUN` says of a store that has had so many writes."""
    return VERSION, writes, clock, sealed(writes, clock)


def sealed(*values: Any) -> str:
    """The digest of values: texts, bytes, whole numbers and None."""
    found = blake2b(digest_size=8)
    for value in values:
        raw = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")
        found.update(f"{type(value).__name__} {len(raw)} ".encode())
        found.update(raw)
    return found.hexdigest()


def digests_of(entry: Mapping[str, Any]) -> tuple[str, str]:
    """The digests of an entry, by its columns: its own, and that of its ids."""
    kept = [entry[name] for name in KEPT]
    return sealed(*kept, int(entry["running"] is not None)), sealed(*[entry[name] for name in _IDS])


def row_of(**columns: Any) -> tuple[Any, ...]:
    """A new entry for `INSERT`, with its digests. Columns that are not given are empty."""
    entry = {**dict.fromkeys(ENTRY), "cancelled": 0, "extends": 0, **columns}
    entry["digest"], entry["ids_digest"] = digests_of(entry)
    return tuple(entry.values())


def is_sound(row: Sequence[Any], items: Sequence[Sequence[Any]], frames: Sequence[Sequence[Any]]) -> bool:
    """Whether an entry (the columns `ENTRY`) is what was written, with its items (number, id, item, digest) and frames
    (number, frame, digest). The sizes add up, so no item or frame is missing."""
    one = dict(zip(ENTRY, row, strict=True))
    if digests_of(one) != (one["digest"], one["ids_digest"]):
        return False
    if any(sealed(one["id"], *values) != digest for *values, digest in (*items, *frames)):
        return False
    texts = [row[-2] for row in (*items, *frames)]
    sized = one["data"], one["input"], one["given"], one["sampled"], *texts
    if sum(map(len, filter(None, sized))) != one["size"]:
        return False
    if one["input"] is None or one["running"]:
        return True
    return len(items) >= len(json.loads(one["data"]).get("output", []))
