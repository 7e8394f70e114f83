"""Who may ask: the key, the name under which the gateway is asked, the pages that may, and the kind of body.

A gateway on 127.0.0.1 is reached by every page that the same user opens. A page may send a simple request, such as a
form's, to any address, and by DNS rebinding it reads the answer too. So a body must be declared as JSON, which needs
the consent of `Settings.cors`; a page of another origin is refused without it; and without a key the name in ``Host``
must be an address, ``localhost`` or one of `Settings.hosts`: a page cannot rebind these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ipaddress import ip_address
from typing import Any

from starlette.datastructures import Headers

from ..serving import ApiError
from .keys import ANYBODY, Caller, Key, Keys, digest_of
from .settings import Settings

_SAFE = ("GET", "HEAD", "OPTIONS")


class Guard:
    """Checks the head of each request. ``keys``: those with names, besides the settings' own."""

    def __init__(self, settings: Settings, keys: Sequence[Key] = ()) -> None:
        own = (
            []
            if settings.api_key is None
            else [Key(secrets=frozenset([digest_of(settings.api_key)]), admin=True)]
        )
        if settings.key_file is not None:
            own.append(Key(file=settings.key_file))
        self._own = own
        self.keys = Keys([*own, *keys])
        self._hosts = None if settings.hosts is None else frozenset(map(str.lower, settings.hosts))
        self._cors = frozenset(settings.cors)
        self.lends: Callable[[str], str | None] | None = None
        """Who lent a key that opens something of its own, such as a session: its owner; None: nobody did."""

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

    def change(self, keys: Sequence[Key]) -> None:
        """These are the keys with names from now on."""
        self.keys.change([*self._own, *keys])

    def check_key(self, headers: Headers, *, lent: bool = True) -> Caller:
        """Who sent the request. Raises `ApiError` if a key is asked for and not given. ``lent``: whether the key of a
        session is one."""
        lends = self.lends if lent else None
        given = given_key(headers) if lends is not None else ""
        if lends is not None and given and (lender := lends(given)) is not None:
            borrower = self.keys.lent(lender, given)
            if borrower is None:
                raise ApiError("the key that began this session is gone", status=401, code="invalid_api_key")
            return borrower
        if not self.keys:
            return ANYBODY
        found = [self.keys.of(one) for one in (headers.get("x-api-key", ""), _token(headers)) if one]
        caller = next(filter(None, found), None)
        if caller is None:
            raise ApiError("the API key is missing or wrong", status=401, code="invalid_api_key")
        return caller

    def _known(self, host: str) -> bool:
        name = _name(host)
        if name == "localhost" or _address(name):
            return True
        if self._hosts is None:
            return bool(self.keys)
        return name in self._hosts or "*" in self._hosts

    def _allows(self, origin: str, scheme: str, host: str) -> bool:
        return bool({origin, "*"} & self._cors) or origin == f"{scheme}://{host}"


def given_key(headers: Headers) -> str:
    """The key of a request; "" if it has none."""
    return headers.get("x-api-key", "") or _token(headers)


def _token(headers: Headers) -> str:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


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
