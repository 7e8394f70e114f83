"""Files from strangers: each raises an error at once, in little memory. test_model_files.py has the broken ones."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from struct import pack

import pytest

import chatparsers
from chatparsers.errors import LoadError, RequestError
from chatparsers.tokens import read_model, read_tokenizer
from chatparsers.tokens.vocabulary import Vocabulary

needs_posix = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes on this system")


def text(value: str) -> bytes:
    return pack("<Q", len(value)) + value.encode()


def gguf(path: Path, fields: int, data: bytes, size: int = 0) -> Path:
    """A GGUF file that claims that many fields. ``size``: makes a sparse file, which takes no room on the disk."""
    with path.open("wb") as file:
        file.write(b"GGUF" + pack("<IQQ", 3, 0, fields) + data)
        if size:
            file.truncate(size)
    return path


@pytest.mark.parametrize(
    "source", [None, 5, b"model", 1.5, [], "x" * 100_000, "a\0b", "no/such/file", "\ud800"]
)
def test_what_is_no_path(source: object) -> None:
    for read in (chatparsers.load, chatparsers.detect, read_model, read_tokenizer):
        with pytest.raises(LoadError) as caught:
            read(source)  # type: ignore[operator]  # what is tested
        assert len(str(caught.value)) < 500


@pytest.mark.parametrize("name", ["tokenizer_config.json", "model.gguf", "a.jinja", "tokenizer.json"])
@needs_posix
@pytest.mark.nightly
def test_a_pipe_or_a_device_is_not_waited_for(tmp_path: Path, name: str) -> None:
    code = (
        "import sys; from chatparsers.errors import LoadError\n"
        "from chatparsers.tokens import read_model, read_tokenizer\n"
        "try: read_tokenizer(sys.argv[1]) if 'tokenizer.json' in sys.argv[1] else read_model(sys.argv[1])\n"
        "except LoadError as error: print(error)\n"
    )
    for kind in ("pipe", "device"):
        path = tmp_path / kind / name
        path.parent.mkdir()
        if kind == "pipe":
            os.mkfifo(path)
        else:
            path.symlink_to("/dev/zero")
        done = subprocess.run(
            [sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=60, check=True
        )
        assert (
            "expected a file, found a folder, a pipe or a device" in done.stdout
            or "no model files" in done.stdout
        )


@pytest.mark.parametrize(
    ("fields", "data", "reason"),
    [
        (1, text("k") + pack("<I", 9) + pack("<IQ", 9, 1) * 100_000, "arrays inside each other"),
        (1, text("k") + pack("<IIQ", 9, 8, 2_000_000_000), "2,000,000,000 entries of arrays"),
        (1, text("k") + pack("<IIQ", 9, 4, 2_000_000_000), "2,000,000,000 entries of arrays"),
        (1, text("k") + pack("<IIQ", 9, 9, 2_000_000_000), "2,000,000,000 entries of arrays"),
        (2**60, b"", "fields before byte"),
        (1, text("k") + pack("<IQ", 8, 2**33), "texts of more than 128,000,000 bytes"),
    ],
    ids=["nested", "texts", "numbers", "arrays", "fields", "text"],
)
def test_a_gguf_file_that_claims_too_much(tmp_path: Path, fields: int, data: bytes, reason: str) -> None:
    path = gguf(tmp_path / "model.gguf", fields, data, size=2**34)
    with pytest.raises(LoadError, match=rf"model\.gguf: not a GGUF file, or cut short: .*{reason}"):
        read_model(path)


def test_what_is_no_tokenizer() -> None:
    for wrong in (5, object()):
        with pytest.raises(
            RequestError, match=rf"tokenizer: expected a tokenizers\.Tokenizer.*{type(wrong).__name__}"
        ):
            chatparsers.load("{{ 'x' }}", tokenizer=wrong)
        with pytest.raises(RequestError, match=r"tokenizer: expected a tokenizers\.Tokenizer"):
            Vocabulary.of(wrong)  # type: ignore[arg-type]  # what is tested


@needs_posix
@pytest.mark.parametrize("name", ["link.json", "link.gguf", "link.jinja", "tokenizer.json"])
def test_a_link_to_a_device(tmp_path: Path, name: str) -> None:
    for device in ("/dev/null", "/dev/zero"):
        link = tmp_path / name
        link.symlink_to(device)
        for read in (chatparsers.load, read_tokenizer):
            with pytest.raises(LoadError):
                read(link)
        link.unlink()
