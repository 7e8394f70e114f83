// The page: it keeps the fields, asks the worker, and puts each section in its place.
const byId = (id) => document.getElementById(id);
const FIELDS = ["template", "format", "messages", "tools", "thinking", "choice", "output", "size"];
const PATIENCE = 60_000; // milliseconds that one request may take
const examples = JSON.parse(byId("examples").textContent);
let broken = ""; // what is wrong with the link stays until a field changes
const said = (text) => { byId("state").textContent = broken + text; };

const asked = () => {
  const request = {};
  for (const name of FIELDS) request[name] = byId(name).value;
  request.size = Number(request.size);
  return request;
};
const fill = (request) => {
  for (const name of FIELDS) if (request[name] !== undefined) byId(name).value = request[name];
  byId("size-said").value = byId("size").value;
};

// the link: all fields, deflated, behind the #

const through = async (bytes, stream) =>
  new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());

async function packed(request) {
  const bytes = await through(new TextEncoder().encode(JSON.stringify(request)), new CompressionStream("deflate-raw"));
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

async function unpacked(fragment) {
  const text = atob(fragment.replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
  const request = JSON.parse(new TextDecoder().decode(await through(bytes, new DecompressionStream("deflate-raw"))));
  const known = {};
  for (const name of FIELDS) if (["string", "number"].includes(typeof request[name])) known[name] = String(request[name]);
  return known;
}

// the worker: one request at a time; of those that wait, the newest

let worker, ready = false, running = 0, waiting = null, last = JSON.stringify(asked()), patience, begun;

function start() {
  ready = false;
  worker = new Worker("worker.js", { type: "module" });
  worker.onmessage = ({ data }) => heard(data);
  worker.onerror = () => said("The worker could not start. Serve this folder over HTTP: chatparsers playground does.");
}

function heard(data) {
  if (data.progress !== undefined) {
    byId("progress").value = data.progress;
    if (data.core) performance.mark("core");
    said(`Loading the package, ${Math.round(data.progress * 100)} %. Below is an example, drawn beforehand.`);
  } else if (data.failed && !data.id) {
    said(`It could not be loaded: ${data.failed}`);
  } else if (data.ready) {
    ready = true;
    byId("progress").hidden = true;
    performance.mark("ready");
    said("The package is here. Change any field.");
    ask(waiting ?? asked(), waiting === null);
  } else if (data.id === running && data.section) {
    const place = byId(`s-${data.section}`);
    place.innerHTML = data.html; // made by chatparsers.display, which escapes every text
    place.parentElement.classList.remove("stale");
    if (data.section === "timeline") counted();
  } else if (data.id === running && data.done) {
    clearTimeout(patience);
    running = 0;
    performance.mark("read");
    said(data.failed ? `An error of chatparsers itself: ${data.failed}` : `Read in ${((performance.now() - begun) / 1000).toFixed(2)} s.`);
    document.body.dataset.read = last;
    if (waiting !== null) ask(waiting);
  }
}

let number = 0;
function ask(request, same = false) {
  if (!ready || running) { waiting = request; return; }
  waiting = null;
  running = ++number;
  begun = performance.now();
  last = JSON.stringify(request);
  if (!same) for (const each of document.querySelectorAll("#results section")) each.classList.add("stale");
  worker.postMessage({ id: running, request: last });
  patience = setTimeout(() => {
    worker.terminate();
    running = 0;
    waiting = null;
    said(`No answer within ${PATIENCE / 1000} s, so it was stopped. Make the text or the schemas smaller.`);
    start();
  }, PATIENCE);
}

// the timeline's slider

function shown() {
  const most = Number(byId("upto").value);
  byId("upto-said").value = most;
  for (const row of document.querySelectorAll("#s-timeline tbody tr")) row.hidden = Number(row.dataset.n) >= most;
}
function counted() {
  const rows = document.querySelectorAll("#s-timeline tbody tr").length || 1;
  byId("upto").max = rows;
  byId("upto").value = rows;
  shown();
}

// what the user does

let pause;
const changed = (wait) => {
  clearTimeout(pause);
  broken = "";
  pause = setTimeout(() => {
    const request = asked();
    if (JSON.stringify(request) !== last || waiting) ask(request);
  }, wait);
};
byId("form").addEventListener("input", ({ target }) => {
  if (target.id !== "example") { byId("example").value = ""; changed(400); }
});
byId("form").addEventListener("submit", (event) => { event.preventDefault(); ask(asked()); });
byId("size").addEventListener("input", () => { byId("size-said").value = byId("size").value; changed(150); });
byId("upto").addEventListener("input", shown);
byId("example").addEventListener("change", () => {
  const chosen = examples[Number(byId("example").value)];
  if (chosen) { fill({ ...chosen, size: byId("size").value }); changed(0); }
});
byId("link").addEventListener("click", async () => {
  history.replaceState(null, "", `#${await packed(asked())}`);
  try {
    await navigator.clipboard.writeText(location.href);
    said("The link is in the clipboard.");
  } catch {
    said("The link stands in the address bar.");
  }
});

async function fromLink() {
  const fragment = location.hash.slice(1);
  broken = "";
  if (!fragment) return;
  try {
    fill(await unpacked(fragment));
    byId("example").value = "";
    waiting = asked();
    for (const each of document.querySelectorAll("#results section")) each.classList.add("stale");
    if (ready) ask(waiting);
  } catch {
    broken = "The link's fields could not be read: they were cut off, or are of another page. ";
    said("");
  }
}
addEventListener("hashchange", fromLink);

if (matchMedia("(max-width: 60rem)").matches) { // in one column the results stand below: not so far down
  for (const each of document.querySelectorAll("form details")) each.open = false;
}
counted();
await fromLink();
start();
