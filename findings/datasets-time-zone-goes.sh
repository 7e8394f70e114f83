#!/bin/sh
# datasets 5.2.0, load_dataset("json"): whether an argument is text or a datetime without its zone depends on
# the other rows.
#
# Text like "2026-01-02T03:04:05+02:00" becomes a naive datetime in UTC if every row of the column reads as a
# date; one row "soon" and all of them stay text. A day becomes midnight. A template then prints `2026-01-02
# 01:04:05`, a text that no row holds, and the offset cannot be had back. (pandas and Polars 2.1.0 keep the text
# of the same file.)
#
# Seen:
#   {"zone": ["datetime 2026-01-02T01:04:05 zone None"], "day": ["datetime 2026-01-02T00:00:00 zone None"],
#    "with another word": ["2026-01-02T03:04:05+02:00", "soon"], "clock": ["10:00"]}
#
# Who meets it: calendar tools: a subset of a file is read with other types than the whole.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/env"
"$dir/env/bin/python" -m pip install -q --disable-pip-version-check --no-deps \
  PyYAML==6.0.4 anyio==4.16.0 click==8.5.1 datasets==5.2.0 dill==0.4.1 filelock==4.3.1 fsspec==2026.9.0 h11==0.16.0 \
  hf-xet==1.8.0 httpcore2==2.16.2 httpx2==2.16.2 huggingface_hub==2.4.0 idna==3.20 multiprocess==0.70.19 \
  numpy==2.4.6 packaging==26.4 pandas==3.1.1 pyarrow==26.0.1 python-dateutil==4.0.0 tqdm==4.70.1 truststore==0.10.5 \
  typing_extensions==4.16.0 tzdata==2026.6 xxhash==4.1.0
cd "$dir"
"$dir/env/bin/python" - <<'PY'
import json
import sys
import tempfile

import datasets

datasets.disable_progress_bars()


def read(*values):
    folder = tempfile.mkdtemp(dir=".")
    with open(f"{folder}/rows.jsonl", "w") as file:
        file.writelines(json.dumps({"arguments": {"at": value}}) + "\n" for value in values)
    rows = datasets.load_dataset("json", data_files=f"{folder}/rows.jsonl", split="train", cache_dir=folder)
    held = [row["arguments"]["at"] for row in rows]
    return [v if isinstance(v, str) else f"{type(v).__name__} {v.isoformat()} zone {v.tzinfo}" for v in held]


seen = {
    "zone": read("2026-01-02T03:04:05+02:00"),
    "day": read("2026-01-02"),
    "with another word": read("2026-01-02T03:04:05+02:00", "soon"),
    "clock": read("10:00"),
}
EXPECTED = {
    "zone": ["datetime 2026-01-02T01:04:05 zone None"],
    "day": ["datetime 2026-01-02T00:00:00 zone None"],
    "with another word": ["2026-01-02T03:04:05+02:00", "soon"],
    "clock": ["10:00"],
}

print(json.dumps(seen, indent=1, ensure_ascii=False))
sys.exit(seen != EXPECTED)
PY
