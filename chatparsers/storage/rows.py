"""The tables, and the digest by which a row is known to be what was written.

A digest is of the values that stay as they are written, among them the row's own name. What changes all the time (when
an entry was used, its beat) has none; the ids of a response have one of their own, because most reads leave them out.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

VERSION = 2
SEALED = "id, owner, data, input, parent, conversation, CASE WHEN running IS NULL THEN 0 ELSE 1 END"
"""What the digest of an entry is of."""
SEALED_IDS = "id, prompt, given, sampled, extends"
"""What the digest of its ids is of."""
ENTRY = (
    *(
        "id",
        "owner",
        "made",
        "used",
        "size",
        "data",
        "input",
        "parent",
        "conversation",
        "running",
        "cancelled",
    ),
    *("prompt", "given", "sampled", "extends", "digest", "ids_digest"),
)
"""The columns of an entry."""
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
CREATE TABLE IF NOT EXISTS about (
    one INTEGER PRIMARY KEY CHECK (one = 1), version INTEGER NOT NULL, writes BIGINT NOT NULL,
    clock DOUBLE PRECISION NOT NULL
);
"""
"""As SQLite has them. ``about``: how many writes there were, and the store's own clock."""


def sealed(*values: Any) -> str:
    """The digest of values: texts, bytes, whole numbers and None."""
    found = blake2b(digest_size=8)
    for value in values:
        raw = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")
        found.update(f"{type(value).__name__} {len(raw)} ".encode())
        found.update(raw)
    return found.hexdigest()


def is_sound(row: Sequence[Any], items: Sequence[Sequence[Any]], frames: Sequence[Sequence[Any]]) -> bool:
    """Whether an entry (the columns `ENTRY`) is what was written, with its items (number, id, item, digest) and frames
    (number, frame, digest). The sizes add up, so no item or frame is missing."""
    one = dict(zip(ENTRY, row, strict=True))
    kept = [one[name] for name in ("id", "owner", "data", "input", "parent", "conversation")]
    if sealed(*kept, int(one["running"] is not None)) != one["digest"]:
        return False
    ids = [one[name] for name in ("id", "prompt", "given", "sampled", "extends")]
    if sealed(*ids) != one["ids_digest"]:
        return False
    if any(sealed(one["id"], *values) != digest for *values, digest in (*items, *frames)):
        return False
    texts = [row[-2] for row in (*items, *frames)]
    if sum(map(len, filter(None, (one["data"], one["input"], *ids[2:4], *texts)))) != one["size"]:
        return False
    output = (
        json.loads(one["data"]).get("output", []) if one["input"] is not None and not one["running"] else []
    )
    return len(items) >= len(output)
