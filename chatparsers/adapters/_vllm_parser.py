"""vLLM's ``Parser`` over a turn: it writes the grammar into the request and reads the ids that come back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from weakref import finalize

from vllm.entrypoints.generate.base.protocol import DeltaMessage, FunctionCall
from vllm.entrypoints.openai.responses.protocol import ResponsesRequest
from vllm.exceptions import VLLMValidationError
from vllm.parser.abstract_parser import Parser
from vllm.reasoning.abs_reasoning_parsers import ReasoningParser
from vllm.sampling_params import StructuredOutputsParams
from vllm.tool_parsers.abstract_tool_parser import ToolParser

from ..answers.format import Turn
from ..errors import ChatParsersError, TemplateError
from ..serving import ApiError, OpenAIChat, Usage, read_responses
from ..streams.message import Message
from ._answer import Answer
from ._deltas import delta_of
from ._installed import XGRAMMAR
from ._tokenizers import chat_of
from ._vllm_check import check

__all__ = ["ChatParser", "ReasoningHalf", "ToolHalf"]

check()


class ToolHalf(ToolParser):  # type: ignore[misc]
    """Carries the name ``chatparsers`` among the tool parsers; `ChatParser` reads."""


class ReasoningHalf(ReasoningParser):  # type: ignore[misc]
    """Carries the name ``chatparsers`` among the reasoning parsers. The grammar holds the reasoning too, so for vLLM
    the reasoning is over before the first token: then the grammar is used from that token on."""

    def is_reasoning_end(self, input_ids: Sequence[int]) -> bool:
        return True

    def is_reasoning_end_streaming(self, input_ids: Sequence[int], delta_ids: Iterable[int]) -> bool:
        return True

    def extract_content_ids(self, input_ids: list[int]) -> list[int]:
        return input_ids

    def extract_reasoning(self, model_output: str, request: Any) -> tuple[str | None, str | None]:
        raise NotImplementedError("ChatParser reads the reasoning")

    def extract_reasoning_streaming(self, *_: Any, **__: Any) -> DeltaMessage | None:
        raise NotImplementedError("ChatParser reads the reasoning")


class ChatParser(Parser):  # type: ignore[misc]
    """Reads one choice of a request."""

    always_adjust_request = True
    tool_parser_cls = ToolHalf

    def __init__(
        self,
        tokenizer: Any,
        tools: Any = None,
        *args: Any,
        chat_template_kwargs: Mapping[str, Any] | None = None,
        model_config: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(tokenizer, tools, *args, model_config=model_config, **kwargs)
        self._tokenizer = tokenizer
        self._template_kwargs = dict(chat_template_kwargs or {})
        self._answer: Answer | None = None
        self._writer: OpenAIChat | None = None
        self._message: Message | None = None
        chat_of(tokenizer)  # an error now, when the server starts

    def adjust_request(self, request: Any) -> Any:
        """Asks for markers in the text, and writes the grammar into the request, with the budget for thoughts. The
        caller's own constraint stays.

        Raises vLLM's error for a request that is wrong, which becomes the status 400.
        """
        request.skip_special_tokens = False
        try:
            turn = self._turn(request)
            if request.structured_outputs is not None or _kind(request) == "structural_tag":
                return request
            budget = _budget(request)
            grammar = turn.grammar("structural_tag", engine=XGRAMMAR, thinking_tokens=budget)
        except ChatParsersError as error:
            raise VLLMValidationError(str(error)) from error
        if grammar is not None:
            request.structured_outputs = StructuredOutputsParams(structural_tag=str(grammar))
            request._grammar_from_parser = True
            if budget is not None:
                request.thinking_token_budget = None  # the engine counts them by the grammar
            if hasattr(request, "response_format"):
                request.response_format = None  # the grammar has it
        return request

    def is_reasoning_end(self, input_ids: list[int]) -> bool:
        """Whether the grammar is used from the next token on: always."""
        return True

    def parse(
        self,
        model_output: str,
        request: Any,
        enable_auto_tools: bool = False,
        model_output_token_ids: Sequence[int] = (),
    ) -> tuple[str | None, str | None, list[FunctionCall] | None]:
        turn = self._turn(request)
        if model_output_token_ids:
            answer = Answer(turn, _stops(request))
            for id in model_output_token_ids:
                answer.feed(id)
            answer.finish()
            message = answer.message
        else:
            message = turn.parse(model_output)
        self._message = message
        calls = [
            FunctionCall(id=call.id, name=call.name, arguments=call.arguments) for call in message.tool_calls
        ]
        return message.reasoning or None, message.content or None, calls or None

    def parse_delta(
        self,
        delta_text: str,
        delta_token_ids: list[int],
        request: Any,
        prompt_token_ids: list[int] | None = None,
        *,
        finished: bool,
    ) -> DeltaMessage | None:
        if self._answer is None or self._writer is None:
            turn = self._turn(request)
            self._answer = Answer(turn, _stops(request))
            self._writer = OpenAIChat("", call_id=turn.call_id)
        events = [event for id in delta_token_ids for event in self._answer.feed(id)]
        if finished:
            events += self._answer.finish()
            self._message = self._answer.message
        delta = delta_of(self._writer, events)
        return DeltaMessage(**delta) if delta else None

    def count_reasoning_tokens(self, token_ids: Sequence[int]) -> int:
        """How many of the answer's tokens are reasoning, as far as it was read."""
        message = self._answer.message if self._answer is not None else self._message
        return 0 if message is None else Usage.of(message).reasoning

    def _turn(self, request: Any) -> Turn:
        """The turn of a request: vLLM makes several parsers for it, and changes it once the grammar is in it."""
        key = id(request)
        if key not in _turns:
            _turns[key] = self._prepared(request)
            finalize(request, _turns.pop, key, None)
        return _turns[key]

    def _prepared(self, request: Any) -> Turn:
        asked = _of_responses(request) if isinstance(request, ResponsesRequest) else _asked(request)
        given = {**self._template_kwargs, **(asked.get("template_kwargs") or {})}
        asked["template_kwargs"] = {
            name: value for name, value in given.items() if value is not None and name not in _OWN
        }
        chat = chat_of(self._tokenizer, getattr(request, "chat_template", None))
        try:
            return chat.prepare(**asked, polyfills=False)
        except (
            TemplateError
        ):  # of images and the like: the messages are vLLM's business, the prompt's end is ours
            plain = [{"role": "user", "content": "Hello"}]
            asked.update(messages=plain, continue_final_message=False, add_generation_prompt=True)
            return chat.prepare(**asked, polyfills=False)


_turns: dict[int, Turn] = {}
_OWN = frozenset(("add_generation_prompt", "continue_final_message", "messages", "tokenize", "tools"))
"""What vLLM has among the variables of the template, and `Chat.prepare` has as options."""


_READ = ("chat_template_kwargs", "parallel_tool_calls", "reasoning", "text", "tool_choice", "tools")
"""What a Responses request asks of the answer; the rest is its input."""


def _of_responses(request: Any) -> dict[str, Any]:
    """The arguments of `Chat.prepare` in a Responses request."""
    body = request.model_dump(mode="json", exclude_none=True)
    try:
        return read_responses(body).prepare
    except ApiError:  # images, stored conversations: the input is vLLM's business
        return read_responses(
            {"input": "Hello", **{name: body[name] for name in _READ if name in body}}
        ).prepare


def _asked(request: Any) -> dict[str, Any]:
    """The arguments of `Chat.prepare` in a chat-completions request."""
    choice = request.tool_choice
    response_format = request.response_format
    plain = None if response_format is None else response_format.model_dump(by_alias=True, exclude_none=True)
    return {
        "messages": [dict(message) for message in request.messages],
        "tools": [tool.model_dump(exclude_none=True) for tool in request.tools or ()] or None,
        "tool_choice": choice if isinstance(choice, str) else choice.model_dump() if choice else "auto",
        "parallel_tool_calls": request.parallel_tool_calls is not False,
        "response_format": None if _kind(request) == "structural_tag" else plain,
        "template_kwargs": dict(request.chat_template_kwargs or {}),
        "continue_final_message": request.continue_final_message,
        "add_generation_prompt": request.add_generation_prompt,
    }


def _budget(request: Any) -> int | None:
    """How many tokens thoughts may take; None: any number."""
    most: int | None = getattr(request, "thinking_token_budget", None)
    return None if most is None or most < 0 else most


def _kind(request: Any) -> str | None:
    return getattr(getattr(request, "response_format", None), "type", None)


def _stops(request: Any) -> list[str]:
    stop = getattr(request, "stop", None)
    return [stop] if isinstance(stop, str) else list(stop or ())
