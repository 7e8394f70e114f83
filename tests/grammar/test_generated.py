"""Generated texts are read back: random walks over an engine's token mask, parsed in strict mode.

The strongest test of the promise that the grammar and the parser agree (C8): each text is parsed whole and
streamed, and its arguments are judged by jsonschema.
"""

from __future__ import annotations

import gzip
import json
import random
from functools import lru_cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from engines import llguidance, xgrammar
from grammar_report import record
from samples import TOOLS, Walk, closers, walk_bytes

import chatparsers

REAL = 151_643
"""How many tokens Qwen3 has beside the added ones. Only nightly runs use them: it takes half a minute a format."""


def names() -> list[str]:
    return [format.name if not isinstance(format, str) else format for format in chatparsers.list_formats()]


@lru_cache(maxsize=1)
def real_vocabulary(path: Path) -> tuple[list[bytes], Any, Any]:
    """Qwen3's tokens as bytes, and both engines' tokenizers over them."""
    from tokenizers import Tokenizer

    raw = gzip.decompress(path.read_bytes()).decode()
    size = Tokenizer.from_str(raw).get_vocab_size()
    end = Tokenizer.from_str(raw).token_to_id("<|im_end|>")
    ordinary = json.loads(raw)
    ordinary["added_tokens"] = []
    untagged = Tokenizer.from_str(json.dumps(ordinary))

    plain = {code: code for code in [*range(33, 127), *range(161, 173), *range(174, 256)]}
    extra = (code for code in range(256) if code not in plain)
    letters = {chr(code): code for code in plain} | {
        chr(256 + index): code for index, code in enumerate(extra)
    }
    texts = (untagged.id_to_token(number) or "" if number < REAL else "" for number in range(size))
    tokens = [bytes(letters[letter] for letter in text) for text in texts]
    xgr = xgrammar()
    vocabulary = [token or b"\xff\xff" for token in tokens]
    info = xgr.TokenizerInfo(vocabulary, vocab_type=xgr.VocabType.RAW, stop_token_ids=[end])
    compiler = xgr.GrammarCompiler(info, max_threads=2, cache_enabled=False)

    class Wrapped:
        eos_token_id = bos_token_id = end
        special_token_ids = tuple(range(REAL, size))

        def __call__(self, text: Any) -> list[int]:
            return list(untagged.encode(text if isinstance(text, str) else text.decode()).ids)

    wrapped = Wrapped()
    wrapped.tokens = [token or f"<{number}>".encode() for number, token in enumerate(tokens)]  # type: ignore[attr-defined]
    module = llguidance()
    return tokens, (compiler, end), module.LLTokenizer(module.TokenizerWrapper(wrapped), n_vocab=size)


@lru_cache(maxsize=1)
def byte_vocabulary() -> tuple[list[bytes], Any, Any]:
    from engines import _llguidance_bytes, _xgrammar_bytes

    return [bytes([value]) for value in range(256)] + [b""], (_xgrammar_bytes(), 256), _llguidance_bytes(())


def walks(name: str, request: dict[str, Any], dialect: str, vocabulary: Any) -> Any:
    """A function that begins a walk."""
    tokens, (compiler, end), tokenizer = vocabulary
    grammar = str(chatparsers.get_format(name).bind(**request).grammar(dialect))
    if dialect == "lark":
        compiled: Any = (tokenizer, llguidance().LLMatcher.grammar_from_lark(grammar))
        engine = "llguidance"
    else:
        compiled = (
            compiler.compile_grammar(grammar)
            if dialect == "gbnf"
            else compiler.compile_structural_tag(grammar)
        )
        engine = "xgrammar"
    return lambda: Walk(engine, compiled, tokens, end)


def check(name: str, request: dict[str, Any], text: str, chance: random.Random) -> list[str]:
    """What is wrong with a generated text."""
    turn = chatparsers.get_format(name).bind(**request)
    schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in request["tools"]}
    try:
        message = turn.parse(text, strict=True)
        stream = turn.stream(strict=True)
        at = 0
        while at < len(text):
            size = chance.choice((1, 1, 2, 5, 40))
            stream.feed(text[at : at + size])
            at += size
        stream.finish()
    except chatparsers.OutputError as error:
        return [f"not parsed: {error}"]
    wrong = []
    if stream.message.tool_calls != message.tool_calls:
        wrong.append("the stream differs from the whole")
    if request.get("tool_choice") == "required" and not message.tool_calls:
        wrong.append(f"no call: {message}")
    for call in message.tool_calls:
        if not call.complete:
            wrong.append(f"incomplete call: {call}")
            continue
        try:
            arguments = json.loads(call.arguments)
            jsonschema.validate(arguments, schemas[call.name], format_checker=jsonschema.FormatChecker())
        except (ValueError, KeyError, jsonschema.ValidationError) as error:
            wrong.append(f"invalid arguments {call.arguments!r}: {str(error).splitlines()[0]}")
    return wrong


@pytest.mark.parametrize("name", names())
def test_generated_is_parsed(name: str, request: pytest.FixtureRequest) -> None:
    features = chatparsers.get_format(name).features
    if not features.tools:
        pytest.skip("the format has no tool calls")
    nightly = bool(request.config.getoption("--nightly", default=False))
    samples = 201 if nightly else 12
    shared = Path(str(request.getfixturevalue("shared_folder_or_none") or "."))
    path = shared / "tokenizers" / "qwen3.json.gz"
    vocabulary = real_vocabulary(path) if nightly and path.exists() else byte_vocabulary()
    plans = [("gbnf", byte_vocabulary()), ("lark", vocabulary), ("structural_tag", vocabulary)]
    chance = random.Random(name)
    failures: list[str] = []
    generated = 0
    base: dict[str, Any] = {"tools": TOOLS, "tool_choice": "required"}
    for dialect, tokens in plans:
        begin = walks(name, base, dialect, tokens)
        for index in range(samples // len(plans)):
            text = walk_bytes(begin(), closers(name), seed=hash_of(name, dialect, index))
            assert text is not None, f"{dialect} {index}: the walk came to no end"
            generated += 1
            failures += [f"{dialect} {index}: {text!r}: {wrong}" for wrong in check(name, base, text, chance)]
    unparsed = sum("not parsed" in failure for failure in failures)
    record(
        request,
        "generated",
        walks=generated,
        unparsed=unparsed,
        invalid=len(failures) - unparsed,
        format=name,
    )
    assert not failures, f"{len(failures)} of {generated} failed:\n" + "\n".join(failures[:5])


def hash_of(*parts: object) -> int:
    """A seed that is the same in every run."""
    return random.Random("/".join(map(str, parts))).getrandbits(32)
