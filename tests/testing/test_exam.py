"""The exam of formats: no red line over our own but known ones, and each planted fault red."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from chatparsers import Format, get_format, list_formats
from chatparsers.answers import Argument, Builder, Node, Raw, Tool
from chatparsers.cli.main import main
from chatparsers.errors import RequestError
from chatparsers.testing import exam

OWN = Path(__file__).parents[1] / "templates_own"
KNOWN = Path(__file__).parent / "exam_known.json"
TEMPLATE = Path(__file__).parent / "exam.jinja"


@dataclass(frozen=True)
class Definition:
    """A right definition of the dialect of TEMPLATE, with each of its choices changeable."""

    name: str = r"[^\s>]"
    argument: str = r"[^\s<>]"
    id: str = "a-zA-Z0-9"
    separator: str = "\n"
    closer: Callable[[Builder], Node | str] = lambda p: "</call>"
    value: str = "</with>"
    id_most: int = 40
    around: str = " "
    lead: str = "\n"

    def __call__(self, p: Builder) -> Node:
        def argument(arg: Argument) -> Node:
            value = p.value(arg, Raw(until="</with>"))
            return (
                "<with "
                + p.space()
                + p.arg_name(arg, chars=self.argument)
                + p.space()
                + ">"
                + value
                + self.value
                + p.space("\n")
            )

        around = p.space() if self.around else ""

        def call(tool: Tool) -> Node:
            header = '<call id="' + p.id(p.chars(self.id, 1, self.id_most)) + '" to=' + around
            opened = header + p.name(tool, self.name) + around + ">" + p.space("\n")
            return opened + p.each_arg(tool, argument) + self.closer(p)

        return p.body(p.calls(p.each_tool(call), p.space(self.separator)), lead=self.lead)


def defined(definition: Definition | None = None, stops: tuple[str, ...] = ("<|over|>",)) -> Format:
    return Format("exam", "Exam", "https://models.example", definition or Definition(), ("<call id=",), stops)


# The fault, and the checks of which one must be red.
FAULTS = {
    "a closer that is not read": (Definition(closer=lambda p: "</calls>"), {"reads"}),
    "a closer that is read, and not written": (
        Definition(closer=lambda p: p.reads("", "</call>")),
        {"writes", "grammar"},
    ),
    "another closer is written than the template's": (
        Definition(closer=lambda p: p.reads("</Call>", "</call>", "</Call>")),
        {"writes"},
    ),
    "another text between calls": (Definition(separator="\n\n"), {"writes"}),
    "no white space around the names": (Definition(around="", argument="[^<>]"), {"names"}),
    "an argument's name that takes a line break": (Definition(argument="[^<>]"), {"names"}),
    "an id that is too short": (Definition(id_most=3), {"reads", "writes"}),
    "an id that takes letters alone": (Definition(id="a-z"), {"reads", "writes"}),
    "a value whose closer differs": (Definition(value="</with >"), {"reads"}),
    "white space before a call that is no content": (Definition(lead=""), {"reads"}),
}


def test_a_right_definition_passes() -> None:
    assert exam(defined(), [TEMPLATE]) == []


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_red(fault: str) -> None:
    definition, checks = FAULTS[fault]
    failures = exam(defined(definition), [TEMPLATE])
    assert checks & {failure.check for failure in failures}, failures
    assert all(failure.says and failure.mend for failure in failures)


def test_a_stop_that_the_template_does_not_write() -> None:
    assert "ends" in {failure.check for failure in exam(defined(stops=("<|done|>",)), [TEMPLATE])}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "named" in metafunc.fixturenames:
        names = [info.name for info in list_formats() if (OWN / f"{info.name}.jinja").exists()]
        metafunc.parametrize("named", names)


@pytest.mark.one_in(8)
def test_our_formats_pass_but_for_what_is_known(named: str) -> None:
    assert exam(named, [OWN / f"{named}.jinja"], KNOWN) == []


def test_what_is_no_exam(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="at least one chat template"):
        exam("qwen3", [])
    broken = tmp_path / "known.json"
    broken.write_text("[]", encoding="utf-8")
    with pytest.raises(RequestError, match="expected an object"):
        exam("qwen3", [OWN / "qwen3.jinja"], broken)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A name, a document, a module; 0 passed, 1 red, 2 no format."""
    own = str(OWN / "qwen3.jinja")
    document = tmp_path / "mine.json"
    document.write_text(json.dumps(get_format("qwen3").to_data()), encoding="utf-8")
    module = tmp_path / "mine.py"
    module.write_text("from chatparsers import get_format\nFORMAT = get_format('qwen3')\n", encoding="utf-8")
    for source in ("qwen3", str(document), str(module)):
        assert main(["formats", "check", source, own]) == 0
        assert "passed" in capsys.readouterr().out
    assert main(["formats", "check", "qwen3", str(TEMPLATE)]) == 1
    assert capsys.readouterr().out.startswith(("reads ", "ends "))
    module.write_text("FORMAT = 1\n", encoding="utf-8")
    for wrong in ("no-such-format", str(module), str(tmp_path / "none.py")):
        assert main(["formats", "check", wrong, own]) == 2
        assert capsys.readouterr().err.startswith("chatparsers: ")
