#!/bin/sh
# DuckDB 2.0.1: JSON that is read and copied out as JSON has other texts: clock times gain seconds, times lose
# their offset.
#
# read_json makes "9:30" a TIME and a text with an offset a TIMESTAMP WITH TIME ZONE; COPY to JSON writes them
# back as texts in DuckDB's own form. No column was asked to be typed. A day or an identifier survives, so a
# look at a few rows shows nothing.
#
# Seen:
#   {"9:30": "09:30:00", "2026-01-02T03:04:05+00:00": "2026-01-02 03:04:05+00", "2026-01-02": "2026-01-02"}
#
# Who meets it: filters of training rows by SQL: the arguments that come out are not those that the model wrote.
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

duckdb.sql("set timezone = 'UTC'")


def through(value):
    with open("rows.jsonl", "w") as file:
        file.write(json.dumps({"arguments": {"at": value}}) + "\n")
    duckdb.sql("copy (select * from read_json('rows.jsonl')) to 'out.jsonl' (format json)")
    with open("out.jsonl") as file:
        return json.loads(file.readline())["arguments"]["at"]


seen = {value: through(value) for value in ("9:30", "2026-01-02T03:04:05+00:00", "2026-01-02")}
EXPECTED = {
    "9:30": "09:30:00",
    "2026-01-02T03:04:05+00:00": "2026-01-02 03:04:05+00",
    "2026-01-02": "2026-01-02",
}

print(json.dumps(seen, indent=1, ensure_ascii=False))
sys.exit(seen != EXPECTED)
PY
