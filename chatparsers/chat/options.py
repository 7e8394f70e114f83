"""The keywords of requests that are passed on, so that an editor completes them and a type checker refuses others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypeAlias, TypedDict

from ..answers.format import ToolChoice
from ..schema.tools import Tools

Thinking: TypeAlias = "bool | Literal['enabled', 'disabled', 'adaptive']"
"""A wish for thoughts. True is ``enabled``, False ``disabled``; ``adaptive`` leaves it to the model, where it can."""


class _Answering(TypedDict, total=False):
    """The options of the answer alone."""

    tool_choice: ToolChoice
    parallel_tool_calls: bool
    response_format: Mapping[str, Any] | None
    id_seed: str | None
    lenient_calls: bool
    max_calls: int | None
    call_within: int | None


ANSWERING = frozenset(_Answering.__annotations__)
"""The options of the answer alone: no template sees them."""
UNSEEN = ANSWERING | {"loaded"}
"""Options of which no template sees a change: what a message loads is written in that message."""


class PrepareOptions(_Answering, total=False):
    """The keywords of `Chat.prepare`, for calls that pass them on."""

    tools: Tools | None
    loaded: Tools | None
    thinking: Thinking | None
    effort: str | None
    add_generation_prompt: bool
    continue_final_message: bool
    template_kwargs: Mapping[str, Any] | None
    documents: Sequence[Mapping[str, Any]] | None
    now: datetime | None
    polyfills: bool | Iterable[str] | None


class BindOptions(_Answering, total=False):
    """The keywords of `Format.bind`, for calls that pass them on."""

    tools: Tools | None
    thinking: bool | None
    prefix: str
    tokenizer: Any
    prompt: str
    token_config: Mapping[str, Any] | None
    polyfills: tuple[str, ...]
    reasoning: bool | None
