"""Makes the static folder of the playground: the page, Pyodide's files, and the package as one archive.

Pyodide is not a part of this package. Its npm package is fetched once with npm, or given as a folder. Its Python
compiles our sources, for which Node.js is needed, so that a browser need not. The core is stored in gzip, because not
every server compresses it on the way.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jinja2

from .. import __version__
from ..display.looks import STYLE
from ..errors import LoadError
from ..registry import list_formats
from .examples import examples
from .reading import SECTIONS, sections

PYODIDE = "314.0.7"
"""The version of the npm package ``pyodide`` that the page is made for."""
_PAGE = files(__package__) / "page"
_CORE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
_LEFT_OUT = {"adapters", "cli", "data", "doctor", "gateway", "testing"}
"""Parts of the package that need what a browser has not, or that the page does not use."""
_OF_A_PLATFORM = {".so", ".pyd"}
"""The compiled core, which no browser runs."""
_NEEDED = ("jinja2", "markupsafe", "pluggy", "railroad-diagrams")
"""Distributions that go with the package; without their compiled parts, all are pure Python."""
_SIZE = 4
_STAMP = "build.json"


def cache_folder() -> Path:
    """Where a playground is built if no folder is named."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "chatparsers" / "playground"


def built(folder: Path) -> bool:
    """Whether a folder has the playground of these very sources."""
    try:
        stamp = json.loads((folder / _STAMP).read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return bool(stamp == _stamp(_archive()))


def build(folder: Path, pyodide: Path | None = None) -> int:
    """Makes the static folder, and returns its size in bytes. ``pyodide``: the npm package, unpacked; without it, npm
    fetches it.

    Raises `LoadError` if npm or Node.js is missing or fails, or if a file of Pyodide is not there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as scratch:
        core = pyodide or _fetched(Path(scratch))
        missing = [name for name in _CORE if not (core / name).is_file()]
        if missing:
            raise LoadError(
                f"{core}: expected the npm package pyodide {PYODIDE}, unpacked; {missing[0]} is not there"
            )
        sources = _archive()
        (folder / "app.bin").write_bytes(_compiled(sources, core, Path(scratch)))
        _copy_core(core, folder)
    sizes = {name: (folder / name).stat().st_size for name in ("core.bin", "app.bin")}
    (folder / "sizes.js").write_text(f"export default {json.dumps(sizes)};\n", "utf-8")
    for name in ("page.js", "page.css", "worker.js"):
        (folder / name).write_bytes((_PAGE / name).read_bytes())
    (folder / "index.html").write_text(_index(), "utf-8", newline="\n")
    (folder / "licenses.txt").write_text(_licenses(), "utf-8")
    (folder / _STAMP).write_text(json.dumps(_stamp(sources)), "utf-8")
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _copy_core(core: Path, folder: Path) -> None:
    (folder / "pyodide").mkdir(exist_ok=True)
    for name in ("pyodide.mjs", "pyodide.asm.mjs", "python_stdlib.zip"):
        shutil.copyfile(core / name, folder / "pyodide" / name)
    lock = json.loads((core / "pyodide-lock.json").read_text("utf-8"))
    (folder / "pyodide" / "pyodide-lock.json").write_text(json.dumps({**lock, "packages": {}}), "utf-8")
    (folder / "core.bin").write_bytes(gzip.compress((core / "pyodide.asm.wasm").read_bytes(), mtime=0))


def _index() -> str:
    """The page, with the first example drawn in it."""
    made = examples()
    first = made[0].asked
    drawn = dict(sections({**first, "size": _SIZE}))
    data = json.dumps([example.asked for example in made], ensure_ascii=False).replace("<", "\\u003c")
    template = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined).from_string(
        (_PAGE / "index.html").read_text("utf-8")
    )
    return template.render(
        style=STYLE,
        examples=made,
        examples_json=data,
        first=first,
        formats=sorted(list_formats(), key=lambda info: info.name),
        sections={name: {"title": title, "html": drawn[name]} for name, title in SECTIONS.items()},
        size=_SIZE,
        steps=drawn["timeline"].count("<tr data-n"),
        version=__version__,
        pyodide=PYODIDE,
    )


def _stamp(sources: bytes) -> dict[str, Any]:
    page = b"".join(
        (_PAGE / name).read_bytes() for name in ("index.html", "page.js", "page.css", "worker.js")
    )
    return {"pyodide": PYODIDE, "sources": hashlib.sha256(sources + page).hexdigest()}


def _archive() -> bytes:
    """The sources that the page runs: the package, and what it imports."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in _contents():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def _contents() -> Iterator[tuple[str, bytes]]:
    root = Path(__file__).parents[1]
    for path in sorted(root.rglob("*")):
        parts = path.relative_to(root).parts
        if path.suffix in _OF_A_PLATFORM or {"__pycache__", "page"} & {*parts} or parts[0] in _LEFT_OUT:
            continue
        if path.is_file():
            yield f"chatparsers/{'/'.join(parts)}", path.read_bytes()
    for name in _NEEDED:
        try:
            listed = distribution(name).files or ()
        except PackageNotFoundError:  # an extra that is not installed: the page goes without
            continue
        for file in sorted(listed):
            if file.suffix == ".py":
                yield file.as_posix(), file.read_binary()
    about = f"chatparsers-{__version__}.dist-info"
    yield f"{about}/METADATA", f"Metadata-Version: 2.1\nName: chatparsers\nVersion: {__version__}\n".encode()
    yield f"{about}/entry_points.txt", b"[chatparsers]\nbuiltin = chatparsers.formats\n"


def _compiled(sources: bytes, core: Path, scratch: Path) -> bytes:
    script, given, made = (scratch / name for name in ("compile.mjs", "sources.zip", "compiled.zip"))
    script.write_bytes((_PAGE / "compile.mjs").read_bytes())
    given.write_bytes(sources)
    _run("node", str(script), str(core), str(given), str(made), cwd=scratch)
    return made.read_bytes()


def _fetched(scratch: Path) -> Path:
    """The npm package, fetched and unpacked."""
    _run("npm", "pack", f"pyodide@{PYODIDE}", "--pack-destination", str(scratch), cwd=scratch)
    with tarfile.open(next(scratch.glob("pyodide-*.tgz"))) as archive:
        for name in _CORE:
            member = archive.extractfile(f"package/{name}")
            assert member is not None
            (scratch / name).write_bytes(member.read())
    return scratch


def _run(program: str, *arguments: str, cwd: Path) -> None:
    path = shutil.which(program)
    if path is None:
        raise LoadError(
            f"the playground needs {program} once, to be built, and it was not found: install Node.js, or build the "
            "folder on a machine that has it (chatparsers playground --out DIR) and serve it from there"
        )
    done = subprocess.run([path, *arguments], cwd=cwd, capture_output=True, text=True, errors="replace")
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise LoadError(f"{program} failed: {' / '.join(line[:200] for line in lines[-3:])}")


def _licenses() -> str:
    """The licences of all that the folder holds."""
    parts = [
        f"Pyodide {PYODIDE}: Mozilla Public License 2.0. Its sources: https://github.com/pyodide/pyodide\n"
        "It holds CPython, under the PSF License Agreement: https://docs.python.org/3/license.html\n"
    ]
    for name in ("chatparsers", *_NEEDED):
        try:
            found = distribution(name)
        except PackageNotFoundError:
            continue
        texts = [path for path in found.files or () if "LICENSE" in path.name.upper()]
        parts += [f"== {name} {found.version}\n\n{path.read_text()}" for path in texts[:1]]
    return "\n".join(parts)
