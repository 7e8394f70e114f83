"""The smallest request that still shows a fault: what a bug report needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from .asking import Asked, Asker, can_ask
from .client import Spent
from .exchange import Exchange
from .judging import judge
from .rows import Row

MOST = 24
"""How many requests are asked for each fault."""
_COMPARED = ("prompt-count",)
"""What shows only beside other answers."""


def shrink(rows: Sequence[Row], asked: Sequence[Asked], asker: Asker) -> tuple[Row, ...]:
    """The rows, where the first of each code that is to the server's charge has the smallest request that still shows
    its fault, and the answer to that one. Asks at most `MOST` requests for each, within the budget."""
    exchanges = {(each.api.name, each.name): each for one in asked for each in one.exchanges}
    done, found = set(_COMPARED), list[Row]()
    for row in rows:
        exchange = exchanges.get((row.api, row.probe))
        if row.blame == "server" and row.code not in done and exchange is not None and not row.private:
            done.add(row.code)
            row = _smallest(row, exchange, asker)
        found.append(row)
    return tuple(found)


def _smallest(row: Row, exchange: Exchange, asker: Asker) -> Row:
    body, tried, asked = exchange.probe.body, set[str](), 0
    while True:
        for smaller in _smaller(body):
            probe = replace(exchange.probe, body=smaller)
            if repr(smaller) in tried or can_ask(asker.subject, probe):
                continue
            if asked == MOST:
                return row
            tried.add(repr(smaller))
            asked += 1
            try:
                found = _again(row, replace(exchange, probe=probe), asker)
            except Spent:
                return row
            if found is not None:
                row, body = found, smaller
                break
        else:
            return row


def _again(row: Row, exchange: Exchange, asker: Asker) -> Row | None:
    """The same fault in the answer to another request; None if it is not there."""
    fields = ("seed", "temperature")
    more = {name: exchange.body.get(name) for name in fields}
    if row.code == "stream-differs":
        asked = asker.ask(exchange.probe, exchange.api, more=more)
    else:
        asked = Asked(asker.asked(exchange.probe, exchange.api, exchange.stream, more))
    for each in asked.exchanges:
        each.sane = exchange.sane
    rows, _ = judge([asked], asker.server.engine)
    return next((each for each in rows if (each.code, each.blame) == (row.code, row.blame)), None)


def _smaller(body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The request with one thing less, the larger things first; each is a request that an API takes."""
    messages, tools = body["messages"], body.get("tools") or []
    for at, message in enumerate(messages):
        if at and message["role"] == "user":
            yield {**body, "messages": messages[at:]}
    if messages[0]["role"] == "system" and len(messages) > 1:
        yield {**body, "messages": messages[1:]}
    for name in body:
        if name == "tools":
            yield {key: value for key, value in body.items() if key not in _WITH_TOOLS}
        elif name not in ("messages", "max_tokens"):
            yield {key: value for key, value in body.items() if key != name}
    named = body.get("tool_choice")
    kept = named["function"]["name"] if isinstance(named, Mapping) else None
    for at, tool in enumerate(tools):
        if len(tools) > 1 and tool["function"]["name"] != kept:
            yield {**body, "tools": tools[:at] + tools[at + 1 :]}
        for less in _smaller_tools(tool):
            yield {**body, "tools": [*tools[:at], less, *tools[at + 1 :]]}
    last = messages[-1]
    if last["role"] == "user" and last["content"] != "Hi":
        yield {**body, "messages": [*messages[:-1], {**last, "content": "Hi"}]}


_WITH_TOOLS = ("tools", "tool_choice", "parallel_tool_calls")


def _smaller_tools(tool: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    function = tool["function"]
    parameters = function.get("parameters") or {}
    if "description" in function:
        yield {**tool, "function": {key: function[key] for key in function if key != "description"}}
    for name in parameters.get("properties") or ():
        properties = {key: value for key, value in parameters["properties"].items() if key != name}
        required = [each for each in parameters.get("required") or () if each != name]
        less = {key: parameters[key] for key in parameters if key != "required"} | {"properties": properties}
        less |= {"required": required} if required else {}
        yield {**tool, "function": {**function, "parameters": less}}
