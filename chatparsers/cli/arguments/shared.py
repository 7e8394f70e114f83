"""What the arguments of all commands share: the parser, the types of values, and options that several commands have."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn

from ...errors import did_you_mean
from ..files import Refused

FORMAT = "use this format, or that of a document (FILE.json), instead of the detected one"
TOOLS = (
    "a JSON file with the list of tools, OpenAI-shaped (or an object with it under 'tools'); - reads stdin"
)
OUTPUTS = ("text", "json", "github", "sarif", "junit")


class Parser(argparse.ArgumentParser):
    """Says what was wrong in one line, with what was probably meant."""

    def error(self, message: str) -> NoReturn:
        """Raises `Refused` with one line, which ``chatparsers.cli.main`` prints."""
        raise Refused(f"{message} (see {self.prog} --help)")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """As argparse, which names all choices, with the nearest ones alone if there are any."""
        if action.choices is not None and value not in action.choices:
            hint = did_you_mean(value, map(str, action.choices)) if isinstance(value, str) else ""
            raise argparse.ArgumentError(action, f"invalid choice: {value!r}: {hint}")

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        """As argparse, but says what was expected."""
        try:
            return super()._get_value(action, arg_string)
        except argparse.ArgumentError as error:
            expected = _EXPECTED[action.type]
            raise argparse.ArgumentError(action, f"expected {expected}, found {arg_string!r}") from error

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse, with a hint for an option that is not known."""
        found, unknown = self.parse_known_args(args, namespace)
        if unknown:
            option = unknown[0].partition("=")[0]
            near = did_you_mean(option, found.options) if option.startswith("--") else ""
            hint = f": {near}" if near.startswith("did") else ""
            found.refuse(f"unrecognized arguments: {' '.join(unknown)}{hint}")
        return found


class Help(argparse.HelpFormatter):
    """Breaks descriptions as usual, and leaves examples as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if text.startswith("examples:") else super()._fill_text(text, width, indent)


Commands = argparse._SubParsersAction  # argparse gives these types no public names
Group = argparse._ArgumentGroup


def add_command(commands: Commands[Parser], name: str, run: str, text: str) -> Parser:
    """A command that calls ``run``, a reference such as ``chatparsers.cli.parse:run``, with its arguments."""
    parser = commands.add_parser(
        name,
        help=text,
        description=text[0].upper() + text[1:] + ".",
        formatter_class=Help,
    )
    parser.set_defaults(run=run)
    return parser


def add_template(parser: Parser, *, required: bool = False) -> None:
    """The options that name a chat template and its variables."""
    parser.add_argument(
        "--template",
        metavar="FILE",
        required=required,
        help="a chat template (.jinja), or a model's tokenizer_config.json, folder or .gguf file",
    )
    parser.add_argument("--bos-token", metavar="TEXT", help="the text of the template's bos_token")
    parser.add_argument("--eos-token", metavar="TEXT", help="the text of the template's eos_token")


def add_format(parser: Parser) -> None:
    """The options that choose a format, and how the answer begins."""
    parser.add_argument(
        "--format",
        metavar="NAME",
        help="the format (`chatparsers formats` lists them), or its document (FILE.json)",
    )
    parser.add_argument(
        "--tool-call-parser", metavar="NAME", help="in place of --format: the name in vLLM, SGLang or mlx-lm"
    )
    parser.add_argument("--reasoning-parser", metavar="NAME", help="that of its other option, if it has one")
    add_template(parser)
    parser.add_argument(
        "--prefix",
        metavar="TEXT",
        help="the part of the answer that the prompt already wrote, such as <think>",
    )
    parser.add_argument("--thinking", choices=("on", "off"), help="(default: as the template has it)")


def add_thoughts(parser: Parser | Group) -> None:
    """The options that wish for thoughts."""
    parser.add_argument(
        "--thinking", choices=("on", "off", "adaptive"), help="(default: as the template has it)"
    )
    parser.add_argument(
        "--effort", metavar="WORD", help="none, minimal, low, medium, high, xhigh or max: the nearest it has"
    )


def add_lenient_calls(parser: Parser | Group) -> None:
    """The option that reads a whole answer as calls."""
    parser.add_argument(
        "--lenient-calls",
        action="store_true",
        help="also read a whole answer as calls that is JSON in a fence, in tags or bare",
    )


def add_request(parser: Parser) -> None:
    """The options that say what was asked of the model."""
    parser.add_argument("--tools", metavar="FILE", help=TOOLS)
    parser.add_argument(
        "--tool-choice", metavar="CHOICE", default="auto", help="auto, none, required or a tool's name"
    )
    parser.add_argument("--no-parallel", action="store_true", help="at most one call in the turn")
    add_lenient_calls(parser)
    parser.add_argument(
        "--response-format",
        metavar="FILE",
        help="a JSON file with response_format or a JSON Schema, or a .gbnf grammar",
    )


def number(text: str) -> float:
    found = float(text)
    if not 0 <= found < float("inf"):
        raise ValueError(text)
    return found


def above_zero(text: str) -> float:
    found = number(text)
    if not found:
        raise ValueError(text)
    return found


def at_least_one(text: str) -> int:
    found = int(text)
    if found < 1:
        raise ValueError(text)
    return found


_EXPECTED: dict[Any, str] = {
    int: "a whole number",
    number: "a number, 0 or more",
    above_zero: "a number above 0",
    at_least_one: "a whole number above 0",
}
"""What the types of options expect."""
