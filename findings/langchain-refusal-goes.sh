#!/bin/sh
# langchain-openai 1.7.4: a streamed refusal is an empty message that ended well.
#
# OpenAI's chunks carry a refusal in `delta.refusal`. In a stream LangChain keeps it nowhere: content is empty,
# additional_kwargs has nothing, finish_reason is `stop`. Not streamed, the same refusal is in
# additional_kwargs.
#
# Seen:
#   {"stream": {"content": "", "refusal": null, "finish_reason": "stop"},
#    "invoke": {"content": "", "refusal": "I cannot help.", "finish_reason": "stop"}}
#
# Who meets it: agents that show what they got: the user sees an empty answer, and a retry loop begins.
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


CHUNKS = [
    chunk({"role": "assistant", "content": None}),
    chunk({"refusal": "I cannot "}),
    chunk({"refusal": "help."}),
    chunk({}, "stop"),
]
MESSAGE = {"role": "assistant", "content": None, "refusal": "I cannot help."}
WHOLE = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
WHOLE["choices"] = [{"index": 0, "message": MESSAGE, "finish_reason": "stop"}]


def ask(transport):
    client = httpx2.Client(transport=transport)
    return ChatOpenAI(model="m", api_key="k", base_url="http://127.0.0.1/v1", http_client=client, max_retries=0)


def held(message):
    refusal = message.additional_kwargs.get("refusal")
    finish = message.response_metadata["finish_reason"]
    return {"content": message.content, "refusal": refusal, "finish_reason": finish}


streamed = None
for piece in ask(answer(CHUNKS)).stream("?"):
    streamed = piece if streamed is None else streamed + piece
invoked = ask(httpx2.MockTransport(lambda request: httpx2.Response(200, json=WHOLE))).invoke("?")
seen = {"stream": held(streamed), "invoke": held(invoked)}
EXPECTED = {
    "stream": {"content": "", "refusal": None, "finish_reason": "stop"},
    "invoke": {"content": "", "refusal": "I cannot help.", "finish_reason": "stop"},
}

print(json.dumps(seen, indent=1, ensure_ascii=False))
sys.exit(seen != EXPECTED)
PY
