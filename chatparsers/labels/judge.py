"""The judge of labels: what a trainer's ids and labels really teach.

Strategy. The ids are cut as `Chat.encode`'s are (`row`), and each rule looks at what counts (`alone`, `beside`). Then
`Chat.encode` writes the same messages, and its sample is judged by the same rules: what is found there too is the
template's, and no fault of the trainer. When the judge is made, it judges four conversations of its own; what it
charges there cannot be told of this template, and is never charged.

Invariant: the texts between messages are compared one by one, and kept. So a row costs one cut, and another one with
its rendering only if something is found that was not known.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..chat.as_sampled import encode_as_sampled
from ..chat.cut import headers_of
from ..chat.encode import How, encode
from ..chat.places import words_of
from ..chat.request import Model, Request
from ..chat.rows import read_rows
from ..chat.sample import Sample
from ..errors import ChatParsersError, RequestError
from ..kept import cached
from ..templates.borders import first_stop
from ..templates.probe.turns import common
from ..tokens.vocabulary import Vocabulary
from .alone import alone
from .beside import beside
from .charges import Charge
from .row import Row, cut_row, hidden

_MODES = (None, True, False)
_WORD = re.compile(r"\w+")
_NUMBERED = re.compile(r"[\w.-]*\d[\w.-]*")
Messages = Sequence[Mapping[str, Any]]


class Packed(RequestError):
    """A row holds several conversations, and nothing says where each begins."""


class Judge:
    """Judges conversations of one model. ``untold``: the codes that cannot be told of its template, and why."""

    def __init__(self, chat: Model) -> None:
        if chat.tokenizer is None:
            raise RequestError(
                f"labels: {chat.name} has no tokenizer, and ids are read with it (load the model's folder)"
            )
        self.chat = chat
        self._request = Request(chat, {"add_generation_prompt": False})
        headers_of(self._request)
        self._gaps: set[tuple[str, ...]] = set()
        self._added = Vocabulary.bare(chat.tokenizer).added
        self.untold: dict[str, str] = {}
        found: dict[str, str] = {}
        for messages, tools in _OWN:
            for known in (None, messages):
                found.update({charge.code: charge.says for charge in self._of_own(messages, tools, known)})
        for code in ("call-lost", "text-lost"):  # then answers and messages are not matched one to one
            if code in found:
                found.setdefault("text-added", found[code])
        self.untold = found

    def judge(
        self,
        ids: Sequence[int],
        labels: Sequence[int],
        messages: Messages | None = None,
        tools: Any = None,
    ) -> list[Charge]:
        """The charges of a conversation, each code once. Raises `RequestError` for ids and labels of other lengths, and
        `Packed`."""
        if len(ids) != len(labels):
            raise RequestError(f"labels: expected {len(ids)} of them, one for each id, found {len(labels)}")
        labels, stopped, found = self._aligned(ids, labels)
        counts = [label != -100 for label in labels]
        if not any(counts):
            asked = messages is None or any(
                message.get("role") == "assistant" and message.get("weight") != 0 for message in messages
            )
            return [Charge("nothing-counted", 0, f"none of {len(ids)} ids counts")] if asked else []
        request = self._request.but(tools=tools) if tools else self._request
        row = cut_row(request, ids, counts, frozenset(stopped))
        self._check_packed(row)
        found += alone(row, request.marks, self._left_open)
        found += self._unseen(row, request)
        if found or messages is not None:
            own = self._own(request, messages, row)
            if own is not None:
                known = {charge.code for charge in alone(own, request.marks, self._left_open)}
                found = [charge for charge in found if charge.code not in known]
            if messages is not None:
                names = request.tools.names()
                found += beside(
                    row, own, request.read(messages), names, lambda text: hidden(request.markers, text)
                )
        once: dict[str, Charge] = {}
        for charge in found:
            if charge.code not in self.untold:
                once.setdefault(charge.code, replace(charge, witness=row.witness(charge.place)))
        return list(once.values())

    def words(self, messages: Messages) -> Iterator[str]:
        """The texts of messages by which a conversation is found: those of its users, results and answers."""
        for message in messages:
            text = "\n".join(words_of(message)).strip()
            if text and message.get("role") != "system":
                yield hidden(self._request.markers, text)

    def read(self, ids: Sequence[int]) -> tuple[str, frozenset[str]]:
        """The text of a conversation's ids, and the texts of its messages, as `words` has those of messages."""
        row = cut_row(self._request, ids, [False] * len(ids))
        return row.text, frozenset(one.text("content").strip() for one in row.parts) - {""}

    def _of_own(self, messages: Messages, tools: Any, known: Messages | None) -> Iterator[Charge]:
        request = self._request.but(tools=tools) if tools else self._request
        samples: list[Sample] = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                samples.append(encode(request, read_rows(request, messages, as_sampled=False), How()))
                if known is None:
                    asking = request.but(add_generation_prompt=True)
                    samples += encode_as_sampled(asking, read_rows(asking, messages, as_sampled=True), How())
                for sample in samples:
                    if sample.counted:
                        yield from self.judge(sample.ids, sample.labels(), known, tools)
            except ChatParsersError:
                return

    def _aligned(
        self, ids: Sequence[int], labels: Sequence[int]
    ) -> tuple[Sequence[int], list[int], list[Charge]]:
        """The labels at the places of their ids; where one is a stop that the ids do not have; and what differs."""
        other = [at for at, label in enumerate(labels) if label not in (-100, ids[at])]
        if other and all(
            label in (-100, after) for label, after in zip(labels, [*ids[1:], -100], strict=True)
        ):
            return [-100, *labels[:-1]], [], []  # the trainer has shifted them
        ends = {self._request.chat.files.eos_token, *self.chat.syntax.stops}
        stopped = [
            at for at in other if (token := self._added.get(labels[at])) is not None and token.text in ends
        ]
        wrong = sorted({*other} - {*stopped})
        says = f"{len(wrong)} labels are other ids than the row's"
        return labels, stopped, [Charge("label-differs", wrong[0], says)] if wrong else []

    @cached
    def _left_open(self) -> bool:
        around = self._request.around(())
        return first_stop(around.alone(False) or "", around.stops) is None

    @cached
    def _bos_again(self) -> bool:
        """Whether the template writes its first token again: before a later question (Llama 2), or before a late system
        message (Apriel)."""
        bos = self.chat.files.bos_token
        rows = (self._own(self._request, messages, None) for messages in (_OWN[0][0], _LATE))
        return bool(bos) and any(row is not None and row.text.count(str(bos)) > 1 for row in rows)

    @cached
    def _head_again(self) -> bool:
        """Whether the template writes its head again before a late system message."""
        row = self._own(self._request, _LATE, None)
        if row is None or len(row.parts) < 2 or (row.parts[0].role, row.parts[1].role) != ("system", "user"):
            return False
        return row.text.count(row.text[: row.parts[1].part.start]) > 1

    def _prompts(self, messages: Messages | None) -> Iterator[str]:
        """The prompts after these messages, with thoughts as they are, on and off."""
        asked = messages or [{"role": "user", "content": "Hello"}]
        for mode in _MODES:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    yield self._request.prepare(asked, add_generation_prompt=True, thinking=mode).prompt
            except ChatParsersError:
                continue

    def _own(self, request: Request, messages: Messages | None, row: Row | None) -> Row | None:
        """The messages, given or as they were read, as `Chat.encode` has them; None if the template refuses them."""
        given = messages if messages is not None else [one.part.message for one in row.parts] if row else []
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                sample = encode(request, read_rows(request, given, as_sampled=False), How())
        except ChatParsersError:
            return None
        return cut_row(request, sample.ids, [*map(bool, sample.loss_mask)])

    # what no prompt has

    def _unseen(self, row: Row, request: Request) -> Iterator[Charge]:
        """The first text between two messages, up to the last answer that counts, that no prompt has."""
        last = max(
            (at for at, one in enumerate(row.parts) if one.part.written and row.counted(one)), default=0
        )
        for at, one in enumerate(row.parts[1 : last + 1], 1):
            before = row.parts[at - 1]
            if one.role == "tool" and before.part.written and not before.part.message.get("tool_calls"):
                yield Charge(
                    "prompt-never-seen", one.first, "a result stands after an answer that calls nothing"
                )
                return
        keys = dict(_keys(row, last))
        for at, key in keys.items():
            if key in self._gaps:
                continue
            self._learn(row, request, at)
            if key not in self._gaps and not any(
                _alike(known, key) or _within(known, key) for known in self._gaps
            ):
                before, after = row.parts[at - 1], row.parts[at]
                says = f"{row.gap(at)[-80:]!r} stands between {before.role} and {after.role}"
                yield Charge("prompt-never-seen", min(after.first, len(row.ids) - 1), says)
                return

    def _learn(self, row: Row, request: Request, at: int) -> None:
        """Learns the texts that the template writes between such messages: in a conversation, and before an answer."""
        messages = [one.part.message for one in row.parts]
        plain = [{key: value for key, value in one.items() if key != "name"} for one in messages]
        # a result's name was read off its call, and ids may have a form of their own or no digit
        for some in (plain, messages, _numbered(messages)):
            own = self._own(request, some, row)
            if own is not None:
                self._gaps.update(dict(_keys(own, len(own.parts) - 1)).values())
        if row.parts[at].part.written:
            for prompt in self._prompts(messages[:at]):
                ids = self.chat.tokenizer.encode(prompt + "x", add_special_tokens=False).ids
                asked = cut_row(request, ids, [False] * len(ids))
                self._gaps.update(dict(_keys(asked, len(asked.parts) - 1)).values())

    def _check_packed(self, row: Row) -> None:
        """Raises `Packed` for a conversation that begins again after an answer."""
        answer = next((one for one in row.parts if one.part.written), None)
        user = next((one for one in row.parts if one.role == "user"), None)
        if answer is None or user is None:
            return
        bos, head = self.chat.files.bos_token, row.text[: user.part.start]
        again = not self._bos_again and any(
            bos and id in self._added and self._added[id].text == bos for id in row.ids[answer.last :]
        )
        system = row.parts[0].role == "system" and row.parts[0].text("content").strip()
        again = again or bool(system and row.text.find(head, answer.part.end) >= 0 and not self._head_again)
        if again:
            raise Packed(
                "expected one conversation, found several in a row (packed rows need position_ids, segment_ids or "
                "cu_seqlens beside input_ids)"
            )


def _keys(row: Row, last: int) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The texts between messages from the first question on, up to a part, each with the roles beside it. What numbers
    calls and names tools is no part of it."""
    asked = False
    names: set[str] = set()
    for at, one in enumerate(row.parts[: last + 1]):
        calls = one.part.message.get("tool_calls") or ()
        if asked:
            before = row.parts[at - 1]
            gap = _NUMBERED.sub("#", row.gap(at).strip())
            for name in names:
                gap = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", "@", gap)
            yield at, (before.role, one.role, gap)
        names.update(call["function"]["name"] for call in calls)
        asked = asked or one.role == "user"


def _numbered(messages: Messages) -> list[dict[str, Any]]:
    """The messages, with ids of calls that have a digit."""
    found: list[dict[str, Any]] = []
    ids: dict[str, str] = {}
    for message in messages:
        calls = message.get("tool_calls") or ()
        for call in calls:
            ids[call["id"]] = f"call{len(ids):05}"
        answers = message.get("tool_call_id")
        found.append(
            {
                **message,
                **({"tool_calls": [{**call, "id": ids[call["id"]]} for call in calls]} if calls else {}),
                **({"tool_call_id": ids[answers]} if answers in ids else {}),
            }
        )
    return found


def _alike(known: tuple[str, ...], key: tuple[str, ...]) -> bool:
    """Whether a text is a known one, but for a word in the place of an id: one may have no digit."""
    (*roles, theirs), (*others, mine) = known, key
    words = r"[\w.-]+".join(map(re.escape, theirs.split("#")))
    return "#" in theirs and roles == others and re.fullmatch(words, mine) is not None


def _within(known: tuple[str, ...], key: tuple[str, ...]) -> bool:
    """Whether a text has all of a known one around words that nobody read, such as tools: it cannot be told then."""
    (*roles, theirs), (*others, mine) = known, key
    begins = common(mine, theirs)
    ends = common(mine[begins:][::-1], theirs[begins:][::-1])
    words = mine[begins : len(mine) - ends]
    told = others[1] != "user"  # Mistral writes tools before the last question
    return not told and roles == others and begins + ends == len(theirs) and len(_WORD.findall(words)) > 2


def _message(role: str, content: str, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


_TOOL = {
    "type": "function",
    "function": {
        "name": "find_word",
        "description": "Finds a word.",
        "parameters": {"type": "object", "properties": {"word": {"type": "string"}}},
    },
}
_CALL = {
    "id": "call00001",
    "type": "function",
    "function": {"name": "find_word", "arguments": {"word": "north"}},
}
_BOTH = [
    {"id": id, "type": "function", "function": {"name": "find_word", "arguments": {"word": word}}}
    for id, word in (("call00002", "south"), ("call00003", "east"))
]
_CALLS: list[dict[str, Any]] = [
    _message("user", "Is it cold?"),
    _message("assistant", "", tool_calls=_BOTH),
    _message("tool", "None there.", tool_call_id="call00002", name="find_word"),
    _message("tool", "Five there.", tool_call_id="call00003", name="find_word"),
    _message("assistant", "", tool_calls=[_CALL]),
    _message("tool", "Two of them.", tool_call_id="call00001", name="find_word"),
    _message("assistant", "Yes, it is.", reasoning_content="Both are cold."),
]
_OWN: list[tuple[list[dict[str, Any]], Any]] = [
    (
        [
            _message("system", "Be short."),
            _message("user", "Is it cold?"),
            _message("assistant", "Yes, it is."),
            _message("user", "And warm?"),
            _message("assistant", "No, not now."),
        ],
        None,
    ),
    (_CALLS, [_TOOL]),
    (
        [
            _CALLS[0],
            _message("assistant", "", reasoning_content="It has to be found.", tool_calls=[_CALL]),
            _CALLS[5],
            _CALLS[6],
        ],
        [_TOOL],
    ),
    (
        [
            _CALLS[0],
            _message("assistant", "Let me see.", tool_calls=[_CALL]),
            _CALLS[5],
            _message("assistant", "Yes, it is."),
            _message("user", "And south?"),
            _message("assistant", "", tool_calls=_BOTH[:1]),
        ],
        [_TOOL],
    ),
]
_LATE = [*_OWN[0][0][1:3], _message("system", "In one word."), *_OWN[0][0][3:]]
"""Two rounds, with a system message between them."""
