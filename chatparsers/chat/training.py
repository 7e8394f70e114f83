"""The methods of a `Chat` for training: conversations encoded with their loss mask, rollouts, bridges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, cast, overload

from ..core.parser.turn import ToolChoice
from ..templates.jinja.limits import limited
from .encode import How, TrainOn, encode, encode_turns
from .request import Request, check_messages
from .sample import Sample

if TYPE_CHECKING:
    from .chat import Chat

__all__ = ["Training"]


class Training:
    """The part of `Chat` that makes samples."""

    @overload
    def encode(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Iterable[Mapping[str, Any]] | None = None,
        tool_choice: ToolChoice = "auto",
        parallel_tool_calls: bool = True,
        response_format: Mapping[str, Any] | None = None,
        thinking: bool | None = None,
        add_generation_prompt: bool = False,
        continue_final_message: bool = False,
        template_kwargs: Mapping[str, Any] | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        now: datetime | None = None,
        polyfills: bool | Iterable[str] | None = None,
        id_seed: str | None = None,
        train_on: TrainOn = "all",
        reasoning: bool = True,
        rewritten: bool = False,
        split: bool = False,
        final_stop: bool = True,
        split_turns: Literal[False] = False,
    ) -> Sample: ...

    @overload
    def encode(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Iterable[Mapping[str, Any]] | None = None,
        tool_choice: ToolChoice = "auto",
        parallel_tool_calls: bool = True,
        response_format: Mapping[str, Any] | None = None,
        thinking: bool | None = None,
        add_generation_prompt: bool = False,
        continue_final_message: bool = False,
        template_kwargs: Mapping[str, Any] | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        now: datetime | None = None,
        polyfills: bool | Iterable[str] | None = None,
        id_seed: str | None = None,
        train_on: TrainOn = "all",
        reasoning: bool = True,
        rewritten: bool = False,
        split: bool = False,
        final_stop: bool = True,
        split_turns: Literal[True],
    ) -> list[Sample]: ...

    @limited
    def encode(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Iterable[Mapping[str, Any]] | None = None,
        tool_choice: ToolChoice = "auto",
        parallel_tool_calls: bool = True,
        response_format: Mapping[str, Any] | None = None,
        thinking: bool | None = None,
        add_generation_prompt: bool = False,
        continue_final_message: bool = False,
        template_kwargs: Mapping[str, Any] | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        now: datetime | None = None,
        polyfills: bool | Iterable[str] | None = None,
        id_seed: str | None = None,
        train_on: TrainOn = "all",
        reasoning: bool = True,
        rewritten: bool = False,
        split: bool = False,
        final_stop: bool = True,
        split_turns: bool = False,
    ) -> Sample | list[Sample]:
        """A finished conversation as ids with their loss mask: for supervised data, and for scoring.

        The mask is 1 for what a model would have to write: each answer, from behind its generation prompt to the end of
        its stop. An answer that the template does not show as the model wrote it is context: `Sample.left_out` names
        it, and ``rewritten=True`` counts it nevertheless.

        ``train_on``: ``"all"`` answers, the ``"last"``, or a function of the message and its index.
        ``reasoning=False`` does not count thoughts. ``split``: prompt and answers are encoded apart, as an engine has
        them. ``split_turns``: a list with a sample for each question, so that every answer counts once. ``final_stop``:
        a last answer that the template leaves open gets its stop. The other options are those of `prepare`. Without a
        tokenizer, the sample counts characters. Raises the errors of `prepare`.
        """
        check_messages(messages)
        options = {
            "tools": tools,
            "tool_choice": tool_choice,
            "parallel_tool_calls": parallel_tool_calls,
            "response_format": response_format,
            "thinking": thinking,
            "add_generation_prompt": add_generation_prompt,
            "continue_final_message": continue_final_message,
            "template_kwargs": template_kwargs,
            "documents": documents,
            "now": now,
            "polyfills": polyfills,
            "id_seed": id_seed,
        }
        how = How(train_on, reasoning, rewritten, split, final_stop)
        request = Request(cast("Chat", self), options)
        return encode_turns(request, messages, how) if split_turns else encode(request, messages, how)
