"""Content only: for models that were taught no tool calls and no reasoning.

    It is raining in Oslo.

Quirks:
- Everything the model writes is content; a request with tools is answered with content as well.
"""

from chatparsers.core import Builder, Format, Node


def build(p: Builder) -> Node:
    return p.body()


FORMAT = Format(
    name="content-only",
    title="Content only",
    url="https://huggingface.co/docs/transformers/chat_templating",
    build=build,
    stops=("<end_of_turn>", "<|end|>", "<|endoftext|>", "<|im_end|>", "<|eot_id|>", "</s>"),
)
