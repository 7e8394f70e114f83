"""The roads from a question to a call: greedy requests to the gateway and to llama-server's own chat endpoint, and what
each came to."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx2
import jsonschema
from leaderboard import Case, Leaderboard
from processes import Servers


@dataclass(frozen=True)
class Road:
    """How a case is asked. ``server``: a field of `Servers`. ``forced``: whether the answer must be a call. ``beside``:
    the road of llama-server that asks for the same. ``fits``: the cases that it is for."""

    name: str
    server: str
    fields: Callable[[Case], dict[str, Any]] = field(default=lambda case: {})
    forced: bool = False
    beside: str | None = None
    fits: Callable[[Case], bool] = field(default=lambda case: True)


def _named(case: Case) -> dict[str, Any]:
    choice = {"type": "function", "function": {"name": case.name}}
    return {"tool_choice": choice, "parallel_tool_calls": False}


def _as_many(case: Case) -> dict[str, Any]:
    """llama-server allows one call unless it is asked for more, and then it may repeat the one without end."""
    return {"parallel_tool_calls": not case.single}


_SERVER_AUTO, _SERVER_REQUIRED = "llama-server, auto", "llama-server, required"
ROADS = (
    Road("auto", "gateway", beside=_SERVER_AUTO),
    Road("auto, no grammar", "no_grammar", beside=_SERVER_AUTO),
    Road("auto, --lenient-calls", "lenient"),
    Road("required", "gateway", lambda case: {"tool_choice": "required"}, True, _SERVER_REQUIRED),
    Road("named", "gateway", _named, True, _SERVER_REQUIRED, lambda case: case.single),
    Road("none", "gateway", lambda case: {"tool_choice": "none"}, fits=lambda case: case.kind == "multiple"),
    Road(_SERVER_AUTO, "engine", _as_many),
    Road(
        _SERVER_REQUIRED,
        "engine",
        lambda case: {"tool_choice": "required", **_as_many(case)},
        fits=lambda case: case.truth is not None,
    ),
)
"""``auto`` comes first: what it wrote without a call it also wrote without a grammar."""


def rows(
    servers: Servers,
    leaderboard: Leaderboard,
    cases: list[Case],
    model: str,
    known: Iterable[dict[str, Any]] = (),
) -> Iterator[dict[str, Any]]:
    """What each case came to by each road that it is for. All roads of a case follow one another, as the engine has
    read the prompt then. ``known``: rows that need not be asked for again."""
    asked = {(row["model"], row["case"], row["road"]): row for row in known}
    for case in cases:
        found: dict[str, dict[str, Any]] = {}
        for road in ROADS:
            if not road.fits(case) or (road.forced and case.truth is None):
                continue
            if (model, case.id, road.name) in asked:
                found[road.name] = asked[model, case.id, road.name]
                continue
            if road.name == "auto, no grammar" and _is_text(found["auto"]):
                row = {**found["auto"], "road": road.name}  # the lazy grammar never began
            else:
                row = {"model": model, "case": case.id, "kind": case.kind, "road": road.name}
                row |= ask(servers, leaderboard, case, road)
            found[road.name] = row
            yield row


def _is_text(row: dict[str, Any]) -> bool:
    return not row["calls"] and not row["end"].startswith("status")


def ask(servers: Servers, leaderboard: Leaderboard, case: Case, road: Road) -> dict[str, Any]:
    """One request: whether its calls are right and valid, whether it ended, its tokens and its raw text."""
    url = getattr(servers, road.server)
    limit = 128 if case.single or case.truth is None else 256
    body = {
        "messages": case.messages,
        "tools": case.tools,
        "temperature": 0,
        "max_tokens": limit,
        **road.fields(case),
    }
    own = {"verbose": True} if road.server == "engine" else {"return_token_ids": True}
    answer = httpx2.post(f"{url}/v1/chat/completions", json={**body, **own}, timeout=1800, trust_env=False)
    if answer.status_code != 200:
        return {"calls": [], "right": False, "why": answer.text[:300], "end": f"status {answer.status_code}"}
    found = answer.json()
    choice = found["choices"][0]
    message = choice["message"]
    calls = [
        (call["function"]["name"], call["function"]["arguments"]) for call in message.get("tool_calls") or ()
    ]
    if road.name == "none":
        why = "a call" if calls or not message.get("content") else ""
    else:
        why = leaderboard.wrong(case, calls)
    row: dict[str, Any] = {
        "calls": calls,
        "right": not why,
        "why": why,
        "invalid": [wrong for call in calls if (wrong := _invalid(case, *call))],
        "end": choice["finish_reason"],
        "tokens": found["usage"]["completion_tokens"],
    }
    if road.server == "engine":
        return row | {"raw": found.get("__verbose", {}).get("content")}
    return row | _engine_ids(servers.engine, found["prompt_token_ids"], choice["token_ids"])


def _engine_ids(engine: str, prompt: list[int], ids: list[int]) -> dict[str, Any]:
    """The raw text in the engine's words, and whether the engine reads the prompt's text as the ids that it got."""

    def post(path: str, body: dict[str, Any]) -> Any:
        return httpx2.post(f"{engine}{path}", json=body, timeout=600, trust_env=False).json()

    text = post("/detokenize", {"tokens": prompt})["content"]
    own = post("/tokenize", {"content": text, "add_special": False, "parse_special": True})["tokens"]
    return {"raw": post("/detokenize", {"tokens": ids})["content"], "same_ids": own == prompt}


def _invalid(case: Case, name: str, arguments: str) -> str:
    """What is wrong with a call against its tool's schema; empty if it is valid."""
    schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in case.tools}
    try:
        jsonschema.validate(json.loads(arguments), schemas[name])
    except (ValueError, KeyError, jsonschema.ValidationError) as error:
        return f"{name} {arguments}: {str(error).splitlines()[0]}"[:300]
    return ""
