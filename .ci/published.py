"""Looks at the files that would be published: ``python .ci/published.py [--tag v0.1.0] FILE...``

Says what is wrong, a line each, and returns 1 then. With ``--tag``, the version in the package, in CITATION.cff and in
the newest heading of CHANGELOG.md must be that of the tag, and nothing may be left under "Unreleased".
"""

from __future__ import annotations

import argparse
import email
import re
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TYPES = ROOT / "compiled" / "types"
WHEEL, MODULES = 2_900_000, 3_500_000
"""The most bytes of a wheel with the compiled core, and of its modules."""


def contents(path: Path) -> dict[str, bytes]:
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
    with tarfile.open(path) as archive:
        files = ((member.name.partition("/")[2], archive.extractfile(member)) for member in archive)
        return {name: file.read() for name, file in files if file is not None}


def faults(path: Path) -> Iterator[str]:
    """What is wrong in a wheel or in an archive of the sources."""
    files = contents(path)
    built = {name: content for name, content in files.items() if name.endswith((".so", ".pyd"))}
    about = next(
        content for name, content in files.items() if re.search(r"(^|dist-info/)(METADATA|PKG-INFO)$", name)
    )
    yield from (
        f"a link that holds in the repository alone: {link}"
        for link in re.findall(r"\]\((?!\w+:|#)([^)]*)\)", email.message_from_bytes(about).get_payload())
    )
    if path.suffix != ".whl":
        yield from (f"a compiled file among the sources: {name}" for name in built)
        yield from (
            f"missing: {name}" for name in ("LICENSE", "README.md", "tests/conftest.py") if name not in files
        )
        return
    yield from (
        f"not of the package: {name}"
        for name in files
        if not name.startswith(("chatparsers/", "chatparsers-"))
    )
    yield from (
        f"no use for it in a wheel: {name}" for name in files if name.endswith((".pyc", ".pyx", ".c", ".pxd"))
    )
    if path.stem.endswith("py3-none-any"):
        yield from (f"a compiled file in a wheel for every platform: {name}" for name in built)
        return
    expected = {
        f"chatparsers/{file.relative_to(TYPES).with_suffix('').as_posix()}" for file in TYPES.rglob("*.pxd")
    }
    expected.add("chatparsers/_shared")
    yield from (f"not compiled: {name}" for name in expected - {name.partition(".")[0] for name in built})
    here = (str(ROOT).encode(), sys.prefix.encode(), sys.base_prefix.encode())
    yield from (
        f"a folder of this machine in {name}"
        for name, content in built.items()
        if any(map(content.count, here))
    )
    if (size := path.stat().st_size) > WHEEL:
        yield f"{size} bytes: expected at most {WHEEL}"
    if (size := sum(map(len, built.values()))) > MODULES:
        yield f"{size} bytes of compiled modules: expected at most {MODULES}"


def other_versions(tag: str) -> Iterator[str]:
    """Where the version is not the tag's."""
    read = {
        name: (ROOT / name).read_text("utf-8")
        for name in ("chatparsers/__init__.py", "CITATION.cff", "CHANGELOG.md")
    }
    patterns = (r'^__version__ = "(.*)"$', r"^version: (.*)$", r"^## (\d+\.\d+\.\d+) \(\d{4}-\d\d-\d\d\)$")
    for (name, text), pattern in zip(read.items(), patterns, strict=True):
        found = re.search(pattern, text, re.M)
        if found is None or f"v{found[1]}" != tag:
            yield f"{name}: expected the version of the tag {tag}, found {found and found[1]}"
    unreleased = re.search(r"^## Unreleased\n(.*?)(?=^## |\Z)", read["CHANGELOG.md"], re.S | re.M)
    if unreleased is not None and unreleased[1].strip():
        yield f'CHANGELOG.md: expected nothing under "Unreleased": it belongs to {tag}'


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--tag")
    given = parser.parse_args()
    found = [f"{path.name}: {fault}" for path in given.files for fault in faults(path)]
    found += other_versions(given.tag) if given.tag else ()
    print("\n".join(found) or f"{len(given.files)} files: nothing wrong")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
