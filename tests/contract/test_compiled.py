"""The compiled core says what the plain one says: for random texts in random pieces, every event and every message."""

from __future__ import annotations

import ast
import copy
import dataclasses
import os
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from threading import Thread
from types import FrameType
from typing import Any, get_args, get_type_hints

import pytest

import chatparsers
from chatparsers import CORE, Event, OutputError
from chatparsers.streams import known
from chatparsers.testing import TOOLS

needs_compiled = pytest.mark.skipif(
    CORE != "compiled",
    reason="the core is plain: CONTRIBUTING.md says how to run the tests with a compiled one",
)
ROOT = Path(chatparsers.__file__).parents[1]
TYPES = Path(__file__).parents[2] / "compiled" / "types"

FEED = """
import hashlib, itertools, pickle, random, sys
from chatparsers import CORE, OutputError, list_formats
from chatparsers.testing import fuzz

chance, feedings, digest = random.Random(sys.argv[1]), 0, hashlib.sha256()
formats = [info for info in list_formats() if info.origin == "chatparsers"]
chance.shuffle(formats)
for number, info in enumerate(itertools.cycle(formats)):
    if feedings > int(sys.argv[2]) and number >= len(formats):
        break
    case = fuzz.TARGETS["texts"].draw(chance, info.load())
    text, strict, turn = case["text"], chance.random() < 0.2, fuzz._bound(case, id_seed="1")
    for size in (1, 2, 4, 9, 30, 1000):
        stream, seen = turn.stream(strict=strict), []
        try:
            for at in range(0, len(text), size):
                feedings += 1
                seen.append((stream.feed(text[at : at + size]), stream.region))
                if chance.random() < 0.02:
                    stream = chance.choice([stream.fork, lambda: pickle.loads(pickle.dumps(stream))])()
            seen.append(stream.finish(chance.choice([None, "stop", "length"])))
        except OutputError as error:
            seen.append(str(error))
        digest.update(repr((case["format"], size, seen, stream.message)).encode("utf-8", "surrogatepass"))
    print(feedings, case["format"], digest.hexdigest())
print(CORE, file=sys.stderr)
"""


def fed(feedings: int, **environment: str) -> subprocess.Popen[str]:
    """Prints a line for each case that it reads, and to the other stream which core ran."""
    return subprocess.Popen(
        [sys.executable, "-c", FEED, "7", str(feedings)],
        env={**os.environ, **environment},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@needs_compiled
def test_both_cores_say_the_same(amount: Callable[[int, int, int], int]) -> None:
    feedings = amount(25_000, 100_000, 1_000_000)
    running = [fed(feedings), fed(feedings, CHATPARSERS_PURE="1")]  # beside each other
    (found, compiled), (expected, pure) = [process.communicate() for process in running]
    assert (compiled, pure) == ("compiled\n", "pure\n")
    assert found == expected and len(found.splitlines()) > 80


CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'


def opened() -> Any:
    stream = chatparsers.get_format("hermes-2-pro").bind(tools=TOOLS, id_seed="1").stream()
    stream.feed(CALL[:50])
    return stream


@needs_compiled
def test_each_core_reads_the_pickles_of_the_other() -> None:
    code = f"""
import pickle, sys
from chatparsers import CORE
stream = pickle.loads(sys.stdin.buffer.read())
stream.feed({CALL[50:60]!r})
sys.stdout.buffer.write(pickle.dumps((CORE, stream)))"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=pickle.dumps(opened()),
        env={**os.environ, "CHATPARSERS_PURE": "1"},
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    core, stream = pickle.loads(done.stdout)
    stream.feed(CALL[60:])
    stream.finish()
    assert core == "pure" and stream.message.complete


def test_a_stream_can_be_copied_derived_from_and_fed_in_threads() -> None:
    """In both cores."""

    class Text(str):
        pass

    class Mine(type(opened())):  # type: ignore[misc]
        note = "mine"

    streams = [opened(), copy.deepcopy(opened()), opened().fork(), pickle.loads(pickle.dumps(opened()))]
    threads = [Thread(target=stream.feed, args=(Text(CALL[50:]),)) for stream in streams]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(stream.finish() == [] and stream.message.complete for stream in streams)
    assert len({repr(stream.message) for stream in streams}) == 1
    assert Mine.note == "mine" and Mine.__mro__[1].__module__ == "chatparsers"
    with pytest.raises(OutputError, match="malformed"):
        chatparsers.get_format("hermes-2-pro").bind(tools=TOOLS).parse(
            CALL.replace('"Oslo"', "x"), strict=True
        )


@pytest.mark.parametrize("kind", get_args(Event), ids=lambda kind: kind.__name__)
def test_an_event_is_a_data_class_in_both_cores(kind: Any) -> None:
    names = [field.name for field in dataclasses.fields(kind)]
    assert names == [*get_type_hints(kind)] == [*kind.__slots__] == [*kind.__match_args__]
    event, shown = kind(*range(len(names))), ", ".join(f"{name}={at}" for at, name in enumerate(names))
    assert repr(event) == f"{kind.__name__}({shown})" and kind.__module__ == "chatparsers" and kind.__doc__
    assert event == copy.copy(event) == copy.deepcopy(event) == pickle.loads(pickle.dumps(event))
    assert event != dataclasses.replace(event, **{names[0]: 9}) and kind.__hash__ is None
    with pytest.raises(AttributeError):
        event.other = 1


def run_beside(tmp_path: Path, code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs code with a copy of the package that has a compiled module, which is broken, beside its source."""
    package = tmp_path / "chatparsers"
    shutil.copytree(
        ROOT / "chatparsers", package, ignore=shutil.ignore_patterns("*.so", "*.pyd", "__pycache__")
    )
    (package / "core" / "machine" / f"machine{EXTENSION_SUFFIXES[0]}").touch()
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "CHATPARSERS_PURE": "0", **environment},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )


READ = "import chatparsers; chatparsers.get_format('qwen3').bind().parse('hi'); print(chatparsers.CORE)"


def test_the_sources_run_where_the_compiled_modules_may_not(tmp_path: Path) -> None:
    """These are the variable that says so, and an interpreter whose GIL is off."""
    assert run_beside(tmp_path / "1", READ, CHATPARSERS_PURE="1").stdout == "pure\n"
    without_gil = f"import sys; sys._is_gil_enabled = lambda: False; {READ}"
    assert run_beside(tmp_path / "2", without_gil).stdout == "pure\n"
    with_gil = f"import sys; sys._is_gil_enabled = lambda: True; {READ}"
    broken = run_beside(tmp_path / "3", with_gil)
    assert broken.returncode == 1 and "ImportError" in broken.stderr, (
        "a module beside its source is the one that runs"
    )


def types() -> list[Path]:
    return sorted(TYPES.glob("**/*.pxd"))


@pytest.mark.parametrize("file", types(), ids=lambda file: file.stem)
def test_the_types_name_what_the_classes_have(file: Path) -> None:
    """Without a compiler: a slot or a method that was added, renamed or removed is seen."""
    name = ".".join(file.relative_to(TYPES).with_suffix("").parts)
    tree = ast.parse((ROOT / "chatparsers" / f"{name.replace('.', '/')}.py").read_text(encoding="utf-8"))
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    for kind, body in re.findall(r"^cdef class (\w+).*\n((?:    .*\n)+)", file.read_text("utf-8"), re.M):
        fields = re.findall(r"\w+(?=,|$)", "\n".join(re.findall(r"^    cdef public (.*)$", body, re.M)), re.M)
        (slots,) = [
            ast.literal_eval(node.value)
            for node in classes[kind].body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__slots__"
        ] or [  # of a data class
            [ast.unparse(node.target) for node in classes[kind].body if isinstance(node, ast.AnnAssign)]
        ]
        assert sorted(fields) == sorted({*slots} - {"__weakref__"}), kind
        methods = {node.name for node in classes[kind].body if isinstance(node, ast.FunctionDef)}
        assert set(re.findall(r"^    cp?def [\w ]*?(\w+)\(", body, re.M)) <= methods


@pytest.mark.parametrize("file", types(), ids=lambda file: file.stem)
def test_the_types_name_what_the_functions_have(file: Path) -> None:
    """Without a compiler: a typed variable that a function does not have any more is seen."""
    source = (ROOT / "chatparsers" / file.relative_to(TYPES).with_suffix(".py")).read_text(encoding="utf-8")
    had: dict[str, set[str]] = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            named = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
            had.setdefault(node.name, set()).update(
                named, {part.arg for part in ast.walk(node.args) if isinstance(part, ast.arg)}
            )
    for typed, function in re.findall(
        r"@cython\.locals\(([^)]*)\)\s+cp?def [^\n(]*?(\w+)\(", file.read_text("utf-8")
    ):
        assert set(re.findall(r"(\w+)=", typed)) <= had[function], function


def test_no_module_imports_what_the_types_hide() -> None:
    """Without a compiler: a name that is ``cdef`` is none of the compiled module's."""
    hidden = {}
    for file in types():
        lines = re.findall(r"^cdef (?!class)(.*)$", file.read_text("utf-8"), re.M)
        name = ".".join(("chatparsers", *file.relative_to(TYPES).with_suffix("").parts))
        hidden[name] = set(re.findall(r"\w+(?=,|$|\()", "\n".join(lines), re.M))
    assert any(hidden.values())
    for module in (ROOT / "chatparsers").rglob("*.py"):
        package = module.relative_to(ROOT).parts[:-1]
        found = re.findall(r"^from (\.*)([\w.]*) import (\([^)]*\)|.*)$", module.read_text("utf-8"), re.M)
        for dots, name, names in found:
            base = package[: len(package) - len(dots) + 1] if dots else ()
            barred = hidden.get(".".join((*base, *filter(None, [name]))), set())
            assert barred.isdisjoint(re.findall(r"\w+", names)), module


PLAIN = {
    "core/machine/alphabet": "an id is one character, as a value with markers is read",
    "parser/compile": "the names of a header: once for a call",
    "answers/format": "what a turn asks of its format: once for a stream",
    "core/machine/fences": "where in a line a text ends: at a call without its opener",
    "streams/start": "what a stream begins from: once for a stream",
    "core/machine/white": "white space before a marker",
    "schema/document": "the types of an argument: once for a call",
    "values/__init__": "the syntax of a value: once for a value",
    "values/elements": "nested elements, which one format has",
    "values/unquoted": "values without their quotes",
}
"""What runs while a stream reads a call and is not compiled, and why not."""


@pytest.mark.pure
def test_what_runs_while_a_stream_reads_has_types_or_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new module of the core without its file in ``compiled/types`` would be compiled by nobody."""
    files: set[str] = set()
    package = ROOT / "chatparsers"

    def note(frame: FrameType, event: str, argument: object) -> None:
        files.add(frame.f_code.co_filename)

    function = {"name": "get_weather", "arguments": '{"city": "Oslo", "days": 3}'}
    message = {"role": "assistant", "content": "", "tool_calls": [{"id": "a12345678", "function": function}]}
    for format in (info.load() for info in chatparsers.list_formats()):
        if not format.features.tools:
            continue
        text, turn = format.render(message, TOOLS), format.bind(tools=TOOLS)
        # First, what is made once for a format or its tools; then what is known, and what is read by a machine.
        for again, enabled in ((False, True), (True, True), (True, False)):
            monkeypatch.setattr(known, "enabled", enabled)
            stream = turn.stream()
            sys.setprofile(note if again else None)
            try:
                for character in text:
                    stream.feed(character)
            finally:
                sys.setprofile(None)
    ours = (path for path in map(Path, files) if path.is_relative_to(package))
    found = {path.relative_to(package).with_suffix("").as_posix() for path in ours}
    assert {"core/machine/machine", "streams/known"} <= found
    typed = {file.relative_to(TYPES).with_suffix("").as_posix() for file in types()}
    assert found - typed <= PLAIN.keys(), "write compiled/types/….pxd for it, or a reason into PLAIN"
