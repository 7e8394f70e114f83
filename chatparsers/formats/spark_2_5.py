"""Spark X2.5: tagged keys and values, as in GLM-4.7.

    <think>Thoughts.</think>Text.<tool_call>get_weather<arg_key>city</arg_key><arg_value>Oslo</arg_value></tool_call>

Quirks:
- The prompt opens the thought, or closes it at once. A turn without a thought begins with `</think>` alone.
- Strings are raw text, verbatim between the tags; other types are JSON.
- Seen in the wild: a line break after the name and before `</tool_call>`, as the maker's own parser reads it.
"""

from chatparsers.answers import Format
from chatparsers.formats.glm_4_7 import build

FORMAT = Format(
    name="spark-2-5",
    title="Spark X2.5",
    url="https://huggingface.co/XHToken/Spark-X2.5-4B",
    build=build,
    markers=("<|Bot|>", "</arg_key><arg_value>"),
    stops=("<｜end▁of▁sentence｜>",),
    aliases=("spark-x2.5", "spark25"),
    models=("spark-x?2-5",),
)
