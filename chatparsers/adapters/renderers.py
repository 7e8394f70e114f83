"""renderers (Prime Intellect): its `Renderer` protocol for any chat template, for prime-rl, verifiers and rllm.

renderer = Renderer(chatparsers.load(model), thinking=True)
prompt = renderer.render_ids(messages, tools=tools, add_generation_prompt=True)
answer = renderer.parse_response(completion_ids, tools=tools, prompt_ids=prompt)
prompt = renderer.bridge_to_next_turn(prompt, completion_ids, results, tools=tools)
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from renderers.base import (
    ParsedResponse,
    ParsedToolCall,
    RenderedTokens,
    ToolCallParseStatus,
    extract_message_tool_names,
)

from ..answers.format import Turn
from ..chat.bridge import stand_in
from ..chat.bridges import is_proved
from ..chat.chat import Chat
from ..chat.ends import after_answer
from ..chat.request import Request
from ..chat.sample import Kind
from ..chat.segment import sample_of
from ..chat.shapes import shape_of
from ..chat.spoken import Chunk, Spoken, spelt
from ..errors import RequestError

__all__ = ["Renderer"]

_BODY = (Kind.SYSTEM, Kind.USER, Kind.RESULT)


class Renderer:
    """The protocol over a `Chat` that has a tokenizer.

    ``thinking``, ``options``: the keywords of `Chat.prepare` for all calls. Raises `RequestError` without a tokenizer.
    """

    def __init__(self, chat: Chat, *, thinking: bool | None = None, **options: Any) -> None:
        if chat.tokenizer is None:
            raise RequestError("Renderer: ids need the model's tokenizer: load(…, tokenizer=…)")
        self.chat = chat
        self._options = {"thinking": thinking, **options}

    @property
    def is_prefix_stable(self) -> bool:
        """Whether every bridge of the template is proved."""
        return all(bridge.proved for bridge in self.chat.bridge.values())

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = False,
    ) -> RenderedTokens:
        """The conversation's ids, each with its message, and whether a model would have sampled it."""
        sample = self.chat.encode(
            messages,
            tools=tools,
            add_generation_prompt=add_generation_prompt,
            final_stop=False,
            rewritten=True,
            **self._options,
        )
        mask = [bool(value) for value in sample.loss_mask]
        return RenderedTokens(
            token_ids=sample.ids,
            message_indices=sample.message_indices,
            sampled_mask=mask,
            is_content=[sampled or kind in _BODY for sampled, kind in zip(mask, sample.kinds, strict=True)],
            message_roles=[str(message["role"]) for message in messages],
            message_tool_names=extract_message_tool_names(list(messages)),
        )

    def render_ids(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = False,
    ) -> list[int]:
        """The conversation's ids."""
        found: list[int] = self.render(
            messages, tools=tools, add_generation_prompt=add_generation_prompt
        ).token_ids
        return found

    def get_stop_token_ids(self) -> list[int]:
        """The ids that end a turn."""
        return list(self.chat.bind().stop_ids)

    def parse_response(
        self,
        token_ids: Sequence[int],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        prompt_ids: Sequence[int] | None = None,
    ) -> ParsedResponse:
        """The message of a completion. ``prompt_ids`` tell what of the answer the prompt wrote."""
        spoken = self._spoken(token_ids, tools, prompt_ids)
        message = spoken.message
        return ParsedResponse(
            content=message.content,
            reasoning_content=message.reasoning or None,
            tool_calls=[
                ParsedToolCall(
                    raw=call.arguments,
                    name=call.name,
                    arguments=_value(call.arguments),
                    status=ToolCallParseStatus.OK if call.complete else ToolCallParseStatus.UNCLOSED_BLOCK,
                    id=call.id,
                )
                for call in message.tool_calls
            ],
            reasoning_complete=spoken.region != "reasoning" or bool(spoken.stop),
        )

    def bridge_to_next_turn(
        self,
        previous_prompt_ids: Sequence[int],
        previous_completion_ids: Sequence[int],
        new_messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
    ) -> RenderedTokens | None:
        """The ids that were, and after them those of the new messages; None where that is not proved.

        Ids after the completion's first stop make None, as the result must begin with all that were.
        """
        if not new_messages or any(message.get("role") == "assistant" for message in new_messages):
            return None
        spoken = self._spoken(previous_completion_ids, tools, previous_prompt_ids)
        if spoken.dropped or any(wrong.code != "repeated-call" for wrong in spoken.message.diagnostics):
            return None
        request = Request(self.chat, {**self._options, "tools": tools}).fixed()
        answer = spoken.message.to_openai()
        if not is_proved(request, shape_of(answer), str(new_messages[0].get("role"))):
            return None
        delta = stand_in(request, answer, list(new_messages), system=False)
        if delta is None:
            return None
        part, _ = after_answer(spoken, delta, tuple(enumerate(new_messages)), False)
        before = [*previous_prompt_ids, *previous_completion_ids]
        added = sample_of(self.chat.tokenizer, [part], set())
        return RenderedTokens(
            token_ids=[*before, *added.ids],
            message_indices=[-1] * len(before) + added.message_indices,
            sampled_mask=[False] * (len(before) + len(added)),
            is_content=[False] * len(before) + [kind in _BODY for kind in added.kinds],
            message_roles=[str(message["role"]) for message in new_messages],
            message_tool_names=extract_message_tool_names(list(new_messages)),
        )

    def _spoken(
        self, ids: Sequence[int], tools: Sequence[Mapping[str, Any]] | None, prompt_ids: Sequence[int] | None
    ) -> Spoken:
        turn = self._turn(tools, prompt_ids)
        return Spoken(turn).heard(Chunk.of(ids, None, None, None), None)

    def _turn(self, tools: Sequence[Mapping[str, Any]] | None, prompt_ids: Sequence[int] | None) -> Turn:
        """The turn of an answer, with what of it the prompt wrote: what the format's markers begin in its last line."""
        turn = self.chat.prepare([{"role": "user", "content": "Hello"}], tools=tools, **self._options)
        if not prompt_ids or not turn.prefix:
            return turn
        prompt = spelt(self.chat.tokenizer, prompt_ids)
        return turn if prompt.endswith(turn.prefix) else turn._replace(prefix="")


def _value(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments
