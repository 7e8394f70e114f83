"""Renderings of the small conversations by which a template is asked what it shows. Those of late are kept.

A conversation that differs from an earlier one only in what the template did not look at then is not rendered again:
it takes the same way through the template. So a question about calls costs nothing if the template knows no calls.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, time
from types import MappingProxyType
from typing import Any

from ..errors import TemplateError
from ..kept import Kept
from .code import Code
from .jinja.environment import environment
from .jinja.limits import Limits, limited
from .jinja.observed import Observed, seen
from .jinja.traced import tracing
from .messages import Wants, own, own_tools, shape, with_texts
from .trace import Marked, Trace

_KEPT = 500_000
"""The characters that are kept: some two hundred renderings."""
_MOST, _LONGEST = 32, 32
"""How many ways through the template are kept, and of how many messages each; real templates have 11, of four."""
NO_VARIABLES: Mapping[str, Any] = MappingProxyType({})

Messages = Sequence[Mapping[str, Any]]
Rewrite = Callable[[Messages], Messages]
Seen = tuple[frozenset[str] | None, ...]
"""Of each message the keys that a rendering looked up; None if it looked at the whole message."""
Key = tuple[Seen | None, bytes]


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
        self._ways: tuple[Seen, ...] = ()  # never changed, as threads share it

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
        asking: Any = self._form(wants, tools, generate, given), None if rewrite is None else messages

        def key(seen: Seen | None = None) -> Key | None:
            try:
                return seen, marshal.dumps((asking, shaped if seen is None else _looked_up(shaped, seen)), 2)
            except (TypeError, ValueError):  # no plain data
                return None

        found = self._found.get(whole := key())
        if found is None:
            ways = (seen for seen in self._ways if len(seen) == len(shaped))
            same = (self._found.get(key(seen)) for seen in ways)
            found = next((one for one in same if one is not None), None)
            if found is None:
                found, seen = self._rendered(messages, wants, tools, generate, given, rewrite)
                if len(seen) <= _LONGEST:
                    if seen not in self._ways:
                        self._ways = (*self._ways, seen)[-_MOST:]
                    self._keep(key(seen), found)
            self._keep(whole, found)
        if isinstance(found, TemplateError):
            raise TemplateError(str(found))
        return found

    def _form(self, wants: Wants, tools: Messages | None, generate: bool, given: Mapping[str, Any]) -> Any:
        """What the template gets besides the messages, of the variables that it reads. `Code.variables` does not name
        those that take the place of a function, such as the clock."""
        read, functions = self._code.variables, environment().globals
        besides = self._code.besides(wants, tools, generate, given)
        besides["strftime_now"] = given["strftime_now"]("%c")
        return sorted(item for item in besides.items() if item[0] in read or item[0] in functions)

    def _keep(self, key: Key | None, found: Trace | TemplateError) -> None:
        if key is not None:
            size = len(found.text if isinstance(found, Trace) else str(found))
            self._found.add(key, found, len(key[1]) + size)

    def _rendered(
        self,
        messages: Messages,
        wants: Wants,
        tools: Messages | None,
        generate: bool,
        variables: Mapping[str, Any],
        rewrite: Rewrite | None,
    ) -> tuple[Trace | TemplateError, Seen]:
        """The rendering, or why it is refused, and what was looked up for it."""
        marked, shaped = Marked(), list[Observed]()
        said: Messages = marked.messages(messages)
        try:
            with tracing():
                said = said if rewrite is None else rewrite(said)
                shaped = [Observed(message) for message in shape(said, wants, self.name)]
                text = self._code.write(list(shaped), wants, own_tools(tools), generate, own(variables))
                return marked.trace(with_texts(text, said, self.name)), tuple(map(seen, shaped))
        except TemplateError as error:
            return TemplateError(str(error)), tuple(map(seen, shaped))


def _looked_up(messages: Messages, seen: Seen) -> list[Mapping[str, Any]]:
    """The messages with the keys that a rendering looked up."""
    return [
        message if keys is None else {key: value for key, value in message.items() if key in keys}
        for message, keys in zip(messages, seen, strict=True)
    ]
