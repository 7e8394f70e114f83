"""Granite 20B function calling: JSON calls, each after a tag, and no closer.

    <function_call> {"name": "get_weather", "arguments": {"city": "Oslo"}}<function_call> {"name": "get_time", "arguments": {}}

Quirks:
- If no tool fits, the model is asked to call `no_function`. It is passed on as a call.
- A space comes before the end of a turn without calls.
- Seen in the wild: `arguments` before `name`, line breaks between the calls.
- Facts: vLLM's chat template for the model, its parser `granite-20b-fc` and the tests of it.
"""

from chatparsers.answers import Builder, Format, Node


def build(p: Builder) -> Node:
    call = p.token("<function_call>") + p.space(" ") + p.json_call(name="name", args="arguments")
    return p.body(p.calls(call, p.space()), lead=" ")


FORMAT = Format(
    name="granite-20b-fc",
    title="Granite 20B function calling",
    url="https://huggingface.co/ibm-granite/granite-20b-functioncalling",
    build=build,
    markers=("<|function_call_library|>", "<function_call>"),
    stops=(" <|endoftext|>", "<|endoftext|>"),
    models=("granite-20b-(fc|function-?calling)",),
)
