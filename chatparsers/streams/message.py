"""The message that was read: its texts, its calls, its regions and its diagnostics."""

# No "annotations" import here: `typing.get_type_hints` looks names up in the module that users see, and finds none.
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields, make_dataclass
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar, cast

from ..public import public
from ..shown import Shown

_Record = TypeVar("_Record")
RegionKind: TypeAlias = Literal["reasoning", "content", "call", "markup"]
DiagnosticCode: TypeAlias = Literal[
    "malformed",
    "truncated",
    "mended",
    "unknown-tool",
    "unknown-token",
    "stray-marker",
    "unwanted-call",
    "unopened-call",
    "markup-in-value",
    "unread-member",
    "repeated-argument",
    "repeated-call",
    "tools-not-given",
    "looks-like-a-call",
    "other-type",
    "text-after-end",
    "repeated-text",
    "repeated-turn",
    "schema",
]
FinishReason: TypeAlias = Literal["stop", "length"]


@public
@dataclass(frozen=True, slots=True)
class Region:
    """A run of the model's text of one ``kind``: ``reasoning``, ``content``, ``call`` or ``markup``.

    ``start`` and ``end`` count characters. ``token_start`` and ``token_end`` count tokens, and are None if text was
    fed. A token that holds the end of one region and the start of the next belongs to both.
    """

    kind: RegionKind
    start: int
    end: int
    token_start: int | None = None
    token_end: int | None = None


@public
class Loop(NamedTuple):
    """A text that the model repeats again and again within one region of ``kind``.

    ``start`` and ``end`` count characters of the model's text, and ``period`` those of one round; more of the same may
    come after ``end``. ``stuck``: it has gone on for 8 rounds and 400 characters, so that nobody need wait for its end.
    """

    kind: RegionKind
    start: int
    end: int
    period: int
    stuck: bool

    @property
    def rounds(self) -> int:
        """How often the text stands there."""
        return (self.end - self.start) // self.period


@public
@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A mistake of the model against its format or the request, or a value that was mended.

    ``code`` is a `DiagnosticCode`; docs/contract.md explains each one. ``position`` counts characters of the model's
    text. ``expected`` names what the format allows there, and ``found`` is the text there. ``call`` is the index of the
    call, None outside calls.
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
class ToolCall(Shown):
    """One call. ``arguments`` is JSON text if ``complete``, else the part that was read."""

    index: int
    id: str
    name: str
    arguments: str
    complete: bool

    @property
    def parsed_arguments(self) -> dict[str, Any] | None:
        """The arguments as an object; None if the call is not complete, or Python cannot hold them."""
        try:
            found = json.loads(self.arguments) if self.complete else None
        except (ValueError, RecursionError):  # a number of 5,000 digits, or lists in lists without an end
            return None
        return found if isinstance(found, dict) else None


def _maker(frozen: type[_Record]) -> Callable[..., _Record]:
    """A function that makes objects of a frozen class, in a fifth of the class's own time: it fills an open one, which
    has the same slots, and gives it the class."""
    names = [field.name for field in fields(cast(Any, frozen))]
    opened = make_dataclass(
        "opened", names, bases=frozen.__bases__, slots=True, repr=False, eq=False, match_args=False
    )

    def made(*values: object) -> _Record:
        found: Any = opened(*values)
        found.__class__ = frozen
        return cast(_Record, found)

    return made


made_region, made_call = _maker(Region), _maker(ToolCall)


class _Later:
    """A field that may hold the function that makes its value, until somebody asks for the value."""

    def __init__(self, slot: Any) -> None:
        self._read, self._write = slot.__get__, slot.__set__

    def __get__(self, record: object, owner: type) -> Any:
        if record is None:
            return self
        found = self._read(record)
        if callable(found):
            found = found()
            self._write(record, found)
        return found

    def __set__(self, record: object, value: object) -> None:
        self._write(record, value)


class _OfTurn(Shown):
    """A base of what may know the turn that read it, so that a notebook can say why a text is no call. It is no part of
    the message's value: it is not compared, copied or pickled."""

    __slots__ = ("_turn",)
    _turn: Any


@public
@dataclass(slots=True)
class Message(_OfTurn):
    """The message of the model. ``text`` is all that it wrote; ``regions`` give each part of that text its kind.

    ``complete``: the turn ended, and nothing in it was cut off or broken.
    """

    content: str = ""
    reasoning: str = ""
    tool_calls: list[ToolCall] = field(default_factory=list)
    complete: bool = False
    diagnostics: list[Diagnostic] = field(default_factory=list)
    regions: list[Region] = field(default_factory=list)
    text: str = ""

    def to_openai(self, incomplete: Literal["keep", "drop"] = "keep") -> dict[str, Any]:
        """The message as the chat-completions API writes it, with ``reasoning_content`` beside it.

        ``incomplete``: whether calls that are not complete stay, for hosts that must not show them. Raises
        `ValueError` for another value.

        >>> message = chat.bind(tools=tools, id_seed="a").parse(call)
        >>> message.to_openai()["tool_calls"][0]["function"]
        {'name': 'get_weather', 'arguments': '{"city": "Oslo"}'}
        """
        if incomplete not in ("keep", "drop"):
            raise ValueError(f"incomplete: expected 'keep' or 'drop', found {incomplete!r}")
        message: dict[str, Any] = {"role": "assistant", "content": self.content or None}
        if self.reasoning:
            message["reasoning_content"] = self.reasoning
        calls = [call for call in self.tool_calls if call.complete or incomplete == "keep"]
        if calls:
            message["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in calls
            ]
        return message

    def to_anthropic(self) -> dict[str, Any]:
        """The message as Anthropic's Messages API writes it: blocks of thinking, text and calls.

        A call that is not complete has no arguments that such a block could hold, so it is left out.

        >>> message = chat.bind(tools=tools, id_seed="a").parse(call)
        >>> [block["type"] for block in message.to_anthropic()["content"]]
        ['tool_use']
        """
        blocks: list[dict[str, Any]] = []
        if self.reasoning:
            blocks.append({"type": "thinking", "thinking": self.reasoning, "signature": ""})
        if self.content:
            blocks.append({"type": "text", "text": self.content})
        for call in self.tool_calls:
            if (given := call.parsed_arguments) is not None:
                blocks.append({"type": "tool_use", "id": call.id, "name": call.name, "input": given})
        return {"role": "assistant", "content": blocks}

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        return None, {each.name: getattr(self, each.name) for each in fields(self)}

    def to_dict(self) -> dict[str, Any]:
        """The whole message as plain JSON data.

        >>> sorted(chat.bind().parse("Hi").to_dict())
        ['complete', 'content', 'diagnostics', 'reasoning', 'regions', 'text', 'tool_calls']
        """
        return asdict(self)


setattr(Message, "regions", _Later(Message.__dict__["regions"]))  # noqa: B010 -- a type checker keeps to the field
