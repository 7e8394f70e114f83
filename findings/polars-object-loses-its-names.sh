#!/bin/sh
# Polars 2.1.0, from_dicts: an object beside a text in one member of a list's objects becomes a text without
# names, `{1,"q"}`.
#
# Both values are valid, and a column must have one type. read_ndjson of the same rows writes the object as
# JSON. from_dicts writes its values only, in braces: the names of the arguments are gone, in silence, and the
# text is of no format that can be read back.
#
# Seen:
#   {"from_dicts": ["{1,\"q\"}", "s"], "read_ndjson": ["{\"a\": 1, \"b\": \"q\"}", "s"]}
#
# Who meets it: rows of calls where one tool's argument is an object and another's of the same name is text, or
# where some arguments are JSON text.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/env"
"$dir/env/bin/python" -m pip install -q --disable-pip-version-check --no-deps \
  polars-runtime-32==2.1.0 polars==2.1.0
cd "$dir"
"$dir/env/bin/python" - <<'PY'
import io
import json
import sys

import polars

rows = [{"calls": [{"x": {"a": 1, "b": "q"}}]}, {"calls": [{"x": "s"}]}]
lines = "".join(json.dumps(row) + "\n" for row in rows)


def held(frame):
    return [row["calls"][0]["x"] for row in frame.to_dicts()]


seen = {
    "from_dicts": held(polars.from_dicts(rows)),
    "read_ndjson": held(polars.read_ndjson(io.BytesIO(lines.encode()))),
}
EXPECTED = {"from_dicts": ['{1,"q"}', "s"], "read_ndjson": ['{"a": 1, "b": "q"}', "s"]}

print(json.dumps(seen, indent=1, ensure_ascii=False))
sys.exit(seen != EXPECTED)
PY
