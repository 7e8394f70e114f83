#!/bin/sh
# pydantic-ai-slim 2.68.0: a streamed call of a custom tool leaves a response without parts that ended with
# tool_call.
#
# OpenAI's chat API has tools of the type custom, whose calls carry free text. In a stream the call is dropped:
# no part, no error, and finish_reason still says that a tool was called.
#
# Seen:
#   {"parts": [], "finish_reason": "tool_call"}
#
# Who meets it: agents moved to custom tools (SQL, patches): the loop goes round with nothing to do.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/env"
"$dir/env/bin/python" -m pip install -q --disable-pip-version-check --no-deps \
  annotated-types==0.8.0 anyio==4.16.0 certifi==2026.10.19.post1 charset-normalizer==3.5.3 genai-prices==0.2.3 \
  griffelib==2.4.1 h11==0.16.0 httpcore2==2.16.2 httpx2==2.16.2 idna==3.20 jiter==0.19.0 logfire-api==5.6.0 \
  openai==3.57.0 opentelemetry-api==1.45.2 pydantic-ai-slim==2.68.0 pydantic-graph==2.68.0 pydantic==2.14.4 \
  pydantic_core==2.50.5 regex==2026.11.19 requests==2.34.2 sniffio==1.3.1 tiktoken==0.14.0 truststore==0.10.5 \
  typing-inspection==0.4.5 typing_extensions==4.16.0 urllib3==2.8.0
cd "$dir"
"$dir/env/bin/python" - <<'PY'
import asyncio
import json
import sys

import httpx2
from openai import AsyncOpenAI
from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import ModelRequest
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

def chunk(delta, finish=None, **more):
    choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices, **more}


def answer(chunks):
    """A transport that answers each request with these chunks."""
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks] + ["data: [DONE]\n\n"]
    headers = {"content-type": "text/event-stream"}
    return httpx2.MockTransport(lambda request: httpx2.Response(200, text="".join(lines), headers=headers))


START = {"index": 0, "id": "a", "type": "custom", "custom": {"name": "run_sql", "input": ""}}
CHUNKS = [
    chunk({"role": "assistant", "tool_calls": [START]}),
    chunk({"tool_calls": [{"index": 0, "custom": {"input": "SELECT 1"}}]}),
    chunk({}, "tool_calls"),
]
http = httpx2.AsyncClient(transport=answer(CHUNKS))
client = AsyncOpenAI(api_key="k", base_url="http://127.0.0.1/v1", http_client=http, max_retries=0)
model = OpenAIChatModel("m", provider=OpenAIProvider(openai_client=client))


async def ask():
    async with model_request_stream(model, [ModelRequest.user_text_prompt("?")]) as stream:
        async for _ in stream:
            pass
        return stream.get()


response = asyncio.run(ask())
seen = {"parts": [part.part_kind for part in response.parts], "finish_reason": response.finish_reason}
EXPECTED = {"parts": [], "finish_reason": "tool_call"}

print(json.dumps(seen, indent=1, ensure_ascii=False))
sys.exit(seen != EXPECTED)
PY
