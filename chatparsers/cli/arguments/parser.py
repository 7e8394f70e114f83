"""The parser of the command line, made from the tables; and what it says of a mistake."""

from __future__ import annotations

import argparse
import copy
import os
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, NoReturn

from ...errors import did_you_mean
from ...lazy import load_reference
from ..files import Refused
from .before import as_today
from .commands import COMMANDS, Command
from .words import TYPES, WORDS, Word

_DESCRIPTION = "Streaming parsers and grammars for the answers of open-weights chat models."
_need = re.compile(r"(?P<hidden>\.?)(?P<name>\w+)(?P<amount>[?*+!]?)(?:=(?P<default>\S+)|:(?P<choices>\S+))?")
_EXPECTED: dict[Any, str] = dict(TYPES.values())
_NEAR, _MOST = 0.6, 3
"""How like a flag is that was probably meant; and so many commands are named that have a flag."""


class Parser(argparse.ArgumentParser):
    """Says what was wrong in one line, with what was probably meant. ``first``: the name of the action that runs where
    none is named, ``actions``: all; ``words``: what the command knows; ``required``: values that must be given, each
    with how it is shown. ``in_file``: words that only its file has; with such, what is found has in ``said`` what was
    given, by flags or in the environment."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.first = ""
        self.actions: dict[str, Parser] = {}
        self.words: list[Word] = []
        self.required: dict[str, str] = {}
        self.defaults: dict[str, Any] = {}
        self.in_file: list[Word] = []

    def error(self, message: str) -> NoReturn:
        """Raises `Refused` with one line, which ``chatparsers.cli.main`` prints."""
        raise Refused(f"{message} (see {self.prog} --help)")

    def take(self, need: str, group: Any) -> None:
        """Adds a word as a command needs it: its place, its flag, and its flags of before.

        A word with a place has its flag too, in silence: ``check --model x`` is ``check x``."""
        match = _need.fullmatch(need)
        assert match is not None, need
        hidden, name, amount, default, choices = match.groups()
        word, place = WORDS[name.lower()], name.isupper()
        word = word.with_choices(choices) if choices else word
        self.words.append(word)
        several = place and amount in ("*", "+")
        if amount in ("!", "+") or (place and not amount):
            self.required[word.key] = word.kind if place else word.flag
        says = argparse.SUPPRESS if hidden or not word.says else word.says
        default = default or word.default
        if place:
            self.take_word(word, group, argparse.SUPPRESS, default, several=several)
            how: dict[str, Any] = {"action": "extend", "nargs": "*"} if several else {"nargs": "?"}
            self.set_defaults(**{word.key: self.defaults[word.key]})
            group.add_argument(word.key, **how, metavar=word.kind, default=argparse.SUPPRESS, help=says)
        else:
            self.take_word(word, group, says, default)

    def take_word(
        self,
        word: Word,
        group: Any = None,
        says: str | None = None,
        default: str | None = None,
        *,
        several: bool = False,
    ) -> None:
        """Adds the flag of a word, and its flags of before. ``several``: it may be repeated, whatever the word says."""
        known: dict[str, Any] = {"dest": word.key, "help": says, "default": default}
        if not word.kind:
            known.update(action="store_true", default=False)
        else:
            read = TYPES.get(word.kind, (None,))[0]
            if read is not None and known["default"] is not None:
                known["default"] = read(known["default"])
            known.update(type=read, choices=word.choices or None)
            known["metavar"] = None if word.choices else word.kind.rstrip("0")
            if several or word.many == "…":
                known.update(action="extend", nargs=1, default=[])
            elif word.many == "+":
                known.update(nargs="+")
        self.defaults[word.key] = known["default"]
        added = self if group is None else group
        for flag, meant in ((word.flag, None), *word.was):
            if flag in self._option_string_actions:
                continue
            if meant is None:
                added.add_argument(flag, **known)
                known["help"] = argparse.SUPPRESS
            elif meant in word.choices:
                added.add_argument(
                    flag, dest=word.key, action="store_const", const=meant, help=argparse.SUPPRESS
                )

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse, with the first action where none is named."""
        if self.first and (not args or args[0] not in (*self.actions, "-h", "--help")):
            args = [self.first, *args]
        if not self.in_file:
            return super().parse_known_args(args, namespace)
        given, unknown = self.given(args)
        said = {**self._environment(), **given}
        found = argparse.Namespace(said=said, **copy.deepcopy(self.defaults))
        for key, value in (*self._defaults.items(), *said.items()):
            setattr(found, key, value)
        return found, unknown

    def given(self, args: Any) -> tuple[dict[str, Any], list[str]]:
        """The values that arguments give, without defaults, by the keys of words; and what nobody knows."""
        found, unknown = super().parse_known_args(args, argparse.Namespace(**dict.fromkeys(self.defaults)))
        values = vars(found)
        return {key: values[key] for key in self.defaults if values[key] is not None}, unknown

    def _environment(self) -> dict[str, Any]:
        """The values that environment variables give."""
        found: dict[str, Any] = {}
        for word in self.words:
            text = os.environ.get(word.variable)
            if text is not None and (text or word.kind):
                try:
                    found |= self.given(word.arguments(text))[0]
                except Refused as error:
                    raise Refused(f"${word.variable}: {error}") from error
        return found

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse, with a hint for a flag that is not known."""
        found, unknown = self.parse_known_args(args, namespace)
        command: Parser = found.parser
        unknown = as_today(found, unknown)
        if unknown:
            flag = next((each for each in unknown if each.startswith("--")), "").partition("=")[0]
            hint = f": {command.guess(flag) if flag else self.action_like(unknown[0], command)}"
            command.error(f"unrecognized arguments: {' '.join(unknown)}{hint.rstrip(': ')}")
        missing = [shown for key, shown in command.required.items() if getattr(found, key) in (None, [])]
        if missing:
            command.error(f"the following arguments are required: {', '.join(missing)}")
        return found

    def guess(self, flag: str) -> str:
        """What a flag that the command does not know was probably meant for; "" if nobody can tell."""
        name = flag.lstrip("-")
        shown: dict[str, str] = {}
        for word in self.words:
            for other in (word.flag.lstrip("-"), *(was.lstrip("-") for was, _ in word.was), *word.like):
                if word.says:
                    shown.setdefault(other, self.shown(word))
        if name in shown:
            return f"did you mean {shown[name]}?"
        others = [each.prog.partition(" ")[2] for each in commands_of(build_parser()) if flag in each.flags()]
        if others:
            return f"that is a flag of {', '.join(others[:_MOST])}{', …' if len(others) > _MOST else ''}"
        near = get_close_matches(name, shown, 1, _NEAR)
        return f"did you mean {shown[near[0]]}?" if near else ""

    def action_like(self, name: str, command: Parser) -> str:
        """A guess for an action that is not known, where the first one ran in its place."""
        actions = next(
            (each.actions for each in self.actions.values() if command in each.actions.values()), {}
        )
        near = get_close_matches(name, actions, 1, _NEAR)
        return f"did you mean {near[0]}?" if near else ""

    def shown(self, word: Word) -> str:
        """How ``--help`` shows a word: by its flag, or by its place."""
        return word.flag if word.flag in self.flags() else word.kind

    def flags(self) -> list[str]:
        """The flags that ``--help`` shows."""
        return [
            flag
            for action in self._actions
            if action.help != argparse.SUPPRESS
            for flag in action.option_strings
        ]

    def format_help(self) -> str:
        """As argparse; where the first action runs if none is named, with the help of that."""
        text = super().format_help()
        return (
            f"{text}\nwithout an ACTION:\n\n{self.actions[self.first].format_help()}" if self.first else text
        )

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

    def _get_option_tuples(self, option_string: str) -> Any:
        """As argparse, which looks for what an abbreviation stands for; flags of before do not count."""
        found: list[Any] = super()._get_option_tuples(option_string)
        return [each for each in found if each[0].help != argparse.SUPPRESS]


class _Help(argparse.HelpFormatter):
    """Breaks descriptions as usual, and leaves examples as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if text.startswith("examples:") else super()._fill_text(text, width, indent)


class _PrintAndExit(argparse.Action):
    """An option that prints something about the package and ends the command, as ``--help`` does."""

    def __init__(self, option_strings: list[str], dest: str, about: str, **options: Any) -> None:
        nargs = None if "choices" in options else 0
        super().__init__(option_strings, dest, nargs=nargs, default=argparse.SUPPRESS, **options)
        self.about = about

    def __call__(self, parser: Any, namespace: Any, values: Any, option: str | None = None) -> None:
        print(load_reference(f"chatparsers.cli.about:{self.about}")(*([values] if values else ())))
        parser.exit()


def build_parser() -> Parser:
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
    _add(parser, "COMMAND", COMMANDS, "")
    return parser


def _add(parser: Parser, metavar: str, commands: Mapping[str, Command], module: str) -> None:
    """Adds commands, or the actions of one. ``module``: the command's, "" for one that has the command's name."""
    added = parser.add_subparsers(metavar=metavar, required=True)
    for name, command in commands.items():
        text = command.does[0].upper() + command.does[1:] + "."
        found = added.add_parser(name, help=command.does, description=text, formatter_class=_Help)
        parser.actions[name] = found
        if command.examples:
            found.epilog = "\n  ".join(("examples:", *command.examples))
        if command.actions:
            _add(found, "ACTION", command.actions, module or name)
            found.first = next(iter(command.actions)) if command.first else ""
            continue
        run = command.run if ":" in command.run else f"{module or name}:{command.run}"
        found.set_defaults(run=f"chatparsers.cli.{run}", action=name, parser=found)
        for title, needs in command.groups().items():
            group = found.add_argument_group(title) if title else found
            for need in needs.split():
                found.take(need, group)
        found.in_file = [WORDS[name] for name in command.in_file.split()]


def commands_of(parser: Parser) -> Iterator[Parser]:
    """The commands under a parser, and their actions."""
    for command in parser.actions.values():
        yield command
        yield from commands_of(command)
