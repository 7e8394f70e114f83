"""How a rollout goes on: answers are closed, messages are put after them, and segments begin.

Invariants: inside a segment, ids are only added. Parts and answers never change, so copies share them. The mark is the
state right after the last sampled answer: messages that come after others start there again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from ..core.format import Turn
from ..errors import warn_user
from ..tokens.growing import common_ids
from .bridge import Delta, History, in_order, stand_in
from .compare import Break, Difference, Verdict, compare
from .ends import after_answer, joined_message
from .options import ANSWERING
from .parts import Completion
from .request import Request
from .segment import Segment, Step, opened
from .spoken import Spoken


class _Mark(NamedTuple):
    """A state right after a sampled answer."""

    segments: tuple[Segment, ...]
    messages: int
    kind: History
    last: Spoken
    breaks: int
    differs: int


class Line:
    """The state of a rollout between its answers.

    ``exact``: what was sampled stays though the template drops it. ``count_stop``: as in `Chat.rollout`. ``quiet``: it
    warns of nothing. ``turn``: of
    the next answer. ``begun``: the message that the prompt began.
    """

    def __init__(
        self,
        request: Request,
        messages: list[Mapping[str, Any]],
        *,
        exact: bool,
        count_stop: bool,
        quiet: bool = False,
    ) -> None:
        self.request, self.exact, self.count_stop, self.quiet = request, exact, count_stop, quiet
        self.breaks: list[Break] = []
        self.differs: list[Difference] = []
        self.segments: tuple[Segment, ...]
        self.turn: Turn
        self.messages: list[Mapping[str, Any]]
        self.begun: Mapping[str, Any] | None
        self._kind: History
        self._mark: _Mark | None = None
        self._pending: list[Mapping[str, Any]] = []
        self._changed = False  # whether messages after the mark came with other options
        self._begin(messages)

    def rebased(
        self, messages: list[Mapping[str, Any]], held: Mapping[int, Completion], changes: Mapping[str, Any]
    ) -> Line:
        """A line that begins with these messages. ``held``: answers that were sampled, by their index."""
        other = Line.__new__(Line)
        other.__dict__.update(self.__dict__)
        other.breaks, other.differs = [], []
        other._mark, other._pending, other._changed = None, [], False
        other._change({"continue_final_message": False, **changes})
        other._begin(messages, held)
        return other

    def copy(self) -> Line:
        """An independent copy."""
        other = Line.__new__(Line)
        other.__dict__.update(self.__dict__)
        other.breaks, other.differs = [*self.breaks], [*self.differs]
        return other

    def close(self, spoken: Spoken) -> None:
        """Makes the answer a message."""
        message = joined_message(self.begun, spoken.message)
        segment = self.segments[-1]
        self.segments = (*self.segments[:-1], segment.answered(Completion(spoken, len(self.messages))))
        self.messages = [*self.messages, message]
        self._kind = self._kind.then(message, self.request.asked)
        self.begun, self._pending, self._changed = None, [], False
        self._mark = _Mark(
            self.segments, len(self.messages), self._kind, spoken, len(self.breaks), len(self.differs)
        )

    def append(self, new: list[Mapping[str, Any]], changes: Mapping[str, Any]) -> None:
        """Puts messages after the last answer. Raises the errors of `Chat.prepare`."""
        if self._mark is None:
            self._change(changes)
            self._begin([*self.messages, *new])
            return
        pending = [*self._pending, *new]
        self._restore(self._mark)
        self._changed = self._change(changes) or self._changed
        self._step(pending, self._changed)
        self._pending = pending

    def _begin(
        self, messages: list[Mapping[str, Any]], held: Mapping[int, Completion] = MappingProxyType({})
    ) -> None:
        whole = self.request.traced(messages)
        self.begun = messages[-1] if self.request.options.get("continue_final_message") else None
        self.segments = (opened(self.request, whole, messages, self.begun is not None, held),)
        self.turn = whole.turn
        self.messages = messages[:-1] if self.begun is not None else messages
        self._kind = History()
        for message in self.messages:
            self._kind = self._kind.then(message, self.request.asked)

    def _restore(self, mark: _Mark) -> None:
        self.segments, self._kind = mark.segments, mark.kind
        if len(self.messages) > mark.messages:
            self.messages = self.messages[: mark.messages]
        self.breaks, self.differs = self.breaks[: mark.breaks], self.differs[: mark.differs]

    def _change(self, changes: Mapping[str, Any]) -> bool:
        """Takes other options; whether the template may write another text for them."""
        if not changes:
            return False
        before = self.request.options
        self.request = Request(self.request.chat, {**before, "continue_final_message": False, **changes})
        now = self.request.options
        return any(before.get(name) != now.get(name) for name in changes if name not in ANSWERING)

    def _step(self, pending: list[Mapping[str, Any]], changed: bool) -> None:
        assert self._mark is not None
        answer = self.messages[-1]
        new = in_order(self.request, answer, pending)
        if new != pending:
            self.differ(
                "order", len(self.messages), "results in the order given", "in the order of the calls"
            )
        self._answered(answer, new)
        generate = bool(self.request.options.get("add_generation_prompt", True))
        system = any(message.get("role") in ("system", "developer") for message in self.messages[:1])
        delta = stand_in(self.request, answer, new, system=system, generate=generate)
        kind = self._kind
        for message in new:
            kind = kind.then(message, self.request.asked)
        key = self._kind, kind, generate
        proved = self.request.found.proved
        status = proved.get(key)
        messages = [*self.messages, *new]
        known = delta is not None and not changed
        if known and (status == "kept" or (status not in (None, "tail") and self.exact)):
            verdict = Verdict(None, delta) if status == "kept" else self._known(str(status), delta)
        else:
            whole = self.request.traced(messages, continue_final_message=False)
            verdict = compare(self.request, self.segments[-1], whole, delta, messages)
            if changed:
                verdict = verdict._replace(reason="variables")
            else:
                proved[key] = verdict.status
        for index, lacking in verdict.lacking:
            self.differ("prompt", index, lacking, "")
        if verdict.reason is not None and self.exact and verdict.delta is not None and not changed:
            self.differ(verdict.reason, verdict.message, verdict.held, verdict.shown)
        elif verdict.reason is not None:
            self._break(verdict, messages)
            self._kind, self.messages = kind, messages
            return
        assert verdict.delta is not None
        self._add(verdict.delta, new)
        self.turn = verdict.delta.turn
        self._kind, self.messages = kind, messages

    def _known(self, reason: str, delta: Delta | None) -> Verdict:
        """The verdict that an earlier rollout found for a step of this kind, with the answers that it concerns here."""
        named = {difference.message for difference in self.differs if difference.what == reason}
        for said in self.segments[-1].said():
            thought = said.spoken.message.reasoning
            if reason == "thought" and thought and said.index not in named:
                return Verdict(reason, delta, True, said.index, thought, "")
        return Verdict(None if reason == "thought" else reason, delta)

    def _add(self, delta: Delta, new: Sequence[Mapping[str, Any]]) -> None:
        """Puts the text after the answer."""
        assert self._mark is not None
        indexed = tuple(enumerate(new, len(self.messages)))
        part, notes = after_answer(self.request, self._mark.last, delta, indexed, self.count_stop)
        for held, shown in notes:
            self.differ("stop", len(self.messages) - 1, held, shown)
        segment = self.segments[-1].added(Step(part, delta.lead))
        self.segments = (*self.segments[:-1], segment)

    def _break(self, verdict: Verdict, messages: list[Mapping[str, Any]]) -> None:
        """Begins a segment with the rendering of all messages; answers whose text is unchanged keep their ids."""
        assert verdict.whole is not None
        held = {said.index: said for segment in self.segments for said in segment.said()}
        old = self.segments[-1].ids()
        segment = opened(self.request, verdict.whole, messages, False, held)
        self.segments = (*self.segments, segment)
        self.turn = verdict.whole.turn
        self.breaks.append(
            Break(
                str(verdict.reason),
                verdict.message,
                common_ids(old, segment.ids()),
                verdict.held,
                verdict.shown,
            )
        )
        if self.quiet or verdict.reason != "thought":
            return
        if not any(b.reason == "thought" for b in self.breaks[:-1]):
            warn_user(
                "rollout: the template drops the thoughts of older answers, so a new segment begins "
                "(history='exact' keeps what was sampled)"
            )

    def _answered(self, answer: Mapping[str, Any], new: Sequence[Mapping[str, Any]]) -> None:
        """Warns of calls without a result."""
        calls = answer.get("tool_calls") or ()
        results = sum(message.get("role") == "tool" for message in new)
        if results < len(calls) and not self.quiet:
            warn_user(f"append: {len(calls)} calls have {results} results; none is made up")

    def differ(self, what: str, index: int, held: str, shown: str) -> None:
        self.differs = [*self.differs, Difference(what, index, held, shown)]
