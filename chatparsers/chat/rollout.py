"""A conversation held as the ids that were given and sampled: nothing of it is encoded again.

    Chat.rollout ──> ids ──engine──> sampled(ids) ──> Message ──host──> append(results) ──> ids ──> … ──> samples()

Strategy. A segment begins with the rendering of some messages. Each step adds an answer's ids as they were sampled, and
after it only the text that the template writes between this answer's end and the next generation prompt (`bridge`).
Where the template rewrites what was given or sampled, a new segment begins, and `Rollout.breaks` says why.

`Line` has the state between answers, and the steps. Here are what a user asks, and the answer that is being sampled.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal

from ..answers.format import Turn
from ..errors import RequestError, lacks_tokenizers, warn_user
from ..public import public
from ..shown import Shown
from ..streams.message import Message
from ..templates.messages import own, reasoning_of
from .compare import Break, Difference
from .ends import joined_message
from .inline import beside_thoughts, marks_of, with_thought
from .line import Line, Policy
from .parts import Completion, Given
from .placeholders import Placeholder
from .request import Request, plain_messages
from .same import answer_key, merged_answer, same_thought
from .sample import Sample
from .segment import sample_of
from .spoken import Chunk, Spoken, pieces
from .written import written

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .options import PrepareOptions


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
        quiet: bool = False,
    ) -> None:
        """``quiet``: nothing is warned of, as its maker says it in another way."""
        if history not in ("template", "exact"):
            raise RequestError(f"history: expected 'template' or 'exact', found {history!r}")
        if request.chat.tokenizer is None:
            raise RequestError(
                f"rollout: ids need the model's tokenizer: load(…, tokenizer=…){lacks_tokenizers()}"
            )
        self.history, self.count_stop = history, count_stop
        self._spoken: Spoken | None = None
        self._known: Mapping[str, Any] | None = None  # the answer as `said` got it
        given = request.read(own(messages))
        self._line = Line.of(request.fixed(), given, Policy(history == "exact", count_stop, quiet))

    # what a user asks

    @property
    def breaks(self) -> list[Break]:
        """Where the template rewrote what was given or sampled, so that a new segment began."""
        return list(self._line.breaks)

    @property
    def differs(self) -> list[Difference]:
        """Where the ids differ from what the template would write."""
        return list(self._line.differs)

    @property
    def ids(self) -> list[int]:
        """All ids of this segment: what the engine is given next, or what it was given and sampled."""
        found = self._line.segments[-1].ids()
        return found + self._spoken.ids if self._spoken is not None else found

    def ids_from(self, start: int) -> list[int]:
        """``rollout.ids[start:]``, without a list of those before.

        >>> rollout = chat.rollout(messages)
        >>> rollout.ids_from(2) == rollout.ids[2:]
        True
        """
        segment = self._line.segments[-1]
        held = len(segment)
        spoken = [] if self._spoken is None else self._spoken.ids[max(start - held, 0) :]
        return segment.ids(start) + spoken

    @property
    def text(self) -> str:
        """What the ids spell, up to the answer that is being sampled."""
        return self._line.segments[-1].text(self._line.request.chat.tokenizer)

    @property
    def turn(self) -> Turn:
        """The turn that is being answered: its stops, its grammar, its reader."""
        return self._line.turn._replace(prompt=self.text)

    @property
    def turn_alone(self) -> Turn:
        """The turn without the text of its prompt, which takes long to spell where there are many ids."""
        return self._line.turn._replace(prompt="")

    @property
    def messages(self) -> list[dict[str, Any]]:
        """All messages, with the answers as they were read."""
        found: list[dict[str, Any]] = own(self._line.messages)
        if self._spoken is not None:
            found.append(self._named(joined_message(self._line.begun, self._spoken.message)))
        return found

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

        Once more without `append`, it goes on with the same answer. Ids after the first stop are dropped, and
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
        spoken = (self._spoken or Spoken(self._numbered())).heard(chunk, finish_reason)
        dropped = spoken.dropped - (self._spoken.dropped if self._spoken is not None else 0)
        if dropped:
            index, what = len(self._line.messages), f"{dropped} ids after the stop"
            differs = (*self._line.differs, Difference("dropped", index, what, ""))
            self._line = self._line._replace(differs=differs)
        self._spoken = spoken
        return spoken.message

    def said(self, message: Mapping[str, Any], *, counted: bool = True, reasoning: bool = True) -> Message:
        """Takes an answer that is known as a message, as the model would write it, its stop included.

        So a finished conversation becomes samples in which each answer counts, also where the template drops its
        thought later. ``counted``: whether a loss may count it. ``reasoning=False`` does not count its thought. Raises
        `RequestError` if the format has no text that is read as this message after the prompt, or if an answer is
        begun.

        >>> rollout = chat.rollout(messages)
        >>> rollout.said({"role": "assistant", "content": "Yes."}).content
        'Yes.'
        >>> rollout.samples()[0].counted
        5
        """
        if self._spoken is not None:
            raise RequestError("said: an answer is begun: append the next message first")
        if message.get("role", "assistant") != "assistant":
            raise RequestError(f"said: expected an assistant's message, found the role {message['role']!r}")
        turn = self._numbered()
        marks = marks_of(turn.format)
        message = with_thought({**message, "role": "assistant"}, marks)  # as the format reads what is written
        ids = written(self._line.request, turn, message)
        counts = [counted] * len(ids)
        thought = bool(reasoning_of(message))
        if not (thought and reasoning):
            texts = pieces(turn.tokenizer, ids)
            firsts, text = [*accumulate(map(len, texts), initial=0)], "".join(texts)
            runs = [(region.start, region.end, region.kind) for region in turn.parse(ids).regions]
            for start, end in beside_thoughts(text, runs, marks, thought=thought, reasoning=reasoning):
                first, last = bisect_left(firsts, start), bisect_left(firsts, end)
                counts[first:last] = [False] * (last - first)
        found = self.sampled(ids, counted=counts)
        self._known = own(message)
        return found

    def append(self, *messages: Mapping[str, Any], **changes: Unpack[PrepareOptions]) -> None:
        """Adds messages of other roles after the answer; only their text is encoded.

        ``changes``: keywords of `prepare` that are other from here on, such as ``tools``; they begin a segment. Raises
        `RequestError` for an assistant's message, and the errors of `prepare`; then nothing is added.

        >>> rollout = chat.rollout(messages)
        >>> message = rollout.sampled(tokenizer.encode("Yes.<|im_end|>").ids)
        >>> rollout.append({"role": "user", "content": "And in Rome?"})
        >>> len(rollout.messages)
        3
        """
        new = own(plain_messages(messages))
        other = next((message for message in new if not isinstance(message, Mapping)), None)
        if other is not None:
            unpack = ": write append(*messages)" if isinstance(other, list) else ""
            raise RequestError(f"append: expected messages, found {type(other).__name__}{unpack}")
        if any(message.get("role") == "assistant" for message in new):
            raise RequestError(
                "append: expected messages of other roles, found an assistant's: give its ids to `sampled`"
            )
        line = self._line if self._spoken is None else self._line.closed(self._spoken, self._known)
        self._line, self._spoken, self._known = line.appended(new, changes), None, None

    @property
    def placeholders(self) -> list[Placeholder]:
        """Where the ids of this segment have the placeholder of an image or another part that is not expanded."""
        return [one for one, _, _ in self._line.segments[-1].placeholders()]

    def expand(self, placeholder: Placeholder, ids: Iterable[int]) -> None:
        """Puts the ids that the engine read in the place of a placeholder, such as one for each patch of an image.

        The template writes few ids for an image, and the engine makes more of them; what it sampled came after those.
        They never count. A segment that begins later has its placeholders anew, and `placeholders` says so. Take the
        last first, as each moves those after it. Raises `RequestError` if ``placeholder`` is none of `placeholders`.

        >>> rollout = chat.rollout(messages)
        >>> for one in reversed(rollout.placeholders):  # none, in a text
        ...     rollout.expand(one, [rollout.ids[one.start]] * 256)
        """
        found = [where for one, *where in self._line.segments[-1].placeholders() if one == placeholder]
        if not found:
            raise RequestError(f"expand: expected one of Rollout.placeholders, found {placeholder}")
        ((place, number),) = found
        *before, last = self._line.segments
        self._line = self._line._replace(segments=(*before, last.expand(place, number, list(ids))))

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
        other.__dict__.update(self.__dict__)
        return other

    def rebased(
        self,
        messages: Sequence[Mapping[str, Any] | Message],
        *others: Rollout,
        **changes: Unpack[PrepareOptions],
    ) -> Rollout:
        """A rollout of other messages, in which the answers that this one sampled are still their ids.

        For a conversation whose past was edited, shortened or condensed by the host: the text is the template's, and an
        answer that is in it as it was sampled keeps its ids, as context. It does not count again. An answer is
        known by its text and its calls; its thought may be left out. ``others``: rollouts whose answers may be there
        too. ``changes``: keywords of `prepare` that are other. Raises the errors of `prepare`.

        >>> rollout = chat.rollout(messages)
        >>> message = rollout.sampled(tokenizer.encode("Yes.<|im_end|>").ids)
        >>> rebased = rollout.rebased([*messages, message, {"role": "user", "content": "Sure?"}])
        >>> len(rebased.messages), rebased.ids[: len(rollout.ids)] == rollout.ids
        (3, True)
        """
        given = [*self._line.request.but(**changes).read(own(plain_messages(messages)))]
        found: dict[tuple[Any, ...], list[tuple[Mapping[str, Any], Completion]]] = {}
        for rollout in (self, *others):
            for message, said in rollout._answers():
                found.setdefault(answer_key(message), []).append((message, said))
        held: dict[int, Completion] = {}
        for index, message in enumerate(given):
            if message.get("role") != "assistant":
                continue
            same = [one for one in found.get(answer_key(message), ()) if same_thought(message, one[0])]
            if same:
                given[index] = merged_answer(message, same[0][0])
                held[index] = replace(same[0][1], index=index)
                if len(same) > 1:  # the next one that says the same is another
                    found[answer_key(message)].remove(same[0])
        other = self.fork()
        other._spoken, other._known = None, None
        other._line = self._line.rebased(given, held, changes)
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
            for parts in rollout.parts():
                sample = sample_of(self._line.request.chat.tokenizer, parts, seen)
                if sample.counted:
                    found.append(sample)
                else:
                    empty += 1
        if empty and not self._line.policy.quiet:
            warn_user(f"samples: {empty} segments are left out, as no id in them counts")
        return found

    def parts(self) -> Iterator[list[Given | Completion]]:
        """The parts of each segment, the answer that is being sampled included: what `samples` is made of.

        >>> rollout = chat.rollout(messages)
        >>> [[type(part).__name__ for part in segment] for segment in rollout.parts()]
        [['Given']]
        """
        *before, last = self._line.segments
        for segment in before:
            yield [*segment.parts]
        yield [*last.parts, *self.begun()]

    def begun(self) -> list[Completion]:
        """The answer that is being sampled; none if there is none.

        >>> chat.rollout(messages).begun()
        []
        """
        return [] if self._spoken is None else [Completion(self._spoken, len(self._line.messages))]

    # how it is done

    def _answers(self) -> Iterator[tuple[Mapping[str, Any], Completion]]:
        """Each answer that was sampled, as a message and as ids."""
        said = {one.index: one for segment in self._line.segments for one in segment.said()}
        said |= {one.index: one for one in self.begun()}
        messages = self.messages
        for index, one in sorted(said.items()):
            yield messages[index], one

    def _named(self, message: dict[str, Any]) -> dict[str, Any]:
        """The answer, with the ids of calls that its results name."""
        return message if self._known is None else merged_answer(self._known, message)

    def _numbered(self) -> Turn:
        """The turn, whose calls get other ids than those of earlier answers."""
        turn = self._line.turn
        return turn._replace(id_seed=f"{turn.id_seed}{len(self._line.messages)}")

    def __deepcopy__(self, memo: dict[int, Any]) -> Rollout:
        return self.fork()

    def __repr__(self) -> str:
        parts = [f"{len(self.ids)} ids", f"{len(self.messages)} messages"]
        parts += [f"{len(self.breaks)} breaks"] if self.breaks else []
        parts += [f"{len(self.differs)} differences"] if self.differs else []
        return f"<Rollout: {', '.join(parts)}>"
