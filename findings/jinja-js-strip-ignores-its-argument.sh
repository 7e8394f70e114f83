#!/bin/sh
# @huggingface/jinja 0.5.11 (JavaScript): `lstrip('\n')` in a chat template takes away blanks too.
#
# In Jinja2 the methods strip, lstrip and rstrip take the characters to remove. The JavaScript renderer ignores them and
# removes all white space. Many templates cut the line breaks between a thought and an answer with `lstrip('\n')`, so an
# answer that begins with an indented line of code loses its first indentation, in silence, when the conversation is
# rendered for the next turn.
#
# Seen:
#   {"@huggingface/jinja": "[return x]", "Jinja2": "[    return x]"}
#
# Who meets it: chats in the browser and on node that apply a model's own chat template.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/env"
"$dir/env/bin/python" -m pip install -q --disable-pip-version-check --no-deps \
  jinja2==3.1.6 MarkupSafe==3.0.4
cd "$dir"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --save-exact \
  @huggingface/jinja@0.5.11
cat > run.mjs <<'JS'
import fs from "node:fs";
import { Template } from "@huggingface/jinja";

const { template, content } = JSON.parse(fs.readFileSync("case.json", "utf8"));
process.stdout.write(new Template(template).render({ content }));
JS
"$dir/env/bin/python" - <<'PY'
import json
import subprocess
import sys

import jinja2

TEMPLATE = r"[{{ content.split('</think>')[-1].lstrip('\n') }}]"
CONTENT = "<think>\nIndented, then.\n</think>\n\n    return x"
with open("case.json", "w") as file:
    json.dump({"template": TEMPLATE, "content": CONTENT}, file)
script = subprocess.run(["node", "run.mjs"], capture_output=True, text=True, check=True)
seen = {
    "@huggingface/jinja": script.stdout,
    "Jinja2": jinja2.Environment().from_string(TEMPLATE).render(content=CONTENT),
}
EXPECTED = {"@huggingface/jinja": "[return x]", "Jinja2": "[    return x]"}

print(json.dumps(seen, indent=1, ensure_ascii=False))
sys.exit(seen != EXPECTED)
PY
