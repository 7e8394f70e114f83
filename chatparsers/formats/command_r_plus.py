"""Command R, Command R+: an array of JSON calls in a Markdown block.

    Text.
    Action:
    ```json
    [
        {
            "tool_name": "get_weather",
            "parameters": {"city": "Oslo"}
        }
    ]```

Quirks:
- The tool `directly-answer` is no call: the answer follows as content.
- Seen in the wild: `Action: ```json` on one line, `]` on a line of its own, reasoning as text (`Plan: …`) before it.
"""

from chatparsers.core.format import Format
from chatparsers.core.idioms import Builder
from chatparsers.core.nodes import Lenient, Node


def build(p: Builder) -> Node:
    comma = p.space() + "," + p.space()
    to_user = "{" + p.space() + p.member("tool_name") + '"directly-answer"'
    answer = to_user + comma + p.member("parameters") + "{" + p.space() + "}" + p.space() + "}"
    call = p.json_call(name="tool_name", args="parameters")
    array = p.array(Lenient(call, answer | p.negate(to_user) + call), indent="\n    ")
    block = p.space("\n") + "```json" + p.space("\n") + array + p.space() + "```"
    return p.body("Action:" + block + p.trim("\n"), lead="\n")


FORMAT = Format(
    name="command-r-plus",
    title="Command R, Command R+",
    url="https://huggingface.co/CohereLabs/c4ai-command-r-plus",
    build=build,
    markers=("<|CHATBOT_TOKEN|>", "Action:", '"tool_name": '),
    stops=("<|END_OF_TURN_TOKEN|>",),
)
