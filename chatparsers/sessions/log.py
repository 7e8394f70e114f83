"""The log of a session: one JSON line for each thing that happened, in a file that only grows.

A line is written before the client reads the last byte of its answer. So what a client has whole is in the file, also
after ``kill -9``: the system keeps what a process has written. (A power cut may take the last seconds.) A line that was
cut off in the middle is cut away before the next one is added. Each line ends with its digest: one that is not what was
written is left out, and told with its file.

A full disk is said before anything is sampled: `Logs.ready` keeps some megabytes aside, which the lines of the answers
that are running get if the disk is full meanwhile.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote, unquote

from ..serving import ApiError

Tell: TypeAlias = Callable[[str, str, int], None]
"""Takes what is left out (``session``), the words for it, and how many lines it is."""
_DIGEST = b',"digest":"'
_LENGTH = len(_DIGEST) + 16 + len('"}\n')
_LONGEST_ID = 200
_ASIDE = 16 * 1024 * 1024
"""How many bytes are kept aside for the answers that are running when the disk is full."""
_BALLAST = ".aside"
_ENDING = ".jsonl"
_SHOWN = 5


class Logs:
    """A folder of logs, each with the name of its session. ``most``: how many bytes all of them may have. One process
    writes into it: raises `BlockingIOError` if another does. ``tell``: takes what is left out."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        most: int = 2**40,
        *,
        write: bool = True,
        tell: Tell = lambda why, said, number: print(f"chatparsers: warning: {said}", file=sys.stderr),
    ) -> None:
        self.folder, self.tell = Path(folder), tell
        self._most = most
        self._lock = threading.Lock()
        self._held: int | None = None
        if write:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._held = _locked(self.folder / ".lock")
        self.size = sum(path.stat().st_size for path in self.folder.glob(f"*{_ENDING}"))

    def close(self) -> None:
        """Lets another process write."""
        held, self._held = self._held, None
        if held is not None:
            os.close(held)

    def ids(self) -> list[str]:
        """The sessions that have a log."""
        names = (path.name.removesuffix(_ENDING) for path in sorted(self.folder.glob(f"*{_ENDING}")))
        return [unquote(name) for name in names]

    def has(self, id: str) -> bool:
        """Whether the session has a log."""
        return self._path(id).exists()

    def ready(self) -> None:
        """Raises `ApiError` (507) if what is going to be sampled may not be kept."""
        full = "send it to a gateway that has room, or free some"
        if self.size >= self._most:
            raise ApiError(
                f"the logs have {self.size:,} bytes, as many as they may: {full}",
                status=507,
                code="logs_full",
            )
        try:
            self._put_aside()
        except OSError as error:
            said = f"the logs cannot be written ({error.strerror or error}): {full}"
            raise ApiError(said, status=507, code="logs_full") from error

    def write(self, id: str, line: Mapping[str, Any]) -> None:
        """Adds a line. Raises OSError if that fails."""
        raw = json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")[:-1]
        raw += _ending_of(raw)
        with self._lock:
            try:
                self._append(self._path(id), raw)
            except OSError:
                (self.folder / _BALLAST).unlink(missing_ok=True)
                self._append(self._path(id), raw)
            self.size += len(raw)

    def read(self, id: str) -> Iterator[dict[str, Any]]:
        """The lines of a session. A last line that is not whole is left out; for one that is not what was written
        comes ``{"t": "damaged"}``."""
        damaged: list[int] = []
        with self._path(id).open("rb") as file:
            sealed = False
            for number, raw in enumerate(file, 1):
                if not raw.endswith(b"\n"):
                    if self._held is not None:  # else another process may be writing it
                        self.tell(
                            "session", f"{self._path(id)}: line {number} was cut off, and is left out", 1
                        )
                    break
                found = _line(raw, sealed)
                if number == 1:  # a log that an earlier version began has lines without a digest
                    sealed = found is None or "digest" in found
                if found is None:
                    damaged.append(number)
                yield {"t": "damaged"} if found is None else found
        if damaged:
            numbers = ", ".join(map(str, damaged[:_SHOWN])) + (", …" if len(damaged) > _SHOWN else "")
            self.tell("session", f"{self._path(id)} is damaged, and left out: line {numbers}", len(damaged))

    def _append(self, path: Path, raw: bytes) -> None:
        """All of it or nothing."""
        file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            before = _mended(file)
            try:
                left = memoryview(raw)
                while left:
                    left = left[os.write(file, left) :]
            except OSError:
                with suppress(OSError):
                    os.ftruncate(file, before)
                raise
        finally:
            os.close(file)

    def _put_aside(self) -> None:
        path = self.folder / _BALLAST
        if path.exists():
            return
        with self._lock, path.open("wb") as file:
            try:
                _reserve(file.fileno(), _ASIDE)
            except OSError:
                path.unlink(missing_ok=True)
                raise

    def _path(self, id: str) -> Path:
        return self.folder / f"{quote(id, safe=' @+=')}{_ENDING}"


def check_id(id: str) -> str:
    """The id of a session. Raises `ApiError` for one that is empty, too long for a file's name, or no text."""
    if not id or not id.isprintable() or len(quote(id, safe=" @+=")) > _LONGEST_ID:
        raise ApiError(
            f"expected a session's id of 1 to {_LONGEST_ID} characters (others than a-z count three times)",
            param="id",
        )
    return id


def _ending_of(raw: bytes) -> bytes:
    """What a line ends with."""
    return _DIGEST + blake2b(raw, digest_size=8).hexdigest().encode() + b'"}\n'


def _line(raw: bytes, sealed: bool) -> dict[str, Any] | None:
    """A line; None if it is not what was written. ``sealed``: it must have a digest."""
    said, ending = raw[:-_LENGTH], raw[-_LENGTH:]
    if (sealed or ending.startswith(_DIGEST)) and ending != _ending_of(said):
        return None
    try:
        line = json.loads(raw)
    except ValueError:
        return None
    return line if isinstance(line, dict) and isinstance(line.get("t"), str) else None


def _locked(path: Path) -> int:
    """The file, which no other process can lock until it is closed."""
    try:
        import fcntl
    except ModuleNotFoundError:  # Windows
        return os.open(path, os.O_RDWR | os.O_CREAT)
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        raise
    return file


def _mended(file: int) -> int:
    """Cuts off a last line that is not whole. Returns the size."""
    size = os.lseek(file, 0, os.SEEK_END)
    os.lseek(file, max(size - 1, 0), os.SEEK_SET)
    if os.read(file, 1) in (b"", b"\n"):
        return size
    with os.fdopen(os.dup(file), "rb") as whole:
        whole.seek(0)
        size = sum(len(line) for line in whole if line.endswith(b"\n"))
    os.ftruncate(file, size)
    return size


def _reserve(file: int, size: int) -> None:
    """Takes so many bytes of the disk."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
    else:
        os.write(file, bytes(size))
