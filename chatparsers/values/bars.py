"""How models write a marker with wide bars: ``<｜｜DSML｜｜invoke``, ``< | DSML | invoke`` for ``<｜DSML｜invoke``."""

from __future__ import annotations

import re
from functools import lru_cache

_BARS = ("|", "｜｜", "||", "‖")
"""In place of one bar of a marker without a name between bars."""
_RUNS = (*(bar * length for bar in "｜|" for length in (1, 2, 3)), "‖", "| |")
_named = re.compile("｜([A-Z]+)｜").search


@lru_cache(maxsize=4096)
def other_bars(text: str) -> tuple[str, ...]:
    """``text`` with other bars. A name between bars has a run of them on each side, also with white space around it."""
    named = _named(text)
    if named is None:
        return tuple([text.replace("｜", bars) for bars in _BARS] if "｜" in text else ())
    ways = [f"{bars}{white}{named[1]}{white}{bars}" for bars in _RUNS for white in ("", " ")]
    ways += [f" {way}" for way in ways if " " in way]
    return tuple(text.replace(named[0], way) for way in ways if way != named[0])
