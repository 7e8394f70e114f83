"""An answer that was cut off in its calls, written again as its format writes it, so that the model goes on there.

Strategy: the arguments are closed where they end, and the format writes the whole message. If they end in an open text,
a stand-in marks its place, and the answer goes on there. Else the message is written once more with one more value, and
the answer goes on where the two begin to differ. What is undecided at the end (half of a number, of a key) is left to
the model again. Where a format writes arguments as the JSON that they are, they stay as they were spelt, to the last
character.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..answers.format import Format
from ..answers.nodes import Literal
from ..core.tree import once
from ..errors import ChatParsersError, RequestError, TemplateError
from ..schema.tools import Toolset
from ..templates.messages import reasoning_of
from ..templates.probe.turns import common
from ..values.cut import cut_json
from ..values.json import JsonScanner
from .places import in_one_text
from .shapes import text_after

_PLACE = "\ue000"  # from the private use area
_MORE = {"": '{"more": 0}', "}": '"more": 0', "]": "0"}
"""One more value of a container, by the bracket that closes it."""


def begun_calls(fmt: Format, opened: str, final: Mapping[str, Any], tools: Toolset) -> str:
    """The text of a message with calls, up to where its last call is cut off, or ends.

    ``opened``: what the prompt has written of the answer, which is not repeated. Raises `TemplateError` if the format
    cannot write the message, or cannot go on there.
    """
    call = final["tool_calls"][-1]
    name = call.get("function", call).get("name")
    try:
        found = _Begun(fmt, opened, final, tools).text()
        why = "" if found is not None else "its parser does not read on where the arguments end"
    except (ChatParsersError, ValueError) as error:
        found, why = None, str(error)
    if found is None:
        raise TemplateError(
            f"continue_final_message: the format {fmt.name!r} cannot go on with the call {name!r}: {why}"
        )
    return found


class _Begun:
    """A message whose last call has arguments as far as they were ``given``. ``kept``: without what is undecided at
    their end. ``open``: whether they are not whole; ``inside``: whether they end in an open text. ``closers``: of the
    containers that are open."""

    def __init__(self, fmt: Format, opened: str, final: Mapping[str, Any], tools: Toolset) -> None:
        self.fmt, self.opened, self.final, self.tools = fmt, opened, final, tools
        self.turn = fmt.bind(tools=tools, prefix=opened)
        *self.calls, self.call = final["tool_calls"]
        given = self.call.get("function", self.call).get("arguments")
        self.given = given.lstrip() if isinstance(given, str) else json.dumps(given or {}, ensure_ascii=False)
        scanner = JsonScanner("{")
        scanner.scan(self.given, 0, False)
        if scanner.error:
            raise RequestError(
                f"arguments: expected the beginning of a JSON object, found {self.given!r:.60}"
            )
        cut = cut_json(self.given)
        self.open, self.inside, self.closers = cut.open, cut.inside >= 0, cut.closers
        self.kept = self.given[: max(cut.inside, cut.whole)]
        self.value = json.loads(self.kept + ('"' if self.inside else "") + self.closers or "{}")

    def text(self) -> str | None:
        """The text of the message so far; None if the parser does not read on there."""
        if not self.open:
            return self._after(self._wire(self.given))
        longer = self.kept + (_PLACE + '"' if self.inside else self._more()) + self.closers
        wire = self._wire(longer)
        at = wire.rfind(longer)
        if self.given and at >= 0:  # the format writes JSON as it is
            return wire[:at] + self.given
        if self.inside:
            end = wire.rindex(_PLACE)
            whole = wire[:end] + wire[end + 1 :]
        else:
            whole = self._wire(self.kept + self.closers)
            end = self._parting(whole, wire)
        calls = self.turn.parse(whole).tool_calls
        return whole[:end] if calls and calls[-1].parsed_arguments == self.value else None

    def _more(self) -> str:
        """What may follow in the container that is open."""
        return (", " if self.kept[-1:] not in ("{", "[", "") else "") + _MORE[self.closers[:1]]

    def _after(self, wire: str) -> str:
        """The text up to where one more call could follow."""
        try:
            other = self._wire(self.given, self.call)
        except RequestError:  # the format writes one
            return wire
        for end, whole in ((self._parting(wire, other), True), (common(wire, other), False)):
            calls = self.turn.parse(wire[:end]).tool_calls
            if len(calls) > len(self.calls) and (calls[-1].complete or not whole):
                return wire[:end]
        return wire  # one call alone is written otherwise

    def _parting(self, *ways: str) -> int:
        """How far two texts agree, without dividing a text of the format."""
        place = common(*ways)
        nodes = [node for node in once(self.turn.tree) if isinstance(node, Literal)]
        for own in {*[node.text for node in nodes], *self.turn.preserved_tokens, *self.turn.stops}:
            for text in ways:
                at = text.find(own, max(place - len(own) + 1, 0), place + len(own) - 1)
                place = at if 0 <= at < place else place
        return place

    def _wire(self, arguments: str, *more: Mapping[str, Any]) -> str:
        """The message with these arguments, as the format writes it after what the prompt has opened. ``more``: calls
        after it."""
        name = self.call.get("function", self.call).get("name")
        calls = [*self.calls, {**self.call, "function": {"name": name, "arguments": arguments}}, *more]
        thought = reasoning_of(self.final)
        message = {**in_one_text(self.final), "reasoning_content": thought, "tool_calls": calls}
        return text_after(self.fmt, self.opened, message, self.tools, read_back=False)
