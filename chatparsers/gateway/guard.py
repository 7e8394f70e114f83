"""Who may ask: the key, the name under which the gateway is asked, the pages that may, and the kind of body.

A gateway on 127.0.0.1 is reached by every page that the same user opens. A page may send a simple request, such as a
form's, to any address, and by DNS rebinding it reads the answer too. So a body must be declared as JSON, which needs
the consent of `Settings.cors`; a page of another origin is refused without it; and without a key the name in ``Host``
must be an address, ``localhost`` or one of `Settings.hosts`: a page cannot rebind these.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import time
from collections.abc import Callable
from ipaddress import ip_address
from typing import Any

from starlette.datastructures import Headers

from ..serving import ApiError
from .settings import Settings

_LOOK = 1.0
_LARGEST = 1_000_000
_no_text = re.compile(rb"[\0-\x08\x0e-\x1f\x7f]").search
_SAFE = ("GET", "HEAD", "OPTIONS")


class Guard:
    """Checks the head of each request."""

    def __init__(self, settings: Settings) -> None:
        self._own = [] if settings.api_key is None else [settings.api_key.encode()]
        self._file = None if settings.key_file is None else KeyFile(settings.key_file)
        self._hosts = None if settings.hosts is None else frozenset(map(str.lower, settings.hosts))
        self._cors = frozenset(settings.cors)
        self.lends: Callable[[str], bool] | None = None
        """Whether a key opens something of its own, such as a session; None: none does."""

    def check(self, scope: dict[str, Any]) -> None:
        """Raises `ApiError` for a request that nobody may send like this, with a key or without."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not self._known(host):
            said = f"this server is not known as {_name(host)!r}: ask by its address, or start it with --allowed-hosts"
            raise ApiError(said, status=403, code="host_not_allowed")
        origin = headers.get("origin")
        scheme = {"ws": "http", "wss": "https"}.get(scope["scheme"], scope["scheme"])
        if origin is not None and not self._allows(origin, scheme, host):
            said = f"pages of {origin} may not ask this server: start it with --cors {origin}"
            raise ApiError(said, status=403, code="origin_not_allowed")
        method = scope.get("method", "GET")  # a WebSocket has none
        if method not in _SAFE and method != "DELETE":  # it has no body
            kind = headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind != "application/json":
                said = f"expected the header content-type: application/json, found {kind or 'none'}"
                raise ApiError(said, status=415)
            coding = headers.get("content-encoding", "identity").strip().lower()
            if coding != "identity":
                said = f"expected a body that is not compressed, found content-encoding: {coding[:64]}"
                raise ApiError(said, status=415)
            if "content-length" in headers and "transfer-encoding" in headers:
                raise ApiError("expected content-length or transfer-encoding, found both")

    def check_key(self, headers: Headers, *, lent: bool = True) -> str:
        """Whose the request is: a digest of its key, "" where none is asked for. Raises `ApiError` if a key is asked
        for and not given. ``lent``: whether the key of a session is one."""
        lends = self.lends if lent else None
        if lends is not None and (given := given_key(headers)) and lends(given):
            return hashlib.sha256(given.encode("latin-1", "replace")).hexdigest()
        if self._file is None and not self._own:
            return ""
        keys = [*self._own, *(self._file.keys() if self._file is not None else ())]
        both = [headers.get("x-api-key", ""), _token(headers)]
        # Each key is compared, so that none shows by its time.
        found = [key for key in keys for one in both if hmac.compare_digest(one.encode("latin-1"), key)]
        if not found:
            raise ApiError("the API key is missing or wrong", status=401, code="invalid_api_key")
        return hashlib.sha256(found[0]).hexdigest()

    def _known(self, host: str) -> bool:
        name = _name(host)
        if name == "localhost" or _address(name):
            return True
        if self._hosts is None:
            return bool(self._own) or self._file is not None
        return name in self._hosts or "*" in self._hosts

    def _allows(self, origin: str, scheme: str, host: str) -> bool:
        return bool({origin, "*"} & self._cors) or origin == f"{scheme}://{host}"


def given_key(headers: Headers) -> str:
    """The key of a request; "" if it has none."""
    return headers.get("x-api-key", "") or _token(headers)


def _token(headers: Headers) -> str:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


class KeyFile:
    """Keys in a file, one in a line; lines that begin with ``#`` are remarks. A change counts within a second, so a key
    can be added or taken away without a stop. A file that cannot be read, has no key or is no text lets nobody in."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._looked = float("-inf")
        self._stamp: tuple[int, int] | None = None
        self._keys: list[bytes] = []

    def keys(self) -> list[bytes]:
        """The keys that count now."""
        now = time.monotonic()
        if now - self._looked < _LOOK:
            return self._keys
        self._looked = now
        try:
            state = os.stat(self._path)
            stamp = state.st_mtime_ns, state.st_ino
            if stamp != self._stamp:
                with open(self._path, "rb") as file:
                    raw = file.read(_LARGEST).removeprefix(b"\xef\xbb\xbf")
                lines = [] if _no_text(raw) else [line.strip() for line in raw.splitlines()]
                self._keys = [line for line in lines if line and not line.startswith(b"#")]
                self._stamp = stamp
        except OSError:
            self._keys, self._stamp = [], None
        return self._keys


def _name(host: str) -> str:
    """The name or address in a ``Host``, without its port."""
    if host.startswith("["):
        address, _, rest = host[1:].partition("]")
        return address.lower() if not rest or rest.startswith(":") else host
    return host.partition(":")[0].lower().rstrip(".")


def _address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
