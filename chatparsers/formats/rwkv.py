"""RWKV-7: a call is JSON in a fence, under a line that says so.

    <think>The user wants the weather.</think>Let me look.
    **Tool Call:**
    ```json
    {"name": "get_weather", "arguments": {"city": "Oslo"}}
    ```

Quirks:
- The markers are ordinary text, of several tokens each.
- Older checkpoints write `<tool_call>` and the object on one line.
- Seen in the wild: the object on several lines, arguments as a JSON string.
- Facts: vLLM's parsers `rwkv` (tools and reasoning), and the tests of them.
"""

from chatparsers.answers import Builder, Format, Node


def build(p: Builder) -> Node:
    call = p.json_call(name="name", args="arguments")
    title = "**Tool Call:**"
    fenced = title + p.space("\n") + "```json" + p.space("\n") + call + p.space("\n") + "```"
    tagged = "<tool_call>" << call << p.reads("", p.optional("</tool_call>"))
    return p.think(p.literal("<think>"), p.literal("</think>")) + p.body(
        p.calls(p.reads(fenced, fenced, tagged), p.space("\n")), lead="\n"
    )


FORMAT = Format(
    name="rwkv",
    title="RWKV-7",
    url="https://github.com/vllm-project/vllm/blob/main/vllm/tool_parsers/rwkv_tool_parser.py",
    build=build,
    markers=("**Tool Call:**",),
    stops=("\n\nUser:",),
    aliases=("rwkv-7",),
    models=("rwkv-?[7-9]",),
)
