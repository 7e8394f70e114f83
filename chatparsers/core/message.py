"""What has been read: the message, its calls, its regions and what was wrong with it."""

# Annotations are objects here, not texts: `typing.get_type_hints` finds no names in the module that users see.
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

from .public import public

__all__ = ["Diagnostic", "DiagnosticCode", "FinishReason", "Message", "Region", "RegionKind", "ToolCall"]

RegionKind: TypeAlias = Literal["reasoning", "content", "call", "markup"]
DiagnosticCode: TypeAlias = Literal[
    "malformed",
    "truncated",
    "mended",
    "unknown-tool",
    "unknown-token",
    "stray-marker",
    "unwanted-call",
    "markup-in-value",
]
FinishReason: TypeAlias = Literal["stop", "length"]


@public
@dataclass(frozen=True, slots=True)
class Region:
    """A stretch of the model's text of one ``kind``: ``reasoning``, ``content``, ``call`` or ``markup``.

    ``start`` and ``end`` are in characters; ``token_start`` and ``token_end`` in tokens, None where text was
    fed. A token that holds the end of one region and the start of the next belongs to both.
    """

    kind: RegionKind
    start: int
    end: int
    token_start: int | None = None
    token_end: int | None = None


@public
@dataclass(frozen=True, slots=True)
class Diagnostic:
    """Something the model wrote against its format, or that was mended.

    ``code``: ``malformed``, ``truncated``, ``mended``, ``unknown-tool``, ``unknown-token``, ``stray-marker``;
    ``position`` in characters of the model's text; ``expected`` what the format allows there; ``found`` what
    stands there; ``call`` the index of the call it is in.
    """

    code: DiagnosticCode
    position: int
    expected: str = ""
    found: str = ""
    call: int | None = None

    def __str__(self) -> str:
        where = f"character {self.position}" + ("" if self.call is None else f", call {self.call}")
        what = f"expected {self.expected}" if self.expected else ""
        found = f"found {self.found!r}" if self.found else ""
        return f"{self.code} at {where}: " + (", ".join(filter(None, (what, found))) or "the text ends here")


@public
@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call: ``arguments`` is JSON text whenever ``complete``, else what there is of it."""

    index: int
    id: str
    name: str
    arguments: str
    complete: bool


@public
@dataclass(slots=True)
class Message:
    """What the model said. ``text`` is all it wrote; ``regions`` say what each stretch of that is.

    ``complete``: the turn ended, and nothing in it was cut off or broken.
    """

    content: str = ""
    reasoning: str = ""
    tool_calls: list[ToolCall] = field(default_factory=list)
    complete: bool = False
    diagnostics: list[Diagnostic] = field(default_factory=list)
    regions: list[Region] = field(default_factory=list)
    text: str = ""

    def to_openai(self) -> dict[str, Any]:
        """The message as the chat-completions API writes it, with ``reasoning_content`` beside it."""
        message: dict[str, Any] = {"role": "assistant", "content": self.content or None}
        if self.reasoning:
            message["reasoning_content"] = self.reasoning
        if self.tool_calls:
            message["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in self.tool_calls
            ]
        return message

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain JSON data."""
        return asdict(self)
