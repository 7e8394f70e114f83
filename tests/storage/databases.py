"""A server of PostgreSQL for tests: what ``CHATPARSERS_TEST_POSTGRESQL`` names, else one that is started here."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import pytest

from chatparsers.storage.sqlite import FILE

_NAMED = "CHATPARSERS_TEST_POSTGRESQL"
_NONE = f"no server of PostgreSQL: apt-get install postgresql, or set {_NAMED}"


def made_earlier(folder: Path) -> None:
    """Makes a store one of version 1: it has no digests, and the times of a clock that is set."""
    with closing(sqlite3.connect(folder / FILE)) as db:
        for table, column in (("entries", "digest"), ("entries", "ids_digest"), ("items", "digest")):
            db.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        db.execute("ALTER TABLE frames DROP COLUMN digest")
        for table in ("about", "sessions"):
            db.execute(f"DROP TABLE {table}")
        db.execute("UPDATE entries SET used = 1.7e9 + used")
        db.commit()
    (folder / f"{FILE}-writes").unlink()


@contextmanager
def server() -> Iterator[str]:
    """Its URL. Skips the test where there is none."""
    pytest.importorskip("psycopg", reason="the package psycopg is not installed")
    if _NAMED in os.environ:
        yield os.environ[_NAMED]
        return
    found = [*sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb")), shutil.which("initdb")]
    programs = [Path(one) for one in found if one]
    if not programs:
        pytest.skip(_NONE)
    folder = Path(tempfile.mkdtemp(prefix="postgresql"))
    how: dict[str, Any] = {"check": True, "cwd": folder, "stdout": subprocess.DEVNULL}
    if os.getuid() == 0:  # which the server refuses to run as
        try:
            shutil.chown(folder, "postgres", "postgres")
        except LookupError:
            pytest.skip(f"{_NONE} (it needs a user postgres, or tests that are not run as root)")
        how |= {"user": "postgres", "group": "postgres", "extra_groups": []}
    control = [str(programs[-1].with_name("pg_ctl")), "-D", f"{folder}/data", "-w", "-l", f"{folder}/log"]
    made = ["-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8", "--locale=C"]
    subprocess.run([str(programs[-1]), "-D", f"{folder}/data", *made], **how)
    subprocess.run([*control, "-o", f"-c listen_addresses='' -k {folder}", "start"], **how)
    try:
        yield f"postgresql://postgres@/postgres?host={folder}"
    finally:
        subprocess.run([*control, "-m", "immediate", "stop"], **how)
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def database(url: str) -> Iterator[str]:
    """A new database of a server."""
    import psycopg

    name = f"test_{uuid4().hex}"
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(f"CREATE DATABASE {name} TEMPLATE template0".encode())
        try:
            yield urlunsplit(urlsplit(url)._replace(path=f"/{name}"))
        finally:
            db.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
