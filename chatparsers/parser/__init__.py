"""The first reading of a format's tree: a program of the machine, by which streams read what a model writes."""

from __future__ import annotations

from .compile import program

__all__ = ["program"]
