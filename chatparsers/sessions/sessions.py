"""All sessions of a gateway: their names and keys, what is logged of them, and how they come back.

A session is in memory while it is used, and always in its log. One that is idle leaves the memory, and is read back
with its next request: the log says what was asked and sampled, so the same rollouts are made again, id by id.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from statistics import fmean, pstdev
from typing import Any

from ..chat.chat import Chat
from ..serving import ApiError
from ..storage.session_index import Elsewhere, Indexed, SessionIndex
from .log import Logs, check_id
from .paths import VOLATILE, Keys, Message
from .samples import About, Export, Twins, export
from .session import Answer, Limits, NextAnswer, Options, Sampled, Session

HISTORIES = ("template", "exact")
OWN_KEY = "sk-session-"
"""How a session's own key begins."""
_TIMES = 60.0
"""How often, in seconds, is looked for sessions that are idle."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What sessions may have. ``sessions``: how many there are. ``size``: how many bytes all logs have. ``idle``: after
    how many seconds without a request a session leaves the memory. ``volatile``: regular expressions of what is left
    out of system texts where messages are compared. ``history``: as in `Chat.rollout`."""

    sessions: int = 100_000
    size: int = 2**40
    idle: float = 600.0
    volatile: Sequence[str] = (VOLATILE,)
    history: str = "template"
    limits: Limits = field(default_factory=Limits)


@dataclass(slots=True)
class Head:
    """What is said of a session when it begins. ``sampling``: fields of the sampler that its requests get, whatever
    they ask. ``key``: the digest of its own key. ``owner``: whose it is; None: an earlier version began it, which
    knew no owners."""

    id: str
    now: str
    history: str = "template"
    group: str | None = None
    sampling: dict[str, Any] = field(default_factory=dict)
    key: str | None = None
    owner: str | None = ""


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks for sessions. ``owner``: as of `Head`. ``admin``: all sessions are its own."""

    owner: str = ""
    admin: bool = False

    def may(self, head: Head | Indexed) -> bool:
        """Whether a session is its own."""
        return self.admin or head.owner in (None, self.owner)


ADMIN = Asker(admin=True)


@dataclass(slots=True)
class Entry:
    """A session in its folder. ``session``: None while it is not in memory. ``damaged``: how many lines of its log are
    left out."""

    head: Head
    lock: Any = field(default_factory=threading.RLock)
    session: Session | None = None
    options: dict[str, Options] = field(default_factory=dict)
    rewards: dict[int | None, float] = field(default_factory=dict)
    closed: bool = False
    damaged: int = 0
    used: float = field(default_factory=time.monotonic)
    running: int = 0

    @property
    def id(self) -> str:
        """Its name."""
        return self.head.id


@dataclass(frozen=True, slots=True)
class AnswerDetails:
    """What else is logged of an answer. ``told``: as the client reads it; None: as its ids are read."""

    api: str
    finish: str | None = None
    sampling: Mapping[str, Any] = field(default_factory=dict)
    told: Message | None = None
    response: str | None = None
    delivered: bool = True
    error: str | None = None


class Sessions:
    """The sessions in ``folder``. ``write`` False: they are only read, while another process may write them. ``index``:
    says where those of other gateways are. ``how``: more options of `Logs`. Raises `BlockingIOError` if another process
    writes them."""

    def __init__(
        self,
        chat: Chat,
        folder: str,
        rules: Rules | None = None,
        *,
        write: bool = True,
        index: SessionIndex | None = None,
        **how: Any,
    ) -> None:
        self.rules = rules or Rules()
        self.index = index
        self.logs = Logs(folder, self.rules.size, write=write, **how)
        self.version = -1
        """Of the weights, as `Sessions.weights` was told."""
        self._chat = chat
        self._keys = Keys(self.rules.volatile)
        self._lock = threading.RLock()
        self._looked = time.monotonic()
        self._entries: dict[str, Entry] = {}
        self._by_key: dict[str, str] = {}
        self._lost: set[str] = set()
        """The sessions whose logs do not say what they are."""
        for id in self.logs.ids():
            self._read_head(id)
        if index is not None:
            heads = [self._indexed(one.head) for one in self._entries.values()]
            index.sync(heads, lambda id: self._reward_of(self._entries[id]))

    def close(self) -> None:
        """Lets another process have them."""
        self.logs.close()

    def __len__(self) -> int:
        return len(self._entries)

    # names

    def begin(self, id: str | None = None, *, keyed: bool = True, **given: Any) -> tuple[Entry, str | None]:
        """A new session, and its own key. ``given``: fields of `Head`. Raises `ApiError` if there is one of that name,
        or if there are too many."""
        key = f"{OWN_KEY}{secrets.token_urlsafe(24)}" if keyed else None
        id = check_id(id) if id is not None else secrets.token_hex(8)
        given = {
            "history": self.rules.history,
            **{name: value for name, value in given.items() if value is not None},
        }
        if given["history"] not in HISTORIES:
            raise ApiError(f"expected one of {', '.join(HISTORIES)}", param="history")
        head = Head(id, datetime.now().isoformat(), key=None if key is None else digest(key), **given)
        self._check(id)
        with self._lock:
            if id in self._entries:
                raise ApiError(f"there is a session {id!r}: its requests go on", status=409, param="id")
            if len(self._entries) >= self.rules.sessions:
                said = f"there are {len(self._entries):,} sessions, as many as there may be: take some away"
                raise ApiError(said, status=429, code="too_many_sessions")
            self.logs.ready()
            if self.index is not None:
                self.index.claim(self._indexed(head))
            self._write(id, {"t": "session", **_plain(head)})
            entry = self._put(head)
            entry.session = self._new(head)
        return entry, key

    def named(self, id: str, owner: str = "") -> Entry:
        """The session of that name, which begins if there is none."""
        with self._lock:
            found = self._entries.get(id)
            return found if found is not None else self.begin(id, keyed=False, owner=owner)[0]

    def known(self, id: str) -> Entry | None:
        """The session of that name; None if there is none. It waits for nothing."""
        return self._entries.get(id)

    def get(self, id: str, asker: Asker = ADMIN) -> Entry:
        """The session of that name. Raises `ApiError` if there is none that belongs to who asks."""
        self._check(id)
        found = self._entries.get(id)
        if found is not None and asker.may(found.head):
            return found
        other = self.index.elsewhere(id) if found is None and self.index is not None else None
        if other is not None and asker.may(other):
            raise Elsewhere(id, other.gateway)
        raise ApiError(f"there is no session {id[:99]!r}", status=404)

    def of_key(self, key: str) -> str | None:
        """The session whose own key it is."""
        return self._by_key.get(digest(key)) if key else None

    def heads(self, asker: Asker = ADMIN) -> list[Head]:
        """Of all sessions that belong to who asks."""
        return [entry.head for entry in [*self._entries.values()] if asker.may(entry.head)]

    def _check(self, id: str) -> None:
        if id in self._lost:
            said = f"the log of the session {id[:99]!r} is damaged: the server's messages name it"
            raise ApiError(said, status=410, code="damaged")

    # requests

    @contextmanager
    def opened(self, entry: Entry) -> Iterator[Session]:
        """The session, in memory."""
        with entry.lock:
            if entry.session is None:
                self._load(entry)
            assert entry.session is not None
            entry.used = time.monotonic()
            yield entry.session
        self._forget_idle()

    def ask(
        self, entry: Entry, messages: Sequence[Message], options: Options, previous: str | None = None
    ) -> NextAnswer:
        """What a request asks the engine. Raises `ApiError` if the session is closed or full, or the disk is."""
        with self.opened(entry) as session:
            if entry.closed:
                raise ApiError(f"the session {entry.id!r} is closed", status=409, code="session_closed")
            self.logs.ready()
            return session.ask(messages, options, previous)

    def record(self, entry: Entry, asked: NextAnswer, sampled: Sampled, said: AnswerDetails) -> None:
        """Writes down what was sampled, and takes it into the session. Raises OSError if it cannot be written."""
        with self.opened(entry) as session, session.lock:
            if not sampled.ids:  # nothing of it can be trained on, and nothing goes on from it
                self._write(
                    entry.id, {"t": "failed", "answer": asked.number, "error": said.error, **_head(said)}
                )
                return

            def write(answer: Answer) -> None:
                self._know(entry, answer.options)
                self._write(entry.id, _line(answer, asked, sampled, said))

            session.answered(
                asked,
                sampled,
                said.told,
                write,
                response=said.response,
                delivered=said.delivered,
                error=said.error,
            )

    def undelivered(self, entry: Entry, number: int) -> None:
        """The client left before it had the last byte of an answer."""
        with self.opened(entry) as session, session.lock:
            self._write(entry.id, {"t": "undelivered", "answer": number})
            if number in session.answers:
                session.answers[number].delivered = False

    # what comes later

    def reward(self, entry: Entry, value: float, number: int | None = None) -> None:
        """Of the session, or of one answer. A later one counts."""
        with self.opened(entry) as session:
            if number is not None and number not in session.answers:
                raise ApiError(f"the session has no answer {number}", status=404, param="answer")
            if number is None and self.index is not None:
                self.index.rewarded(self._indexed(entry.head)._replace(reward=float(value)))
            self._write(entry.id, {"t": "reward", "value": value, "answer": number, "time": time.time()})
            entry.rewards[number] = value

    def end(self, entry: Entry) -> None:
        """Closes the session: it takes no more requests."""
        with entry.lock:
            if not entry.closed:
                self._write(entry.id, {"t": "closed", "time": time.time()})
                entry.closed = True

    def weights(self, version: int) -> None:
        """What is sampled from now on is of this version."""
        self.version = version

    def export(self, entry: Entry, twins: Twins = "context") -> tuple[Export, About]:
        """The rows of a session, and what they say of it."""
        with self.opened(entry) as session:
            found = export(session, twins)
            rewards = {number: value for number, value in entry.rewards.items() if number is not None}
            return found, About(
                entry.id, entry.head.group, entry.rewards.get(None), rewards, self._advantage(entry)
            )

    def _advantage(self, entry: Entry) -> float | None:
        """Its reward among those of its group, in their deviations; None without two of them."""
        own, group = entry.rewards.get(None), entry.head.group
        if own is None or group is None:
            return None
        owner = entry.head.owner
        every = [*self._entries.values()]
        others = [one for one in every if one.head.group == group and one.head.owner == owner]
        values = [value for one in others if (value := self._reward_of(one)) is not None]
        there = [] if self.index is None else self.index.of_group(group)
        values += [one.reward for one in there if one.owner == owner and one.reward is not None]
        return (own - fmean(values)) / (pstdev(values) + 1e-6) if len(values) > 1 else None

    def _reward_of(self, entry: Entry) -> float | None:
        if entry.session is None:
            for line in self.logs.read(entry.id):
                if line["t"] == "reward":
                    entry.rewards[line["answer"]] = line["value"]
        return entry.rewards.get(None)

    # the log

    def _write(self, id: str, line: Mapping[str, Any]) -> None:
        self.logs.write(id, line)

    def _know(self, entry: Entry, options: Options) -> None:
        """Writes down the options of a request, once."""
        name = hash_of(options)
        if name not in entry.options:
            self._write(entry.id, {"t": "options", "hash": name, "options": dict(options)})
            entry.options[name] = options

    def _read_head(self, id: str) -> None:
        line = next(self.logs.read(id), None)
        if line is None:
            self.logs.tell(
                "session", f"{self.logs.folder}: the log of {id!r} says nothing, and is left out", 1
            )
            return
        try:
            self._put(Head(**{name: line[name] for name in Head.__slots__ if name != "owner"}))
            self._entries[id].head.owner = line.get("owner")
        except KeyError:
            self._lost.add(id)
            self.logs.tell("session", f"{self.logs.folder}: the log of {id!r} is damaged, and left out", 1)

    def _put(self, head: Head) -> Entry:
        entry = self._entries[head.id] = Entry(head)
        if head.key is not None:
            self._by_key[head.key] = head.id
        return entry

    def _indexed(self, head: Head) -> Indexed:
        name = "" if self.index is None else self.index.name
        return Indexed(head.id, name, head.owner, head.group, head.key)

    def _new(self, head: Head) -> Session:
        now: Any = datetime.fromisoformat(head.now)
        history: Any = head.history
        return Session(
            self._chat, head.id, now=now, history=history, keys=self._keys, limits=self.rules.limits
        )

    def _load(self, entry: Entry) -> None:
        """Makes the session again, as its log says."""
        session = self._new(entry.head)
        entry.damaged = 0
        lines = [*self.logs.read(entry.id)]
        left = {line["answer"] for line in lines if line["t"] == "undelivered"}
        for line in lines:
            match line["t"]:
                case "options":
                    entry.options[line["hash"]] = line["options"]
                case "answer" if line["options"] not in entry.options or any(
                    one is not None and one not in session.answers for one in (line["parent"], *line["held"])
                ):  # what it goes on from is left out
                    entry.damaged += 1
                    session.skipped(line["answer"])
                case "answer":
                    answer = session.again(line, entry.options[line["options"]])
                    answer.delivered = answer.delivered and answer.number not in left
                case "reward":
                    entry.rewards[line["answer"]] = line["value"]
                case "closed":
                    entry.closed = True
                case "failed":
                    session.skipped(line["answer"])
                case "damaged":  # it may be an answer, whose number is not given again
                    entry.damaged += 1
                    session.numbered()
        entry.session = session

    def _forget_idle(self) -> None:
        """Sessions that nobody has used for long leave the memory."""
        now = time.monotonic()
        if now - self._looked < min(_TIMES, self.rules.idle):
            return
        self._looked = now
        for entry in [*self._entries.values()]:
            if entry.session is None or entry.running or now - entry.used < self.rules.idle:
                continue
            with entry.lock:
                if not entry.running:
                    entry.session = None


def digest(key: str) -> str:
    """What is kept of a key."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def hash_of(options: Options) -> str:
    """The same for options that are equal as JSON."""
    text = json.dumps(options, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _plain(head: Head) -> dict[str, Any]:
    return {name: getattr(head, name) for name in Head.__slots__}


def _head(said: AnswerDetails) -> dict[str, Any]:
    return {"time": round(time.time(), 3), "api": said.api, "response": said.response}


def _line(answer: Answer, asked: NextAnswer, sampled: Sampled, said: AnswerDetails) -> dict[str, Any]:
    return {
        "t": "answer",
        "answer": answer.number,
        "parent": None if answer.parent is None else answer.parent.number,
        "line": answer.line,
        **_head(said),
        "reason": answer.reason,
        "forgiven": sorted(answer.forgiven),
        "new": [*answer.new],
        "options": hash_of(answer.options),
        "held": [*asked.held],
        "texts": asked.texts,
        "differs": [*asked.differs],
        "given": asked.given,
        "sampled": sampled.ids,
        "logprobs": sampled.logprobs,
        "versions": sampled.versions,
        "cut": sampled.cut,
        "finish": said.finish,
        "sampling": dict(said.sampling),
        "message": answer.told,
        "delivered": answer.delivered,
        "error": answer.error,
    }
