"""The entry point of the command line.

It imports next to nothing: its import runs before anything can catch an interrupt.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..lazy import load_reference

_COMMAND = "chatparsers.cli.command:run"
_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit status.

    0: done. 1: the answer is no (no format found, nothing to constrain, a stale table). 2: the command failed, and
    one line on standard error says why. 130: it was interrupted. 141: its output was closed. It never raises, unless
    ``CHATPARSERS_TRACEBACK`` is set in the environment.
    """
    try:
        status: int = load_reference(_COMMAND)(argv)
    except KeyboardInterrupt:
        return _INTERRUPTED
    return status
