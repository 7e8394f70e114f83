"""dots: invocations with tagged arguments in dots' own tags.

    <think>
    Thoughts.
    </think>

    Text.
    <dots_function_call>
    <invoke name="get_weather">
    <parameter name="city">Oslo</parameter>
    </invoke>
    </dots_function_call>

Quirks:
- Strings are raw text, verbatim between the tags; other types are JSON.
- Several calls are in one section, with a newline between them.
- Seen in the wild: the opener twice or never, names in single quotes or without quotes, a JSON object with `name` and `arguments` in place of the
  invocation, values of Python (`True`, `None`).
- What is known comes from the parsers of vLLM and SGLang, and from turns that users report, because no template is public.
"""

from chatparsers.answers import Builder, Format, Node
from chatparsers.formats._shapes import again, invoke


def build(p: Builder) -> Node:
    open, close = p.token("<dots_function_call>"), p.token("</dots_function_call>")
    call = p.each_tool(lambda tool: invoke(p, tool, section="</dots_function_call>"))
    calls = p.calls(p.reads(call, call, p.json_call(name="name", args="arguments")), p.space("\n"))
    section = open + again(p, open, 8) + p.space("\n") + calls + p.space("\n") + close
    bare = p.calls(call, p.space("\n")) + p.optional(p.space() + close)
    section = p.reads(section, section, bare)
    return p.think("<think>\n", "\n</think>\n\n") + p.body(section, lead="\n")


FORMAT = Format(
    name="dots",
    title="dots",
    url="https://github.com/vllm-project/vllm/blob/main/vllm/tool_parsers/dots_tool_parser.py",
    build=build,
    markers=("<dots_function_call>",),
    stops=("<|endofresponse|>",),
    models=("dots",),
)
