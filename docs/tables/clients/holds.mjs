// `node holds.mjs PORT`: what a JavaScript client makes of each shape of shapes.json, a JSON line each.
import fs from "node:fs";
import Anthropic from "@anthropic-ai/sdk";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { ChatOpenAI } from "@langchain/openai";
import { jsonSchema, streamText, tool } from "ai";
import OpenAI from "openai";

const shapes = JSON.parse(fs.readFileSync(process.env.SHAPES ?? new URL("shapes.json", import.meta.url), "utf8"));
const [port] = process.argv.slice(2);
const parameters = { type: "object", properties: {}, additionalProperties: true };
const names = ["get_weather", "get_time", "ping", "add", "get_order", "set", "run_sql"];
const chatTools = names.map((name) => ({ type: "function", function: { name, parameters } }));
const messageTools = names.map((name) => ({ name, input_schema: parameters }));
const ask = [{ role: "user", content: "?" }];
const text = (value) => (typeof value === "string" ? value : JSON.stringify(value));

async function openaiChat(url) {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "k", maxRetries: 0 });
  const stream = client.chat.completions.stream({ model: "m", messages: ask, tools: chatTools });
  const done = await stream.finalChatCompletion();
  const { message, finish_reason: finish } = done.choices[0];
  const calls = (message.tool_calls ?? []).map((call) =>
    call.type === "function" ? [call.function.name, call.function.arguments] : [call.custom.name, call.custom.input],
  );
  return {
    content: message.content ?? "",
    reasoning: message.reasoning_content ?? message.reasoning ?? "",
    calls,
    finish,
    usage: done.usage ? [done.usage.prompt_tokens, done.usage.completion_tokens] : null,
    refusal: message.refusal ?? "",
  };
}

async function langchainChat(url) {
  const model = new ChatOpenAI({ model: "m", apiKey: "k", maxRetries: 0, configuration: { baseURL: `${url}/v1` } });
  let whole;
  for await (const chunk of await model.bindTools(chatTools).stream("?")) whole = whole ? whole.concat(chunk) : chunk;
  const usage = whole.usage_metadata;
  return {
    content: whole.content,
    reasoning: whole.additional_kwargs.reasoning_content ?? whole.additional_kwargs.reasoning ?? "",
    calls: [...whole.tool_calls, ...whole.invalid_tool_calls].map((call) => [call.name, text(call.args)]),
    finish: whole.response_metadata.finish_reason,
    usage: usage ? [usage.input_tokens, usage.output_tokens] : null,
    refusal: whole.additional_kwargs.refusal ?? "",
    invalid: whole.invalid_tool_calls.length,
  };
}

async function vercel(model) {
  const tools = Object.fromEntries(names.map((name) => [name, tool({ inputSchema: jsonSchema(parameters) })]));
  const result = streamText({ model, prompt: "?", tools, maxRetries: 0, onError() {} });
  const held = { content: "", reasoning: "", calls: [], finish: null, usage: null, refusal: "", invalid: 0 };
  for await (const part of result.fullStream) {
    if (part.type === "text-delta") held.content += part.text;
    if (part.type === "reasoning-delta") held.reasoning += part.text;
    if (part.type === "tool-call") {
      held.calls.push([part.toolName, text(part.input)]);
      if (part.invalid) held.invalid += 1;
    }
    if (part.type === "finish") {
      held.finish = part.finishReason;
      held.usage = [part.totalUsage.inputTokens, part.totalUsage.outputTokens];
    }
    if (part.type === "error") throw part.error;
  }
  return held;
}

async function anthropicMessages(url) {
  const client = new Anthropic({ baseURL: url, apiKey: "k", maxRetries: 0 });
  const stream = client.messages.stream({ model: "m", max_tokens: 50, messages: ask, tools: messageTools });
  const { content, stop_reason: finish } = await stream.finalMessage();
  const of = (type) => content.filter((block) => block.type === type);
  return {
    content: of("text").map((block) => block.text).join(""),
    reasoning: of("thinking").map((block) => block.thinking).join(""),
    calls: of("tool_use").map((block) => [block.name, text(block.input)]),
    finish,
  };
}

const clients = {
  "openai (JavaScript)": ["chat", openaiChat],
  "LangChain (JavaScript)": ["chat", langchainChat],
  "AI SDK, openai": ["chat", (url) => vercel(createOpenAI({ baseURL: `${url}/v1`, apiKey: "k" }).chat("m"))],
  "AI SDK, openai-compatible": [
    "chat",
    (url) => vercel(createOpenAICompatible({ name: "x", baseURL: `${url}/v1`, apiKey: "k", includeUsage: true })("m")),
  ],
  "anthropic (JavaScript)": ["messages", anthropicMessages],
  "AI SDK, anthropic": ["messages", (url) => vercel(createAnthropic({ baseURL: `${url}/v1`, apiKey: "k" })("m"))],
};

for (const [client, [api, run]] of Object.entries(clients)) {
  for (const [shape, { api: spoken }] of Object.entries(shapes)) {
    if (spoken !== api) continue;
    let held;
    try {
      held = await run(`http://127.0.0.1:${port}/${shape}`);
    } catch (error) {
      held = { raises: `${error.constructor.name}: ${String(error.message).replace(/\s+/g, " ").slice(0, 160)}` };
    }
    console.log(JSON.stringify({ client, shape, held }));
  }
}
