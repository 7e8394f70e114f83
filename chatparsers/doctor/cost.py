"""The check of what a template costs: a long conversation, many tools, and how fast both grow."""

from __future__ import annotations

import time
from collections.abc import Iterator

from ..core.errors import TemplateError
from .report import Finding
from .subject import CLOCK, TOOLS, Subject, answer, user

__all__ = ["cost"]

_SLOW = 8.0
"""How many times longer four times the turns may take to render."""


def cost(model: Subject) -> Iterator[Finding]:
    """Whether 200 turns and 100 tools render within the limits, and what a tool costs in the prompt."""
    turns = [
        message for place in range(100) for message in (user(f"Question {place}"), answer(f"Answer {place}"))
    ]
    times = []
    for length in (50, 200):
        started = time.process_time()
        try:
            model.render(turns[:length])
        except TemplateError as error:
            yield Finding(
                "cost-limit",
                "warning",
                f"{length} turns cannot be rendered",
                str(error),
                "a host with limits refuses long conversations",
            )
            return
        times.append(time.process_time() - started)
    if times[1] > 0.05 and times[1] > _SLOW * times[0]:
        yield Finding(
            "cost-growth",
            "warning",
            "rendering grows faster than the conversation",
            f"50 turns: {1000 * times[0]:.0f} ms, 200 turns: {1000 * times[1]:.0f} ms of CPU",
            "the template looks back at all messages for each of them",
        )
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
    if each > 2_000:
        yield Finding(
            "cost-tools",
            "warning",
            "a small tool takes many characters of the prompt",
            f"{each:,.0f} characters a tool",
            "load(…, tools_as='compact') writes them short where the template shows none",
        )
