"""Finds formats by name.

One name may stand for several formats. The first of these groups that has it decides:

1. formats registered with ``replace=True``;
2. built-in formats, found in the catalog without loading plugins;
3. formats registered without ``replace``, formats of plugins, and documents in the folders that CHATPARSERS_FORMATS
   names. Two of one name in this group clash.

In each group a name comes before an alias. Case does not count, and ``_`` is ``-``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from .answers.format import Format
from .answers.idioms import Options
from .errors import AmbiguousFormat, ChatParsersError, DefinitionError, UnknownFormat, did_you_mean
from .formats import FormatRef, chatparsers_register_formats
from .kept import kept
from .public import public

_BUILTIN = "chatparsers"
_REGISTERED = "register()"


@public
@dataclass(frozen=True, slots=True)
class FormatInfo:
    """What is known of a format before its module is imported.

    ``origin``: ``"chatparsers"`` for a built-in format, a plugin's distribution and version, or ``"register()"``.
    """

    name: str
    title: str
    url: str
    aliases: tuple[str, ...]
    markers: tuple[str, ...]
    origin: str
    source: FormatRef | Format
    models: tuple[str, ...] = ()

    def format(self) -> Format:
        """The format as it is defined, unchecked; imports its module. Raises `DefinitionError` if the import fails.

        >>> chatparsers.list_formats()[0].format().name
        'apertus'
        """
        return self.source if isinstance(self.source, Format) else self.source.load()

    def load(self) -> Format:
        """The format; imports its module. Raises `DefinitionError`, which names the origin, if the import fails or the
        definition is wrong.

        >>> {info.load().features.tools for info in chatparsers.list_formats()[:3]}
        {True}
        """
        try:
            format = self.format()
            # A wrong definition raises here, not in the first stream.
            format.tree(Options(tools=True))
            return format
        except DefinitionError as error:
            raise DefinitionError(f"{self.origin}: {error}") from error.__cause__


_replacements: dict[str, FormatInfo] = {}
_additions: dict[str, FormatInfo] = {}


@public
def get_format(name: str) -> Format:
    """The format that goes by ``name`` or alias, or that another server's parser of this name reads.

    A pair, ``"qwen3_coder+qwen3"``, is the format that reads the calls of the first and the reasoning of the second
    (docs/models.md). Raises `UnknownFormat`, which suggests near names; `AmbiguousFormat` if two plugins offer the
    name; `DefinitionError` if the format's module cannot be imported or its definition is wrong.

    >>> chatparsers.get_format("qwen3-coder").title
    'Qwen3-Coder'
    >>> chatparsers.get_format("hermes").name
    'hermes-2-pro'
    """
    if not isinstance(name, str):
        given = "a Format, which needs no look-up" if isinstance(name, Format) else type(name).__name__
        raise UnknownFormat(f"expected the name of a format, found {given} (list_formats() has all names)")
    if _replacements and (replaced := _matches(_key(name), _now(_replacements))):
        return replaced[0].load()
    found = _built_in(name)
    if found is not None:
        return found
    others = _others()
    matches = _matches(_key(name), others)
    if len(matches) > 1:
        raise AmbiguousFormat(
            f"{name!r} is offered by {' and by '.join(match.origin for match in matches)}: leave one out with "
            "CHATPARSERS_PLUGINS, or register the one you mean with replace=True"
        )
    if not matches:
        if "+" in name:
            return _pair(name)
        if (served := _of_server(_key(name))) is not None:
            return served
        known_names = {name for info in _all(others) for name in (info.name, *info.aliases)}
        near = did_you_mean(_key(name), known_names)
        hint = near if near.startswith("did") else "list_formats() and `chatparsers formats` have all names"
        raise UnknownFormat(f"no format is named {name!r}: {hint}")
    return matches[0].load()


def _of_server(key: str) -> Format | None:
    """The format that another server's parser of this name reads. Raises `UnknownFormat` for one that is no dialect."""
    from .formats._servers import REFUSED, SERVERS

    if key in REFUSED:
        raise UnknownFormat(REFUSED[key])
    return get_format(SERVERS[key][0]) if key in SERVERS else None


_PROBE = {"name": "probe", "parameters": {"type": "object", "properties": {"word": {"type": "string"}}}}


def _pair(name: str) -> Format:
    """The format of a tool parser and a reasoning parser: the one that reads a call of the first, and a thought of the
    second."""
    tools, _, thoughts = name.partition("+")
    first, second = get_format(tools), get_format(thoughts)
    call = {
        "id": "a1b2c3d4e",
        "type": "function",
        "function": {"name": "probe", "arguments": '{"word": "x"}'},
    }
    if first.features.tools and not second.features.reasoning:
        return first  # nothing to read apart, as with a parser that leaves the text as it is
    try:
        called = first.render({"role": "assistant", "content": "", "tool_calls": [call]}, [_PROBE])
        thought = second.render({"role": "assistant", "reasoning_content": "Hm.", "content": "Yes."})
    except ChatParsersError as error:
        raise UnknownFormat(f"{name!r}: expected a parser of calls and one of reasoning: {error}") from error
    for format in (first, second):
        calls = format.parse(called, tools=[_PROBE]).tool_calls
        message = format.parse(thought)
        if [one.arguments for one in calls] == ['{"word": "x"}'] and message.reasoning.strip() == "Hm.":
            return format
    raise UnknownFormat(
        f"{name!r}: no format reads the calls of {first.name!r} and the reasoning of {second.name!r}: name one of "
        "the two, or give load() the model's files"
    )


def named_format(name: str) -> Format:
    """The format that goes by ``name``, or of the document that is a file of this name, which ends with ``.json``."""
    if not (isinstance(name, str) and name.endswith(".json")):
        return get_format(name)
    from .formats._files import read_file

    return read_file(name)


@public
def list_formats() -> list[FormatInfo]:
    """Every format, sorted by name: built-in, registered and of plugins. Imports no format's module.

    A format that another one replaces is left out. Formats that clash are all listed.

    >>> [info.name for info in chatparsers.list_formats()][:3]
    ['apertus', 'apriel-1-5', 'apriel-1-6']
    """
    return _all(_others())


def by_precedence() -> Iterator[tuple[bool, Iterable[FormatInfo]]]:
    """The groups of formats, the one that decides first before the others, each with whether it is the built-in one."""
    yield False, _now(_replacements)
    yield True, _builtin()
    yield False, _others()


@public
def register(format: Format | FormatRef, *, replace: bool = False) -> None:
    """Makes a format known to this process.

    ``replace``: the format wins over every other format of that name or alias, built-in ones too. Without ``replace``,
    raises `AmbiguousFormat` if a built-in or registered format has the name or one of the aliases. Raises
    `DefinitionError` for what is no format.

    >>> from dataclasses import replace
    >>> mine = replace(chatparsers.get_format("qwen3"), name="mine", aliases=(), models=())
    >>> chatparsers.register(mine)
    >>> chatparsers.get_format("mine").name
    'mine'
    >>> chatparsers.unregister("mine")
    """
    if not isinstance(format, (Format, FormatRef)):
        raise DefinitionError(
            f"register: expected a Format or a FormatRef, found {type(format).__name__}: get_format(name) finds formats"
        )
    info = _info(format, _REGISTERED)
    if not replace:
        for name in (info.name, *info.aliases):
            for other in _matches(_key(name), (*_now(_replacements), *_builtin(), *_now(_additions))):
                raise AmbiguousFormat(
                    f"{name!r} is already the format {other.name!r} of {other.origin}: give it another name, "
                    "or register it with replace=True"
                )
        _additions[_key(info.name)] = info
        return
    _additions.pop(_key(info.name), None)
    _replacements[_key(info.name)] = info


@public
def unregister(name: str) -> None:
    """Takes back `register`. Raises `UnknownFormat` if no format was registered under that name.

    >>> from dataclasses import replace
    >>> mine = replace(chatparsers.get_format("qwen3"), name="mine", aliases=(), models=())
    >>> chatparsers.register(mine)
    >>> chatparsers.unregister("mine")
    >>> "mine" in {info.name for info in chatparsers.list_formats()}
    False
    """
    if not isinstance(name, str):
        raise UnknownFormat(f"unregister: expected the name of a format, found {type(name).__name__}")
    removed = [table.pop(_key(name), None) for table in (_replacements, _additions)]
    if not any(removed):
        known = {*_replacements.copy(), *_additions.copy()}
        raise UnknownFormat(f"no format was registered as {name!r}: {did_you_mean(_key(name), known)}")


def _key(name: str) -> str:
    return name.strip().lower().replace("_", "-").replace(" ", "-")


def _info(source: FormatRef | Format, origin: str) -> FormatInfo:
    aliases, markers, models = (tuple(texts) for texts in (source.aliases, source.markers, source.models))
    return FormatInfo(source.name, source.title, source.url, aliases, markers, origin, source, models)


@cache
def _builtin() -> tuple[FormatInfo, ...]:
    return tuple(_info(ref, _BUILTIN) for ref in chatparsers_register_formats())


@kept(256, 64)
def _built_in(name: str) -> Format | None:
    """The built-in format that goes by ``name``, found and loaded once, as programs ask for it in each request."""
    found = _matches(_key(name), _builtin())
    return found[0].load() if found else None


def _others() -> list[FormatInfo]:
    """The formats registered without ``replace``, those of plugins, and those of folders."""
    try:
        from .plugins import plugins
    except ModuleNotFoundError as error:
        if error.name != "pluggy":
            raise
        offered: list[tuple[str, FormatRef]] = []  # without pluggy there are no plugins
    else:
        offered = [one for one in plugins().formats() if one[0] != _BUILTIN]
    from .formats._files import of_folders  # not for a built-in format

    found: list[tuple[str, FormatRef | Format]] = [*offered, *of_folders()]
    return [*_now(_additions), *(_info(format, origin) for origin, format in found)]


def _now(table: dict[str, FormatInfo]) -> tuple[FormatInfo, ...]:
    """The formats of a table, which another thread may change: a copy is made in one step, also without the GIL."""
    return tuple(table.copy().values())


def _matches(key: str, known: Iterable[FormatInfo]) -> list[FormatInfo]:
    """The formats of that name; if there is none, those with that alias."""
    infos = list(known)
    return [info for info in infos if _key(info.name) == key] or [
        info for info in infos if any(_key(alias) == key for alias in info.aliases)
    ]


def _all(others: Iterable[FormatInfo]) -> list[FormatInfo]:
    taken: set[str] = set()
    found: list[FormatInfo] = []
    for known in (_now(_replacements), _builtin(), tuple(others)):
        found += [info for info in known if _key(info.name) not in taken]
        taken |= {_key(info.name) for info in known}
    return sorted(found, key=lambda info: (info.name, info.origin))
