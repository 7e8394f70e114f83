"""Stands for torch and transformers, which xgrammar imports but does not need to compile or match a grammar."""

import importlib.machinery
import sys
import types

import tvm_ffi  # noqa: F401  it looks for torch as it is imported: before the stand-in


class _Module(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        value = type(name, (), {"__init__": lambda self, *args, **kwargs: None})
        setattr(self, name, value)
        return value


for _name in ("torch", "transformers"):
    sys.modules[_name] = _Module(_name)
    sys.modules[_name].__spec__ = importlib.machinery.ModuleSpec(_name, None)
