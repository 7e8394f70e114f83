"""Renderings of the small conversations by which a template is asked what it shows. Those of late are kept."""

from __future__ import annotations

import marshal
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, time
from typing import Any

from ..errors import TemplateError
from .code import Code
from .jinja.traced import tracing
from .messages import Wants, own, own_tools, shape, with_texts
from .trace import Marked, Trace

_KEPT = 500_000
"""The characters that are kept: some two hundred renderings."""


Messages = Sequence[Mapping[str, Any]]
Rewrite = Callable[[Messages], Messages]


class Probed:
    """What a template makes of conversations that no caller gave. Several questions need the same rendering.

    ``clock``: stands still, as renderings are compared. The methods take what `messages.shape` and `Code.write` take.
    ``rewrite``: what a polyfill makes of the messages before they are shaped; a trace is of the messages before it.
    They raise `TemplateError` where the template refuses the conversation.
    """

    def __init__(self, code: Code, name: str) -> None:
        self._code = code
        self._name = name
        self.clock = datetime.combine(datetime.now(), time()).strftime
        self._found: dict[bytes, str | Trace | TemplateError] = {}
        self._characters = 0

    def text(self, messages: Messages, wants: Wants, *asked: Any) -> str:
        """The rendering."""
        found = self._once(self._text, messages, wants, *asked)
        return found.text if isinstance(found, Trace) else found

    def trace(self, messages: Messages, wants: Wants, *asked: Any) -> Trace:
        """The rendering, and whose each character of it is."""
        found = self._once(self._trace, messages, wants, *asked)
        assert isinstance(found, Trace)  # what was kept without one is rendered again
        return found

    def _once(
        self,
        find: Callable[..., str | Trace],
        messages: Messages,
        wants: Wants,
        tools: Messages | None,
        generate: bool,
        variables: Mapping[str, Any],
        rewrite: Rewrite | None = None,
    ) -> str | Trace:
        given = {"strftime_now": self.clock, **variables}
        shaped = shape(messages if rewrite is None else rewrite(messages), wants, self._name)
        plain = sorted(item for item in given.items() if item[0] != "strftime_now")
        form = wants.flat_tools, wants.no_tools, wants.functions, generate, given["strftime_now"]("%c")
        asked = messages, wants, tools, generate, given, rewrite
        try:
            asking: Any = shaped, tools, form, plain, None if rewrite is None else messages
            key = marshal.dumps(asking, 2)
        except (TypeError, ValueError):  # no plain data
            return find(*asked)
        found = self._found.get(key)
        if found is None or (isinstance(found, str) and find == self._trace):
            try:
                found = find(*asked)
            except TemplateError as error:
                found = TemplateError(str(error))
            if self._characters > _KEPT:
                self._found, self._characters = {}, 0
            self._found[key] = found
            self._characters += len(key) + len(found.text if isinstance(found, Trace) else str(found))
        if isinstance(found, TemplateError):
            raise TemplateError(str(found))
        return found

    def _text(
        self,
        messages: Messages,
        wants: Wants,
        tools: Messages | None,
        generate: bool,
        variables: Mapping[str, Any],
        rewrite: Rewrite | None,
    ) -> str:
        given = messages if rewrite is None else rewrite(messages)
        shaped = shape(given, wants, self._name)
        text = self._code.write(shaped, wants, own_tools(tools), generate, own(variables))
        return with_texts(text, given, self._name)

    def _trace(self, messages: Messages, *asked: Any) -> Trace:
        marked = Marked()
        with tracing():
            return marked.trace(self._text(marked.messages(messages), *asked))
