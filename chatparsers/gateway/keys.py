"""Who asks: the key of a request, what it may, and what it has taken.

Keys are known by digests of what clients send, so a file or a table of them need not hold the keys themselves.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ..serving import ApiError

DIGEST = "sha256:"
"""How a digest begins that stands in the place of a key."""
_LOOK = 1.0
_LARGEST = 1_000_000
_MINUTE, _DAY = 60.0, 86_400
_no_text = re.compile(rb"[\0-\x08\x0e-\x1f\x7f]").search
_digest = re.compile(rb"sha256:[0-9a-f]{64}").fullmatch


def digest_of(key: str | bytes) -> bytes:
    """The digest of a key, or the one that stands in its place."""
    raw = key.encode("latin-1", "replace") if isinstance(key, str) else key
    return bytes.fromhex(raw[len(DIGEST) :].decode()) if _digest(raw) else hashlib.sha256(raw).digest()


@dataclass(frozen=True, slots=True)
class Key:
    """A key, and what it may. ``name``: "" for one of the gateway's own, whose requests no limit binds and who owns
    what it keeps by its digest; else what it keeps belongs to its name. ``secrets``: digests of what its client may
    send. ``file``: more of them, one in a line. ``models``: the models that it may ask; None: all.
    ``requests_per_minute``, ``tokens_per_day`` (of prompts and answers, since midnight UTC), ``concurrency``: None: any
    number. ``admin``: it sees the sessions of all keys."""

    name: str = ""
    secrets: frozenset[bytes] = frozenset()
    file: str | None = None
    models: frozenset[str] | None = None
    requests_per_minute: int | None = None
    tokens_per_day: int | None = None
    concurrency: int | None = None
    admin: bool = False


@dataclass(slots=True)
class Taken:
    """What a key has taken. ``allowed``: how many requests it may begin, as of the time ``at``. ``tokens``: of the
    ``day``. ``running``: its requests that run."""

    allowed: float = math.inf
    at: float = 0.0
    day: int = 0
    tokens: int = 0
    running: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Caller:
    """Who sent a request. ``owner``: whose it is, as a digest; "" where no key is asked for."""

    owner: str = ""
    key: Key = Key()
    taken: Taken = field(default_factory=Taken)

    def admit(self) -> None:
        """A request begins. Raises `ApiError` if the key has begun too many, or has spent its day's tokens."""
        key, taken = self.key, self.taken
        if key.tokens_per_day is not None and self.tokens() >= key.tokens_per_day:
            said = f"the key {key.name} has spent its {key.tokens_per_day:,} tokens of this day (UTC)"
            left = _DAY - int(time.time()) % _DAY
            raise ApiError(said, status=429, code="tokens_per_day_reached", retry_after=left)
        if key.requests_per_minute is not None:
            now, each = time.monotonic(), _MINUTE / key.requests_per_minute
            most = float(key.requests_per_minute)
            allowed = min(most, taken.allowed + (now - taken.at) / each)
            taken.allowed, taken.at = allowed, now
            if allowed < 1:
                said = f"the key {key.name} may begin {key.requests_per_minute} requests a minute"
                wait = math.ceil((1 - allowed) * each)
                raise ApiError(said, status=429, code="requests_per_minute_reached", retry_after=wait)
            taken.allowed = allowed - 1

    def may_ask(self, model: str) -> None:
        """Raises `ApiError` for a model that the key may not ask."""
        if self.key.models is not None and model not in self.key.models:
            said = f"the key {self.key.name} may not ask the model {model!r:.99}: it may ask "
            raise ApiError(
                said + ", ".join(sorted(self.key.models)), status=403, param="model", code="model_not_allowed"
            )

    def take(self, number: int) -> None:
        """So many requests run more; fewer, if the number is negative. Raises `ApiError` if too many run."""
        most = self.key.concurrency
        if most is not None and number > 0 and self.taken.running + number > most:
            said = f"{most} requests of the key {self.key.name} are running: try again later"
            raise ApiError(said, status=429, code="concurrency_reached")
        self.taken.running += number

    def tokens(self, number: int = 0) -> int:
        """How many tokens the key has taken this day, with so many more."""
        taken, day = self.taken, int(time.time()) // _DAY
        taken.day, taken.tokens = day, number + (taken.tokens if taken.day == day else 0)
        return taken.tokens


ANYBODY = Caller()
"""Who asks where no key is asked for, or before one was looked for."""


class KeyFile:
    """Keys in a file, one in a line; lines that begin with ``#`` are remarks. A change counts within a second, so a key
    can be added or taken away without a stop. A file that cannot be read, has no key or is no text lets nobody in."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._looked = float("-inf")
        self._stamp: tuple[int, int] | None = None
        self._digests: frozenset[bytes] = frozenset()

    def digests(self) -> frozenset[bytes]:
        """The digests of the keys that count now."""
        now = time.monotonic()
        if now - self._looked < _LOOK:
            return self._digests
        self._looked = now
        try:
            state = os.stat(self._path)
            stamp = state.st_mtime_ns, state.st_ino
            if stamp != self._stamp:
                with open(self._path, "rb") as file:
                    raw = file.read(_LARGEST).removeprefix(b"\xef\xbb\xbf")
                lines = [] if _no_text(raw) else [line.strip() for line in raw.splitlines()]
                self._digests = frozenset(
                    digest_of(line) for line in lines if line and not line.startswith(b"#")
                )
                self._stamp = stamp
        except OSError:
            self._digests, self._stamp = frozenset(), None
        return self._digests


class Keys:
    """The keys of a gateway. What a key has taken stays its own when the keys change."""

    def __init__(self, keys: Iterable[Key]) -> None:
        self._taken: dict[str, Taken] = {}
        self.change(keys)

    def change(self, keys: Iterable[Key]) -> None:
        """These are the keys from now on."""
        found = [*keys]
        self._fixed = {secret: key for key in found for secret in key.secrets}
        self._owners = {_owner(key, secret): key for secret, key in self._fixed.items()}
        self._files = [(KeyFile(key.file), key) for key in found if key.file is not None]
        self._taken = {key.name: self._taken.get(key.name, Taken()) for key in found}

    def spent(self) -> dict[str, tuple[int, int]]:
        """The tokens that keys have taken, by their names, each after its day."""
        return {
            name: (taken.day, taken.tokens) for name, taken in self._taken.items() if name and taken.tokens
        }

    def restore(self, spent: Mapping[str, tuple[int, int]]) -> None:
        """Keys have taken these before."""
        for name, (day, tokens) in spent.items():
            if name in self._taken:
                self._taken[name].day, self._taken[name].tokens = day, tokens

    def __bool__(self) -> bool:
        """Whether a key is asked for."""
        return bool(self._fixed or self._files)

    def of(self, given: str) -> Caller | None:
        """Whose key this is; None if it is none. It is found by its digest, so that no time shows how near it was."""
        secret = _sent(given)
        key = self._fixed.get(secret)
        for file, other in self._files:
            if secret in file.digests():
                key = key or other
        if key is None:
            return None
        return Caller(_owner(key, secret), key, self._taken[key.name])

    def lent(self, lender: str, given: str) -> Caller | None:
        """Who asks by the key of a session, which ``lender`` began: it is bound as that one's own key is. None if that
        one has no key any more."""
        own = _sent(given).hex()
        if not lender:
            return Caller(own)
        key = self._owners.get(lender)
        for file, other in self._files if key is None else ():
            if any(_owner(other, secret) == lender for secret in file.digests()):
                key = key or other
        return None if key is None else Caller(own, key, self._taken[key.name])


def _sent(given: str) -> bytes:
    """The digest of what a client sent: never one that stands in the place of a key."""
    return hashlib.sha256(given.encode("latin-1", "replace")).digest()


def _owner(key: Key, secret: bytes) -> str:
    """Whose a request is."""
    return hashlib.sha256(b"key " + key.name.encode()).hexdigest() if key.name else secret.hex()
