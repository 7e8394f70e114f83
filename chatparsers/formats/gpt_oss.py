"""GPT-OSS (harmony): channels.

    <|channel|>analysis<|message|>The user wants the weather.<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Oslo"}<|call|>

Quirks:
- The prompt ends in `<|start|>assistant`, and every further block begins with it.
- The recipient is in the channel header, or in the role header (as the template writes it).
- Commentary without a recipient is content (a preamble). So is a message `to=user`, or `to=assistant` in the channel.
  With `to=assistant` in the role, commentary is the answer of a tool, which the model invents: it is left out.
- Structured output is `final <|constrain|>json`.
- Turns end in `<|return|>`, `<|call|>`, `<|end|>` or nothing. Where `<|call|>` comes as text, the turn may go on.
- Seen in the wild: the role or a header twice, words in a header, a word between two blocks, the tool in place of the role
  or the channel, dashes for its token, no channel (if the role is written). A header without `<|message|>` is reasoning.
- Some servers strip the tokens: `analysisWords.assistantfinalWords.` is read, with a diagnostic.
"""

from chatparsers.answers import Builder, Format, Node
from chatparsers.formats._harmony import harmony


def build(p: Builder) -> Node:
    return harmony(p)


FORMAT = Format(
    name="gpt-oss",
    title="GPT-OSS",
    url="https://huggingface.co/openai/gpt-oss-120b",
    build=build,
    markers=("<|start|>assistant", "<|channel|>"),
    stops=("<|return|>", "<|call|>"),
    aliases=("openai", "openai-gptoss"),
    models=("gpt-oss",),
)
