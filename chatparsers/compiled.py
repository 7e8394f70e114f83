"""Which core runs. A platform's wheel has compiled modules beside their sources, and an interpreter takes those first.

Nothing here imports a compiled module: the first import of one is its user's. ``compiled/build.py`` makes them.
"""

from __future__ import annotations

import copyreg
import os
import sys
from collections.abc import Sequence
from importlib.machinery import EXTENSION_SUFFIXES, FileFinder, ModuleSpec, SourceFileLoader
from typing import Any

ACCELERATOR = os.environ.get("CHATPARSERS_ACCELERATOR", "on") != "off"
"""Whether it is remembered what machines and values did with a text. All is read the same without."""


def chosen_core() -> str:
    """ "compiled" if compiled modules lie beside the sources and may run, else "pure".

    They may not with ``CHATPARSERS_PURE=1``, and not where the GIL is off, as they rely on it.
    """
    machine = os.path.join(os.path.dirname(__file__), "core", "machine", "machine")
    if not any(os.path.exists(machine + suffix) for suffix in EXTENSION_SUFFIXES):
        return "pure"
    has_gil = getattr(sys, "_is_gil_enabled", lambda: True)
    if os.environ.get("CHATPARSERS_PURE", "0") == "0" and has_gil():
        return "compiled"
    sys.meta_path.insert(0, _SourceFinder)
    return "pure"


class _SourceFinder:
    """Finds the sources of this package before the import system finds the compiled modules beside them."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        if not name.startswith("chatparsers."):
            return None
        finders = (FileFinder(folder, (SourceFileLoader, [".py"])) for folder in path or ())
        return next(filter(None, (finder.find_spec(name) for finder in finders)), None)


def pickle_as_plain(kinds: Sequence[type]) -> None:
    """Lets the classes of a compiled module be pickled as the plain ones are, so that each core reads both pickles.

    A compiled module calls it with its own C classes. Those that say themselves how they are pickled stay as they are.
    """
    for kind in kinds:
        if all(
            getattr(kind, name, None) is getattr(object, name, None)
            for name in ("__reduce__", "__getstate__")
        ):
            copyreg.pickle(kind, _reduced)


def _reduced(thing: Any) -> tuple[Any, ...]:
    kind = type(thing)
    names = [name for base in kind.__mro__ for name in getattr(base, "__slots__", ())]
    return copyreg.__newobj__, (kind,), (None, {name: getattr(thing, name) for name in names})  # type: ignore[attr-defined]
