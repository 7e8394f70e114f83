"""The compiled core says what the plain one says: for random texts in random pieces, every event and every message."""

from __future__ import annotations

import ast
import copy
import os
import pickle
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import chatparsers
from chatparsers import CORE, OutputError
from chatparsers.testing import TOOLS

needs_compiled = pytest.mark.skipif(
    CORE != "compiled", reason="the core is plain: install ./compiled (compiled/README.md)"
)
ROOT = Path(chatparsers.__file__).parents[1]

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


MODULE = f'VERSION, PUBLIC = "{chatparsers.__version__}", {{"chatparsers.core.x": []}}'
ELF = struct.pack("=4sB35xQ10xHH2x", b"\x7fELF", 2, 1000, 64, 3)
"""The header of a module with three sections, whose table begins at byte 1000."""

BROKEN = {
    "another version": ('VERSION, PUBLIC = "0.0.0", {}', None, "found 0.0.0; install that version"),
    "a module is missing": (MODULE, None, "found it without chatparsers.core.x; install that version"),
    "a module is cut": (
        MODULE,
        ELF.ljust(1180) + b"PyInit_x",
        "found it with a part of x.so; install that version",
    ),
    "a module does not begin": (
        MODULE,
        ELF.ljust(1192),
        "found it with a part of x.so; install that version",
    ),
    "a module is empty": (MODULE, b"", "found it with a part of x.so; install that version"),
    "it cannot be imported": ("import nowhere", None, "cannot be imported: No module named 'nowhere'"),
    "the end of its source is missing": (MODULE[:-1], None, "cannot be imported: "),
}


@pytest.mark.parametrize(("built", "module", "said"), BROKEN.values(), ids=BROKEN.keys())
def test_a_compiled_core_that_does_not_fit_is_not_used(
    tmp_path: Path, built: str, module: bytes | None, said: str
) -> None:
    source = ROOT / "compiled" / "chatparsers_compiled" / "__init__.py"
    if not source.exists():
        pytest.skip("no sources of chatparsers-compiled: not a checkout")
    other = tmp_path / "chatparsers_compiled"
    other.mkdir()
    shutil.copy(source, other)
    (other / "_built.py").write_text(built, encoding="utf-8")
    (other / "_names.py").write_text("rename = None", encoding="utf-8")
    if module is not None:
        file = other / "chatparsers" / "core" / f"x{EXTENSION_SUFFIXES[-1]}"
        file.parent.mkdir(parents=True)
        file.write_bytes(module)
        said = said.replace("x.so", file.name)
    done = subprocess.run(
        [sys.executable, "-c", "import chatparsers; print(chatparsers.CORE)"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}", "CHATPARSERS_PURE": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "pure\n" and said in done.stderr


def types() -> list[Path]:
    return sorted((ROOT / "compiled" / "types").glob("**/*.pxd"))


@pytest.mark.parametrize("file", types(), ids=lambda file: file.stem)
def test_the_types_name_what_the_classes_have(file: Path) -> None:
    """Without a compiler: a slot or a method that was added, renamed or removed is seen."""
    name = ".".join(file.relative_to(ROOT / "compiled" / "types").with_suffix("").parts)
    tree = ast.parse((ROOT / "chatparsers" / f"{name.replace('.', '/')}.py").read_text(encoding="utf-8"))
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    for kind, body in re.findall(r"^cdef class (\w+).*\n((?:    .*\n)+)", file.read_text("utf-8"), re.M):
        fields = re.findall(r"\w+(?=,|$)", "\n".join(re.findall(r"^    cdef public (.*)$", body, re.M)), re.M)
        (slots,) = [
            ast.literal_eval(node.value)
            for node in classes[kind].body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__slots__"
        ]
        assert sorted(fields) == sorted({*slots} - {"__weakref__"}), kind
        methods = {node.name for node in classes[kind].body if isinstance(node, ast.FunctionDef)}
        assert set(re.findall(r"^    cp?def [\w ]*?(\w+)\(", body, re.M)) <= methods
