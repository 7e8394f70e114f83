"""A conversation that grows: each step gives the new text, and says how much of the old text is still valid.

Each step renders the whole conversation once: no template can be trusted to render a single message. The new text is
found by comparing with the text that the engine already has. So a caller keeps its KV cache as far as the template
allows. Most templates only add text; some rewrite (they drop reasoning of earlier turns, or move the system text).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..core.message import Message
from ..core.public import made_by, public
from ..templates.messages import own
from ..templates.probe.turns import common
from ..templates.rewrite.history import History
from ..tokens.growing import GrowingIds, common_ids
from ..tokens.pieces import encode_behind

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


@public
class Conversation:
    """Messages and their rendering. Made by `Chat.conversation`.

    ``messages``: copies of the messages; change them with `replace`. ``text``, ``ids``: the last prompt. ``turn``: the
    turn of the last step.
    """

    def __init__(self) -> None:
        made_by("a conversation", "Chat.conversation()")

    @classmethod
    def _made(cls, prepare: Callable[..., Turn], tokenizer: Any, request: PrepareOptions) -> Conversation:
        conversation: Conversation = object.__new__(cls)
        conversation._open(prepare, tokenizer, request)
        return conversation

    def _open(self, prepare: Callable[..., Turn], tokenizer: Any, request: PrepareOptions) -> None:
        self._prepare = prepare
        self._tokenizer = tokenizer
        self._request = request
        self._growing = None if tokenizer is None else GrowingIds(tokenizer)
        self._exact: list[tuple[int, list[int]]] = []
        """Where sampled ids end: the length of the text up to there, and all ids up to there."""
        self._history = History()
        self.messages: list[Mapping[str, Any]] = []
        self.text = ""
        self.ids: list[int] = []
        self.turn: Turn | None = None

    def __repr__(self) -> str:
        size = f"{len(self.text):,} characters" if self._growing is None else f"{len(self.ids):,} ids"
        return f"<Conversation: {len(self.messages)} messages, {size}>"

    def append(
        self,
        *messages: Mapping[str, Any] | Message,
        wrote: str | Sequence[int] = "",
        add_generation_prompt: bool | None = None,
    ) -> Grown:
        """Adds messages; one rendering.

        ``wrote``: if the first of ``messages`` is the model's own answer, the text or the ids of it that the engine
        already holds. Ids stay as they are while the template leaves their text as it is; where it writes an answer in
        another way, `Chat.rollout` keeps them too. ``add_generation_prompt``: None adds it after a user's message or a
        result, as the model then answers. Raises the errors of `Chat.prepare`, and then nothing is added.
        """
        return self._step([*self.messages, *map(own, messages)], wrote, add_generation_prompt)

    def replace(
        self, messages: Iterable[Mapping[str, Any] | Message], *, add_generation_prompt: bool | None = None
    ) -> Grown:
        """Replaces all messages by these, such as an edited history."""
        return self._step(list(map(own, messages)), "", add_generation_prompt)

    def _step(
        self, messages: list[Mapping[str, Any]], wrote: str | Sequence[int], generate: bool | None
    ) -> Grown:
        if generate is None:
            generate = bool(messages) and messages[-1].get("role") in ("user", "tool")
        self._history[:] = messages
        turn = self._prepare(self._history, **{"add_generation_prompt": generate, **self._request})
        held = self.text + self._spelt(wrote)
        kept = common(held, turn.prompt)
        if self._growing is None:
            grown = Grown(turn.prompt[kept:], kept, kept < len(held))
        else:
            had = [*self.ids, *self._encoded(wrote)]
            while self._exact and kept < self._exact[-1][0]:
                self._exact.pop()
            if wrote and not isinstance(wrote, str) and kept == len(held):
                self._exact.append((kept, had))
            chars, fixed = self._exact[-1] if self._exact else (0, [])
            if fixed:  # what was sampled stays as it is; only the text behind it is encoded
                self.ids = fixed + encode_behind(self._tokenizer, turn.prompt[chars:])[0]
            else:
                # Compared with the last prompt and not with ``held``: the growing ids cover only the prompt.
                self.ids = list(self._growing.update(turn.prompt, common(self._growing.text, turn.prompt)))
            kept_ids = common_ids(had, self.ids)
            grown = Grown(turn.prompt[kept:], kept, kept_ids < len(had), self.ids[kept_ids:], kept_ids)
        self.messages, self.text, self.turn = messages, turn.prompt, turn
        return grown

    def _spelt(self, wrote: str | Sequence[int]) -> str:
        if isinstance(wrote, str):
            return wrote
        text: str = self._tokenizer.decode(list(wrote), skip_special_tokens=False)
        return text

    def _encoded(self, wrote: str | Sequence[int]) -> Sequence[int]:
        if not isinstance(wrote, str):
            return wrote
        ids: list[int] = self._tokenizer.encode(wrote, add_special_tokens=False).ids if wrote else []
        return ids
