"""How each kind of engine generates an answer.

| engine | how |
|---|---|
| a function of a turn | it gives the answer's pieces: texts, ids, or lists of ids |
| ``llama_cpp.Llama`` | in this process, by ids, under the turn's grammar |
| a model of transformers | the same |
| an engine of `chatparsers.gateway`, or the URL of a server | over HTTP, as the gateway asks it |
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ..chat.chat import Chat
from ..errors import RequestError
from ..lazy import load_reference
from ..serving import WholeCalls
from ..streams.events import Content
from ..tokens.growing import GrowingIds
from .loops import Answer, Generation


@dataclass(frozen=True, slots=True)
class Limits:
    """``tokens``: how many an answer may have. ``sampling``: options for the sampler, under OpenAI's names."""

    tokens: int
    sampling: Mapping[str, Any]


def generate(chat: Chat, engine: Any, asked: Generation, limits: Limits) -> Answer:
    """The answer of an engine."""
    if _is_remote(engine):
        return asyncio.run_coroutine_threadsafe(_remote(chat, engine, asked, limits), _loop()).result()
    return _local(engine)(chat, engine, asked, limits)


async def generate_later(chat: Chat, engine: Any, asked: Generation, limits: Limits) -> Answer:
    """The same, while other tasks go on."""
    if _is_remote(engine):
        future = asyncio.run_coroutine_threadsafe(_remote(chat, engine, asked, limits), _loop())
        return await asyncio.wrap_future(future)
    return await asyncio.to_thread(_local(engine), chat, engine, asked, limits)


def _local(engine: Any) -> Callable[[Chat, Any, Generation, Limits], Answer]:
    """How an engine in this process generates. It is known by the package of its class, which need not be there."""
    packages = {one.__module__.partition(".")[0] for one in type(engine).__mro__}
    if "llama_cpp" in packages:
        return _llama
    if "transformers" in packages and hasattr(engine, "generate"):
        return _transformers
    if callable(engine):
        return _function
    raise RequestError(
        "engine: expected a llama_cpp.Llama, a model of transformers, an engine of chatparsers.gateway, the URL of a "
        f"server, or a function of a turn, found {type(engine).__name__}"
    )


def _function(chat: Chat, engine: Any, asked: Generation, limits: Limits) -> Answer:
    answer = _Answer(asked)
    for piece in engine(asked.turn):
        if answer.feed(piece):
            break
    return answer.finished(cut=False)


def _llama(chat: Chat, engine: Any, asked: Generation, limits: Limits) -> Answer:
    names = {"temperature": "temp", "repetition_penalty": "repeat_penalty"}
    sampling = {names.get(name, name): value for name, value in limits.sampling.items()}
    seed = sampling.pop("seed", None)
    if seed is not None:
        engine.set_seed(seed)
    generating = load_reference("chatparsers.adapters.llama_cpp:generate")
    ids = generating(engine, asked.turn, prompt=_quoted_ids(chat, asked), **sampling)
    return _limited(asked, ids, limits.tokens)


def _transformers(chat: Chat, engine: Any, asked: Generation, limits: Limits) -> Answer:
    tensor = load_reference("torch:tensor")
    streamer = load_reference("chatparsers.adapters.transformers:TurnStreamer")(asked.turn)
    ids = asked.turn.prompt_ids
    prompt = tensor([ids], device=engine.device)
    sampling = dict(limits.sampling)
    if "temperature" in sampling:
        sampling["do_sample"] = sampling["temperature"] > 0
        if not sampling["do_sample"]:
            del sampling["temperature"]
    options = {"max_new_tokens": limits.tokens, **sampling, **streamer.options()}
    written = engine.generate(input_ids=prompt, attention_mask=prompt * 0 + 1, **options)
    return _limited(asked, written[0, len(ids) :].tolist(), limits.tokens)


def _limited(asked: Generation, ids: Iterable[int], most: int) -> Answer:
    """The answer of ids, of which there may be no end."""
    answer, ends = _Answer(asked), frozenset(asked.turn.stop_ids)
    for count, id in enumerate(ids, 1):
        over = answer.feed([id])
        if id in ends or over:
            return answer.finished(cut=False)
        if count >= most:
            return answer.finished(cut=True)
    return answer.finished(cut=False)


def _quoted_ids(chat: Chat, asked: Generation) -> list[int] | None:
    """The ids of a prompt in which words spell special tokens; None if none do, and the host may encode it."""
    quoted = asked.quoted()
    if not quoted or chat.tokenizer is None:
        return None
    return GrowingIds(chat.tokenizer).update(asked.turn.prompt, 0, quoted)


class _Answer:
    """An answer while it is read."""

    def __init__(self, asked: Generation) -> None:
        self._turn = asked.turn
        self._stream = asked.turn.stream()
        self._calls = WholeCalls(self._stream.call_text)
        self._content: list[str] = []

    def feed(self, piece: Any) -> bool:
        """Reads a piece. Whether the turn has ended."""
        self._take(self._stream.feed(piece))
        return self._stream.ended

    def finished(self, cut: bool) -> Answer:
        """The whole answer. ``cut``: it reached its limit."""
        self._take(self._stream.finish("length" if cut else "stop"), cut)
        message = self._stream.message
        message._turn = self._turn
        return Answer(message, "".join(self._content), cut)

    def _take(self, events: Iterable[Any], cut: bool = False) -> None:
        for event in self._calls.take(events, cut):
            if isinstance(event, Content):
                self._content.append(event.text)


# engines over HTTP


def _is_remote(engine: Any) -> bool:
    if isinstance(engine, str):
        return True
    return any(one.__module__ == "chatparsers.gateway.engine" for one in type(engine).__mro__)


async def _remote(chat: Chat, engine: Any, asked: Generation, limits: Limits) -> Answer:
    answer = _Answer(asked)
    generating = load_reference("chatparsers.gateway.direct:generate")
    cut = await generating(
        chat, engine, asked.turn, asked.quoted, limits.tokens, limits.sampling, answer.feed
    )
    return answer.finished(cut)


@lru_cache(maxsize=1)
def _loop() -> asyncio.AbstractEventLoop:
    """The loop, in a thread of its own, in which all connections to engines are."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True, name="chatparsers engines").start()
    return loop
