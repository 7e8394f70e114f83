#!/bin/sh
# DuckDB 2.0.1, read_json: in one column, one text is read as day-month, the next as month-day.
#
# `01-02-2026` and `12-25-2026` in one column become dates. The second can only be month-day; the first is read
# as day-month all the same, 1 February. So a file whose author wrote month-day throughout comes out with most
# days right below 13 swapped. With slashes in place of hyphens the column stays text.
#
# Seen:
#   {"hyphens": ["2026-02-01", "2026-12-25"], "slashes": ["01/02/2026", "12/25/2026"], "first alone": ["2026-02-01"]}
#
# Who meets it: whoever reads logs of tool calls, which users fill with their own way to write a date.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/env"
"$dir/env/bin/python" -m pip install -q --disable-pip-version-check --no-deps \
  duckdb==2.0.1
cd "$dir"
"$dir/env/bin/python" - <<'PY'
import json
import sys

import duckdb


def read(*values):
    with open("rows.jsonl", "w") as file:
        file.writelines(json.dumps({"arguments": {"day": value}}) + "\n" for value in values)
    return [str(row[0]["day"]) for row in duckdb.sql("select arguments from read_json('rows.jsonl')").fetchall()]


seen = {
    "hyphens": read("01-02-2026", "12-25-2026"),
    "slashes": read("01/02/2026", "12/25/2026"),
    "first alone": read("01-02-2026"),
}
EXPECTED = {
    "hyphens": ["2026-02-01", "2026-12-25"],
    "slashes": ["01/02/2026", "12/25/2026"],
    "first alone": ["2026-02-01"],
}

print(json.dumps(seen, indent=1, ensure_ascii=False))
sys.exit(seen != EXPECTED)
PY
