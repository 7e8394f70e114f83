"""Who broke the prompt cache: what of a prompt the engine has read before, and what in the request changed the rest.

Engines keep what they have computed of a prompt, and take up the next one where it parts from that. So a tool that is
listed elsewhere, or a date in a system text, makes them read all of it again. The witness keeps the ids of a session's
last prompts with a digest of each tool and of each field of its messages, and no text. The prompt before is the one of
them that shares most, so a request for a title between two turns disturbs nothing.
"""

from __future__ import annotations

import json
from array import array
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, Literal, TypeAlias
from urllib.parse import quote

from starlette.datastructures import Headers

from ..chat.loading import data_of
from ..serving import Request

HEADER = b"x-chatparsers-cache"
"""The header that says what the witness saw."""
Reason: TypeAlias = Literal["tools_changed", "system_changed", "messages_changed", "template"]

_LAST = 4
"""How many prompts of a session are kept. One that another goes on from is not."""
_OPENING = 16
"""So many ids at the end of a prompt may be what the template opens an answer with, which it closes otherwise."""
_OPTIONS = ("thinking", "effort", "template_kwargs", "tool_choice", "response_format")
"""What else of a request its template may read."""
_FIELD = 80
"""How many bytes a kept digest takes, with its name."""
_SESSIONS = (b"x-claude-code-session-id", b"x-session-id", b"session-id", b"x-session-affinity")
"""The headers in which clients name their session."""
_CLIENTS = (
    *(("claude-cli", "claude-code"), ("codex", "codex"), ("opencode", "opencode"), ("qwencode", "qwen-code")),
    *(("cline", "cline"), ("ai-sdk", "ai-sdk"), ("litellm", "litellm"), ("ollama", "ollama")),
    *(
        ("anthropic", "anthropic"),
        ("asyncanthropic", "anthropic"),
        ("openai", "openai"),
        ("asyncopenai", "openai"),
    ),
)
"""How the user agents of clients begin, and how they are named in the metrics."""


def client_of(headers: Headers) -> str:
    """The label of a client, by its user agent."""
    agent = headers.get("user-agent", "").lower()
    return next((name for begin, name in _CLIENTS if agent.startswith(begin)), "other")


def named_session(headers: Headers) -> str | None:
    """The session as the client's headers name it; None if they do not."""
    said = dict(headers.raw)
    return next((said[name].decode("latin-1") for name in _SESSIONS if name in said), None)


def session_of(headers: Headers, request: Request, owner: str) -> str:
    """What names the session of a request: the client's own word for it, else its first question."""
    body = request.body
    said = named_session(headers) or body.get("prompt_cache_key")
    if said is None and isinstance(body.get("metadata"), Mapping):
        said = _in_user(body["metadata"].get("user_id"))
    if said is None:
        first = next((one for one in request.messages if one.get("role") == "user"), None)
        said = f"{_digest(first):x}"
    return f"{owner} {said}"


def _in_user(user: object) -> str | None:
    """The session in Anthropic's ``metadata.user_id``, which Claude Code writes as JSON, or with it at the end."""
    if not isinstance(user, str):
        return None
    try:
        found = json.loads(user)
    except ValueError:
        found = None
    if isinstance(found, dict):
        return str(found["session_id"]) if "session_id" in found else None
    _, known, session = user.rpartition("_session_")
    return session if known else None


@dataclass(frozen=True, slots=True)
class Seen:
    """What of a prompt the engine has read before. ``shared``: how many of its ids are those of the prompt before;
    ``again``: how many more of that prompt it has to read again; ``new``: the rest. ``reason``: what changed, if that
    prompt does not just go on; ``path``: where. ``first``: there is none before."""

    shared: int = 0
    again: int = 0
    new: int = 0
    reason: Reason | None = None
    path: str = ""
    first: bool = False

    @property
    def changed(self) -> str:
        """The label of what changed."""
        return self.reason or ("first" if self.first else "nothing")

    def fields(self) -> dict[str, Any]:
        """For the log."""
        why = {"reason": self.reason, "path": self.path} if self.reason is not None else {}
        return {"shared": self.shared, "again": self.again, "new": self.new, **why}

    def header(self) -> tuple[bytes, bytes]:
        """The header of a response."""
        text = "; ".join(f"{name}={value}" for name, value in self.fields().items() if value != "")
        return HEADER, quote(text, safe=" ;=[].").encode()

    def anthropic(self) -> dict[str, Any] | None:
        """As ``diagnostics`` of the Messages API."""
        if self.reason is None:
            return None
        if self.reason == "template":
            return {"cache_miss_reason": {"type": "unavailable"}}
        return {"cache_miss_reason": {"type": self.reason, "cache_missed_input_tokens": self.again}}


NOT_FOUND: dict[str, Any] = {"cache_miss_reason": {"type": "previous_message_not_found"}}
"""What the Messages API says of an answer that it does not know."""


@dataclass(slots=True, eq=False)
class Prompt:
    """A prompt that is kept: its ids as bytes, and digests of what it was made of. ``answer``: the id of the answer."""

    ids: bytes
    tools: list[int]
    messages: list[dict[str, int]]
    options: dict[str, int]
    answer: str = ""

    @classmethod
    def of(cls, ids: Sequence[int], request: Request) -> Prompt:
        return cls(
            array("I", ids).tobytes(),
            [_digest(tool) for tool in request.tools or ()],
            [_digests(message) for message in request.messages],
            _digests({name: getattr(request, name) for name in _OPTIONS}),
        )

    @property
    def size(self) -> int:
        """How many bytes it takes, about."""
        return len(self.ids) + _FIELD * (len(self.tools) + sum(map(len, self.messages)) + 1)

    def shared(self, other: Prompt) -> int:
        """How many ids both begin with: a bisection by comparisons of C, unless it just goes on."""
        if self.ids.startswith(other.ids):
            return len(other.ids) // 4
        least, most = 0, min(len(self.ids), len(other.ids)) // 4
        while least < most:
            half = (least + most + 1) // 2
            if self.ids[4 * least : 4 * half] == other.ids[4 * least : 4 * half]:
                least = half
            else:
                most = half - 1
        return least

    def seen(self, before: Prompt) -> Seen:
        """What of it was in the prompt before."""
        shared, size, old = self.shared(before), len(self.ids) // 4, len(before.ids) // 4
        again = min(old, size) - shared
        if again <= _OPENING:
            return Seen(shared, 0, size - shared)
        return Seen(shared, again, size - shared - again, *self._parted(before))

    def _parted(self, before: Prompt) -> tuple[Reason, str]:
        """What changed first, in the order of a prompt, and where."""
        if (at := _parting(before.tools, self.tools)) is not None:
            return "tools_changed", f"tools[{at}]"
        at = _parting(before.messages, self.messages)
        if at is None or at == len(before.messages):
            return "template", next((n for n in _OPTIONS if before.options.get(n) != self.options.get(n)), "")
        system = not _SYSTEM.isdisjoint(
            (
                before.messages[at].get("role"),
                *(one.get("role") for one in self.messages[at : at + 1]),
            )
        )
        reason: Reason = "system_changed" if system else "messages_changed"
        if at == len(self.messages):
            return reason, f"messages[{at}]"
        old, new = before.messages[at], self.messages[at]
        return (
            reason,
            f"messages[{at}].{next(name for name in (*new, *old) if old.get(name) != new.get(name))}",
        )


class Witness:
    """The last prompts of the sessions, of ``most`` bytes together."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = 0
        self._lock = Lock()  # requests are prepared in threads
        self._sessions: OrderedDict[str, list[Prompt]] = OrderedDict()

    def see(self, session: str, prompt: Prompt) -> Seen:
        """What of a prompt was read before in its session, whose last prompt it now is."""
        with self._lock:
            kept = self._sessions.setdefault(session, [])
            self._sessions.move_to_end(session)
            before = max(reversed(kept), key=prompt.shared, default=None)  # of equal ones the last
            found = Seen(new=len(prompt.ids) // 4, first=True) if before is None else prompt.seen(before)
            if before is not None and (prompt.ids.startswith(before.ids) or len(kept) == _LAST):
                gone = before if prompt.ids.startswith(before.ids) else kept[0]
                kept.remove(gone)
                self._size -= gone.size
            kept.append(prompt)
            self._size += prompt.size
            while self._size > self._most and self._sessions:
                _, lost = self._sessions.popitem(last=False)
                self._size -= sum(one.size for one in lost)
            return found

    def since(self, answer: str, prompt: Prompt) -> dict[str, Any] | None:
        """What the Messages API says of a prompt after the one of an ``answer``."""
        with self._lock:
            before = next((one for one in self._all() if one.answer == answer and one is not prompt), None)
        return NOT_FOUND if before is None else prompt.seen(before).anthropic()

    def _all(self) -> Iterator[Prompt]:
        for kept in reversed(self._sessions.values()):
            yield from reversed(kept)


def _parting(old: Sequence[Any], new: Sequence[Any]) -> int | None:
    """Where two lists part; None if they are the same."""
    for at, (one, other) in enumerate(zip(old, new, strict=False)):
        if one != other:
            return at
    return None if len(old) == len(new) else min(len(old), len(new))


def _digests(fields: Mapping[str, Any]) -> dict[str, int]:
    return {name: _digest(value) for name, value in fields.items() if value not in (None, "", [])}


def _digest(value: object) -> int:
    """Python's own digest of a text, which differs from process to process: nobody can aim at it."""
    return hash(value if isinstance(value, str) else data_of(value))


_SYSTEM = {_digest("system"), _digest("developer")}
