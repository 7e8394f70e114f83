#!/bin/sh
# datasets 5.2.0, load_dataset("json"): text that reads as JSON is decoded, once another row has another type in
# its place.
#
# A column of mixed types becomes `Json(decode=True)`. Its text is stored as it is and decoded when it is read,
# so the text "5" comes back as the integer 5, "null" as None, "true" as True; arguments given as JSON text come
# back as an object. The same row alone keeps its text. Nothing is said, and `features` names the column Json,
# not what each row held.
#
# Seen:
#   {"alone": ["5"], "beside a number": [5, 1], "null": [null, 1], "true": [true, 1], "arguments as text": [{"x": 1}, {"x": 1}]}
#
# Who meets it: sets of tool calls: one tool's `id` is a number, another's is text of digits; the trainer then
# renders 5 where the model wrote "5".
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
        file.writelines(json.dumps({"arguments": value}) + "\n" for value in values)
    rows = datasets.load_dataset("json", data_files=f"{folder}/rows.jsonl", split="train", cache_dir=folder)
    return [row["arguments"] for row in rows]


def member(*values):
    return [value["x"] for value in read(*({"x": value} for value in values))]


seen = {
    "alone": member("5"),
    "beside a number": member("5", 1),
    "null": member("null", 1),
    "true": member("true", 1),
    "arguments as text": read('{"x": 1}', {"x": 1}),
}
EXPECTED = {
    "alone": ["5"],
    "beside a number": [5, 1],
    "null": [None, 1],
    "true": [True, 1],
    "arguments as text": [{"x": 1}, {"x": 1}],
}

print(json.dumps(seen, indent=1, ensure_ascii=False))
sys.exit(seen != EXPECTED)
PY
