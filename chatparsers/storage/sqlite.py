"""SQLite: one file for the processes of one machine, or memory.

A transaction that was committed outlives the process, also ``kill -9``: the system has it. A power cut may take the
last of them (``synchronous = NORMAL``), and damages nothing. Beside the file stands how many writes it had
(`_Witness`); a file that has had fewer was cut, put back or taken away, and that is told. So is what `mending` leaves
out.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from .database import Clock, Database, Rows, StoreFull, Tell, damaged, unreadable
from .mending import is_whole, mended
from .sqlite_file import BUSY, begin, is_damage

FILE = "responses.sqlite3"
"""The name of the file in its folder."""
_LONG = 2**22
"""How many bytes the log may have before it is copied into the file."""
_MAKING = threading.Lock()


class Sqlite(Database):
    """``folder``: None keeps all in memory. Raises `sqlite3.Error` or `OSError` if the file is none of ours."""

    def __init__(self, folder: str | None, tell: Tell) -> None:
        self._lock, self._clock, self._tell = threading.Lock(), Clock(tell), tell
        self._failed = False
        self._witness: _Witness | None = None
        path = ":memory:"
        if folder is not None:
            Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
            path = str(Path(folder) / FILE)
        self.where, self._log = path, f"{path}-wal"
        if folder is not None:
            self._witness = _Witness(f"{path}-writes")
            if self._witness.alone:
                self._look()
            _make(path)
        self._db = sqlite3.connect(path, timeout=BUSY, isolation_level=None, check_same_thread=False)
        self._copying = sqlite3.connect(path, timeout=BUSY, isolation_level=None, check_same_thread=False)
        try:
            begin(self._db)
            self._copying.execute("SELECT count(*) FROM sqlite_master")  # it knows now that there is a log
            if self._witness is not None:
                self._missing()
                self._witness.share()
        except BaseException:  # no database, or one that another process holds
            self._close()
            raise

    def close(self) -> None:
        """What the log holds goes into the file, and the file is closed."""
        with self._lock:
            with suppress(sqlite3.Error):
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._close()

    def _close(self) -> None:
        self._copying.close()
        self._db.close()
        if self._witness is not None:
            self._witness.close()

    # what may be wrong with the file

    def _look(self) -> None:
        """Before it is opened, by the first who does: the file is made anew if it is damaged."""
        assert self._witness is not None
        path, earlier = self.where, not self._witness.writes
        if not os.path.exists(path):
            if _size(self._log):
                os.replace(self._log, f"{self._log}.damaged")
                said = (
                    f"the store {path} is gone, and its log alone is of no use: it is now {self._log}.damaged"
                )
                self._tell("lost", said, 1)
            return
        for text, number in mended(path) if not is_whole(path, earlier=earlier) else ():
            self._tell("damaged", f"the store {path} was damaged: {text}", number)

    def _missing(self) -> None:
        """Tells of writes that the file does not have."""
        assert self._witness is not None
        ((writes,),) = self._db.execute("SELECT writes FROM about").fetchall()
        if self._witness.alone and writes < self._witness.writes:
            missing = self._witness.writes - writes
            said = f"the store {self.where} lacks its last {missing:,} writes: it was cut, put back, or taken away"
            self._tell("lost", said, missing)
        self._witness.note(writes, again=self._witness.alone)

    # transactions

    @contextmanager
    def writing(self) -> Iterator[Rows]:
        with self._lock:
            try:
                if self._failed or _size(self._log) > _LONG:
                    with self._alone():
                        self._copy()
                with self._alone() as db:
                    rows = _Rows(db, self._clock)
                    yield rows
                    rows.count()
                    ((writes,),) = rows.all("SELECT writes FROM about")
                if self._witness is not None:
                    self._witness.note(writes)
            except sqlite3.Error as error:
                self._failed = True
                if is_damage(error):
                    self._tell("damaged", f"the store {self.where} cannot be written: {error}", 1)
                raise StoreFull(str(error)) from error
            self._failed = False

    @contextmanager
    def reading(self) -> Iterator[Rows]:
        try:
            with self._lock:
                yield _Rows(self._db, self._clock)
        except sqlite3.Error as error:
            if not is_damage(error):
                raise unreadable(self.where) from error
            self._tell("damaged", f"a part of the store {self.where} cannot be read: {error}", 1)
            raise damaged(self.where, "what was asked for") from error

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


class _Rows(Rows):
    def __init__(self, db: sqlite3.Connection, clock: Clock) -> None:
        super().__init__(clock)
        self._db = db

    def all(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._db.execute(query, values).fetchall()

    def run(self, query: str, *values: Any) -> int:
        return self._db.execute(query, values).rowcount

    def many(self, query: str, rows: Iterable[tuple[Any, ...]]) -> None:
        self._db.executemany(query, rows)


class _Witness:
    """How many writes a store has had, in a file beside it. Who has the store open shares the file's lock; who opens it
    first is alone until he shares it. ``alone`` is False where the system has no such locks."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        self.alone = self._locked(alone=True)
        if not self.alone:
            self.share()

    def share(self) -> None:
        """Others may open the store too."""
        self.alone = False
        self._locked(alone=False)

    def close(self) -> None:
        """Gives the lock back."""
        os.close(self._file)

    @property
    def writes(self) -> int:
        """How many there were."""
        os.lseek(self._file, 0, os.SEEK_SET)
        raw = os.read(self._file, 32).strip()
        return int(raw) if raw.isdigit() else 0

    def note(self, writes: int, *, again: bool = False) -> None:
        """So many there are now. ``again``: also if there were more."""
        with suppress(OSError):  # then fewer are missed, should the file be cut
            if again or writes > self.writes:
                os.lseek(self._file, 0, os.SEEK_SET)
                os.write(self._file, b"%020d\n" % writes)

    def _locked(self, *, alone: bool) -> bool:
        try:
            import fcntl
        except ModuleNotFoundError:  # Windows
            return False
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB if alone else fcntl.LOCK_SH)
        except OSError:
            return False
        return True


def _make(path: str) -> None:
    """Makes the file, for nobody else to read. One that is there stays closed: where a process closes a file, the
    system drops all its locks on it, also those of another store."""
    with _MAKING, suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
