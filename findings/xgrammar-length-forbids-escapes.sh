#!/bin/sh
# xgrammar 0.2.9: a string with minLength or maxLength cannot hold a line break, a quotation mark or a
# backslash.
#
# JSON writes these characters with an escape. A string without bounds takes escapes; as soon as the schema
# bounds its length, be it with minLength 1 alone, every escape is refused, so the model cannot write a second
# line, a quoted word or a Windows path. The characters are valid and within the bound. Nothing is warned.
#
# Seen:
#   {"no bound": true, "minLength 1": false, "maxLength 500": false, "same text without escape": true}
#
# Who meets it: servers that constrain tool calls with xgrammar, where a tool has `content: {minLength: 1}` or a
# bounded `query`: file writers and code tools get one line, without quotes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/env"
"$dir/env/bin/python" -m pip install -q --disable-pip-version-check --no-deps \
  xgrammar==0.2.9 apache-tvm-ffi==0.1.15.post2 numpy==2.4.6 pydantic==2.14.4 pydantic_core==2.50.5 \
  annotated-types==0.8.0 typing-inspection==0.4.5 typing_extensions==4.16.0
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


TEXT = json.dumps('print("hi")\n')
seen = {
    "no bound": xgrammar_takes({"type": "string"}, TEXT),
    "minLength 1": xgrammar_takes({"type": "string", "minLength": 1}, TEXT),
    "maxLength 500": xgrammar_takes({"type": "string", "maxLength": 500}, TEXT),
    "same text without escape": xgrammar_takes({"type": "string", "minLength": 1, "maxLength": 500}, '"print(hi)"'),
}
EXPECTED = {"no bound": True, "minLength 1": False, "maxLength 500": False, "same text without escape": True}

print(json.dumps(seen, indent=1, ensure_ascii=False))
sys.exit(seen != EXPECTED)
PY
