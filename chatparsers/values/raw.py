"""Raw tagged text: a value between tags, typed by its schema.

Strategy:
- A string streams, escaped for JSON.
- An object or an array streams through a scanner of JSON or Python literals.
- A value of any other type is short. It is held until its closing tag. If it is JSON it is passed on, else it becomes
  a string, with a note.
- If the schema admits a string and another type, the text is held while it may still become JSON of the other type.
  From the first character that rules this out, it streams as a string.

Raw text holds a marker of a call only if it is about markers, or if the model forgot the value's closing tag. A marker
that comes as a special token breaks the value. A marker that comes as text is kept, and the first one is reported
(``marked``). In an object or an array, JSON says where the value ends, so a marker in its strings is text.

A text may spell the closing tag itself. It closes the value only if what may follow it does (closers.py). If another
tag follows, the next ``_NEAR`` characters tell: the tag is text if a later one closes the value. If the turn ends
before, it closed the value, and what follows it does not belong there.

Where a model leaves the closing tag out, the tag of another argument ends the value, if its tool declares the argument
and the call has not given it yet (``named``); so does what is between two calls, up to the first tag in the call of
a declared tool (``seams``). A text may also quote such a tag: it does so where text goes on after it and no value
begins (`_text_goes_on`), or where the same tag follows the next closing tag and gives the argument there. Then all
that follow it in the value are quoted too. A quoted tag that is written as the format writes it has its closing tag in
the text (``depth``), unless the call, or the turn, ends with that.

Some templates write values that are not strings as Python prints them (``True``, ``None``, ``{'a': 1}``). Their formats
say so (``python``), and both spellings are read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache, lru_cache, partial
from itertools import repeat
from typing import TYPE_CHECKING

from ..core.machine.stops import WHITE, StopFinder, longest_first
from ..core.machine.value import Search, Transcoder
from .base import escape
from .closers import NO_CLOSERS, Closers, squeezed
from .json import PYTHON_WORDS, SCALAR, JsonScanner

if TYPE_CHECKING:
    from ..schema.tools import Argument, Toolset

Escapes = tuple[tuple[str, str], ...]
"""Characters of a string, each with its spelling in the text."""


class _Raw(Transcoder):
    """Reads text up to a stop. ``names``: the argument, then the arguments of its tool that the call has not given.
    ``tools``: the tools of the request; None where the format has no seam of two calls. ``closers``: the stops of which
    the text may be part of the value. ``depth``: -1, or from the first marker in the text on, how many tags of
    arguments it quotes and does not close. ``passed``: that first marker is the value's own closing tag. ``begun``: the
    quote before a string has gone out.
    """

    __slots__ = ("begun", "closers", "depth", "names", "open", "passed", "stops", "told", "tools")

    def __init__(
        self,
        stops: StopFinder,
        closers: Closers = NO_CLOSERS,
        names: tuple[str, ...] = (),
        tools: Toolset | None = None,
    ) -> None:
        self._set_up(stops, closers, names, tools)

    def _set_up(
        self, stops: StopFinder, closers: Closers, names: tuple[str, ...], tools: Toolset | None
    ) -> None:
        """Sets what every reader of a raw value has. Compiled, it is called at less cost than ``__init__``."""
        self._reset()
        self.stops = stops
        self.closers = closers
        self.names = names
        self.tools = tools
        self.depth = -1
        self.passed = False
        self.told = False
        self.open = False
        self.begun = False

    def cut_off(self) -> None:
        self.open = True

    def holds(self, text: str) -> bool:
        match = self.stops.find(text, 0)  # a search costs less than `at`: pieces are short
        if match is None or match.start():
            return False
        if match[1] is not None:
            return True
        follow = self.closers.known.get(match[0])
        return follow is not None and follow.stands(text, match.end()) < 0

    def text(self, text: str, start: int, final: bool) -> tuple[int, bool]:
        """Returns where the value's text ends, and whether it is over there; sets ``error``, ``marked`` and adds to
        ``notes``."""
        self.marked = -1
        end, over = self.stops.text(text, start, final)
        return self.checked(text, end, final) if over else (end, False)

    def checked(self, text: str, end: int, final: bool) -> tuple[int, bool]:
        """The same, where something that is searched for is at ``end``."""
        if self.depth < 0 and self.closers.sure(text, end):
            return end, True
        over = True
        while over and end < len(text):
            stops = self.stops
            size = 1
            if text.startswith(stops.stops, end):
                stop = _first(stops.stops, text, end)
                closes = self._closes(stop, text, end, final)
                if closes:
                    # A turn that ends here could have gone on: nobody knows what the tag is.
                    return (len(text) if final and closes < 0 else end), closes > 0
                self.passed = self.passed or self.depth < 0
                self._quotes(end)
                size = len(stop)
            elif text.startswith(stops.openers, end):
                named = self._named(text, end, final)
                if named:
                    return (len(text) if final and named < 0 else end), named > 0
            if stops.token is not None and stops.token(text[end]):
                # What is searched for may begin with a marker, as `<|close|>argument` does.
                if final or not any(map(str.startswith, stops.known, repeat(text[end:]))):
                    self.error = stops.expected
                return end, False
            quiet = stops.quiet
            if quiet is not None and text.startswith(stops.markers, end):
                if quiet.at(text, end) < 0 and not final:
                    return end, False  # it may still become what is searched for
                self._quotes(end)
                self.stops = quiet
            end, over = self.stops.text(text, end + size, final)
        return end, over

    def _quotes(self, end: int) -> None:
        """Notes that the marker at ``end`` is part of the value; the first one is reported."""
        if not self.told:
            self.marked, self.told = end, True
        self.depth = max(self.depth, 0)

    def _closes(self, stop: str, text: str, end: int, final: bool) -> int:
        """1 if ``stop``, which is at ``end``, closes the value; -1 if more text must tell, else 0."""
        follow = self.closers.get(stop)
        if follow is None:
            return 1
        at = end + len(stop)
        closes = follow.stands(text, at)
        if closes > 0 and self.depth < 0:
            self.closers.closed(follow)
        elif closes > 0 and (self.depth > 0 or (follow.loose and not self.depth)) and follow.ends.over:
            tools = () if self.tools is None else self.tools.names()
            closes = follow.ended(text, at, final and not self.open, tools) or self._next_tag(text, at)
        if not closes and self.depth > 0:
            self.depth -= 1
        elif not closes and text[at : at + _AHEAD].lstrip(WHITE)[:1] == "<":
            later = self._next_closer(text, at, final)
            closes = 1 if later == _NONE else -1 if later == _OPEN else 0
        return closes

    def _next_closer(self, text: str, at: int, final: bool) -> int:
        """Where the next closing tag after ``at`` ends that closes a value; else `_NONE` if the turn, or a token that
        no value holds, ends the text before one, `_OPEN` if more text must tell, and `_FAR` if none is near."""
        stops, here = self.stops, at
        for _ in range(_MOST):
            match = stops.find(text, here)
            if match is None or match.start() >= at + _NEAR:
                if len(text) >= at + _NEAR:
                    return _FAR
                return _NONE if final and not self.open else _OPEN
            begin = match.start()
            here = begin + 1
            if stops.token is not None and stops.token(text[begin]):
                return _NONE
            if match[1] is not None and not final:
                return _OPEN
            if text.startswith(stops.stops, begin):
                stop = _first(stops.stops, text, begin)
                here = begin + len(stop)
                follow = self.closers.get(stop)
                closes = 1 if follow is None else follow.stands(text, here)
                if closes:
                    return here if closes > 0 or final else _OPEN
        return _FAR

    def _next_tag(self, text: str, at: int) -> int:
        """The same for the tag of an argument that the call has not given, at ``at`` after white space."""
        rest = squeezed(text[at : at + _AHEAD])
        begun = 0
        for before, after in self.stops.named:
            opener = squeezed(before)
            if rest.startswith(opener):
                begun = _tag_at(self.names[1:], squeezed(after), rest, len(opener), False) or begun
                if begun > 0:
                    return 1
            elif opener.startswith(rest):
                begun = -1
        return begun

    def _named(self, text: str, end: int, final: bool) -> int:
        """1 if what is at ``end`` is no closing tag and ends the value; -1 if more text must tell, else 0."""
        follows = 0
        for before, after in self.stops.named:
            if not follows and text.startswith(before, end):
                follows = self._follows(before, after, text, end + len(before), final)
                if follows > 0 and after and self.depth < 0 and self.closers is not NO_CLOSERS:
                    follows = self._only(before, after, text, end, final)
        if self.tools is not None and (self.depth < 0 or (self.passed and not self.depth)):
            for before, after in self.stops.seams:
                if follows <= 0 and text.startswith(before, end):
                    names = self.tools.names()
                    follows = _tag_at(names, after, text, end + len(before), final) or follows
        if follows > 0:
            self.notes = [*self.notes, (end, self.stops.expected, "")]
        elif not follows:
            opened = self._opens(text, end, final)
            if opened < 0:
                return -1
            self.depth = max(self.depth, 0) + opened  # the value is about markup
        return follows

    def _only(self, before: str, after: str, text: str, begin: int, final: bool) -> int:
        """1 if the tag of another argument at ``begin`` gives it, 0 if that tag comes again after the next closing tag,
        so that this one is text; -1 if more text must tell."""
        end = _tag_at(self.names[1:], after, text, begin + len(before), final)
        if end <= 0:
            return 1  # the value's own closing tag
        later = self._next_closer(text, end, final)
        if later <= 0:
            return -1 if later == _OPEN else 1
        tag, rest = squeezed(text[begin:end]), squeezed(text[later : later + _AHEAD])
        if not final and len(rest) < len(tag) and tag.startswith(rest):
            return -1
        if not rest.startswith(tag):
            return 1
        self._quotes(begin)
        return 0

    def _opens(self, text: str, end: int, final: bool) -> int:
        """1 if a tag of any argument is at ``end`` as the format writes it; -1 if more text must tell, else 0."""
        for before, after in self.stops.tags:
            if not text.startswith(before, end):
                continue
            at = end + len(before)
            found = _any_name(text, at)
            over = found.end() if found else at
            if text.startswith(after, over):
                over += len(after)
                if after[-1] in WHITE:
                    return 1
                if len(text) < over + 2 and not final:
                    return -1
                return 0 if _text_goes_on(text, over) else 1
            if not final and after.startswith(text[over:]) and over - at < _LONGEST_NAME:
                return -1
        return 0

    def _follows(self, before: str, after: str, text: str, at: int, final: bool) -> int:
        """The same for one pair of texts, the first of which ends at ``at``."""
        if not after:
            if at == len(text):
                return 0 if final else -1
            return 1 if _tag_goes_on(text[at]) and self.depth < 0 else 0
        # A closing tag has the name of the value itself, an opening tag that of another one.
        if before.lstrip().startswith("</"):
            return _tag_at(self.names[:1], after, text, at, final)
        names = self.names[1:] if self.depth < 0 else ()
        end = _tag_at(names, after, text, at, final)
        if end <= 0:
            return end
        if after[-1] in WHITE:
            return 1  # all of it is as the format writes it
        if len(text) < end + 2 and not text[end:].isalnum():
            return 0 if final else -1
        if _text_goes_on(text, end) is None:
            found = self.stops.at(text, end)
            if not found:
                return 1
            if found < 0 and not final:
                return -1
        self.depth = 0  # no other pair of texts counts here
        return 0


def _first(texts: tuple[str, ...], text: str, at: int) -> str:
    """The first of ``texts`` that is at ``at``; one is."""
    for one in texts:
        if text.startswith(one, at):
            break
    return one


def _tag_at(names: tuple[str, ...], after: str, text: str, at: int, final: bool) -> int:
    """Where the tag ends that is at ``at`` one of ``names`` and then ``after``; -1 if more text must tell, else 0."""
    begun = 0
    for name in names:
        end = at + len(name) + len(after)
        if text.startswith(name + after, at):
            return end
        if not final and len(text) < end and (name + after).startswith(text[at:]):
            begun = -1
    return begun


class RawString(_Raw):
    """Reads text up to a stop and passes it on as a JSON string."""

    __slots__ = ()

    def scan(self, text: str, start: int, final: bool) -> int:
        n = len(text)
        self.marked = -1
        if self.notes:
            self.notes = []
        end, self.done = self.stops.text(text, start, final)
        if self.done:
            end, self.done = self.checked(text, end, final)
        over = self.done or final or bool(self.error)
        out = escape(self.meant(text[start:end], over)) if over or end > start else ""
        if not self.begun:
            self.begun = True
            out = '"' + out
        if self.done:
            out += '"'
        elif final:
            self.error = self.stops.expected
        self.out = out
        self.plain = self.plain_search() if end == n and not self.done else None
        return end

    def meant(self, text: str, over: bool) -> str:
        """What the next piece of the text means; ``over``: it is the last one."""
        return text

    def plain_search(self) -> Search | None:
        """The fast path while the string goes on."""
        return self.stops.plain_json

    def cut_off(self) -> None:
        self.open = True
        if self.stops.end:
            stops = self.stops
            self.stops = StopFinder(stops.stops, False, stops.shown, stops.markers, stops.named, stops.seams)


class EscapedString(RawString):
    """As `RawString`, for a text that spells some characters in another way. A spelling that may still become whole is
    held."""

    __slots__ = ("escapes", "tail")

    def __init__(
        self,
        stops: StopFinder,
        closers: Closers,
        names: tuple[str, ...],
        tools: Toolset | None,
        escapes: Escapes,
    ) -> None:
        self._set_up(stops, closers, names, tools)
        self.escapes = escapes
        self.tail = ""

    def meant(self, text: str, over: bool) -> str:
        whole, begun, chars = _spellings(self.escapes)
        text, self.tail = self.tail + text, ""
        if not over:
            # A whole spelling at the end is no beginning of a longer one.
            at = max((found.end() for found in whole.finditer(text)), default=0)
            held = begun.search(text, at)
            if held is not None:
                text, self.tail = text[: held.start()], held[0]
        return whole.sub(lambda found: chars[found[0]], text)

    def plain_search(self) -> Search | None:
        return None


@lru_cache(maxsize=64)
def _spellings(escapes: Escapes) -> tuple[re.Pattern[str], re.Pattern[str], dict[str, str]]:
    """Patterns for a whole spelling and for the beginning of one at the end of a text; the character of each."""
    chars = {spelling: char for char, spelling in escapes}
    begun = {spelling[:end] for spelling in chars for end in range(1, len(spelling))}
    return (
        re.compile("|".join(map(re.escape, longest_first(chars)))),
        re.compile(rf"(?:{'|'.join(map(re.escape, longest_first(begun))) or '(?!)'})\Z"),
        chars,
    )


class RawTyped(_Raw):
    """Reads a value whose schema admits no string: JSON, or Python, of its types, up to a stop."""

    __slots__ = ("held", "inner", "python", "types")

    def __init__(
        self,
        stops: StopFinder,
        names: tuple[str, ...],
        tools: Toolset | None,
        types: frozenset[str],
        python: bool,
    ) -> None:
        self._set_up(stops, NO_CLOSERS, names, tools)
        self.types = types
        self.held: list[str] = []
        self.inner: Transcoder | None = None
        self.python = python

    def scan(self, text: str, start: int, final: bool) -> int:
        self.out = ""
        if self.notes:
            self.notes = []
        i = start
        if self.inner is None and not self.held:
            while i < len(text) and text[i] in " \t\r\n":
                i += 1
            if i < len(text) and text[i] in "{[":
                self.inner = _scanner(self.python)()
        if self.inner is not None:
            return self._nested(self.inner, text, i, final)
        end, self.done = self.text(text, i, final)
        if end > i:
            self.held.append(text[i:end])
        if self.done:
            self.out = self._scalar("".join(self.held), end)
        elif final or self.error:
            self.out = "".join(self.held)
            self.error = self.stops.expected
        return end

    def _nested(self, inner: Transcoder, text: str, i: int, final: bool) -> int:
        if not inner.done:
            i = inner.scan(text, i, final)  # JSON says where it ends: in its strings a marker is text
            self.out, self.error, self.notes, self.plain = inner.out, inner.error, inner.notes, inner.plain
            if not inner.done:
                return i
            self.plain = None
        start = i
        while i < len(text) and text[i] in " \t\r\n":
            i += 1
        notes = self.notes
        end, over = self.text(text, start, final)
        if end <= i and (over or end < len(text)):
            self.done = over
            return end
        if i < len(text) or final:
            self.error = self.stops.expected
            self.marked, self.notes = -1, notes  # what follows this place is not in the value
        return i

    def _scalar(self, text: str, end: int) -> str:
        """Returns the held text as JSON: unchanged if it is JSON, a respelt constant, or else a string."""
        bare = text.strip()
        if _is_scalar(bare):
            return bare
        probe = JsonScanner()
        if bare and probe.scan(bare, 0, True) == len(bare) and probe.done and not probe.error:
            if not (self.python and bare in PYTHON_WORDS):
                self.notes = [(end, expected, found) for _, expected, found in probe.notes]
            return probe.out
        types = self.types - {"number"} if "integer" in self.types else self.types
        self.notes = [(end, " or ".join(sorted(types)), bare[:40])]
        return json.dumps(text, ensure_ascii=False)


class RawUnion(_Raw):
    """Reads a value that may be a string or another type; holds it while it may still be the other type."""

    __slots__ = ("began", "escapes", "held", "others", "probe", "python", "read", "string", "tail")

    def __init__(
        self,
        stops: StopFinder,
        closers: Closers,
        names: tuple[str, ...],
        tools: Toolset | None,
        types: frozenset[str],
        python: bool,
        escapes: Escapes,
    ) -> None:
        self._set_up(stops, closers, names, tools)
        self.escapes = escapes
        self.others = types - {"string"}
        self.held: list[str] = []
        self.tail = ""
        self.began = False
        self.probe: Transcoder = _scanner(python)()
        self.python = python
        self.read: list[str] = []
        self.string: RawString | None = None

    def scan(self, text: str, start: int, final: bool) -> int:
        if self.string is not None:
            end = self.string.scan(text, start, final)
            self._follow(self.string)
            return end
        self.out = ""
        if self.notes:
            self.notes = []
        end, over = self.text(text, start, final)
        self.held.append(text[start:end])
        if self._still_other(text[start:end], over) and not self.error:
            if over:
                self.out = "".join(self.read).strip()
                self.done = True
                return end
            if not final:
                return end
        string = self.string = _string(self.stops, self.closers, self.names, self.tools, self.escapes)
        string.begun = True
        string.depth, string.told, string.open = self.depth, self.told, self.open
        held = string.meant("".join(self.held), False)
        string.scan(text, end, final)
        string.out = '"' + escape(held) + string.out
        string.marked = max(self.marked, string.marked)
        self._follow(string)
        return end

    def _still_other(self, piece: str, over: bool) -> bool:
        """Whether the held text may still become JSON of another type than string; ``over``: whether it is that."""
        probe = self.probe
        if probe.done:
            return not piece.strip()
        fed = self.tail + piece
        end = probe.scan(fed, 0, over)
        self.tail = fed[end:]
        self.read.append(probe.out)
        if probe.error or probe.notes or (probe.done and self.tail.strip()):
            return False
        if over or probe.done:
            if self.python and not _readable("".join(self.held).strip()):
                return False
            return bool(self.others & _types("".join(self.read).strip(), True))
        return not fed.strip() or self.began or self._begins(fed.lstrip())

    def _begins(self, text: str) -> bool:
        self.began = bool(self.others & _types(text, False))
        return self.began

    def _follow(self, string: RawString) -> None:
        self.out, self.done, self.error, self.plain = string.out, string.done, string.error, string.plain
        self.marked, self.notes, self.stops = string.marked, string.notes, string.stops


def _types(text: str, whole: bool) -> frozenset[str]:
    """The types of JSON value that ``text`` is (``whole``), or that it may be the beginning of."""
    if not text:
        return frozenset()
    if text[0] in "-0123456789":
        return frozenset({"number"}) if whole and not _integer(text) else frozenset({"integer", "number"})
    return _TYPES.get(text[0], frozenset())


@cache
def _scanner(python: bool) -> type[JsonScanner]:
    if not python:
        return JsonScanner
    from .python import PythonScanner

    return PythonScanner


_LONGEST_NAME = 64
_any_name = re.compile(rf"""[^<>"'\r\n]{{0,{_LONGEST_NAME}}}""").match
_NEAR = 1024
"""How far after a tag its reader looks for the closing tag of the value."""
_MOST = 16
"""The most tags at which it looks there."""
_NONE, _OPEN, _FAR = 0, -1, -2
_AHEAD = 512
"""How far after a closing tag the reader of a text about markup looks for the next argument."""
_tag_goes_on = re.compile(r"""[\w"'>]""").match
_text_goes_on = re.compile(
    r"""[\n\r`”»…]|\ (?!\ )|</|\*\*|\\[nrt"']|["')\]}]\W|[.,;:!?][\s"'<]""", re.VERBOSE
).match
_integer = re.compile(r"-?[0-9]+").fullmatch
_is_scalar = re.compile(SCALAR).fullmatch
_ONLY_STRING = frozenset({"string"})
# Literals that Python prints and that cannot be meant as a string: no `1_000`, `0x1F` or `'quoted'`.
_readable = re.compile(
    r"[\[{].*|-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|[Tt]rue|[Ff]alse|None|null", re.DOTALL
).fullmatch
_TYPES = {
    "{": frozenset({"object"}),
    "[": frozenset({"array"}),
    **dict.fromkeys("tTfF", frozenset({"boolean"})),
    **dict.fromkeys("nN", frozenset({"null"})),
}


def _string(
    stops: StopFinder, closers: Closers, names: tuple[str, ...], tools: Toolset | None, escapes: Escapes
) -> RawString:
    if escapes:
        return EscapedString(stops, closers, names, tools, escapes)
    return RawString(stops, closers, names, tools)


class RawReader:
    """Makes the transcoders of raw values up to the stops. ``types``: their JSON types; None: the schema's.
    ``closers``: as in `_Raw`. The other fields are those of `raw_maker`."""

    __slots__ = ("closers", "escapes", "python", "stops", "types")

    def __init__(
        self,
        stops: StopFinder,
        types: frozenset[str] | None,
        python: bool,
        escapes: Escapes,
        closers: Closers = NO_CLOSERS,
    ) -> None:
        self.closers = closers
        self.stops = stops
        self.types = types
        self.python = python
        self.escapes = escapes

    def __call__(self, argument: Argument, name: str) -> _Raw:
        return self.maker(argument)()

    def maker(
        self, argument: Argument, names: tuple[str, ...] = (), tools: Toolset | None = None
    ) -> Callable[[], _Raw]:
        """What makes the transcoders of the argument's values. ``names`` and ``tools`` are as in `_Raw`."""
        types = self.types
        if types is None:
            types = argument.document.types(argument.schema)
        return raw_maker(self.stops, types, self.python, self.escapes, self.closers, names, tools)


def raw_maker(
    stops: StopFinder,
    types: frozenset[str],
    python: bool = False,
    escapes: Escapes = (),
    closers: Closers = NO_CLOSERS,
    names: tuple[str, ...] = (),
    tools: Toolset | None = None,
) -> Callable[[], _Raw]:
    """What makes the transcoders of a raw value whose schema admits these types.

    ``python``: a value that is not a string may be written as Python's ``str`` writes it. ``escapes``: the characters
    that a string spells in another way. ``closers``: those of the stops that a string may spell. ``names`` and
    ``tools`` are as in `_Raw`.
    """
    if types == _ONLY_STRING:
        if escapes:
            return partial(_string, stops, closers, names, tools, escapes)
        return partial(RawString, stops, closers, names, tools)
    if "string" not in types:
        return partial(RawTyped, stops, names, tools, types, python)
    return partial(RawUnion, stops, closers, names, tools, types, python, escapes)
