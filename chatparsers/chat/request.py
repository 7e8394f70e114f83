"""The options of `Chat.prepare`, kept for many renderings of one conversation.

The clock and the seed of ids are fixed at the beginning, so that renderings can be compared. What was found of the
template for such options is kept with the chat, and shared by all requests with the same ones.
"""

from __future__ import annotations

import json
import marshal
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from os import urandom
from typing import Any

from ..core.format import Turn
from ..errors import TemplateError
from ..kept import cached
from ..schema.tools import read_tools
from ..templates.jinja.environment import Asked as Literals
from ..templates.jinja.limits import account
from ..tokens.markers import markers_of, may_spell
from ..tokens.vocabulary import Vocabulary
from .around import Around, Findings, Rendered
from .prepare import Model, Preparation

_FREE = (
    *("now", "id_seed", "response_format", "parallel_tool_calls"),
    *("add_generation_prompt", "continue_final_message"),
)
"""Options on which nothing around answers depends."""
_KEPT = 64


class Request:
    """A chat, and the options with which it renders."""

    def __init__(self, chat: Model, options: Mapping[str, Any]) -> None:
        self.chat = chat
        self.options = dict(options)
        if self.options.get("tools") is not None:
            self.options["tools"] = read_tools(self.options["tools"]).raw
        if self.options.get("now") is None:
            self.options["now"] = datetime.now()
        if self.options.get("id_seed") is None:
            self.options["id_seed"] = urandom(8).hex()

    def prepare(self, messages: Sequence[Mapping[str, Any]], **more: Any) -> Turn:
        """The turn for these messages. Raises the errors of `Chat.prepare`."""
        return self.chat.prepare(messages, **{**self.options, **more})

    def traced(self, messages: Sequence[Mapping[str, Any]], *, since: int = 0, **more: Any) -> Rendered:
        """As `prepare`, and whose each character of the prompt is. ``since``: the first message that is traced. A call
        that was cut off has no arguments: for a template that wants an object, an empty one."""
        quoted = self.markers.search if self.markers and self._quotes_tools else None
        template = self.chat.template()
        with account(template.limits, template.name, messages, self.options):
            preparation = Preparation(self.chat, {**self.options, **more})
            try:
                return preparation.traced(messages, since, quoted)
            except TemplateError:
                mended = [*map(_with_objects, messages)]
                if mended == messages:
                    raise
                return preparation.traced(mended, since, quoted)

    @property
    def markers(self) -> re.Pattern[str] | None:
        """The markers of the tokenizer; None without one."""
        tokenizer = self.chat.tokenizer
        return None if tokenizer is None else markers_of(Vocabulary.bare(tokenizer))

    @cached
    def _quotes_tools(self) -> bool:
        """Whether a text of the tools may hold a marker."""
        return may_spell(self.chat.tokenizer, self.options.get("tools"))

    def around(self, polyfills: tuple[str, ...]) -> Around:
        """What the template writes around answers, for these options and polyfills."""
        return self.found.around(polyfills)

    def polyfills(self, messages: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        """The polyfills that these messages need; none if the template refuses them."""
        try:
            return Preparation(self.chat, self.options).polyfills(messages)
        except TemplateError:
            return ()

    @cached
    def found(self) -> Findings:
        """What was found of the template for these options."""
        kept, key = self.chat.found, self.key()
        found = None if key is None else kept.get(key)
        if found is None:
            found = Findings(Preparation(self.chat, {**self.options, "continue_final_message": False}))
            if key is not None:
                if len(kept) >= _KEPT:  # a caller may send ever new tools
                    kept.clear()
                kept[key] = found
        return found

    @property
    def asked(self) -> Literals:
        """What the template asks of the texts of messages."""
        return self.chat.template(bool(self.options.get("tools"))).asked

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of the request's tools; any name if there are none."""
        given = self.options.get("tools")
        return (read_tools(given).names() if given else ()) or ("needle_tool",)

    def key(self) -> bytes | None:
        """The options on which that may depend, as bytes; None if they are no plain data."""
        fixed = {name: value for name, value in sorted(self.options.items()) if name not in _FREE}
        try:
            return marshal.dumps(fixed, 2)
        except ValueError:
            return None

    def __getstate__(self) -> dict[str, Any]:
        return {"chat": self.chat, "options": self.options}


def _with_objects(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """The message, with an empty object for arguments that are none."""
    calls = [
        call
        if isinstance(_read(call["function"]["arguments"]), Mapping)
        else {**call, "function": {**call["function"], "arguments": "{}"}}
        for call in message.get("tool_calls") or ()
    ]
    return {**message, "tool_calls": calls} if calls else message


def may_quote(tokenizer: Any, messages: Sequence[Mapping[str, Any]], tools: Any = None) -> bool:
    """Whether words of these messages, or of tools, may spell a marker of a tokenizer."""
    return may_spell(tokenizer, ([*messages], [*_unescaped(messages)], tools))


def _unescaped(messages: Sequence[Mapping[str, Any]]) -> Iterator[Any]:
    """Arguments as data, where their JSON text may spell a marker otherwise."""
    for message in messages:
        calls = message.get("tool_calls") if isinstance(message, Mapping) else None
        for call in calls or ():
            function = call.get("function", call) if isinstance(call, Mapping) else None
            arguments = function.get("arguments") if isinstance(function, Mapping) else None
            if isinstance(arguments, str) and "\\" in arguments:
                yield _read(arguments)


def _read(arguments: Any) -> Any:
    try:
        return json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        return arguments
