"""Which gateway has which recorded session, of several gateways that share a store.

The log of a session is in the folder of one gateway. So its requests must reach that one, whoever spreads them: any
other refuses them (421) and names the right one, by which a router sends them on, and none begins a second session of
that name. What a folder has is true: the index is set right from it when its gateway starts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from ..serving import ApiError
from .database import Database, Rows, StoreFull, Tell, damaged
from .rows import sealed

_COLUMNS = "id, gateway, owner, grouped, key, reward, digest"


class Elsewhere(ApiError):
    """A session is at another gateway."""

    def __init__(self, id: str, gateway: str) -> None:
        said = f"the session {id[:99]!r} is at the gateway {gateway}: send its requests there"
        super().__init__(said, status=421, code="session_elsewhere")
        self.gateway = gateway


class Indexed(NamedTuple):
    """What is known of a session: where it is, whose, of which group, the digest of its own key, and its reward.
    ``owner``: None if it belongs to all."""

    id: str
    gateway: str
    owner: str | None
    group: str | None
    key: str | None
    reward: float | None = None


class SessionIndex:
    """``name``: this gateway's, for the others. ``tell``: takes what is left out, until its gateway starts again."""

    def __init__(self, base: Database, name: str, tell: Tell) -> None:
        self._base = base
        self.name = name
        self._tell = tell

    def sync(self, sessions: Collection[Indexed], reward: Callable[[str], float | None]) -> None:
        """These are the sessions of this gateway, and no others. ``reward``: of one that was not here."""
        known = {one.id: one.reward for one in self._read("gateway = ?", self.name)}
        found = [
            one._replace(reward=known[one.id] if one.id in known else reward(one.id)) for one in sessions
        ]
        with self._writing() as db:
            db.run("DELETE FROM sessions WHERE gateway = ?", self.name)
            self._replace(db, found)

    def claim(self, session: Indexed) -> None:
        """It begins here. Raises `Elsewhere` if another gateway has one of its name."""
        with self._writing() as db:
            rows = db.all(f"SELECT {_COLUMNS} FROM sessions WHERE id = ?", session.id)
            found = self._sound(rows)
            if rows and not found:
                raise damaged(self._base.where, _named(session.id))
            if found and found[0].gateway != self.name:
                raise Elsewhere(session.id, found[0].gateway)
            self._replace(db, [session])

    def rewarded(self, session: Indexed) -> None:
        """Its reward is another."""
        with self._writing() as db:
            self._replace(db, [session])

    def elsewhere(self, id: str | None = None, key: str | None = None) -> Indexed | None:
        """The session of a name, or of its own key's digest, that another gateway has."""
        column, value = ("key", key) if id is None else ("id", id)
        found = self._read(f"{column} = ? AND gateway <> ?", value, self.name)
        return found[0] if found else None

    def all(self) -> list[Indexed]:
        """The sessions of all gateways."""
        return self._read("1 = 1 ORDER BY id")

    def of_group(self, group: str) -> list[Indexed]:
        """Those of other gateways that are of a group."""
        return self._read("grouped = ? AND gateway <> ?", group, self.name)

    def _read(self, where: str, *values: str | None) -> list[Indexed]:
        with self._base.reading() as db:
            return self._sound(db.all(f"SELECT {_COLUMNS} FROM sessions WHERE {where}", *values))

    def _sound(self, rows: Iterable[tuple[Any, ...]]) -> list[Indexed]:
        """Those that are what was written."""
        found = []
        for *values, digest in rows:
            if sealed(*values) == digest:
                found.append(Indexed(*values))
            else:
                self._tell(
                    "damaged", f"{_named(values[0])} is damaged in {self._base.where}, and left out", 1
                )
        return found

    def _replace(self, db: Rows, sessions: Collection[Indexed]) -> None:
        db.many("DELETE FROM sessions WHERE id = ?", [(one.id,) for one in sessions])
        rows = [(*one, sealed(*one)) for one in sessions]
        db.many(f"INSERT INTO sessions ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

    @contextmanager
    def _writing(self) -> Iterator[Rows]:
        try:
            with self._base.writing() as db:
                yield db
        except StoreFull as error:
            said = f"the index of sessions in {self._base.where} cannot be written: try again later"
            raise ApiError(said, status=503) from error


def _named(id: str) -> str:
    return f"the place of the session {id[:99]!r}"
