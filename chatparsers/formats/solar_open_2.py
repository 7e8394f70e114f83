"""Solar Open 2: a name on a line, then each argument between tokens of its own.

    <|think:start|>Thoughts.<|think:end|>Text.<|tool_call:start|>get_weather
    <|tool_arg:start|>city<|tool_arg:value|>Oslo<|tool_arg:end|>
    <|tool_call:end|>

Quirks:
- The prompt opens the thought, or holds an empty one if thinking is off.
- Strings are raw text, verbatim between the tokens; other types are JSON.
- Seen in the wild: a value without its closer before the next argument, a call inside open reasoning, arguments as JSON.
- Facts: the parsers `solar_open2` of vLLM and of SGLang's forks, and their tests.
"""

from chatparsers.answers import Argument, Builder, Format, Node, Raw, Tool


def build(p: Builder) -> Node:
    opener, closer = p.token("<|tool_call:start|>"), p.token("<|tool_call:end|>")
    begin, end = p.token("<|tool_arg:start|>"), p.token("<|tool_arg:end|>")
    named = tuple((line + "<|tool_arg:start|>", "<|tool_arg:value|>") for line in ("\n", ""))
    raw = Raw(until="<|tool_arg:end|>", named=named)
    ended = p.reads(end, end, p.space() + p.peek(begin))
    begun = p.reads("\n", p.space() + p.peek(begin | closer | "{"))

    def argument(arg: Argument) -> Node:
        name = begin + p.arg_name(arg, r"[^<>\n]") + p.token("<|tool_arg:value|>")
        return name + p.value(arg, raw) + ended + p.space("\n")

    def call(tool: Tool) -> Node:
        return p.space() + p.name(tool) + begun + p.each_arg(tool, argument) + closer

    calls = p.calls(opener + p.each_tool(call), p.space("\n"))
    return p.think("<|think:start|>", "<|think:end|>") + p.body(calls)


FORMAT = Format(
    name="solar-open-2",
    title="Solar Open 2",
    url="https://huggingface.co/upstage/Solar-Open2-250B",
    build=build,
    markers=("<|im:start|>", "<|tool_call:start|>", "<|tool_arg:value|>"),
    stops=("<|im:end|>",),
    aliases=("solar-open2",),
    models=("solar-open-?2",),
)
