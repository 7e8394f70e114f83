"""What a turn is: the nodes of a call, the builder, the checks of a definition, and formats.

Authors of formats import every name that they need from here. The modules may change without notice.
"""

from __future__ import annotations

from ..schema.tools import ANY_ARGUMENT, ANY_TOOL, Argument, Tool
from ..values import Elements, Gemma, Json, Python, Raw
from .format import Format
from .idioms import Builder
from .nodes import Node, Nodelike, Tag

__all__ = [
    "ANY_ARGUMENT",
    "ANY_TOOL",
    "Argument",
    "Builder",
    "Elements",
    "Format",
    "Gemma",
    "Json",
    "Node",
    "Nodelike",
    "Python",
    "Raw",
    "Tag",
    "Tool",
]

for _shown in (Argument, Builder, Elements, Gemma, Json, Node, Python, Raw, Tag, Tool):
    _shown.__module__ = __name__  # in tracebacks and pickles, as authors import it
