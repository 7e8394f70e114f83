"""The dial of thoughts and effort: found by rendering in any template, and used for any wish."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest

import chatparsers
from chatparsers import RequestError
from chatparsers.templates.builtins import builtin_names
from chatparsers.templates.probe.dial import EFFORTS, KINDS, MOST, Dial
from chatparsers.templates.render import Template

CASES = json.loads((Path(__file__).parent / "dials.json").read_text("utf-8"))
HEAD = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
ASKED = "{% if add_generation_prompt %}<|im_start|>assistant\n"
HELLO = [{"role": "user", "content": "Hello"}]
WISHES = [*({"thinking": kind} for kind in KINDS), *({"effort": word} for word in EFFORTS)]


def loaded(case: dict) -> chatparsers.Chat:
    source = case.get("before", "") + HEAD + ASKED + case.get("asked", "") + "{% endif %}"
    return chatparsers.load(source, eos_token="<|im_end|>")


def dial_of(chat: chatparsers.Chat) -> Dial:
    return chat.template().dial(chat.format)


def prepared(chat: chatparsers.Chat, **wish) -> chatparsers.Turn:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a switch that is not there
        return chat.prepare(HELLO, **wish)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["what"])
def test_small_templates_that_mislead(case):
    chat = loaded(case)
    dial = dial_of(chat)
    assert {level.name for level in dial.levels} == set(case["levels"])
    assert (dial.default.name if dial.default else None) == case["default"]
    for word, right in case.get("wishes", {}).items():
        used = prepared(chat, **({"thinking": word} if word in KINDS else {"effort": word})).thoughts
        assert used is not None
        assert (f"{used.level} budget" if used.budget == 0 else used.level) == right, word


@pytest.mark.parametrize("name", builtin_names())
def test_a_wish_gives_the_prompt_of_its_levels_variables(name, monkeypatch):
    rendered = []
    render = Template._turned
    monkeypatch.setattr(
        Template, "_turned", lambda self, *given: rendered.append(given) or render(self, *given)
    )
    chat = chatparsers.load(template=name)
    plain = prepared(chat)
    assert plain.thoughts is None and not rendered, "nothing more is rendered without a wish"
    dial = dial_of(chat)
    for wish in WISHES:
        turn = prepared(chat, **wish)
        used = turn.thoughts
        level = dial.level(used.level) if used.level else None
        given = {} if level is None else dict(level.variables)
        assert turn.prompt == prepared(chat, template_kwargs=given).prompt
        off = wish.get("thinking") == "disabled" or wish.get("effort") == "none"
        if not off and dial.on is not None:
            assert level is not None
            assert level.thinks or level.name == wish.get("effort")
        if off and dial.level("off") is not None:
            assert used.level == "off"
        if wish.get("effort") in {level.name for level in dial.levels}:
            assert off or used.level == wish["effort"], "a word that the template has is itself"
    assert len(rendered) <= MOST


def test_thinking_decides_on_and_off_and_effort_how_much():
    chat = loaded(next(case for case in CASES if case["what"] == "effort only while on"))
    for wish, right in (
        ({"thinking": "disabled", "effort": "max"}, "off"),
        ({"thinking": "enabled", "effort": "none"}, "on"),
        ({"thinking": "adaptive", "effort": "max"}, "max"),
        ({"thinking": True, "effort": "max"}, "max"),
        ({"thinking": "adaptive", "effort": "none"}, "off"),
        ({"thinking": False}, "off"),
        ({"template_kwargs": {"enable_thinking": True}}, "on"),
        ({"template_kwargs": {"reasoning_effort": "max"}}, "max"),
        ({"template_kwargs": {"skip_reasoning": True}}, "off"),
        ({"template_kwargs": {"enable_thinking": True}, "thinking": False}, "off"),
    ):
        assert prepared(chat, **wish).thoughts.level == right, wish
    # a variable of the template wins for itself
    turn = prepared(chat, thinking=True, template_kwargs={"effort": "max"})
    assert turn.prompt.endswith("<think>\nHard. ")


def test_a_level_that_does_nothing_in_this_kind_of_prompt_is_said():
    source = "{% if not tools and thinking %}Think first.\n{% endif %}" + HEAD + ASKED + "{% endif %}"
    chat = chatparsers.load(source, eos_token="<|im_end|>")
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    assert str(chat.prepare(HELLO, effort="high").thoughts) == "on"
    assert str(chat.prepare(HELLO, effort="high", tools=tools, polyfills=["tools"]).thoughts) == "on"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the template shows no tools
        turn = chat.prepare(HELLO, effort="high", tools=tools, polyfills=False)
    assert str(turn.thoughts) == "on; without effect here"


@pytest.mark.parametrize("wish", [{"thinking": "much"}, {"thinking": 1}, {"effort": ""}, {"effort": 3}])
def test_a_wish_that_is_none_is_refused(wish):
    with pytest.raises(RequestError, match=next(iter(wish))):
        chatparsers.load(template="qwen3").prepare(HELLO, **wish)
