"""Every format module has its facts as data, a sample that parses, cases, and at most 80 lines."""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import chatparsers.formats as _package
from chatparsers import Features, Message, answers, get_format, list_formats
from chatparsers.answers import Format
from chatparsers.testing import check_cuts
from chatparsers.testing.wild import samples

pytestmark = pytest.mark.one_in(1, quick=64)
_OURS = ("__init__.py", "__main__.py", "_catalog.py", "_generate.py")
_STOPS = Path(__file__).with_name("stops.json")
_NAMES = [info.name for info in list_formats() if info.origin == "chatparsers"]


@pytest.fixture(params=_NAMES)
def format(request: pytest.FixtureRequest) -> Format:
    return get_format(request.param)


def module_of(format: Format) -> Path:
    """The file that holds the format's record. Its build may be a sibling's."""
    (info,) = [info for info in list_formats() if info.name == format.name and info.origin == "chatparsers"]
    module = info.source.target.partition(":")[0]  # type: ignore[union-attr]
    return Path(str(sys.modules[module].__file__))


def read(format: Format, text: str) -> Message:
    """The sample's message, read with the tools that it calls."""
    anything = {"type": "function", "function": {"name": "anything", "parameters": {"type": "object"}}}
    names = dict.fromkeys(call.name for call in format.bind(tools=[anything]).parse(text).tool_calls)
    tools = [
        {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in names
    ]
    turn = format.bind(tools=tools or [anything])
    return check_cuts(turn, text, [list(text)])


def test_the_docstring_has_a_title_quirks_and_a_sample_that_parses(format: Format) -> None:
    """Each block parses without a diagnostic, and one of them has a call if the format has calls."""
    text = inspect.cleandoc(sys.modules[f"chatparsers.formats.{module_of(format).stem}"].__doc__ or "")
    first = text.splitlines()[0]
    assert ":" in first and first.endswith("."), (
        f"expected a title with a colon and a full stop, found {first!r}"
    )
    assert "\nQuirks:\n- " in text, "expected a line 'Quirks:' and a list behind the sample"
    assert samples(format), "expected a sample in lines of four spaces, before 'Quirks:'"
    called = 0
    for text in samples(format):
        message = read(format, text)
        assert message.complete and not message.diagnostics, (
            f"{text!r}: {[str(d) for d in message.diagnostics]}"
        )
        assert message.content or message.reasoning or message.tool_calls
        called += len(message.tool_calls)
    assert called or not format.features.tools, "expected a call in a sample, found none"


def test_what_is_data(format: Format) -> None:
    assert format.title and format.url.startswith("https://")
    assert isinstance(format.features, Features)
    assert format.stops or format.name == "generic", "nothing ends the turn"
    assert all(token.strip() for token in format.preserved_tokens)
    assert format.name == "generic" or format.name == "content-only" or format.markers
    for marker in format.markers:
        cut = [token for token in format.preserved_tokens if marker in token and marker != token]
        assert len(cut) != 1 or marker.endswith(":"), f"{marker!r} is a part of the token {cut[0]!r}"


def test_the_stops_are_those_that_were_agreed_on(format: Format, pytestconfig: pytest.Config) -> None:
    """Most formats have a stop that no case ends with, as engines and base models write it. ``--update-goldens`` writes
    the file anew: read the diff."""
    agreed = json.loads(_STOPS.read_text(encoding="utf-8"))
    if pytestconfig.getoption("--update-goldens"):
        agreed = {name: agreed.get(name) for name in _NAMES} | {format.name: list(format.stops)}
        _STOPS.write_text(json.dumps(agreed, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    assert list(format.stops) == agreed.get(format.name), f"the stops are not those of {_STOPS.name}"


def test_the_module_is_short() -> None:
    for path in {module_of(get_format(name)) for name in _NAMES}:
        lines = len(path.read_text(encoding="utf-8").splitlines())
        assert lines <= 80, f"{path.name} has {lines} lines: the builder is missing an idiom"


def imported(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            yield node.module or ""
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def authors_sources() -> Iterator[tuple[str, str]]:
    """The code that authors read and copy: the format modules, the plugin examples, the Python blocks of the pages."""
    root = Path(__file__).parents[2]
    modules = [path for path in Path(inspect.getfile(_package)).parent.glob("*.py") if path.name not in _OURS]
    for path in (*modules, *(root / "tests" / "plugins").glob("*-formats/*.py")):
        yield path.name, path.read_text(encoding="utf-8")
    for page in (*(root / "docs").glob("*.md"), root / "README.md", root / "CONTRIBUTING.md"):
        for block in re.findall(r"```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.M):
            yield page.name, block


def test_authors_import_from_one_place() -> None:
    """A format imports its names only from `chatparsers.answers`, because the modules of the core may move. The core's
    own door is for grammars that are no format."""
    sources = list(authors_sources())
    assert len(sources) > 40
    deep = [
        (name, module)
        for name, text in sources
        for module in imported(text)
        if module != "chatparsers.core.door"
        and module.startswith(
            ("chatparsers.answers.", "chatparsers.core", "chatparsers.streams", "chatparsers.values")
        )
    ]
    assert not deep
    assert set(answers.__all__) <= set(dir(answers))
