"""The names that vLLM and SGLang have for their parsers: tables/server-names.md answers each; most are aliases."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import cast

import pytest

from chatparsers import FormatRef, UnknownFormat, get_format, list_formats
from chatparsers.formats._generate import HostNames, host_table

pytestmark = pytest.mark.one_in(1, quick=64)
_DOCS = Path(__file__).parents[2] / "docs"
_DATA = json.loads((_DOCS / "_host_names.json").read_text(encoding="utf-8"))
_NAMES = sorted({name for host in _DATA["hosts"].values() for names in host.values() for name in names})
_ROW = re.compile(r"^\| `(?P<name>[^`]+)` \| (?P<hosts>.*) \| (?P<formats>[^|]*) \|$", re.MULTILINE)

# They read a template's own response schema.
_NONE = set(_DATA["refused"])
_ALIASES = {alias for info in list_formats() for alias in (info.name, *info.aliases)}


def rows() -> dict[str, tuple[str, list[str]]]:
    """What the page says of each name: the hosts that have it, and our formats."""
    page = (_DOCS / "tables" / "server-names.md").read_text(encoding="utf-8")
    table = page.partition("<!-- hosts: begin -->")[2].partition("<!-- hosts: end -->")[0]
    return {
        row["name"]: (row["hosts"], re.findall("`([^`]+)`", row["formats"].partition(":")[0]))
        for row in _ROW.finditer(table)
    }


def test_the_page_answers_every_name_of_the_hosts() -> None:
    """A name has a format, or the page says why it has none."""
    shown = rows()
    assert sorted(shown) == _NAMES and len(_NAMES) == 100
    known = {info.name for info in list_formats()}
    assert {one for _, found in shown.values() for one in found} <= known
    assert {name for name, (_, found) in shown.items() if not found} == _NONE
    assert set(_DATA["meant"]) | set(_DATA["notes"]) <= set(_NAMES)
    for name in _NAMES:
        cells = zip(shown[name][0].split(" | "), _DATA["hosts"].values(), strict=True)
        for cell, host in cells:
            told = set(cell.replace("–", "").split(", ")) - {""}
            assert told == {option for option, names in host.items() if name in names}, name


@pytest.mark.parametrize("name", _NAMES)
def test_a_name_that_means_one_format_is_its_alias(name: str) -> None:
    (_, found) = rows()[name]
    try:
        format = get_format(name)
    except UnknownFormat:
        assert name in _DATA["meant"] or not found
        return
    assert format.name in found
    assert len(found) == 1 or found[0] == format.name  # the first of several


@pytest.mark.parametrize("name", [*_DATA["others"], *_DATA["meant"]])
def test_a_name_of_other_servers_is_the_first_of_its_formats(name: str) -> None:
    formats = _DATA["meant"].get(name) or _DATA["others"][name]["formats"]
    assert get_format(name).name == get_format(formats[0]).name or name in _ALIASES


def test_a_name_that_is_no_dialect_says_so() -> None:
    for name, why in _DATA["refused"].items():
        with pytest.raises(UnknownFormat, match=re.escape(why)):
            get_format(name)
    for name in _DATA["unknown"]:
        with pytest.raises(UnknownFormat, match="no format is named"):
            get_format(name)


@pytest.mark.parametrize(
    ("pair", "format"),
    [
        ("qwen3_coder+qwen3", "qwen3-coder"),
        ("hermes+deepseek_r1", "hermes-2-pro"),
        ("mistral+mistral", "ministral-3"),
        ("openai+openai_gptoss", "gpt-oss"),
        ("deepseek_v31+deepseek_v3", "deepseek-v3-1"),
        ("kimi_k2+kimi_k2", "kimi-k2"),
        ("qwen3_coder+mistral", None),
        ("qwen3_coder+nothing", None),
    ],
)
def test_a_pair_of_parsers_is_the_format_that_reads_both(pair: str, format: str | None) -> None:
    if format is None:
        with pytest.raises(UnknownFormat):
            get_format(pair)
    else:
        assert get_format(pair).name == format


def _wheel(name: str) -> str:
    """The folder of an installed server; skips without it. It is not imported."""
    found = importlib.util.find_spec(name)
    if found is None or found.origin is None:
        pytest.skip(f"{name} is not installed")
    return str(Path(found.origin).parent)


def test_mlx_lm_has_no_other_names() -> None:
    files = (Path(_wheel("mlx_lm")) / "tool_parsers").glob("*.py")
    (host,) = (names for host, names in _DATA["hosts"].items() if host.startswith("mlx-lm"))
    assert {file.stem for file in files} - {"__init__"} <= {*host["calls"]}


def test_vllm_has_no_other_names() -> None:
    folder = Path(_wheel("vllm"))
    (host,) = (names for host, names in _DATA["hosts"].items() if host.startswith("vLLM"))
    for file, option in (("tool_parsers", "calls"), ("reasoning", "reasoning")):
        text = (folder / file / "__init__.py").read_text(encoding="utf-8")
        assert set(re.findall(r'^    "([\w.-]+)": \(', text, re.MULTILINE)) <= {*host[option]}


def test_sglang_has_no_other_names() -> None:
    folder = Path(_wheel("sglang")) / "srt"
    (host,) = (names for host, names in _DATA["hosts"].items() if host.startswith("SGLang"))
    for file, option in (
        ("function_call/parser_names.py", "calls"),
        ("parser/reasoning_parser_names.py", "reasoning"),
    ):
        text = (folder / file).read_text(encoding="utf-8")
        assert set(re.findall(r'^    "([\w.-]+)",', text, re.MULTILINE)) <= {*host[option]}


_TOLD = {
    "beam": "response_?template|commentary",
    "cohere_command3": "cmd3",
    "cohere_command4": "cmd4",
    "gigachat3": "function_call",
    "granite": "my thought process:",
    "hy_v3": "<think>|tool_calls|arg_key|HYV3",
    "hy_v4": "tool_calls|arg_key",
    "muse_spark": "<atem:function_calls>",
    "olmo3": "<function_calls>|<think>",
    "openai": "gpt.?oss|harmony",
    "openai_gptoss": "gpt.?oss|harmony",
    "phi4_mini_json": r"functools\\\[",
    "pythonic": r"\bast\b|pythonic",
}
"""What the source of a parser has, whose format has no marker of its own there: it is composed, imported, or plain
text that the format reads too."""


def _source(root: Path, file: Path, seen: set[Path]) -> str:
    """The text of a module, and of the parsers that it imports."""
    if file in seen or not file.is_file() or file.name == "__init__.py":
        return ""
    seen.add(file)
    text = file.read_text(encoding="utf-8")
    imported = re.findall(r"^\s*from ([\w.]*(?:pars|reason|function_call)[\w.]*) import", text, re.MULTILINE)
    general = re.compile("base|abstract|core_types|utils|manager")
    files = (
        root.parent / f"{module.replace('.', '/')}.py" for module in imported if not general.search(module)
    )
    return "".join([text, *(_source(root, one, seen) for one in files)])


def _parsers(server: str) -> dict[str, list[Path]]:
    """The files of the parsers of each name in an installed server."""
    root = Path(_wheel(server))
    found: dict[str, list[Path]] = {}
    if server == "mlx_lm":
        return {file.stem: [file] for file in (root / "tool_parsers").glob("*.py") if file.stem != "__init__"}
    if server == "vllm":
        for folder in ("tool_parsers", "reasoning"):
            text = (root / folder / "__init__.py").read_text(encoding="utf-8")
            for name, module in re.findall(r'^    "([\w.-]+)": \(\s*"([\w.]+)"', text, re.MULTILINE):
                found.setdefault(name, []).append(root / folder / f"{module.rpartition('.')[2]}.py")
        return found
    calls = root / "srt" / "function_call"
    text = (calls / "function_call_parser.py").read_text(encoding="utf-8")
    imports = re.findall(r"from sglang\.srt\.function_call\.(\w+) import \(?([^)\n]+)", text)
    files = {name: calls / f"{module}.py" for module, names in imports for name in re.findall(r"\w+", names)}
    for name, detector in re.findall(r'"([\w.-]+)":\s*([A-Z]\w+)', text):
        if detector in files:
            found.setdefault(name, []).append(files[detector])
    return found


@pytest.mark.parametrize("server", ["vllm", "sglang", "mlx_lm"])
def test_the_source_of_a_parser_has_a_marker_of_its_format(server: str) -> None:
    """Names are mapped by source, not by likeness."""
    judged = 0
    for name, files in _parsers(server).items():
        if name in _NONE:
            continue
        formats = _DATA["meant"].get(name) or [get_format(name).name]
        markers = {mark.strip() for one in formats for mark in get_format(one).preserved_tokens} - {""}
        for file in files:
            text = _source(Path(_wheel(server)), file, set())
            told = re.search(_TOLD[name], text, re.IGNORECASE) if name in _TOLD else None
            assert told or any(mark in text for mark in markers), (name, formats, file.name)
            judged += 1
    assert judged > 10


def test_the_table_of_the_hosts() -> None:
    entries = [FormatRef("hermes-2-pro", "m:F", "Hermes", "https://example.org", ("hermes",), ())]
    hosts = {"A 1": {"calls": ["hermes", "x_y"], "reasoning": ["x_y"]}, "B 2": {"calls": ["hermes"]}}
    rest = {"refused": {}, "others": {}, "unknown": []}
    names = {"hosts": hosts, "meant": {"x_y": ["gone"]}, "notes": {"x_y": "why"}, **rest}
    text = host_table(cast(HostNames, names), entries)
    assert text.splitlines() == [
        "| Name | A 1 | B 2 | Format |",
        "|---|---|---|---|",
        "| `hermes` | calls | calls | `hermes-2-pro` |",
        "| `x_y` | calls, reasoning | – | –: why |",
    ]
