"""What a request asks for that this gateway or its engine cannot give. Nothing is left out in silence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ..answers.format import Turn
from ..serving import ApiError, Request
from ..serving.engine_fields import THINKING_BUDGETS
from .account import CHOICES
from .engine import Engine

_GRAMMARS = (
    *("guided_json", "guided_regex", "guided_choice", "guided_grammar", "structured_outputs"),
    *("regex", "ebnf", "grammar", "json_schema", "structural_tag"),
)
_NOT_PASSED = (
    *("best_of", "use_beam_search", "echo", "suffix", "prompt_logprobs", "logit_bias", "logits_processors"),
    *("bad_words", "min_tokens", "ignore_eos", "stop_token_ids", "truncate_prompt_tokens", "stop_regex"),
    *("allowed_token_ids", "length_penalty", "repeat_penalty", "repeat_last_n", "n_predict", "samplers"),
    *("typical_p", "top_n_sigma", "xtc_probability", "dry_multiplier", "dynatemp_range", "mirostat"),
    *("custom_logit_processor", "lora", "lora_path", "thinking_token_budget", "thinking_budget_tokens"),
    *("chat_template", "documents"),
)
_NEUTRAL = {
    **{"best_of": 1, "length_penalty": 1, "repeat_penalty": 1, "typical_p": 1},
    **{"top_n_sigma": -1, "n_predict": -1, "thinking_token_budget": -1, "thinking_budget_tokens": -1},
    **{"top_k": -1, "repetition_penalty": 1},
}
"""What changes nothing, for fields of which an empty value or 0 is no such."""
_OFF: Mapping[str, Callable[[Mapping[str, Any]], bool]] = {
    "reasoning_effort": lambda body: body.get("reasoning_effort") == "none",
    "reasoning.effort": lambda body: dict(body.get("reasoning") or {}).get("effort") == "none",
    "output_config.effort": lambda body: dict(body.get("output_config") or {}).get("effort") == "none",
    "enable_thinking": lambda body: body.get("enable_thinking") is False,
    "chat_template_kwargs": lambda body: bool(body.get("chat_template_kwargs")) and not body.get("thinking"),
}
"""The fields that may say that there are to be no thoughts."""
_SPLIT = ("separate_reasoning", "include_reasoning")
_WHY = {
    **dict.fromkeys(
        _GRAMMARS,
        "this server writes the engine's grammar itself: send response_format, or tools with tool_choice",
    ),
    **dict.fromkeys(_NOT_PASSED, "this server does not pass this field on to its engine: leave it out"),
}
"""Fields of engines' own servers that change what is written."""


def unknown_fields(request: Request) -> list[str]:
    """The fields that no server of these APIs is known to have."""
    return [name for name in request.ignored if name not in _WHY]


def check(request: Request, engine: Engine, *, by_ids: bool, strict: bool = False) -> None:
    """Raises `ApiError` for the first field that cannot be given. ``by_ids``: the engine gets the prompt's ids.
    ``strict``: nor may a field be unknown."""
    body = request.body
    for name in unknown_fields(request) if strict else ():
        said = "this server knows no such field: leave it out, or start the server without --strict-fields"
        raise ApiError(said, param=name, code="unknown_parameter")
    for name, reason in () if body.keys().isdisjoint(_WHY) else _WHY.items():
        wrong = name not in engine.fields if name in request.engine_fields else name in request.ignored
        if wrong and body.get(name) and body[name] != _NEUTRAL.get(name):
            raise ApiError(reason, param=name, code="unsupported_parameter")
    for name, value in request.sampling.items():
        unknown = engine.sampling is not None and name not in engine.sampling
        if unknown and value and value != _NEUTRAL.get(name):
            raise ApiError(
                f"this engine has no {name}: leave it out", param=name, code="unsupported_parameter"
            )
    split = next((name for name in _SPLIT if body.get(name) is False), None)
    if split is not None or body.get("reasoning_format") == "none":
        said = "this server always gives reasoning in fields of its own: leave this field out"
        raise ApiError(said, param=split or "reasoning_format", code="unsupported_parameter")
    if request.choices > CHOICES:
        raise ApiError(f"expected at most {CHOICES} answers, found {request.choices}", param="n")
    if request.logprobs is not None and not engine.logprobs:
        said = "this engine gives no log probabilities: leave logprobs out"
        raise ApiError(said, param="logprobs", code="unsupported_parameter")
    by_ids = by_ids and (not request.images or engine.images_by_ids)
    if request.token_ids and not (engine.ids and by_ids):
        said = "this engine gives no ids of tokens: leave return_token_ids out"
        raise ApiError(said, param="return_token_ids", code="unsupported_parameter")


def limited(request: Request, engine: Engine, *, grammar: bool, recorded: bool, drops: bool) -> Request:
    """The request, without limits that cannot be kept. ``grammar``: whether the engine gets grammars. ``recorded``: the
    answer is a step of a session. ``drops``: whether a limit may be left out. Raises `ApiError` if not."""
    budget = next((name for name in THINKING_BUDGETS if request.body.get(name) is not None), None)
    bound = grammar and engine.dialect is not None
    for limit, field, why in (
        # In the Messages API it is a hint, which clients send to every model.
        ("thinking_tokens", budget, uncounted(request, engine, grammar=grammar, recorded=recorded)),
        (
            "max_calls",
            "max_tool_calls",
            "" if bound else "this engine takes no grammar, which would keep to it",
        ),
    ):
        if not why or getattr(request, limit) is None:
            continue
        if field is not None and not drops:
            raise ApiError(f"{why}: leave it out", param=field, code="unsupported_parameter")
        left: dict[str, Any] = {limit: None}
        request = replace(request, dropped=(*request.dropped, *([field] if field else [])), **left)
    return request


def without_thoughts(
    request: Request, turn: Turn, engine: Engine, *, grammar: bool, recorded: bool, drops: bool
) -> Request:
    """The request, with a budget of 0 for thoughts if its template cannot turn off those that it does not want. Raises
    `ApiError` if they can be neither turned off nor counted, and the template has no lower level either."""
    used = turn.thoughts
    if used is None or used.budget is None or request.thinking_tokens is not None:
        return request
    why = uncounted(request, engine, grammar=grammar, recorded=recorded)
    if not why:
        return replace(request, thinking_tokens=used.budget)
    if used.level:
        return request
    field = next((name for name, said in _OFF.items() if said(request.body)), "thinking")
    if not drops:
        raise ApiError(
            f"this model always thinks: its template has no way to turn thoughts off, and {why}: leave it out",
            param=field,
            code="unsupported_parameter",
        )
    return replace(request, dropped=(*request.dropped, f"field {field}"))


def uncounted(request: Request, engine: Engine, *, grammar: bool, recorded: bool) -> str:
    """Why the tokens of thoughts cannot be limited; "" if they can, by the gateway or in the engine's grammar."""
    return "" if grammar and engine.counts else unforced(request, engine, recorded)


def unforced(request: Request, engine: Engine, recorded: bool) -> str:
    """Why the gateway cannot end a thought; "" if it can."""
    if not engine.ids:
        return "this engine gives no ids of tokens, which are counted"
    if recorded:
        return "a session records what the model samples, and the end of a thought is forced"
    if request.logprobs is not None:
        return "the end of a thought is forced, and has no log probabilities"
    return ""
