"""llama.cpp's ``llama-server``, by its own endpoint ``/completion``: ids, GBNF and lazy grammars."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ..answers.format import Dialect
from ..chat.chat import Chat
from .engine import Batch, End, Job
from .http_engine import HttpEngine, Read, count_of, ids_of, text_of
from .lost_ids import LostIds, Spelling
from .pictures import marked
from .probable import placed, records

_PROBABLE = "completion_probabilities"
_NAMES = {"repetition_penalty": "repeat_penalty"}
_TRIGGERS = {"token": 0, "word": 1, "pattern": 3}
"""llama.cpp's numbers for the kinds of triggers. Our patterns are over the whole output."""


class LlamaServer(HttpEngine):
    """``llama-server -m model.gguf --port 8080``."""

    path: ClassVar[str] = "/completion"
    dialect: ClassVar[Dialect | None] = "gbnf"
    fields: ClassVar[frozenset[str]] = frozenset(("ignore_eos", "logit_bias"))
    _spelling: Spelling | None = None
    _marker = "<__media__>"
    """What stands for an image in a text; newer servers have another one each time."""
    _first_token = ""

    def body(self, job: Job) -> dict[str, Any]:
        turn = job.turn
        body: dict[str, Any] = {
            "prompt": job.prompt if not job.pictures else self._with_images(job),
            "stream": True,
            "return_tokens": True,
            "cache_prompt": True,
            "n_predict": job.max_tokens if job.max_tokens is not None else -1,
            "preserved_tokens": list(turn.preserved_tokens),
            # A stop that is one token ends the turn by its id. As text it could be part of an argument.
            "stop": [stop for stop in turn.stops if not self.ids or stop not in turn.marker_ids],
            **{_NAMES.get(name, name): value for name, value in job.sampling.items()},
        }
        if "logit_bias" in body:
            body["logit_bias"] = [[int(id), bias] for id, bias in body["logit_bias"].items()]
        if job.logprobs is not None:
            body["n_probs"] = max(job.logprobs, 1)
        if job.thinking_tokens is not None or job.close_loops:
            body["return_progress"] = True  # it says what it had of the prompt before it may be stopped
        if job.grammar is not None:
            body["grammar"] = str(job.grammar)
            if job.grammar.lazy:
                body["grammar_lazy"] = True
                body["grammar_triggers"] = [
                    {
                        "type": _TRIGGERS[trigger.kind],
                        "value": trigger.value,
                        **({} if trigger.id is None else {"token": trigger.id}),
                    }
                    for trigger in job.grammar.triggers
                ]
        return body

    def _with_images(self, job: Job) -> dict[str, Any]:
        """A prompt with images, which the server encodes: it puts the first token before it, and around each image what
        its model has there."""
        assert isinstance(job.prompt, str)
        text = marked(job.prompt, job.pictures, self._marker).removeprefix(self._first_token)
        return {"prompt_string": text, "multimodal_data": [one.image.data for one in job.pictures]}

    async def start(self, chat: Chat) -> list[str]:
        props = await self.get("/props")
        settings, modalities = props.get("default_generation_settings"), props.get("modalities")
        self.context = count_of(settings.get("n_ctx")) if isinstance(settings, dict) else None
        self.images = isinstance(modalities, dict) and modalities.get("vision") is True
        self._marker = text_of(props.get("media_marker")) or self._marker
        self._first_token = chat.files.bos_token or ""
        self._spelling = None if chat.tokenizer is None else Spelling(chat.tokenizer)
        return await super().start(chat)

    async def tokenize(self, text: str) -> list[int] | None:
        asked = {"content": text, "add_special": False, "parse_special": True}
        return ids_of((await self.post("/tokenize", asked)).get("tokens"))

    def forced(self, job: Job, id: int) -> dict[str, Any]:
        return {**self.body(job), "logit_bias": [[id, 100.0]]}

    def reading(self) -> Read:
        if self._spelling is None:
            return self._with_logprobs
        lost = LostIds(self._spelling)

        def read(data: Mapping[str, Any]) -> Batch:
            batch = self.read(data)
            if batch.end is not None:
                batch.ids = lost.flush() or None
            elif batch.ids is not None:
                batch.ids = lost.complete(batch.text, batch.ids)
            return self._with_logprobs(data, batch) if _PROBABLE in data else batch

        return read

    def _with_logprobs(self, data: Mapping[str, Any], batch: Batch | None = None) -> Batch:
        """A batch with its log probabilities, if its event has them."""
        batch = batch or self.read(data)
        if _PROBABLE in data and batch.end is None:
            found = records(data[_PROBABLE])
            batch.logprobs = placed(found, (batch.ids or []) if self.ids else None, batch.text)
        return batch

    def read(self, data: Mapping[str, Any]) -> Batch:
        ids = ids_of(data.get("tokens"))
        end = None
        if data.get("stop"):
            limit = data.get("stop_type") == "limit" or data.get("stopped_limit") is True
            given = data.get("timings")
            timings = given if isinstance(given, dict) else {}
            end = End(
                "length" if limit else "stop",
                count_of(data.get("tokens_evaluated")),
                count_of(data.get("tokens_predicted")),
                count_of(timings.get("cache_n")),
            )
            ids = None  # the last event repeats what came before, or has nothing
        progress = data.get("prompt_progress")
        if isinstance(progress, dict):  # its event has the id 0, which is no token of the answer
            return Batch(end=End(None, cached=count_of(progress.get("cache"))))
        return Batch(text_of(data.get("content")), ids, end)
