"""Ollama, by ``/api/generate`` in raw mode: text alone, and no grammar."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ..chat.chat import Chat
from ..streams.message import FinishReason
from .engine import Batch, End, EngineError, Job
from .http_engine import HttpEngine, count_of, text_of
from .lines import read_object
from .probable import placed, records

_NAMES = {"repetition_penalty": "repeat_penalty"}


class Ollama(HttpEngine):
    """``ollama serve``. It needs ``model``."""

    path: ClassVar[str] = "/api/generate"
    alive: ClassVar[str] = "/api/version"
    takes_ids: ClassVar[bool] = False

    def body(self, job: Job) -> dict[str, Any]:
        options = {_NAMES.get(name, name): value for name, value in job.sampling.items()}
        if job.max_tokens is not None:
            options["num_predict"] = job.max_tokens
        if job.turn.stops:
            options["stop"] = list(job.turn.stops)
        body: dict[str, Any] = {
            "model": self.model,
            "prompt": job.prompt,
            "raw": True,
            "stream": True,
            "think": False,  # else Ollama takes the reasoning out of the text, in raw mode too
            "truncate": False,  # a prompt that is too long is an error, not a shorter prompt
            "shift": False,
            "options": options,
        }
        if job.logprobs is not None:
            body |= {"logprobs": True, "top_logprobs": job.logprobs}
        return body

    def parse(self, line: bytes) -> dict[str, Any] | None:
        return read_object(line) if line.strip() else None

    def read(self, data: Mapping[str, Any]) -> Batch | None:
        if data.get("thinking"):
            raise EngineError(
                "Ollama takes the reasoning out of the text, although it was asked not to: use another version of it"
            )
        end = None
        if data.get("done"):
            reason: FinishReason = "length" if data.get("done_reason") == "length" else "stop"
            end = End(reason, count_of(data.get("prompt_eval_count")), count_of(data.get("eval_count")))
        text = text_of(data.get("response"))
        return Batch(text, None, end, placed(records(data.get("logprobs")), None, text))

    def forced(self, job: Job, id: int) -> None:
        """There is no such request."""

    async def start(self, chat: Chat) -> list[str]:
        if self.model is None:
            listed = (await self.get("/api/tags")).get("models")
            names = [str(one.get("name")) for one in listed or () if isinstance(one, dict)]
            found = f": {', '.join(names[:10])}" if names else ""
            raise EngineError(f"Ollama serves several models: name one with --upstream-model{found}")
        return await super().start(chat)
