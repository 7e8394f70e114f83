"""Every template with every shape of a conversation: all that goes in comes out in the prompt, or an error says
what not."""

from __future__ import annotations

import json
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from conversations import SHAPES, Shape, load_chat, lost

import chatparsers
from chatparsers import Chat, RequestError, TemplateError
from chatparsers.templates import Template
from chatparsers.templates.rewrite import plan as plan_module
from chatparsers.templates.rewrite.outline import Survey
from chatparsers.templates.rewrite.plan import Plan
from chatparsers.templates.rewrite.polyfills import POLYFILLS

# Classifiers: their templates show only the last turn, between texts of their own.
CLASSIFIERS = {"granite3-guardian_2b", "shieldgemma_27b"}


def tried(chat: Chat, shape: Shape, polyfills: bool = True) -> str:
    """``+`` if everything comes out, ``-`` if something is lost, ``E`` if the template refuses it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of thinking without a switch, of unknown formats
        try:
            prompt = chat.prepare(
                list(shape.messages),
                tools=list(shape.tools) or None,
                thinking=shape.thinking,
                polyfills=polyfills,
            ).prompt
        except TemplateError:
            return "E"
    return "-" if lost(shape, prompt) else "+"


def test_nothing_is_lost(every_template: Path | str) -> None:
    chat = load_chat(every_template)
    marks = {shape: tried(chat, SHAPES[shape]) for shape in SHAPES}
    if Path(every_template).stem in CLASSIFIERS:
        assert "-" not in marks.values()
    else:
        assert {shape for shape, mark in marks.items() if mark != "+"} <= {"image"}


def test_pictures_are_shown_or_refused(any_template: Path) -> None:
    chat = chatparsers.load(any_template)
    shape = SHAPES["image"]
    try:
        prompt = chat.prepare(list(shape.messages)).prompt
    except TemplateError as error:
        assert "messages[0], content[1]: the template has no place for parts of type 'image_url'" in str(
            error
        )
    else:
        text = list(shape.messages[0]["content"][:1])
        plain = chat.prepare([{"role": "user", "content": text}]).prompt
        assert len(prompt) > len(plain) and "base64" not in prompt


def test_parts_are_lines_and_may_be_texts_alone(own_folder: Path) -> None:
    content = [{"type": "text", "text": "zqone"}, "zqtwo"]
    prompt = (
        chatparsers.load(own_folder / "qwen3.jinja").prepare([{"role": "user", "content": content}]).prompt
    )
    assert "zqone\nzqtwo" in prompt


@pytest.mark.one_in(32)
def test_no_cheaper_polyfills_would_do(any_template: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan is found without trying what cannot save a lost part: it is that of a search through all."""

    def plans() -> list[Plan]:
        chat = chatparsers.load(any_template, bos_token="<BOS>", eos_token="<EOS>")
        found = []
        for shape in SHAPES.values():
            renderer = chat.renderer(bool(shape.tools))
            outline = Survey(shape.messages).outline()
            plan = renderer._planner.plan(outline, bool(shape.tools), renderer.allowed)
            found.append(replace(plan, out=()))
        return found

    guided = plans()
    monkeypatch.setattr(plan_module, "_CHANGES", dict.fromkeys(plan_module._CHANGES, frozenset(POLYFILLS)))
    monkeypatch.setattr(plan_module, "_BEGINNINGS", 0)
    assert guided == plans()


def test_polyfills_are_named_and_can_be_switched_off(own_folder: Path) -> None:
    chat = chatparsers.load(own_folder / "hermes-2-pro.jinja")
    shape = SHAPES["text beside call"]
    assert chat.prepare(shape.messages[:1]).polyfills == ()
    developer = SHAPES["developer"].messages
    plain = (
        "{% for m in messages %}{% if m.role in ('user', 'assistant', 'system') %}[{{ m.role }}]{{ m.content }}"
        "{% endif %}{% endfor %}"
    )
    chat = chatparsers.load(plain)
    assert chat.prepare(developer).polyfills == ("developer_role",)
    assert "zqdeveloper" not in chat.prepare(developer, polyfills=False).prompt
    assert "zqdeveloper" not in chatparsers.load(plain, polyfills=["tools"]).prepare(developer).prompt
    turn = chat.prepare(shape.messages, tools=shape.tools)
    assert turn.polyfills == ("tools", "tool_role", "tool_calls")
    source = (own_folder / "hermes-2-pro.jinja").read_text(encoding="utf-8")
    after = "not loop.first and loop.previtem.role == 'tool' and message.role == 'user'"
    refusal = f"{{%- elif {after} %}}{{{{ raise_exception('after results comes an answer') }}}}"
    asked = Shape((*shape.messages[:3], shape.messages[4]), shape.tools)  # no answer before the next question
    for old, new, given, polyfill in (
        ("{{ tool | tojson }}", "{{ tool.function.name }}", shape, "tools"),
        ("{%- else %}", f"{refusal}{{%- else %}}", asked, "question_in_result"),
    ):
        turn = chatparsers.load(source.replace(old, new)).prepare(given.messages, tools=given.tools)
        assert turn.polyfills == (polyfill,) and not lost(given, turn.prompt)
    with pytest.raises(RequestError, match=r"no polyfill is named 'tool'.*tools"):
        chat.prepare(developer, polyfills=["tool"])


TOOLS_FLAT = (
    "{% for tool in tools or [] %}### {{ tool['name'] }}: {{ tool['description'] }} {{ tool['parameters'] | tojson }}"
    "{% endfor %}{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def test_fields_that_a_template_looks_for_elsewhere() -> None:
    """Some servers' own templates read ``tool['name']``, and so do their polyfills."""
    flat = (
        "{% for t in tools or [] %}{{ t.name }}{{ t.description }}{{ t.parameters | tojson }}{% endfor %}"
        "{% for m in messages %}[{{ m.role }}]{{ m.content }}"
        "{% for c in m.tool_calls or [] %}{{ c.name }}{{ c.arguments | tojson }}{% endfor %}{% endfor %}"
    )
    chat, shape = chatparsers.load(flat), SHAPES["parallel"]
    with pytest.warns(UserWarning, match="no format explains"):
        turn = chat.prepare(list(shape.messages), tools=list(shape.tools))
    assert turn.polyfills == ("flat",)
    assert not lost(shape, turn.prompt)
    assert 'zqweather{"zqcity": "zqoslo", "zqday": "zqmonday"}' in turn.prompt
    template = Template(TOOLS_FLAT)
    assert template.probe().tools and template.wants.flat_tools
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    function = {"name": "look", "description": "Looks.", "parameters": schema}
    chat = chatparsers.load(TOOLS_FLAT, format="hermes-2-pro")
    turn = chat.prepare(
        [{"role": "user", "content": "Hi"}], tools=[{"type": "function", "function": function}]
    )
    assert "### look: Looks. " + json.dumps(schema) in turn.prompt and "tools" not in turn.polyfills


_HERMES = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>\n"
    "{{ c.function | tojson }}\n</tool_call>{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@pytest.mark.parametrize("beside", ["messages[0].role == 'system'", "messages | length > 1"])
def test_tools_that_are_shown_in_some_conversations_are_shown_there(beside: str) -> None:
    """Whatever the chat rendered before."""
    shape = SHAPES["call, result"]
    system, question = {"role": "system", "content": "Be brief."}, shape.messages[0]
    source = f"{{% if tools and {beside} %}}{{{{ tools | tojson }}}}{{% endif %}}{_HERMES}"
    chat = chatparsers.load(source, format="hermes-2-pro")
    assert chat.prepare([question], tools=shape.tools).polyfills == ("tools",)
    assert chat.prepare([system, *shape.messages], tools=shape.tools).polyfills == ()


def test_what_cannot_be_shown_is_named() -> None:
    chat = chatparsers.load("{{ messages[-1].content }}")
    with pytest.raises(
        TemplateError, match=r"messages\[0\]: the template does not show text of the role 'user'"
    ):
        chat.prepare(list(SHAPES["turns"].messages)[1:])
