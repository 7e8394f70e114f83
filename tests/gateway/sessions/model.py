"""A small random model that is made to say what a test scripts, with the log probability of each id in its context."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "chat"))

from making import bytewise
from played import wire_of

import chatparsers
from chatparsers.chat.chat import Chat
from chatparsers.gateway import Batch, End, Engine, Job

Script = Callable[[Job], tuple[Mapping[str, Any], str]]
"""What the model says to a prompt, and how it ends."""
_WIDTH = 12
_MOST = 1021
"""How many words the network tells apart: a softmax over a real vocabulary takes milliseconds."""


class Recurrent:
    """A recurrent network with random weights: what it says of an id depends on each id before it, and their order."""

    def __init__(self, vocabulary: int, seed: int = 7) -> None:
        random = np.random.default_rng(seed)
        vocabulary = self._size = min(vocabulary, _MOST)
        self._words = random.normal(size=(vocabulary, _WIDTH))
        self._step = random.normal(size=(_WIDTH, _WIDTH)) * 1.5 / _WIDTH**0.5
        self._out = random.normal(size=(_WIDTH, vocabulary))

    def logprobs(self, ids: Sequence[int], wanted: Sequence[int]) -> list[float]:
        """Of the wanted places, each id's after all ids before it; that of the first id is 0."""
        state, found, places = np.zeros(_WIDTH), dict[int, float](), frozenset(wanted)
        for place, (before, id) in enumerate(pairwise([id % self._size for id in ids]), 1):
            state = np.tanh(state @ self._step + self._words[before])
            if place in places:
                scores = state @ self._out
                found[place] = float(scores[id] - np.log(np.exp(scores).sum()))
        return [found.get(place, 0.0) for place in wanted]


class Model(Engine):
    """An engine in this process. ``script`` says what it writes; it splits words oddly and dumps arguments without
    spaces, as models do. ``asked``: the prompts that it got. ``pause``: seconds between its batches."""

    logprobs = True

    def __init__(self, chat: Chat, script: Script, *, odd: bool = True, pause: float = 0.0) -> None:
        self.chat, self.script, self.pause = chat, script, pause
        tokenizer: Any = chat.tokenizer
        self.tokenizer = tokenizer
        self.network = Recurrent(self.tokenizer.get_vocab_size())
        self.ids = True
        self.asked: list[list[int]] = []
        self.sampled = 0
        self.spoils: Callable[[Batch], Batch] = lambda batch: batch
        self._odd, self._random = odd, Random(5)

    async def start(self, chat: Chat) -> list[str]:
        return []

    async def tokenize(self, text: str) -> list[int]:
        found: list[int] = self.tokenizer.encode(text, add_special_tokens=False).ids
        return found

    def write(self, job: Job) -> tuple[list[int], str]:
        message, finish = self.script(job)
        stop = self.chat.format.stops[0]
        text = wire_of(job.turn, message, stop, compact=False)
        assert text is not None, (job.turn.format.name, message)
        shorter = text.replace('": "', '":"').replace('", "', '","')
        same = [
            [(c.name, json.loads(c.arguments)) for c in job.turn.parse(one).tool_calls]
            for one in (text, shorter)
        ]
        ids = self._split(shorter if same[0] == same[1] else text)
        if finish == "length":
            ids = ids[: max(2, len(ids) * 2 // 3)]
        return ids, finish

    def _split(self, text: str) -> list[int]:
        """Ids that spell the text, some of them otherwise than the tokenizer would."""
        encoded = self.tokenizer.encode(text, add_special_tokens=False)
        added = self.tokenizer.get_added_tokens_decoder()
        found: list[int] = []
        for id, (start, end) in zip(encoded.ids, encoded.offsets, strict=True):
            piece = text[start:end]
            if (
                not self._odd
                or id in added
                or len(piece) < 3
                or not piece.isascii()
                or self._random.random() < 0.6
            ):
                found.append(id)
                continue
            cut = self._random.randrange(1, len(piece))
            for part in (piece[:cut], piece[cut:]):
                found += self.tokenizer.encode(part, add_special_tokens=False).ids
        spelt = self.tokenizer.decode(found, skip_special_tokens=False)
        return found if spelt == text else list(encoded.ids)

    async def generate(self, job: Job) -> AsyncGenerator[Batch, None]:
        prompt = job.prompt
        assert isinstance(prompt, list)
        self.asked.append(prompt)
        ids, finish = self.write(job)
        self.sampled += len(ids)
        probs = self.network.logprobs([*prompt, *ids], range(len(prompt), len(prompt) + len(ids)))
        for start in range(0, len(ids), 3):
            some, values = ids[start : start + 3], probs[start : start + 3]
            placed = [
                (place, {"token": "", "logprob": value, "bytes": [], "top_logprobs": []})
                for place, value in enumerate(values)
            ]
            yield self.spoils(Batch(ids=some, logprobs=placed))  # type: ignore[arg-type]
            await asyncio.sleep(self.pause)
        yield Batch(end=End("length" if finish == "length" else "stop", len(prompt), len(ids)))


def chat_of(template: str = "qwen3", tokenizer: Any = None) -> Chat:
    """A chat with a token for each byte, and the format's markers."""
    bare = chatparsers.load(template=template)
    fmt = bare.syntax
    marks = {text.strip() for text in (*fmt.preserved_tokens, *fmt.stops)}
    return chatparsers.load(template=template, tokenizer=tokenizer or bytewise(*sorted(filter(None, marks))))
