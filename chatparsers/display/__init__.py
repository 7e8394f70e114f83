"""Pictures of readings: what each part of a text is, when it was known, where two texts part, how a format is built.

    from chatparsers import display
    print(display.strip(message))            # in a terminal; a notebook shows HTML
    display.timeline(turn, pieces).html()    # pieces, what was held, what went out

Strategy. A picture is plain data first (`Strip`, `Timeline`, `Drift`, `Diagram`). Two writers draw it, one for
terminals and one for HTML. Both escape every text, so a model's text can write neither terminal codes nor markup. A
kind of text has a colour, a letter and, in HTML, an underline of its own, so no colour is needed to tell kinds apart.
"""

from __future__ import annotations

from .card import Card
from .diagram import Diagram, diagram
from .drift import Drift, drift
from .show import show
from .strip import Chip, Strip, strip
from .timeline import Step, Timeline, timeline
from .tokens import Token

__all__ = [
    "Card",
    "Chip",
    "Diagram",
    "Drift",
    "Step",
    "Strip",
    "Timeline",
    "Token",
    "diagram",
    "drift",
    "show",
    "strip",
    "timeline",
]
