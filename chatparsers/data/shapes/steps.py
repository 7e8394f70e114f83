"""Trajectories as steps: the Agent Data Protocol, and ATIF of Harbor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .talk import Talk, Unreadable
from .turns import calls_of, content_of

_OBSERVED = ("text_observation", "image_observation", "web_observation")


def read_adp(row: dict[str, Any], talk: Talk) -> None:
    """``content`` of the Agent Data Protocol: actions and observations, each with its class."""
    details = row.get("details")
    if isinstance(details, Mapping) and details.get("available_custom_tools"):
        talk.lose("names-in-prose")
    for place, step in enumerate(row.pop("content") or ()):
        rest = {key: value for key, value in step.items() if value is not None}
        kind = rest.pop("class_", None)
        source, id = rest.pop("source", None), rest.pop("tool_call_id", None)
        if kind == "message_action":
            talk.answer(rest.pop("content", ""), rest.pop("description", ""))
        elif kind == "api_action":
            call = (id, str(rest.pop("function", "")), rest.pop("kwargs", None) or {})
            talk.answer("", rest.pop("description", "") or "", [call])
        elif kind == "code_action":
            arguments = {"language": rest.pop("language", ""), "code": rest.pop("content", "")}
            talk.answer("", rest.pop("description", "") or "", [(id, "execute_code", arguments)])
        elif kind in _OBSERVED:
            content = rest.pop("content", None)
            content = content if content is not None else {**rest}
            if content == rest:
                rest = {}
            if source == "environment" and talk.waiting:
                talk.result(content_of(content), id)
            else:
                talk.say("user", content_of(content))
        else:
            raise Unreadable(f"content[{place}]: expected an action or an observation, found {kind!r}")
        talk.keep_of_message(rest)


def read_atif(row: dict[str, Any], talk: Talk) -> None:
    """``steps`` of the Agent Trajectory Interchange Format."""
    for place, step in enumerate(row.pop("steps") or ()):
        rest = {key: value for key, value in step.items() if value is not None}
        source, message = rest.pop("source", None), content_of(rest.pop("message", None))
        rest.pop("step_id", None)
        if source == "agent":
            talk.answer(
                message, rest.pop("reasoning_content", "") or "", calls_of(rest.pop("tool_calls", None))
            )
        elif source in ("user", "system"):
            talk.say(source, message)
        else:
            raise Unreadable(f"steps[{place}]: expected system, user or agent, found {source!r}")
        observed = rest.pop("observation", None)
        talk.keep_of_message(rest)
        for result in (observed or {}).get("results") or () if isinstance(observed, Mapping) else ():
            talk.result(content_of(result.get("content")), result.get("source_call_id"))
