"""Promises that hold for all commands, and the lists of formats. `test_what_commands_print` has the rest."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import chatparsers
from chatparsers.cli import main as cli
from chatparsers.cli.arguments import build_parser
from chatparsers.cli.arguments.commands import COMMANDS
from chatparsers.cli.arguments.parser import commands_of
from chatparsers.cli.arguments.words import WORDS
from chatparsers.lazy import load_reference

from .conftest import Run, put, refused

KINDS = {"FILE": "path", "DIR": "path"}
MESSAGES = [{"role": "user", "content": "Is it raining? Ærlig talt."}]


@pytest.fixture
def messages(tmp_path: Path) -> Path:
    return put(tmp_path / "messages.json", MESSAGES)


def test_formats(run: Run) -> None:
    listed = run("formats", "--json").json()
    assert [row["name"] for row in listed] == [info.name for info in chatparsers.list_formats()]
    (row,) = [row for row in listed if row["name"] == "mistral-nemo"]
    assert row["origin"] == "chatparsers" and row["url"].startswith("https://")
    assert (row["reasoning"], row["tools"], row["parallel"], row["ids"]) == (False, True, True, True)
    lines = run("formats").out.splitlines()
    assert lines[0].split() == ["Name", "Title", "Reasoning", "Tools", "Parallel", "Ids", "Aliases", "Origin"]
    assert len(lines) == len(listed) + 2


def test_a_format_that_does_not_load_is_still_listed(run: Run) -> None:
    from chatparsers.registry import unregister

    chatparsers.register(chatparsers.FormatRef("broken-one", "no_such_module:FORMAT", "Broken"))
    try:
        ran = run("formats", "--json")
    finally:
        unregister("broken-one")
    (row,) = [row for row in json.loads(ran.out) if row["name"] == "broken-one"]
    assert ran.status == 0 and row["reasoning"] is None
    assert ran.err.startswith("chatparsers: warning: ") and "no_such_module" in ran.err


def test_the_table_in_a_file(run: Run, tmp_path: Path) -> None:
    table = run("formats", "--markdown").out
    assert "\n| Name | Models |" in table and "`mistral-nemo`" in table
    marked = "# Formats\n<!-- formats: begin -->\n{}<!-- formats: end -->\n"
    fresh = put(tmp_path / "fresh.md", marked.format(table))
    assert run("formats", "--check", fresh) == (0, "", "")
    stale = put(tmp_path / "stale.md", marked.format("| old |\n"))
    ran = run("formats", "--check", stale)
    assert (ran.status, ran.out) == (1, "") and "stale.md: the table of formats is stale" in ran.err
    refused(run("formats", "--check", put(tmp_path / "none.md", "# Formats\n")), "<!-- formats: begin -->")
    refused(run("formats", "--check", tmp_path / "absent.md"), "no such file")
    page = Path(chatparsers.__file__).parents[1] / "docs/tables/formats.md"  # not beside an installed package
    assert not page.is_file() or run("formats", "--check", page).status == 0


def test_help_with_examples_that_are_right_and_the_version(run: Run) -> None:
    ran = run("--help")
    assert ran.status == 0
    assert re.findall(r"^    (\w+) ", ran.out, re.M) == [*COMMANDS]
    for name, command in COMMANDS.items():
        helped = run(name, "--help")
        assert helped.status == 0 and helped.out.startswith(f"usage: chatparsers {name}")
        for example in command.examples:
            assert f"\n  {example}\n" in helped.out
            words = shlex.split(example.rpartition("| ")[2].partition(" > ")[0])
            build_parser().parse_args(words[1:])
    assert "examples:" not in run("grammar", "check", "--help").out, "`check` has none of its own"
    assert run("--version").out.startswith(
        f"chatparsers {chatparsers.__version__} ({chatparsers.CORE} core; "
    )


def test_a_flag_has_one_kind_of_value_everywhere_and_a_text() -> None:
    kinds: dict[str, set[str]] = {}
    used: set[str] = set()
    for command in commands_of(build_parser()):
        if not command.actions:
            assert callable(load_reference(command.get_default("run"))), command.prog
        used |= {word.key for word in (*command.words, *command.in_file)}
        for word in command.words:
            shown = next((each for each in command._actions if word.flag in each.option_strings), None)
            if shown is not None and shown.help != argparse.SUPPRESS:
                kind = "choice" if word.choices else KINDS.get(word.kind, word.kind.rstrip("0"))
                kinds.setdefault(word.flag, set()).add(kind)
                assert re.search(r"[a-z]{2,}", word.says.replace("%(default)s", "")), word
    assert {flag: found for flag, found in kinds.items() if len(found) > 1} == {}
    assert used == WORDS.keys(), "a word that no command needs"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands_and_options(run: Run, shell: str) -> None:
    ran = run("--print-completion", shell)
    assert ran.status == 0 and "inspect" in ran.out and "tool-choice" in ran.out


def test_an_own_error_is_one_line_too(run: Run, monkeypatch: pytest.MonkeyPatch, template: Path) -> None:
    def fail(template: object) -> None:
        raise ZeroDivisionError("division\nby zero")

    monkeypatch.setattr("chatparsers.detection.detect.detect_in", fail)
    ran = run("detect", template)
    assert ran.status == 2 and "ZeroDivisionError: division by zero; CHATPARSERS_TRACEBACK=1" in ran.err
    monkeypatch.setenv("CHATPARSERS_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        cli.main(["detect", str(template)])


def test_a_closed_input_and_a_closed_output(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    for command in (
        ["parse", "--format", "qwen3"],
        ["detect", "-"],
        ["parse", "--jsonl", "--format", "qwen3"],
    ):
        assert cli.main(command) == 2 and "expected text, found it closed" in capsys.readouterr().err
    monkeypatch.setattr(sys, "stdout", None)
    assert cli.main(["formats"]) == 0 and capsys.readouterr() == ("", "")
    sys.stdout.close()


def test_an_interrupt_is_quiet(run: Run, monkeypatch: pytest.MonkeyPatch, template: Path) -> None:
    def interrupt(template: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("chatparsers.detection.detect.detect_in", interrupt)
    assert run("detect", template) == (130, "", "")


@pytest.mark.parametrize("module", ["chatparsers.errors", "argparse", "chatparsers.cli.formats"])
@pytest.mark.nightly
def test_an_interrupt_while_modules_are_imported_is_quiet(module: str) -> None:
    code = f"""if True:
        import sys
        from chatparsers.cli.main import main

        class Interrupt:
            def find_spec(name, path=None, target=None):
                if name == "{module}":
                    raise KeyboardInterrupt

        assert "{module}" not in sys.modules
        sys.meta_path.insert(0, Interrupt)
        sys.exit(main(["formats"]))"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.nightly
def test_it_speaks_utf8_wherever_it_runs(spawn: Run, messages: Path, template: Path) -> None:
    ran = spawn(
        "render", "--template", template, "--messages", messages, PYTHONIOENCODING="ascii", LC_ALL="C"
    )
    assert ran.status == 0 and "Ærlig talt." in ran.out


def test_starting_loads_nothing_that_is_not_needed() -> None:
    code = (
        "import sys; from chatparsers.cli.main import main; main(['parse', '--format', 'hermes-2-pro', sys.argv[1]]);"
        "print(*sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, __file__], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    loaded = set(done.stderr.split())
    assert not {"jinja2", "pluggy", "tokenizers", "rich", "importlib.metadata"} & loaded
    assert not {name for name in loaded if name.startswith(("chatparsers.grammar", "chatparsers.cli.demos"))}


def test_the_script_is_this_function() -> None:
    scripts = tuple(entry_points(group="console_scripts", name="chatparsers"))
    if not scripts:
        pytest.skip("chatparsers is not installed, only imported from its folder")
    assert [script.load() for script in scripts] == [cli.main]


def test_the_facts_of_a_grammar_go_to_standard_error(run: Run, tools: Path) -> None:
    asked = ("grammar", "--format", "hermes-2-pro", "--tools", tools, "--info")
    ran = run(*asked)
    info = json.loads(ran.err)
    assert info["dialect"] == "gbnf" and info["lazy"] is True and info["weakened"] == []
    assert info["triggers"] and "<tool_call>" in json.dumps(info["triggers"])
    assert info["lines"] == len(ran.out.splitlines())
    assert json.loads(run(*asked, "--tool-choice", "required").err)["lazy"] is False
