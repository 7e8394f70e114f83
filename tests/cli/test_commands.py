"""The other commands: render, detect, inspect, formats; and promises that hold for all commands."""

from __future__ import annotations

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
from chatparsers.cli.examples import EXAMPLES
from chatparsers.cli.inspect import rows

from .conftest import TOOLS, Run, put, refused

MESSAGES = [{"role": "user", "content": "Is it raining? Ærlig talt."}]


@pytest.fixture
def messages(tmp_path: Path) -> Path:
    return put(tmp_path / "messages.json", MESSAGES)


def test_render(run: Run, template: Path, messages: Path, tools: Path) -> None:
    chat = chatparsers.load(template)
    ran = run("render", "--template", template, "--messages", messages)
    assert (ran.status, ran.out, ran.err) == (0, chat.prepare(MESSAGES).prompt, "")
    ran = run("render", "--template", template, "--messages", messages, "--tools", tools)
    assert ran.out == chat.prepare(MESSAGES, tools=TOOLS).prompt and "get_weather" in ran.out
    ran = run("render", "--template", template, "--messages", messages, "--no-generation-prompt")
    assert ran.out == chat.prepare(MESSAGES, add_generation_prompt=False).prompt
    ran = run("render", "--template", template, "--messages", "-", stdin=json.dumps({"messages": MESSAGES}))
    assert ran.out == chat.prepare(MESSAGES).prompt
    thinks = template.parent / "qwen3.jinja"
    for flag, thinking in (("off", False), ("on", True)):
        ran = run("render", "--template", thinks, "--messages", messages, "--thinking", flag)
        assert ran.out == chatparsers.load(thinks).prepare(MESSAGES, thinking=thinking).prompt


def test_render_with_the_files_of_a_model(run: Run, tmp_path: Path, messages: Path) -> None:
    text = "{{ bos_token }}{% for m in messages %}{{ m.content }}{{ eos_token }}{% endfor %}"
    config = put(
        tmp_path / "tokenizer_config.json", {"chat_template": text, "bos_token": "<s>", "eos_token": "</s>"}
    )
    asked = MESSAGES[0]["content"]
    for source in (config, tmp_path):
        assert run("render", "--template", source, "--messages", messages).out == f"<s>{asked}</s>"
    ran = run("render", "--template", config, "--messages", messages, "--bos-token", "B", "--eos-token", "")
    assert ran.out == f"B{asked}"


def test_detect(run: Run, template: Path, tmp_path: Path) -> None:
    ran = run("detect", template)
    assert ran.status == 0 and ran.out.startswith("qwen3-coder  1.00\n") and "\n  " in ran.out
    found = run("detect", "--json", template).json()
    expected = chatparsers.detect(template.read_text(encoding="utf-8"))
    assert found == {"name": "qwen3-coder", "score": expected.score, "evidence": list(expected.evidence)}
    text = template.read_text(encoding="utf-8")
    assert run("detect", "--json", "-", stdin=text).json() == found
    assert run("detect", "--json", put(tmp_path / "renamed.txt", text)).json() == found
    assert (
        run("detect", "--json", put(tmp_path / "tokenizer_config.json", {"chat_template": text})).json()
        == found
    )


UNKNOWN = (
    "{% for m in messages %}@{{ m.role }}@ {{ m.content }}{% for c in m.tool_calls or [] %}"
    "%%{{ c.function.name }} -> {{ c.function.arguments | tojson }}%%{% endfor %}{% endfor %}"
    "{% if tools %}{{ tools | tojson }}{% endif %}{% if add_generation_prompt %}@assistant@ {% endif %}"
)


def test_a_template_that_no_format_explains(run: Run, tmp_path: Path) -> None:
    file = put(tmp_path / "unknown.jinja", UNKNOWN)
    ran = run("detect", file)
    assert ran.status == 1 and ran.out.startswith("none  0.00\n") and ran.err == ""
    ran = run("detect", "--json", file)
    assert ran.status == 1 and json.loads(ran.out)["name"] is None
    ran = run("detect", "--emit", "data", file)
    assert ran.status == 1 and ran.out == "" and ran.err.startswith("none  0.00\n")


def test_inspect(run: Run, template: Path) -> None:
    ran = run("inspect", template)
    assert ran.status == 0 and "<|im_end|>" in ran.out
    lines = ran.out.splitlines()
    assert [line.split()[0] for line in lines[:2]] == ["format", "score"], "the answer comes first"
    assert lines[0].split() == ["format", "qwen3-coder"]
    assert any(line.startswith("thinking  ") and line.endswith("no switch") for line in lines)
    lacks = next(line for line in lines if line.startswith("lacks"))
    assert "images" in lacks and "tool calls" not in lacks
    record = run("inspect", "--json", template).json()
    assert record["format"] == "qwen3-coder"
    assert run("inspect", "--json", "--format", "hermes-2-pro", template).json()["format"] == "hermes-2-pro"


def test_the_rows_of_a_record() -> None:
    record = {
        "eos_ids": (1, 2),
        "markers": {"open": "<think>\n", "close": ""},
        "yes": True,
        "none": [],
        "score": 0.5,
    }
    assert list(rows(record)) == [
        ("eos ids", "1"),
        ("", "2"),
        ("markers: open", '"<think>\\n"'),
        ("markers: close", "–"),
        ("yes", "yes"),
        ("none", "–"),
        ("score", "0.5"),
    ]


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
    refused(run("formats", "--check", fresh, "--json"), "not allowed with")
    page = Path(chatparsers.__file__).parents[1] / "docs" / "models.md"  # not beside an installed package
    assert not page.is_file() or run("formats", "--check", page).status == 0


def test_help_with_examples_that_are_right_and_the_version(run: Run) -> None:
    ran = run("--help")
    assert ran.status == 0
    assert re.findall(r"^    (\w+) ", ran.out, re.M) == [*EXAMPLES]
    for command, examples in EXAMPLES.items():
        helped = run(command, "--help")
        assert helped.status == 0 and helped.out.startswith(f"usage: chatparsers {command}")
        for example in examples:
            assert f"\n  {example}\n" in helped.out
            words = shlex.split(example.rpartition("| ")[2].partition(" > ")[0])
            build_parser().parse_args(words[1:])
    assert "examples:" not in run("grammar", "check", "--help").out, "`check` has none of its own"
    assert run("--version").out.startswith(
        f"chatparsers {chatparsers.__version__} ({chatparsers.CORE} core; "
    )


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


def test_inspect_of_a_conversation(run: Run, template: Path, tmp_path: Path, tools: Path) -> None:
    half = [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    found = run("inspect", template, "--messages", put(tmp_path / "m.json", half), "--json").json()
    assert (found["format"], found["polyfills"], found["prefix"]) == ("qwen3-coder", [], "")
    plain = put(tmp_path / "plain.jinja", "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}")
    ran = run("inspect", plain, "--messages", put(tmp_path / "m.json", half), "--tools", tools)
    assert any(line.split() == ["polyfills", "tools"] for line in ran.out.splitlines())


def test_inspect_of_a_difference(run: Run, template: Path) -> None:
    assert run("inspect", template, "--diff", template).status == 0
    other = template.parent / "qwen3.jinja"
    ran = run("inspect", template, "--diff", other)
    assert ran.status == 1 and "format: qwen3-coder -> qwen3" in ran.out.splitlines()
    found = json.loads(run("inspect", template, "--diff", other, "--json").out)
    assert found["reasoning"] == [False, True]


def test_a_model_without_a_template(run: Run, tmp_path: Path, messages: Path) -> None:
    file = put(tmp_path / "tokenizer_config.json", {"bos_token": "<s>"})
    assert run("render", "--template", file, "--messages", messages).out.startswith("<|im_start|>user\n")
    refused(run("detect", file), "no chat template", "chat_template", "'chatml'")
