"""The endpoints of vLLM and SGLang that take images and give ids: ``/inference/v1/generate`` and ``/generate``.

Their completions take text alone, and not each server has them. The bodies here are made of those for completions, so
that both ask for the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from .engine import Batch, End, EngineError, Job
from .http_engine import Read, count_of, ids_of, text_of
from .probable import Pieces, placed, records, triples

VLLM_PATH, SGLANG_PATH = "/inference/v1/generate", "/generate"
_NOT_SAMPLED = frozenset(
    [
        *("prompt", "stream", "stream_options", "model", "add_special_tokens"),
        *("return_token_ids", "return_tokens_as_token_ids", "response_format"),
    ]
)
"""Fields of a request for completions that say nothing of how tokens are sampled."""
_SGLANG = {"max_tokens": "max_new_tokens", "min_tokens": "min_new_tokens", "seed": "sampling_seed"}


def _sampled(body: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name not in _NOT_SAMPLED}


def vllm_body(job: Job, body: Mapping[str, Any], mode: str = "text") -> dict[str, Any]:
    """The request for ids. ``body``: the one for completions. ``mode``: ``"tokens"`` for ids alone, which a server
    without a tokenizer gives too."""
    sampled = _sampled(body)
    if job.max_tokens is None:
        del sampled["max_tokens"]  # how long the prompt is, only the engine knows: it takes what is left
    parts = [{"type": "image_url", "url": one.image.data_url} for one in job.pictures]
    return {
        **({"model": body["model"]} if "model" in body else {}),
        "token_ids": job.prompt,
        **({"content_parts": parts, "return_token_ids": True} if parts else {}),  # to see that they are taken
        "sampling_params": sampled,
        "output_mode": mode,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def vllm_reading(images: int, read: Read, *, by_ids: bool, pieces: Pieces | None = None) -> Read:
    """Reads the events of such a request: those of completions, with log probabilities as chat has them, or by ids.
    ``images``: how many it has. ``read``: of completions. ``pieces``: what each id spells.

    Raises `EngineError` if vLLM did not take the images, as older ones do not, which know no such field."""
    first = True

    def reading(data: Mapping[str, Any]) -> Batch | None:
        nonlocal first
        if first and images:
            first = False
            ranges = data.get("mm_placeholders")
            taken = ranges.get("image") if isinstance(ranges, dict) else None
            if not isinstance(taken, list) or len(taken) != images:
                raise EngineError("the engine did not take the images: it needs vLLM 0.33 or newer")
        choices = data.get("choices")
        said = choices[0].pop("logprobs", None) if isinstance(choices, list) and choices else None
        spans = choices[0].get("weight_versions") if isinstance(choices, list) and choices else None
        batch = read(data)
        if batch is not None and batch.end is not None and spans:
            batch.end = replace(batch.end, versions=_versions(spans))
        if batch is not None and isinstance(said, dict):
            found = records(said.get("content"), pieces)
            batch.logprobs = placed(found, (batch.ids or []) if by_ids else None, batch.text)
        return batch

    return reading


_number = re.compile(r"\d{1,9}", re.ASCII).fullmatch


def _versions(spans: object) -> tuple[tuple[int, int], ...]:
    """Of spans of ids, each with the version that sampled them; none if a version is no number."""
    if not isinstance(spans, list) or not all(isinstance(one, Mapping) for one in spans):
        return ()
    found = [(one.get("start"), one.get("end"), str(one.get("version"))) for one in spans]
    if not all(type(start) is int and type(end) is int and _number(name) for start, end, name in found):
        return ()
    return tuple((max(int(end) - int(start), 0), int(name)) for start, end, name in found)


def sglang_body(job: Job, body: Mapping[str, Any]) -> dict[str, Any]:
    """The request for a text or ids, which may have images. ``body``: the one for completions."""
    sampled = {_SGLANG.get(name, name): value for name, value in _sampled(body).items() if name != "logprobs"}
    if job.grammar is not None:
        sampled["structural_tag"] = json.dumps(body["response_format"])
    images = [one.image.data_url for one in job.pictures]
    asked = {} if job.logprobs is None else {"return_logprob": True, "top_logprobs_num": job.logprobs}
    return {
        "input_ids" if isinstance(job.prompt, list) else "text": job.prompt,
        **({"image_data": images} if images else {}),
        "sampling_params": sampled,
        **asked,
        "stream": True,
    }


def sglang_reading(*, by_ids: bool, pieces: Pieces | None = None) -> Read:
    """Reads the events of such a request. Each has all that was written, or only what is new, as the server was
    started: the count of tokens tells. ``pieces``: what each id spells."""
    before, seen = "", 0

    def reading(data: Mapping[str, Any]) -> Batch:
        nonlocal before, seen
        given = data.get("meta_info")
        info = given if isinstance(given, dict) else {}
        ids, text = ids_of(data.get("output_ids")) or [], text_of(data.get("text"))
        count = count_of(info.get("completion_tokens")) or 0
        if len(ids) == count:
            before, text = text, text[len(before) :]
        new, seen = max(count - seen, 0), max(count, seen)
        reason = info.get("finish_reason")
        kind = reason.get("type") if isinstance(reason, dict) else reason
        if kind == "abort":
            raise EngineError(f"the engine gave up: {str(reason)[:500]}")
        end = None
        if kind is None and count == new:  # the first event: it may be stopped before the last
            end = End(None, cached=count_of(info.get("cached_tokens")))
        if kind is not None:
            end = End(
                "length" if kind == "length" else "stop",
                count_of(info.get("prompt_tokens")),
                count,
                count_of(info.get("cached_tokens")),
                _versions(
                    info.get("weight_versions")
                    or [{"start": 0, "end": count, "version": info.get("weight_version")}]
                ),
            )
        fresh = ids[len(ids) - new :] if new else []
        batch = Batch(text, (fresh or None) if by_ids else None, end)
        if new and info.get("output_token_logprobs"):
            found = triples(info["output_token_logprobs"], info.get("output_top_logprobs"), pieces, new)
            batch.logprobs = placed(found, fresh if by_ids else None, text)
        return batch

    return reading
