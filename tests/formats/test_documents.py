"""Every format is data: its document says all of it, and is a golden file.

So a change of a shape shows in the diff what it does to twenty formats. ``--update-goldens`` writes
``tests/formats/documents`` and ``docs/chat_format.schema.json`` anew, what an analysis finds in the tests' own
templates (``analysed.json``), and what is read of the response templates that we write (``response_templates.json``):
then read the diff.
"""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from chatparsers import Format, RequestError, SchemaError, get_format, list_formats
from chatparsers.answers import nodes as n
from chatparsers.answers.idioms import Options
from chatparsers.detection.analysis import analyse
from chatparsers.document import classes, dumps, loads, schema
from chatparsers.document.kinds import BY_KEY, USE
from chatparsers.interop import read_response_template, write_response_template
from chatparsers.templates import Template
from chatparsers.values import Syntax

from ..draw import Draw

_GOLDEN = Path(__file__).with_name("documents")
_TEMPLATES = Path(__file__).parents[1] / "templates_own"
_FOUND = Path(__file__).parents[1] / "detection" / "analysis" / "found.json"
_SCHEMA = Path(__file__).parents[2] / "docs" / "chat_format.schema.json"
_NAMES = [info.name for info in list_formats() if info.origin == "chatparsers"]
_OPTIONS = (Options(tools=True), Options(), Options(tools=True, parallel=False))
_CITY = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}
_TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": _CITY}}
    for name in ("get_weather", "python", 'q"&<x')
]
_CALL = {"type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Oslo", "days": 2}'}}
_MESSAGES: list[dict[str, Any]] = [
    {"content": "Hi"},
    {"content": "Hi", "reasoning_content": "Hm."},
    {"content": "", "tool_calls": [{"id": "call00001", **_CALL}, {"id": "call00002", **_CALL}]},
]


@pytest.fixture(params=_NAMES)
def format(request: pytest.FixtureRequest) -> Format:
    return get_format(request.param)


def differences(one: Any, other: Any, at: str = "$") -> Iterator[str]:
    """Where two trees differ, in what is parsed and in what is generated for any tool and for these."""
    if type(one) is not type(other):
        yield f"{at}: {one!r:.80} and {other!r:.80}"
    elif isinstance(one, tuple):
        if len(one) != len(other):
            yield f"{at}: {len(one)} and {len(other)} parts"
        for place, (a, b) in enumerate(zip(one, other, strict=False)):
            yield from differences(a, b, f"{at}[{place}]")
    elif isinstance(one, (n.Node, n.Span)) and is_dataclass(one):
        for field in fields(one):
            if field.name not in ("make", "own", "tool", "argument", "of"):
                yield from differences(
                    getattr(one, field.name), getattr(other, field.name), f"{at}.{field.name}"
                )
    elif isinstance(one, Syntax):
        for field in fields(one):  # type: ignore[arg-type]
            yield from differences(getattr(one, field.name), getattr(other, field.name), f"{at}.{field.name}")
    elif at.endswith(".chars") and one:
        if spelt(one) != spelt(other):
            yield f"{at}: {one!r:.80} and {other!r:.80}"
    elif one != other:
        yield f"{at}: {one!r:.80} and {other!r:.80}"


def spelt(chars: str) -> str:
    """A class of characters as documents have it: an analysis, or a template of another project, may say one twice."""
    return classes.read(classes.written(chars.removeprefix("[").removesuffix("]")), "$")


@pytest.mark.one_in(24)
def test_the_document_says_all_of_the_format(format: Format) -> None:
    document = loads(dumps(format.to_data()))
    read = Format.from_data(document)
    assert read.to_data() == document, "the document of what was read is another one"
    for field in fields(format):
        if field.name != "build":
            assert getattr(read, field.name) == getattr(format, field.name), field.name
    for options in _OPTIONS:
        wrong = next(differences(read.tree(options), format.tree(options)), None)
        assert wrong is None, f"{options}: what the parser reads differs: {wrong}"
    for choice in ("auto", "required"):
        for tools in (_TOOLS, None) if choice == "auto" else (_TOOLS,):
            turns = [one.bind(tools=tools, tool_choice=choice) for one in (read, format)]
            for dialect in ("gbnf", "lark", "structural_tag"):
                ours, its = (said(turn.grammar, dialect) for turn in turns)
                assert ours == its, f"{choice}, {dialect}"
    for message in _MESSAGES:
        ours, its = (said(one.render, {"role": "assistant", **message}, _TOOLS) for one in (read, format))
        assert ours == its, message


def said(method: Callable[..., Any], *given: Any) -> tuple[str, Any]:
    """What the method returns, or why it refuses."""
    try:
        found = method(*given)
    except (RequestError, SchemaError) as error:
        return str(error), None
    return str(found), getattr(found, "triggers", None)


@pytest.mark.parametrize("template", sorted(_TEMPLATES.glob("*.jinja")), ids=lambda path: path.stem)
@pytest.mark.one_in(16, quick=64)
def test_the_document_says_all_of_what_an_analysis_finds(template: Path, pytestconfig: pytest.Config) -> None:
    """Here all rows of found.json are compared with the analysis: the variant, and whether something is refused. The
    numbers of cells are counted where they are read, in tests/detection/analysis/test_hidden.py."""
    found = analyse(Template(template.read_text(encoding="utf-8")))
    if found.format is not None:
        is_all_of(found.format)
    is_golden("analysed.json", template.stem, found.format, pytestconfig)
    limits = [
        level for level, why in found.levels if why
    ]  # such as the calls, where reasoning alone is found
    if found.analysis:
        limits += [limit.part for limit in found.analysis.limits]
    variant, _, refused = json.loads(_FOUND.read_text(encoding="utf-8"))[template.stem]
    told = (
        f"{_FOUND.name} says {variant}, {refused} cells refused (test_hidden.py --update-goldens writes it)"
    )
    assert variant == (found.analysis.variant if found.analysis else "none"), told
    assert bool(refused) is bool({*limits} - {"grammar"}), (told, limits)


@pytest.mark.one_in(16, quick=64)
def test_the_document_says_all_of_what_is_read_of_a_response_template(
    format: Format, pytestconfig: pytest.Config
) -> None:
    found = read_response_template(write_response_template(format, "…").spec)
    is_all_of(found)
    is_golden("response_templates.json", format.name, found, pytestconfig)


def is_all_of(format: Format) -> None:
    """Checks that the format's document, read again, has its tree."""
    read = Format.from_data(loads(dumps(format.to_data())))
    for options in _OPTIONS:
        assert next(differences(read.tree(options), format.tree(options)), None) is None


def is_golden(file: str, name: str, format: Format | None, config: pytest.Config) -> None:
    """Checks that the document of a format without a name of its own is that of the file, which has a line for each;
    null if there is none."""
    path = _GOLDEN.with_name(file)
    every = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    names = ("chat_format", "name", "title", "url")
    document = None if format is None else loads(dumps(format.to_data()))
    said = document and {key: part for key, part in document.items() if key not in names}
    if config.getoption("--update-goldens"):
        every[name] = said
        lines = (f"{json.dumps(key)}: {json.dumps(every[key], ensure_ascii=False)}" for key in sorted(every))
        path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8", newline="\n")
    assert name in every, f"{file} lacks {name}: --update-goldens writes it"
    assert said == every[name], f"{file}: the document of {name} has changed; --update-goldens writes it"


@pytest.mark.one_in(1, quick=64)
def test_the_document_is_the_golden_one(format: Format, pytestconfig: pytest.Config) -> None:
    path, text = _GOLDEN / f"{format.name}.json", dumps(format.to_data()) + "\n"
    if pytestconfig.getoption("--update-goldens"):
        path.write_text(text, encoding="utf-8", newline="\n")
    golden = path.read_text(encoding="utf-8") if path.exists() else ""
    assert text == golden, (
        f"{path.name}: the document has changed; --update-goldens writes it, then read the diff"
    )


def test_no_golden_document_is_left_over() -> None:
    templates = {path.stem for path in _TEMPLATES.glob("*.jinja")}
    assert {path.stem for path in _GOLDEN.glob("*.json")} == set(_NAMES)
    for file, names in (("analysed.json", templates), ("response_templates.json", set(_NAMES))):
        assert json.loads(_GOLDEN.with_name(file).read_text(encoding="utf-8")).keys() == names, file


def test_the_published_schema_takes_every_document(
    pytestconfig: pytest.Config, drawn: Draw, amount: Callable[[int, int, int], int]
) -> None:
    text = json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"
    if pytestconfig.getoption("--update-goldens"):
        _SCHEMA.write_text(text, encoding="utf-8", newline="\n")
    assert _SCHEMA.read_text(encoding="utf-8") == text, "--update-goldens writes it anew"
    Draft202012Validator.check_schema(schema())
    validator = Draft202012Validator(schema())
    documents = list(_GOLDEN.glob("*.json"))
    tried = drawn.some(documents, lambda path: path.stem, amount(16, len(documents), len(documents)))
    for path in (*tried, *(path for path in documents if path.stem in drawn.whole)):
        assert next(validator.iter_errors(json.loads(path.read_text(encoding="utf-8"))), None) is None, (
            path.name
        )


def test_the_page_has_every_kind() -> None:
    page = (Path(__file__).parents[2] / "docs" / "tables" / "document-nodes.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)
    missing = {*BY_KEY, USE} - {key for row in rows for key in re.findall(r"`(\w+)`", row)}
    assert not missing, "docs/tables/document-nodes.md: expected a row for each kind"


def test_the_named_sets_are_what_the_page_says() -> None:
    """So that an implementation whose ``\\w`` and ``\\s`` are others knows what to take."""
    every = "".join(map(chr, range(sys.maxunicode + 1)))
    kinds = {char: unicodedata.category(char) for char in every}
    found = {name: {*re.findall(rf"\{name}", every)} for name in "wds"}
    assert found["w"] == {char for char in every if kinds[char][0] in "LN" or char == "_"}
    assert found["d"] == {char for char in every if kinds[char] == "Nd"}
    blanks = [*range(9, 14), *range(28, 33), 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B)]
    assert found["s"] == {*map(chr, [*blanks, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000])}
    for inside in (r"a-z0-9_\-", r"^\s<>", r"\w.\-", r"^\]\[\\\^", r" \t\r\n"):
        assert classes.read(classes.written(inside), "$") == inside
