// The worker: it loads Pyodide and the package, and answers requests. All files stand beside it.
import { loadPyodide } from "./pyodide/pyodide.mjs";
import sizes from "./sizes.js"; // in bytes, of what is fetched with progress

const total = Object.values(sizes).reduce((sum, size) => sum + size, 0);
const fetched = self.fetch.bind(self);
let loaded = 0;

async function bytesOf(name) {
  const response = await fetched(new URL(name, import.meta.url));
  if (!response.ok) throw new Error(`${name}: ${response.status}`);
  const parts = [];
  const reader = response.body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    loaded += value.length;
    self.postMessage({ progress: Math.min(loaded / total, 0.95) });
  }
  return new Blob(parts);
}

// The core is stored in gzip, so it is small on any server. One that unpacks it on the way is right too.
async function core() {
  const blob = await bytesOf("core.bin");
  const [one, two] = new Uint8Array(await blob.slice(0, 2).arrayBuffer());
  const zipped = one === 0x1f && two === 0x8b;
  const stream = zipped ? blob.stream().pipeThrough(new DecompressionStream("gzip")) : blob.stream();
  return new Response(stream, { headers: { "Content-Type": "application/wasm" } });
}

try {
  const wasm = core();
  const app = bytesOf("app.bin");
  self.fetch = (input, init) => {
    const url = String(input?.url ?? input);
    return url.endsWith("pyodide.asm.wasm") ? wasm : fetched(input, init);
  };
  const pyodide = await loadPyodide({ indexURL: new URL("pyodide/", import.meta.url).href });
  self.postMessage({ progress: 0.97, core: true });
  pyodide.unpackArchive(await (await app).arrayBuffer(), "zip", { extractDir: "/app" });
  const answer = pyodide.runPython(
    "import sys; sys.path.insert(0, '/app')\nfrom chatparsers.playground.reading import answer\nanswer",
  );
  self.onmessage = ({ data }) => {
    let failed;
    try {
      answer(data.request, (section, html) => self.postMessage({ id: data.id, section, html }));
    } catch (error) {
      failed = String(error?.message ?? error).trim().split("\n").at(-1);
    }
    self.postMessage({ id: data.id, done: true, failed });
  };
  self.postMessage({ ready: true });
} catch (error) {
  self.postMessage({ failed: String(error?.message ?? error) });
}
