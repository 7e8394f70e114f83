"""Whether a format reads what a template renders of a scenario."""

from __future__ import annotations

from chatparsers.answers.format import Format
from chatparsers.templates import Template
from chatparsers.testing import check_stream
from chatparsers.testing.check import check_expected
from chatparsers.testing.rendering import Inexpressible, render
from chatparsers.testing.scenarios import Scenario

REFUSED, INEXPRESSIBLE = "refused", "inexpressible"
_LACKS = ("the format has no", "a string that holds what ends it")


def read(format: Format, template: Template, scenario: Scenario) -> str:
    """``""`` if the format reads it, whole and by the character; `REFUSED` if the format has no such part;
    `INEXPRESSIBLE` if the template has no such part; else the fault."""
    try:
        case = render(format, template, scenario)
    except Inexpressible as reason:
        return REFUSED if str(reason).startswith(_LACKS) else INEXPRESSIBLE
    turn = case.turn()
    message = turn.parse(case.text)
    try:
        check_expected(case, message, turn)
        if not case.heavy:
            check_stream(turn, case.text, list(case.text), whole=message)
    except AssertionError as error:
        why = str(error).partition("\n")[0]
        return f"{scenario.name}: {why}; read from {case.text!r:.300} behind {case.prefix!r}"
    return ""
