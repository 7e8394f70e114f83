"""``chatparsers explain``: why an answer was not read as a call, and what to do."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from .files import print_json
from .request import turn_of
from .token_ids import read_answer, tokenizer_for_ids

if TYPE_CHECKING:
    from ..answers.format import Turn


def run(arguments: Namespace) -> int:
    """Prints what was read, where declared tools are named, and the causes. Returns 1 with a cause, 0 without one."""
    turn = turn_of(arguments, tokenizer=tokenizer_for_ids(arguments))
    return say(read_answer(arguments), turn, as_json=arguments.form == "json")


def say(answer: Any, turn: Turn, *, as_json: bool = False) -> int:
    """Prints the explanation of ``answer``, and returns the command's status."""
    from ..explaining.explain import explain

    found = explain(answer, turn)
    if as_json:
        print_json(found.to_dict(), indent=2)
    else:
        print(found)
    return 1 if found.causes else 0
