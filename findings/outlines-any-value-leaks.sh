#!/bin/sh
# outlines-core 0.2.14: beside a member without a schema of its own, the whole answer may be `null`.
#
# `{}` means any value. Its alternatives are put into the object's expression without a group, so they compete
# with the object: the object's opening belongs to the first alternative only, its closing to the last. `null`
# and `12` are taken as whole answers, and `{"a": 12}` is refused.
#
# Seen:
#   {"null": true, "12": true, "{\"a\": true": true, "{\"a\": 12}": false, "{\"a\": null}": false}
#
# Who meets it: tools with a member of any type whose schema is written as `{}`, as zod does for `z.any()`.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/env"
"$dir/env/bin/python" -m pip install -q --disable-pip-version-check --no-deps \
  outlines_core==0.2.14
cd "$dir"
"$dir/env/bin/python" - <<'PY'
import json
import re
import sys

from outlines_core.json_schema import build_regex_from_schema

schema = {"type": "object", "properties": {"a": {}}, "required": ["a"]}
expression = re.compile(build_regex_from_schema(json.dumps(schema)))
TEXTS = ("null", "12", '{"a": true', '{"a": 12}', '{"a": null}')
seen = {text: bool(expression.fullmatch(text)) for text in TEXTS}
EXPECTED = {"null": True, "12": True, '{"a": true': True, '{"a": 12}': False, '{"a": null}': False}

print(json.dumps(seen, indent=1, ensure_ascii=False))
sys.exit(seen != EXPECTED)
PY
