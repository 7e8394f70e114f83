"""One session: the answers that were sampled for a client, as a tree of rollouts.

A request goes on from the answer with the longest equal path (`paths`): the engine gets that answer's own ids and the
template's text after them. What goes on from no answer begins a line, in which answers that stand unchanged keep their
ids. A client that edits an answer is believed: it is context in the client's words, never the old ids.

Every method may be called from any thread. `Session.ask` gives what the engine is asked, `Session.answered` takes what
it sampled, and `Session.again` does both for what a log says, so that a restart has the same ids.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any, Literal, cast

from ..answers.format import Turn
from ..chat.chat import Chat
from ..chat.request import Model, Request
from ..chat.rollout import Rollout
from ..chat.same import answer_key, same_thought
from ..serving import ApiError
from ..templates.messages import reasoning_of
from .paths import Key, Keys, Message, Place, call_ids, with_ids
from .walks import Walk, Walks

Options = Mapping[str, Any]
"""Keywords of `Chat.prepare` besides the messages."""
Reason = str
"""``exact``, or why ids are not kept: the reason of a `Break`, or why a line begins."""


@dataclass(eq=False, slots=True)
class Answer:
    """What one request sampled. ``new``: the messages after the parent's answer; all of them without a parent.
    ``told``: the answer as the client reads it; ``message``: as the ids are read. ``sampled``: how many ids. ``since``:
    how many ids the engine got after those of the parent. ``length``: how many ids there are up to its end.
    ``response``: the id that its API gave it."""

    number: int
    parent: Answer | None
    line: int
    new: Sequence[Message]
    options: Options
    rollout: Rollout
    asked: Place[Answer]
    reason: Reason
    forgiven: frozenset[str]
    told: Message
    message: Message
    sampled: int
    since: int
    length: int
    response: str | None = None
    delivered: bool = True
    error: str | None = None
    children: int = 0


@dataclass(frozen=True, slots=True)
class Limits:
    """What a session may have: ``answers``, ``ids`` that were sampled or given anew, and ``lines``."""

    answers: int = 10_000
    ids: int = 50_000_000
    lines: int = 1_000


@dataclass(slots=True)
class NextAnswer:
    """What the engine is asked for one answer. ``held``: the answers whose ids may be in a line that begins.
    ``given``: the ids that the engine got after those of the parent, once it has sampled. ``texts``: where the template
    rewrote what was held, that and what is there now. ``differs``: what of the ids is not what the template would
    write, each with the message."""

    session: Session
    number: int
    parent: Answer | None
    new: Sequence[Message]
    options: Options
    rollout: Rollout
    place: Place[Answer]
    reason: Reason
    forgiven: frozenset[str] = frozenset()
    held: tuple[int, ...] = ()
    given: list[int] = field(default_factory=list)
    texts: tuple[str, str] | None = None
    differs: tuple[tuple[str, int], ...] = ()

    def twin(self) -> NextAnswer:
        """The same for one more answer to the same request."""
        return replace(self, number=self.session.numbered(), rollout=self.rollout.fork())

    @property
    def turn(self) -> Turn:
        """The turn without its prompt. Agents tell calls apart by their ids: those of each answer are its own."""
        turn = self.rollout.turn_alone
        return turn._replace(id_seed=f"{turn.id_seed}/{self.number}")

    @property
    def since(self) -> int:
        """After how many ids of the prompt those are that the parent's answer does not end with."""
        return 0 if self.parent is None or self.reason != "exact" else self.parent.length


@dataclass(slots=True)
class Sampled:
    """What the engine sampled: the ids and their logprobs (None: it says none), and how many of them in turn were
    sampled by which version of the weights. ``cut``: no stop ended it."""

    ids: list[int] = field(default_factory=list)
    logprobs: list[float] | None = None
    versions: list[tuple[int, int]] = field(default_factory=list)
    cut: bool = True

    def add(self, ids: Sequence[int], logprobs: Sequence[float] | None, version: int) -> None:
        """Takes more."""
        self.ids += ids
        if logprobs is not None:
            self.logprobs = self.logprobs or []
            self.logprobs += logprobs
        if self.versions and self.versions[-1][1] == version:
            self.versions[-1] = (self.versions[-1][0] + len(ids), version)
        else:
            self.versions.append((len(ids), version))

    def add_versions(self, versions: Sequence[tuple[int, int]]) -> None:
        """Takes the versions that the engine says, where it says any: of the first ids; the others have the last."""
        found: list[tuple[int, int]] = []
        left = len(self.ids)
        for number, version in versions:
            found.append((min(number, left), version))
            left -= found[-1][0]
        if found:
            found[-1] = (found[-1][0] + left, found[-1][1])
            self.versions = [one for one in found if one[0]]


class Session:
    """``now``, ``id``: fixed, so that renderings of one session are equal. ``history``: as in `Chat.rollout`."""

    def __init__(
        self,
        chat: Chat,
        id: str,
        *,
        now: datetime,
        history: Literal["template", "exact"] = "template",
        keys: Keys | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.id, self.history, self.now = id, history, now
        self.answers: dict[int, Answer] = {}
        self.ids = 0
        self._chat = chat
        self.keys = keys or Keys()
        self._limits = limits or Limits()
        self.root: Place[Answer] = Place()
        self._walks = Walks(self.root, self.keys)
        self._answers_by_key: dict[Key, list[Answer]] = {}
        self._number = 0
        self._lines = 0
        self.lock = threading.RLock()

    # what the engine is asked

    def ask(self, messages: Sequence[Message], options: Options, previous: str | None = None) -> NextAnswer:
        """What a request asks the engine. ``previous``: the id of the response that it goes on from, if it names one.
        Raises the errors of `Chat.prepare`, and `ApiError` beyond the limits."""
        with self.lock:
            self._checked()
            walk = self._walks.of(messages)
            found = _Search(self, messages, walk, previous)
            self._walks.remember(walk)
            parent, begun = found.answer, bool(options.get("continue_final_message"))
            if parent is None or found.foreign or begun:
                reason = "prefilled" if begun else found.reason()
                return self._line(messages, options, reason, self._answers_in(messages))
            new = with_ids(messages[found.used :], messages[found.used - 1], parent.message)
            asked = self._step(parent, new, options)
            asked.forgiven = found.forgiven(parent)
            return asked

    def numbered(self) -> int:
        """The number of the next answer."""
        with self.lock:
            self._number += 1
            return self._number

    def skipped(self, number: int) -> None:
        """An answer of which nothing was sampled had this number."""
        self._number = max(self._number, number)

    def _checked(self) -> None:
        """Raises `ApiError` if the session may have no more."""
        most = self._limits
        for name, found, allowed in (
            ("answers", len(self.answers), most.answers),
            ("ids", self.ids, most.ids),
            ("lines", self._lines, most.lines),
        ):
            if found >= allowed:
                said = f"the session {self.id!r} has {found:,} {name}, as many as a session may have: begin another"
                raise ApiError(said, status=413, code="session_full")

    def _step(
        self, parent: Answer, new: Sequence[Message], options: Options, number: int | None = None
    ) -> NextAnswer:
        """What comes after an answer."""
        rollout = parent.rollout.fork()
        before, differed = len(rollout.breaks), len(rollout.differs)
        known = {**_NONE, **parent.options}
        changes = {name: value for name, value in {**_NONE, **options}.items() if known[name] != value}
        rollout.append(*new, **cast("Any", changes))
        found = rollout.breaks[before:]
        reason = found[-1].reason if found else "exact"
        texts = (found[-1].held[:_SHOWN], found[-1].shown[:_SHOWN]) if found else None
        options = {**known, **changes}
        place = self._after(parent, new)
        number = number or self.numbered()
        asked = NextAnswer(self, number, parent, new, options, rollout, place, reason, texts=texts)
        asked.differs = tuple((one.what, one.message) for one in rollout.differs[differed:])
        return asked

    def _line(
        self,
        messages: Sequence[Message],
        options: Options,
        reason: Reason,
        held: Sequence[Answer],
        number: int | None = None,
    ) -> NextAnswer:
        """What begins a line. ``held``: answers that may be in it."""
        options, messages = {**_NONE, **options}, [*messages]
        given = {**options, "now": self.now, "id_seed": self.id}
        if held:
            others = [answer.rollout for answer in held]
            rollout = others[0].rebased(messages, *others[1:], **cast("Any", given))
        else:
            request = Request(cast("Model", self._chat), given)
            rollout = Rollout(request, messages, history=self.history, quiet=True)
        place = self.root.after(self.keys.of(messages))
        return NextAnswer(
            self,
            number or self.numbered(),
            None,
            messages,
            options,
            rollout,
            place,
            reason,
            held=tuple(answer.number for answer in held),
        )

    def has_answer(self, message: Message) -> bool:
        """Whether the message is an answer of this session, wherever it is."""
        return answer_key(message) in self._answers_by_key

    def _answers_in(self, messages: Sequence[Message]) -> list[Answer]:
        """Answers that are in these messages: the last of each line, whose rollouts have those before them."""
        found: dict[int, Answer] = {}
        for message in messages:
            if message.get("role") == "assistant":
                same = self._answers_by_key.get(answer_key(message), ())
                found |= {one.number: one for one in same if same_thought(message, one.told)}
        for answer in [*found.values()]:
            parent = answer.parent
            while parent is not None:
                found.pop(parent.number, None)
                parent = parent.parent
        return [found[number] for number in sorted(found, reverse=True)][:_MOST_HELD]

    def _after(self, parent: Answer, new: Sequence[Message]) -> Place[Answer]:
        ended = parent.asked.after(self.keys.of([parent.told]))
        return ended.after(self.keys.of(new, parent.message))

    # what it sampled

    def answered(
        self,
        asked: NextAnswer,
        sampled: Sampled,
        told: Message | None = None,
        write: Callable[[Answer], None] = lambda answer: None,
        **how: Any,
    ) -> Answer:
        """Takes what the engine sampled. ``told``: the answer as the client reads it, if that is not as the ids
        are read. ``write``: is called before the answer is taken, and may raise. ``how``: fields of `Answer`. Raises
        `RequestError` for what cannot be ids."""
        with self.lock:
            rollout, parent = asked.rollout, asked.parent
            asked.given = rollout.ids_from(asked.since)
            at = 0
            message: Message = {}
            for number, version in sampled.versions or [(len(sampled.ids), -1)]:
                ids, end = sampled.ids[at : at + number], at + number
                probs = None if sampled.logprobs is None else sampled.logprobs[at:end]
                reason = "length" if sampled.cut else "stop"
                message = rollout.sampled(ids, probs, reason, version=version).to_openai()
                at = end
            if asked.options.get("continue_final_message"):
                message = rollout.messages[-1]
            answer = Answer(
                asked.number,
                parent,
                self._line_of(parent),
                asked.new,
                asked.options,
                rollout,
                asked.place,
                asked.reason,
                asked.forgiven,
                message if told is None else told,
                message,
                len(sampled.ids),
                len(asked.given),
                asked.since + len(asked.given) + len(rollout.begun()[0].ids),
                **how,
            )
            write(answer)
            self._add(answer)
            return answer

    def again(self, said: Mapping[str, Any], options: Options) -> Answer:
        """An answer as a log has it."""
        with self.lock:
            number, new = said["answer"], said["new"]
            if said["parent"] is None:
                held = [self.answers[one] for one in said["held"]]
                asked = self._line(new, options, said["reason"], held, number)
            else:
                asked = self._step(self.answers[said["parent"]], new, options, number)
            asked.forgiven = frozenset(said["forgiven"])
            self._number = max(self._number, number)
            if asked.rollout.ids_from(asked.since) != said["given"] or asked.reason != said["reason"]:
                raise ApiError(
                    f"the session {self.id!r} cannot go on: the template or the tokenizer gives other ids than when it "
                    "was recorded",
                    status=409,
                    code="session_changed",
                )
            sampled = Sampled(said["sampled"], said["logprobs"], said["versions"], said["cut"])
            how = {name: said[name] for name in ("response", "delivered", "error")}
            return self.answered(asked, sampled, said["message"], **how)

    def _line_of(self, parent: Answer | None) -> int:
        if parent is not None and not parent.children:
            return parent.line
        self._lines += 1
        return self._lines

    def _add(self, answer: Answer) -> None:
        if answer.parent is not None:
            answer.parent.children += 1
        self.answers[answer.number] = answer
        self.ids += answer.since + answer.sampled
        answer.asked.asked.append(answer)
        answer.asked.after(self.keys.of([answer.told])).answers.append(answer)
        self._answers_by_key.setdefault(answer_key(answer.told), []).append(answer)


_NONE: Options = {
    "tools": None,
    "loaded": None,
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "response_format": None,
    "thinking": None,
    "effort": None,
    "template_kwargs": None,
    "continue_final_message": False,
    "add_generation_prompt": True,
    "lenient_calls": False,
}
"""What a request that says nothing asks for."""
_SHOWN = 300
"""How many characters of a text that was rewritten are logged."""
_MOST_HELD = 16
"""How many lines are looked through for answers that are in a new one."""


class _Search:
    """The answer that a request goes on from. ``used``: how many messages its path has."""

    def __init__(
        self, session: Session, messages: Sequence[Message], walk: Walk[Answer], previous: str | None
    ) -> None:
        self._session, self._messages, self._walk, self._previous = session, messages, walk, previous
        self.used, self.answer = walk.used, walk.answer = self._found()
        if self.answer is not None and walk.spelt[self.used - 1] == self.answer.told:
            walk.spelt[self.used - 1] = self.answer.told  # which is there anyway

    def _found(self) -> tuple[int, Answer | None]:
        for used in range(self._walk.known, 0, -1):
            if self._messages[used - 1].get("role") == "assistant":
                places = self._walk.places
                stands = [answer for answer in places[used].answers if self._fits(answer, used)]
                if stands:
                    return used, max(stands, key=partial(self._closeness, self._messages[used - 1]))
        return 0, None

    def _fits(self, answer: Answer, used: int) -> bool:
        """Whether all thoughts on the way to the answer are missing, or the same."""
        own: Answer | None = answer
        while own is not None:
            if self._fitted_before(own, used):
                return True
            begin = used - 1 - len(own.new)
            pairs = zip(self._messages[begin:used], (*own.new, own.told), strict=True)
            if not all(
                theirs.get("role") != "assistant" or same_thought(theirs, mine) for theirs, mine in pairs
            ):
                return False
            own, used = own.parent, begin
        return True

    def _fitted_before(self, answer: Answer, used: int) -> bool:
        """Whether an earlier request went on from the answer, whose answers up to there are spelt alike."""
        before = self._walk.before
        return before is not None and before.answer is answer and before.used == used <= self._walk.told

    def _closeness(self, theirs: Message, answer: Answer) -> tuple[bool, bool, bool, int]:
        """Of answers that say the same, the one that is named, or whose calls' ids come back, else the last that was
        delivered."""
        given, told = call_ids(theirs), call_ids(answer.told)
        named = self._previous is not None and self._previous == answer.response
        return named, bool(told) and given == told, answer.delivered, answer.number

    @property
    def foreign(self) -> bool:
        """Whether what follows the answer has another answer, or is nothing."""
        new = self._messages[self.used :]
        return not new or any(message.get("role") == "assistant" for message in new)

    def reason(self) -> Reason:
        """Why a line begins."""
        messages, at = self._messages, self._differs_at()
        roles = [message.get("role") for message in messages]
        shared = any(role not in ("system", "developer") for role in roles[:at])
        answers = [message for message in messages if message.get("role") == "assistant"]
        begun = shared or any(map(self._session.has_answer, answers))
        if not begun or (not answers and at == len(messages)):
            return "first"
        if at == len(messages):
            return "shorter"
        place = self._walk.places[at]
        if roles[at] == "assistant":
            known = place.asked or self._session.has_answer(messages[at])
            return f"edited({at})" if known else "foreign answer"
        return "condensed" if len(messages) <= at + place.depth() else f"edited({at})"

    def _differs_at(self) -> int:
        """The first message that is known otherwise: also one whose thought alone is another."""
        for index, message in enumerate(self._messages[: self._walk.known]):
            if message.get("role") != "assistant" or not reasoning_of(message):
                continue
            if not any(same_thought(message, one.told) for one in self._walk.places[index + 1].answers):
                return index
        return self._walk.known

    def forgiven(self, answer: Answer) -> frozenset[str]:
        """What the request lacks of the answer that it goes on from, or spells otherwise."""
        volatile = ["volatile"] if self._session.keys.forgets(self._messages[:1]) else []
        return frozenset([*volatile, *_differences(self._messages[self.used - 1], answer.told)])


def _differences(theirs: Message, own: Message) -> Iterator[str]:
    if reasoning_of(own).strip() and not reasoning_of(theirs).strip():
        yield "thought"
    if call_ids(theirs) != call_ids(own):
        yield "ids"
    arguments = [
        [call["function"].get("arguments") for call in one.get("tool_calls") or ()] for one in (theirs, own)
    ]
    if arguments[0] != arguments[1]:
        yield "arguments"
