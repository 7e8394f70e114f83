"""How a rollout goes on: answers are closed, messages are put after them, and segments begin.

Invariants: inside a segment, ids are only added. A line never changes, so copies of a rollout share it, and a step that
raises leaves nothing half done. Messages that come after others start again at the line right after the answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from ..core.format import Turn
from ..errors import warn_user
from ..tokens.growing import common_ids
from .bridge import Delta, HistoryKind, in_order, stand_in
from .compare import Break, Difference, Verdict, compare
from .ends import after_answer, joined_message
from .options import ANSWERING
from .parts import Completion
from .request import Request
from .segment import Segment, Step, opened
from .spoken import Spoken

Messages = Sequence[Mapping[str, Any]]


class Line(NamedTuple):
    """A rollout between its answers.

    ``exact``: what was sampled stays though the template drops it. ``count_stop``: as in `Chat.rollout`. ``quiet``: it
    warns of nothing. ``turn``: of the next answer. ``begun``: the message that the prompt began. ``answered``: the line
    right after the last sampled answer, and ``pending`` what was put after it since; ``changed``: whether some of that
    came with other options.
    """

    request: Request
    exact: bool
    count_stop: bool
    quiet: bool
    segments: tuple[Segment, ...]
    turn: Turn
    messages: Messages
    begun: Mapping[str, Any] | None
    kind: HistoryKind
    breaks: tuple[Break, ...] = ()
    differs: tuple[Difference, ...] = ()
    answered: Line | None = None
    pending: Messages = ()
    changed: bool = False

    @classmethod
    def of(
        cls,
        request: Request,
        messages: Messages,
        *,
        exact: bool,
        count_stop: bool,
        quiet: bool,
        held: Mapping[int, Completion] = MappingProxyType({}),
    ) -> Line:
        """The line that begins with these messages. ``held``: answers that were sampled, by their index. Raises the
        errors of `Chat.prepare`."""
        whole = request.traced(messages)
        begun = messages[-1] if request.options.get("continue_final_message") else None
        segment = opened(request, whole, messages, begun is not None, held)
        known = messages if begun is None else messages[:-1]
        kind = HistoryKind().then(known, request.asked)
        return cls(request, exact, count_stop, quiet, (segment,), whole.turn, known, begun, kind)

    def rebased(self, messages: Messages, held: Mapping[int, Completion], changes: Mapping[str, Any]) -> Line:
        """As `of`, with the options of this line."""
        return self._anew(self._asking({"continue_final_message": False, **changes}), messages, held)

    def closed(self, spoken: Spoken) -> Line:
        """The line after an answer."""
        message = joined_message(self.begun, spoken.message)
        segment = self.segments[-1].answered(Completion(spoken, len(self.messages)))
        found = self._replace(
            segments=(*self.segments[:-1], segment),
            messages=[*self.messages, message],
            kind=self.kind.then([message], self.request.asked),
            begun=None,
            answered=None,
            pending=(),
            changed=False,
        )
        return found._replace(answered=found)

    def appended(self, new: Messages, changes: Mapping[str, Any]) -> Line:
        """The line with messages after the last answer. Raises the errors of `Chat.prepare`."""
        request = self._asking(changes)
        line = self.answered
        if line is None:
            return self._anew(request, [*self.messages, *new], {})
        before, now = self.request.options, request.options
        other = any(before.get(name) != now.get(name) for name in changes if name not in ANSWERING)
        pending, changed = [*self.pending, *new], self.changed or other
        found = line._replace(request=request)._step(pending, changed)
        return found._replace(answered=line, pending=pending, changed=changed)

    def differing(self, *found: Difference) -> Line:
        """The line with more differences."""
        return self._replace(differs=(*self.differs, *found)) if found else self

    def _anew(self, request: Request, messages: Messages, held: Mapping[int, Completion]) -> Line:
        return Line.of(
            request, messages, exact=self.exact, count_stop=self.count_stop, quiet=self.quiet, held=held
        )

    def _asking(self, changes: Mapping[str, Any]) -> Request:
        """The request with other options."""
        return self.request.but(**{"continue_final_message": False, **changes}) if changes else self.request

    def _step(self, pending: Messages, changed: bool) -> Line:
        """The line with messages after its answer. ``changed``: with other options than those before it."""
        index = len(self.messages)
        new = in_order(self.request, self.messages[-1], pending)
        differs: list[Difference] = []
        if new != pending:
            texts = "results in the order given", "in the order of the calls"
            differs.append(Difference("order", index, *texts))
        self._warn(new)
        kind = self.kind.then(new, self.request.asked)
        verdict = self._verdict(new, kind, changed)
        differs += (Difference("prompt", at, lacking, "") for at, lacking in verdict.lacking)
        found = self._replace(messages=[*self.messages, *new], kind=kind)
        reason, delta = verdict.reason, verdict.delta
        if reason is not None and (not self.exact or delta is None or changed):
            return found.differing(*differs)._broken(verdict)
        if reason is not None:
            differs.append(Difference(reason, verdict.message, verdict.held, verdict.shown))
        assert delta is not None
        segment, indexed = self.segments[-1], tuple(enumerate(new, index))
        part, notes = after_answer(self.request, segment.last.spoken, delta, indexed, self.count_stop)
        differs += (Difference("stop", index - 1, *texts) for texts in notes)
        segments = (*self.segments[:-1], segment.added(Step(part, delta.lead)))
        return found.differing(*differs)._replace(segments=segments, turn=delta.turn)

    def _verdict(self, new: Messages, kind: HistoryKind, changed: bool) -> Verdict:
        """What becomes of the line if these messages follow. ``kind``: of the history with them."""
        generate = bool(self.request.options.get("add_generation_prompt", True))
        system = any(message.get("role") in ("system", "developer") for message in self.messages[:1])
        delta = stand_in(self.request, self.messages[-1], new, system=system, generate=generate)
        proved, key = self.request.found.proved, (self.kind, kind, generate)
        status = proved.get(key)
        if delta is not None and not changed:
            if status == "kept":
                return Verdict(None, delta)
            if status not in (None, "tail") and self.exact:
                return self._known(str(status), delta)
        messages = [*self.messages, *new]
        whole = self.request.traced(messages, continue_final_message=False)
        verdict = compare(self.request, self.segments[-1], whole, delta, messages)
        if changed:
            return verdict._replace(reason="variables")
        proved[key] = verdict.status
        return verdict

    def _known(self, reason: str, delta: Delta) -> Verdict:
        """The verdict that an earlier rollout found for a step of this kind, with the answers that it concerns here."""
        named = {difference.message for difference in self.differs if difference.what == reason}
        for said in self.segments[-1].said():
            thought = said.spoken.message.reasoning
            if reason == "thought" and thought and said.index not in named:
                return Verdict(reason, delta, True, said.index, thought, "")
        return Verdict(None if reason == "thought" else reason, delta)

    def _broken(self, verdict: Verdict) -> Line:
        """A segment begins with the rendering of all messages; answers whose text is unchanged keep their ids."""
        assert verdict.whole is not None
        held = {said.index: said for segment in self.segments for said in segment.said()}
        segment = opened(self.request, verdict.whole, self.messages, False, held)
        reason, kept = str(verdict.reason), common_ids(self.segments[-1].ids(), segment.ids())
        found = Break(reason, verdict.message, kept, verdict.held, verdict.shown)
        first = not any(other.reason == "thought" for other in self.breaks)
        if reason == "thought" and first and not self.quiet:
            warn_user(
                "rollout: the template drops the thoughts of older answers, so a new segment begins "
                "(history='exact' keeps what was sampled)"
            )
        segments, turn = (*self.segments, segment), verdict.whole.turn
        return self._replace(segments=segments, turn=turn, breaks=(*self.breaks, found))

    def _warn(self, new: Messages) -> None:
        """Warns of calls without a result."""
        calls = self.messages[-1].get("tool_calls") or ()
        results = sum(message.get("role") == "tool" for message in new)
        if results < len(calls) and not self.quiet:
            warn_user(f"append: {len(calls)} calls have {results} results; none is made up")
