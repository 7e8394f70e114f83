"""Puts the compiled modules in the place of those of ``chatparsers``. That package imports this one and calls `use`."""

from __future__ import annotations

import copyreg
import os
import struct
import sys
import warnings
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec
from importlib.util import spec_from_file_location
from mmap import ACCESS_READ, mmap
from pathlib import Path
from types import ModuleType
from typing import Any

from ._built import PUBLIC, VERSION

__all__ = ["use"]

_ROOT = Path(__file__).parent
_BUILT = {path for suffix in EXTENSION_SUFFIXES for path in _ROOT.glob(f"**/*{suffix}")}
_FILES = {
    ".".join((*path.parent.relative_to(_ROOT).parts, path.name.partition(".")[0])): str(path)
    for path in _BUILT
    if path.parent != _ROOT
}
_HEAD = 64
"""How many bytes the header of an ELF file has."""


class _Finder:
    """Finds the compiled modules before the import system finds the plain ones."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        file = _FILES.get(name)
        return None if file is None else spec_from_file_location(name, file, loader=_Loader(name, file))


class _Loader(ExtensionFileLoader):
    """Loads a module, and lets its classes be pickled as the plain ones are, so that each core reads both pickles."""

    def exec_module(self, module: ModuleType) -> None:
        from ._names import rename

        super().exec_module(module)
        for kind in vars(module).values():
            if isinstance(kind, type) and kind.__module__ == module.__name__ and _plain(kind):
                copyreg.pickle(kind, _reduced)
        for name in PUBLIC[module.__name__]:
            rename(vars(module)[name], f"chatparsers.{name}".encode())


def _plain(kind: type) -> bool:
    """Whether the class leaves pickling to ``object``, which refuses the fields of C."""
    known = ("__reduce__", "__getstate__")
    return "__slots__" in vars(kind) and all(
        getattr(kind, name, None) is getattr(object, name, None) for name in known
    )


def _reduced(thing: Any) -> tuple[Any, ...]:
    kind = type(thing)
    return copyreg.__newobj__, (kind,), (None, {name: getattr(thing, name) for name in kind.__slots__})


def _damaged(path: Path) -> bool:
    """Whether the end of a built file is missing, as when a disk was full, or the function that begins the module. On
    Linux, the process that loads a cut file dies; other systems refuse to load it. Tools that make the file smaller
    leave its table of sections whole."""
    with path.open("rb") as file:
        head, size = file.read(_HEAD), os.fstat(file.fileno()).st_size
        if len(head) < _HEAD or not any(head):
            return True
        with mmap(file.fileno(), 0, access=ACCESS_READ) as whole:
            if whole.find(b"PyInit_" + path.name.partition(".")[0].encode()) < 0:
                return True
    if not head.startswith(b"\x7fELF\x02"):  # of 64 bits
        return False
    sections, each, number = struct.unpack("=40xQ10xHH2x", head)
    return bool(sections + each * number > size)


def use(version: str) -> str:
    """From now on, ``chatparsers`` of this version is imported with the compiled modules. Returns which core runs.
    Raises ImportError if they cannot be loaded."""
    found = VERSION
    if version == VERSION:
        missing = sorted(PUBLIC.keys() - _FILES.keys())
        damaged = sorted(path.name for path in _BUILT if _damaged(path))
        if not missing and not damaged:
            # Before the first of the modules, while the plain ones can still run.
            import_module("._names", __name__)
            sys.meta_path.insert(0, _Finder)
            return "compiled"
        found = f"it without {missing[0]}" if missing else f"it with a part of {damaged[0]}"
    warnings.warn(
        f"chatparsers {version} runs without its compiled core: expected chatparsers-compiled {version}, found "
        f"{found}; install that version, or set CHATPARSERS_PURE=1",
        stacklevel=3,
    )
    return "pure"
