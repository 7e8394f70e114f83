"""The arguments of every command. A command names its module by reference; the module is imported when it runs."""

from __future__ import annotations

import argparse
from typing import Any

from ...lazy import load_reference
from ..examples import EXAMPLES
from .answers import add_demo, add_explain, add_grammar, add_parse, add_playground
from .formats import add_export, add_formats
from .models import add_check, add_detect, add_inspect, add_render, add_report
from .rows import add_batch, add_rollouts
from .serving import add_serve
from .shared import Parser
from .verifying import add_verify

_DESCRIPTION = "Streaming parsers and grammars for the answers of open-weights chat models."


def build_parser() -> argparse.ArgumentParser:
    """Makes the parser of the whole command line; it raises `Refused` for unknown arguments."""
    parser = Parser(prog="chatparsers", description=_DESCRIPTION)
    parser.add_argument(
        "--version", action=_PrintAndExit, about="version", help="say the version, and what it runs with"
    )
    parser.add_argument(
        "--print-completion",
        action=_PrintAndExit,
        about="completion",
        choices=("bash", "zsh", "fish"),
        help="write what completes commands and options in this shell",
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    add_demo(commands)
    add_parse(commands)
    add_explain(commands)
    add_batch(commands)
    add_grammar(commands)
    add_render(commands)
    add_detect(commands)
    add_inspect(commands)
    add_check(commands)
    add_report(commands)
    add_formats(commands)
    add_export(commands)
    add_playground(commands)
    add_serve(commands)
    add_rollouts(commands)
    add_verify(commands)
    for name, command in commands.choices.items():
        command.epilog = "\n  ".join(("examples:", *EXAMPLES[name]))
        names = [name for action in command._actions for name in action.option_strings]
        command.set_defaults(options=names, refuse=command.error)
    return parser


class _PrintAndExit(argparse.Action):
    """An option that prints something about the package and ends the command, as ``--help`` does."""

    def __init__(self, option_strings: list[str], dest: str, about: str, **options: Any) -> None:
        nargs = None if "choices" in options else 0
        super().__init__(option_strings, dest, nargs=nargs, default=argparse.SUPPRESS, **options)
        self.about = about

    def __call__(self, parser: Any, namespace: Any, values: Any, option: str | None = None) -> None:
        print(load_reference(f"chatparsers.cli.about:{self.about}")(*([values] if values else ())))
        parser.exit()
