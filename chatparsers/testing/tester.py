"""A test of one output in one sentence, for contributors.

    test = tester("model.jinja").tools("get_weather").thinking(True)
    test.text("…").expect(reasoning="…", content="…", calls=[("get_weather", {"city": "Oslo"})])

`Tester.expect` reads the text whole, by the character and in random cuts. It checks the promises of every stream, and
shows the first difference between the message that was read and the one that was expected.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any

from ..answers.format import Format, Turn
from ..chat.chat import Chat
from ..chat.load import load
from ..registry import get_format
from ..streams.message import Message, ToolCall
from .check import check_cuts
from .chunkings import characters, random_cuts
from .rendering import exact

_CUTS = 50
_SEED = "tester"
_NAME = re.compile(r"[\w.-]+")
_FILES = (".jinja", ".gguf", ".json")
_HISTORY = [{"role": "user", "content": "Hello"}]


def tester(source: str | PathLike[str] | Format | Chat) -> Tester:
    """A test of a model's outputs.

    ``source``: a format or the name of one, or what `chatparsers.load` takes: then the turn begins as the template's
    generation prompt says. Raises what `load` raises.
    """
    if isinstance(source, (Format, Chat)):
        return Tester(source)
    if isinstance(source, str) and _NAME.fullmatch(source) and not source.endswith(_FILES):
        return Tester(get_format(source))
    return Tester(load(source))


tester.__test__ = False  # type: ignore[attr-defined]  # else pytest takes it for a test where it is imported


@dataclass(frozen=True)
class Tester:
    """A request, and the text that answers it; each method gives another tester and leaves this one as it is."""

    __test__ = False

    source: Format | Chat
    request: Mapping[str, Any] = field(default_factory=dict)
    output: str = ""

    def tools(self, *tools: Mapping[str, Any] | str) -> Tester:
        """The tools of the request. A name stands for a tool that takes any arguments."""
        given = [_tool(tool) if isinstance(tool, str) else tool for tool in tools]
        return self.options(tools=[*self.request.get("tools", ()), *given])

    def thinking(self, thinking: bool | None) -> Tester:
        """Whether the request asks for reasoning."""
        return self.options(thinking=thinking)

    def options(self, **request: Any) -> Tester:
        """Further parts of the request, as `Chat.prepare` or `Format.bind` takes them: ``prefix``, ``tool_choice``…"""
        return replace(self, request={**self.request, **request})

    def text(self, output: str) -> Tester:
        """What the model writes."""
        return replace(self, output=output)

    @property
    def turn(self) -> Turn:
        """The request, bound."""
        if isinstance(self.source, Format):
            return self.source.bind(**{"id_seed": _SEED, **self.request})
        request = dict(self.request)
        prefix = request.pop("prefix", None)
        turn = self.source.prepare(_HISTORY, **request)
        return turn._replace(id_seed=_SEED, prefix=turn.prefix if prefix is None else prefix)

    def read(self) -> Message:
        """The message. Raises AssertionError if a stream breaks a promise or the message depends on the cuts."""
        cuts = [characters(self.output), *random_cuts(self.output, _CUTS)]
        return check_cuts(self.turn, self.output, cuts)

    def expect(
        self,
        *,
        content: str = "",
        reasoning: str = "",
        calls: Iterable[tuple[str, Mapping[str, Any] | str]] = (),
        complete: bool = True,
        diagnostics: Iterable[str] = (),
    ) -> Message:
        """Reads the text in every way, compares, and returns the message.

        ``calls``: names with their arguments, an object or JSON text (numbers are compared as they are spelt).
        ``diagnostics``: the codes that are reported, in order. Raises AssertionError.
        """
        message = self.read()
        wrong = [
            *_texts("reasoning", message.reasoning, reasoning),
            *_texts("content", message.content, content),
            *_calls(message.tool_calls, list(calls)),
        ]
        if message.complete != complete:
            wrong.append(f"complete: expected {complete}, found {message.complete}")
        codes = [diagnostic.code for diagnostic in message.diagnostics]
        if codes != list(diagnostics):
            told = "".join(f"\n    {diagnostic}" for diagnostic in message.diagnostics)
            wrong.append(f"diagnostics: expected {list(diagnostics)}, found {codes}{told}")
        if wrong:
            raise AssertionError("\n".join([*wrong, *self._regions(message)]))
        return message

    def _regions(self, message: Message) -> list[str]:
        """What each part of the text was taken for."""
        name = self.source.name if isinstance(self.source, Format) else self.source.format.name
        lines = [f"{name}, after {self.turn.prefix!r}, read:"]
        return lines + [f"    {r.kind:9} {message.text[r.start : r.end]!r:.200}" for r in message.regions]


def _tool(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}


def _texts(what: str, found: str, expected: str) -> list[str]:
    """The lines that show the first difference of two texts; no lines if they are equal."""
    if found == expected:
        return []
    same = next((at for at, (a, b) in enumerate(zip(found, expected, strict=False)) if a != b), None)
    at = min(len(found), len(expected)) if same is None else same
    after = f"after {found[max(at - 20, 0) : at]!r} " if at else ""
    return [
        f"{what}: parts at character {at}, {after}expected {expected[at : at + 80]!r}, found {found[at : at + 80]!r}"
    ]


def _calls(found: Sequence[ToolCall], expected: list[tuple[str, Mapping[str, Any] | str]]) -> list[str]:
    names = [call.name for call in found]
    if names != [name for name, _ in expected]:
        return [f"calls: expected {[name for name, _ in expected]}, found {names}"]
    wrong = []
    for call, (_, arguments) in zip(found, expected, strict=True):
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        if not call.complete or exact(call.arguments) != exact(text):
            wrong += _texts(f"arguments of call {call.index}, {call.name}", call.arguments, text) or [
                f"call {call.index}, {call.name}: is not complete"
            ]
    return wrong
