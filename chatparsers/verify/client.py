"""The manners of the judge: how much it asks, how it waits, whom it asks, and what it never tells.

One host, no redirects, a budget of requests and tokens, Retry-After, three tries. The key goes into a header and
nowhere else.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any

import httpx2

from ..errors import ChatParsersError

TRIES = 3
_AWAY = 0
_BUSY = (_AWAY, 408, 429, 502, 503, 504)
_HUNG_UP = "RemoteProtocolError"
_LONGEST_WAIT = 60.0
_LARGEST = 32 * 1024 * 1024
"""How many bytes of a response are read."""


class VerifyError(ChatParsersError):
    """The server cannot be judged: it does not answer, refuses the key, or the request to verify it is wrong."""


class Spent(Exception):
    """The budget is used up."""


@dataclass(slots=True)
class Budget:
    """What may be asked in one run, and what was."""

    requests: int
    tokens: int
    sent: int = 0
    used: int = 0

    def take(self) -> None:
        """One request. Raises `Spent` if there is none left."""
        if self.sent >= self.requests:
            raise Spent(f"--requests {self.requests}")
        if self.used >= self.tokens:
            raise Spent(f"--tokens {self.tokens}")
        self.sent += 1


@dataclass(frozen=True, slots=True)
class Response:
    """A response. ``status`` 0: none came. ``tries``: how often it was asked for, ``same``: whether each try failed
    with the same text."""

    status: int
    text: str
    tries: int = 1
    same: bool = True

    @property
    def ok(self) -> bool:
        return self.status == 200

    @property
    def failed(self) -> bool:
        """Whether the server failed at the request: with an error of its own, or by hanging up without an answer."""
        return self.status >= 500 or (self.status == _AWAY and self.text == _HUNG_UP)

    @property
    def inconclusive(self) -> bool:
        """Whether the server was busy or away, which says nothing of how it answers."""
        return not self.same if self.failed and self.status not in (502, 503, 504) else self.status in _BUSY

    @property
    def data(self) -> dict[str, Any]:
        """The JSON object in it; an empty one if there is none."""
        try:
            found = json.loads(self.text)
        except (ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}


class Client:
    """Asks one server. ``key``: sent as ``Authorization`` and ``x-api-key``. ``timeout``: seconds of silence."""

    def __init__(self, url: str, budget: Budget, *, key: str | None = None, timeout: float = 300.0) -> None:
        found = _checked(url)
        self.url = str(found.copy_with(username=None, password=None)).rstrip("/").removesuffix("/v1")
        self.keyed = key is not None
        self.budget = budget
        self._lock = Lock()
        headers = {} if key is None else {"authorization": f"Bearer {key}", "x-api-key": key}
        auth = (found.username, found.password) if found.userinfo else None
        self._client = httpx2.Client(
            headers={**headers, "anthropic-version": "2023-06-01"},
            auth=auth,
            timeout=httpx2.Timeout(timeout, connect=30.0),
            follow_redirects=False,
            limits=httpx2.Limits(max_keepalive_connections=0),  # a server may close a kept one at any time
            trust_env=found.host not in ("localhost", "127.0.0.1", "::1"),
        )

    def close(self) -> None:
        self._client.close()

    def get(self, path: str) -> Response:
        """What is at a path. It counts as no request: it costs the server nothing."""
        return self._sent("GET", path, None)

    def post(self, path: str, body: Mapping[str, Any]) -> Response:
        """The answer to a body. Raises `Spent` if the budget is used up."""
        with self._lock:
            self.budget.take()
        texts: list[str] = []
        response = Response(_AWAY, "")
        for tries in range(1, TRIES + 1):
            response = self._sent("POST", path, body)
            texts.append(response.text)
            if response.status not in _BUSY and not response.failed:
                return response
            if tries < TRIES:
                time.sleep(self._wait(response, tries))
        return Response(response.status, response.text, TRIES, len(set(map(_without_digits, texts))) == 1)

    def used(self, tokens: int | None) -> None:
        """Counts what an answer cost."""
        with self._lock:
            self.budget.used += tokens or 0

    def _wait(self, response: Response, tries: int) -> float:
        if response.status not in _BUSY:
            return 0.0  # an error of the server's own needs no patience, only a second try
        return min(self._retry_after if self._retry_after is not None else 0.5 * 2**tries, _LONGEST_WAIT)

    _retry_after: float | None = None

    def _sent(self, method: str, path: str, body: Mapping[str, Any] | None) -> Response:
        try:
            asked = None if body is None else dict(body)
            with self._client.stream(method, f"{self.url}{path}", json=asked) as response:
                raw = bytearray()
                for piece in response.iter_bytes():
                    raw += piece
                    if len(raw) > _LARGEST:
                        break
                self._retry_after = _seconds(response.headers.get("retry-after"))
                text = raw.decode("utf-8", "replace")
                return Response(response.status_code, text)
        except httpx2.HTTPError as error:
            return Response(_AWAY, type(error).__name__)


def _checked(url: str) -> httpx2.URL:
    try:
        found = httpx2.URL(url)
    except (httpx2.InvalidURL, TypeError) as error:
        raise VerifyError(
            f"expected the address of a server, such as http://127.0.0.1:8080: {error}"
        ) from None
    if found.scheme not in ("http", "https") or not found.host:
        raise VerifyError("expected the address of a server, such as http://127.0.0.1:8080")
    return found


def _seconds(text: str | None) -> float | None:
    try:
        return max(float(text), 0.0) if text is not None else None
    except ValueError:
        return None


def _without_digits(text: str) -> str:
    """An error's text without what changes from one request to the next."""
    return "".join(letter for letter in text if not letter.isdigit())[:300]
