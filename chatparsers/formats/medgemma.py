"""MedGemma: Gemma 3 with thoughts between two tokens that Gemma does not use.

    <unused94>thought
    They ask for Oslo.<unused95>Text.
    <tool_call>
    {"name": "get_weather", "arguments": {"city": "Oslo"}}
    </tool_call>

Quirks:
- The template is Gemma 3's and knows no thoughts: the model begins one by itself.
- The model learned no tools. Calls are those of Hermes, which a prompt explains.
- Facts: the maker's notebooks, which divide an answer at these tokens.
"""

from chatparsers.answers import Builder, Format, Node
from chatparsers.formats.hermes_2_pro import build as hermes


def build(p: Builder) -> Node:
    begun = p.token("<unused94>") + p.reads("thought", "thought", "") + p.trim("\n")
    return p.think(begun, p.token("<unused95>")) + hermes(p)


FORMAT = Format(
    name="medgemma",
    title="MedGemma",
    url="https://huggingface.co/google/medgemma-27b-text-it",
    build=build,
    markers=("<start_of_turn>", "<unused94>thought"),
    stops=("<end_of_turn>", "<eos>"),
    models=("medgemma",),
)
