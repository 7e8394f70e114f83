// One chat with the model behind this server. All that comes from it is put in as text, never as HTML.
"use strict";
const byId = (id) => document.getElementById(id);
let messages = [];
let running = null;

function made(parent, tag, name, text) {
  const node = document.createElement(tag);
  if (name) node.className = name;
  if (text !== undefined) node.textContent = text;
  parent.append(node);
  return node;
}

function headers() {
  const key = byId("key").value;
  return { "content-type": "application/json", accept: "application/json", ...(key && { authorization: `Bearer ${key}` }) };
}

async function facts() {
  const found = await (await fetch("./", { headers: headers() })).json();
  const list = byId("facts");
  list.replaceChildren();
  for (const [name, value] of Object.entries(found)) {
    if (name === "name" || name === "paths" || value === null) continue;
    const row = made(list, "div");
    made(row, "dt", "", name === "keeps" ? "keeps responses" : name.replaceAll("_", " "));
    made(row, "dd", "", value === true ? "yes" : value === false ? "no" : String(value));
  }
}

function turn(role, text) {
  const node = made(byId("log"), "div", `turn ${role}`);
  made(node, "div", "who", role);
  if (text !== undefined) made(node, "div", "", text);
  node.scrollIntoView({ block: "nearest" });
  return node;
}

function body() {
  const tools = byId("tools").value.trim();
  const listed = tools ? JSON.parse(tools) : [];
  const system = byId("system").value.trim();
  const temperature = byId("temperature").value;
  return {
    model: "any", stream: true, return_regions: true, stream_options: { include_usage: true },
    messages: [...(system ? [{ role: "system", content: system }] : []), ...messages],
    ...(listed.length && { tools: listed, tool_choice: byId("choice").value }),
    ...(byId("most").value && { max_tokens: Number(byId("most").value) }),
    ...(temperature && { temperature: Number(temperature) }),
  };
}

async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const frames = (held + value).split("\n\n");
    held = frames.pop();
    for (const frame of frames) {
      if (frame.startsWith("data: {")) yield JSON.parse(frame.slice(6));
    }
  }
}

class Answer {
  constructor() {
    this.node = turn("assistant");
    this.message = { role: "assistant", content: "" };
    this.parts = {};
    this.regions = [];
  }
  part(name, kind) {
    return (this.parts[name] ??= made(this.node, "div", kind));
  }
  take(chunk) {
    if (chunk.error) throw new Error(chunk.error.message);
    const choice = chunk.choices[0];
    if (chunk.usage) this.usage = chunk.usage;
    if (!choice) return;
    const delta = choice.delta;
    if (delta.reasoning) {
      this.message.reasoning = (this.message.reasoning ?? "") + delta.reasoning;
      this.part("thought", "thought").textContent = this.message.reasoning;
    }
    if (delta.content) {
      this.message.content += delta.content;
      this.part("content", "").textContent = this.message.content;
    }
    for (const call of delta.tool_calls ?? []) {
      const calls = (this.message.tool_calls ??= []);
      const known = (calls[call.index] ??= { id: "", type: "function", function: { name: "", arguments: "" } });
      known.id = call.id ?? known.id;
      known.function.name += call.function?.name ?? "";
      known.function.arguments += call.function?.arguments ?? "";
      this.part(`call${call.index}`, "call").textContent = `${known.function.name} ${known.function.arguments}`;
    }
    this.regions = choice.regions ?? this.regions;
  }
  end() {
    const details = made(this.node, "details");
    details.open = true;
    made(details, "summary", "", "What the model wrote");
    const strip = made(details, "div", "strip");
    for (const { kind, text } of this.regions) {
      made(strip, "span", kind, text).title = kind;
    }
    if (this.usage) made(this.node, "div", "usage", `${this.usage.prompt_tokens} + ${this.usage.completion_tokens} tokens`);
    messages.push(this.message);
    for (const call of this.message.tool_calls ?? []) this.ask(call);
  }
  ask(call) {
    const form = made(this.node, "form");
    const label = made(form, "label", "", `Result of ${call.function.name}`);
    const input = made(form, "textarea");
    input.rows = 2;
    input.id = label.htmlFor = `result-${call.id}`;
    made(form, "button", "", "Send the result").type = "submit";
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      turn("tool", input.value);
      messages.push({ role: "tool", tool_call_id: call.id, content: input.value });
      form.remove();
      const open = this.message.tool_calls.some((one) => !messages.some((each) => each.tool_call_id === one.id));
      if (!open) send();
    });
  }
}

async function send() {
  running = new AbortController();
  byId("send").disabled = true;
  byId("stop").disabled = false;
  let answer = null;
  try {
    const asked = { method: "POST", headers: headers(), body: JSON.stringify(body()), signal: running.signal };
    const response = await fetch("v1/chat/completions", asked);
    if (!response.ok) throw new Error((await response.json()).error.message);
    answer = new Answer();
    for await (const chunk of events(response)) answer.take(chunk);
  } catch (error) {
    if (error.name !== "AbortError") turn("error", error.message);
  }
  answer?.end();
  byId("send").disabled = false;
  byId("stop").disabled = true;
  facts().catch(() => {});
}

byId("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = byId("text").value;
  byId("text").value = "";
  messages.push({ role: "user", content: text });
  turn("user", text);
  send();
});
byId("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !byId("send").disabled) {
    event.preventDefault();
    byId("ask").requestSubmit();
  }
});
byId("stop").addEventListener("click", () => running?.abort());
byId("clear").addEventListener("click", () => {
  running?.abort();
  messages = [];
  byId("log").replaceChildren();
});
byId("settings").addEventListener("submit", (event) => event.preventDefault());
byId("key").addEventListener("change", () => facts().catch(() => {}));
facts().catch(() => {});
