"""Renderings of the small conversations by which a template is asked what it shows. Those of late are kept."""

from __future__ import annotations

import marshal
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, time
from types import MappingProxyType
from typing import Any

from ..errors import TemplateError
from ..kept import Kept
from .code import Code
from .jinja.limits import Limits, limited
from .jinja.traced import tracing
from .messages import Wants, own, own_tools, shape, with_texts
from .trace import Marked, Trace

_KEPT = 500_000
"""The characters that are kept: some two hundred renderings."""
NO_VARIABLES: Mapping[str, Any] = MappingProxyType({})


Messages = Sequence[Mapping[str, Any]]
Rewrite = Callable[[Messages], Messages]


class Probed:
    """What a template makes of conversations that no caller gave. Several questions need the same rendering.

    ``clock``: stands still, as renderings are compared.
    """

    def __init__(self, code: Code, name: str, limits: Limits) -> None:
        self.name = name
        self.limits = limits
        self.clock = datetime.combine(datetime.now(), time()).strftime
        self._code = code
        self._found: Kept[Trace | TemplateError] = Kept(_KEPT, largest=_KEPT)

    @limited
    def trace(
        self,
        messages: Messages,
        wants: Wants,
        tools: Messages | None = None,
        generate: bool = False,
        variables: Mapping[str, Any] = NO_VARIABLES,
        rewrite: Rewrite | None = None,
    ) -> Trace:
        """The rendering, and whose each character of it is. Takes what `messages.shape` and `Code.write` take.

        ``rewrite``: what a polyfill makes of the messages before they are shaped; the trace is of the messages before
        it. Raises `TemplateError` if the template refuses the conversation.
        """
        given = {"strftime_now": self.clock, **variables}
        shaped = shape(messages if rewrite is None else rewrite(messages), wants, self.name)
        plain = sorted(item for item in given.items() if item[0] != "strftime_now")
        form = wants.flat_tools, wants.no_tools, wants.functions, generate, given["strftime_now"]("%c")
        asking: Any = shaped, tools, form, plain, None if rewrite is None else messages
        try:
            key: bytes | None = marshal.dumps(asking, 2)
        except (TypeError, ValueError):  # no plain data
            key = None
        found = None if key is None else self._found.get(key)
        if found is None:
            marked = Marked()
            said: Messages = marked.messages(messages)
            try:
                with tracing():
                    said = said if rewrite is None else rewrite(said)
                    shaped = shape(said, wants, self.name)
                    text = self._code.write(shaped, wants, own_tools(tools), generate, own(given))
                    found = marked.trace(with_texts(text, said, self.name))
            except TemplateError as error:
                found = TemplateError(str(error))
            if key is not None:
                size = len(found.text if isinstance(found, Trace) else str(found))
                self._found.add(key, found, len(key) + size)
        if isinstance(found, TemplateError):
            raise TemplateError(str(found))
        return found
