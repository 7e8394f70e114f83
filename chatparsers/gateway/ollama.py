"""Ollama, by ``/api/generate`` in raw mode: text alone, and no grammar."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from .._chat import Chat
from .engine import Batch, End, EngineError, Job
from .http_engine import HttpEngine, text_of
from .lines import read_object

__all__ = ["Ollama"]

_NAMES = {"repetition_penalty": "repeat_penalty"}


class Ollama(HttpEngine):
    """``ollama serve``. It needs ``model``."""

    path: ClassVar[str] = "/api/generate"
    takes_ids: ClassVar[bool] = False

    def body(self, job: Job) -> dict[str, Any]:
        options = {_NAMES.get(name, name): value for name, value in job.sampling.items()}
        if job.max_tokens is not None:
            options["num_predict"] = job.max_tokens
        if job.turn.stops:
            options["stop"] = list(job.turn.stops)
        return {
            "model": self.model,
            "prompt": job.prompt,
            "raw": True,
            "stream": True,
            "options": options,
        }

    def parse(self, line: bytes) -> dict[str, Any] | None:
        return read_object(line) if line.strip() else None

    def read(self, data: Mapping[str, Any]) -> Batch | None:
        end = None
        if data.get("done"):
            reason = "length" if data.get("done_reason") == "length" else "stop"
            end = End(reason, data.get("prompt_eval_count"), data.get("eval_count"))  # type: ignore[arg-type]
        return Batch(text_of(data.get("response")), None, end)

    async def start(self, chat: Chat) -> list[str]:
        """It cannot be made to write a token, so only the connection and the model are tried."""
        if self.model is None:
            raise EngineError("Ollama serves several models: name one with --upstream-model")
        await self._collected(self.body(Job(chat.bind(), "Hello", max_tokens=1)))
        return [
            "Ollama gives no ids, takes no grammar, and cannot be asked whether it keeps control tokens in its text: "
            "try a call before you rely on it"
        ]
