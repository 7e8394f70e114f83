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
- A newline after the fence is the call's; most texts of the template end before it.
- The tool `directly-answer` is no call: the answer follows as content.
- Seen in the wild: `Action: ```json` on one line, `]` on a line of its own, `<|CHATBOT_TOKEN|>` first,
  reasoning as text (`Plan: …`) before it.
"""

from chatparsers.answers import Builder, Format, Node


def build(p: Builder) -> Node:
    to_user = "{" << p.member("tool_name") + '"directly-answer"'
    answer = to_user << "," << p.member("parameters") + "{" << "}" << "}"
    call = p.json_call(name="tool_name", args="parameters")
    array = p.array(p.reads(call, answer, p.negate(to_user) + call), indent="\n    ")
    block = p.space("\n") + "```json" + p.space("\n") + array << "```"
    turn = p.reads(
        "", p.optional(p.token("<|START_OF_TURN_TOKEN|>")) + p.optional(p.token("<|CHATBOT_TOKEN|>"))
    )
    return turn + p.body("Action:" + block + p.optional("\n"), lead="\n")


FORMAT = Format(
    name="command-r-plus",
    title="Command R, Command R+",
    url="https://huggingface.co/CohereLabs/c4ai-command-r-plus",
    build=build,
    markers=("<|CHATBOT_TOKEN|>", "Action:", '"tool_name": '),
    stops=("<|END_OF_TURN_TOKEN|>",),
    models=("c4ai-command-r", "command-r-(plus|v01|08|35b|latest)"),
)
