"""One object that steers a running generation: what may come next, what must come, what has come.

Strategy: a `Guide` holds a turn's stream and a matcher of the turn's own grammar, and feeds both the same ids. What a
grammar cannot say is added by *limits*: how many ids thoughts may take, and how soon a call must come. A limit that is
reached acts in two ways. It *forces* ids, one after the other: a thought's closer. And it replaces the matcher by one
of a narrower grammar, in which no further thought begins, or a call comes next.

Invariants: all that a guide knows besides stream and matchers is one record (`_Known`), which begins at a count of ids
and is linked to the one before it. So going back is counting back, and copies share the past. No limit can be reached
before ``_deadline`` ids. Up to there, and while the stream's shortcut ``_plain`` is, an id is only given to matcher and
stream.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, SupportsIndex, TypeAlias

from ..errors import RequestError
from ..grammar import Grammar
from ..public import made_by, public
from ..streams.call import Call
from ..streams.events import Event
from ..streams.ids import read_ids
from ..streams.message import FinishReason, Message
from ..streams.reading import NO_SHORTCUT, Reading
from ..streams.state import StateKind
from ..streams.stream import Stream
from .bitmask import NO_ROW, Row, allow, allow_all, allow_none
from .closing import content_is_open, endings
from .engines import EngineName, Matcher
from .plan import Due, OnLoop, Plan
from .turn import Guided

Ids: TypeAlias = "SupportsIndex | Sequence[SupportsIndex]"
Origin: TypeAlias = Literal["sampled", "budget", "forced", "closed"]
"""How an id came: sampled; sampled, and counted by the budget for thoughts; forced by the grammar, or by a limit."""

_NEVER = 1 << 62
_LOOKS = 32
"""After so many ids it looks whether the model is in a loop."""
_EXPECTED = "expected a token id or a list of ids"


@public
class GuideState(NamedTuple):
    """Where a generation is. ``kind``, ``call``, ``tool`` and ``path`` are as in `StreamState`. ``tokens``: how many
    ids were fed since this kind of text began. ``left``: how many ids thoughts may still take; None: any number."""

    kind: StateKind
    call: int | None
    tool: str
    path: tuple[str | int, ...]
    tokens: int
    left: int | None


class _Known(NamedTuple):
    """What is known since ``since`` ids.

    Text of ``kind`` is read, the first of it after ``begun`` ids. Up to there, thoughts took ``thought`` ids, and
    content took ``said``; after the first call, that is no number that reaches a limit. ``run``: ids that must come,
    or had to, after ``forced`` ids. No thought begins any more in the matcher's grammar (``spent``), and a call comes
    first (``called``). ``looped``: a loop ended the thought, or the answer.
    """

    since: int
    kind: StateKind
    begun: int = 0
    thought: int = 0
    said: int = 0
    run: Sequence[int] = ()
    forced: int = 0
    spent: bool = False
    called: bool = False
    looped: bool = False
    before: _Known | None = None


@public
class Guide:
    """Steers one answer as it is sampled. Made by `Turn.guide`.

    >>> guide = chat.bind(tools=tools, prefix="<think>\\n").guide(thinking_tokens=1)
    >>> guide.feed(tokenizer.encode("Hm").ids)
    [Reasoning(text='Hm')]
    >>> tokenizer.decode(guide.forced(), skip_special_tokens=False)
    '</think>'
    """

    __slots__ = (
        "_call", "_deadline", "_ends", "_ids", "_known", "_matchers", "_plain", "_plan", "_reading", "_row", "_stream",
        "_take",
    )  # fmt: skip

    _plan: Plan
    _stream: Stream
    _matchers: list[tuple[int, Matcher | None]]
    """The matchers, each with the count of ids at which it began. The last one is used."""
    _known: _Known
    _ids: list[int]
    """The ids that were fed."""
    _ends: frozenset[int]
    """The ids that may end the turn."""
    _deadline: int
    """The count at which a limit is reached; -1 at the end, and where a limit forces an id."""
    _reading: Reading
    """What the stream has read."""
    _row: Row
    """The row that was filled last."""
    _take: Callable[[int], bool] | None
    """The matcher's method that takes an id."""
    _plain: object
    """The shortcut of what is read, where it was looked last."""
    _call: Call | None
    """The call that is written, if it has its name: until its end there is nothing to look at."""

    def __init__(self) -> None:
        made_by("a guide", "Turn.guide()")

    # what a host asks

    @property
    def grammar(self) -> Grammar | None:
        """The grammar that the engine reads; None if the turn constrains nothing."""
        return self._plan.grammar

    @property
    def size(self) -> int:
        """How many ids a mask has. An engine's may have more: these are not allowed."""
        return self._plan.size

    @property
    def state(self) -> GuideState:
        """Where the generation is: what is written, how many ids it took, how many thoughts may still take.

        >>> guide = chat.bind(tools=tools, prefix="<think>\\n").guide(thinking_tokens=9)
        >>> events = guide.feed(tokenizer.encode("Hm").ids)
        >>> guide.state.kind, guide.state.tokens, guide.state.left
        ('reasoning', 1, 8)
        """
        _, call, tool, path = self._stream.state
        return GuideState(self._known.kind, call, tool, path, self._count - self._known.begun, self._left)

    @property
    def stream(self) -> Stream:
        """The stream that reads the ids. Feed the guide, not the stream: it is another one after going back."""
        return self._stream

    @property
    def turn(self) -> Guided:
        """The turn that it steers."""
        return self._plan.turn

    @property
    def ids(self) -> list[int]:
        """The ids that were fed."""
        return self._ids[:]

    def origins(self) -> list[Origin]:
        """How each id came, for a picture: it reads the answer again. An id that must have come here is forced, whoever
        chose it.

        >>> guide = chat.bind(tools=tools, prefix="<think>\\n").guide(thinking_tokens=1)
        >>> events = guide.feed(tokenizer.encode("Hm</think>").ids)
        >>> guide.origins()
        ['budget', 'closed']
        """
        again, found, due = _begun(self._plan), list[Origin](), list[int]()
        budget = self._plan.thinking_tokens is not None
        for id in self._ids:
            due = due or again.forced()
            if again._forced_id >= 0:
                found.append("closed")
            elif due[:1] == [id]:
                found.append("forced")
            else:
                found.append("budget" if budget and again._known.kind == "reasoning" else "sampled")
            due = due[1:] if due[:1] == [id] else []
            again.feed(id)
        return found

    @property
    def message(self) -> Message:
        """The message so far; whole after `finish`."""
        return self._stream.message

    @property
    def ended(self) -> bool:
        """Whether the turn is over, because an id ended it."""
        return self._known.kind == "ended"

    def feed(self, ids: Ids) -> list[Event]:
        """Takes the next id or ids, and returns the events of `Stream.feed`.

        Raises `RequestError` for an id that may not come here, with its index in ``ids``; the guide is then as it was.
        After the end of the turn, any id is taken, and nothing follows.

        >>> guide = chat.bind(tools=tools).guide()
        >>> guide.feed(tokenizer.encode("Hi").ids)
        [Content(text='H'), Content(text='i')]
        """
        if type(ids) is not int:
            return self._feed_all(read_ids(ids, _EXPECTED))
        fed, reading, take = self._ids, self._reading, self._take
        if len(fed) + 1 < self._deadline and ids not in self._ends:
            text = reading.ids.texts[ids]
            if text and reading.plain(text) is None:  # as in `Reading.ran`, without its call
                if take is None or take(ids):
                    fed.append(ids)
                    reading.passed.append(ids)
                    return [reading.make(text)]
                self._restart()
                raise self._refusal(ids, 0)
        events = self._step(ids)
        if events is None:
            raise self._refusal(ids, 0)
        return events

    def accepts(self, ids: Ids) -> int:
        """How many of ``ids`` may come, one after the other. Takes none of them: for drafts.

        >>> guide = chat.bind(tools=tools, tool_choice="required").guide()
        >>> guide.accepts(tokenizer.encode("<tool_call>banana").ids)
        1
        """
        found = read_ids(ids, _EXPECTED)
        matcher = self._asked
        if not self._plan.limited and matcher is not None:
            return matcher.accepts(found)
        count = next((place for place, id in enumerate(found) if self._step(id) is None), len(found))
        self.rollback(count)
        return count

    def fill(self, bitmask: Any, row: int = 0) -> bool:
        """Writes into a row of ``bitmask`` which ids may come next: a bit for each, in words of 32 bits.

        False if all ids may come. ``bitmask`` is an array of numpy, a tensor of torch in main memory, or a buffer of
        32-bit integers, with one or two dimensions. Raises `RequestError` if it is something else, or too small. The
        guide holds it until it is given another: a buffer that is held cannot be resized.

        >>> from array import array
        >>> guide = chat.bind(tools=tools, prefix="<think>\\n").guide(thinking_tokens=0)
        >>> bitmask = array("i", [0] * 20)
        >>> guide.fill(bitmask)
        True
        >>> sum(word.bit_count() for word in bitmask)
        1
        """
        given, at, address, size, _, asked, begin = self._row
        if given is not bitmask or at != row or (asked is not None and asked() != begin):
            self._row = Row.of(bitmask, row, self._plan.size)
            _, _, address, size, *_ = self._row
        matcher = self._asked
        if matcher is not None:
            if size > matcher.bytes:
                allow_none(address, size)
            matcher.fill(address)
        elif self._forced_id >= 0:
            allow_none(address, size)
            allow(address, self._forced_id)
        else:
            allow_all(address, size)
            return False
        return True

    def forced(self) -> list[int]:
        """The ids that must come now: what a limit forces, else what the grammar leaves no choice about. They may be
        fed without asking the model.

        Sampling under the mask gives the same text, perhaps in other tokens.

        >>> guide = chat.bind(tools=tools, prefix="<think>\\n").guide(thinking_tokens=0)
        >>> guide.feed(guide.forced())
        []
        >>> guide.state.kind
        'between'
        """
        if self._forced_id >= 0:
            return [*self._known.run[self._count - self._known.forced :]]
        matcher = self._asked
        ids = [] if matcher is None else matcher.forced()
        return ids[: self.accepts(ids)] if ids and self._plan.limited else ids

    def rollback(self, count: int) -> None:
        """Takes back the last ``count`` ids, as if they had never been fed. Raises `RequestError` if fewer were fed.

        >>> guide = chat.bind(tools=tools).guide()
        >>> events = guide.feed(tokenizer.encode("Hi").ids)
        >>> guide.rollback(1)
        >>> guide.message.content
        'H'
        """
        ids, passed, matchers = self._ids, self._reading.passed, self._matchers
        matcher = matchers[-1][1]
        now = len(ids) - count
        if 0 < count <= len(passed):  # they only added to running text: nothing else was done for them
            if matcher is not None:
                matcher.rollback(count)
            del ids[now:], passed[len(passed) - count :]
            return
        if not 0 <= count <= len(ids):
            raise RequestError(f"rollback: expected at most {len(ids)} ids, as were fed, found {count!r:.40}")
        known, stream = self._known, self._stream
        taken = known.begun - (not self._stopped) if known.kind == "ended" else len(ids)
        """How many ids the matcher took: not the one that ended the turn."""
        while matchers[-1][0] > now:
            taken = matchers.pop()[0]
            matcher = matchers[-1][1]
        if matcher is not None and taken > now:
            matcher.rollback(taken - now)
        while known.before is not None and known.since > now:
            known = known.before
        del ids[now:]
        try:
            stream.rollback(count)
        except RequestError:  # more than it keeps
            self._stream = stream = self._plan.stream()
            stream.feed(ids)
        if known is self._known and self._plan.on_loop is None:  # so it has this deadline
            self._follow()
        else:
            self._known = known
            self._bind()

    def fork(self) -> Guide:
        """An independent guide at this point: for beams, and for several answers to one prompt.

        >>> guide = chat.bind(tools=tools).guide()
        >>> fork = guide.fork()
        >>> events = fork.feed(tokenizer.encode("Hi").ids)
        >>> fork.message.content, guide.message.content
        ('Hi', '')
        """
        other = Guide.__new__(Guide)
        for name in ("_plan", "_ends", "_known"):
            setattr(other, name, getattr(self, name))
        other._ids = self._ids[:]
        other._stream = self._stream.fork()
        other._row = NO_ROW
        other._matchers = [
            (begun, None if matcher is None else matcher.copy()) for begun, matcher in self._matchers
        ]
        other._bind()
        return other

    def finish(self, reason: FinishReason | str | None = None) -> list[Event]:
        """Ends the answer: `Stream.finish`. None: ``"stop"`` if the turn ended, else ``"length"``.

        >>> guide = chat.bind(tools=tools).guide()
        >>> events = guide.feed(tokenizer.encode("Hi").ids)
        >>> events = guide.finish()
        >>> guide.message.complete
        False
        """
        return self._stream.finish(reason or ("stop" if self.ended and not self._stopped else "length"))

    def __repr__(self) -> str:
        left = "" if self._left is None else f", {self._left} left for thoughts"
        return f"<Guide: {self._known.kind}, {self._count} ids{left}>"

    # what happens with each id

    def _feed_all(self, ids: list[int]) -> list[Event]:
        """The events of several ids; of all or none."""
        events: list[Event] = []
        for place, id in enumerate(ids):
            found = self._step(id)
            if found is None:
                refusal = self._refusal(id, place)
                self.rollback(place)
                raise refusal
            events += found
        return events

    def _step(self, id: int) -> list[Event] | None:
        """The events of the next id; None if it may not come."""
        fed, take, end = self._ids, self._take, id in self._ends
        after = ends = False
        if end or len(fed) >= self._deadline:
            after = self.ended
            if not after and self._forced_id not in (-1, id):
                return None
            # At an end the matcher stays as it was: not every engine can go back over it.
            ends = end and (self._matcher is None or self._matcher.may_end())
        if take is not None and not ends and not after:
            try:
                taken = take(id)
            except OverflowError:
                taken = False
            if not taken:
                self._restart()
                return None
        stream, reading, call = self._stream, self._reading, self._call
        events: list[Event] = []
        if stream._finished:
            stream.feed(id)  # it refuses
        reading.read_id(id, events)
        fed.append(id)
        if end and not ends and not after and stream.ended:  # in some formats a marker, too
            ends = True
            self._restart()
        if not after and (ends or len(fed) >= self._deadline):
            self._look(ends)
        elif (
            not after
            and (call is None or reading.transcript.call is not call)  # a call that goes on is all there is
            and (reading.plain is not self._plain or reading.plain is NO_SHORTCUT)
        ):
            self._look()
        return events

    def _restart(self) -> None:
        """Makes the matcher as it was before it took or refused the next id."""
        begun, matcher = self._matchers[-1]
        if matcher is not None:
            matcher.restart(self._ids[begun:])
            self._take = matcher.take

    def _look(self, ended: bool = False) -> None:
        """Looks whether another kind of text has begun, and whether a limit is reached. ``ended``: the last id has
        ended the turn."""
        known, free = self._known, self._forced_id < 0
        if free and known.kind == "reasoning" and self._plan.sections.intersection(self._ids[-1:]):
            self._note(run=self._ids[-1:], forced=self._count - 1)
        kind = "ended" if ended else self._kind()
        if kind != known.kind:
            took = self._count - known.begun
            thought = known.thought + (took if known.kind == "reasoning" else 0)
            # The id with which content begins is content, the one with which it ends is not.
            said = known.said + (took - 1 if known.kind == "content" else 0) + (kind == "content")
            if self._reading.transcript.count:  # one that is only taken for a call may yet be content
                said = -_NEVER
            self._note(kind=kind, begun=self._count, thought=thought, said=said)
        if free and self._plan.limited and kind != "ended" and not self._waits():
            self._end_loop()
            self._keep_limits()
        self._bind()

    def _note(self, **changes: Any) -> None:
        """Notes what is known from here on."""
        self._known = self._known._replace(since=self._count, before=self._known, **changes)

    def _waits(self) -> bool:
        """Whether a limit must wait for the end of a character: it has four ids at most."""
        ids = self._reading.ids
        return bool(ids) and ids.pending > 0 and not 0 <= self._deadline <= self._count - 3

    def _kind(self) -> StateKind:
        """The kind of text that is written."""
        kind, known = self._reading.stands()[0], self._known
        if kind == "reasoning" and known.run and known.forced + len(known.run) >= known.begun:
            # The thought was ended by the beginning of a call, which the parser takes for one when it has the name.
            return kind if self._forced_id >= 0 else "between"
        return kind

    def _bind(self) -> None:
        """Sets what follows from the rest: the methods that each id passes, and the deadline."""
        matcher, known, plan = self._matchers[-1][1], self._known, self._plan
        self._take = None if matcher is None else matcher.take
        self._follow()
        self._deadline = _NEVER
        if known.kind == "ended" or (known.run and self._forced_id >= 0):
            self._deadline = -1
        elif known.kind == "reasoning" and self._most is not None:
            self._deadline = known.begun + self._most - known.thought
        elif known.kind == "content" and plan.call_within is not None and not known.called:
            self._deadline = known.begun + plan.call_within - known.said
        if plan.on_loop is not None and not known.looped:
            self._deadline = min(self._deadline, (self._count // _LOOKS + 1) * _LOOKS)

    def _follow(self) -> None:
        """Sets what follows from what the stream has read."""
        self._reading = reading = self._stream._begun()
        self._plain = reading.plain
        call = reading.transcript.call
        self._call = (
            call if self._known.kind == "call" and call is not None and call.name is not None else None
        )

    @property
    def _count(self) -> int:
        """How many ids were fed."""
        return len(self._ids)

    @property
    def _matcher(self) -> Matcher | None:
        """The matcher that takes the ids; None if nothing is constrained."""
        return self._matchers[-1][1]

    @property
    def _asked(self) -> Matcher | None:
        """The matcher whose mask is the guide's; None if a limit forces an id, or nothing is constrained."""
        return None if self._deadline < 0 else self._matchers[-1][1]

    # limits

    @property
    def _forced_id(self) -> int:
        """The id that a limit forces; -1 if none does."""
        run, place = self._known.run, self._count - self._known.forced
        return run[place] if place < len(run) else -1

    @property
    def _stopped(self) -> bool:
        """Whether a loop ended the answer."""
        return self._known.looped and self._plan.on_loop == "stop"

    def _end_loop(self) -> None:
        """Ends what is in a loop that does not end: the open thought, as one that has taken all its tokens, or the
        answer."""
        plan, known = self._plan, self._known
        if plan.on_loop is None or known.looped or (plan.on_loop == "close" and known.kind != "reasoning"):
            return
        loop = self._stream.loop
        if loop is not None and loop.stuck:
            self._note(looped=True)
            if plan.on_loop == "stop":
                self._note(kind="ended", begun=self._count)

    @property
    def _most(self) -> int | None:
        """How many ids thoughts may take."""
        return 0 if self._known.looped else self._plan.thinking_tokens

    @property
    def _left(self) -> int | None:
        """How many ids thoughts may still take."""
        most, known = self._most, self._known
        if most is None:
            return None
        now = self._count - known.begun if known.kind == "reasoning" else 0
        return max(0, most - known.thought - now)

    def _keep_limits(self) -> None:
        """Does what follows from a limit that is reached."""
        plan = self._plan
        if self.ended:
            return
        if self._left == 0:
            if self._known.kind == "reasoning":
                self._close(plan.message)
            elif not self._known.spent:
                self._narrow(plan.spent(self._stream.message), spent=True)
        known = self._known
        if plan.call_within is not None and not known.called and known.kind in ("content", "between"):
            said = known.said + (self._count - known.begun if known.kind == "content" else 0)
            if said >= plan.call_within and not (known.kind == "content" and self._close(())):
                self._narrow(plan.call_next(known.spent), called=True)

    def _narrow(self, matcher: Matcher | None, **changes: bool) -> None:
        """Goes on with the matcher of a narrower grammar; None if the present one is as narrow."""
        self._note(**changes)
        if matcher is not None:
            self._matchers.append((self._count, matcher))

    def _close(self, message: tuple[int, ...]) -> bool:
        """Ends the open thought, or content with markers: the ids of its end must come now. False if none ends it."""
        turn, kind = self._plan.turn, self._known.kind
        text = turn.prefix + self._stream.message.text
        if kind == "content" and not content_is_open(turn, text):
            return False
        ways = (ids for ids in endings(turn, kind, text, message) if self._closes(ids))
        if self._plan.due is not None:
            self._plan.due([*ways])
            return False
        for ids in ways:
            self._note(run=ids, forced=self._count)
            return True
        return False

    def _closes(self, ids: list[int]) -> bool:
        """Whether these ids may come here, and end the present kind of text."""
        matcher = self._matcher
        if matcher is not None and matcher.accepts(ids) < len(ids):
            return False
        if ids[-1] in self._plan.sections:
            return True
        stream = self._stream.fork()
        stream.feed(ids)
        return stream._begun().stands()[0] != self._known.kind

    def _refusal(self, id: int, place: int) -> RequestError:
        must = self._forced_id
        why = (
            f"only {must} may come, as the thought has taken all its tokens: ask forced()"
            if must >= 0
            else "the grammar does not allow it: sample under the mask of fill(), and ask accepts() for drafts"
        )
        return RequestError(f"feed: expected an id that may come here, found {id} at index {place}: {why}")


def open_guide(turn: Guided, engine: EngineName | None = None, **limits: Any) -> Guide:
    """`Turn.guide`. ``limits``: those of `Plan.of`."""
    return _begun(Plan.of(turn, engine, **limits))


def counting(turn: Guided, thinking_tokens: int | None, due: Due, on_loop: OnLoop | None = None) -> Guide:
    """A guide that enforces nothing, for an engine that is steered from elsewhere. It counts thoughts as every guide
    does. ``due``: called with each id at which one has taken all its tokens, with the ways to end it."""
    return _begun(Plan.counting(turn, thinking_tokens, due, on_loop))


def _begun(plan: Plan) -> Guide:
    guide = Guide.__new__(Guide)
    guide._plan, guide._ids, guide._ends = plan, [], plan.ends
    guide._stream = plan.stream()
    guide._matchers = [(0, plan.matcher())]
    guide._row = NO_ROW
    guide._reading = guide._stream._begun()
    guide._known = _Known(0, guide._reading.stands()[0])
    guide._look()
    return guide
