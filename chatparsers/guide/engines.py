"""The engines that say which ids a grammar allows: llguidance and xgrammar, with one interface.

An engine is prepared once for each tokenizer, as long as that lives. A grammar is compiled once while its text is among
the last ones asked for; each answer has its own `Matcher`, a copy of the fresh one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, TypeAlias
from weakref import WeakKeyDictionary

from ..errors import RequestError
from ..kept import SharedLock
from ..lazy import load_reference

EngineName: TypeAlias = Literal["llguidance", "xgrammar"]
ENGINES: tuple[EngineName, ...] = ("llguidance", "xgrammar")
INSTALL = "pip install 'chatparsers[guide]'"


class Matcher(Protocol):
    """The state of one answer in a grammar."""

    size: int
    """How many ids there are."""
    bytes: int
    """The bytes of its mask."""
    filler: Any
    """The class of what fills the masks of a batch (`Filler`)."""
    take: Callable[[int], bool]
    """Takes the next id, if it is allowed. If not, the matcher may be spoilt: `restart` it."""
    rollback: Callable[[int], Any]
    """Takes back the last ids, as many as it is given."""

    def restart(self, ids: Sequence[int]) -> None:
        """Makes it anew. ``ids``: all that it took."""
        ...

    def may_end(self) -> bool:
        """Whether the turn may end here, so that an id that ends it is allowed. No such id is given to a matcher."""
        ...

    def accepts(self, ids: Sequence[int]) -> int:
        """How many of ``ids`` may come, one after the other. Takes none of them."""
        ...

    def copy(self) -> Matcher:
        """An independent matcher at this point."""
        ...

    def fill(self, address: int) -> None:
        """Writes what may come next at ``address``: a bit for each id, in words of 32 bits."""
        ...

    def forced(self) -> list[int]:
        """The ids that must come now, as far as the grammar decides it."""
        ...


class Filler(Protocol):
    """Fills the masks of many matchers of one engine in ``threads``; None: as many as the engine takes by itself."""

    def __init__(self, threads: int | None) -> None: ...

    def fill(self, rows: list[tuple[Any, int]], address: int, size: int, count: int) -> None:
        """Writes the mask of each matcher into its row. ``address``: where row 0 is; ``size``: the bytes of a row;
        ``count``: how many rows there are."""
        ...


class Engine(Protocol):
    """An engine over one tokenizer. ``size``: how many ids that has; ``dialect``: what it reads."""

    size: int
    dialect: str
    options: dict[str, Any]

    def compiled(self, grammar: str) -> Matcher:
        """A matcher at the start of a grammar. Raises `RequestError` if the engine gives up."""
        ...


class Compiled:
    """The fresh matchers of an engine, by the texts of their grammars."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._fresh: OrderedDict[str, Matcher] = OrderedDict()
        self._lock = SharedLock()

    def matcher(self, grammar: str) -> Matcher:
        """A new matcher at the start of ``grammar``."""
        with self._lock:
            found = self._fresh.get(grammar)
            if found is None:
                found = self._fresh[grammar] = self.engine.compiled(grammar)
                if len(self._fresh) > _MOST:
                    self._fresh.popitem(last=False)
            else:
                self._fresh.move_to_end(grammar)
            return found.copy()


_MOST = 32
"""So many grammars are kept compiled for a tokenizer and its ends of turns."""

_prepared: WeakKeyDictionary[Any, dict[tuple[str, tuple[int, ...]], Compiled]] = WeakKeyDictionary()


def engine_for(tokenizer: Any, ends: tuple[int, ...], name: EngineName | None) -> Compiled:
    """The engine ``name`` for a tokenizer; None: the first that is installed. ``ends``: the ids that end a turn.

    Raises `RequestError` for an unknown name, and if the engine is not installed.
    """
    if name is not None and name not in ENGINES:
        raise RequestError(f"engine: expected 'llguidance' or 'xgrammar', found {name!r}")
    make = _installed(name)
    known = _prepared.setdefault(tokenizer, {})
    key = (make.__name__, ends)
    if key not in known:
        known[key] = Compiled(make(tokenizer, ends))
    return known[key]


def _installed(name: EngineName | None) -> Callable[[Any, tuple[int, ...]], Engine]:
    missing = []
    for one in ENGINES if name is None else (name,):
        try:
            found: Callable[[Any, tuple[int, ...]], Engine] = load_reference(_ENGINES[one])
            return found
        except ImportError as error:
            missing.append(str(error))
    wanted = " or ".join(ENGINES) if name is None else name
    raise RequestError(
        f"engine: expected {wanted} to be installed: {INSTALL} has llguidance; xgrammar needs torch too "
        f"({'; '.join(missing)})"
    )


_ENGINES: dict[str, str] = {
    "llguidance": "chatparsers.guide._llguidance:Llguidance",
    "xgrammar": "chatparsers.guide._xgrammar:Xgrammar",
}
