"""LLM-jp 4.1: harmony, as in GPT-OSS, with a blank after each token.

    <|channel|> analysis<|message|> The user wants the weather.<|end|><|start|> assistant to=functions.get_weather<|channel|> commentary <|constrain|>  json<|message|> {"city": "Oslo"}<|call|>

Quirks:
- The template writes no blank. The tokenizer's decoder adds one after each special token, and the model's words begin with it.
- Several calls are messages that `<|end|>` closes; the last one ends in `<|call|>`.
- Seen in the wild: no channel in the header of a call.
- Facts: the model's template; llama.cpp's `llm-jp-harmony.cpp`, mlx-lm's `llm_jp_harmony.py`, SGLang's `llm_jp_harmony_detector.py`
  and their tests.
"""

from chatparsers.answers import Builder, Format, Node
from chatparsers.formats._harmony import harmony


def build(p: Builder) -> Node:
    return harmony(p, blank=" ", in_role=" ", between="<|end|>")


FORMAT = Format(
    name="llm-jp-4-1",
    title="LLM-jp 4.1",
    url="https://huggingface.co/llm-jp/llm-jp-4.1-8b-thinking",
    build=build,
    markers=("<|start|>assistant", "<|channel|>", "<|constrain|> json"),
    stops=("<|return|>", "<|call|>"),
    aliases=("llm-jp-harmony",),
    models=("llm-jp-4-1",),
)
