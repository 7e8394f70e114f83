#!/bin/sh
# anthropic 2.14.0 (Python): of a tool's input that max_tokens cut, a text is left out and a number stays, cut.
#
# The accumulated `input` is a valid object in both cases. A cut text member vanishes whole, which a schema's
# `required` can catch; a cut number stays with the digits that had come, and nothing tells 12 from the 1250
# that the model was writing, but stop_reason. The JavaScript SDK (1.14.0) leaves both out.
#
# Seen:
#   {"text": {"to": "Ada"}, "number": {"to": "Ada", "amount": 12}, "stop_reason": "max_tokens"}
#
# Who meets it: agents that execute what `message.content` holds.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/env"
"$dir/env/bin/python" -m pip install -q --disable-pip-version-check --no-deps \
  annotated-types==0.8.0 anthropic==2.14.0 anyio==4.16.0 docstring_parser==0.18.0 h11==0.16.0 httpcore2==2.16.2 \
  httpx2==2.16.2 idna==3.20 jiter==0.19.0 opentelemetry-api==1.45.2 pydantic==2.14.4 pydantic_core==2.50.5 \
  sniffio==1.3.1 truststore==0.10.5 typing-inspection==0.4.5 typing_extensions==4.16.0
cd "$dir"
"$dir/env/bin/python" - <<'PY'
import json
import sys

import anthropic
import httpx2


def ask(*pieces):
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": []}
    message |= {"stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}
    block = {"type": "tool_use", "id": "t", "name": "pay", "input": {}}
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    events = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ]
    body = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    headers = {"content-type": "text/event-stream"}
    transport = httpx2.MockTransport(lambda request: httpx2.Response(200, text=body, headers=headers))
    client = anthropic.Anthropic(api_key="k", http_client=httpx2.Client(transport=transport), max_retries=0)
    request = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Pay Ada 1250"}]}
    with client.messages.stream(**request) as stream:
        return stream.get_final_message()


text, number = ask('{"to": "Ada", "note": "for the re'), ask('{"to": "Ada", "amount": 12')
seen = {"text": text.content[0].input, "number": number.content[0].input, "stop_reason": number.stop_reason}
EXPECTED = {"text": {"to": "Ada"}, "number": {"to": "Ada", "amount": 12}, "stop_reason": "max_tokens"}

print(json.dumps(seen, indent=1, ensure_ascii=False))
sys.exit(seen != EXPECTED)
PY
