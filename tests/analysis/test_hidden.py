"""Every format with its module hidden: the analysis finds it again from each of its templates, and is never wrong."""

from __future__ import annotations

from typing import Any

from chatparsers.analysis import analyse
from chatparsers.core.format import Format
from chatparsers.testing import Entry, check_stream
from chatparsers.testing.check import check_expected
from chatparsers.testing.rendering import Inexpressible, render
from chatparsers.testing.scenarios import Scenario, scenarios

_LACKS = ("the format has no", "no reasoning", "a string that holds what ends it")


def read(format: Format, entry: Entry, scenario: Scenario) -> str:
    """``""`` where the format reads the scenario, ``refused``, ``inexpressible``, or what is wrong."""
    try:
        case = render(format, entry.template(), scenario)
    except Inexpressible as reason:
        return "refused" if str(reason).startswith(_LACKS) else "inexpressible"
    turn = case.turn()
    message = turn.parse(case.text)
    try:
        check_expected(case, message, turn)
        if not case.heavy:
            check_stream(turn, case.text, list(case.text), whole=message)
    except AssertionError as error:
        return f"{scenario.name}: {str(error).partition(chr(10))[0]} in {case.text!r:.200} behind {case.prefix!r}"
    return ""


def test_found_reads_what_the_module_reads(entry: Entry, add_row: Any) -> None:
    found = analyse(entry.template())
    counts = {"cells": 0, "same": 0, "refused": 0, "wrong": 0}
    wrong = []
    for scenario in scenarios(entry.format):
        if scenario.heavy or read(entry.format, entry, scenario):
            continue
        counts["cells"] += 1
        result = "refused" if found.format is None else read(found.format, entry, scenario)
        if result in ("refused", "inexpressible"):
            counts["refused"] += 1
        elif result:
            wrong.append(result)
            counts["wrong"] += 1
        else:
            counts["same"] += 1
    name = found.format.name if found.format else "none"
    add_row(template=entry.path.stem, format=entry.format.name, found=name, **counts)
    assert not wrong, "\n".join([str(found.analysis), *wrong])
