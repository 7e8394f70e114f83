"""A wish for thoughts or effort is the same in all APIs, and gives the prompt of the level's own variables."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import chatparsers
from chatparsers.serving import ApiError, Request, read_chat, read_messages, read_responses
from chatparsers.templates.builtins import builtin_names

HELLO = [{"role": "user", "content": "Hello"}]
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max", "unheard")
KINDS = ("enabled", "disabled", "adaptive")


def asked(**wish: Any) -> dict[str, Request]:
    """The wish in each API."""
    effort, kind = wish.get("effort"), wish.get("thinking")
    thinking = {} if kind is None else {"thinking": {"type": kind}}
    named = [{}, {}, {}] if effort is None else [{"reasoning_effort": effort}, *({"effort": effort},) * 2]
    return {
        "chat": read_chat({"messages": HELLO, **thinking, **named[0]}),
        "responses": read_responses({"input": "Hello", **thinking, "reasoning": named[1]}),
        "messages": read_messages(
            {"messages": HELLO, "max_tokens": 1, **thinking, "output_config": named[2]}
        ),
    }


@pytest.mark.parametrize("name", builtin_names())
def test_a_wish_is_the_same_in_three_apis(name: str) -> None:
    chat = chatparsers.load(template=name)
    dial = chat.template().dial(chat.format)
    wishes = [{"effort": word} for word in EFFORTS] + [{"thinking": kind} for kind in KINDS]
    wishes += [{"thinking": "adaptive", "effort": "low"}, {"thinking": "disabled", "effort": "max"}]
    for wish in wishes:
        for api, request in asked(**wish).items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of a switch that is not there
                turn = chat.prepare(**request.prepare)
                level = dial.level(turn.thoughts.level) if turn.thoughts and turn.thoughts.level else None
                given = {} if level is None else dict(level.variables)
                right = chat.prepare(request.messages, template_kwargs=given)
            assert turn.prompt == right.prompt, (api, wish)
            on = wish.get("thinking") != "disabled" and wish.get("effort") != "none"
            if on and dial.on is not None:
                assert level is not None and level.name != "off", (api, wish)


@pytest.mark.parametrize(
    ("read", "body", "param"),
    [
        (read_chat, {"messages": HELLO, "thinking": {"type": "much"}}, "thinking.type"),
        (read_chat, {"messages": HELLO, "thinking": "on"}, "thinking"),
        (read_chat, {"messages": HELLO, "reasoning_effort": 3}, "reasoning_effort"),
        (read_responses, {"input": "Hi", "reasoning": {"effort": "x" * 101}}, "reasoning.effort"),
        (
            read_messages,
            {"messages": HELLO, "max_tokens": 1, "output_config": {"effort": []}},
            "output_config.effort",
        ),
    ],
)
def test_a_wish_that_is_none_names_its_field(read: Any, body: dict[str, Any], param: str) -> None:
    with pytest.raises(ApiError) as error:
        read(body)
    assert error.value.param == param
