"""The command line: reads the arguments, runs one command, and reports any error in one line.

Each command is a module of ``cli``, imported when it runs; nothing else is imported before that.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from typing import TextIO

from ..errors import ChatParsersError
from ..lazy import load_reference
from ..plain import one_line
from .arguments import build_parser
from .files import Refused, output_to

_SHOW_TRACEBACK = "CHATPARSERS_TRACEBACK"
_CLOSED_OUTPUT = 141
"""What a shell gives for a process that SIGPIPE ended."""


def run(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit status, as `chatparsers.cli.main.main` explains it."""
    with warnings.catch_warnings():
        warnings.showwarning = _warn
        try:
            _speak_utf8()
            arguments = build_parser().parse_args(argv)
            with output_to(vars(arguments).get("out", "-")):
                status: int = load_reference(arguments.run)(arguments)
            sys.stdout.flush()
            return status
        except SystemExit as done:  # --help and --version
            return done.code if isinstance(done.code, int) else 0
        except BrokenPipeError:  # as of `| head`, which has what it wants
            _abandon_output()
            return _CLOSED_OUTPUT
        except (ChatParsersError, Refused) as error:
            if os.environ.get(_SHOW_TRACEBACK):
                raise
            return _fail(str(error))
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            return _fail(f"{where}{error.strerror or error}")
        except Exception as error:
            if os.environ.get(_SHOW_TRACEBACK):
                raise
            what = f"{type(error).__name__}: {error}"
            return _fail(f"an error of chatparsers itself: {what}; {_SHOW_TRACEBACK}=1 shows where")


def _fail(text: str) -> int:
    print(f"chatparsers: {one_line(text)}", file=sys.stderr)
    return 2


def _warn(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    print(f"chatparsers: warning: {one_line(str(message))}", file=sys.stderr)


def _speak_utf8() -> None:
    """Makes the output UTF-8 with plain line ends, whatever the terminal is set to: it holds prompts and JSON. If it is
    closed, what is printed goes nowhere."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 -- for as long as the process runs
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(encoding="utf-8", errors="backslashreplace", newline="\n")


def _abandon_output() -> None:
    """Keeps the interpreter from flushing into the closed pipe when it exits."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        return
