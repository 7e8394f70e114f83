"""Runs the loops: at once, or with ``await``."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Generator
from typing import Any

from ..chat.asking import CallResult, RunResult
from ..chat.chat import Chat
from ..errors import RequestError
from .engines import Limits, generate, generate_later
from .loops import Answer, Generation, Use, asking, running


def ask(chat: Chat, engine: Any, max_tokens: int, sampling: Any, *asked: Any) -> Any:
    """What `Chat.ask` does. ``asked``: the other arguments of `asking`."""
    return _driven(asking(chat, *asked), _Engine(chat, engine, max_tokens, sampling))


async def aask(chat: Chat, engine: Any, max_tokens: int, sampling: Any, *asked: Any) -> Any:
    """What `Chat.aask` does."""
    return await _driven_later(asking(chat, *asked), _Engine(chat, engine, max_tokens, sampling))


def run(chat: Chat, engine: Any, max_tokens: int, sampling: Any, *asked: Any) -> RunResult:
    """What `Chat.run` does. ``asked``: the other arguments of `running`."""
    found: RunResult = _driven(running(chat, *asked), _Engine(chat, engine, max_tokens, sampling))
    return found


async def arun(chat: Chat, engine: Any, max_tokens: int, sampling: Any, *asked: Any) -> RunResult:
    """What `Chat.arun` does."""
    found: RunResult = await _driven_later(running(chat, *asked), _Engine(chat, engine, max_tokens, sampling))
    return found


class _Engine:
    """An engine that generates for one run."""

    def __init__(self, chat: Chat, engine: Any, max_tokens: int, sampling: Any) -> None:
        self._asked = chat, engine
        self._limits = Limits(max_tokens, sampling or {})

    def generate(self, step: Generation) -> Answer:
        return generate(*self._asked, step, self._limits)

    async def generate_later(self, step: Generation) -> Answer:
        return await generate_later(*self._asked, step, self._limits)


def _driven(loop: Generator[Any, Any, Any], engine: _Engine) -> Any:
    given: Any = None
    while True:
        try:
            step = loop.send(given)
        except StopIteration as end:
            return end.value
        given = engine.generate(step) if isinstance(step, Generation) else _called(step)


async def _driven_later(loop: Generator[Any, Any, Any], engine: _Engine) -> Any:
    given: Any = None
    while True:
        try:
            step = await asyncio.to_thread(_next, loop, given)
        except _Returned as end:
            return end.value
        if isinstance(step, Generation):
            given = await engine.generate_later(step)
        elif inspect.iscoroutinefunction(step.function):
            given = await _awaited(step)
        else:
            given = await asyncio.to_thread(_called, step)


class _Returned(Exception):
    """The loop ended. Its own exception cannot leave a thread."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _next(loop: Generator[Any, Any, Any], given: Any) -> Any:
    try:
        return loop.send(given)
    except StopIteration as end:
        raise _Returned(end.value) from None


def _called(use: Use) -> CallResult:
    if inspect.iscoroutinefunction(use.function):
        raise RequestError(f"functions: {use.function.__name__!r} is async: await chat.arun(…)")
    try:
        return CallResult(use.call, use.function(**use.arguments))
    except Exception as error:  # the model reads it, and the caller has it in RunResult.results
        return CallResult(use.call, error=error)


async def _awaited(use: Use) -> CallResult:
    try:
        return CallResult(use.call, await use.function(**use.arguments))
    except Exception as error:
        return CallResult(use.call, error=error)
