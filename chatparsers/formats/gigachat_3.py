"""GigaChat 3, 3.1: a JSON call in a message of its own (3), or after a token (3.1).

    Text.<|message_sep|>

    function call<|role_sep|>
    {"name": "get_weather", "arguments": {"city": "Oslo"}}

Quirks:
- GigaChat 3.1 writes `Text.<|function_call|>{"name": "get_weather", "arguments": {"city": "Oslo"}}`.
- One call a turn: the template writes only the first. An answer is written after `assistant<|role_sep|>`.
- `<|message_sep|>` ends a message, also the last.
- Seen in the wild: no `<|message_sep|>` before the call, no `<|role_sep|>` after its role.
"""

from chatparsers.answers import Builder, Format, Node


def build(p: Builder) -> Node:
    return _turn(p, _message(p), _tagged(p))


def build_3_1(p: Builder) -> Node:
    return _turn(p, _tagged(p), _message(p))


def _turn(p: Builder, call: Node, other: Node) -> Node:
    sep = p.token("<|message_sep|>")
    json = p.json_call(name="name", args="arguments")
    bare = "function call" << p.optional(p.token("<|role_sep|>")) << json
    end = p.reads(p.optional(sep), p.optional(sep + p.space()))
    calls = p.reads(call, call, other, sep << bare) + end
    return p.body(calls, start=p.reads(call, call, other, bare) + end, marks=sep + p.space())


def _message(p: Builder) -> Node:
    header = p.token("<|message_sep|>") + p.space("\n\n") + "function call" + p.token("<|role_sep|>")
    return header + p.space("\n") + p.json_call(name="name", args="arguments")


def _tagged(p: Builder) -> Node:
    return p.token("<|function_call|>") << p.json_call(name="name", args="arguments")


FORMATS = (
    Format(
        name="gigachat-3",
        title="GigaChat 3",
        url="https://huggingface.co/ai-sage/GigaChat3-10B-A1.8B",
        build=build,
        markers=("<|role_sep|>", "<|message_sep|>", "function call<|role_sep|>"),
        stops=("</s>",),
        models=("gigachat-?3",),
    ),
    Format(
        name="gigachat-3-1",
        title="GigaChat 3.1",
        url="https://huggingface.co/ai-sage/GigaChat3.1-10B-A1.8B",
        build=build_3_1,
        markers=("<|role_sep|>", "<|message_sep|>", "<|function_call|>"),
        stops=("</s>",),
        models=("gigachat-?3-1",),
    ),
)
