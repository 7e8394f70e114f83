"""Several guides that are asked together: the rows of a batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..errors import RequestError
from ..public import public
from ..streams.events import Event
from .bitmask import allow_all, row_of
from .engines import Filler, Matcher
from .guide import Guide, Ids


@public
class Guides:
    """A batch of guides: row ``n`` of a mask is the mask of guide ``n``. None stands for a row that nothing steers.

    ``threads``: how many of them compute masks; None: as many as the engine takes by itself.

    >>> turn = chat.bind(tools=tools)
    >>> guides = chatparsers.Guides([turn.guide(thinking_tokens=9), turn.guide(max_calls=1)])
    >>> len(guides)
    2
    """

    __slots__ = ("_fillers", "guides", "threads")

    def __init__(self, guides: Iterable[Guide | None], *, threads: int | None = None) -> None:
        self.guides: list[Guide | None] = list(guides)
        self.threads = threads
        self._fillers: dict[Any, Filler] = {}

    def __repr__(self) -> str:
        return f"<Guides: {len(self.guides)} rows>"

    def __len__(self) -> int:
        return len(self.guides)

    def __iter__(self) -> Iterator[Guide | None]:
        return iter(self.guides)

    def __getitem__(self, row: int) -> Guide | None:
        return self.guides[row]

    def fill(self, bitmask: Any) -> list[bool]:
        """`Guide.fill` for all rows at once, in threads. Says for each row whether it must be applied.

        >>> guides = chatparsers.Guides([chat.bind(tools=tools).guide(), None])
        >>> words = (tokenizer.get_vocab_size() + 31) // 32
        >>> guides.fill(memoryview(bytearray(2 * words * 4)).cast("b").cast("i", (2, words)))
        [True, False]
        """
        applied = []
        left: dict[Any, list[tuple[Matcher, int]]] = {}
        for row, guide in enumerate(self.guides):
            if guide is None:
                allow_all(*row_of(bitmask, row, 0))
                applied.append(False)
                continue
            matcher = guide._asked
            if matcher is None:
                applied.append(guide.fill(bitmask, row))
                continue
            left.setdefault(matcher.filler, []).append((matcher, row))
            applied.append(True)
        for kind, rows in left.items():
            if kind not in self._fillers:
                self._fillers[kind] = kind(self.threads)
            address, size = row_of(bitmask, 0, max(matcher.size for matcher, _ in rows))
            self._fillers[kind].fill(rows, address, size, len(self.guides))
        return applied

    def feed(self, ids: Sequence[Ids]) -> list[list[Event]]:
        """`Guide.feed` for each row with its id or ids; no events of a row that nothing steers.

        >>> guides = chatparsers.Guides([chat.bind(tools=tools).guide(), None])
        >>> guides.feed([tokenizer.encode("H").ids, 5])
        [[Content(text='H')], []]
        """
        if len(ids) != len(self.guides):
            raise RequestError(f"feed: expected the ids of {len(self.guides)} rows, found {len(ids)}")
        rows = zip(self.guides, ids, strict=True)
        return [[] if guide is None else guide.feed(fed) for guide, fed in rows]
