"""The results of an analysis: every marker, and the open questions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Literal

from ...answers import Json
from ...shown import Shown
from ...values import Syntax
from ..limits import Limit
from .probes import ADDRESSEE, ASKED, CLOSED

Variant = Literal[
    "json-native",
    "name-as-key",
    "tagged-json",
    "tagged-args",
    "bracket-tag",
    "recipient",
    "markdown-block",
    "prefixed-indexed",
    "python-call",
    "nested-elements",
    "gemma-like",
    "channels",
    "reasoning",
    "content",
]


class Refused(Exception):
    """The renderings do not say it, or the builder cannot; the text says what and why."""


@dataclass(frozen=True, slots=True)
class ReasoningMarkers:
    """The markers around reasoning. ``left_open``: a call may follow reasoning that is not closed. ``bare_close``:
    without a thought, only the closer is written. ``always``: nothing opens it, and every answer has the closer."""

    open: str
    close: str
    left_open: bool = False
    bare_close: bool = False
    always: bool = False


@dataclass(frozen=True, slots=True)
class ContentMarkers:
    """The markers around content, both ``""`` if content is plain. ``lead``: white space that the template writes
    before every answer. ``also``: the opener of content beside a call, if it is another one."""

    open: str = ""
    close: str = ""
    lead: str = ""
    also: str = ""


@dataclass(frozen=True, slots=True)
class Kind:
    """How an argument is written whose value has this JSON type: ``before`` KEY ``after`` VALUE ``close``. The type
    ``json`` is any type but a string, None is any. ``chars``: a regular expression for one character of a string that
    is written so, if strings with other characters are written in another way."""

    type: str | None
    before: str
    after: str
    close: str = ""
    chars: str = ""


@dataclass(frozen=True, slots=True)
class Arguments:
    """How the arguments are in a call.

    ``syntax``: how values are spelt, in the builder's words. ``whole``: all arguments are one object in this syntax.
    Otherwise each argument is ``key_before`` KEY ``key_after`` VALUE ``after``, with ``separator`` between two
    arguments. ``again``: the text between a value and the argument's name, if the closer names the argument once more;
    ``after`` follows that name. ``escapes``: the characters that a name spells in another way, each with its spelling.
    ``kinds``: the markers for each type, if an attribute names the value's type, or if some values are between marks.
    """

    syntax: Syntax = field(default_factory=Json)
    whole: bool = True
    key_before: str = ""
    key_after: str = ""
    again: str = ""
    after: str = ""
    separator: str = ""
    escapes: tuple[tuple[str, str], ...] = ()
    kinds: tuple[Kind, ...] = ()


@dataclass(frozen=True, slots=True)
class CallMarkers:
    """How calls are written.

    ``section`` opens and closes all calls of a turn. ``before`` and ``after`` are around each call, ``separator``
    between two, ``lead`` is the white space between content and calls. A call in markup is ``before`` NAME
    ``name_after`` ARGUMENTS ``after``; `ADDRESSEE` in ``before`` and `CLOSED` in ``after`` are the name too. A call
    that is a JSON object has
    ``members`` in their order, each a kind and a key. The kinds are ``name``, ``args``, ``id``, and ``=`` with the JSON
    of a constant. ``nested`` is the key of the object that holds name and arguments, ``gap`` the white space after a
    comma. ``as_key``: the tool's name is the only key.

    ``array``: the calls are one JSON array with this white space: after ``[``, before and after the comma,
    before ``]``. ``id_form`` is ``""`` (no id), ``counter``, ``short`` (nine letters and digits) or ``any``. In a
    header the id follows ``id_before``, or it comes before the name, and ``id_after`` between them. ``counted``: a
    counter in the header follows this text. ``block``: the part of the first call's ``before`` that the prompt has
    already written. ``end_optional``: the closer may be missing at the end of the turn. ``parallel``: a turn may have
    several calls. ``alone``: no marker opens a call, so calls can only begin the turn. ``led``: calls follow the white
    space that the template writes before every answer. ``empty``: the markers of an empty answer, if the template
    writes one before calls without content.
    """

    section: tuple[str, str] = ("", "")
    before: str = ""
    after: str = ""
    separator: str = ""
    name_after: str = ""
    arguments: Arguments = Arguments()
    members: tuple[tuple[str, str], ...] = ()
    nested: str = ""
    gap: str = " "
    as_key: bool = False
    array: tuple[str, str, str, str] | None = None
    id_form: Literal["", "counter", "short", "any"] = ""
    id_before: str = ""
    id_after: str = ""
    counted: str = ""
    parallel: bool = True
    alone: bool = False
    lead: str = ""
    led: bool = False
    empty: str = ""
    end_optional: bool = False
    block: str = ""


@dataclass(frozen=True, slots=True)
class Analysis(Shown):
    """All that was found in the renderings of one template.

    ``variant``: the kind of format in one word. ``header``: the role header that the prompt writes. ``block``: the text
    that opens a further block of the turn, if the prompt opens the first. ``end``: the template's text after an answer,
    unchanged; ``stops`` end the turn. ``refused``: the questions that stayed open, a line each. ``confidence``: the
    share of the turns read back exactly in the proof, from 0 to 1, among those of a template that writes messages of
    all kinds (reasoning, several calls, text beside them). ``limits``: what the proof does not hold for; all else is
    proved. ``sep``: a marker that ends messages and also opens calls, so it is no stop.
    """

    variant: Variant
    header: str
    reasoning: ReasoningMarkers | None = None
    content: ContentMarkers = ContentMarkers()
    calls: CallMarkers | None = None
    block: str = ""
    stops: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    confidence: float = 0.0
    limits: tuple[Limit, ...] = ()
    sep: str = ""
    end: str = ""

    @property
    def tools(self) -> bool:
        """Whether the format has calls."""
        return self.calls is not None

    @property
    def parallel(self) -> bool:
        """Whether a turn may have several calls."""
        return self.calls is not None and self.calls.parallel

    def markers(self) -> Iterator[tuple[str, str]]:
        """Each text of the markup, and which it is."""
        arguments = None if self.calls is None else self.calls.arguments
        parts = {
            "reasoning": self.reasoning,
            "content": self.content,
            "calls": self.calls,
            "arguments": arguments,
        }
        for part, record in parts.items():
            for each in fields(record) if record is not None else ():
                value = getattr(record, each.name)
                for text in value if isinstance(value, tuple) else (value,):
                    if isinstance(text, str) and text.strip() and each.name not in _NO_MARKERS:
                        shown = text.replace(ADDRESSEE, ASKED.names[0]).replace(CLOSED, ASKED.names[0])
                        yield f"{part}, {each.name.replace('_', ' ')}", shown
        if self.end.strip():
            yield "end of turn", self.end.strip()


_NO_MARKERS = frozenset({"nested", "id_form"})
