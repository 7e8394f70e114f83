#!/bin/sh
# xgrammar 0.2.9, llguidance 1.9.1, outlines-core 0.2.14: const 1.0 is written 1 by two engines, 1.0 by the
# third, and each refuses the other's spelling.
#
# JSON Schema compares numbers by value, so both spellings are valid. xgrammar and llguidance force `1` where
# the author (a Python float, a Rust f64) wrote `1.0`; outlines-core forces `1.0`. A model trained on one
# spelling is masked off it, and a client that reads by type gets an integer or a float by the engine that ran.
# The same holds for members of an enum.
#
# Seen:
#   {"xgrammar": ["1"], "llguidance": ["1"], "outlines-core": ["1.0"]}
#
# Who meets it: tools with a version, a scale or a temperature as const or enum, served by engines that can be
# exchanged by a flag.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/env"
"$dir/env/bin/python" -m pip install -q --disable-pip-version-check --no-deps \
  xgrammar==0.2.9 apache-tvm-ffi==0.1.15.post2 numpy==2.4.6 pydantic==2.14.4 pydantic_core==2.50.5 \
  annotated-types==0.8.0 typing-inspection==0.4.5 typing_extensions==4.16.0 llguidance==1.9.1 outlines_core==0.2.14
here=$(cd "$(dirname "$0")" && pwd)
cd "$dir"
PYTHONPATH="$here" "$dir/env/bin/python" - <<'PY'
import json
import sys

import _no_torch  # noqa: F401
import xgrammar

tokens = [bytes([byte]) for byte in range(256)] + [b"</s>"]
info = xgrammar.TokenizerInfo(tokens, vocab_type=xgrammar.VocabType.RAW, stop_token_ids=[256])
compiler = xgrammar.GrammarCompiler(info)


def xgrammar_takes(schema, text):
    matcher = xgrammar.GrammarMatcher(compiler.compile_json_schema(json.dumps(schema)))
    return all(matcher.accept_token(byte) for byte in text.encode()) and matcher.accept_token(256)


import re

import llguidance
from outlines_core.json_schema import build_regex_from_schema

SCHEMA = {"const": 1.0}
tokenizer = llguidance.LLTokenizer("byte")
grammar = llguidance.LLMatcher.grammar_from_json_schema(json.dumps(SCHEMA))


def llguidance_takes(text):
    matcher = llguidance.LLMatcher(tokenizer, grammar, log_level=0)
    ids = tokenizer.tokenize_str(text)
    return matcher.try_consume_tokens(ids) == len(ids) and matcher.is_accepting()


pattern = re.compile(build_regex_from_schema(json.dumps(SCHEMA)))
spellings = ("1", "1.0")
seen = {
    "xgrammar": [text for text in spellings if xgrammar_takes(SCHEMA, text)],
    "llguidance": [text for text in spellings if llguidance_takes(text)],
    "outlines-core": [text for text in spellings if pattern.fullmatch(text)],
}
EXPECTED = {"xgrammar": ["1"], "llguidance": ["1"], "outlines-core": ["1.0"]}

print(json.dumps(seen, indent=1, ensure_ascii=False))
sys.exit(seen != EXPECTED)
PY
