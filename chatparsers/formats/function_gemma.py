"""FunctionGemma: calls in Gemma's own object syntax.

    <start_function_call>call:get_weather{city:<escape>Oslo<escape>,days:2}<end_function_call>

Quirks:
- Keys have no quotes. Strings are verbatim between two `<escape>` tokens.
- The model stops at `<start_function_response>`, which the application answers.
"""

from chatparsers.answers import Builder, Format, Gemma, Node, Tool


def build(p: Builder) -> Node:
    syntax = Gemma(quote="<escape>", closer="<end_function_call>", opener="<start_function_call>")

    def call(tool: Tool) -> Node:
        name_end = p.reads("", p.space() + p.peek("{" | p.token("<end_function_call>")))
        return (p.token("<start_function_call>") << "call:" << p.name(tool)) + name_end + p.args(tool, syntax)

    return p.body(p.calls(p.each_tool(call) << p.token("<end_function_call>")))


FORMAT = Format(
    name="function-gemma",
    title="FunctionGemma",
    url="https://huggingface.co/google/functiongemma-270m-it",
    build=build,
    markers=("<start_of_turn>", "<start_function_call>"),
    stops=("<end_of_turn>", "<start_function_response>", "<eos>"),
    aliases=("functiongemma",),
    models=("function-?gemma",),
)
