// node compile.mjs PYODIDE IN OUT: compiles the sources of an archive with Pyodide's own Python, for which they are meant.
import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, sources, compiled] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(resolve(folder, "pyodide.mjs")));
const pyodide = await loadPyodide();
pyodide.unpackArchive(new Uint8Array(readFileSync(sources)), "zip", { extractDir: "/app" });
pyodide.runPython(`
import compileall, pathlib, sys, zipfile
if not compileall.compile_dir("/app", quiet=2, legacy=True, stripdir="/app"):
    sys.exit("a module could not be compiled")
with zipfile.ZipFile("/out.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
    for path in sorted(pathlib.Path("/app").rglob("*")):
        if path.is_file() and path.suffix != ".py":
            archive.write(path, path.relative_to("/app"))
`);
writeFileSync(compiled, pyodide.FS.readFile("/out.zip"));
