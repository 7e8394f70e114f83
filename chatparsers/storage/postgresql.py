"""PostgreSQL: one store for the gateways of many machines. The tables are in the schema ``chatparsers``.

Writes take turns by a lock of the server, as SQLite has it: so the bounds hold, and none waits for another in a circle.
What a gateway that is killed has begun, the server takes back. What a power cut may take, the server's settings say
(``synchronous_commit``, ``fsync``); as they come it takes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import psycopg_pool

from .database import Clock, Database, Rows, StoreFull, Tell, unreadable
from .rows import BEGUN, TABLES, about_of

_LOCK = 0x63686174
"""The lock of whoever writes: ``chat``."""
_CONNECTIONS = 8
_WAIT = 10.0
"""How many seconds a connection, and one's turn to write, are waited for."""
_SETTINGS = (
    f"SET search_path = chatparsers; SET lock_timeout = '{_WAIT:g}s'; SET statement_timeout = '60s'; "
    "SET idle_in_transaction_session_timeout = '30s'; SET client_encoding = 'UTF8'"
)
_TRIGGERS = """
CREATE OR REPLACE FUNCTION counted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO owners VALUES (new.owner, 0, 0) ON CONFLICT DO NOTHING;
        UPDATE owners SET entries = entries + 1, size = size + new.size WHERE owner = new.owner;
    END IF;
    IF TG_OP <> 'INSERT' THEN
        UPDATE owners SET entries = entries - 1, size = size - old.size WHERE owner = old.owner;
        DELETE FROM owners WHERE owner = old.owner AND entries = 0;
    END IF;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER counted AFTER INSERT OR DELETE OR UPDATE OF size ON entries
    FOR EACH ROW EXECUTE FUNCTION counted();
"""


class Postgresql(Database):
    """``url``: such as ``postgresql://user@host/database``. Raises `OSError` if it cannot be reached or used."""

    def __init__(self, url: str, tell: Tell) -> None:
        self._clock = Clock(tell)
        shown = psycopg.conninfo.conninfo_to_dict(url)
        self.where = f"postgresql://{shown.get('host', '')}/{shown.get('dbname', '')}"
        self._pool = psycopg_pool.ConnectionPool(
            url,
            min_size=1,
            max_size=_CONNECTIONS,
            timeout=_WAIT,
            configure=_configured,
            check=psycopg_pool.ConnectionPool.check_connection,
            open=False,
        )
        try:
            self._pool.open(wait=True, timeout=_WAIT)
            with self._turn() as rows:
                if not rows.all("SELECT 1 FROM pg_namespace WHERE nspname = 'chatparsers'"):
                    rows.run("CREATE SCHEMA chatparsers")
                rows.run(f"{TABLES.replace('BLOB', 'BYTEA').replace('WITHOUT ROWID', '')} {_TRIGGERS}")
                rows.run(BEGUN, *about_of(0, 0.0))
        except (psycopg.Error, psycopg_pool.PoolTimeout) as error:
            self._pool.close()
            raise OSError(
                f"{self.where} cannot be used: {str(error).strip() or type(error).__name__}"
            ) from error

    def close(self) -> None:
        """Closes its connections."""
        self._pool.close()

    @contextmanager
    def writing(self) -> Iterator[Rows]:
        try:
            with self._turn() as rows:
                yield rows
                rows.count()
        except (psycopg.Error, psycopg_pool.PoolTimeout) as error:
            raise StoreFull(str(error).strip()) from error

    @contextmanager
    def reading(self) -> Iterator[Rows]:
        try:
            with self._pool.connection() as db:
                yield _Rows(db, self._clock)
        except (psycopg.Error, psycopg_pool.PoolTimeout) as error:
            raise unreadable(self.where) from error

    @contextmanager
    def _turn(self) -> Iterator[Rows]:
        with self._pool.connection() as db:
            rows = _Rows(db, self._clock)
            rows.all("SELECT pg_advisory_xact_lock(?)", _LOCK)
            yield rows


class _Rows(Rows):
    def __init__(self, db: psycopg.Connection[tuple[Any, ...]], clock: Clock) -> None:
        super().__init__(clock)
        self._db = db

    def all(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._db.execute(_written(query), values).fetchall()

    def run(self, query: str, *values: Any) -> int:
        return self._db.execute(_written(query), values or None).rowcount

    def many(self, query: str, rows: Iterable[tuple[Any, ...]]) -> None:
        with self._db.cursor() as cursor:
            cursor.executemany(_written(query), rows)


def _written(query: str) -> bytes:
    return query.replace("?", "%s").encode()


def _configured(db: psycopg.Connection[Any]) -> None:
    db.execute(_SETTINGS.encode())
    db.commit()
