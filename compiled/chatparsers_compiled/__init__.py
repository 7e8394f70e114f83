"""Puts the compiled modules in the place of those of ``chatparsers``. That package imports this one and calls `use`."""

from __future__ import annotations

import copyreg
import sys
import warnings
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from ._built import PUBLIC, VERSION
from ._names import rename

__all__ = ["use"]

_ROOT = Path(__file__).parent
_FILES = {
    ".".join((*path.parent.relative_to(_ROOT).parts, path.name.partition(".")[0])): str(path)
    for suffix in EXTENSION_SUFFIXES
    for path in _ROOT.glob(f"chatparsers/**/*{suffix}")
}


class _Finder:
    """Finds the compiled modules before the import system finds the plain ones."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        file = _FILES.get(name)
        return None if file is None else spec_from_file_location(name, file, loader=_Loader(name, file))


class _Loader(ExtensionFileLoader):
    """Loads a module, and lets its classes be pickled as the plain ones are, so that each core reads both pickles."""

    def exec_module(self, module: ModuleType) -> None:
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


def use(version: str) -> str:
    """From now on, ``chatparsers`` of this version is imported with the compiled modules. Returns which core runs."""
    missing = sorted(PUBLIC.keys() - _FILES.keys())
    if version == VERSION and not missing:
        sys.meta_path.insert(0, _Finder)
        return "compiled"
    found = f"it without {missing[0]}" if version == VERSION else VERSION
    warnings.warn(
        f"chatparsers {version} runs without its compiled core: expected chatparsers-compiled {version}, found "
        f"{found}; install that version, or set CHATPARSERS_PURE=1",
        stacklevel=3,
    )
    return "pure"
