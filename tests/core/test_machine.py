"""The machine's instructions agree with its table in every program. The machine says where it waits."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from making import tool

from chatparsers import Format, Message, RequestError, get_format, list_formats
from chatparsers.answers import Builder, Node
from chatparsers.answers.format import Turn
from chatparsers.answers.idioms import Options
from chatparsers.core.machine import instructions as m
from chatparsers.core.machine.instructions import Program
from chatparsers.core.machine.machine import Machine
from chatparsers.core.machine.state import MachineState
from chatparsers.parser import program
from chatparsers.schema.tools import Toolset, read_tools


def table() -> dict[str, list[str]]:
    """The instructions of the module's table, each with its operands: from the source, as the compiled module has no
    docstring."""
    source = Path(m.__file__).with_name("instructions.py").read_text(encoding="utf-8")
    return {
        line.split()[0]: line.split()[1:]
        for line in (ast.get_docstring(ast.parse(source)) or "").splitlines()
        if re.fullmatch(r"[A-Z]+(?: [a-z_]+)*", line)
    }


def numbers() -> dict[int, str]:
    """The names of the instructions by their numbers."""
    return {getattr(m, name): name for name in table()}


NAMES = [info.name for info in list_formats()]


def programs(name: str) -> Iterator[Program]:
    """A format with all options, and in turn with inline reasoning and with special tokens."""
    format, turn = get_format(name), 3 * NAMES.index(name)
    tokens = tuple(sorted({*format.preserved_tokens, *format.stops}))
    for options in (Options(), Options(tools=True), Options(tools=True, schema=True)):
        turn += 1
        special = ((tokens, True),) if turn // 2 % 2 else ()
        yield program(format, options, turn % 2 == 0, *special)


def test_the_table_names_each_instruction_once() -> None:
    assert sorted(numbers()) == list(range(len(table()))) == list(range(m.VALUE + 1))


@pytest.mark.parametrize("name", NAMES)
def test_instructions_have_the_operands_of_the_table(name: str) -> None:
    """Finds an operand that was added, dropped, or left as a label without a place."""
    operands, names = table(), numbers()
    for compiled in programs(name):
        for place, (op, *given) in enumerate(compiled.code):
            expected = operands[names[op]]
            assert len(given) == len(expected), f"{place}: {names[op]} {given}, expected {expected}"
            for operand, value in zip(expected, given, strict=True):
                if operand in ("label", "on_broken", "on_closed"):
                    assert type(value) is int and 0 <= value <= len(compiled.code), names[op]


@pytest.mark.pure
def test_no_piece_copies_a_deep_stack() -> None:
    """A rule that calls itself leaves a frame for each character."""

    class Frames(list):  # type: ignore[type-arg]
        def __getitem__(self, key: Any) -> Any:
            assert not isinstance(key, slice)
            return super().__getitem__(key)

    def build(p: Builder) -> Node:
        deep = p.rule("deep", p.choice("(" + p.ref("deep"), "x"))
        return p.body(p.each_tool(lambda tool: "<call>" + deep + p.name(tool) + " " + p.args(tool)))

    format = Format("deep", "Deep", "", build)
    machine = Machine(program(format, Options(tools=True)), Toolset())
    machine.stack = Frames()
    for character in "<call>" + 100 * "(":
        machine.feed(character)
    assert len(machine.stack) > 100


@pytest.mark.parametrize(
    ("text", "region", "plain"),
    [
        ("The answer", m.CONTENT, True),
        ("The answer <", None, None),
        ('<tool_call>{"name": "f", ', None, None),
        ('<tool_call>{"name": "f", "arguments": {"a": "Os', m.ARGUMENT, True),
        ('<tool_call>{"name": "f", "arguments": {"a": 1', m.ARGUMENT, False),
    ],
)
def test_where_it_waits(hermes: Turn, text: str, region: int | None, plain: bool | None) -> None:
    """`waiting` is None while text is held or may be read again. Else it says what the next piece becomes."""
    machine = Machine(program(hermes.format, hermes.options), hermes.tools)
    machine.feed(text)
    waiting = machine.waiting()
    assert (waiting and waiting[0]) == region
    if waiting is not None:
        assert (waiting[1] is not None) == plain
        assert waiting[1] is None or waiting[1](" or more") is None


def test_skipped_text_moves_what_is_reported(hermes: Turn) -> None:
    """After `skip_to`, the machine reports positions as if it had read the skipped text."""
    machine = Machine(program(hermes.format, hermes.options), hermes.tools)
    machine.feed("The answer")
    machine.skip_to(1000, "")
    notes = [value for op, _, value in machine.feed("</tool_call>") if op == m.NOTE]
    assert notes == [("stray-marker", 1000, "")]


@pytest.fixture
def hermes() -> Turn:
    format = next(info for info in list_formats() if info.name == "hermes-2-pro").load()
    return format.bind(tools=[{"name": "f"}])


def test_tools_are_read_by_name_when_asked() -> None:
    """Binding reads no schema. A broken schema is found when its tool is used."""
    tools = read_tools([{"type": "function", "function": {"name": "f", "parameters": {"type": 5}}}])
    assert "f" in tools and "g" not in tools


def plain(compiled: Program) -> Program:
    """The program without `UNLESS`: its other instructions read everything."""
    code = [ins if ins[0] != m.UNLESS else (m.JUMP, ip + 1) for ip, ins in enumerate(compiled.code)]
    return Program(
        code, compiled.start, compiled.fallback, compiled.late_ids, compiled.unwanted, compiled.recipe
    )


TOOLS = [
    tool(name, {"city": {"type": "string"}, "days": {"type": "integer"}})
    for name in ("get_weather", "no_arguments")
]
CALLS = [
    {"type": "function", "id": f"a1b2c3d4{number}", "function": {"name": name, "arguments": arguments}}
    for number, (name, arguments) in enumerate(
        [
            ("get_weather", {"city": "Oslo", "days": 2}),
            ("no_arguments", {}),
            ("get_weather", {"city": 'a "b"'}),
        ]
    )
]


@pytest.mark.parametrize("name", NAMES)
def test_what_saves_work_reads_as_the_other_instructions_do(name: str) -> None:
    """Piece by piece: the events, and in the end the message; also of texts with a hole. Only of text that is held,
    `UNLESS` knows no region yet, and a diagnostic may expect other texts."""
    format = get_format(name)
    try:
        whole = format.render({"role": "assistant", "content": None, "tool_calls": CALLS}, tools=TOOLS)
    except RequestError:
        pytest.skip("the format writes no such calls")
    turn = format.bind(tools=TOOLS, id_seed="usual")
    hole = whole[: len(whole) // 2] + whole[len(whole) // 2 + 3 :]
    bare = whole.replace(', "arguments": {}', "")  # a call may be certain at its brace
    texts = (whole, whole + "\nText.", hole, f"Text.\n\n{whole}Text.{whole}", " < Text. <|", bare)
    for text in texts:
        for size in (1, 5, len(text)):
            saving, other = turn.stream(), turn.stream()
            other.feed("")
            machine = other._begun().machine
            machine.program = plain(machine.program)
            for at in range(0, len(text), size):
                piece = text[at : at + size]
                assert saving.feed(piece) == other.feed(piece), (size, text[: at + size][-40:])
            assert saving.finish() == other.finish(), size
            assert told(saving.message) == told(other.message), size


@pytest.mark.parametrize("name", NAMES)
def test_what_is_only_held_is_not_read(name: str) -> None:
    """A piece that `hold` takes leaves the machine as `feed` does, and what is read after it is the same to the last
    diagnostic; also of texts with a hole, and of spellings that begin alike."""
    format = get_format(name)
    try:
        whole = format.render({"role": "assistant", "content": "So.", "tool_calls": CALLS[:1]}, tools=TOOLS)
    except RequestError:
        pytest.skip("the format writes no such call")
    begun = format.bind(tools=TOOLS).stream()._begun().machine
    for at in range(0, len(whole), 5):
        for text in (
            whole[:at] + whole[at + 1 :],
            whole[:at] + "|" + whole[at:],
            whole[:at] + whole[: at + 9],
        ):
            reader, holder = begun.copy(), begun.copy()
            for piece in (text[i : i + 1 + at % 3] for i in range(0, len(text), 1 + at % 3)):
                read = reader.feed(piece)
                if holder.hold(piece):
                    assert not read and place(holder) == place(reader), text
                else:
                    assert holder.feed(piece) == read, text
            assert holder.finish() == reader.finish(), text


def test_the_beginning_of_a_text_is_held() -> None:
    """Up to the first text that is whole, though another one goes on."""
    code = [(m.FAIL,), (m.LIT, m.CONTENT, (("abc", ""), ("abcd", ""), ("bcd", ""))), (m.AFTER,)]
    for begun, piece, held in [
        *(("", "a", True), ("a", "b", True), ("ab", "c", False), ("ab", "x", False)),
        *(("", "x", False), ("", "bc", True), ("bc", "d", False)),
    ]:
        machine = Machine(Program(code, 1, 2, False, False), read_tools(None))
        assert not machine.feed(begun)
        assert machine.hold(piece) == held and machine.text == (begun + piece if held else begun)


def place(machine: Machine) -> list[Any]:
    """Where the machine is. What it expects at a place it finds again, once it reads on."""
    return [
        getattr(machine, name)
        for name in MachineState.__slots__
        if name not in ("furthest", "seen", "value", "wanted")
    ]


def told(message: Message) -> Message:
    return replace(message, diagnostics=[replace(found, expected="") for found in message.diagnostics])


def test_no_program_is_long() -> None:
    """A bounded run, as of ``p.chars(…, most=100)``, is an instruction for each character, in each copy of its node."""
    sizes = {}
    for name in NAMES:
        stream = get_format(name).bind(tools=TOOLS).stream()
        stream.feed("")
        sizes[name] = len(stream._begun().machine.program.code)
    assert {name: size for name, size in sizes.items() if size > 20_000} == {}
