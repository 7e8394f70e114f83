#!/bin/sh
# langchain-openai 1.7.4: the usage of a stream that reports it as it runs is added up.
#
# A server may send the usage so far with each chunk (vLLM's `continuous_usage_stats`); each is the total until
# then. The accumulator takes them for parts and adds: three prompt tokens are counted once for each report. The
# openai SDK (3.57.0), in the same environment, keeps the last.
#
# Seen:
#   {"langchain-openai": {"input": 9, "output": 6}, "openai": {"input": 3, "output": 3}}
#
# Who meets it: bills, quotas and limits of context that are drawn from usage_metadata; the error grows with the
# length of the answer.
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
import openai
from langchain_openai import ChatOpenAI

def chunk(delta, finish=None, **more):
    choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices, **more}


def answer(chunks):
    """A transport that answers each request with these chunks."""
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks] + ["data: [DONE]\n\n"]
    headers = {"content-type": "text/event-stream"}
    return httpx2.MockTransport(lambda request: httpx2.Response(200, text="".join(lines), headers=headers))


def usage(output):
    return {"prompt_tokens": 3, "completion_tokens": output, "total_tokens": 3 + output}


CHUNKS = [
    chunk({"role": "assistant", "content": "a"}, usage=usage(1)),
    chunk({"content": "b"}, usage=usage(2)),
    chunk({"content": "c"}, "stop", usage=usage(3)),
]
client = httpx2.Client(transport=answer(CHUNKS))
where = {"api_key": "k", "base_url": "http://127.0.0.1/v1", "http_client": client, "max_retries": 0}
whole = None
for piece in ChatOpenAI(model="m", stream_usage=True, **where).stream("?"):
    whole = piece if whole is None else whole + piece
with openai.OpenAI(**where).chat.completions.stream(model="m", messages=[{"role": "user", "content": "?"}]) as stream:
    sdk = stream.get_final_completion().usage
seen = {
    "langchain-openai": {
        "input": whole.usage_metadata["input_tokens"],
        "output": whole.usage_metadata["output_tokens"],
    },
    "openai": {"input": sdk.prompt_tokens, "output": sdk.completion_tokens},
}
EXPECTED = {"langchain-openai": {"input": 9, "output": 6}, "openai": {"input": 3, "output": 3}}

print(json.dumps(seen, indent=1, ensure_ascii=False))
sys.exit(seen != EXPECTED)
PY
