"""How requests become prompts of one model: its template, its tokenizer, its engine."""

from __future__ import annotations

from collections.abc import Sequence

from ..answers.format import Turn
from ..chat.chat import Chat
from ..grammar import Grammar
from ..kept import cached
from ..serving import Request
from .account import Account
from .digest import digest
from .encode import Encoder
from .engine import Engine
from .going_on import going_on, resumed
from .pictures import Picture, as_text, pictures
from .same_ids import known_ids, telling_text
from .settings import Settings
from .store import ResponseIds


class Prompting:
    """Makes the prompts of a model."""

    def __init__(self, chat: Chat, engine: Engine, settings: Settings) -> None:
        self._chat = chat
        self._engine = engine
        self._settings = settings

    @cached
    def _encoder(self) -> Encoder:
        return Encoder(self._chat.tokenizer)

    @cached
    def _tells(self) -> str:
        """What tells the ids of this tokenizer from those of others."""
        if self._chat.tokenizer is None:
            return ""
        return str(self._chat.tokenizer.encode(telling_text(self._chat), add_special_tokens=False).ids)

    def digest(self, prompt: str) -> str:
        """By what the ids of a prompt are known again: another model with this text has other ids."""
        return digest(f"{self._tells}\n{prompt}")

    @property
    def takes_images(self) -> bool:
        """Whether the engine takes images, and the template has a place for them."""
        if not self._engine.images:
            return False
        template = self._chat.template()
        return template.shows_part("image_url") or template.shows_part("image")

    @property
    def by_ids(self) -> bool:
        """Whether the engine gets the ids of prompts."""
        return (
            self._engine.takes_ids
            and self._chat.tokenizer is not None
            and (self._settings.trust_ids or known_ids(self._chat))
        )

    def turn(self, request: Request, account: Account) -> Turn:
        """The turn of a request."""
        turn = self._chat.prepare(**request.prepare, lenient_calls=self._settings.lenient_calls)
        account.prompt(len(turn.prompt))
        return turn

    def resumed(self, request: Request, held: ResponseIds) -> Turn | None:
        """The turn that goes on with the last answer by the ids that are held of it, if it is to."""
        if not request.continue_final_message:
            return None
        return resumed(self._chat, request, held, self.digest, lenient_calls=self._settings.lenient_calls)

    def prompt(
        self, request: Request, turn: Turn, held: ResponseIds | None
    ) -> tuple[str | list[int], Sequence[Picture]]:
        """The prompt as the engine gets it, and the images in it. ``held``: the ids of the answer before."""
        placed = pictures(self._chat, request) if request.images else ()
        if self.by_ids and (not placed or self._engine.images_by_ids):
            lenient, going = self._settings.lenient_calls, None
            if held is not None:
                going = going_on(self._chat, request, held, self.digest, lenient_calls=lenient)
            return self.encoded(request, turn) if going is None else going, placed
        if placed:
            return as_text(turn.prompt, placed, self._chat.quoted(**request.prepare))
        # A server writes the first token before a text itself.
        return turn.prompt.removeprefix(self._chat.files.bos_token or ""), ()

    def count(self, request: Request, turn: Turn, prompt: str | list[int]) -> int | None:
        """How many tokens a prompt has, if they have to be compared with the engine's context."""
        if isinstance(prompt, list):
            return len(prompt)
        if self._engine.context is None or self._chat.tokenizer is None:
            return None
        return len(self.encoded(request, turn))

    def encoded(self, request: Request, turn: Turn) -> list[int]:
        """The ids of the prompt. Words that spell a special token are text: a client's, a tool's, an old answer's."""
        return self._encoder.encode(turn.prompt, self._chat.quoted(**request.prepare))

    def grammar(self, turn: Turn, thinking_tokens: int | None = None) -> Grammar | None:
        """The grammar that the engine gets. ``thinking_tokens``: as in `Engine.grammar`."""
        return self._engine.grammar(turn, thinking_tokens=thinking_tokens) if self._settings.grammar else None
