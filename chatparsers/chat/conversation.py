"""A conversation that grows: each step gives the new text, and says how much of the old is still valid.

Each step renders the whole conversation once: no template can be trusted to render a single message. The new text is
found by comparing with what the engine already has. So a caller keeps its KV cache as far as the template allows. Most
templates only add text; some rewrite (they drop reasoning of earlier turns, or move the system text).

Strategy. An answer that is given as ids stays as it was sampled, by the mechanism of `Rollout`: it is read by ids, what
was given and sampled up to there is compared with each new rendering, answers as messages (`compare`), and only the
text after it is encoded (`following`). If the comparison fails, what stands up to an earlier answer is kept.

Invariant: the text and the ids up to each mark are a beginning of the conversation's own; after the last mark, they
are the rendering's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import RequestError
from ..public import made_by, public
from ..streams.message import Message
from ..templates.messages import own
from ..templates.probe.turns import common
from ..templates.rewrite.history import History
from ..tokens.growing import GrowingIds, common_ids
from ..tokens.pieces import encoded
from .bridge import lead_of
from .compare import compare
from .ends import following
from .parts import Completion, Given
from .request import Model, Request
from .same import same_message
from .segment import Segment
from .spoken import Chunk, Spoken, spelt

if TYPE_CHECKING:
    from ..answers.format import Turn
    from .options import PrepareOptions


@public
@dataclass(frozen=True, slots=True)
class Grown:
    """What a step added.

    ``text``: the new text. ``kept``: how many leading characters of the engine's text are still valid. ``rewritten``:
    True if the template changed text (with a tokenizer: ids) that the engine already holds. ``ids`` and ``kept_ids``:
    ``text`` and ``kept`` in tokens, None without a tokenizer.
    """

    text: str
    kept: int
    rewritten: bool
    ids: list[int] | None = None
    kept_ids: int | None = None


@dataclass(slots=True)
class _Mark:
    """What stays up to a place: the beginning of all, or the end of an answer that was given as ids. ``index``: of its
    message. ``chars``, ``tokens``: how much of the text and the ids that is. ``segment``: what was given and sampled up
    to there; None if the ids do not say the message.

    ``place``: where the rendering goes on after it; None as long as that is not known. ``stop``: where the rendering
    has the stop that is before that place. ``closer``: what closes a thought in which the answer was cut off. ``rest``:
    the ids of the text from the place on.
    """

    rest: GrowingIds
    index: int = -1
    chars: int = 0
    tokens: int = 0
    segment: Segment | None = None
    place: int | None = None
    stop: int = 0
    closer: str = ""


@public
class Conversation:
    """Messages and their rendering. Made by `Chat.conversation`.

    ``messages``: copies of the messages; change them with `replace`. ``text``, ``ids``: the last prompt; answers that
    were given as ids are in it as they were sampled. ``turn``: the turn of the last step.
    """

    def __init__(self) -> None:
        made_by("a conversation", "Chat.conversation()")

    @classmethod
    def _made(cls, chat: Model, options: PrepareOptions) -> Conversation:
        conversation: Conversation = object.__new__(cls)
        conversation._open(chat, options)
        return conversation

    def _open(self, chat: Model, options: PrepareOptions) -> None:
        self._request = Request(chat, options).fixed()
        self._seed = options.get("id_seed")
        self._history = History()
        self._rendered = ""
        self._wrote = ""
        """An answer that was given as ids, while no rendering has it."""
        tokenizer = chat.tokenizer
        self._marks = [] if tokenizer is None else [_Mark(GrowingIds(tokenizer), place=0)]
        self.messages: list[Mapping[str, Any]] = []
        self.text = ""
        self.ids: list[int] = []
        self.turn: Turn | None = None

    def __repr__(self) -> str:
        size = f"{len(self.ids):,} ids" if self._marks else f"{len(self.text):,} characters"
        return f"<Conversation: {len(self.messages)} messages, {size}>"

    def append(
        self,
        *messages: Mapping[str, Any] | Message,
        wrote: str | Sequence[int] = "",
        add_generation_prompt: bool | None = None,
    ) -> Grown:
        """Adds messages; one rendering.

        ``wrote``: if the first of ``messages`` is the model's own answer, the text or the ids of it that the engine
        already holds. Ids stay as they are if they say this message, and the template shows it, in whatever spelling.
        ``add_generation_prompt``: None adds it after a user's message or a result, as the model then answers. Raises
        the errors of `Chat.prepare`, and then nothing is added.

        >>> conversation = chat.conversation()
        >>> grown = conversation.append(*messages)
        >>> grown = conversation.append({"role": "assistant", "content": "Yes."}, wrote="Yes.")
        >>> grown.text, grown.rewritten
        ('<|im_end|>\\n', False)
        """
        return self._step([*self.messages, *map(own, messages)], wrote, add_generation_prompt)

    def hold(self, ids: Sequence[int]) -> None:
        """The engine holds these ids as the last prompt, in which earlier answers stand as they were sampled.

        A conversation that is begun anew from its messages goes on with them. Raises `RequestError` without a
        tokenizer.

        >>> conversation = chat.conversation(messages)
        >>> conversation.hold(conversation.ids)
        """
        tokenizer = self._request.chat.tokenizer
        if tokenizer is None:
            raise RequestError("expected a chat with a tokenizer (give load a tokenizer)")
        self.ids, self.text = [*ids], spelt(tokenizer, ids)

    def replace(
        self, messages: Iterable[Mapping[str, Any] | Message], *, add_generation_prompt: bool | None = None
    ) -> Grown:
        """Replaces all messages by these, such as an edited history.

        >>> conversation = chat.conversation()
        >>> grown = conversation.append(*messages)
        >>> conversation.replace([{"role": "user", "content": "Is it warm?"}]).rewritten
        True
        """
        while self._marks and self._marks[-1].place is None:  # an answer after which nothing stood
            self._marks.pop()
        self._wrote = ""
        return self._step(list(map(own, messages)), "", add_generation_prompt)

    def _step(
        self, messages: list[Mapping[str, Any]], wrote: str | Sequence[int], generate: bool | None
    ) -> Grown:
        if generate is None:
            generate = bool(messages) and messages[-1].get("role") in ("user", "tool")
        messages = list(self._request.read(messages))
        self._history[:] = messages
        asked = self._request.but(
            add_generation_prompt=self._request.options.get("add_generation_prompt", generate),
            id_seed=self._seed,
        )
        turn = asked.prepare(self._history)
        tokenizer = asked.chat.tokenizer
        spoken = wrote if isinstance(wrote, str) else spelt(tokenizer, wrote)
        held = self.text + spoken
        if tokenizer is None:
            text, self.ids = turn.prompt, []
            kept = common(held, text)
            grown = Grown(text[kept:], kept, kept < len(held))
        else:
            had = [*self.ids, *(encoded(tokenizer, wrote, "")[0] if isinstance(wrote, str) else wrote)]
            if wrote and not isinstance(wrote, str):
                self._sampled(wrote, spoken, messages, len(held), len(had))
            if self._wrote and len(messages) == self._marks[-1].index + 1:  # nothing comes after it yet
                text, self.ids = held, had
            else:
                text, self.ids = self._grown(asked, turn, messages, held, had)
            kept, kept_ids = common(held, text), common_ids(had, self.ids)
            grown = Grown(text[kept:], kept, kept_ids < len(had), self.ids[kept_ids:], kept_ids)
        self.messages, self.text = messages, text
        self.turn = turn if text == turn.prompt else turn._replace(prompt=text)
        return grown

    def _sampled(
        self,
        wrote: Sequence[int],
        text: str,
        messages: Sequence[Mapping[str, Any]],
        chars: int,
        tokens: int,
    ) -> None:
        """Takes an answer's ids."""
        index = len(self.messages)
        tokenizer = self._request.chat.tokenizer
        segment = None
        if self.turn is not None and not self._wrote and index < len(messages):
            said = Completion(Spoken(self.turn).heard(Chunk.of(wrote, None, None, None), None), index)
            if not said.spoken.dropped and same_message(said.spoken.message.to_openai(), messages[index]):
                segment = self._asked(self.turn).added(said)
        after = GrowingIds(tokenizer, spelt(tokenizer, wrote[-1:]).strip())
        self._marks.append(_Mark(after, index, chars, tokens, segment))
        self._wrote += text

    def _asked(self, turn: Turn) -> Segment:
        """What was given and sampled up to the next answer."""
        last = self._marks[-1]
        text = self._rendered if last.segment is None else self._rendered[last.stop :]
        lead = lead_of(self._request.around(turn.polyfills), turn, self.messages, text)
        if last.segment is None:
            return Segment((), lead)
        return last.segment.added(Given((), text, (), lead=lead))

    def _grown(
        self,
        asked: Request,
        turn: Turn,
        messages: Sequence[Mapping[str, Any]],
        held: str,
        had: list[int],
    ) -> tuple[str, list[int]]:
        """The text and the ids of the new prompt: what is held fast, and the rest of the rendering."""
        rendered = turn.prompt
        same = common(self._rendered, rendered)
        pairs = enumerate(zip(self.messages, messages, strict=False))
        edited = (place for place, (old, new) in pairs if old is not new and old != new)
        stand = next(edited, len(messages))
        self._marks = [mark for mark in self._marks if mark.index < stand]
        for mark in self._marks:
            if mark.place is not None and mark.place > same:
                mark.place = None
        mark = self._marks[-1]
        spoken = None if mark.segment is None else mark.segment.last.spoken
        whole = self._rendered + self._wrote
        if self._wrote and (spoken is None or spoken.stop) and rendered.startswith(whole):
            stop = "" if spoken is None else spoken.stop_text(asked.chat.tokenizer)
            mark.place, mark.stop = len(whole), len(whole) - len(stop)
        while (place := self._marks[-1].place) is None:
            del self._marks[self._found(asked, self._marks[-1], turn, messages) :]
        self._rendered, self._wrote = rendered, ""
        mark, rest = self._marks[-1], rendered[place:]
        quoted = asked.quoted(messages, id_seed=turn.id_seed)
        after = [(start - place, end - place) for start, end in quoted if start >= place]
        ids = had[: mark.tokens] + encoded(asked.chat.tokenizer, mark.closer, "")[0]
        ids += mark.rest.update(rest, common(mark.rest.text, rest), after)
        return held[: mark.chars] + mark.closer + rest, ids

    def _found(self, asked: Request, mark: _Mark, turn: Turn, messages: Sequence[Mapping[str, Any]]) -> int:
        """Finds the place of the last mark; how many marks stay."""
        if mark.segment is None:
            return len(self._marks) - 1
        verdict = compare(mark.segment, asked.traced(messages, id_seed=turn.id_seed), None, messages)
        if verdict.reason is not None or verdict.delta is None:
            return sum(other.index < verdict.message for other in self._marks[:-1])
        mark.closer, rest, *_ = following(mark.segment.last.spoken, verdict.delta)
        mark.place = len(turn.prompt) - len(rest)
        mark.stop = len(turn.prompt) - len(verdict.delta.text)
        return len(self._marks)
