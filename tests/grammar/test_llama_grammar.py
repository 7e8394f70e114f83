"""llama.cpp's own grammar code reads every grammar, and takes the same texts as xgrammar.

Its sources are compiled alone, with a stand-in for the vocabulary (llama_bridge.cpp): ten seconds. They come from the
folder in ``CHATPARSERS_LLAMA_CPP``: a checkout of llama.cpp, or ``vendor/llama.cpp`` of the source distribution of
llama-cpp-python. A checkout given as ``--shared`` works too.
"""

from __future__ import annotations

import ctypes
import os
import random
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from engines import FULL, PREFIX, Status, compile_for
from grammar_report import record
from samples import MANY
from test_matrix import MODES, TOOL_FORMATS, mutations, random_texts, states
from test_sampler import REQUESTS
from toy import toy_tokenizer

import chatparsers

SOURCES = ("llama-grammar.cpp", "unicode.cpp", "unicode-data.cpp")


@pytest.fixture(scope="session")
def library(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """llama.cpp's grammar code; skips the test where it cannot be built."""
    given = [os.environ.get("CHATPARSERS_LLAMA_CPP"), pytestconfig.getoption("--shared")]
    folder = next((Path(at) for at in given if at and Path(at, "src", SOURCES[0]).is_file()), None)
    if folder is None:
        pytest.skip(
            "no sources of llama.cpp: set CHATPARSERS_LLAMA_CPP to a folder with src/llama-grammar.cpp"
        )
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    built = tmp_path_factory.mktemp("llama") / "grammar.so"
    bridge = Path(__file__).with_name("llama_bridge.cpp")
    headers = [f"-I{folder / at}" for at in ("src", "include", "ggml/include")]
    sources = [str(bridge), *(str(folder / "src" / name) for name in SOURCES)]
    command = [compiler, "-O1", "-std=c++17", "-shared", "-fPIC", *headers, *sources, "-o", str(built)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"llama.cpp's grammar code was not built: {done.stderr[-300:]}")
    found = ctypes.CDLL(str(built))
    found.grammar_new.restype = ctypes.c_void_p
    found.grammar_new.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
    found.grammar_take.restype = found.grammar_stacks.restype = ctypes.c_long
    found.grammar_take.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_long, ctypes.c_int]
    for function in (found.grammar_free, found.grammar_done, found.grammar_stacks):
        function.argtypes = [ctypes.c_void_p]
    return found


class LlamaGrammar:
    """A grammar in llama.cpp, from its beginning."""

    def __init__(self, library: Any, grammar: chatparsers.Grammar) -> None:
        self.library = library
        self.text = str(grammar).encode()
        self.root = grammar.root.encode()
        self.most = 0
        """The largest number of stacks so far."""
        self.handle: int | None = None
        self.restart()

    def restart(self) -> None:
        self.free()
        self.handle = self.library.grammar_new(self.text, self.root)
        assert self.handle, "llama.cpp refuses the grammar"

    def free(self) -> None:
        if self.handle:
            self.library.grammar_free(self.handle)

    def take(self, text: str) -> int:
        """The number of characters taken."""
        points = text.encode("utf-32-le")
        taken: int = self.library.grammar_take(self.handle, points, len(text), -1)
        self.most = max(self.most, self.library.grammar_stacks(self.handle))
        return taken

    def take_token(self, id: int) -> bool:
        return bool(self.library.grammar_take(self.handle, b"", 0, id))

    @property
    def done(self) -> bool:
        return bool(self.library.grammar_done(self.handle))

    def status(self, text: str) -> Status:
        self.restart()
        taken = self.take(text)
        if taken < len(text):
            return Status("rejected", taken)
        return FULL if self.done else PREFIX


@pytest.mark.parametrize("name", TOOL_FORMATS)
def test_every_grammar_is_read(name: str, library: Any, request: pytest.FixtureRequest) -> None:
    """In every mode and state of the reasoning, by text and by ids, with many tools."""
    format = chatparsers.get_format(name)
    asked = [{**base, **more} for base in MODES.values() for more in states(name).values()]
    asked.append({"tools": MANY[:60], "tool_choice": "required"})
    read = 0
    for tokenizer in (None, toy_tokenizer(format, True)):
        for one in asked:
            grammar = format.bind(**one, **({"tokenizer": tokenizer} if tokenizer else {})).grammar()
            if grammar is not None:
                LlamaGrammar(library, grammar).free()
                read += 1
    assert read >= 2 * len(asked) - 2
    record(request, "llama", format=name, read=read)


@pytest.mark.parametrize("name", TOOL_FORMATS)
def test_the_same_texts_as_in_xgrammar(name: str, library: Any, request: pytest.FixtureRequest) -> None:
    chance = random.Random(name)
    format = chatparsers.get_format(name)
    counted: Counter[str] = Counter()
    for mode in ("required", "schema"):
        asked = MODES[mode]
        grammar = format.bind(**asked).grammar()
        assert grammar is not None
        mine, other = LlamaGrammar(library, grammar), compile_for("xgrammar", str(grammar), "gbnf")
        for text in random_texts(name, asked, 2):
            for changed in mutations(text, chance, 4):
                status = mine.status(changed)
                assert status == other.status(changed), changed
                counted["texts"] += 1
                counted["accepted"] += status == FULL
        counted["stacks"] = max(counted["stacks"], mine.most)
        mine.free()
    assert 0 < counted["accepted"] < counted["texts"]
    record(request, "llama", format=name, **counted)


@pytest.mark.parametrize("name", TOOL_FORMATS)
def test_markers_by_id(name: str, library: Any) -> None:
    """A marker's id is taken where the marker stands, and its text is refused there."""
    format = chatparsers.get_format(name)
    tokenizer = toy_tokenizer(format, True)
    turn = format.bind(**REQUESTS["required"], thinking=False, tokenizer=tokenizer)
    grammar = turn.grammar()
    assert grammar is not None
    if not grammar.by_id:
        pytest.skip("the format has no markers")
    by_text = turn.grammar(token_references=False)
    (text,) = random_texts(name, {**REQUESTS["required"], "thinking": False}, 1)
    assert by_text is not None
    plain = LlamaGrammar(library, by_text)
    assert plain.status(text) == FULL
    markers = [marker for marker in grammar.by_id if marker in text]
    if not markers:
        pytest.skip("the calls have no markers")
    first = min(markers, key=lambda marker: (text.index(marker), -len(marker)))
    at = text.index(first)
    mine = LlamaGrammar(library, grammar)
    assert mine.take(text[:at]) == at
    assert mine.take_token(tokenizer.token_to_id(first))
    assert mine.status(text).kind == "rejected"
    mine.free(), plain.free()
