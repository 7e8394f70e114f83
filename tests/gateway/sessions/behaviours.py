"""What agents do with their history, in any of the three APIs. Each plays one session of a client."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

from clients import TOOLS, Client, Items, Reply

SYSTEM, QUESTION = "Be terse.", "Weather in Oslo?"


class Agent:
    """A client that remembers what it asked. ``goes_on``: the replies that should have gone on from an earlier one."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.replies: list[Reply] = []
        self.goes_on: list[Reply] = []
        self.sent: list[tuple[str, Items, Reply]] = []

    def ask(
        self, items: Items, *, on: bool = True, system: str = SYSTEM, tools: Sequence[dict[str, Any]] = TOOLS
    ) -> Reply:
        reply = self.client.ask(system, deepcopy(items), tools)
        self.replies.append(reply)
        self.sent.append((system, items, reply))
        if on:
            self.goes_on.append(reply)
        return reply

    def begin(self, text: str = QUESTION) -> Items:
        return [self.client.user(text)]

    def after(self, items: Items, reply: Reply, number: int = 0) -> Items:
        """The talk with an answer, and its results or the next words of the user."""
        if not reply.calls:
            return [*items, *reply.items, self.client.user(f"more {number}")]
        results = self.client.results(reply, [f"RESULT{number}-{place}" for place in range(len(reply.calls))])
        return [*items, *reply.items, *results]


Change = Callable[[Items, int], Items]


def linear(
    change: Change = lambda items, number: items,
    turns: int = 5,
    system: Callable[[int], str] = lambda number: SYSTEM,
) -> Callable[[Agent], None]:
    def play(agent: Agent) -> None:
        items = agent.begin()
        for number in range(turns + 1):
            reply = agent.ask(change(items, number), on=number > 0, system=system(number))
            items = agent.after(items, reply, number)

    return play


def every(value: Any, change: Callable[[dict[str, Any]], Any]) -> Any:
    """The value with each object in it changed, the inner ones first."""
    if isinstance(value, dict):
        return change({name: every(inner, change) for name, inner in value.items()})
    return [every(inner, change) for inner in value] if isinstance(value, list) else value


def other_keys(items: Items, number: int) -> Items:
    """Keys in another order, arguments dumped anew, with 1 as 1.0."""

    def change(found: dict[str, Any]) -> Any:
        if isinstance(found.get("arguments"), str) and found["arguments"][:1] == "{":
            arguments = json.loads(found["arguments"], parse_int=float)
            found["arguments"] = json.dumps(dict(reversed(arguments.items())))
        return dict(reversed(found.items()))

    found: Items = every(items, change)
    return found


def no_reasoning(items: Items, number: int) -> Items:
    kept = [item for item in items if item.get("type") != "reasoning"]
    found = []
    for item in kept:
        item = {name: value for name, value in item.items() if not name.startswith("reasoning")}
        if isinstance(item.get("content"), list):
            item["content"] = [part for part in item["content"] if part.get("type") != "thinking"]
        found.append(item)
    return found


def content_parts(items: Items, number: int) -> Items:
    """Texts as parts, without white space around them."""
    kinds = {"user": "text", "assistant": "text"}
    return [
        {**item, "content": [{"type": kinds[item["role"]], "text": item["content"].strip()}]}
        if isinstance(item.get("content"), str) and item["content"] and item.get("role") in kinds
        else item
        for item in items
    ]


def new_ids(items: Items, number: int) -> Items:
    names = '"(id|tool_call_id|call_id|tool_use_id)": "([^"]+)"'
    text = re.sub(names, lambda found: f'"{found[1]}": "tc-{found[2]}-x"', json.dumps(items))
    found: Items = json.loads(text)
    return found


def extra_fields(items: Items, number: int) -> Items:
    more = {"provider_specific_fields": {"x": 1}, "annotations": [], "cache_control": {"type": "ephemeral"}}
    return [
        {**{name: value for name, value in item.items() if name != "refusal"}, **more}
        if item.get("role") == "assistant"
        else item
        for item in items
    ]


def volatile(number: int) -> str:
    return f"x-anthropic-billing-header: cc_version=1; cch={number}af31;\n{SYSTEM}"


def reminder(agent: Agent) -> None:
    """A reminder that stands at the end of each request, and is not kept."""
    items = agent.begin()
    for number in range(6):
        reply = agent.ask([*items, agent.client.user("[reminder: be quick]")], on=number > 0)
        items = agent.after(items, reply, number)


def old_results(items: Items, number: int) -> Items:
    """All results but the last two are cut."""
    texts = [f'"RESULT{one}-0"' for one in range(max(number - 2, 0))]
    text = json.dumps(items)
    for one in texts:
        text = text.replace(one, '"[old output removed]"')
    found: Items = json.loads(text)
    return found


def compacted(agent: Agent) -> None:
    items = agent.begin()
    for number in range(3):
        items = agent.after(items, agent.ask(items, on=number > 0), number)
    summary = agent.ask([*items, agent.client.user("Summarise all so far.")])
    items = [*agent.begin(), agent.client.user(f"Summary: {summary.text}")]
    for number in range(3, 6):
        items = agent.after(items, agent.ask(items, on=number > 3), number)


def condensed(agent: Agent) -> None:
    """A condenser keeps the question, a note and the last two rounds."""
    items, rounds = agent.begin(), []
    for number in range(4):
        reply = agent.ask(items, on=number > 0)
        items = agent.after(items, reply, number)
        rounds.append(agent.after([], reply, number))
    items = [*agent.begin(), agent.client.user("[earlier rounds left out]"), *rounds[-2], *rounds[-1]]
    for number in range(4, 6):
        items = agent.after(items, agent.ask(items, on=number > 4), number)


def sub_agent(agent: Agent) -> None:
    items, inner = agent.begin(), agent.begin("Find Oslo.")
    for number in range(2):
        items = agent.after(items, agent.ask(items, on=number > 0), number)
    for number in range(2, 4):
        found = agent.ask(inner, on=number > 2, system="You are a searcher.", tools=TOOLS[1:])
        inner = agent.after(inner, found, number)
        items = agent.after(items, agent.ask(items), number)
    agent.ask(items)


def branches(agent: Agent) -> None:
    items = agent.begin()
    items = agent.after(items, agent.ask(items, on=False))
    for number, reply in enumerate([agent.ask(items), agent.ask(items)]):
        agent.ask(agent.after(items, reply, number + 1))


def retries(agent: Agent) -> None:
    items = agent.begin()
    for number in range(3):
        agent.ask(items, on=number > 0)
        items = agent.after(items, agent.ask(items, on=number > 0), number)


def steering(agent: Agent) -> None:
    items = agent.begin()
    for number in range(5):
        items = agent.after(items, agent.ask(items, on=number > 0), number)
        if number == 1:
            items = [*items, agent.client.user("Hurry up.")]


def a_tool_more(agent: Agent) -> None:
    items = agent.begin()
    for number in range(4):
        reply = agent.ask(items, on=number > 0, tools=TOOLS if number > 1 else TOOLS[:1])
        items = agent.after(items, reply, number)


def undo(agent: Agent) -> None:
    items, before = agent.begin(), []
    for number in range(3):
        reply = agent.ask(items, on=number > 0)
        before = items
        items = agent.after(items, reply, number)
    agent.ask([*before, agent.client.user("No, try again.")])


def mended(agent: Agent) -> None:
    """The host mends the arguments of an answer, and sends that as history."""
    items = agent.begin()
    for number in range(4):
        reply = agent.ask(items, on=number > 0)
        if number == 1:
            text = re.sub(r"Os lo\d*", "MENDED", json.dumps(reply.items))
            reply = Reply(json.loads(text), reply.calls, reply.text)
        items = agent.after(items, reply, number)


BEHAVIOURS: dict[str, Callable[[Agent], None]] = {
    "verbatim": linear(),
    "other keys": linear(other_keys),
    "no reasoning": linear(no_reasoning),
    "content parts": linear(content_parts),
    "new call ids": linear(new_ids),
    "extra fields": linear(extra_fields),
    "volatile system line": linear(system=volatile),
    "reminder at the end": reminder,
    "old results cut": linear(old_results),
    "compacted": compacted,
    "condensed, tail kept": condensed,
    "sub-agent": sub_agent,
    "branches": branches,
    "retries": retries,
    "steering user": steering,
    "a tool more": a_tool_more,
    "undo": undo,
    "answer mended": mended,
    "several calls": linear(),
    "cut answers": linear(turns=3),
}
HARMLESS = (
    *("verbatim", "other keys", "no reasoning", "content parts", "new call ids", "extra fields"),
    *("volatile system line", "several calls"),
)
"""Nothing of the history is another: every request goes on from the ids of the answer before, but where the template
rewrites them."""
