"""PLaMo 3: a name and JSON, each between markers of several tokens.

    <|plamo:begin_think:plamo|>The user wants the weather.<|plamo:end_think:plamo|>Text.<|plamo:begin_tool_requests:plamo|><|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>get_weather<|plamo:end_tool_name:plamo|><|plamo:begin_tool_arguments:plamo|><|plamo:constrain|>json<|plamo:msg|>{"city": "Oslo"}<|plamo:end_tool_arguments:plamo|><|plamo:end_tool_request:plamo|><|plamo:end_tool_requests:plamo|>

Quirks:
- A marker is a special token, a word and another special token. `<|plamo:constrain|>`, `<|plamo:msg|>` and
  `<|plamo:tag|>` are one token each.
- The prompt may open the thought.
- Seen in the wild: no `<|plamo:constrain|>json`, a call inside open reasoning, no markers around the calls.
"""

from chatparsers.answers import Builder, Format, Node, Tool


def build(p: Builder) -> Node:
    def begin(word: str) -> Node:
        return p.token("<|plamo:begin_") + word + p.token(":plamo|>")

    def end(word: str) -> Node:
        return p.token("<|plamo:end_") + word + p.token(":plamo|>")

    json = p.expected(p.token("<|plamo:constrain|>") + "json") + p.token("<|plamo:msg|>")

    def call(tool: Tool) -> Node:
        name = begin("tool_name") + p.name(tool) + end("tool_name")
        return begin("tool_request") << name << begin("tool_arguments") + json + p.args(tool)

    ended = end("tool_arguments") << end("tool_request")
    calls = p.calls(p.each_tool(call) << ended, p.space())
    section = begin("tool_requests") << calls << end("tool_requests")
    section = p.reads(section, section, calls)
    orphan = p.token("<|plamo:end_") + p.chars("a-z_") + p.token(":plamo|>")
    return p.think(begin("think"), end("think")) + p.body(section, closers=orphan)


FORMAT = Format(
    name="plamo-3",
    title="PLaMo 3",
    url="https://github.com/vllm-project/vllm/blob/main/vllm/parser/plamo3.py",
    build=build,
    markers=("<|plamo:", "<|plamo:begin_tool_requests:plamo|>"),
    stops=("<|plamo:tag|>",),
    aliases=("plamo3",),
    models=("plamo-3",),
)
