"""The fields of each API's requests. Any other field is ignored, and `Request.ignored` names it: it may be misspelt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .engine_fields import ENGINE_FIELDS, THINKING_BUDGETS
from .fields import boolean, model_name
from .request import SAMPLING, sampling
from .tools import Toolkit
from .unsupported import Drops

_ALL = frozenset(
    (
        *SAMPLING,
        *("model", "stream", "tools", "tool_choice", "metadata", "user"),
        *(
            "chat_template_kwargs",
            "enable_thinking",
            "thinking",
            "return_token_ids",
            "n",
            "logprobs",
            "top_logprobs",
        ),
        # of accounts, caches and queues: they ask nothing of an answer
        *("service_tier", "safety_identifier", "prompt_cache_key", "prompt_cache_retention", "cache_prompt"),
        *("cache_salt", "request_id", "priority", "timings_per_token", "return_progress"),
    )
)
_OPENAI = _ALL | {"parallel_tool_calls", "stop", "stream_options"}
CHAT = _OPENAI | {
    *("messages", "max_tokens", "max_completion_tokens", "response_format", "reasoning_effort", "verbosity"),
    *("modalities", "audio", "web_search_options", "prediction", "functions", "function_call"),
    *("continue_final_message", "add_generation_prompt", "return_regions", *ENGINE_FIELDS),
    *THINKING_BUDGETS,
    # of other servers: they say how the answer is shown, and it is shown so
    *("separate_reasoning", "include_reasoning", "stream_reasoning", "reasoning_format"),
    *("skip_special_tokens", "spaces_between_special_tokens"),
}
RESPONSES = _OPENAI | {
    *("input", "instructions", "max_output_tokens", "text", "reasoning", "include", "truncation", "store"),
    *("previous_response_id", "conversation", "background", "prompt", "max_tool_calls", "client_metadata"),
}
MESSAGES = _ALL | {
    *("messages", "system", "max_tokens", "stop_sequences", "output_config", "output_format"),
    *("mcp_servers", "container", "context_management", "diagnostics"),
}


def ignored(body: Mapping[str, Any], known: frozenset[str]) -> tuple[str, ...]:
    """The fields of a body that are not ``known``; null says nothing."""
    return tuple(name for name, value in body.items() if name not in known and value is not None)


def common(body: Mapping[str, Any], known: frozenset[str], kit: Toolkit, drops: Drops) -> dict[str, Any]:
    """What a `Request` has of each API alike. ``known``: the fields of the API."""
    return {
        "model": model_name(body),
        "tools": kit.functions,
        "loaded": kit.later if kit.later or drops.loading else None,
        "toolkit": kit,
        "seals": drops.seals,
        "dropped": tuple(drops.kinds),
        "images": drops.found_images,
        "ignored": ignored(body, known),
        "sampling": sampling(body),
        "stream": boolean(body, "stream", False),
        "body": body,
    }
