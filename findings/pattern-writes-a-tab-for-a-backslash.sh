#!/bin/sh
# xgrammar 0.2.9 and outlines-core 0.2.14: a pattern with a backslash makes the model write another character.
#
# A pattern speaks of the value. The two engines apply it to the JSON text, where a backslash begins an escape.
# So `^[A-Z]:\\[a-z]+$`, a drive and a folder, admits only the text "C:\tmp", whose value has a tab and no
# backslash and breaks the pattern; the right text "C:\\tmp" is refused. llguidance 1.9.1 takes the right one.
#
# Seen:
#   {"xgrammar": ["C:\u0009mp"], "outlines-core": ["C:\u0009mp"], "llguidance": ["C:\\tmp"]}   (the values that can be written)
#
# Who meets it: tools that take Windows folders, regular expressions or LaTeX and say so by a pattern.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/env"
"$dir/env/bin/python" -m pip install -q --disable-pip-version-check --no-deps \
  xgrammar==0.2.9 apache-tvm-ffi==0.1.15.post2 numpy==2.4.6 pydantic==2.14.4 pydantic_core==2.50.5 \
  annotated-types==0.8.0 typing-inspection==0.4.5 typing_extensions==4.16.0 outlines_core==0.2.14 llguidance==1.9.1
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

SCHEMA = {"type": "string", "pattern": r"^[A-Z]:\\[a-z]+$"}
expression = re.compile(build_regex_from_schema(json.dumps(SCHEMA)))
tokenizer = llguidance.LLTokenizer("byte")
grammar = llguidance.LLMatcher.grammar_from_json_schema(json.dumps(SCHEMA))


def llguidance_takes(text):
    matcher = llguidance.LLMatcher(tokenizer, grammar, log_level=0)
    ids = tokenizer.tokenize_str(text)
    return matcher.try_consume_tokens(ids) == len(ids) and matcher.is_accepting()


TEXTS = (r'"C:\tmp"', r'"C:\\tmp"')
seen = {
    "xgrammar": [json.loads(text) for text in TEXTS if xgrammar_takes(SCHEMA, text)],
    "outlines-core": [json.loads(text) for text in TEXTS if expression.fullmatch(text)],
    "llguidance": [json.loads(text) for text in TEXTS if llguidance_takes(text)],
}
EXPECTED = {"xgrammar": ["C:\tmp"], "outlines-core": ["C:\tmp"], "llguidance": ["C:\\tmp"]}

print(json.dumps(seen, indent=1, ensure_ascii=False))
sys.exit(seen != EXPECTED)
PY
