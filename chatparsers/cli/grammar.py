"""``chatparsers grammar`` writes the grammar of a request; ``grammar check`` checks a grammar of your own."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterable
from dataclasses import asdict, is_dataclass
from typing import Any

from ..errors import ChatParsersError
from ..plain import one_line
from .files import Refused, name_of, print_json, read_text, to_json
from .request import turn_of


def run(arguments: Namespace) -> int:
    """Prints the grammar, as JSON with what is known of it; returns 1 if the request constrains nothing, because then
    there is none."""
    grammar = turn_of(arguments).grammar(arguments.dialect)
    if grammar is None:
        why = "this request constrains nothing, so there is no grammar: give --tools or --response-format"
        print(f"chatparsers: {why}", file=sys.stderr)
        return 1
    known = {"dialect": arguments.dialect, **info(grammar)}
    if arguments.form == "json":
        print_json({"grammar": str(grammar), **known}, indent=2)
        return 0
    if arguments.info:
        print(to_json(known), file=sys.stderr)
    else:
        for each in grammar.weakened:
            if each.keyword == "*":  # of a tool nothing is enforced but its name
                print(f"chatparsers: warning: {one_line(each.why)}", file=sys.stderr)
    text = str(grammar)
    sys.stdout.write(text if text.endswith("\n") else text + "\n")
    return 0


def check(arguments: Namespace) -> int:
    """Reads a GBNF grammar; an error gives line, column and what was expected."""
    from ..grammar.user import read_gbnf

    text = read_text(arguments.grammar)
    try:
        rules = len(read_gbnf(text).rules)
    except ChatParsersError as error:
        raise Refused(f"{name_of(arguments.grammar)}: {error}") from error
    print(
        f"{name_of(arguments.grammar)}: a GBNF grammar of {rules} rule{'s' if rules > 1 else ''}, no errors"
    )
    return 0


def info(grammar: Any) -> dict[str, Any]:
    """The grammar's properties besides its text: lazy, triggers, what was weakened, its length."""
    text = str(grammar)
    return {
        "lazy": grammar.lazy,
        "triggers": _plain(grammar.triggers),
        "weakened": _plain(grammar.weakened),
        "lines": len(text.splitlines()),
        "characters": len(text),
    }


def _plain(records: Iterable[Any]) -> list[Any]:
    return [
        asdict(record) if is_dataclass(record) and not isinstance(record, type) else record
        for record in records
    ]
