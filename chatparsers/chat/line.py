"""How a rollout goes on: answers are closed, messages are put after them, and segments begin.

Invariants: inside a segment, ids are only added. A line never changes, so copies of a rollout share it, and a step that
raises leaves nothing half done. Messages that come after others start again at the line right after the answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from ..answers.format import Turn
from ..errors import warn_user
from ..templates.rewrite.results import MISSING, ORDER, Settled, is_stand_in
from ..tokens.growing import common_ids
from .around import HOSTS
from .bridge import Delta, HistoryKind, stand_in
from .compare import Break, Difference, Verdict, compare
from .ends import after_answer, joined_message
from .loading import loads_of
from .options import UNSEEN
from .parts import Completion
from .request import Request
from .same import merged_answer
from .segment import Segment, opened
from .spoken import Spoken

Messages = Sequence[Mapping[str, Any]]


class Policy(NamedTuple):
    """What a rollout does by choice. ``exact``: what was sampled stays though the template drops it. ``count_stop``: as
    in `Chat.rollout`. ``quiet``: it warns of nothing."""

    exact: bool
    count_stop: bool
    quiet: bool


class Line(NamedTuple):
    """A rollout between its answers.

    ``turn``: of the next answer. ``begun``: the message that the prompt began. ``answered``: the line right after the
    last sampled answer, and ``pending`` what was put after it since.
    """

    request: Request
    policy: Policy
    segments: tuple[Segment, ...]
    turn: Turn
    messages: Messages
    begun: Mapping[str, Any] | None
    kind: HistoryKind
    breaks: tuple[Break, ...] = ()
    differs: tuple[Difference, ...] = ()
    answered: Line | None = None
    pending: Messages = ()

    @classmethod
    def of(
        cls,
        request: Request,
        messages: Messages,
        policy: Policy,
        held: Mapping[int, Completion] = MappingProxyType({}),
    ) -> Line:
        """The line that begins with these messages. ``held``: answers that were sampled, by their index. Raises the
        errors of `Chat.prepare`."""
        whole = request.traced(request.read(messages))  # as for a host that sends what was sampled
        begun = messages[-1] if request.options.get("continue_final_message") else None
        segment = opened(whole, messages, begun is not None, held)
        known = messages if begun is None else messages[:-1]
        kind = HistoryKind().then(known, request.asked)
        return cls(request, policy, (segment,), whole.turn, known, begun, kind)

    def rebased(self, messages: Messages, held: Mapping[int, Completion], changes: Mapping[str, Any]) -> Line:
        """As `of`, with the options of this line."""
        request = self.request.but(**{"continue_final_message": False, **changes})
        return Line.of(request, messages, self.policy, held)

    def closed(self, spoken: Spoken, known: Mapping[str, Any] | None) -> Line:
        """The line after an answer. ``known``: the message that it says, whose ids of calls the results name."""
        message = joined_message(self.begun, spoken.message)
        message = message if known is None else merged_answer(known, message)
        segment = self.segments[-1].added(Completion(spoken, len(self.messages)))
        found = self._replace(
            request=self.request.but(continue_final_message=False),
            segments=(*self.segments[:-1], segment),
            messages=[*self.messages, message],
            kind=self.kind.then([message], self.request.asked),
            begun=None,
            answered=None,
            pending=(),
        )
        return found._replace(answered=found)

    def appended(self, new: Messages, changes: Mapping[str, Any]) -> Line:
        """The line with messages after the last answer. Raises the errors of `Chat.prepare`."""
        request, line = self.request.but(**changes), self.answered
        new = request.read(new)
        if line is None:
            return Line.of(request, [*self.messages, *new], self.policy)._expanded_as(self)
        before, now = line.request.options, request.options
        changed = any(before.get(name) != now.get(name) for name in now.keys() - UNSEEN)
        pending = [*self.pending, *new]
        found = line._replace(request=request)._step(pending, changed)
        found = found._expanded_as(self) if self.pending else found
        return found._replace(answered=line, pending=pending)

    def _expanded_as(self, before: Line) -> Line:
        """The line, where the same segment began: with the ids that ``before`` has in the place of placeholders."""
        segment = self.segments[-1]
        if len(self.segments) != len(before.segments):
            return self
        held = [(before.messages[one.message], one.part, ids) for one, ids in before.segments[-1].expanded()]
        for one, place, number in reversed([*segment.placeholders()] if held else []):
            message = self.messages[one.message]
            same = next((ids for other, part, ids in held if other is message and part == one.part), None)
            if same is not None:
                segment = segment.expand(place, number, same)
        return self._replace(segments=(*self.segments[:-1], segment))

    def _step(self, pending: Messages, changed: bool) -> Line:
        """The line with messages after its answer. ``changed``: with other options than those before it."""
        index = len(self.messages)
        settled = self.request.settled([self.messages[-1], *pending])
        new = [message for message in settled.messages[1:] if not is_stand_in(message)]
        differs: list[Difference] = []
        if ORDER in settled.names:
            texts = "results in the order given", "in the order of the calls"
            differs.append(Difference("order", index, *texts))
        self._warn(settled, new)
        kind = self.kind.then(new, self.request.asked)
        verdict = self._verdict(new, kind, changed, proves=not settled.warnings)
        differs += (Difference("prompt", at, lacking, "") for at, lacking in verdict.lacking)
        reason, delta = verdict.reason, verdict.delta
        broken = reason is not None and (not self.policy.exact or delta is None or changed)
        if reason is not None and not broken:
            differs.append(Difference(reason, verdict.message, verdict.held, verdict.shown))
        found = self._replace(messages=[*self.messages, *new], kind=kind, differs=(*self.differs, *differs))
        if broken:
            return found._broken(verdict)
        assert delta is not None
        segment, indexed = self.segments[-1], tuple(enumerate(new, index))
        part, notes = after_answer(segment.last.spoken, delta, indexed, self.policy.count_stop)
        stops = (Difference("stop", index - 1, *texts) for texts in notes)
        segments = (*self.segments[:-1], segment.added(part))
        return found._replace(segments=segments, turn=delta.shown.turn, differs=(*found.differs, *stops))

    def _verdict(self, new: Messages, kind: HistoryKind, changed: bool, *, proves: bool) -> Verdict:
        """What becomes of the line if these messages follow. ``kind``: of the history with them. ``proves``: whether
        another step of this kind goes the same way: a result that is of an older call moves up to it."""
        generates = self.request.options.get("add_generation_prompt", True)
        system = any(message.get("role") in HOSTS for message in self.messages[:1])
        loads = loads_of(self.messages) if self.request.loading is not None else ()
        delta = stand_in(self.request, self.messages[-1], new, system=system, loads=loads)
        proved, key = self.request.found, ("step", self.kind, kind, bool(generates))
        status, lost = proved.get(key, ("tail", frozenset())) if proves else ("tail", frozenset())
        if delta is not None and not changed:
            if status == "kept":
                return Verdict(None, delta, lacking=[*self._lacking(lost)])
            if status != "tail" and self.policy.exact:
                return self._known(str(status), delta)
        messages = [*self.messages, *new]
        whole = self.request.traced(self.request.read(messages))
        verdict = compare(self.segments[-1], whole, delta, messages)
        recorded = self._recorded("prompt")
        verdict = verdict._replace(lacking=[one for one in verdict.lacking if one[0] not in recorded])
        if changed:
            return verdict._replace(reason="variables")
        lost = frozenset((text, self._calls(index)) for index, text in verdict.lacking)
        if proves:
            proved[key] = verdict.status, lost
        return verdict

    def _lacking(self, lost: frozenset[tuple[str, bool]]) -> Iterator[tuple[int, str]]:
        """What the history lacks of prompts, if that is not recorded yet. ``lost``: what an earlier step of this kind
        lacked, of answers with calls or without."""
        if not lost:
            return
        recorded = self._recorded("prompt")
        for lead, said in self.segments[-1].answers():
            if said.index not in recorded:
                calls = self._calls(said.index)
                for text, of_calls in lost:
                    if of_calls is calls and lead.generated.endswith(text):
                        yield said.index, text

    def _recorded(self, what: str) -> frozenset[int]:
        """The messages of which ``differs`` has this difference."""
        return frozenset(one.message for one in self.differs if one.what == what)

    def _calls(self, index: int) -> bool:
        return bool(self.messages[index].get("tool_calls"))

    def _known(self, reason: str, delta: Delta) -> Verdict:
        """The verdict that an earlier rollout found for a step of this kind, with the answers that it concerns here."""
        recorded = self._recorded(reason)
        for said in self.segments[-1].said():
            thought = said.spoken.message.reasoning
            if reason == "thought" and thought and said.index not in recorded:
                return Verdict(reason, delta, True, said.index, thought, "")
        return Verdict(None if reason == "thought" else reason, delta)

    def _broken(self, verdict: Verdict) -> Line:
        """A segment begins with the rendering of all messages; answers whose text is unchanged keep their ids."""
        assert verdict.whole is not None
        held = {said.index: said for segment in self.segments for said in segment.said()}
        segment = opened(verdict.whole, self.messages, False, held)
        reason, kept = str(verdict.reason), common_ids(self.segments[-1].ids(), segment.ids())
        found = Break(reason, verdict.message, kept, verdict.held, verdict.shown)
        first = not any(other.reason == "thought" for other in self.breaks)
        if reason == "thought" and first and not self.policy.quiet:
            warn_user(
                "rollout: the template drops the thoughts of older answers, so a new segment begins "
                "(history='exact' keeps what was sampled)"
            )
        segments, turn = (*self.segments, segment), verdict.whole.turn
        return self._replace(segments=segments, turn=turn, breaks=(*self.breaks, found))

    def _warn(self, settled: Settled, new: Messages) -> None:
        """Warns of calls without a result, and of results without a call."""
        if self.policy.quiet:
            return
        calls = self.messages[-1].get("tool_calls") or ()
        results = sum(message.get("role") == "tool" for message in new)
        if results < len(calls):
            said = "; a stand-in says so" if MISSING in settled.names else ""
            warn_user(f"append: {len(calls)} calls have {results} results{said}")
        elif settled.warnings:
            warn_user(f"append: {settled.warnings[0].partition(': ')[2]}")
