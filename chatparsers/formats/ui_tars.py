"""UI-TARS: a thought, then actions as calls in Python; words mark both.

    Thought: The user wants the weather.
    Action: get_weather(city='Oslo', days=2)

    Action: get_time(city='Oslo')

Quirks:
- Nothing ends a thought but `Action:`. An empty line comes between two actions; `finished(content='…')` is one too.
- Coordinates are strings. Their form differs by checkpoint: `<point>200 300</point>`, `(200,300)`, `<|box_start|>(200,300)<|box_end|>`.
- The words are ordinary text: `Action: NAME(` begins a call if the request has that tool, or the first argument is named.
- The grammar writes strings in double quotes, as it does in all Python.
- Older checkpoints write `Reflection:` and `Action_Summary:` in place of `Thought:`.
- Seen in the wild: `Action:` before each action, no space after the colon.
- Facts: bytedance/UI-TARS, codes/ui_tars (prompt and action parser); raullenchai/Rapid-MLX, pull request 812.
"""

from chatparsers.answers import Builder, Format, Node
from chatparsers.formats._shapes import python_call

_THOUGHTS = ("Thought:", "Reflection:", "Action_Summary:")


def build(p: Builder) -> Node:
    opener = p.reads("Thought: ", p.line_start() + p.choice(*_THOUGHTS) + p.space())
    action = "Action:" + p.space(" ") + p.reads("", p.negate("Action:"))
    named = p.space() + "(" << (p.chars(r"\w") << "=" | ")")
    call, gap = python_call(p, begun=p.declared() | p.peek(named)), p.space("\n\n")
    calls = action + p.calls(call, p.reads(gap, p.space() + p.optional(action)))
    return p.body(calls, reasoning=p.span(opener, None), lead="\n")


FORMAT = Format(
    name="ui-tars",
    title="UI-TARS",
    url="https://huggingface.co/ByteDance-Seed/UI-TARS-1.5-7B",
    build=build,
    markers=("Thought: ", "Action: "),
    stops=("<|im_end|>",),
    models=("ui-tars",),
)
