"""What an explanation says: causes, each with a code that does not change, and where declared tools are named."""

# No "annotations" import here: `typing.get_type_hints` looks names up in the module that users see, and finds none.
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

from ..plain import one_line
from ..public import public
from ..shown import Shown
from ..streams.message import Message, RegionKind

CauseCode: TypeAlias = Literal[
    "unknown-tool",
    "truncated",
    "broken",
    "tools-not-given",
    "prefix",
    "thought-open",
    "in-thought",
    "markers-stripped",
    "marker-missing",
    "lenient",
    "other-format",
    "escaped",
    "byte-level",
    "template-without-tools",
    "undeclared",
    "unread",
]


@public
@dataclass(frozen=True, slots=True)
class Cause:
    """One reason why a text was not read as somebody expected.

    ``code`` does not change between releases; docs/explain.md has a line for each. ``says``: the reason, in words.
    ``mend``: what to do, a command or a keyword where there is one. ``position`` counts characters of the text; None:
    the cause is no place in it. ``formats``: the names of formats that read the text otherwise, the best first.
    """

    code: CauseCode
    says: str
    mend: str
    position: int | None = None
    formats: tuple[str, ...] = ()

    def __str__(self) -> str:
        return one_line(f"{self.code}: {self.says}")

    def lines(self) -> tuple[str, str]:
        """The reason and what to do, each in a line for a terminal.

        >>> cause = Cause("lenient", "JSON in a fence", "--lenient-calls")
        >>> cause.lines()
        ('because:  lenient: JSON in a fence', '  do:     --lenient-calls')
        """
        return f"because:  {self}", f"  do:     {one_line(self.mend)}"


@public
@dataclass(frozen=True, slots=True)
class Mention:
    """A declared tool's name in the text, at the character ``position``, in a region of that ``kind``."""

    tool: str
    kind: RegionKind
    position: int


@public
@dataclass(frozen=True)
class Explanation(Shown):
    """Why a text was read as it was: what `explain` found. A notebook shows it as a picture.

    ``message``: what was read. ``mentions``: where the names of declared tools stand in it. ``causes``: what is wrong,
    the likeliest first; empty if nothing is.
    """

    message: Message
    mentions: list[Mention] = field(default_factory=list)
    causes: list[Cause] = field(default_factory=list)

    @property
    def code(self) -> CauseCode | Literal["nothing"]:
        """The code of the likeliest cause; ``nothing`` if nothing is wrong.

        >>> turn = chatparsers.get_format("qwen3").bind(tools=tools)
        >>> chatparsers.explain("It is cold.", turn).code
        'nothing'
        """
        return self.causes[0].code if self.causes else "nothing"

    def to_dict(self) -> dict[str, Any]:
        """The explanation as plain JSON data.

        >>> turn = chatparsers.get_format("qwen3").bind(tools=tools)
        >>> sorted(chatparsers.explain("It is cold.", turn).to_dict())
        ['causes', 'code', 'mentions', 'message']
        """
        return {"code": self.code, **asdict(self)}

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        message = self.message
        parts = [
            f"{region.kind} {region.start}–{region.end}"
            for region in message.regions
            if region.start < region.end
        ]
        yield f"read as:  {', '.join(parts) or 'nothing'}" + ("" if message.complete else "; not complete")
        for call in message.tool_calls:
            yield f"call:     {one_line(call.name)}" + ("" if call.complete else ", not complete")
        for mention in self.mentions[:5]:
            yield f"named:    {one_line(mention.tool)} in the {mention.kind}, character {mention.position}"
        if not self.causes:
            yield "because:  nothing is wrong: no declared tool stands in the text as in a call"
        for cause in self.causes:
            yield from cause.lines()
