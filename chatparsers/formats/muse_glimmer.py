"""Muse Glimmer (ATEM): as Muse Spark, but a message to nobody is for the user.

     to=self<|message|>The user wants the weather.<|eom|><|start|>assistant to=get_weather<|message|><atem:function_calls>
    <atem:invoke name="get_weather">
    <atem:parameter name="city">Oslo</atem:parameter>
    </atem:invoke>
    </atem:function_calls>

Quirks:
- `<|start|>assistant<|message|>`, or `<|message|>` alone, begins an answer.
- Seen in the wild: the mistakes listed for `muse`.
"""

from chatparsers.answers import Builder, Format, Node
from chatparsers.formats import muse


def build(p: Builder) -> Node:
    return muse.build(p, nobody="user")


FORMAT = Format(
    name="muse-glimmer",
    title="Muse Glimmer",
    url="https://huggingface.co/meta-models/Muse-Glimmer-30B",
    build=build,
    markers=("<|start|>assistant to=", "<atem:function_calls>"),
    stops=("<|eot|>",),
    models=("muse-glimmer",),
)
