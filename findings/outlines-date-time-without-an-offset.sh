#!/bin/sh
# outlines-core 0.2.14: format date-time refuses every offset but Z, takes no offset at all, and knows fractions
# of three digits only.
#
# RFC 3339, which the format names, demands an offset, `Z` or `+02:00`, and allows any number of digits in a
# fraction. So Python's own `datetime.isoformat()` of an aware time cannot be written, and a local time without
# an offset, which is invalid, can. xgrammar 0.2.9 and llguidance 1.9.1 go by the RFC.
#
# Seen:
#   {"2026-01-02T03:04:05Z": true, "2026-01-02T03:04:05+02:00": false, "2026-01-02T03:04:05.123456Z": false,
#    "2026-01-02T03:04:05": true}
#
# Who meets it: calendars and schedulers outside UTC: the model is made to drop the offset, and the time is read
# as another one.
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

expression = re.compile(build_regex_from_schema(json.dumps({"type": "string", "format": "date-time"})))
times = ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05+02:00", "2026-01-02T03:04:05.123456Z", "2026-01-02T03:04:05")
seen = {time: bool(expression.fullmatch(json.dumps(time))) for time in times}
EXPECTED = dict(zip(times, (True, False, False, True)))

print(json.dumps(seen, indent=1, ensure_ascii=False))
sys.exit(seen != EXPECTED)
PY
