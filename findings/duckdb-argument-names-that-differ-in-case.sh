#!/bin/sh
# DuckDB 2.0.1, read_json: rows whose objects have `City` in one and `city` in another cannot be read.
#
# Each row is valid and has each name once. The names of a struct are compared without regard to case, and the
# struct is that of all rows, so the whole file is an error. At the top level of a row the same two names are
# read.
#
# Seen:
#   {"inside": "Duplicate name \"city\" in struct auto-detected in JSON", "top level": "2 rows"}
#
# Who meets it: logs of calls to tools of several authors: one bad pair of tools stops the file.
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


def read(*rows):
    with open("rows.jsonl", "w") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    try:
        return f"{len(duckdb.sql('select * from read_json(' + repr('rows.jsonl') + ')').fetchall())} rows"
    except duckdb.Error as error:
        return str(error).split("Error: ")[-1].split(",")[0]


seen = {
    "inside": read({"arguments": {"City": "Oslo"}}, {"arguments": {"city": "Oslo"}}),
    "top level": read({"City": "Oslo"}, {"city": "Oslo"}),
}
EXPECTED = {"inside": 'Duplicate name "city" in struct auto-detected in JSON', "top level": "2 rows"}

print(json.dumps(seen, indent=1, ensure_ascii=False))
sys.exit(seen != EXPECTED)
PY
