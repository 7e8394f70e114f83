"""Servers with OpenAI's old completions endpoint: vLLM and SGLang with ids and structural tags, others by text."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from typing import Any, ClassVar

from ..answers.format import Dialect
from ..chat.chat import Chat
from ..tokens import Vocabulary
from .engine import Batch, End, EngineError, Job
from .generating import SGLANG_PATH, VLLM_PATH, sglang_body, sglang_reading, vllm_body, vllm_reading
from .http_engine import HttpEngine, Read, count_of, ids_of, text_of
from .probable import columns, placed

_LONG = 4096
"""The limit of an answer, if neither the request nor the engine gives one."""
_STANDARD = frozenset({"temperature", "top_p", "presence_penalty", "frequency_penalty", "seed"})


class OpenAICompletions(HttpEngine):
    """A server with ``/v1/completions`` of which nothing more is known: no ids and no grammar."""

    path: ClassVar[str] = "/v1/completions"
    alive: ClassVar[str] = "/v1/models"
    takes_ids: ClassVar[bool] = False
    sampling: ClassVar[frozenset[str] | None] = _STANDARD
    _pieces: Mapping[int, str | bytes] | None = None
    """What each id spells."""

    async def start(self, chat: Chat) -> list[str]:
        """Asks for the model's name, if none was given, and for its context; and tries the engine."""
        self._pieces = None if chat.tokenizer is None else Vocabulary.of(chat.tokenizer).pieces
        data = (await self.get("/v1/models")).get("data")
        models = [one for one in data if isinstance(one, dict)] if isinstance(data, list) else []
        found = next((one for one in models if self.model in (None, one.get("id"))), {})
        if self.model is None and isinstance(found.get("id"), str):
            self.model = found["id"]
        self.context = count_of(found.get("max_model_len"))
        return await super().start(chat)

    def _most(self, job: Job) -> int:
        """The limit of an answer. These servers stop after 16 tokens if a request names none."""
        if job.max_tokens is not None:
            return job.max_tokens
        return _LONG

    def body(self, job: Job) -> dict[str, Any]:
        body: dict[str, Any] = {
            "prompt": job.prompt,
            "stream": True,
            "max_tokens": self._most(job),
            "stream_options": {"include_usage": True},
            **job.sampling,
        }
        if job.logprobs is not None:
            body["logprobs"] = max(job.logprobs, 1)  # some servers take 0 for none
        if self.model is not None:
            body["model"] = self.model
        if job.turn.stops:
            body["stop"] = list(job.turn.stops)[:4]
        return body

    def read(self, data: Mapping[str, Any]) -> Batch | None:
        choices = data.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else {}
        if not isinstance(choice, dict):
            raise EngineError("the engine sent a choice that is no object")
        usage = data.get("usage")
        if not choice and not isinstance(usage, dict):
            return None
        reason = choice.get("finish_reason")
        ids = ids_of(choice.get("token_ids"))
        end = None
        if reason is not None or isinstance(usage, dict):
            counts = usage if isinstance(usage, dict) else {}
            given = counts.get("prompt_tokens_details")
            details = given if isinstance(given, dict) else {}
            end = End(
                None if reason is None else "length" if reason == "length" else "stop",
                count_of(counts.get("prompt_tokens")),
                count_of(counts.get("completion_tokens")),
                count_of(details.get("cached_tokens")),
            )
        text = text_of(choice.get("text"))
        if choice.get("logprobs") is None:
            return Batch(text, ids, end)
        found = columns(choice["logprobs"], self._pieces)
        return Batch(text, ids, end, placed(found, (ids or []) if self.ids else None, text))


class _WithIds(OpenAICompletions):
    """What vLLM and SGLang share: structural tags, prompts of ids, and ``/tokenize``."""

    dialect: ClassVar[Dialect | None] = "structural_tag"
    takes_ids: ClassVar[bool] = True
    sampling: ClassVar[frozenset[str] | None] = None
    fields: ClassVar[frozenset[str]] = frozenset(("min_tokens", "ignore_eos", "stop_token_ids", "logit_bias"))

    async def tokenize(self, text: str) -> list[int] | None:
        asked = {"prompt": text, "add_special_tokens": False}
        if self.model is not None:
            asked["model"] = self.model
        return ids_of((await self.post("/tokenize", asked)).get("tokens"))


class VLLM(_WithIds):
    """``vllm serve model``."""

    images = True  # it does not say which models do
    images_by_ids: ClassVar[bool] = True

    def generate(self, job: Job) -> AsyncGenerator[Batch, None]:
        if not job.pictures:
            return super().generate(job)
        body, read = (
            vllm_body(job, self.body(job)),
            vllm_reading(len(job.pictures), self.read, by_ids=self.ids),
        )
        return self._batches(body, job.headers, path=VLLM_PATH, read=read)

    def body(self, job: Job) -> dict[str, Any]:
        turn = job.turn
        body = super().body(job) | {
            "skip_special_tokens": False,
            "spaces_between_special_tokens": False,
            "add_special_tokens": False,
            "return_token_ids": True,
            "stop": [stop for stop in turn.stops if not self.ids or stop not in turn.marker_ids],
            "stop_token_ids": [*turn.stop_ids, *job.sampling.get("stop_token_ids", ())],
        }
        if job.logprobs is not None and self._pieces is not None:
            body["return_tokens_as_token_ids"] = True  # so that two tokens of one text stay two
        if job.grammar is not None:
            body["structured_outputs"] = {"structural_tag": str(job.grammar)}
        return body


class VLLMGenerate(VLLM):
    """vLLM by its endpoint of ids, ``/inference/v1/generate``: also one that has no other (``vllm serve
    --tokens-only``)."""

    path: ClassVar[str] = VLLM_PATH
    ids = True

    def generate(self, job: Job) -> AsyncGenerator[Batch, None]:
        read = vllm_reading(len(job.pictures), self.read, by_ids=True, pieces=self._pieces)
        return self._batches(self.body(job), job.headers, read=read)

    def body(self, job: Job) -> dict[str, Any]:
        return vllm_body(job, super().body(job), "tokens")

    def forced(self, job: Job, id: int) -> dict[str, Any]:
        return _biased(self.body(job), id)

    def reading(self) -> Read:
        return vllm_reading(0, self.read, by_ids=True, pieces=self._pieces)


class SGLang(_WithIds):
    """``python -m sglang.launch_server --model-path model``."""

    async def start(self, chat: Chat) -> list[str]:
        self.images = (await self.get("/model_info")).get("has_image_understanding") is True
        return await super().start(chat)

    def generate(self, job: Job) -> AsyncGenerator[Batch, None]:
        if not job.pictures:
            return super().generate(job)
        body = sglang_body(job, self.body(job))
        read = sglang_reading(by_ids=self.ids, pieces=self._pieces)
        return self._batches(body, job.headers, path=SGLANG_PATH, read=read)

    def body(self, job: Job) -> dict[str, Any]:
        turn = job.turn
        body = super().body(job) | {
            "skip_special_tokens": False,
            "return_token_ids": True,
            "stop": [stop for stop in turn.stops if not self.ids or stop not in turn.marker_ids],
            "stop_token_ids": [*turn.stop_ids, *job.sampling.get("stop_token_ids", ())],
        }
        if job.grammar is not None:
            body["response_format"] = json.loads(str(job.grammar))
        return body


class SGLangGenerate(SGLang):
    """SGLang by its own endpoint, ``/generate``: ids and their log probabilities, whatever its completions give."""

    path: ClassVar[str] = SGLANG_PATH
    ids = True

    def generate(self, job: Job) -> AsyncGenerator[Batch, None]:
        return self._batches(self.body(job), job.headers, read=self.reading())

    def body(self, job: Job) -> dict[str, Any]:
        return sglang_body(job, super().body(job))

    def forced(self, job: Job, id: int) -> dict[str, Any]:
        return _biased(self.body(job), id)

    def reading(self) -> Read:
        return sglang_reading(by_ids=self.ids, pieces=self._pieces)


def _biased(body: dict[str, Any], id: int) -> dict[str, Any]:
    """The request for ids under which the engine writes little but one token."""
    sampled = {**body["sampling_params"], "logit_bias": {str(id): 100}}
    return {**body, "sampling_params": sampled}
