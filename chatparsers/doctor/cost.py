"""The check of what a template costs: a long conversation, many tools, and how fast both grow."""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import TemplateError
from ..templates.jinja.limits import account, current
from .report import Fact, Finding
from .subject import CLOCK, TOOLS, Messages, Subject, answer, user

_STEEP = 8
"""How many times the work four times the turns may take."""


def cost(model: Subject) -> Iterator[Finding | Fact]:
    """Whether 200 turns and 100 tools render within the limits, and what a tool costs in the prompt."""
    turns = [
        message for place in range(100) for message in (user(f"Question {place}"), answer(f"Answer {place}"))
    ]
    spent = []
    for length in (50, 200):
        try:
            spent.append(_units(model, turns[:length]))
        except TemplateError as error:
            yield Finding(
                "cost-limit",
                "warning",
                f"{length} turns cannot be rendered",
                str(error),
                "a host with limits refuses long conversations",
            )
            return
    limit = model.chat.limits.work
    if spent[1] > limit / 50 and spent[1] > _STEEP * spent[0]:
        yield Finding(
            "cost-growth",
            "warning",
            "rendering grows faster than the conversation",
            f"50 turns: {spent[0]:,} units of work, 200 turns: {spent[1]:,} of {limit:,}",
            "the template looks back at all messages for each of them",
        )
    yield Fact(f"200 turns take {100 * spent[1] / limit:.1f} % of the work that a template may do")
    if not model.can.tools:
        return
    function = TOOLS[0]["function"]
    many = [{"type": "function", "function": {**function, "name": f"check_{place}"}} for place in range(100)]
    try:
        one = model.template.render([user("Q")], tools=many[:1], strftime_now=CLOCK)
        all_of_them = model.template.render([user("Q")], tools=many, strftime_now=CLOCK)
    except TemplateError as error:
        yield Finding(
            "cost-limit", "warning", "100 tools cannot be rendered", str(error), "offer fewer tools"
        )
        return
    each = (len(all_of_them) - len(one)) / 99
    size = f"{each:,.0f} characters"
    if model.tokenizer is not None:
        size += f", {(len(model.ids(all_of_them)) - len(model.ids(one))) / 99:,.0f} ids"
    yield Fact(f"each tool takes {size} of the prompt")
    if each > 2_000:
        yield Finding(
            "cost-tools",
            "warning",
            "a small tool takes many characters of the prompt",
            f"{each:,.0f} characters a tool",
            "load(…, tools_as='compact') writes them short where the template shows none",
        )


def _units(model: Subject, messages: Messages) -> int:
    """The units of work that a rendering takes: see `Limits`."""
    with account(model.chat.limits, model.template.name, messages):
        meter = current()
        before = meter.left
        model.render(messages)
        return before - meter.left
