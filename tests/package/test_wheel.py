"""An edit in a checkout runs, also beside an installed wheel: nothing compiled comes before a checkout's sources."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
TYPES = ROOT / "compiled" / "types"


def test_an_edit_in_a_checkout_runs_beside_an_installed_wheel(tmp_path: Path) -> None:
    checkout, wheel = tmp_path / "checkout" / "chatparsers", tmp_path / "site-packages" / "chatparsers"
    unneeded = shutil.ignore_patterns("__pycache__", "formats", "gateway", "testing")
    shutil.copytree(ROOT / "chatparsers", checkout, ignore=unneeded)
    names = [path.relative_to(TYPES).with_suffix("") for path in TYPES.rglob("*.pxd")]
    for name in names:  # a compiled one that is taken is an ImportError
        (wheel / name).parent.mkdir(parents=True, exist_ok=True)
        (wheel / name).with_suffix(EXTENSION_SUFFIXES[0]).touch()
        with (checkout / name).with_suffix(".py").open("a", encoding="utf-8") as file:
            file.write(f"\nprint({name.as_posix()!r})\n")
    (wheel / "__init__.py").touch()
    modules = [".".join(("chatparsers", *name.parts)) for name in names]
    code = f"import {', '.join(modules)}\nprint(chatparsers.CORE)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "CHATPARSERS_PURE": "0", "PYTHONPATH": str(wheel.parent)},
        cwd=checkout.parent,
        capture_output=True,
        text=True,
    )
    assert sorted(done.stdout.split()) == sorted([*(name.as_posix() for name in names), "pure"]), done.stderr


def hook() -> Any:
    """What hatchling runs when it builds a wheel of this checkout, where the hook is switched on."""
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Release(str(ROOT), {}, None, None, str(ROOT / "dist"), "wheel")


def data() -> dict[str, Any]:
    return {"shared_data": {}, "force_include": {}, "pure_python": True, "infer_tag": False}


def test_nothing_is_compiled_into_a_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither for an editable install, nor beside the sources while a wheel is built."""
    asked: list[Path] = []

    def build(folder: Path, oldest: str) -> list[Path]:
        asked.append(folder)
        return [folder / "chatparsers" / "core" / "x.so"]

    compiler = ModuleType("build")
    monkeypatch.setattr(compiler, "build", build, raising=False)
    monkeypatch.setitem(sys.modules, "build", compiler)
    monkeypatch.setattr(sys, "path", [*sys.path])  # the hook adds to it
    monkeypatch.delenv("CHATPARSERS_PURE", raising=False)
    monkeypatch.delenv("CHATPARSERS_ABI3", raising=False)
    release = hook()
    monkeypatch.setattr(release, "manual", lambda: ROOT / "build" / "chatparsers.1")

    editable = data()
    release.initialize("editable", editable)
    assert editable == data() and not asked

    plain = data()
    for variable in ("HATCH_BUILD_HOOK_ENABLE_CUSTOM", "CHATPARSERS_COMPILE"):
        monkeypatch.setenv(variable, "0")
    release.initialize("standard", plain)
    assert plain == data() and not asked and not release.dependencies(), "`pip install .` stays plain"

    monkeypatch.setenv("CHATPARSERS_COMPILE", "1")
    with pytest.raises(RuntimeError, match="without -e"):
        release.initialize("editable", editable)
    standard = data()
    release.initialize("standard", standard)
    assert not standard["shared_data"] and any("cython" in name for name in release.dependencies())
    (folder,) = asked
    assert not folder.is_relative_to(ROOT / "chatparsers")
    assert standard["force_include"] == {str(folder / "chatparsers/core/x.so"): "chatparsers/core/x.so"}
