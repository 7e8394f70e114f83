"""Rows that are a question and an answer, and rows that are one text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from .talk import Talk, Unreadable
from .tools import openai_tools
from .turns import Turns, calls_of, content_of, read_system, read_turns
from .wire import read_answer

_MESSAGES = re.compile(r"\s*\[\s*\{")
_GLAIVE = re.compile(r"(?:\A|\n+)[ ]*(USER|A|ASSISTANT|FUNCTION RESPONSE): ?")


def read_xlam(row: dict[str, Any], talk: Talk, how: Turns) -> None:
    """``query``, ``answers``, ``tools``: a question, and the calls that answer it."""
    talk.tools = openai_tools(row.pop("tools"))
    talk.say("user", content_of(row.pop("query")))
    talk.answer("", "", calls_of(row.pop("answers")))


def read_bfcl(row: dict[str, Any], talk: Talk, how: Turns) -> None:
    """``question`` and ``function`` of the leaderboard: turns of messages, each turn a list."""
    talk.tools = openai_tools(row.pop("function"))
    for turn in row.pop("question") or ():
        read_turns(turn if isinstance(turn, list) else [turn], talk, how)


def read_alpaca(row: dict[str, Any], talk: Talk, how: Turns) -> None:
    """``instruction``, ``input``, ``output``, with ``system`` and ``history`` where they are."""
    _history(row, talk, how)
    question = "\n".join(filter(None, (content_of(row.pop(key, None)) for key in ("instruction", "input"))))
    talk.say("user", question)
    read_answer(talk, how.wire, content_of(row.pop("output")))


def read_query(row: dict[str, Any], talk: Talk, how: Turns) -> None:
    """``query``, ``response``, with ``system`` and ``history`` where they are."""
    if row.get("tools"):
        talk.tools = openai_tools(row.pop("tools"))
    _history(row, talk, how)
    talk.say("user", content_of(row.pop("query")))
    read_answer(talk, how.wire, content_of(row.pop("response")))


def _history(row: dict[str, Any], talk: Talk, how: Turns) -> None:
    system = row.pop("system", None)
    if system:
        read_system(talk, content_of(system))
    for pair in row.pop("history", None) or ():
        if not isinstance(pair, list) or len(pair) != 2:
            raise Unreadable(f"history: expected pairs of a question and an answer, found {pair!r:.60}")
        talk.say("user", content_of(pair[0]))
        read_answer(talk, how.wire, content_of(pair[1]))


def read_old_swift(row: dict[str, Any], talk: Talk, how: Turns) -> None:
    """``conversation``: objects with ``human`` and ``assistant``."""
    system = row.pop("system", None)
    if system:
        read_system(talk, content_of(system))
    for pair in row.pop("conversation"):
        talk.say("user", content_of(pair.get("human")))
        read_answer(talk, how.wire, content_of(pair.get("assistant")))
        talk.keep_of_message({key: value for key, value in pair.items() if key not in ("human", "assistant")})


def read_prompt(row: dict[str, Any], talk: Talk, how: Turns) -> None:
    """``prompt`` and ``completion``: texts, or lists of messages."""
    if row.get("tools"):
        talk.tools = openai_tools(row.pop("tools"))
    for key, role in (("prompt", "user"), ("completion", "assistant")):
        value = row.pop(key)
        if isinstance(value, str) and _MESSAGES.match(value):
            value = _list(value)
        if isinstance(value, list) and all(isinstance(item, Mapping) for item in value):
            read_turns(value, talk, how)
        elif role == "user":
            talk.say("user", content_of(value))
        else:
            read_answer(talk, how.wire, content_of(value))


def _list(text: str) -> Any:
    """A list of messages in JSON text; other text stays as it is."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    roles = isinstance(found, list) and all(isinstance(item, Mapping) and "role" in item for item in found)
    return found if roles else text


def read_glaive(row: dict[str, Any], talk: Talk, how: Turns) -> None:
    """``system`` and ``chat``: one text with ``USER:``, ``ASSISTANT:`` and ``FUNCTION RESPONSE:``."""
    system = str(row.pop("system") or "")
    read_system(talk, system.removeprefix("SYSTEM:").strip())
    chat = str(row.pop("chat") or "")
    places = list(_GLAIVE.finditer(chat))
    if not places or chat[: places[0].start()].strip():
        raise Unreadable(f"chat: expected a text that begins with USER:, found {chat!r:.60}")
    for match, end in zip(places, [*(m.start() for m in places[1:]), len(chat)], strict=True):
        text = chat[match.end() : end].strip()
        if match.group(1) == "USER":
            talk.say("user", text)
        elif match.group(1) == "FUNCTION RESPONSE":
            talk.result(text)
        else:
            read_answer(talk, how.wire, text.removesuffix("<|endoftext|>").rstrip())
