"""Whole tables: callables from an Arrow table to an Arrow table, which every engine that speaks Arrow runs.

They need the extra ``data`` (pyarrow): ``pip install 'chatparsers[data]'``. Each pickles by what it was given, and
loads its model once in each process, at the first table. `docs/data.md` shows them on one machine and on many.
`rows` and `packing` need no extra.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazy_names

if TYPE_CHECKING:
    from .encode import Encode
    from .normalize import Normalize
    from .parse import Parse
    from .render import Render
    from .translate import Translate

__all__ = ["Encode", "Normalize", "Parse", "Render", "Translate"]

_HOME = {
    "Encode": "encode",
    "Normalize": "normalize",
    "Parse": "parse",
    "Render": "render",
    "Translate": "translate",
}

__getattr__ = lazy_names(__name__, _HOME)


def __dir__() -> list[str]:
    return sorted(__all__)
