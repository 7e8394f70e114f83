"""Phi-4-mini: an array of JSON calls after a word, and no closer.

    functools[{"name": "get_weather", "arguments": {"city": "Oslo"}}]

or

    <|tool_call|>[{"name": "get_weather", "arguments": {"city": "Oslo"}}]<|/tool_call|>

Quirks:
- The second form, also with one call without its array, is written by models that were not asked for the first.
- vLLM's template tells the first form and writes past calls without the word and the brackets. Such calls are read at
  the start of a turn.
- Seen in the wild: `parameters` for `arguments`, text before the word.
- Facts: vLLM's chat template for the model and its parser `phi4_mini_json`; llama.cpp's and Ollama's templates.
"""

from chatparsers.answers import Builder, Format, Node
from chatparsers.formats._shapes import listed


def build(p: Builder) -> Node:
    call = p.json_call(name="name", args="arguments")
    words = "functools" << p.array(call)
    tagged = p.token("<|tool_call|>") << listed(p, call) << p.token("<|/tool_call|>")
    calls = p.reads(words, words, tagged)
    return p.body(calls, start=p.reads(calls, p.json_calls()), lead=" ")


FORMAT = Format(
    name="phi-4-mini",
    title="Phi-4-mini",
    url="https://huggingface.co/microsoft/Phi-4-mini-instruct",
    build=build,
    markers=("<|assistant|>", "functools["),
    stops=("<|end|>", "<|endoftext|>"),
    aliases=("phi4-mini-json",),
    models=("phi-?4-(mini|multimodal)",),
)
