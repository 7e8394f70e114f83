"""InternLM2, InternLM2.5, Intern-S1: a JSON call between tokens.

    <think>
    Thoughts.
    </think>

    Text.<|action_start|><|plugin|>
    {"name": "get_weather", "parameters": {"city": "Oslo"}}<|action_end|>

Quirks:
- Only Intern-S1 reasons.
- Seen in the wild: `arguments` for `parameters`; no line break after `<|plugin|>`, or one before `<|action_end|>`.
- Code for the interpreter, after `<|action_start|><|interpreter|>`, is content.
"""

from chatparsers.answers import Builder, Format, Node


def build(p: Builder) -> Node:
    begin = p.token("<|action_start|>") << p.token("<|plugin|>")
    object = p.json_call(name="name", args="parameters")
    call = begin + p.space("\n") + p.reads(object, p.json_calls()) << p.token("<|action_end|>")
    return p.think("<think>\n", "\n</think>\n\n") + p.body(p.calls(call, p.space()))


FORMAT = Format(
    name="internlm2",
    title="InternLM2, InternLM2.5, Intern-S1",
    url="https://github.com/InternLM/InternLM/blob/main/chat/chat_format.md",
    build=build,
    markers=("<|im_start|>", "<|action_start|>"),
    stops=("<|im_end|>",),
    aliases=("intern-s1", "internlm", "interns1"),
    models=("internlm-?[23]", "intern-?s1"),
)
