"""What a request asks for that this gateway or its engine cannot give. Nothing is left out in silence."""

from __future__ import annotations

from ..serving import ApiError, Request
from .account import CHOICES
from .engine import Engine

__all__ = ["check"]

_GRAMMARS = (
    *("guided_json", "guided_regex", "guided_choice", "guided_grammar", "structured_outputs"),
    *("regex", "ebnf", "grammar", "json_schema", "structural_tag"),
)
_NOT_PASSED = (
    *("best_of", "use_beam_search", "echo", "suffix", "prompt_logprobs", "logit_bias", "logits_processors"),
    *("bad_words", "min_tokens", "ignore_eos", "stop_token_ids", "truncate_prompt_tokens"),
)
_WHY = {
    **dict.fromkeys(
        _GRAMMARS,
        "this server writes the engine's grammar itself: send response_format, or tools with tool_choice",
    ),
    **dict.fromkeys(_NOT_PASSED, "this server does not pass this field on to its engine: leave it out"),
}
"""Fields of engines' own servers that change what is written."""


def check(request: Request, engine: Engine, *, by_ids: bool) -> None:
    """Raises `ApiError` for the first field that cannot be given. ``by_ids``: the engine gets the prompt's ids."""
    for name, reason in _WHY.items():
        if request.body.get(name) and (name, request.body[name]) != ("best_of", 1):
            raise ApiError(reason, param=name, code="unsupported_parameter")
    if request.choices > CHOICES:
        raise ApiError(f"expected at most {CHOICES} answers, found {request.choices}", param="n")
    if request.logprobs is not None and not engine.logprobs:
        said = "this engine gives no log probabilities: leave logprobs out"
        raise ApiError(said, param="logprobs", code="unsupported_parameter")
    if request.token_ids and not (engine.ids and by_ids):
        said = "this engine gives no ids of tokens: leave return_token_ids out"
        raise ApiError(said, param="return_token_ids", code="unsupported_parameter")
