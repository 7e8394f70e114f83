"""The engine of grammars that is installed beside a host."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

__all__ = ["XGRAMMAR"]


def _named(engine: str) -> str:
    """An engine and its installed version, as `Turn.grammar` takes it; its name alone if it is not installed."""
    try:
        return f"{engine}=={version(engine)}"
    except PackageNotFoundError:
        return engine


XGRAMMAR = _named("xgrammar")
