"""What a request asks for and cannot get: an error, or left out where the server was told so.

An answer without it would look right and be wrong, so it is an error. But coding agents send such things whether they
need them or not: tools that a server runs, images in the history. `Drops` then leaves them out, puts a line of text in
the place of a part, and remembers what it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..chat.loading import REFERENCE
from .errors import ApiError
from .images import NOT_FETCHED, Image, ImageLimits, Images
from .partial import object_text
from .sealed import PLAIN, Seals

ELSEWHERE = dict.fromkeys(
    ("logprobs", "top_logprobs", "n", "return_token_ids"),
    "this API has no such field: ask by chat completions",
)
"""What only some of the APIs have."""
_ABSENT: tuple[object, ...] = (None, False, 0, "", [])
"""Values that ask for nothing. An empty object does: ``web_search_options: {}``."""
_FILES = ("image", "audio", "video", "file", "document")


class Drops:
    """Refuses what cannot be given, or drops it. ``kinds``: what was left out, such as ``tool web_search``. ``images``:
    what collects images, where they can be given; None: they cannot. ``seals``: what opens sealed thoughts."""

    __slots__ = ("allowed", "images", "kinds", "loading", "seals")

    def __init__(
        self, allowed: bool = False, images: ImageLimits | None = None, seals: Seals | None = None
    ) -> None:
        self.allowed = allowed
        self.seals = seals or PLAIN
        self.images = None if images is None else Images(images)
        self.kinds: dict[str, None] = {}
        self.loading = False
        """Whether a message loads tools, or takes one back."""

    def loads(self, name: str, kind: str = REFERENCE) -> dict[str, Any]:
        """The part of a message that loads a tool, or takes it back."""
        self.loading = True
        return {"type": kind, "tool_name": name}

    def opened(self, word: str) -> str:
        """A thought that was sealed. One that cannot be opened is left out."""
        thought = self.seals.open(word)
        if thought is None:
            self.kinds["encrypted thought of another server"] = None
        return thought or ""

    def image(self, part: Mapping[str, Any], path: str) -> dict[str, Any] | None:
        """What a message has in the place of an image; None if the part is none, or one that cannot be given and may
        be dropped."""
        try:
            return None if self.images is None else self.images.part(part, path)
        except ApiError as error:
            if not self.allowed or error.code != NOT_FETCHED:
                raise
            return None

    @property
    def found_images(self) -> tuple[Image, ...]:
        """The images, in the order of the messages."""
        return () if self.images is None else tuple(self.images.found)

    def part(self, kind: object, path: str, known: tuple[str, ...]) -> list[dict[str, Any]]:
        """What is in the place of a part that is no text: a line for an image or a file, else nothing. Raises
        `ApiError` if nothing may be dropped."""
        named = next((word for word in _FILES if word in str(kind)), None)
        if not self.allowed and named is not None:
            message = f"this server reads text alone, and found a part of type {kind!r}: leave it out"
            raise ApiError(message, param=path, code=f"{named}_not_supported")
        self.item(kind, path, known, "part")
        text = f"[{kind!s:.64} left out: this model reads text alone]"
        return [] if named is None else [{"type": "text", "text": text}]

    def item(self, kind: object, path: str, known: tuple[str, ...], what: str = "item") -> None:
        """Leaves an item out. Raises `ApiError` if nothing may be dropped."""
        if not self.allowed or not isinstance(kind, str):
            expected = ", ".join(repr(name) for name in known)
            raise ApiError(f"expected {expected}, found {kind!r}", param=f"{path}.type")
        self.kinds[f"{what} {kind[:64]}"] = None

    def tool(self, kind: object, path: str, which: str, *, spare: bool = False) -> None:
        """Leaves a tool out. Raises `ApiError` if nothing may be dropped, unless an answer can ``spare`` it."""
        if not self.allowed and not spare:
            message = f"tools {which} are supported, found {kind!r}: leave it out"
            raise ApiError(message, param=f"{path}.type", code="unsupported_tool")
        self.kinds[f"tool {str(kind)[:64]}"] = None

    def arguments(self, text: str) -> str:
        """The arguments of a call in the history. What a model broke off is left out, flag or no flag: no template has
        a place for it, and with an error the conversation could never go on."""
        kept = object_text(text)
        if kept != text:
            self.kinds["broken end of a call's arguments"] = None
        return kept

    def verbosity(self, value: object, path: str) -> None:
        """Leaves out how long answers should be: a hint. ``medium`` is the default of OpenAI's models."""
        if value not in (None, "medium"):
            self.kinds[f"field {path}"] = None

    def fields(
        self, body: Mapping[str, Any], why: Mapping[str, str], droppable: tuple[str, ...] = ()
    ) -> None:
        """Refuses the fields that ask for something. ``why``: the reason by name. Some may be dropped."""
        for name, reason in why.items():
            if body.get(name) in _ABSENT or (name == "n" and body[name] == 1):
                continue
            if not self.allowed or name not in droppable:
                raise ApiError(reason, param=name, code="unsupported_parameter")
            self.kinds[f"field {name}"] = None
