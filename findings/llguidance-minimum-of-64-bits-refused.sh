#!/bin/sh
# llguidance 1.9.1: an integer whose minimum is the least of 64 bits is refused; the greatest, and even more, is
# taken as a maximum.
#
# -9223372036854775808 is the least value of a signed integer of 64 bits. As a minimum it is an error, so the request
# fails, also with the nearest numbers: all that a double rounds to -2**63. A minimum 1,024 above is compiled. As a
# maximum 2**63 - 1 and 2**64 are compiled.
#
# Seen:
#   {"minimum -2**63": "Failed to generate regex for integer range",
#    "minimum -2**63 + 1": "Failed to generate regex for integer range", "minimum -2**63 + 1024": "taken",
#    "maximum 2**63 - 1": "taken", "maximum 2**64": "taken"}
#
# Who meets it: tools whose schemas come from typed languages or protocol buffers; the error reads as if the
# range were empty.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/env"
"$dir/env/bin/python" -m pip install -q --disable-pip-version-check --no-deps \
  llguidance==1.9.1
cd "$dir"
"$dir/env/bin/python" - <<'PY'
import json
import sys

import llguidance

tokenizer = llguidance.LLTokenizer("byte")


def verdict(**bounds):
    schema = {"type": "integer", **bounds}
    grammar = llguidance.LLMatcher.grammar_from_json_schema(json.dumps(schema))
    matcher = llguidance.LLMatcher(tokenizer, grammar, log_level=0)
    return matcher.get_error().split(":")[0] if matcher.is_error() else "taken"


ERROR = "Failed to generate regex for integer range"
seen = {
    "minimum -2**63": verdict(minimum=-(2**63)),
    "minimum -2**63 + 1": verdict(minimum=-(2**63) + 1),
    "minimum -2**63 + 1024": verdict(minimum=-(2**63) + 1024),
    "maximum 2**63 - 1": verdict(maximum=2**63 - 1),
    "maximum 2**64": verdict(maximum=2**64),
}
EXPECTED = dict(zip(seen, (ERROR, ERROR, "taken", "taken", "taken")))

print(json.dumps(seen, indent=1, ensure_ascii=False))
sys.exit(seen != EXPECTED)
PY
