"""Content only: for models that learned neither tool calls nor reasoning.

    It is raining in Oslo.

Quirks:
- Everything that the model writes is content, also if the request has tools.
"""

from chatparsers.answers import Builder, Format, Node


def build(p: Builder) -> Node:
    return p.body()


FORMAT = Format(
    name="content-only",
    title="Content only",
    url="https://huggingface.co/docs/transformers/chat_templating",
    build=build,
    stops=("<end_of_turn>", "<|end|>", "<|endoftext|>", "<|im_end|>", "<|eot_id|>", "</s>"),
)
