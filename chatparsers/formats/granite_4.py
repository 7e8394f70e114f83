"""Granite 4.0, 4.1: JSON calls in tags, as in Hermes 2 Pro.

    Text.
    <tool_call>
    {"name": "get_weather", "arguments": {"city": "Oslo"}}
    </tool_call>

Quirks:
- Several calls are several tag pairs, with a newline between them. Granite 4.2 writes tagged arguments (`nemotron-v3`).
"""

from chatparsers.core import Format
from chatparsers.formats.hermes_2_pro import build

FORMAT = Format(
    name="granite-4",
    title="Granite 4.0, 4.1",
    url="https://huggingface.co/ibm-granite/granite-4.0-h-small",
    build=build,
    markers=("<|start_of_role|>", "<tool_call>"),
    stops=("<|end_of_text|>",),
    aliases=("granite4",),
    models=("granite-?4",),
)
