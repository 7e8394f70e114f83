"""Rendering whole conversations, the errors of it, and the shapes that templates want."""

from __future__ import annotations

import json
import pickle
import traceback
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import jinja2
import pytest
from jinja2.sandbox import ImmutableSandboxedEnvironment
from making import tool

from chatparsers.errors import TemplateError
from chatparsers.templates import Template

TOOL = tool(
    "get_weather", {"city": {"type": "string", "description": "Where"}}, ["city"], description="The weather."
)
CALL = {
    "id": "call00000",
    "type": "function",
    "function": {"name": "get_weather", "arguments": {"city": "Oslo"}},
}
CONVERSATION: list[dict[str, Any]] = [
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "name": "get_weather", "tool_call_id": "call00000", "content": "cold"},
    {"role": "assistant", "content": "It is cold."},
    {"role": "user", "content": "Thanks"},
]


@cache
def load(path: Path) -> Template:
    return Template(path.read_text(encoding="utf-8"), bos_token="<BOS>", eos_token="<EOS>", name=path.stem)


def test_a_small_template(own_folder: Path) -> None:
    text = load(own_folder / "qwen3.jinja").render(CONVERSATION, tools=[TOOL], add_generation_prompt=True)
    assert text == (
        "<|im_start|>system\n# Tools\n\nThese are yours to use:\n<tools>\n"
        + json.dumps(TOOL)
        + "\n</tools>\n"
        "A call is a JSON object with name and arguments, inside <tool_call></tool_call>.<|im_end|>\n"
        "<|im_start|>user\nHi<|im_end|>\n"
        "<|im_start|>assistant\n<tool_call>\n"
        '{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call><|im_end|>\n'
        "<|im_start|>user\n<tool_response>\ncold\n</tool_response><|im_end|>\n"
        "<|im_start|>assistant\nIt is cold.<|im_end|>\n"
        "<|im_start|>user\nThanks<|im_end|>\n<|im_start|>assistant\n"
    )


def _reference(source: str) -> jinja2.Template:
    """The environment of transformers, as far as these conversations need it."""

    def tojson(value: Any, ensure_ascii: bool = False, **options: Any) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, **options)

    def raise_exception(message: str) -> None:
        raise jinja2.TemplateError(message)

    env = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda pattern: "today"
    return env.from_string(source)


def test_what_transformers_renders_is_rendered_alike(any_template: Path) -> None:
    template = load(any_template)
    wants = template.wants
    conversations = [CONVERSATION[:1], [CONVERSATION[0], *CONVERSATION[3:]]]
    if wants.arguments_as == "dict" and wants.empty_content == "text":
        conversations.append(CONVERSATION)
    compared = 0
    for messages, tools, generate in product(conversations, (None, [TOOL]), (False, True)):
        try:
            expected = _reference(template.source).render(
                messages=messages,
                tools=tools,
                documents=None,
                add_generation_prompt=generate,
                bos_token="<BOS>",
                eos_token="<EOS>",
                strftime_now=lambda pattern: "today",
            )
        except Exception:
            continue  # refused, or in need of more than transformers gives
        text = template.render(
            messages, tools=tools, add_generation_prompt=generate, strftime_now=lambda pattern: "today"
        )
        assert text == expected
        compared += 1
    assert compared or wants.functions, "every rendering was refused"
    none, empty = (
        template.render(CONVERSATION[:1], tools=tools, strftime_now=lambda pattern: "today")
        for tools in (None, [])
    )
    assert none == empty


def test_inputs_are_not_changed_and_may_have_any_known_shape(own_template: Path) -> None:
    template = load(own_template)
    if not template.probe().tool_calls:
        pytest.skip("it refuses or drops calls")
    as_text = json.loads(json.dumps(CONVERSATION))
    as_text[1]["tool_calls"][0]["function"]["arguments"] = '{"city": "Oslo"}'
    as_text[1]["content"] = None
    as_text[0]["content"] = [{"type": "text", "text": "Hi"}]
    del as_text[1]["tool_calls"][0]["type"]
    before = json.dumps(as_text)
    assert template.render(as_text, tools=[TOOL]) == template.render(CONVERSATION, tools=[TOOL])
    assert json.dumps(as_text) == before


@pytest.mark.parametrize("key", ["reasoning", "reasoning_content", "thinking"])
@pytest.mark.parametrize("name", ["qwen3", "gpt-oss", "glm-4-5", "minimax-m2", "deepseek-v3-1"])
def test_reasoning_under_any_key(own_folder: Path, name: str, key: str) -> None:
    template = load(own_folder / f"{name}.jinja")
    text = template.render(
        [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "C", key: "because"}]
    )
    assert text.count("because") == 1


def test_reasoning_is_found_that_is_shown_where_no_tools_are() -> None:
    with_tools = "{{ tools | tojson }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
    without = with_tools.replace("{{ tools | tojson }}", "").replace("]", "]{{ m.thinking }}|", 1)
    template = Template(f"{{% if tools %}}{with_tools}{{% else %}}{without}{{% endif %}}")
    assert template.probe().reasoning and template.wants.reasoning_as == "thinking"
    answer = {"role": "assistant", "content": "Yes.", "reasoning_content": "Hm."}
    assert template.render([HI, answer]).endswith("[assistant]Hm.|Yes.")


def test_call_ids_take_the_form_that_the_template_accepts(own_folder: Path) -> None:
    nemo = load(own_folder / "mistral-nemo.jinja")
    messages = json.loads(json.dumps(CONVERSATION))
    messages[1]["tool_calls"][0]["id"] = messages[2]["tool_call_id"] = "call_of_another_form"
    assert nemo.wants.call_ids == "short"
    assert nemo.render(messages) == nemo.render(CONVERSATION)
    del messages[1]["tool_calls"][0]["id"], messages[2]["tool_call_id"]
    assert nemo.render(messages) == nemo.render(CONVERSATION)
    id_is_name = Template(
        "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}<{{ c.id }}>"
        "{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}"
    )
    assert id_is_name.wants.call_ids == "function"
    assert "<functions.get_weather:0>" in id_is_name.render(CONVERSATION)
    messages[1]["tool_calls"][0]["id"] = "functions.get_weather:7"
    assert "<functions.get_weather:7>" in id_is_name.render(messages)


SEVERAL_IDS = """
{%- for message in messages %}
    {%- for call in message.tool_calls or [] %}
        {%- if message.tool_calls | length > 1 and not call.id %}{{ raise_exception("no id") }}{% endif %}
        {{- call.function.name ~ (call.function.arguments | tojson) }}
    {%- endfor %}
    {{- message.content or "" }}
{%- endfor %}"""
TEXTS = (
    "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}"
    "{{ c.function.name + c.function.arguments }}{% endfor %}{% endfor %}"
)
PARTS = "{% for m in messages %}{% for p in m.content %}<{{ p.text }}>{% endfor %}{% endfor %}"
STRIPS = "{% for m in messages %}<{{ m.content | trim }}>{% endfor %}"
TWO = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]


def said(content: Any, *calls: dict[str, Any]) -> dict[str, Any]:
    message = {"role": "assistant", "content": content}
    return {**message, "tool_calls": [{"function": call} for call in calls]} if calls else message


# A template, what it wants, a message, and what is shown of it; or, begun with …, where the message goes on.
WANTED: dict[str, tuple[str, dict[str, str], dict[str, Any], str]] = {
    "content as parts": (PARTS, {"content_as": "parts"}, {"role": "user", "content": "Hi"}, "<Hi>"),
    "content as text": (
        "{% for m in messages %}{{ m.content + '.' }}{% endfor %}",
        {"content_as": "text"},
        {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
        "Hi.",
    ),
    "ids that only several calls need": (
        SEVERAL_IDS,
        {"call_ids": "fill"},
        said("", *({"name": name, "arguments": "{}"} for name in ("one", "two"))),
        "one{}two{}",
    ),
    **{
        f"arguments as text, given as {kind}": (
            TEXTS,
            {"arguments_as": "text"},
            said(None, {"name": "f", "arguments": given}),
            shown,
        )
        for kind, given, shown in (
            ("text", '{"x":1.10}', 'f{"x":1.10}'),
            ("an object", {"x": 1.5}, 'f{"x": 1.5}'),
        )
    },
    "an answer that goes on, in a template that strips": (STRIPS, {}, said("You  "), "…<You"),
    "an answer of parts that goes on": (PARTS, {}, said(TWO), "…<a><b"),
}


@pytest.mark.parametrize("case", WANTED)
def test_a_message_has_the_shape_that_the_template_wants(case: str) -> None:
    source, wants, message, shown = WANTED[case]
    template = Template(source)
    goes_on = shown.startswith("…")
    assert template.render([message], continue_final_message=goes_on) == shown.removeprefix("…")
    assert {key: getattr(template.wants, key) for key in wants} == wants


HI = {"role": "user", "content": "Hi"}
NO_CRITICS = (
    "{% for m in messages %}\n{{ raise_exception('no critics') if m.role == 'critic' }}\n{% endfor %}"
)
ADDS = "{% macro show(m) %}{{ m.content + 1 }}{% endmacro %}{% for m in messages %}{{ show(m) }}{% endfor %}"
DOTS = "{% for m in messages %}{{ m.content + '.' }}{% endfor %}"
IS_NO_MESSAGE = r"messages\[1\]: expected an object with a role, found .*give it a role"
IS_NO_CALL = r"messages\[0\], tool_calls\[0\]: expected .*function.name"


def with_calls(calls: Any) -> list[dict[str, Any]]:
    return [{"role": "assistant", "tool_calls": calls}]


# A template, its messages, and what the error says: where it is, what was found, what to do. After … the last
# message is to go on.
ERRORS: dict[str, tuple[str, list[Any], str]] = {
    "syntax": ("\n{% if %}", [], r"template it, line 2: .*mend it at that line"),
    "the template refuses a message": (
        NO_CRITICS,
        [HI, {"role": "critic", "content": "No"}, HI],
        r"^template it, line 2, messages\[1\]: no critics \(the template refuses",
    ),
    "in a macro": (ADDS, [HI], r"messages\[0\].*TypeError"),
    "a variable that is not there": (
        "{{ persona.name }}",
        [HI],
        r"line 1: 'persona' is undefined \(.*pass it as a keyword",
    ),
    "a text as message": ("", [HI, "Hi"], IS_NO_MESSAGE),
    "no role": ("", [HI, {"content": "Hi"}], IS_NO_MESSAGE),
    "a number as role": ("", [HI, {"role": 1}], IS_NO_MESSAGE),
    "null as message": ("", [HI, None], IS_NO_MESSAGE),
    **{
        f"{type(content).__name__} as content": (
            DOTS,
            [{"role": "user", "content": content}],
            rf"messages\[0\]: .*\(its content: expected text or a list of parts, found {type(content).__name__}\)",
        )
        for content in (5, b"Hi", {"a": 1})
    },
    "a text as call": ("", with_calls(["f"]), IS_NO_CALL),
    "a call without a name": ("", with_calls([{"function": {}}]), IS_NO_CALL),
    "a text as function": ("", with_calls([{"function": "f"}]), IS_NO_CALL),
    "null as call": ("", with_calls([None]), IS_NO_CALL),
    "calls that are no list": (
        "",
        with_calls({"name": "f"}),
        r"messages\[0\], tool_calls: expected a list of calls",
    ),
    "no message to go on with": ("…{{ messages }}", [], "no message"),
    "a question to go on with": ("…{{ messages }}", [HI], r"messages\[0\].*the role 'user'"),
    "a call to go on with": ("…{{ messages }}", [CONVERSATION[1]], r"messages\[0\].*found tool calls"),
    "a template that drops what is to go on": (
        "…-",
        [{"role": "assistant", "content": "Hi"}],
        r"messages\[0\].*drops",
    ),
}


@pytest.mark.parametrize(("source", "messages", "said"), ERRORS.values(), ids=ERRORS)
def test_an_error_says_where_it_is_and_what_to_do(source: str, messages: list[Any], said: str) -> None:
    with pytest.raises(TemplateError, match=said):
        Template(source.removeprefix("…"), name="it").render(
            messages, continue_final_message=source.startswith("…")
        )


def test_in_a_macro_that_calls_itself_the_outermost_calls_are_shown() -> None:
    """With their line: jinja2 compiles a module for each call that is."""
    source = (
        "{% macro show(m) %}\n{{ show(m) }}{% endmacro %}{% for m in messages %}{{ show(m) }}{% endfor %}"
    )
    with pytest.raises(TemplateError, match=r"line 2, messages\[0\]: maximum recursion") as raised:
        Template(source).render([HI])
    cause = raised.value.__cause__
    assert cause is not None and len(list(traceback.walk_tb(cause.__traceback__))) < 100


def test_a_template_is_picklable(own_folder: Path) -> None:
    template = load(own_folder / "kimi-k2.jinja")
    again = pickle.loads(pickle.dumps(template))
    assert again.render(CONVERSATION) == template.render(CONVERSATION) and repr(again) == repr(template)
