"""The arguments of the command line, from two tables: `words`, and `commands`, which says what words each one needs."""

from __future__ import annotations

from .parser import build_parser

__all__ = ["build_parser"]
