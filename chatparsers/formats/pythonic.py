"""Llama 4, Llama 3.2, ToolACE: the whole turn is a list of calls in Python.

    [get_weather(city="Oslo", days=2), get_time()]

Quirks:
- Values are Python's literals.
- Text in brackets is a call if it begins the turn, and the request has a tool of that name or the first argument is named.
- Llama 4's template tells and writes another form, which is read too, with or without the markers before it:
  `<|python_start|><|python_end|>{"name": "get_weather", "parameters": {"city": "Oslo"}}`.
- Seen in the wild: `<|python_start|>` before the list and `<|python_end|>` after it, also after text; after text, the list
  alone on its line, of declared tools; a comma after the last argument.
- Facts: vLLM's chat templates and parsers `pythonic` and `llama4_pythonic`, and the tests of them.
"""

from chatparsers.answers import Builder, Format, Node
from chatparsers.formats._shapes import python_call, python_list


def build(p: Builder) -> Node:
    begun = p.space() + "(" << (p.chars(r"\w") << "=" | ")" << ("," | "]" + p.negate("(")))
    listed = p.array(python_call(p, begun=p.declared() | p.peek(begun)))
    start, end = p.token("<|python_start|>"), p.token("<|python_end|>")
    tagged = start << listed << p.optional(end)
    between = p.space() + p.optional(p.choice(";", ",")) + p.space()
    objects = p.calls(p.json_call(name="name", args="parameters"), between)
    tagged_objects = start << p.optional(end) << objects << p.optional(end)
    after_text = p.if_tools(p.reads("", tagged, tagged_objects, python_list(p)))
    return p.body(
        start=p.space() + p.reads(listed, tagged, listed, tagged_objects, objects), marks=after_text
    )


FORMAT = Format(
    name="pythonic",
    title="Llama 4, Llama 3.2, ToolACE (calls in Python)",
    url="https://huggingface.co/meta-llama/Llama-4-Scout-17B-16E-Instruct",
    build=build,
    markers=("[func_name1(",),
    stops=("<|eot|>", "<|eom|>", "<|eot_id|>", "<|eom_id|>"),
    aliases=("llama-4", "toolace", "llama4-pythonic"),
    models=("llama-?4", "toolace"),
)
