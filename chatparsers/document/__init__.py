"""A format's definition as data: one JSON object, the *document*, that says what its function ``build`` makes.

A document is a view of the tree, not a second language: `kinds` has one row for each kind of node, from which documents
are written (`write`), read (`read`) and described (`schema`). A document holds no code and no regular expressions, so
that a stranger's can be read, and so that a parser in another language can use it.
"""

from __future__ import annotations

from .parts import VERSION
from .read import Document, read_document
from .schema import schema
from .text import MOST, dumps, loads
from .write import to_data

__all__ = ["MOST", "VERSION", "Document", "dumps", "loads", "read_document", "schema", "to_data"]
