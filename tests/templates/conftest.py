"""The templates that the tests run over: always our own small ones, and real ones if the data folder exists."""

from __future__ import annotations

from pathlib import Path

import pytest

from chatparsers.templates.builtins import builtin_names
from chatparsers.testing.plugin import TEMPLATES

_TESTS = Path(__file__).parents[1]
# One refuses tools, which the tests here render. The other writes its text after its calls, as its model does.
_UNLIKE_OTHERS = {"content-only", "lfm2"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """``own_template``, ``real_template``; ``any_template``: both; ``found_template``: the real ones and those that
    people have in their GGUF files; ``every_template``: all these, and the built-in ones by name (`load_chat`).

    The scope puts the tests of a template one after another, so that it is compiled once.
    """
    paths = sorted(p for p in (_TESTS / "templates_own").glob("*.jinja") if p.stem not in _UNLIKE_OTHERS)
    own: list[object] = [pytest.param(path, id=path.stem) for path in paths]
    found = metafunc.config.stash[TEMPLATES]
    real: list[object] = [pytest.param(path, id=f"real-{path.stem}") for path in found]
    if not found:
        reason = "no real templates: pass --shared DIR or set CHATPARSERS_SHARED"
        real = [pytest.param(None, id="real", marks=pytest.mark.skip(reason=reason))]
    files = sorted((found[0].parents[1] / "templates-gguf").glob("*.jinja")) if found else []
    files = [path for path in files if path not in found]
    gguf: list[object] = [pytest.param(path, id=f"gguf-{path.stem}") for path in files]
    built_in: list[object] = [pytest.param(name, id=f"{name}-built-in") for name in builtin_names()]
    sets = {
        "own_template": own,
        "real_template": real,
        "any_template": own + real,
        "found_template": real + gguf,
        "every_template": own + real + gguf + built_in,
    }
    for name, cases in sets.items():
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, cases, scope="session")


@pytest.fixture(scope="session")
def own_folder() -> Path:
    return _TESTS / "templates_own"
