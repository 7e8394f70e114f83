"""What the gateway asks of an engine: to complete a prompt, token by token."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

from ..answers.format import Dialect, GrammarReader, Turn
from ..chat.chat import Chat
from ..grammar import Grammar, write
from ..grammar.target import target_of
from ..serving import ApiError
from ..serving.logprobs import TokenLogprob
from ..streams.message import FinishReason
from .account import MAX_SIZE, MAX_WORK
from .pictures import Picture

Placed: TypeAlias = tuple[int, TokenLogprob]
"""A token with its place in a batch: among its ids, or in its text if the stream is fed text."""


class EngineError(ApiError):
    """The engine failed, or cannot be reached. ``where``: its address, for whoever runs the gateway; clients do not
    read it."""

    def __init__(
        self, message: str, *, status: int = 502, code: str = "engine_error", where: str | None = None
    ) -> None:
        super().__init__(message, status=status, code=code)
        self.where = where


@dataclass(frozen=True, slots=True)
class Job:
    """What the engine is to complete.

    ``prompt``: the ids of the prompt, or its text if the chat has no tokenizer. ``grammar``: None if nothing is
    constrained. ``sampling`` has the names of `chatparsers.serving.Request`.
    ``headers`` go with the request: its id, and the trace that it belongs to. ``logprobs``: how many of the likeliest
    tokens are asked for at each place; None: no log probabilities. ``pictures``: the images of the
    prompt, in their order there. ``thinking_tokens``: how many tokens thoughts may take; None: any number.
    ``close_loops``: whether a thought that repeats is closed. `chatparsers.gateway.budget` keeps to both. ``known``:
    how many ids of the prompt are those of one before, as far as is known.
    """

    turn: Turn
    prompt: str | list[int]
    grammar: Grammar | None = None
    max_tokens: int | None = None
    sampling: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    logprobs: int | None = None
    pictures: Sequence[Picture] = ()
    thinking_tokens: int | None = None
    close_loops: bool = False
    known: int = 0


@dataclass(frozen=True, slots=True)
class End:
    """How a completion ended. ``reason`` is None in an event that has only counts. The counts are the engine's, None if
    it gives none; ``cached`` is how many tokens of the prompt it had already. ``versions``: how many ids in turn were
    sampled by which version of the weights, if it says so."""

    reason: FinishReason | None = "stop"
    prompt: int | None = None
    completion: int | None = None
    cached: int | None = None
    versions: tuple[tuple[int, int], ...] = ()

    def then(self, later: End) -> End:
        """Both as one: the reason may come before the counts."""
        return End(
            later.reason if self.reason is None else self.reason,
            self.prompt if later.prompt is None else later.prompt,
            self.completion if later.completion is None else later.completion,
            self.cached if later.cached is None else later.cached,
            later.versions or self.versions,
        )


@dataclass(slots=True)
class Batch:
    """What has arrived at once: more ids, or more text, and with the last batch the end. ``logprobs``: what the engine
    says of the tokens."""

    text: str = ""
    ids: list[int] | None = None
    end: End | None = None
    logprobs: list[Placed] | None = None


def joined(batches: Sequence[Batch]) -> Batch:
    """What arrived at once, as one batch. Text that lacks its ids still lacks them, so that it is seen."""
    if len(batches) == 1:
        return batches[0]
    texts: list[str] = []
    ids: list[int] | None = None
    end: End | None = None
    logprobs: list[Placed] = []
    characters = lacking = 0
    for batch in batches:
        if batch.logprobs is not None:
            before = characters if batch.ids is None else len(ids or ())
            logprobs += [(before + place, one) for place, one in batch.logprobs]
        if batch.ids is not None:
            ids = [] if ids is None else ids
            ids += batch.ids
        elif batch.text:
            lacking += 1
        if batch.text:
            texts.append(batch.text)
            characters += len(batch.text)
        if batch.end is not None:
            end = batch.end if end is None else end.then(batch.end)
    return Batch("".join(texts), None if lacking else ids, end, logprobs or None)


class Engine(ABC):
    """An engine that completes prompts."""

    dialect: ClassVar[Dialect | None] = None
    """The dialect of grammars that it takes; None if it takes none."""
    reader: ClassVar[GrammarReader] = "llama.cpp"
    """Who reads its GBNF."""
    takes_ids: ClassVar[bool] = True
    """Whether a prompt may be ids."""
    fields: ClassVar[frozenset[str]] = frozenset()
    """Which of `Request.engine_fields` it takes."""
    sampling: ClassVar[frozenset[str] | None] = None
    """The sampler's fields that it takes, under the names of `chatparsers.serving.Request`; None: all."""
    logprobs: ClassVar[bool] = False
    """Whether it can be asked for log probabilities."""
    images = False
    """Whether it takes images. `start` finds out."""
    images_by_ids: ClassVar[bool] = False
    """Whether the prompt may be ids where there are images."""
    context: int | None = None
    """How many tokens prompt and answer may have together; None: unknown. `start` finds out."""
    ids = False
    """Whether it gives ids, and the stream is fed with them. `start` finds out."""

    @property
    def name(self) -> str:
        """What it is called in the log: where it listens; "" in this process."""
        return ""

    def chosen(self, session: str) -> Engine:
        """The engine that answers a request of a session: of several of one model, the one that has its prompts."""
        return self

    @property
    def counts(self) -> bool:
        """Whether its grammars count the tokens of a thought."""
        return self.dialect is not None and target_of(self.dialect, self.reader).tokens

    @abstractmethod
    async def start(self, chat: Chat) -> list[str]:
        """Finds out what the engine can do for this chat. Returns warnings for whoever runs the gateway.

        Raises `EngineError` if the engine cannot be reached or drops control tokens.
        """

    @abstractmethod
    def generate(self, job: Job) -> AsyncGenerator[Batch, None]:
        """Completes the job's prompt. The last batch has the end. Closing the generator stops the engine.

        Raises `EngineError`.
        """

    def grammar(
        self,
        turn: Turn,
        *,
        spent: bool = False,
        anew: bool = True,
        thinking_tokens: int | None = None,
        max_size: int = MAX_SIZE,
        max_work: int = MAX_WORK,
    ) -> Grammar | None:
        """The grammar of a turn for this engine. ``spent``: no thought may begin any more; None if none may anyway.
        ``anew``, ``thinking_tokens``, ``max_size``, ``max_work``: as in `chatparsers.grammar.write`; the limits are
        those of strangers' requests."""
        if self.dialect is None:
            return None
        return write(
            turn,
            self.dialect,
            engine=self.reader,
            # Text is read by text, so the grammar must write text.
            token_references=None if self.ids else False,
            thinking_tokens=thinking_tokens,
            max_size=max_size,
            max_work=max_work,
            spent=spent,
            anew=anew,
        )

    async def tokenize(self, text: str) -> list[int] | None:
        """The engine's own ids of a text, without a token before or after it; None if it cannot be asked.

        Raises `EngineError`.
        """
        return None

    async def ready(self) -> bool:
        """Whether the engine answers now."""
        return True

    async def close(self) -> None:  # noqa: B027  # an engine may hold nothing
        """Frees what the engine holds."""


def marker_texts(chat: Chat) -> list[str]:
    """The markers of the chat's format that are tokens of their own, and do not end a turn."""
    turn = chat.bind(tools=[{"name": "any"}])
    return [text for text in turn.preserved_tokens if text not in turn.stops]


def control_markers(chat: Chat) -> dict[str, int]:
    """The markers of the chat's format that are one token each, and do not end a turn, with their ids; at most four.

    Control tokens come first: they are those that a server may drop.
    """
    turn = chat.bind(tools=[{"name": "any"}])
    ends = {*turn.stop_ids, *(turn.marker_ids.get(stop, -1) for stop in turn.stops)}
    ids = {
        text: id for text, id in turn.marker_ids.items() if id not in ends and text in turn.preserved_tokens
    }
    if not ids or chat.tokenizer is None:
        return {}
    added = chat.tokenizer.get_added_tokens_decoder()
    ranked = sorted(ids.items(), key=lambda item: not getattr(added.get(item[1]), "special", False))
    return dict(ranked[:4])
