"""The rows of a report: what is wrong, whose fault it is, and the witness."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeAlias

from ..public import public
from ..streams.message import Message

Blame: TypeAlias = Literal["server", "likely", "model", "policy", "unknown"]
BLAMES: tuple[Blame, ...] = ("server", "likely", "unknown", "policy", "model")
"""The worst first."""
OTHER_MODEL = "other-model"
"""The code of the row which says that nothing could be judged, as the files seem to be another model's."""


@public
@dataclass(frozen=True, slots=True)
class Row:
    """One thing that is wrong in one answer.

    ``code``: stable, such as ``call-lost``; docs/tables/verify-codes.md has each. ``blame``: ``server`` (proved by the
    raw text of the same request, by the request itself, or by two equal runs), ``likely`` (by the raw text of another
    request with the same prompt), ``model`` (the raw text itself is broken), ``policy`` (a choice that servers make) or
    ``unknown``. ``probe``: the request's name, with ``/stream`` if it was streamed. ``api``: ``chat``, ``messages`` or
    ``responses``. ``said`` and ``should``: what the server said, and what it should have said, as far as that is known.
    ``at``: the first character in which the two texts differ. ``raw``: what the model wrote. ``request``: the body.
    ``id``: the answer's id. ``mend``: what to do, if it is known. ``private``: the texts are a user's own, and reports
    leave them out. ``path``: where the request went. ``reading``: what we read in ``raw``.
    """

    code: str
    blame: Blame
    probe: str
    what: str
    api: str = "chat"
    said: Any = None
    should: Any = None
    at: int | None = None
    raw: str | None = None
    request: Mapping[str, Any] = field(default_factory=dict)
    id: str | None = None
    mend: str = ""
    private: bool = False
    path: str = ""
    reading: Message | None = field(default=None, repr=False, compare=False)

    def to_dict(self, *, texts: bool = False) -> dict[str, Any]:
        """The row as plain values. ``texts``: also the texts of requests that are a user's own.

        >>> from chatparsers.verify import Row
        >>> Row("call-lost", "server", "auto", "0 of the 1 calls that the model wrote").to_dict()["blame"]
        'server'
        """
        hidden = ("said", "should", "raw", "request") if self.private and not texts else ()
        names = [each.name for each in fields(self) if each.name != "reading"]
        return {name: None if name in hidden else getattr(self, name) for name in names}


_COMPARED = ("content-differs", "cut-markup", "markup-shown", "reasoning-differs", "white-space")
"""The codes whose two texts can be laid beside each other."""


def parting(code: str, said: object, should: object) -> int | None:
    """The first character in which two texts differ; None if they cannot be laid beside each other."""
    if code not in _COMPARED or not isinstance(said, str) or not isinstance(should, str):
        return None
    return first_difference(said, should)


def first_difference(left: str, right: str) -> int:
    """The first character in which two texts differ, or the length of the shorter one."""
    pairs = enumerate(zip(left, right, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(left), len(right)))
