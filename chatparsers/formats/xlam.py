"""xLAM: an array of JSON calls, which is the whole message.

    [{"name": "get_weather", "arguments": {"city": "Oslo"}}]

Quirks:
- The whole message is the call. Other arrays are content.
- Seen in the wild: text before the array, which then is in a fence, in `<tool_call>` tags or after `[TOOL_CALLS]`.
"""

from chatparsers.answers import Builder, Format, Node


def build(p: Builder) -> Node:
    array = p.array(p.json_call(name="name", args="arguments"))
    fenced = "```" + p.optional("json") << array << "```"
    tagged = p.token("<tool_call>") << array << p.token("</tool_call>")
    marked = tagged | (p.token("[TOOL_CALLS]") << array)
    return p.body(start=p.space() + p.reads(array, array, fenced, marked), marks=p.if_tools(marked))


FORMAT = Format(
    name="xlam",
    title="xLAM 2",
    url="https://huggingface.co/Salesforce/Llama-xLAM-2-8b-fc-r",
    build=build,
    markers=("make calls in a single JSON array",),
    stops=("<|eot_id|>", "<|im_end|>"),
    models=("(llama-|qwen-)?xlam",),
)
