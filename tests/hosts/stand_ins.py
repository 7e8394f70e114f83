"""Stand-ins for packages that need a GPU, so that SGLang can be imported without one."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
import types
from functools import cache
from typing import Any, ClassVar


class _Empty(type):
    """A class whose every attribute is an empty class."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Empty(name, (), {"__init__": lambda self, *args, **kwargs: None})


class _StandIn(types.ModuleType):
    """A package whose every attribute and submodule is empty."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = _Empty(name, (), {"__init__": lambda self, *args, **kwargs: None})
        setattr(self, name, made)
        return made


class _StandIns:
    """Finds a stand-in for each module of the packages that are not installed, and for the parts that need a GPU."""

    names: ClassVar[tuple[str, ...]] = ()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if any(name == found or name.startswith(f"{found}.") for found in self.names):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]
        return None

    def create_module(self, spec: Any) -> types.ModuleType:
        return _StandIn(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Leaves the module empty."""


_PACKAGES = (
    "sgl_kernel",
    "flashinfer",
    "av",
    "decord",
    "torchvision",
    "torchaudio",
    "torchao",
    "triton",
    "pynvml",
)
_PARTS = ("sglang.srt.layers", "sglang.srt.managers.schedule_batch", "sglang.srt.model_executor")


@cache
def stand_in() -> None:
    """Makes SGLang's parsers and its serving layer importable on a machine without a GPU."""
    importlib.import_module("transformers")  # it must find the packages missing
    missing = tuple(name for name in _PACKAGES if importlib.util.find_spec(name) is None)
    _StandIns.names = missing + (_PARTS if missing else ())
    sys.meta_path.insert(0, _StandIns())  # type: ignore[arg-type]
