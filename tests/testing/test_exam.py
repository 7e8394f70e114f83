"""The exam of formats: no red line over our own but known ones, and each planted fault red."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from chatparsers import Format, check, get_format, list_formats
from chatparsers.answers import Argument, Builder, Json, Node, Raw, Tool
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
    header: str = '<call id="'
    to: str = '" to='
    opener: str = "<with "
    line: str | None = None
    as_json: bool = False
    several: bool = True

    def __call__(self, p: Builder) -> Node:
        def argument(arg: Argument) -> Node:
            value = p.value(arg, Json() if self.as_json else Raw(until="</with>"))
            return (
                self.opener
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
            header = self.header + p.id(p.chars(self.id, 1, self.id_most)) + self.to + around
            line = p.space("\n") if self.line is None else self.line
            opened = header + p.name(tool, self.name) + around + ">" + line
            return opened + p.each_arg(tool, argument) + self.closer(p)

        one = p.each_tool(call)
        return p.body(p.calls(one, p.space(self.separator)) if self.several else one, lead=self.lead)


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
    "another text before calls": (Definition(lead="\n\n"), {"writes"}),
    "an opener in another case": (Definition(header='<Call id="'), {"reads"}),
    "another word before the name": (Definition(to='" for='), {"reads"}),
    "another opener of arguments": (Definition(opener="<arg "), {"reads"}),
    "texts that are read as JSON": (Definition(as_json=True), {"reads"}),
    "one call where the template writes several": (Definition(several=False), {"reads", "document"}),
    "no text between calls": (Definition(separator=""), {"writes"}),
    "a second line break after the header": (Definition(line="\n\n"), {"reads"}),
    "no line break after the header": (Definition(line=""), {"reads"}),
    "a tool's name of small letters alone": (Definition(name="[a-z]"), {"names"}),
    "an argument's name of small letters alone": (Definition(argument="[a-z]"), {"names"}),
}


def test_a_right_definition_passes() -> None:
    assert exam(defined(), [TEMPLATE]) == []


@pytest.mark.one_in(8)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_red(fault: str) -> None:
    definition, checks = FAULTS[fault]
    failures = exam(defined(definition), [TEMPLATE])
    assert checks & {failure.check for failure in failures}, failures
    assert all(failure.says and failure.mend for failure in failures)


def braced(p: Builder) -> Node:
    """A token begins a call, and only a brace ends its name."""

    def call(tool: Tool) -> Node:
        return (
            p.token("<|call|>")
            + p.name(tool)
            + p.reads(" ", p.space() + p.peek("{"))
            + p.args(tool)
            + "<|end|>"
        )

    return p.body(p.calls(p.each_tool(call)))


def test_a_call_that_is_prose_without_a_brace() -> None:
    format = Format(
        name="braced", title="Braced", url="https://example.org", build=braced, stops=("<|stop|>",)
    )
    says = {failure.says for failure in exam(format, [TEMPLATE])}
    assert "arguments that are no object make no broken call: [1, 2]" in says


def test_a_stop_that_the_template_does_not_write() -> None:
    assert "ends" in {failure.check for failure in exam(defined(stops=("<|done|>",)), [TEMPLATE])}
    assert "reads" in {failure.check for failure in exam(defined(stops=()), [TEMPLATE])}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "named" in metafunc.fixturenames:
        names = [info.name for info in list_formats() if (OWN / f"{info.name}.jinja").exists()]
        metafunc.parametrize("named", names)


@pytest.mark.one_in(24)
def test_our_formats_pass_but_for_what_is_known(named: str) -> None:
    assert exam(named, [OWN / f"{named}.jinja"], KNOWN) == []


def test_what_is_no_exam(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="at least one chat template"):
        exam("qwen3", [])
    broken = tmp_path / "known.json"
    broken.write_text("[]", encoding="utf-8")
    with pytest.raises(RequestError, match="expected an object"):
        exam("qwen3", [OWN / "qwen3.jinja"], broken)


def test_check_says_what_an_author_has_to_mend() -> None:
    """Not that it is a fault of ours; and ours is, even if somebody names it."""
    for fault in ("a closer that is not read", "a closer that is read, and not written"):
        report = check(TEMPLATE, format=defined(FAULTS[fault][0]), only=["grammar"])
        mends = [finding.mend for finding in report.findings if finding.severity != "note"]
        assert mends and all("mend your definition" in mend for mend in mends), mends
        assert any("formats check" in text for _, text in report.facts)
    ours = check(TEMPLATE, format="qwen3", only=["grammar"])
    assert not any("your definition" in finding.mend for finding in ours.findings) and ours.findings


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
        answer = tmp_path / "answer.txt"
        answer.write_text("<think>\nHm.\n</think>\n\nYes.", encoding="utf-8")
        for model in (["--model", source], ["--model", own, "--format", source]):  # and each reads an answer
            assert main(["parse", str(answer), *model]) == 0
            assert json.loads(capsys.readouterr().out)["reasoning"] == "Hm."
    assert main(["formats", "check", "qwen3", str(TEMPLATE)]) == 1
    assert capsys.readouterr().out.startswith(("reads ", "ends "))
    module.write_text("FORMAT = 1\n", encoding="utf-8")
    for wrong in ("no-such-format", str(module), str(tmp_path / "none.py")):
        for command in (["formats", "check", wrong, own], ["parse", str(answer), "--model", wrong]):
            assert main(command) == 2
            assert capsys.readouterr().err.startswith("chatparsers: ")
