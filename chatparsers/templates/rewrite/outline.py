"""The kinds of a conversation's messages, without repetitions. Conversations of one outline need the same polyfills."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

from ...kept import kept
from ..jinja.traced import Traced
from ..messages import reasoning_of

Message = Mapping[str, Any]

BESIDE_RESULT = "beside_result"
"""The key of a user's message that stood beside a result, as a block of one message. It is true there."""


class Kind(NamedTuple):
    """The kind of a message. ``calls`` counts only to two. ``ids``: whether the calls have ids. ``added``: a text that
    no answer parts from the result before it. ``beside``: a user's text that stood beside a result."""

    role: str
    text: bool = True
    calls: int = 0
    ids: bool = True
    reasoning: bool = False
    added: bool = False
    beside: bool = False

    @property
    def in_round(self) -> bool:
        """Whether it is a text after a result that belongs to the round of the result: it is no new question."""
        return self.added and (self.beside or self.role != "user")


Outline = tuple[Kind, ...]
_Fields = tuple[Any, bool, int, bool, bool, bool, bool]
"""Those of a `Kind`, which takes longer to make."""


class Survey:
    """The kinds of a conversation's messages.

    Conversations are long and requests many. So each kind is a character, and repetitions are found by patterns.
    """

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._signs: list[str] = []
        self._own: dict[Kind, str] = {}
        self._parts: list[int] = []
        self.add(messages)

    def add(self, messages: Iterable[Message]) -> None:
        """Looks at more messages. Raises `TypeError` if one of them is no object with a role."""
        signs = self._signs
        for message in messages:
            if type(message) is not dict and not isinstance(message, Mapping):
                raise TypeError
            role, content = message.get("role"), message.get("content")
            if len(message) == 2 and type(content) is str:  # so are most
                sign = (_SAYING if content else _SILENT).get(role)
                if sign is not None:
                    signs.append(sign)
                    continue
            if type(content) not in _TEXTUAL:
                self._parts.append(len(signs))
            kind: _Fields
            if role == "tool":
                kind = role, True, 0, bool(message.get("tool_call_id")), False, False, False
            elif len(message) == 2 and content is not None:
                kind = role, bool(content), 0, True, False, False, False
            else:
                beside = role == "user" and message.get(BESIDE_RESULT) is True
                kind = role, bool(content), *_calls(message), reasoning_of(message) != "", False, beside
            sign = _SIGNS.get(kind)
            if sign is None:
                if not isinstance(role, str):
                    raise TypeError
                sign = self._own.setdefault(Kind(*kind), chr(_OTHERS + len(self._own)))
            signs.append(sign)

    def keep(self, number: int) -> None:
        """Forgets all messages but that many first ones."""
        del self._signs[number:]
        self._parts = [place for place in self._parts if place < number]

    @property
    def steps(self) -> tuple[tuple[int, int], ...]:
        """From and to of each answer that calls, with the results right after it; also of results after another
        message."""
        return _steps("".join(self._signs))

    @property
    def parts(self) -> bool:
        """Whether some content is no text."""
        return bool(self._parts)

    def outline(self) -> Outline:
        """The kinds, without repeated rounds and steps.

        A step is a message with the results that answer it. Two results stand for more, and two steps that are alike
        stand for more. A user message after an assistant's begins a round, and texts after results belong to theirs.
        Rounds are shown once, and the last one at the end. The system's messages at the start belong to no round, as
        later ones are something else.
        """
        signs = "".join(self._signs)
        if not self._own:
            return _usual(signs) if len(signs) <= _SHORT else _outline(signs, _KINDS)
        return _outline(signs, {**_KINDS, **{sign: kind for kind, sign in self._own.items()}})


_SHORT = 32
"""Up to how many messages what follows from their kinds is kept: many conversations have the same."""


@kept(512, _SHORT)
def _steps(signs: str) -> tuple[tuple[int, int], ...]:
    return tuple(step.span() for step in _STEP.finditer(signs))


@lru_cache(maxsize=512)
def _usual(signs: str) -> Outline:
    return _outline(signs, _KINDS)


def _outline(signs: str, kinds: Mapping[str, Kind]) -> Outline:
    signs = _ROUND_GOES_ON.sub(lambda found: found[0].translate(_ADDED), signs)
    signs = _MORE_ADDED.sub(r"\1\1", _RESULTS.sub(r"\1", signs))
    start = len(signs) - len(signs.lstrip(_SYSTEMS))
    rounds = _ROUND.findall(signs[start:])
    shortened = {round: _STEPS.sub(r"\1\1", round) for round in dict.fromkeys(rounds)}
    kept = list(dict.fromkeys(shortened.values()))
    if kept and kept[-1] != shortened[rounds[-1]]:
        kept.append(shortened[rounds[-1]])
    return tuple(kinds[sign] for sign in signs[:start] + "".join(kept))


def _calls(message: Message) -> tuple[int, bool]:
    """The number of calls, counted to two, and whether they have ids."""
    calls = message.get("tool_calls")
    if not calls:
        return 0, True
    if not isinstance(calls, (list, tuple)):
        return 1, False
    for call in calls:
        if (type(call) is dict or isinstance(call, Mapping)) and call.get("id"):
            return min(len(calls), 2), True
    return min(len(calls), 2), False


_TEXTUAL = frozenset({str, Traced, type(None)})
_BOTH = (False, True)
_STARTS = ("user", "system", "developer")
_FAMILIES: tuple[Iterable[Kind], ...] = (
    (Kind("assistant", *fields) for fields in product(_BOTH, range(3), _BOTH, _BOTH)),
    (Kind("tool", ids=ids) for ids in _BOTH),
    (
        *(Kind(role, text, added=True) for role, text in product(_STARTS, _BOTH)),
        *(Kind("user", text, added=True, beside=True) for text in _BOTH),
    ),
    (
        *(Kind(role, text) for role, text in product(_STARTS, _BOTH)),
        *(Kind("user", text, beside=True) for text in _BOTH),
    ),
)
_FIRST, _OTHERS = range(0xE000, 0xE400, 0x100), 0xE400
_KINDS = {
    chr(first + number): kind
    for first, kinds in zip(_FIRST, _FAMILIES, strict=True)
    for number, kind in enumerate(kinds)
}
"""The signs of the usual kinds. All others get signs of their own in each outline, from ``_OTHERS`` on."""
_SIGNS: dict[tuple[object, ...], str] = {kind: sign for sign, kind in _KINDS.items()}
_SAYING, _SILENT = (
    dict[Any, str]((role, _SIGNS[Kind(role, text)]) for role in ("assistant", *_STARTS))
    for text in (True, False)
)
"""The signs of messages that are a role and a text, or an empty one."""
_ADDED = {ord(_SIGNS[kind._replace(added=False)]): sign for sign, kind in _KINDS.items() if kind.added}
_SYSTEMS = "".join(_SIGNS[Kind(role, text)] for role in ("system", "developer") for text in _BOTH)
_A, _T, _X, _U = (f"{chr(first)}-{chr(first + 0xFF)}" for first in _FIRST)
_CALLS = "".join(sign for sign, kind in _KINDS.items() if kind.calls)
_STEP = re.compile(f"[{_CALLS}][{_T}]*|[{_T}]+")
_ROUND_GOES_ON = re.compile(f"[{_T}][{_U}]+")
_RESULTS = re.compile(f"([{_T}]{{2}})[{_T}]+")
_MORE_ADDED = re.compile(rf"([{_X}])\1{{2,}}")
_ROUND = re.compile(f"[^{_A}{_T}{_X}]*[{_A}{_T}{_X}]+|[^{_A}{_T}{_X}]+")
_STEPS = re.compile(rf"([^{_T}{_X}][{_T}]{{0,2}}[{_X}]*)(?:\1){{2,}}(?![{_T}{_X}])")
