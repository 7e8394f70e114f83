"""Phase two: how calls are written.

Every word that was asked for (a name, a key, a value, an id) is found in the rendering. The text between the words is
the markup. To divide it, the template is asked for one more thing at a time. A second argument shows the text between
arguments. A call without arguments shows their container. A second call shows which text surrounds each call and which
surrounds all of them. To find out whether the words are inside JSON, the text is read as JSON.
"""

from __future__ import annotations

from dataclasses import replace

from .found import Analysis, CallMarkers, Variant
from .json_calls import json_calls
from .named_calls import named_calls
from .probes import ASKED, Asker
from .questions import ask_calls, json_with


def find_calls(asker: Asker, base: Analysis) -> tuple[Variant, CallMarkers] | None:
    """How calls are written; None if the template shows no calls. Raises `Refused`, which names the open question."""
    asked = ask_calls(asker)
    if asked is None:
        return None
    span = json_with(asked.one.wire, ASKED.names[0])
    if span is not None and ASKED.texts[0] in asked.one.wire[span.start : span.end]:
        variant, calls = json_calls(asked, base, span)
    else:
        variant, calls = named_calls(asker, asked, base)
    if not calls.parallel:
        calls = replace(calls, separator="")
    return variant, calls
