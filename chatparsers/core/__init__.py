"""The core: nodes and builder, the compiler and its machine, value syntaxes, events, messages, streams.

It imports the standard library alone and knows no format by name. The names below are all that a format's author
needs, and this is the one place to import them from; the modules of the core may change without notice.
"""

from __future__ import annotations

from .format import Format
from .idioms import Builder
from .nodes import Node, Tag
from .schema import ANY_ARGUMENT, ANY_TOOL, Argument, Tool
from .values import Gemma, Json, Python, Raw

__all__ = [
    "ANY_ARGUMENT",
    "ANY_TOOL",
    "Argument",
    "Builder",
    "Format",
    "Gemma",
    "Json",
    "Node",
    "Python",
    "Raw",
    "Tag",
    "Tool",
]
