"""Step-3: invocations with tagged arguments, in special tokens.

    <think>
    Thoughts.
    </think>
    Text.<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="get_weather"><steptml:parameter name="city">Oslo</steptml:parameter></steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>

Quirks:
- The prompt opens `<think>`.
- Strings are raw text, verbatim between the tags; other types are JSON.
- Several calls are in one section. Step 3.5 and later write tagged arguments (`nemotron-v3`).
- Seen in the wild: no markers around the section, white space between the tags, the values of Python.
"""

from chatparsers.answers import Builder, Format, Node
from chatparsers.formats._shapes import invoke


def build(p: Builder) -> Node:
    begin, end = p.token("<｜tool_call_begin｜>"), p.token("<｜tool_call_end｜>")
    one = p.each_tool(lambda tool: invoke(p, tool, "steptml:", gap=""))
    call = begin + "function" + p.token("<｜tool_sep｜>") << one << end
    calls = p.calls(call, p.space())
    close = p.expected(p.space() + p.token("<｜tool_calls_end｜>"))
    section = (p.token("<｜tool_calls_begin｜>") << calls) + close
    section = p.reads(section, section, calls + close)
    return p.think("<think>\n", "\n</think>\n") + p.body(section)


FORMAT = Format(
    name="step-3",
    title="Step-3",
    url="https://huggingface.co/stepfun-ai/step3",
    build=build,
    markers=("<｜tool_calls_begin｜>", "<steptml:invoke"),
    stops=("<|EOT|>",),
    aliases=("step3",),
    models=("step-?3(?!-[57])",),
)
