"""The parts of an answer. Events begin a part, add text to it or end it, and each API writes these three.

| | part of reasoning or content | call | call of a freeform tool |
|---|---|---|---|
| chat completions | a field of the message | a call of the message | the same, ``custom`` |
| messages | a block of thinking or text | a block of a tool's use | |
| responses | an item with one part of text | an item, ``function_call`` | an item, ``custom_tool_call`` |

A search for tools that the client runs is an item of the Responses API too, ``tool_search_call``, whose arguments are
an object.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from ..streams.events import CallArguments, Content, Event, Reasoning
from .logprobs import TokenLogprob
from .sealed import Seals

PartKind = Literal["reasoning", "content", "call", "custom", "search"]
_ADDS: Mapping[PartKind, type[Event]] = {
    "reasoning": Reasoning,
    "content": Content,
    "call": CallArguments,
    "custom": CallArguments,
    "search": CallArguments,
}


class Part:
    """A run of reasoning or of content, or a call. A ``custom`` part is the call of a freeform tool, a ``search``
    that of a search for tools.

    ``index``, ``id`` and ``name``: of a call; the index counts those that went out. ``key``: by what the API calls
    the part, where it has such names.
    ``adds``: the class of the events that add text to it.
    """

    __slots__ = (
        "adds",
        "complete",
        "id",
        "index",
        "is_call",
        "key",
        "kind",
        "name",
        "pieces",
        "silent",
        "tokens",
        "word",
    )

    def __init__(self, kind: PartKind, index: int = 0, id: str = "", name: str = "") -> None:
        self.kind = kind
        self.adds = _ADDS[kind]
        self.is_call = kind in ("call", "custom", "search")
        self.silent = kind == "search"
        """Whether the API streams nothing of its text, which is in the part's end alone."""
        self.index = index
        self.id = id
        self.name = name
        self.key = ""
        self.complete = True
        """Whether it is not known to be cut off, or broken."""
        self.pieces: list[str] = []
        self.tokens: list[TokenLogprob] = []
        """What the engine says of its tokens, where the API puts that into the part."""

        self.word = ""

    @property
    def text(self) -> str:
        """The text so far: of a call, its arguments."""
        return "".join(self.pieces)

    def sealed(self, seals: Seals) -> str:
        """The whole text as one word, always the same."""
        self.word = self.word or seals.seal(self.text)
        return self.word
