#!/bin/sh
# openai 6.49.0 (JavaScript): of a member that the SDK does not know, the accumulated message holds the last
# piece only.
#
# Servers of open models stream thoughts as `reasoning_content` or `reasoning`. The accumulator of
# `chat.completions.stream` joins content, refusal and arguments; any other member is overwritten by each chunk.
# The Python SDK (3.57.0) joins unknown texts, so the same server looks right there.
#
# Seen:
#   {"reasoning_content": "tea.", "content": "Yes, please."}
#
# Who meets it: chat front ends in JavaScript that show or send back the thoughts of `finalChatCompletion()`.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --save-exact \
  openai@6.49.0
cat > run.mjs <<'JS'
import OpenAI from "openai";

const chunk = (delta, finish_reason = null) => ({
  id: "c", object: "chat.completion.chunk", created: 1, model: "m",
  choices: [{ index: 0, delta, finish_reason }],
});
const answer = (chunks) => async () =>
  new Response([...chunks.map((c) => `data: ${JSON.stringify(c)}\n\n`), "data: [DONE]\n\n"].join(""), {
    headers: { "content-type": "text/event-stream" },
  });

const chunks = [
  chunk({ role: "assistant", reasoning_content: "They offer " }),
  chunk({ reasoning_content: "me some " }),
  chunk({ reasoning_content: "tea." }),
  chunk({ content: "Yes, " }),
  chunk({ content: "please." }),
  chunk({}, "stop"),
];
const client = new OpenAI({ apiKey: "k", baseURL: "http://127.0.0.1/v1", fetch: answer(chunks), maxRetries: 0 });
const stream = client.chat.completions.stream({ model: "m", messages: [{ role: "user", content: "Tea?" }] });
const { message } = (await stream.finalChatCompletion()).choices[0];
const seen = { reasoning_content: message.reasoning_content, content: message.content };
const EXPECTED = { reasoning_content: "tea.", content: "Yes, please." };

console.log(JSON.stringify(seen, null, 1));
process.exitCode = JSON.stringify(seen) === JSON.stringify(EXPECTED) ? 0 : 1;
JS
node run.mjs
