#!/bin/sh
# langchain-openai 1.7.4: a call that max_tokens cut within its arguments is listed as a valid call with a
# shortened value.
#
# The streamed message mends open JSON: quotes and braces are closed. finish_reason is `length`, but
# `tool_calls` has the call and `invalid_tool_calls` is empty, so a graph executes it. The city is not the one
# the model was writing. The openai SDK (3.57.0) beneath raises LengthFinishReasonError in its own accumulator.
#
# Seen:
#   {"tool_calls": [{"name": "delete_file", "args": {"path": "/srv/dat"}}], "invalid_tool_calls": 0, "finish_reason": "length"}
#
# Who meets it: agents with a limit of tokens and tools that act.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/env"
"$dir/env/bin/python" -m pip install -q --disable-pip-version-check --no-deps \
  PyYAML==6.0.4 annotated-types==0.8.0 anyio==4.16.0 certifi==2026.10.19.post1 charset-normalizer==3.5.3 \
  distro==1.9.0 h11==0.16.0 httpcore2==2.16.2 httpcore==1.0.9 httpx2==2.16.2 httpx==0.28.1 idna==3.20 jiter==0.19.0 \
  jsonpatch==1.48 jsonpointer==3.12 langchain-core==1.8.3 langchain-openai==1.7.4 langchain-protocol==0.0.20 \
  langsmith==0.15.1 openai==3.57.0 orjson==3.13.0 packaging==26.4 pydantic==2.14.4 pydantic_core==2.50.5 \
  regex==2026.11.19 requests-toolbelt==1.0.0 requests==2.34.2 sniffio==1.3.1 tenacity==9.2.1 tiktoken==0.14.0 \
  truststore==0.10.5 typing-inspection==0.4.5 typing_extensions==4.16.0 urllib3==2.8.0 uuid_utils==0.19.0 \
  websockets==17.4 xxhash==4.1.0 zstandard==0.25.0
cd "$dir"
"$dir/env/bin/python" - <<'PY'
import json
import sys

import httpx2
from langchain_openai import ChatOpenAI

def chunk(delta, finish=None, **more):
    choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices, **more}


def answer(chunks):
    """A transport that answers each request with these chunks."""
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks] + ["data: [DONE]\n\n"]
    headers = {"content-type": "text/event-stream"}
    return httpx2.MockTransport(lambda request: httpx2.Response(200, text="".join(lines), headers=headers))


START = {"index": 0, "id": "a", "type": "function", "function": {"name": "delete_file", "arguments": ""}}
CHUNKS = [
    chunk({"role": "assistant", "tool_calls": [START]}),
    chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"path": "/srv/dat'}}]}),
    chunk({}, "length"),
]
client = httpx2.Client(transport=answer(CHUNKS))
model = ChatOpenAI(model="m", api_key="k", base_url="http://127.0.0.1/v1", http_client=client, max_retries=0)
whole = None
for piece in model.stream("Remove the database of last year"):
    whole = piece if whole is None else whole + piece
seen = {
    "tool_calls": [{"name": call["name"], "args": call["args"]} for call in whole.tool_calls],
    "invalid_tool_calls": len(whole.invalid_tool_calls),
    "finish_reason": whole.response_metadata["finish_reason"],
}
EXPECTED = {
    "tool_calls": [{"name": "delete_file", "args": {"path": "/srv/dat"}}],
    "invalid_tool_calls": 0,
    "finish_reason": "length",
}

print(json.dumps(seen, indent=1, ensure_ascii=False))
sys.exit(seen != EXPECTED)
PY
