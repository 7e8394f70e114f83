"""What ``chatparsers --version`` and ``chatparsers --print-completion`` print."""

from __future__ import annotations

import argparse
import platform
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from typing import Any

from .. import CORE, __version__
from .files import Refused

_TOLD = ("tokenizers", "jinja2", "llguidance", "xgrammar", "pyarrow", "starlette")
"""Packages on which an answer may depend, with those of the extras."""
_FILES, _FOLDERS = ("FILE", "MODEL", "ANSWER", "INPUT", "FORMAT", "TEMPLATE"), ("DIR",)


def version() -> str:
    """The version, the core that runs, and the versions of what it runs with.

    >>> version().startswith("chatparsers ")
    True
    """
    found = [f"{platform.python_implementation()} {platform.python_version()}"]
    for name in _TOLD:
        try:
            found.append(f"{name} {installed(name)}")
        except PackageNotFoundError:
            continue
    return f"chatparsers {__version__} ({CORE} core; {', '.join(found)}){compiling()}"


def compiling() -> str:
    """How to have the compiled core, where the pure one runs."""
    return "" if CORE == "compiled" else "; CHATPARSERS_COMPILE=1 pip install . builds the compiled core"


def completion(shell: str) -> str:
    """What completes commands, options and files in ``shell``. Raises `Refused` without the package that writes it."""
    try:
        import shtab
    except ModuleNotFoundError as error:
        raise Refused("--print-completion needs shtab, which is not installed: pip install shtab") from error
    from .arguments import build_parser

    parser = build_parser()
    _complete_files(parser, shtab)
    text: str = shtab.complete(parser, shell)
    return text


def _complete_files(parser: argparse.ArgumentParser, shtab: Any) -> None:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                _complete_files(command, shtab)
        elif action.metavar in (*_FILES, *_FOLDERS):
            action.complete = shtab.FILE if action.metavar in _FILES else shtab.DIRECTORY  # type: ignore[attr-defined]
