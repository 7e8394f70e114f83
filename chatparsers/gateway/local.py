"""llama-cpp-python in this process: one model, and one request at a time. The others wait in the order of their coming.

The model runs in a thread, token by token, so that the other tasks go on. It needs ``llama-cpp-python``.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Iterator, Sequence
from functools import partial
from os import PathLike
from types import MappingProxyType
from typing import Any, ClassVar

import anyio
import anyio.to_thread
from llama_cpp import Llama

from ..adapters.llama_cpp import generate, logprobs_of, to_llama_grammar
from ..answers.format import Dialect
from ..chat.chat import Chat
from ..tokens import Vocabulary
from .account import Account
from .engine import Batch, End, Engine, EngineError, Job
from .probable import Pieces, triples

_NAMES = {"temperature": "temp", "repetition_penalty": "repeat_penalty"}


class _Counting(Llama):  # type: ignore[misc]
    """A model that counts the tokens it reads: of a prompt, those that it has not kept from the one before. What it
    keeps depends on the model too: a recurrent one cannot go back to a shorter text."""

    read = 0

    def eval(self, tokens: Sequence[int]) -> None:
        self.read += len(tokens)
        super().eval(tokens)


class Local(Engine):
    """A GGUF file that llama-cpp-python runs. ``context``: how many tokens prompt and answer may have together.
    ``gpu_layers``: how many layers run on the GPU; -1: all. ``threads``: how many run on the CPU; None: half as many as
    it has processors. ``options``: more options of ``llama_cpp.Llama``."""

    dialect: ClassVar[Dialect | None] = "gbnf"
    logprobs: ClassVar[bool] = True
    _pieces: Pieces = MappingProxyType({})

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        context: int = 8192,
        gpu_layers: int = -1,
        threads: int | None = None,
        **options: Any,
    ) -> None:
        # llama.cpp's threads wait for one another, spinning: one that the system puts aside stops all of them. So some
        # processors are left to others, for prompts too, for which the host would take all.
        threads = threads or max(_processors() // 2, 1)
        options = {"n_threads": threads, "n_threads_batch": threads, **options}
        try:
            self._llama = _Counting(
                str(path), n_ctx=context, n_gpu_layers=gpu_layers, verbose=False, **options
            )
        except (ValueError, OSError) as error:
            raise EngineError(f"{path}: llama.cpp cannot load it: {error}") from error
        self._queue = anyio.Semaphore(1)
        self._thread = anyio.CapacityLimiter(1)
        self.ids = True
        self.context = self._llama.n_ctx()

    async def start(self, chat: Chat) -> list[str]:
        if chat.tokenizer is None:
            raise EngineError("the model's file has no tokenizer that can be read: name its tokenizer.json")
        self._pieces = Vocabulary.of(chat.tokenizer).pieces
        return []

    async def tokenize(self, text: str) -> list[int]:
        return self._encoded(text, adds_bos=False)

    def _encoded(self, text: str, *, adds_bos: bool) -> list[int]:
        ids: list[int] = self._llama.tokenize(text.encode(), add_bos=adds_bos, special=True)
        return ids

    async def close(self) -> None:
        async with self._queue:
            self._llama.close()

    async def generate(self, job: Job) -> AsyncGenerator[Batch, None]:
        prompt = job.prompt if isinstance(job.prompt, list) else self._encoded(job.prompt, adds_bos=True)
        most = Account.room(len(prompt), job.max_tokens, self._llama.n_ctx(), "messages")
        assert most is not None
        sampling = dict(job.sampling)
        seed = sampling.pop("seed", None)
        named = {_NAMES.get(name, name): value for name, value in sampling.items()}
        ends = frozenset(job.turn.stop_ids)
        count = 0
        cached: int | None = None
        async with self._queue:
            if seed is not None:
                self._llama.set_seed(seed)
            self._llama.read = 0
            grammar = to_llama_grammar(job.grammar)
            ids = generate(self._llama, job.turn, prompt=prompt, grammar=grammar, **named)
            take = partial(self._next, ids, job.logprobs)
            while count < most:
                batch = await anyio.to_thread.run_sync(take, limiter=self._thread)
                if cached is None:
                    cached = len(prompt) - self._llama.read
                    batch.end = End(None, cached=cached)  # it may be stopped before its end
                count += len(batch.ids or ())  # with the token that ends the turn, as servers count
                if not batch.ids or batch.ids[0] in ends:
                    batch.end = End("stop", len(prompt), count, cached)
                    yield batch
                    return
                yield batch
        yield Batch(end=End("length", len(prompt), count, cached))

    def _next(self, ids: Iterator[int], logprobs: int | None) -> Batch:
        """The next id; none at the end. ``logprobs``: how many of the likeliest it is told with; None: nothing is."""
        id = next(ids, None)
        if id is None or logprobs is None:
            return Batch(ids=[] if id is None else [id])
        said = logprobs_of(self._llama, id, logprobs)
        (told,) = triples(said[:1], [said[1:]], self._pieces, 1)
        return Batch(ids=[id], logprobs=[(0, told)])


def _processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
