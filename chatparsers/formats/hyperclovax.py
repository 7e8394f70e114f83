"""HyperCLOVA X: blocks with a role; the role says what the block is, and calls are an array of JSON.

    <|im_start|>assistant/think
    The user wants the weather.<|im_end|>
    <|im_start|>assistant -> tool/function_call
    [{"name": "get_weather", "arguments": {"city": "Oslo"}}]<|im_end|><|stop|>

    <|im_start|>assistant
    Sunny.<|im_end|><|endofturn|>

Quirks:
- The prompt ends in `<|im_start|>assistant`, and the model writes the rest of the role. A prompt that asks for a thought
  ends in `assistant/think`, one that asks for none in a line break.
- `<|im_end|>` ends a block. `<|endofturn|>` ends an answer, `<|stop|>` calls.
- Seen in the model's own page: one call without the array, with `input` for `arguments`.
"""

from chatparsers.answers import Builder, Format, Node, Tag
from chatparsers.formats._shapes import listed


def build(p: Builder) -> Node:
    role, end = p.token("<|im_start|>") + "assistant", p.token("<|im_end|>")
    start = p.expected(role)
    closed = end + p.space("\n")
    array = listed(p, p.json_call(name="name", args="arguments"))
    calls = start + " -> tool/function_call\n" + array + p.expected(p.space() + end)
    reasoning = p.span(role + "/think\n", closed)
    content = p.span(role + "\n", closed, optional=True)
    # Without a prefix, the first block has no role.
    thought = p.literal("/think\n") + p.tag(Tag.REASONING, p.until("<|im_end|>")) + closed
    begun = p.reads("", p.optional(thought | "\n"))
    return begun + p.body(calls, reasoning=reasoning, content=content)


FORMAT = Format(
    name="hyperclovax",
    title="HyperCLOVA X SEED Think",
    url="https://huggingface.co/naver-hyperclovax/HyperCLOVAX-SEED-Think-14B",
    build=build,
    markers=("<|im_start|>assistant -> tool/function_call\n",),
    stops=("<|endofturn|>", "<|stop|>"),
    models=("hyperclovax.*think-14b",),
)
