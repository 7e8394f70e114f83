"""What an analysis says: every marker with the rendering that it was cut from, and what it could not tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = [
    "Analysis",
    "Arguments",
    "CallMarkers",
    "ContentMarkers",
    "Marker",
    "ReasoningMarkers",
    "Refused",
    "Variant",
]

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
    "gemma-like",
    "channels",
    "reasoning",
    "content",
]


class Refused(Exception):
    """The renderings do not say it, or the builder cannot; the text says what and why."""


@dataclass(frozen=True, slots=True)
class Marker:
    """A text of the wire: what it is for, and the rendering (``what`` was asked, ``text`` came) that shows it at
    ``at``, -1 where it was put together from several."""

    use: str
    marker: str
    what: str
    text: str
    at: int


@dataclass(frozen=True, slots=True)
class ReasoningMarkers:
    """What stands around reasoning.

    ``mode``: ``optional`` (the model opens it), ``forced open`` (the prompt does), ``implicit`` (nobody does; the
    closer alone is written).
    ``left_open``: a call is written behind reasoning that is not closed. ``bare_close``: where there is no thought, the
    closer stands alone.
    """

    mode: Literal["optional", "forced open", "implicit"]
    open: str
    close: str
    left_open: bool = False
    bare_close: bool = False


@dataclass(frozen=True, slots=True)
class ContentMarkers:
    """What stands around content, both ``""`` where it is plain; ``lead`` is white space that the template writes
    before every answer; ``also`` is what opens content beside a call, where that is another opener."""

    open: str = ""
    close: str = ""
    lead: str = ""
    also: str = ""


@dataclass(frozen=True, slots=True)
class Arguments:
    """How the arguments stand in a call.

    ``syntax``: ``object`` (one object in JSON), ``gemma`` (one object in Gemma's syntax, ``quote`` around strings),
    else each by itself: ``raw`` text, ``json`` or ``python`` literals, between ``key_before`` KEY ``key_behind`` VALUE
    ``behind``, with ``separator`` between two. ``python``: raw values that are no strings are spelt as Python does.
    ``kinds``: where an attribute says of what kind a value that is no string is, each ``key_behind`` of those.
    """

    syntax: Literal["object", "gemma", "raw", "json", "python"] = "object"
    key_before: str = ""
    key_behind: str = ""
    behind: str = ""
    separator: str = ""
    quote: str = ""
    python: bool = False
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CallMarkers:
    """How calls are written.

    ``section`` opens and closes all calls of a turn. ``before`` and ``behind`` stand around each call, ``separator``
    between two, ``lead`` is the white space between content and calls. A call in markup is ``before`` NAME
    ``name_behind`` ARGUMENTS ``behind``. A call that is a JSON object has ``members`` in their order, each a kind and a
    key. The kinds are ``name``, ``args``, ``id``, and ``=`` with the JSON of a constant. ``nested`` is the key of the
    object that holds name and arguments. ``as_key``: the tool's name is the only key.

    ``array``: the calls are one JSON array, and this is its white space: behind ``[``, before and behind the comma,
    before ``]``. ``id_form`` is ``""`` (no id), ``counter``, ``short`` (nine letters and digits) or ``any``; in a
    header the id stands behind ``id_before``. ``counted``: a counter stands in the header behind this text.
    ``block`` is what the prompt has already written of the first call's ``before``. ``end_optional``: the closer may be
    missing where the turn ends. ``parallel``: a turn may have several calls. ``alone``: nothing opens a call, so calls
    begin the turn or are none.
    """

    section: tuple[str, str] = ("", "")
    before: str = ""
    behind: str = ""
    separator: str = ""
    name_behind: str = ""
    arguments: Arguments = Arguments()
    members: tuple[tuple[str, str], ...] = ()
    nested: str = ""
    as_key: bool = False
    array: tuple[str, str, str, str] | None = None
    id_form: Literal["", "counter", "short", "any"] = ""
    id_before: str = ""
    counted: str = ""
    parallel: bool = True
    alone: bool = False
    lead: str = ""
    end_optional: bool = False
    block: str = ""


@dataclass(frozen=True, slots=True)
class Analysis:
    """What the renderings of one template say.

    ``variant`` in one word; ``header`` is the role header that the prompt writes; ``block`` what opens a further
    block of the turn, where the prompt opens the first; ``stops`` end the turn. ``refused``: what could not be told,
    a line each. ``markers``: where each marker was seen.
    """

    variant: Variant
    header: str
    reasoning: ReasoningMarkers | None = None
    content: ContentMarkers = ContentMarkers()
    calls: CallMarkers | None = None
    block: str = ""
    stops: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    markers: tuple[Marker, ...] = ()
