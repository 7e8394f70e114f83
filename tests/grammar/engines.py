"""The grammar engines as judges of strings: each says how far a text follows a grammar.

xgrammar imports torch and transformers for helpers that are not needed here. If they are absent, empty stand-ins take
their place. So a test run need not install several gigabytes.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
import types
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pytest


@dataclass(frozen=True)
class Status:
    """``full``: the text is in the language. ``prefix``: more text may complete it. ``rejected``: it went wrong at
    character ``at``."""

    kind: str
    at: int = -1

    def __str__(self) -> str:
        return self.kind if self.at < 0 else f"{self.kind} at {self.at}"


FULL, PREFIX = Status("full"), Status("prefix")


class _StandIn(types.ModuleType):
    """A module whose every attribute is an empty class."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = type(name, (), {"__init__": lambda self, *args, **kwargs: None})
        setattr(self, name, made)
        return made


@lru_cache(maxsize=1)
def xgrammar() -> Any:
    """The module xgrammar."""
    pytest.importorskip("tvm_ffi", reason="xgrammar is not installed")
    for name in ("torch", "transformers"):
        if name not in sys.modules and importlib.util.find_spec(name) is None:
            stand_in = _StandIn(name)
            stand_in.__spec__ = importlib.machinery.ModuleSpec(name, None)
            sys.modules[name] = stand_in
    return pytest.importorskip("xgrammar", reason="xgrammar is not installed")


@lru_cache(maxsize=1)
def llguidance() -> Any:
    """The module llguidance."""
    return pytest.importorskip("llguidance", reason="llguidance is not installed")


def _rejected(text: str, count: int) -> Status:
    """Rejected at the character that holds the byte at ``count``."""
    return Status("rejected", len(text.encode()[:count].decode(errors="ignore")))


@lru_cache(maxsize=1)
def _xgrammar_bytes() -> Any:
    xgr = xgrammar()
    vocabulary = [bytes([value]) for value in range(256)] + [b"<eos>"]
    info = xgr.TokenizerInfo(vocabulary, vocab_type=xgr.VocabType.RAW, stop_token_ids=[256])
    return xgr.GrammarCompiler(info, max_threads=1, cache_enabled=False)


class Xgrammar:
    """A grammar in xgrammar over single-byte tokens: GBNF, a structural tag, or a JSON Schema for its own
    compiler."""

    def __init__(self, text: str, dialect: str) -> None:
        compiler = _xgrammar_bytes()
        if dialect == "json_schema":
            self.compiled = compiler.compile_json_schema(text, any_whitespace=True, strict_mode=False)
        elif dialect == "structural_tag":
            self.compiled = compiler.compile_structural_tag(text)
        else:
            self.compiled = compiler.compile_grammar(text)

    def status(self, text: str) -> Status:
        matcher = xgrammar().GrammarMatcher(self.compiled)
        for index, value in enumerate(text.encode()):
            if matcher.is_terminated() or not matcher.accept_token(value):
                return _rejected(text, index)
        # Not by the token that ends a turn: where any text may follow, xgrammar takes its name, `<eos>`, for text.
        return FULL if matcher.is_completed() else PREFIX


@lru_cache(maxsize=8)
def _llguidance_bytes(special: tuple[str, ...]) -> Any:
    module = llguidance()

    class Bytes:
        eos_token_id = bos_token_id = 256
        tokens = [bytes([value]) for value in range(256)] + [b"<eos>", *(text.encode() for text in special)]
        special_token_ids = (256, *range(257, 257 + len(special)))

        def __call__(self, text: Any) -> list[int]:
            return list(text.encode() if isinstance(text, str) else text)

    return module.LLTokenizer(module.TokenizerWrapper(Bytes()), n_vocab=257 + len(special), slices=[])


class Llguidance:
    """A grammar in llguidance over single-byte tokens: Lark, or a JSON Schema for its own compiler."""

    def __init__(self, text: str, dialect: str = "lark") -> None:
        make = llguidance().LLMatcher
        read = make.grammar_from_json_schema if dialect == "json_schema" else make.grammar_from_lark
        self.start = make(_llguidance_bytes(()), read(text), log_level=0)
        if self.start.is_error():
            raise ValueError(self.start.get_error())

    def status(self, text: str) -> Status:
        matcher = self.start.deep_copy()  # to make one costs a hundred times as much
        raw = list(text.encode())
        count = matcher.try_consume_tokens(raw)
        if count < len(raw):
            return _rejected(text, count)
        return FULL if matcher.is_accepting() else PREFIX


def compile_for(engine: str, text: str, dialect: str) -> Any:
    """The grammar in that engine."""
    if engine == "llguidance":
        return Llguidance(text)
    return Xgrammar(text, dialect)


def own_compiler(engine: str, schema: str) -> Any:
    """A JSON Schema in an engine's own compiler; None if the compiler refuses it."""
    try:
        return (Llguidance if engine == "llguidance" else Xgrammar)(schema, "json_schema")
    except (ValueError, RuntimeError):
        return None


def engines_of(dialect: str) -> tuple[str, ...]:
    """The engines that read a dialect."""
    return ("llguidance",) if dialect == "lark" else ("xgrammar",)
