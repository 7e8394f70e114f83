#!/bin/sh
# outlines-core 0.2.14 and xgrammar 0.2.9: of a pattern and a maxLength on one string, one engine drops the
# pattern, the other the length.
#
# The keywords apply together. outlines-core keeps the length and lets any characters through, in silence;
# xgrammar keeps the pattern at any length (it prints a warning). So the same schema excludes different texts by
# the engine behind the flag, and neither gives what was asked.
#
# Seen:
#   {"outlines-core": ["ABC"], "xgrammar": ["abcd"]}   (the texts that break the schema and are taken)
#
# Who meets it: everybody whose schema comes from pydantic's `Field(pattern=…, max_length=…)` or a form builder.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/env"
"$dir/env/bin/python" -m pip install -q --disable-pip-version-check --no-deps \
  xgrammar==0.2.9 apache-tvm-ffi==0.1.15.post2 numpy==2.4.6 pydantic==2.14.4 pydantic_core==2.50.5 \
  annotated-types==0.8.0 typing-inspection==0.4.5 typing_extensions==4.16.0 outlines_core==0.2.14
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

from outlines_core.json_schema import build_regex_from_schema

SCHEMA = {"type": "string", "pattern": "^[a-z]+$", "maxLength": 3}
expression = re.compile(build_regex_from_schema(json.dumps(SCHEMA)))
INVALID = ("ABC", "abcd", "ABCD")
seen = {
    "outlines-core": [text for text in INVALID if expression.fullmatch(json.dumps(text))],
    "xgrammar": [text for text in INVALID if xgrammar_takes(SCHEMA, json.dumps(text))],
}
EXPECTED = {"outlines-core": ["ABC"], "xgrammar": ["abcd"]}

print(json.dumps(seen, indent=1, ensure_ascii=False))
sys.exit(seen != EXPECTED)
PY
