"""GLM-4.7, GLM-5, Spark X2.5: tagged keys and values as in GLM-4.5, without line breaks.

    <think>Thoughts.</think>Text.<tool_call>get_weather<arg_key>city</arg_key><arg_value>Oslo</arg_value></tool_call>

GLM-5.3-Flash:

    <think>The user wants the weather.</think>Text.<tool_call>get_weather>{"city": "Oslo"}

Quirks:
- The prompt opens the thought. A turn without a thought begins with `</think>` alone.
- Strings are raw text, verbatim between the tags; other types are JSON.
- GLM ends its turn by opening the next: `<|user|>`, or `<|observation|>` after calls.
- GLM-5.3-Flash: nothing closes a call, as the object says where it ends. The template tells and writes the tagged form;
  the model mostly writes the other. Each of these formats reads both.
- Seen in the wild: line breaks between the tags, a call inside open reasoning, `</think>` twice; no `<arg_value>`
  or `</arg_value>`, no first `<arg_key>` or `<tool_call>` in its place, `</arg_key>` twice, `</arg_value>` after the name;
  `</tool_call>` after the object, also with a line break in place of `>`.
- Facts of GLM-5.3-Flash: SGLang's `glm53_flash_detector.py` and its pull request 37925.
"""

from chatparsers.core import Builder, Format, Node, Tool
from chatparsers.formats._shapes import again, keyed_call


def _headed_call(p: Builder) -> Node:
    def one(tool: Tool) -> Node:
        end = p.reads(">", p.space() + ">")
        return p.space() + p.name(tool) + end + p.space() + p.args(tool)

    return (p.token("<tool_call>") << p.each_tool(one)) + again(p, p.token("</tool_call>"), 1)


def _turn(p: Builder, calls: Node) -> Node:
    return p.optional(p.token("</think>")) + p.think("<think>", "</think>") + p.body(calls)


def build(p: Builder) -> Node:
    keyed = keyed_call(p)
    return _turn(p, p.calls(p.reads(keyed, keyed, _headed_call(p)), p.space()))


def build_flash(p: Builder) -> Node:
    headed = _headed_call(p)
    return _turn(p, p.calls(p.reads(headed, headed, keyed_call(p)), p.space("\n")))


_ENDS = ("<|user|>", "<|observation|>", "<|endoftext|>")
FORMATS = (
    Format(
        name="glm-4-7",
        title="GLM-4.7, GLM-5",
        url="https://huggingface.co/zai-org/GLM-4.7-Flash",
        build=build,
        markers=("[gMASK]", "</arg_key><arg_value>"),
        stops=_ENDS,
        aliases=("glm-4.7", "glm-5", "glm47"),
        models=("glm-4-[7-9]", "glm-?5"),
    ),
    Format(
        name="spark-2-5",
        title="Spark X2.5",
        url="https://huggingface.co/XHToken/Spark-X2.5-4B",
        build=build,
        markers=("<|Bot|>", "</arg_key><arg_value>"),
        stops=("<｜end▁of▁sentence｜>",),
        aliases=("spark-x2.5", "spark25"),
        models=("spark-x?2-5",),
    ),
    Format(
        name="glm-5-3-flash",
        title="GLM-5.3-Flash",
        url="https://github.com/sgl-project/sglang/pull/37925",
        build=build_flash,
        markers=("[gMASK]", "<tool_call>", ">{"),
        stops=_ENDS,
        aliases=("glm53", "glm-5.3-flash"),
        models=("glm-?5-3-flash",),
    ),
)
