"""Steering a running generation: masks, forced ids, budgets and rollback, from one turn.

`Turn.guide` makes a `Guide`. It joins the turn's stream with the state of its grammar in an engine, so that a host asks
one object what may come next, what must come next, and what has come.
"""

from __future__ import annotations

from .batch import Guides
from .guide import Guide, GuideState, counting, open_guide

__all__ = ["Guide", "GuideState", "Guides", "counting", "open_guide"]
