"""SGLang's two detectors. Each gets text, and the second gets what the first leaves.

The reasoning half reads the whole answer. What it leaves for the tool half is the answer without the characters of the
reasoning: its markers stay, so the tool half reads an empty thought, and then what follows it. Without a tool half the
content alone is left. The tool half does not know whether the prompt opened the reasoning; so the reasoning half puts
what the prompt wrote of it before its text.

There are no ids here: a marker that the model spells in ordinary tokens counts as a marker.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sglang.srt.entrypoints.openai.protocol import ToolChoice
from sglang.srt.function_call.base_format_detector import BaseFormatDetector
from sglang.srt.function_call.core_types import StreamingParseResult, ToolCallItem
from sglang.srt.parser.reasoning_parser import BaseReasoningFormatDetector
from sglang.srt.parser.reasoning_parser import StreamingParseResult as ReasoningResult
from xgrammar import StructuralTag

from ..answers.idioms import Options
from ..answers.nodes import Body, Node, Span, Think, Token
from ..chat.chat import Chat
from ..core.tree import walk
from ..streams.events import CallArguments, CallStart, Content, Event, Reasoning
from ..streams.stream import Stream
from ._installed import XGRAMMAR
from ._tokenizers import chat_of

__all__ = ["ReasoningHalf", "ToolHalf"]

_HELLO = [{"role": "user", "content": "Hello"}]
_ANY = [{"type": "function", "function": {"name": "any"}}]
"""Tools for the reasoning half, which is not told which there are: only where calls begin matters to it."""


class ReasoningHalf(BaseReasoningFormatDetector):  # type: ignore[misc]
    """Splits the reasoning from the rest. The arguments are SGLang's."""

    def __init__(
        self,
        tokenizer: Any = None,
        stream_reasoning: bool = True,
        force_reasoning: bool | None = None,
        continue_final_message: bool = False,
        previous_content: str = "",
        force_nonempty_content: bool = False,
        tool_call_parser_active: bool = False,
    ) -> None:
        chat = None if tokenizer is None else chat_of(tokenizer)
        opener, closer = ("", "") if chat is None else _markers(chat)
        super().__init__(
            opener,
            closer,
            force_reasoning=bool(force_reasoning),
            stream_reasoning=stream_reasoning,
            continue_final_message=continue_final_message,
            previous_content=previous_content,
            force_nonempty_content=force_nonempty_content,
        )
        self._active = tool_call_parser_active
        self._whole_reasoning: list[str] = []
        self._raw = ""
        self._passed = 0
        self._prefix = ""
        self._stream: Stream | None = None
        if chat is not None:
            prefix = previous_content if continue_final_message else _prefix(chat, force_reasoning)
            turn = chat.format.bind(tools=_ANY if tool_call_parser_active else None, prefix=prefix)
            self._prefix = prefix.removeprefix(_frame(chat))
            self._stream = turn.stream()

    def detect_and_parse(self, text: str) -> ReasoningResult:
        first_half = self._parse(text)
        rest = self.finish()
        result = ReasoningResult(
            first_half.normal_text + rest.normal_text, first_half.reasoning_text + rest.reasoning_text
        )
        return self._maybe_apply_force_nonempty_content(result)

    def parse_streaming_increment(self, new_text: str) -> ReasoningResult:
        return self._parse(new_text)

    def finish(self) -> ReasoningResult:
        if self._stream is None:
            return ReasoningResult()
        result = self._result(self._stream.finish(), True)
        self._in_reasoning = False
        return result

    def _parse(self, text: str) -> ReasoningResult:
        if self._stream is None:
            return ReasoningResult(text)
        self._raw += text
        events = self._stream.feed(text)
        self._in_reasoning = self._stream.region == "reasoning"
        return self._result(events, False)

    def _result(self, events: Iterable[Event], over: bool) -> ReasoningResult:
        """What the events and the regions since the last call give to each side."""
        reasoning = [event.text for event in events if isinstance(event, Reasoning)]
        if not self.stream_reasoning:
            self._whole_reasoning += reasoning
            reasoning = self._whole_reasoning if over or not self._in_reasoning else []
            if reasoning:
                self._whole_reasoning = []
        if self._active:
            return ReasoningResult(self._rest(), "".join(reasoning))
        content = [event.text for event in events if isinstance(event, Content)]
        return ReasoningResult("".join(content), "".join(reasoning))

    def _rest(self) -> str:
        """The prefix, and the new text that is not reasoning."""
        assert self._stream is not None
        parts = [self._prefix]
        self._prefix = ""
        regions = self._stream.message.regions
        for region in regions:
            if region.end > self._passed and region.kind != "reasoning":
                parts.append(self._raw[max(region.start, self._passed) : region.end])
        self._passed = max(self._passed, regions[-1].end if regions else 0)
        return "".join(parts)


class ToolHalf(BaseFormatDetector):  # type: ignore[misc]
    """Reads content and calls, and writes the grammar."""

    def __init__(self, tokenizer: Any = None) -> None:
        super().__init__()
        self._chat = None if tokenizer is None else chat_of(tokenizer)
        self._stream: Stream | None = None

    def has_tool_call(self, text: str) -> bool:
        """Whether the text may hold a call. It is read in any case."""
        return True

    def detect_and_parse(self, text: str, tools: list[Any]) -> StreamingParseResult:
        message = self._turn(tools).parse(text)
        calls = [
            ToolCallItem(tool_index=call.index, name=call.name, parameters=call.arguments)
            for call in message.tool_calls
        ]
        return StreamingParseResult(normal_text=message.reasoning + message.content, calls=calls)

    def parse_streaming_increment(self, new_text: str, tools: list[Any]) -> StreamingParseResult:
        if self._stream is None:
            self._stream = self._turn(tools).stream()
        return self._result(self._stream.feed(new_text))

    def finish(self, tools: list[Any]) -> StreamingParseResult:
        if self._stream is None:
            return StreamingParseResult()
        return self._result(self._stream.finish())

    def structure_info(self) -> Any:
        raise NotImplementedError("chatparsers writes whole structural tags")

    def get_structural_tag(
        self,
        tools: list[Any] | None = None,
        tool_choice: Any = "auto",
        thinking_mode: bool = False,
        parallel_tool_calls: bool = True,
    ) -> StructuralTag | None:
        """The grammar of the answer. ``thinking_mode``: it also holds the reasoning. Else SGLang reads that first, and
        the grammar begins after the token that closes it."""
        options: dict[str, Any] = {}
        if self._chat is not None:
            gated = not thinking_mode and _markers(self._chat)[1]
            prefix = "" if gated else self._chat.prepare(_HELLO).prefix
            options = {"tokenizer": self._chat.tokenizer, "prefix": prefix}
        grammar = self._turn(
            tools or [],
            tool_choice=tool_choice.function.name if isinstance(tool_choice, ToolChoice) else tool_choice,
            parallel_tool_calls=parallel_tool_calls is not False,
            thinking=None if thinking_mode else False,
            **options,
        ).grammar("structural_tag", engine=XGRAMMAR)
        return None if grammar is None else StructuralTag.model_validate_json(str(grammar))

    def get_auto_tool_call_structural_tag(
        self, tools: list[Any] | None = None, thinking_mode: bool = False, parallel_tool_calls: bool = True
    ) -> StructuralTag | None:
        return self.get_structural_tag(tools, "auto", thinking_mode, parallel_tool_calls)

    def _turn(self, tools: Iterable[Any], **request: Any) -> Any:
        if self._chat is None:
            raise ValueError("chatparsers: expected SGLang to give its tokenizer, found none")
        plain = [tool.model_dump(exclude_none=True) for tool in tools]
        return self._chat.format.bind(**{"tools": plain, "prefix": _frame(self._chat), **request})

    def _result(self, events: Iterable[Event]) -> StreamingParseResult:
        text: list[str] = []
        calls: list[ToolCallItem] = []
        for event in events:
            match event:
                case Content(text=piece) | Reasoning(text=piece):
                    text.append(piece)
                case CallStart(index=index, name=name):
                    calls.append(ToolCallItem(tool_index=index, name=name, parameters=""))
                    self.current_tool_id = index
                    self.current_tool_name_sent = True
                    self.prev_tool_call_arr.append({"name": name, "arguments": ""})
                    self.streamed_args_for_tool.append("")
                case CallArguments(index=index, text=piece):
                    calls.append(ToolCallItem(tool_index=index, parameters=piece))
                    # SGLang sends at the end what these two differ in: nothing.
                    self.streamed_args_for_tool[index] += piece
                    self.prev_tool_call_arr[index]["arguments"] += piece
        return StreamingParseResult(normal_text="".join(text), calls=calls)


def _markers(chat: Chat) -> tuple[str, str]:
    """The tokens that open and close the reasoning, ``""`` where none does."""
    spans: list[Span] = []
    for node in walk(chat.format.tree(Options(tools=True))):
        if isinstance(node, Think):
            spans.insert(0, node.span)
        elif isinstance(node, Body) and node.reasoning is not None:
            spans.append(node.reasoning)
    return (_token(spans[0].open), _token(spans[0].close)) if spans else ("", "")


def _token(node: Node | None) -> str:
    found = (part.text for part in walk(node) if isinstance(part, Token)) if node is not None else iter(())
    return next(found, "")


def _frame(chat: Chat) -> str:
    """What every prompt writes of the answer before the reasoning. Both halves know it, so it need not be passed on."""
    turn = chat.prepare(_HELLO)
    return "" if turn.stream().region == "reasoning" else turn.prefix


def _prefix(chat: Chat, thinking: bool | None) -> str:
    """What the prompt writes of the answer. ``thinking``: whether SGLang takes the answer for one that begins with
    reasoning; of the template's prompts, the first that agrees is taken."""
    prefixes = []
    for asked in (None, thinking):
        turn = chat.prepare(_HELLO, thinking=asked)
        prefixes.append(turn.prefix)
        if thinking is None or (turn.stream().region == "reasoning") == thinking:
            return turn.prefix
    return prefixes[0]
