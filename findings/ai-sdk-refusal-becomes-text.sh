#!/bin/sh
# @ai-sdk/openai-compatible 2.0.92 with ai 6.0.326: a refusal is given as the answer's text.
#
# `delta.refusal` is a member of its own, so that a program can tell a refusal from an answer. streamText gives
# its pieces as text-delta parts; only finishReason, changed from `stop` to `content-filter`, differs. What is
# kept as the assistant's text, and sent back with the next request, is a message that the model never wrote as
# content.
#
# Seen:
#   {"text": "I cannot help.", "finishReason": "content-filter"}
#
# Who meets it: applications that validate or store `result.text`.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --save-exact \
  ai@6.0.326 @ai-sdk/openai-compatible@2.0.92 zod@4.1.12
cat > run.mjs <<'JS'
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { streamText } from "ai";

const chunk = (delta, finish_reason = null) => ({
  id: "c", object: "chat.completion.chunk", created: 1, model: "m",
  choices: [{ index: 0, delta, finish_reason }],
});
const answer = (chunks) => async () =>
  new Response([...chunks.map((c) => `data: ${JSON.stringify(c)}\n\n`), "data: [DONE]\n\n"].join(""), {
    headers: { "content-type": "text/event-stream" },
  });

const chunks = [
  chunk({ role: "assistant" }),
  chunk({ refusal: "I cannot " }),
  chunk({ refusal: "help." }),
  chunk({}, "stop"),
];
const provider = createOpenAICompatible({ name: "x", baseURL: "http://127.0.0.1/v1", apiKey: "k", fetch: answer(chunks) });
const result = streamText({ model: provider("m"), prompt: "?", maxRetries: 0 });
const seen = { text: await result.text, finishReason: await result.finishReason };
const EXPECTED = { text: "I cannot help.", finishReason: "content-filter" };

console.log(JSON.stringify(seen, null, 1));
process.exitCode = JSON.stringify(seen) === JSON.stringify(EXPECTED) ? 0 : 1;
JS
node run.mjs
