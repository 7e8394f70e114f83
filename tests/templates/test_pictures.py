"""Pictures stand where the template has a place for them, and a picture that has none is refused, never printed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import chatparsers
from chatparsers import TemplateError
from chatparsers.chat.chat import Chat
from chatparsers.templates.probe.stand_ins import NAME, TOOLS

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # some templates have no switch for thoughts

MESSAGES = r"""
{%- macro written(content, shown) %}
  {%- for part in ([{'type': 'text', 'text': content}] if content is string else content) %}
    {%- if part.type == 'image' and shown %}{{ '<|see|><|pad|><|seen|>' }}
    {%- elif part.type == 'text' %}{{ part.text }}{% endif %}
  {%- endfor %}
{%- endmacro %}
{%- set ns = namespace(last=0) %}
{%- for m in messages if m.role == 'user' %}{% set ns.last = loop.length %}{% endfor %}
{%- set seen = namespace(users=0) %}
{%- if tools %}{{ '<|im_start|>system\n<tools>' }}
  {%- for t in tools %}{{ t | tojson }}{% endfor %}{{ '</tools><|im_end|>\n' }}
{%- endif %}
{%- for m in messages %}
  {%- if m.role == 'user' %}{% set seen.users = seen.users + 1 %}{% endif %}
  {{- '<|im_start|>' + m.role + '\n' }}
  {%- if m.reasoning_content and seen.users == ns.last %}
    {{- '<think>\n' + m.reasoning_content + '\n</think>\n\n' }}
  {%- endif %}
  {%- set shown = m.role == 'user' or (m.role == 'tool' and RESULTS) %}
  {{- written(m.content, shown) }}
  {%- for c in m.tool_calls or [] %}
    {{- '\n<tool_call>\n' }}{{ (c.function or c) | tojson }}{{ '\n</tool_call>' }}
  {%- endfor %}
  {{- '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"""
OWN = {"pictures in results": "true", "no pictures in results": "false"}

PICTURE = {"type": "image_url", "image_url": {"url": "needle://picture"}}


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def step(number: int, *content: Any) -> list[dict[str, Any]]:
    call = {
        "id": f"call0000{number}",
        "type": "function",
        "function": {"name": NAME, "arguments": {"thing": "x"}},
    }
    thought = f"needlethought{number}"
    asked = {"role": "assistant", "content": "", "reasoning_content": thought, "tool_calls": [call]}
    return [asked, {"role": "tool", "tool_call_id": call["id"], "name": NAME, "content": list(content)}]


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(content)}


CASES: dict[str, list[dict[str, Any]]] = {
    "between": [user(text("What"), PICTURE, text("is it?"))],
    "first": [user(PICTURE, text("What is it?"))],
    "last": [user(text("What is"), PICTURE)],
    "alone": [user(PICTURE)],
    "two": [user(text("Not PLACE:"), PICTURE, PICTURE, text("Which?"))],
    "two turns": [user(PICTURE), {"role": "assistant", "content": "PLACE"}, user(text("And"), PICTURE)],
    "in a result": [user(text("Look")), *step(1, text("Here: PLACE"), PICTURE)],
    "a result": [user(PICTURE), *step(1, PICTURE), *step(2, text("No"), PICTURE, text("PLACE"))],
    "after a result": [user(text("Look")), *step(1, text("Done")), user(text("It is"), PICTURE)],
    "in the system's text": [{"role": "system", "content": [text("Be brief"), PICTURE]}, user(text("Hi"))],
}


def chats(path: Path | None) -> dict[str, Chat]:
    if path is not None:
        return {path.stem: chatparsers.load(path)}
    return {name: chatparsers.load(MESSAGES.replace("RESULTS", shown)) for name, shown in OWN.items()}


def place_of(chat: Chat) -> str:
    """The placeholder, seen between two texts; "" if the template has none."""
    given = [user(text("needlebefore"), PICTURE, text("needleafter"))]
    try:
        (one,) = chat.placeholders(given)
    except TemplateError:
        return ""
    return chat.prepare(given).prompt[one.start : one.end]


def spelt(content: Any, place: str) -> Any:
    """The content, whose words spell the placeholder."""
    if isinstance(content, str):
        return content.replace("PLACE", place)
    return [part if part is PICTURE else text(part["text"].replace("PLACE", place)) for part in content]


def check(chat: Chat) -> dict[str, tuple[str, ...]]:
    """Checks the cases; returns those that are shown, with the polyfills that it took."""
    place, shown = place_of(chat), {}
    assert place or not chat.template().shows_part("image"), "the template writes something for a picture"
    for name, case in CASES.items():
        messages = [{**message, "content": spelt(message["content"], place)} for message in case]
        wanted = [(i, j) for i, m in enumerate(case) for j, p in enumerate(m["content"]) if p is PICTURE]
        try:
            found = chat.placeholders(messages, tools=TOOLS)
        except TemplateError:
            continue
        turn = chat.prepare(messages, tools=TOOLS)
        assert "needle://" not in turn.prompt, name
        assert [(one.message, one.part) for one in found] == wanted, name
        assert {turn.prompt[one.start : one.end] for one in found} == {place}, name
        assert turn.prompt.count(place) == len(found) + sum(
            part["text"].count(place)
            for message in messages
            for part in (
                [text(message["content"])] if isinstance(message["content"], str) else message["content"]
            )
            if part is not PICTURE
        ), name
        shown[name] = turn.polyfills
    return shown


def test_every_picture_has_its_place() -> None:
    inside, moved = (check(chat) for chat in chats(None).values())
    for shown in (inside, moved):
        assert CASES.keys() - shown.keys() <= {"in the system's text"}
    assert inside["a result"] == inside["in a result"] == ()
    assert moved["a result"][0] == moved["in a result"][0] == "result_parts"


def test_every_picture_has_its_place_in_real_templates(real_template: Path) -> None:
    check(chatparsers.load(real_template))


def test_a_picture_after_a_result_keeps_the_round() -> None:
    """As texts do, where results may have pictures. Where they may not, it is a user's message."""
    for name, chat in chats(None).items():
        one = [
            user(text("Weather?")),
            *step(1, text("Done")),
            {**user(text("See"), PICTURE), "beside_result": True},
        ]
        two = [*one, *step(2, text("Done"))]
        before, after = (chat.prepare(messages, tools=TOOLS) for messages in (one, two))
        assert ("needlethought1" in after.prompt and after.prompt.startswith(before.prompt)) == (
            name == "pictures in results"
        )
