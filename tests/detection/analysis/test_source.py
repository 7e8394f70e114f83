"""The module written for a found format passes the checks of every format module, and agrees with the proof."""

from __future__ import annotations

import importlib.util
import inspect
import io
import re
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from making import tool

from chatparsers import get_format
from chatparsers.answers import Format
from chatparsers.cli.main import main
from chatparsers.cli.module_source import module_source, sample_of
from chatparsers.detection.analysis import Found, analyse
from chatparsers.templates import Template
from chatparsers.testing import check_cuts

from .synthetic import STYLES, choose, write

OWN = sorted((Path(__file__).parents[2] / "templates_own").glob("*.jinja"))
TOOLS = [
    tool(name, {"beryl": {"type": "string"}, "n": {"type": ["integer", "null"]}}, ["beryl"])
    for name in ("find_quartz", "hold_marble")
]


def imported(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def check_module(found: Found, path: Path, stop: str) -> None:
    path.write_text(module_source(found, path.stem.replace("_", "-"), [stop]), encoding="utf-8")
    module = imported(path)
    written = module.FORMAT
    assert isinstance(written, Format) and found.format is not None
    made = replace(found.format, stops=written.stops)
    lines = path.read_text(encoding="utf-8").splitlines()
    code = lines[next(n for n, line in enumerate(lines) if line.startswith("from ")) :]
    assert len(lines) <= 120 and all(len(line) <= 120 for line in code)
    text = inspect.cleandoc(module.__doc__ or "")
    assert ":" in text.splitlines()[0] and text.splitlines()[0].endswith(".") and "\nQuirks:\n- " in text
    assert written.markers and written.stops and written.title and written.url.startswith("https://")
    assert written.features == made.features and written.preserved_tokens == made.preserved_tokens
    for options in (
        {"tools": TOOLS},
        {"tools": TOOLS, "tool_choice": "required", "parallel_tool_calls": False},
    ):
        for dialect in ("gbnf", "lark"):
            assert str(written.bind(**options).grammar(dialect)) == str(made.bind(**options).grammar(dialect))
    sample = sample_of(found)
    message = check_cuts(written.bind(tools=TOOLS, id_seed="s"), sample, [list(sample)])
    assert message == made.bind(tools=TOOLS, id_seed="s").parse(sample)
    assert message.complete and not message.diagnostics, (sample, message.diagnostics)
    assert bool(message.tool_calls) == made.features.tools
    # The sample in the docstring is the same, but for the spaces that a block of a docstring cannot show.
    assert all(line.strip() in text for line in sample.splitlines())


@pytest.mark.parametrize("path", [path for path in OWN if path.stem != "generic"], ids=lambda path: path.stem)
def test_module_of_a_template(path: Path, tmp_path: Path) -> None:
    found = analyse(Template(path.read_text(encoding="utf-8")))
    check_module(found, tmp_path / "emitted_module.py", "<stop>")


@pytest.mark.one_in(12)
@pytest.mark.parametrize("style", STYLES)
def test_module_of_a_synthetic_template(style: str, tmp_path: Path) -> None:
    found = analyse(Template(write(choose(STYLES.index(style) + 40 * len(STYLES)))))
    if found.format is None or not found.format.features.tools:
        pytest.skip("nothing was found of this one")
    check_module(found, tmp_path / "emitted_module.py", "<stop>")


def ran(*arguments: object) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = main([str(argument) for argument in arguments])
    return status, out.getvalue(), err.getvalue()


def template(name: str) -> Path:
    return next(path for path in OWN if path.stem == name)


def test_emit_module(tmp_path: Path) -> None:
    target = tmp_path / "my_model.py"
    status, out, err = ran("inspect", template("qwen3-coder"), "--emit-module", target)
    assert (status, out) == (0, "") and "my_model.py: written" in err
    module = imported(target)
    assert (
        module.FORMAT.name == "my-model"
        and module.FORMAT.features.tools
        and "<|im_end|>" in module.FORMAT.stops
    )
    status, out, err = ran("inspect", template("qwen3-coder"), "--emit-module", target)
    assert status != 0 and out == "" and "there is such a file" in err
    status, out, err = ran("inspect", template("generic"), "--emit-module", tmp_path / "other.py")
    assert (
        status != 0
        and "found no format to write (tools: calls: " in err
        and not (tmp_path / "other.py").exists()
    )


@pytest.mark.parametrize("name", ["qwen3", "kimi-k2", "glm-4-5"])
def test_the_page_shows_what_is_found_and_what_is_written_by_hand(name: str) -> None:
    page = Path(__file__).parents[3] / "docs" / "tables" / "analysis.md"
    if not page.exists():
        pytest.skip("no docs: not a checkout")
    text = _bare(page.read_text(encoding="utf-8"))
    source = module_source(analyse(Template(template(name).read_text(encoding="utf-8"))), name)
    found = source.partition("def build")[2].partition("\n\n\nFORMAT")[0]
    assert _bare(found) in text
    assert _bare(inspect.getsource(get_format(name).build)) in text


def _bare(source: str) -> str:
    """Source without the line breaks that a formatter chooses."""
    return re.sub(r"\s+|,(?=\s*[)\]])", "", source)


def test_explain() -> None:
    status, out, err = ran("inspect", template("glm-4-5"), "--explain")
    assert (status, err) == (0, "") and "\x1b" not in out
    for line in (
        "text beside a call:",
        "tools: holds, 30 turns read back exactly",
        "variant: tagged-args",
        "<arg_key>",
        "def build(p: Builder) -> Node:",
        "root ::= ",
    ):
        assert line in out, line
    status, out, err = ran("inspect", template("generic"), "--explain")
    assert status == 1 and "two calls are not written as one is" in out and err == ""


def test_nothing_found_has_no_module() -> None:
    with pytest.raises(ValueError, match="no format was found"):
        module_source(analyse(Template("{{ 1 }}")), "x")


def test_texts_are_quoted(tmp_path: Path) -> None:
    """Quotes, backslashes and brackets in markers stay what they are in the source."""
    source = (
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% for c in m.tool_calls or [] %}"
        """{{ '(\\\\"[,  + ' }}{{ c.function.name }}{{ "')=" }}{{ c.function.arguments | tojson }}{{ ']\\\\)' }}"""
        "{% endfor %}<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
    )
    found = analyse(Template(source))
    assert found.analysis is not None and found.analysis.calls is not None, found.levels
    assert found.analysis.calls.before == '(\\"[,  + '
    check_module(found, tmp_path / "emitted_module.py", "<stop>")
