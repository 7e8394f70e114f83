"""``chatparsers playground``: builds the page on which the package runs in a browser, and serves it on this machine."""

from __future__ import annotations

import sys
from argparse import Namespace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from os import PathLike
from pathlib import Path
from typing import Any

_POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'"
)


def run(arguments: Namespace) -> int:
    """Builds the folder with ``--out``; else serves it until it is interrupted, built before if need be."""
    from ..playground.build import build, built, cache_folder

    pyodide = None if arguments.pyodide is None else Path(arguments.pyodide)
    if arguments.folder is not None:
        size = build(Path(arguments.folder), pyodide)
        print(f"{arguments.folder}: {size / 1e6:.1f} MB; any static server can serve it")
        return 0
    folder = cache_folder() if arguments.dir is None else Path(arguments.dir)
    if arguments.dir is None and not built(folder):
        print(f"chatparsers: building the playground in {folder}, once", file=sys.stderr)
        build(folder, pyodide)
    with server(folder, arguments.port) as serving:
        print(f"http://127.0.0.1:{serving.server_address[1]}/ (Ctrl-C ends it)", flush=True)
        serving.serve_forever()
    return 0


def server(folder: Path, port: int) -> ThreadingHTTPServer:
    """A server of a folder for this machine alone. ``port`` 0 takes a free one. Raises OSError if it is taken, or if
    the folder is not there."""
    if not (folder / "index.html").is_file():
        raise FileNotFoundError(2, "expected a built playground there, found no index.html", str(folder))
    return ThreadingHTTPServer(("127.0.0.1", port), partial(_Handler, directory=str(folder)))


class _Handler(SimpleHTTPRequestHandler):
    """Serves files, with a policy that keeps every page from asking another host."""

    def guess_type(self, path: str | PathLike[str]) -> str:
        """The type of a file: of scripts, not what the system has registered, as browsers run no others."""
        script = Path(path).suffix in (".js", ".mjs")
        return "text/javascript" if script else super().guess_type(path)

    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", _POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing of requests."""
