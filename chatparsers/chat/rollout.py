"""A conversation held as the ids that were given and sampled: nothing of it is encoded again.

    Chat.rollout ──> ids ──engine──> sampled(ids) ──> Message ──host──> append(results) ──> ids ──> … ──> samples()

Strategy. A segment begins with the rendering of some messages. Each step adds an answer's ids as they were sampled, and
behind it only the text that the template writes between this answer's end and the next generation prompt (`bridge`).
Where the template rewrites what was given or sampled, a new segment begins, and `Rollout.breaks` says why.

Invariants: inside a segment, ids are only added. Parts and answers never change, so copies share them. ``_mark`` is the
state right behind the last sampled answer: `append` after `append` starts there again.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ..core.errors import RequestError, TemplateError
from ..core.format import Turn
from ..core.message import Message
from ..core.public import public
from ..core.shown import Shown
from ..templates.messages import own
from ..tokens.growing import common_ids
from .bridge import Delta, History, in_order, stand_in, with_prompt
from .compare import Break, Difference, Verdict, compare
from .ends import behind_answer, joined_message, with_objects
from .parts import Given, Said
from .request import Request, plain_messages
from .sample import Sample
from .segment import Segment, Step, opened, sample_of
from .spoken import Chunk, Spoken

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .options import PrepareOptions

__all__ = ["Rollout"]


class _Mark(NamedTuple):
    """A state right behind a sampled answer."""

    segments: tuple[Segment, ...]
    messages: int
    kind: History
    last: Spoken
    breaks: int
    differs: int


@public
class Rollout(Shown):
    """A conversation by exact ids. Made by `Chat.rollout`.

    ``breaks``: where the template rewrote what was given or sampled, so that a new segment began. ``differs``: where
    the ids differ from what the template would write. ``turn``: the turn of the next answer. ``history``,
    ``count_stop``: as in `Chat.rollout`.
    """

    def __init__(
        self,
        request: Request,
        messages: Sequence[Mapping[str, Any]],
        *,
        history: Literal["template", "exact"] = "template",
        count_stop: bool = False,
    ) -> None:
        if history not in ("template", "exact"):
            raise RequestError(f"history: expected 'template' or 'exact', found {history!r}")
        if request.chat.tokenizer is None:
            raise RequestError("rollout: ids need the model's tokenizer: load(…, tokenizer=…)")
        self.history, self.count_stop = history, count_stop
        self.breaks: list[Break] = []
        self.differs: list[Difference] = []
        self._request = request
        self._spoken: Spoken | None = None
        self._mark: _Mark | None = None
        self._pending: list[Mapping[str, Any]] = []
        self._begin([own(message) if isinstance(message, Mapping) else message for message in messages])

    # what a user asks

    @property
    def ids(self) -> list[int]:
        """All ids of this segment: what the engine is given next, or what it was given and sampled."""
        found = self._segments[-1].ids()
        return found + self._spoken.ids if self._spoken is not None else found

    @property
    def text(self) -> str:
        """What the ids spell, up to the answer that is being sampled."""
        return self._segments[-1].text(self._request.chat.tokenizer)

    @property
    def turn(self) -> Turn:
        """The turn that is being answered: its stops, its grammar, its reader."""
        return with_prompt(self._turn, self.text)

    @property
    def messages(self) -> list[dict[str, Any]]:
        """All messages, with the answers as they were read."""
        found = [own(message) for message in self._messages]
        return (
            [*found, joined_message(self._begun, self._spoken.message)] if self._spoken is not None else found
        )

    # steps

    def sampled(
        self,
        ids: Iterable[int],
        logprobs: Iterable[float] | None = None,
        finish_reason: str | None = None,
        *,
        counted: Iterable[bool] | bool | None = None,
        version: int | None = None,
    ) -> Message:
        """Takes what the engine sampled, as it is, and returns the message.

        Once more without `append`, it goes on with the same answer. Ids behind the first stop are dropped, and
        `differs` says how many. ``logprobs``: one for each id. ``finish_reason``: ``"length"`` if it was cut off.
        ``counted``: for each id or for all, whether a loss may count it; False for what the host forced. ``version``:
        of the weights. Raises `RequestError` if a column has another length than the ids.

        >>> rollout = chat.rollout(messages)
        >>> rollout.sampled(tokenizer.encode("Yes.<|im_end|>").ids).content
        'Yes.'
        >>> rollout.samples()[0].counted
        5
        """
        chunk = Chunk.of(ids, logprobs, counted, version)
        spoken = (self._spoken or Spoken(self._numbered(self._turn))).heard(chunk, finish_reason)
        dropped = spoken.dropped - (self._spoken.dropped if self._spoken is not None else 0)
        if dropped:
            self._differ("dropped", len(self._messages), f"{dropped} ids behind the stop", "")
        self._spoken = spoken
        return spoken.message

    def append(self, *messages: Mapping[str, Any], **changes: Unpack[PrepareOptions]) -> None:
        """Adds messages of other roles behind the answer; only their text is encoded.

        ``changes``: keywords of `prepare` that are other from here on, such as ``tools``; they begin a segment. Raises
        `RequestError` for an assistant's message, and the errors of `prepare`; then nothing is added.

        >>> rollout = chat.rollout(messages)
        >>> message = rollout.sampled(tokenizer.encode("Yes.<|im_end|>").ids)
        >>> rollout.append({"role": "user", "content": "And in Rome?"})
        >>> len(rollout.messages)
        3
        """
        given = plain_messages(messages)
        new = [own(message) if isinstance(message, Mapping) else message for message in given]

        if any(isinstance(message, Mapping) and message.get("role") == "assistant" for message in new):
            raise RequestError(
                "append: expected messages of other roles, found an assistant's: give its ids to `sampled`"
            )
        before = self._saved()
        try:
            if self._spoken is not None:
                self._close(self._spoken)
            if self._mark is None:
                self._change(changes)
                self._begin([*self._messages, *new])
                return
            pending = [*self._pending, *new]
            self._restore(self._mark)
            self._step(pending, self._change(changes))
            self._pending = pending
        except BaseException:
            self.__dict__.update(before)
            raise

    def fork(self) -> Rollout:
        """An independent copy at this point. It shares what was so far, so it costs little.

        >>> rollout = chat.rollout(messages)
        >>> fork = rollout.fork()
        >>> fork.sampled(tokenizer.encode("No.<|im_end|>").ids).content
        'No.'
        >>> len(rollout.messages), len(fork.messages)
        (1, 2)
        """
        other = Rollout.__new__(Rollout)
        other.__dict__.update(self._saved())
        return other

    def samples(self, *forks: Rollout) -> list[Sample]:
        """A sample for each segment, of this rollout and then of its ``forks``.

        Each sampled id counts in exactly one of them: where it was sampled first. A segment in which none counts is
        left out, with a warning.

        >>> rollout = chat.rollout(messages)
        >>> message = rollout.sampled(tokenizer.encode("Yes.<|im_end|>").ids)
        >>> sample, = rollout.samples()
        >>> sum(sample.loss_mask) == sample.counted
        True
        """
        seen: set[str] = set()
        found: list[Sample] = []
        empty = 0
        for rollout in (self, *forks):
            for number, segment in enumerate(rollout._segments):
                last = rollout._spoken if number + 1 == len(rollout._segments) else None
                parts = [*segment.parts()]
                if last is not None:
                    parts.append(Said(last, len(rollout._messages)))
                sample = sample_of(self._request.chat.tokenizer, parts, seen, truncated=_cut(parts))
                if sample.counted:
                    found.append(sample)
                else:
                    empty += 1
        if empty:
            warnings.warn(
                f"samples: {empty} segments are left out, as no id in them counts", UserWarning, stacklevel=2
            )
        return found

    # how it is done

    def _begin(self, messages: list[Mapping[str, Any]]) -> None:
        turn = self._request.prepare(messages)
        self._begun = messages[-1] if self._request.options.get("continue_final_message") else None
        self._segments: tuple[Segment, ...] = (
            opened(self._request, turn, messages, self._begun is not None, {}),
        )
        self._turn = turn
        self._messages = messages[:-1] if self._begun is not None else messages
        self._kind = History()
        for message in self._messages:
            self._kind = self._kind.then(message)

    def _numbered(self, turn: Turn) -> Turn:
        """The turn, whose calls get other ids than those of earlier answers."""
        return turn._replace(id_seed=f"{turn.id_seed}{len(self._messages)}")

    def _close(self, spoken: Spoken) -> None:
        """Makes the answer a message."""
        message = joined_message(self._begun, spoken.message)
        segment = self._segments[-1]
        self._segments = (*self._segments[:-1], segment.answered(Said(spoken, len(self._messages))))
        self._messages = [*self._messages, message]
        self._kind = self._kind.then(message)
        self._begun, self._spoken, self._pending = None, None, []
        self._mark = _Mark(
            self._segments, len(self._messages), self._kind, spoken, len(self.breaks), len(self.differs)
        )

    def _restore(self, mark: _Mark) -> None:
        self._segments, self._kind = mark.segments, mark.kind
        self._messages = self._messages[: mark.messages]
        self.breaks, self.differs = self.breaks[: mark.breaks], self.differs[: mark.differs]

    def _change(self, changes: Mapping[str, Any]) -> bool:
        """Takes other options; whether there are any."""
        if not changes:
            return False
        options = {**self._request.options, **changes, "continue_final_message": False}
        self._request = Request(self._request.chat, options)
        return True

    def _step(self, pending: list[Mapping[str, Any]], changed: bool) -> None:
        assert self._mark is not None
        answer = self._messages[-1]
        new = in_order(self._request, answer, pending)
        if new != pending:
            self._differ(
                "order", len(self._messages), "results in the order given", "in the order of the calls"
            )
        self._answered(answer, new)
        generate = bool(self._request.options.get("add_generation_prompt", True))
        system = any(message.get("role") in ("system", "developer") for message in self._messages[:1])
        delta = stand_in(self._request, answer, new, system=system, generate=generate)
        kind = self._kind
        for message in new:
            kind = kind.then(message)
        key = self._kind, kind, generate
        proved = self._request.frames.proved
        status = proved.get(key)
        messages = [*self._messages, *new]
        known = delta is not None and not changed
        if known and (status == "kept" or (status not in (None, "tail") and self.history == "exact")):
            verdict = Verdict(None, delta) if status == "kept" else self._known(str(status), delta)
        else:
            whole = self._rendered(messages, generate)
            verdict = compare(self._request, self._segments[-1], whole, delta, messages)
            if changed:
                verdict = verdict._replace(reason="variables")
            else:
                proved[key] = verdict.status
        for index, lacking in verdict.lacking:
            self._differ("prompt", index, lacking, "")
        if (
            verdict.reason is not None
            and self.history == "exact"
            and verdict.delta is not None
            and not changed
        ):
            self._differ(verdict.reason, verdict.message, verdict.held, verdict.shown)
        elif verdict.reason is not None:
            self._break(verdict, messages)
            self._kind, self._messages = kind, messages
            return
        assert verdict.delta is not None
        self._add(verdict.delta, new)
        self._turn = verdict.delta.turn
        self._kind, self._messages = kind, messages

    def _rendered(self, messages: list[Mapping[str, Any]], generate: bool) -> Turn:
        """The rendering of messages. A call that was cut off has no arguments for a template that wants an object."""
        options = {"continue_final_message": False, "add_generation_prompt": generate}
        try:
            return self._request.prepare(messages, **options)
        except TemplateError:
            mended = [with_objects(message) for message in messages]
            if mended == messages:
                raise
            return self._request.prepare(mended, **options)

    def _known(self, reason: str, delta: Delta | None) -> Verdict:
        """The verdict that an earlier rollout found for a step of this kind, with the answers that it concerns here."""
        named = {difference.message for difference in self.differs if difference.what == reason}
        for said in self._segments[-1].said():
            thought = said.spoken.message.reasoning
            if reason == "thought" and thought and said.index not in named:
                return Verdict(reason, delta, True, said.index, thought, "")
        return Verdict(None if reason == "thought" else reason, delta)

    def _add(self, delta: Delta, new: Sequence[Mapping[str, Any]]) -> None:
        """Puts the text behind the answer."""
        assert self._mark is not None
        indexed = tuple(enumerate(new, len(self._messages)))
        part, notes = behind_answer(self._request, self._mark.last, delta, indexed, self.count_stop)
        for held, shown in notes:
            self._differ("stop", len(self._messages) - 1, held, shown)
        segment = self._segments[-1].added(Step(part, delta.text, delta.generated, delta.turn.prefix))
        self._segments = (*self._segments[:-1], segment)

    def _break(self, verdict: Verdict, messages: list[Mapping[str, Any]]) -> None:
        """Begins a segment with the rendering of all messages; answers whose text is unchanged keep their ids."""
        assert verdict.whole is not None
        held = {said.index: said for segment in self._segments for said in segment.said()}
        old = self._segments[-1].ids()
        segment = opened(self._request, verdict.whole, messages, False, held)
        self._segments = (*self._segments, segment)
        self._turn = verdict.whole
        self.breaks.append(
            Break(
                str(verdict.reason),
                verdict.message,
                common_ids(old, segment.ids()),
                verdict.held,
                verdict.shown,
            )
        )
        if verdict.reason == "thought" and not any(b.reason == "thought" for b in self.breaks[:-1]):
            warnings.warn(
                "rollout: the template drops the thoughts of older answers, so a new segment begins "
                "(history='exact' keeps what was sampled)",
                UserWarning,
                stacklevel=4,
            )

    def _answered(self, answer: Mapping[str, Any], new: Sequence[Mapping[str, Any]]) -> None:
        """Warns of calls without a result."""
        calls = answer.get("tool_calls") or ()
        results = sum(message.get("role") == "tool" for message in new)
        if results < len(calls):
            warnings.warn(
                f"append: {len(calls)} calls have {results} results; none is made up",
                UserWarning,
                stacklevel=4,
            )

    def _differ(self, what: str, index: int, held: str, shown: str) -> None:
        self.differs = [*self.differs, Difference(what, index, held, shown)]

    def _saved(self) -> dict[str, Any]:
        return {**self.__dict__, "breaks": [*self.breaks], "differs": [*self.differs]}

    def __deepcopy__(self, memo: dict[int, Any]) -> Rollout:
        return self.fork()

    def __repr__(self) -> str:
        parts = [f"{len(self.ids)} ids", f"{len(self.messages)} messages"]
        parts += [f"{len(self.breaks)} breaks"] if self.breaks else []
        parts += [f"{len(self.differs)} differences"] if self.differs else []
        return f"<Rollout: {', '.join(parts)}>"


def _cut(parts: Sequence[Given | Said]) -> bool:
    last = parts[-1] if parts else None
    return isinstance(last, Said) and last.spoken.cut
