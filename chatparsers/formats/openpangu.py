"""openPangu: calls as a JSON array between two tokens.

    <think>The user wants the weather.</think>Text.<|tool_call_start|>[{"name": "get_weather", "arguments": {"city": "Oslo"}}]<|tool_call_end|>

Embedded:

    [unused16]The user wants the weather.[unused17]Text.[unused11][{"name": "get_weather", "arguments": {"city": "Oslo"}}][unused12]

Quirks:
- openPangu 2.0: the prompt opens the thought. A turn without a thought begins with `</think>` alone.
- openPangu Embedded has no names for its tokens: `[unused16]` and `[unused17]` are around the thought, `[unused11]` and
  `[unused12]` around the calls.
- Facts: the parsers `openpangu_v2` and `pangu` of vLLM's forks and their tests, and the prompts of the maker's agents.
"""

from dataclasses import dataclass

from chatparsers.answers import Builder, Format, Node
from chatparsers.formats._shapes import listed


@dataclass(frozen=True)
class Build:
    think: tuple[str, str]
    calls: tuple[str, str]

    def __call__(self, p: Builder) -> Node:
        begin, end = (p.token(text) for text in self.calls)
        section = begin << listed(p, p.json_call(name="name", args="arguments")) << end
        silent = p.optional(p.token(self.think[1]))
        return silent + p.think(*self.think) + p.body(section)


FORMATS = (
    Format(
        name="openpangu-2",
        title="openPangu 2.0",
        url="https://huggingface.co/openpangu/openPangu-2.0-Flash",
        build=Build(("<think>", "</think>"), ("<|tool_call_start|>", "<|tool_call_end|>")),
        markers=("<|message_start|>", "<|tool_call_start|>"),
        stops=("<|message_end|>", "<|pangu_text_end|>"),
        aliases=("openpangu-v2",),
        models=("openpangu-?(v?2)",),
    ),
    Format(
        name="openpangu-embedded",
        title="openPangu Embedded",
        url="https://huggingface.co/openpangu/openPangu-Embedded-7B-V1.1",
        build=Build(("[unused16]", "[unused17]"), ("[unused11]", "[unused12]")),
        markers=("[unused9]", "[unused11]"),
        stops=("[unused10]",),
        aliases=("pangu",),
        models=("openpangu-embedded",),
    ),
)
