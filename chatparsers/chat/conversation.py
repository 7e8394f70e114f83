"""A conversation that grows: each step gives the new text, and says how much of the old is still valid.

Each step renders the whole conversation once: no template can be trusted to render a single message. The new text is
found by comparing with what the engine already has. So a caller keeps its KV cache as far as the template allows. Most
templates only add text; some rewrite (they drop reasoning of earlier turns, or move the system text).

Strategy. An answer that is given as ids stays as it was sampled, by the mechanism of `Rollout`: it is read by ids, what
was held is compared with the new rendering, answers as messages (`compare`), and only the text behind it is encoded
(`following`). From there on it is held fast, as long as the renderings begin alike up to that place.

Invariant: what is held ends where its place in the last rendering is, and the ids behind it spell the rest of that
rendering. The lowest is empty and never goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core.message import Message
from ..core.public import made_by, public
from ..templates.messages import own
from ..templates.probe.turns import common
from ..templates.rewrite.history import History
from ..tokens.growing import GrowingIds, common_ids
from ..tokens.pieces import encoded
from .bridge import generated, with_prompt
from .compare import compare, same_message
from .ends import following
from .parts import Said
from .request import Model, Request
from .segment import Segment
from .spoken import Chunk, Spoken, spelt

if TYPE_CHECKING:
    from ..core.format import Turn
    from .options import PrepareOptions

__all__ = ["Conversation", "Grown"]


@public
@dataclass(frozen=True, slots=True)
class Grown:
    """What a step added.

    ``text``: the new text. ``kept``: how many leading characters of the engine's text are still valid. ``rewritten``:
    True if that is not all of them: of its ids, if there is a tokenizer. ``ids`` and ``kept_ids``: the same in tokens,
    None without a tokenizer.
    """

    text: str
    kept: int
    rewritten: bool
    ids: list[int] | None = None
    kept_ids: int | None = None


class _Held(NamedTuple):
    """What stays as it was given and sampled. ``place``: where it ends in the rendering. ``behind``: the ids of what
    follows."""

    place: int
    text: str
    ids: list[int]
    behind: GrowingIds


@public
class Conversation:
    """Messages and their rendering. Made by `Chat.conversation`.

    ``messages``: copies of the messages; change them with `replace`. ``text``, ``ids``: the last prompt; answers that
    were given as ids stand in it as they were sampled. ``turn``: the turn of the last step.
    """

    def __init__(self) -> None:
        made_by("a conversation", "Chat.conversation()")

    @classmethod
    def _made(cls, chat: Model, options: PrepareOptions) -> Conversation:
        conversation: Conversation = object.__new__(cls)
        conversation._open(chat, options)
        return conversation

    def _open(self, chat: Model, options: PrepareOptions) -> None:
        self._request = Request(chat, options)
        self._seed = options.get("id_seed")
        self._history = History()
        self._rendered = ""
        self._answer: Segment | None = None
        """An answer that was given as ids, while nothing stands behind it."""
        self._held = [] if chat.tokenizer is None else [_Held(0, "", [], GrowingIds(chat.tokenizer))]
        self.messages: list[Mapping[str, Any]] = []
        self.text = ""
        self.ids: list[int] = []
        self.turn: Turn | None = None

    def __repr__(self) -> str:
        size = f"{len(self.ids):,} ids" if self._held else f"{len(self.text):,} characters"
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
        """
        return self._step([*self.messages, *map(own, messages)], wrote, add_generation_prompt)

    def replace(
        self, messages: Iterable[Mapping[str, Any] | Message], *, add_generation_prompt: bool | None = None
    ) -> Grown:
        """Replaces all messages by these, such as an edited history."""
        self._answer = None
        return self._step(list(map(own, messages)), "", add_generation_prompt)

    def _step(
        self, messages: list[Mapping[str, Any]], wrote: str | Sequence[int], generate: bool | None
    ) -> Grown:
        if generate is None:
            generate = bool(messages) and messages[-1].get("role") in ("user", "tool")
        self._history[:] = messages
        generate = bool(self._request.options.get("add_generation_prompt", generate))
        turn = self._request.prepare(self._history, add_generation_prompt=generate, id_seed=self._seed)
        tokenizer = self._request.chat.tokenizer
        if isinstance(wrote, str):
            held, had = (
                self.text + wrote,
                [*self.ids, *(encoded(tokenizer, wrote, "")[0] if wrote and tokenizer else ())],
            )
        else:
            held, had = self.text + spelt(tokenizer, wrote), [*self.ids, *wrote]
            self._answer = self._sampled(wrote, messages)
        if tokenizer is None:
            text, ids = turn.prompt, None
        elif self._answer is not None and len(messages) == self._answer.last.index + 1:
            text, ids = held, had
        else:
            text, ids = self._grown(turn, messages, held, had)
        kept = common(held, text)
        if ids is None:
            grown = Grown(text[kept:], kept, kept < len(held))
        else:
            kept_ids = common_ids(had, ids)
            grown = Grown(text[kept:], kept, kept_ids < len(had), ids[kept_ids:], kept_ids)
        self.messages, self.text, self.ids = messages, text, ids or []
        self.turn = turn if text == turn.prompt else with_prompt(turn, text)
        return grown

    def _sampled(self, wrote: Sequence[int], messages: Sequence[Mapping[str, Any]]) -> Segment | None:
        """What was asked, and the answer to it; None if the ids are not the message."""
        index = len(self.messages)
        if self.turn is None or not wrote or index == len(messages):
            return None
        spoken = Spoken(self.turn).heard(Chunk.of(wrote, None, None, None), None)
        if spoken.dropped or not same_message(spoken.message, messages[index]):
            return None
        asked = generated(self._request, self.turn, self.messages)
        return Segment((), self._rendered, asked, self.turn.prefix, (Said(spoken, index),))

    def _grown(
        self, turn: Turn, messages: Sequence[Mapping[str, Any]], held: str, had: list[int]
    ) -> tuple[str, list[int]]:
        """The text and the ids of the new prompt: what is held fast, and the rest of the rendering."""
        tokenizer = self._request.chat.tokenizer
        rendered = turn.prompt
        same = common(self._rendered, rendered)
        while self._held[-1].place > same:
            self._held.pop()
        if self._answer is not None:
            verdict = compare(self._request, self._answer, turn, None, messages)
            if verdict.reason is None and verdict.delta is not None:
                closer, text, _, stop, _ = following(self._request, self._answer.last.spoken, verdict.delta)
                fixed = had + encoded(tokenizer, closer, "")[0]
                behind = GrowingIds(tokenizer, stop.strip())
                self._held.append(_Held(len(rendered) - len(text), held + closer, fixed, behind))
        self._rendered, self._answer = rendered, None
        place, text, ids, behind = self._held[-1]
        rest = rendered[place:]
        return text + rest, ids + behind.update(rest, common(behind.text, rest))
