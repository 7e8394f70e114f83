"""What a user gets wrong ends in status 2 and one line, which says what was expected and found, and where."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from chatparsers.cli.arguments import build_parser

from .conftest import TOOLS, Run, put, refused

MESSAGES = [{"role": "user", "content": "Is it raining?"}]
BROKEN_TOOL = [{"type": "function", "function": {"name": "f", "parameters": {"type": "objekt"}}}]
GENERIC, HERMES = "parse --format generic", "grammar --format hermes-2-pro"
SLIPS = Path(__file__).with_name("slips.json")
"""Commands, what was typed, the flag that was meant, and its value; null where the command is refused with a hint."""
# The command, what its file holds (FILE; None: it is not there), and the words of the line.
MISTAKES: list[tuple[str, object, list[str]]] = [
    # commands and options
    ("", None, ["COMMAND"]),
    ("pasre", None, ["invalid choice: 'pasre'"]),
    ("inspct x", None, ["did you mean inspect?"]),
    ("parse --toolz x --format qwen3", None, ["did you mean --tools"]),
    ("parse --zzz", None, ["unrecognized arguments: --zzz (see"]),
    ("formats extra", None, ["unrecognized arguments: extra"]),
    ("formats lsit", None, ["did you mean list?"]),
    ("formats chekc qwen3", None, ["did you mean check?"]),
    ("verify http://127.0.0.1:9 --model absent", None, ["absent: no such file or folder"]),
    ("verify --model TEMPLATE --judge rubbish.jsonl", b"\x80{", ["rubbish.jsonl: expected lines of JSON"]),
    ("inspect qwen3", None, ["found the name of a format"]),
    ("report answer.txt", "Hi", ["which model?"]),
    ("render", None, ["required: --model, --messages"]),
    ("detect", None, ["required: MODEL"]),
    ("detect 'a\nb\x1b[31m'", None, ["no such file"]),
    # render
    ("render --messages messages.json --template broken.jinja", "{% for m in messages %}", ["broken.jinja"]),
    (
        "render --messages messages.json --template raises.jinja",
        "{{ raise_exception('roles\nmust alternate') }}",
        ["raises.jinja", "must alternate"],
    ),
    (
        "render --messages messages.json --template fails.jinja",
        "{{ messages[7].content.x.y }}",
        ["fails.jinja"],
    ),
    ("render --messages messages.json --template rubbish.jinja", b"\x80\x81{{", ["rubbish.jinja"]),
    ("render --messages messages.json --template tokenizer_config.json", "{", ["tokenizer_config.json"]),
    ("render --messages messages.json --template notes.txt", "Hello", ["notes.txt"]),
    (
        "render --messages messages.json --template model.gguf",
        b"GGUF\x03\0\0\0" + b"\xff" * 64,
        ["model.gguf"],
    ),
    (
        "render --template TEMPLATE --messages m.json",
        {"role": "user"},
        ["expected a list of messages", "found an object"],
    ),
    ("render --template TEMPLATE --messages m.json", "nothing", ["expected JSON"]),
    ("render --template TEMPLATE --messages m.json", "", ["expected JSON"]),
    ("render --template TEMPLATE --messages m.json", ["Hello"], ["message"]),
    # detect, inspect
    ("detect nothing.jinja", None, ["nothing.jinja: no such file"]),
    ("detect .", None, ["."]),
    ("detect broken.jinja", "{% if %}", ["broken.jinja, line 1"]),
    ("detect plain.txt", "no model here", ["plain.txt", "expected a chat template", "neither {% nor {{"]),
    ("detect plain.jinja", "no model here", ["plain.jinja", "expected a chat template", "neither {% nor {{"]),
    ("detect plain.txt", "", ["plain.txt", "expected a chat template", "nothing in it"]),
    ("inspect plain.jinja", "no model here", ["plain.jinja", "expected a chat template"]),
    ("detect x.json", "{}", ["x.json"]),
    ("inspect /no/such/model", None, ["/no/such/model: no such file"]),
    ("inspect --format herms TEMPLATE", None, ["did you mean"]),
    ("inspect TEMPLATE --tools tools.json", TOOLS, ["--tools goes with --messages"]),
    # parse
    ("parse", None, ["which model?", "--model", "a format's name"]),
    ("parse --format hermes-2-por", None, ["did you mean hermes-2-pro"]),
    ("parse --format x.jinja", "{{ x }}", ["found a file of a model", "--model x.jinja"]),
    ("parse --format ''", None, ["no format is named ''"]),
    (f"{GENERIC} /no/such/file", None, ["/no/such/file: no such file"]),
    (f"{GENERIC} '\0'", None, ["no such file"]),
    (f"{GENERIC} .", None, [".: expected a file, found a folder"]),
    (f"{GENERIC} --pieces 0", None, ["--pieces: expected a whole number above 0, found '0'"]),
    (f"{GENERIC} --reasoning both", None, ["invalid choice: 'both'"]),
    (f"{GENERIC} --tool-choice required", None, ["tool_choice"]),
    (f"{GENERIC} --no-such-option", None, ["--no-such-option", "--help"]),
    ("parse --template /no/such.jinja", None, ["/no/such.jinja: no such file"]),
    (f"{GENERIC} --response-format /no/such", None, ["/no/such: no such file"]),
    (f"{GENERIC} --tools t.json", None, ["no such file"]),
    (f"{GENERIC} --tools t.json", "[{", ["expected JSON: Expecting", "line 1 column"]),
    (f"{GENERIC} --tools t.json", b"\x00\xff\xfe", ["expected UTF-8 text, found byte 0xff at offset 1"]),
    (f"{GENERIC} --tools t.json", "[" * 100_000, ["expected JSON"]),
    (f"{GENERIC} --tools t.json", {"functions": []}, ["expected a list of tools", "found an object"]),
    (f"{GENERIC} --tools t.json", 7, ["expected a list of tools", "found a number"]),
    (f"{GENERIC} --tools t.json", [1], ["tools[0]: expected an object, found int"]),
    (f"{GENERIC} --tools t.json", [{"type": "function"}], ["tools[0].function.name: expected a name"]),
    (f"{GENERIC} --tools t.json", [*TOOLS, *TOOLS], ["tools[1].function.name", "twice"]),
    # grammar
    ("grammar", None, ["which model?"]),
    ("grammar --dialect larc", None, ["did you mean lark?"]),
    (f"{HERMES} --tools tools.json --dialect bnf", TOOLS, ["invalid choice: 'bnf'"]),
    (f"{HERMES} --tools tools.json --tool-choice get_whether", TOOLS, ["did you mean get_weather?"]),
    (f"{HERMES} --tools tools.json --tool-choice f", BROKEN_TOOL, ["$"]),
    (f"{HERMES} --response-format r.json", [1], ["expected a response_format"]),
    (f"{HERMES} --response-format own.gbnf", 'root ::= "yes" ]\n', ["line 1"]),
    (
        "grammar check own.gbnf",
        'root ::= "a" item\nitem ::= [a-z] )\n',
        ["own.gbnf", "line 2, column 16", "expected", "found ')'"],
    ),
    ("grammar check own.gbnf", "root = x", ["own.gbnf", "line 1, column"]),
    ("grammar check own.gbnf", "", ["own.gbnf"]),
    ("grammar check own.gbnf", 'root ::= "a" missing\n', ["own.gbnf", "missing"]),
    ("grammar check own.gbnf", b"\xff\xfe\x00", ["own.gbnf", "expected UTF-8 text"]),
    ("grammar check", None, ["FILE"]),
    ("grammar check /no/such.gbnf", None, ["/no/such.gbnf: no such file"]),
    # demo
    (
        "demo hermes-3-pro",
        None,
        ["no sample output is bundled for 'hermes-3-pro': did you mean hermes-2-pro"],
    ),
    ("demo content-only", None, ["no sample output is bundled for 'content-only'"]),
    ("demo --speed fast", None, ["--speed", "'fast'"]),
    ("demo --speed -1", None, []),
]


@pytest.mark.parametrize(("command", "content", "words"), MISTAKES, ids=lambda value: str(value)[:60])
def test_a_mistake_is_one_line(
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    template: Path,
    command: str,
    content: object,
    words: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    put(tmp_path / "messages.json", MESSAGES)
    argv = [str(template) if word == "TEMPLATE" else word for word in shlex.split(command)]
    if content is not None:  # the last name of a file in the command
        put(tmp_path / [word for word in argv if "." in word and word != str(template)][-1], content)
    assert refused(run(*argv, stdin="x"), *words).isprintable()


def test_a_tool_that_cannot_be_compiled_is_said(run: Run, tmp_path: Path) -> None:
    """Nobody forces it, so the grammar is written; and what of it is not enforced is no secret."""
    tools = put(tmp_path / "tools.json", BROKEN_TOOL)
    ran = run("grammar", "--format", "hermes-2-pro", "--tools", tools)
    assert ran.status == 0 and "root ::=" in ran.out
    assert ran.err.startswith("chatparsers: warning: the tool is guided to its name and any object")


@pytest.mark.parametrize(
    ("command", "slip", "meant", "value"), json.loads(SLIPS.read_text(encoding="utf-8")), ids=str
)
def test_a_slip_leads_right(run: Run, command: str, slip: str, meant: str, value: object) -> None:
    """What people type for a flag is that flag, or is answered with it."""
    argv = [*command.split(), *slip.split()]
    if value is None:
        refused(run(*argv), "unrecognized arguments: ", slip.split()[0], meant)
        return
    found, unknown = build_parser().parse_known_args(argv)
    words = [word for word in found.parser.words if found.parser.shown(word) == meant]
    assert not unknown and any(getattr(found, word.key) in (value, [value]) for word in words)
