#!/bin/sh
# outlines-core 0.2.14: a pattern of bare alternatives gives strings with only one quotation mark.
#
# `^yes|no$` and `cat|dog` are put between the quotation marks without a group, so the regular expression reads:
# a quotation mark and `cat`, or `dog` and a quotation mark. The valid answers are refused, and each text that
# is taken is not JSON. With a group the same pattern works. No error is raised.
#
# Seen:
#   {"cat|dog": ["\"cat", "dog\""], "^yes|no$": ["\"yes", "no\""], "^(yes|no)$": ["\"yes\"", "\"no\""]}
#
# Who meets it: authors of tools who list words in a pattern; the answer ends in a parse error that looks like
# the model's.
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

TEXTS = {"cat|dog": ("cat", "dog"), "^yes|no$": ("yes", "no"), "^(yes|no)$": ("yes", "no")}
seen = {}
for pattern, words in TEXTS.items():
    expression = re.compile(build_regex_from_schema(json.dumps({"type": "string", "pattern": pattern})))
    texts = [text for word in words for text in (f'"{word}"', f'"{word}', f'{word}"')]
    seen[pattern] = [text for text in texts if expression.fullmatch(text)]
EXPECTED = {"cat|dog": ['"cat', 'dog"'], "^yes|no$": ['"yes', 'no"'], "^(yes|no)$": ['"yes"', '"no"']}

print(json.dumps(seen, indent=1, ensure_ascii=False))
sys.exit(seen != EXPECTED)
PY
