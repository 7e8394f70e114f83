"""Runs the examples of the pages: ``python docs/_examples.py [--write] [PAGE …]``, by default of all pages.

A comment before a code block says what to do with it:

- ``<!-- run -->``: executes it. Python blocks of a page share one namespace. ``sh`` runs in the page's folder, and pip
  installs there. A ``text`` block after it must be its output; ``--write`` replaces it. ``<!-- run with NAME -->``
  does so only where that package is installed.
- ``<!-- engine: NAME -->``: leaves it to the tests of engines. ``<!-- not run: REASON -->``: leaves it.
- ``<!-- file: NAME -->``: writes it as a file into the page's folder. This is a temporary folder, from which modules
  are imported.

A Python block without any of these comments is an error.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Iterable
from contextlib import redirect_stdout
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

__all__ = ["PAGES", "Stale", "run"]

ROOT = Path(__file__).resolve().parents[1]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))

_BLOCK = re.compile(
    r"^<!-- (?P<mark>run(?: with (?P<package>\w+))?|ci: example|file: (?P<file>\S+)) -->\n+"
    r"```(?P<language>\w*)\n(?P<code>.*?)^```\n"
    r"(?P<gap>\n*)(?:```text\n(?P<output>.*?)^```\n)?",
    re.DOTALL | re.MULTILINE,
)


_FENCED = re.compile(r"^```(?P<language>\w*)\n.*?^```$", re.DOTALL | re.MULTILINE)
_MARK = re.compile(r"<!-- (?:run|run with \w+|ci: example|file: \S+|engine: \w+|not run: .+) -->\n+\Z")


class Stale(Exception):
    """An example prints something else than the page says, or does not say whether it runs."""


def run(page: Path, write: bool = False) -> int:
    """Runs the examples of a page and returns their number. Raises `Stale`, or the exception of an example."""
    text = page.read_text(encoding="utf-8")
    for block in _FENCED.finditer(text):
        if block["language"] == "python" and not _MARK.search(text, 0, block.start()):
            line = text.count("\n", 0, block.start()) + 1
            raise Stale(
                f"{page.name}, line {line}: write <!-- run -->, or <!-- not run: REASON -->, before it"
            )
    parts: list[str] = []
    namespace: dict[str, Any] = {"__name__": "__main__"}
    done = at = 0
    with TemporaryDirectory() as folder:
        for block in _BLOCK.finditer(text):
            if block["file"]:
                file = Path(folder, block["file"])
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(block["code"], encoding="utf-8")
                continue
            if block["package"] and find_spec(block["package"]) is None:
                continue
            line = text.count("\n", 0, block.start("code"))
            printed = _execute(page, line, block["language"], block["code"], folder, namespace)
            done += not block["package"]
            if block["output"] is not None and printed != block["output"]:
                if not write:
                    raise Stale(
                        f"{page.name}, line {line + 1}: expected the page to show\n{printed}\n"
                        f"found\n{block['output']}\n"
                        "mend what is wrong, or run python docs/_examples.py --write"
                    )
                parts += [text[at : block.start("output")], printed]
                at = block.end("output")
    if parts:
        page.write_text("".join([*parts, text[at:]]), encoding="utf-8", newline="\n")
    return done


def _execute(page: Path, line: int, language: str, code: str, folder: str, namespace: dict[str, Any]) -> str:
    places = [folder, str(Path(folder, "site")), str(ROOT)]
    if language == "sh":
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        pip = {
            "PIP_TARGET": places[1],
            "PIP_NO_INDEX": "1",
            "PIP_NO_DEPS": "1",
            "PIP_NO_BUILD_ISOLATION": "0",
        }
        given = {**os.environ, **pip, "PATH": path, "PYTHONPATH": os.pathsep.join(places), "COLUMNS": "110"}
        shell = ["bash", "-euo", "pipefail", "-c", code]
        return subprocess.run(
            shell, cwd=folder, env=given, check=True, stdout=subprocess.PIPE, text=True
        ).stdout
    printed, before = StringIO(), os.getcwd()
    sys.path[:0] = places
    os.chdir(folder)
    try:
        with redirect_stdout(printed), warnings.catch_warnings():
            warnings.simplefilter("error")
            exec(compile("\n" * line + code, str(page), "exec", dont_inherit=True), namespace)
    finally:
        os.chdir(before)
        del sys.path[: len(places)]
    return printed.getvalue()


def main(arguments: Iterable[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Runs the examples of the pages.")
    parser.add_argument("--write", action="store_true", help="put what the examples print into the pages")
    parser.add_argument("pages", nargs="*", type=Path, default=PAGES, metavar="PAGE")
    given = parser.parse_args(None if arguments is None else list(arguments))
    if len(given.pages) > 1:  # each in its own process: examples register formats
        options = ["--write"] if given.write else []
        commands = [[sys.executable, __file__, *options, str(page)] for page in given.pages]
        return max([subprocess.run(command, check=False).returncode for command in commands])
    for page in given.pages:
        try:
            print(f"{page.name}: {run(page.resolve(), given.write)} examples run")
        except Stale as error:
            print(error, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main())
