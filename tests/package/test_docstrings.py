"""The docstrings: everything public has one, each public method shows an example, and every example runs."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import chatparsers

PACKAGE = Path(chatparsers.__file__).parent
SITE = PACKAGE.parent / "docs" / "_site"
EXTRAS = {
    "anyio",
    "httpx2",
    "hypothesis",
    "jsonschema",
    "numpy",
    "prometheus_client",
    "pyarrow",
    "railroad",
    "starlette",
}
FILES = [path for path in sorted(PACKAGE.rglob("*.py")) if "    >>> " in path.read_text(encoding="utf-8")]

pytestmark = pytest.mark.skipif(not SITE.is_dir(), reason="no docs: not a checkout")


@pytest.fixture(autouse=True)
def _modules() -> Iterator[None]:
    """Whatever is public is listed in the generator of the site, which is no package."""
    sys.path.insert(0, str(SITE))
    yield
    sys.path.remove(str(SITE))


@pytest.fixture(scope="module")
def beginning() -> dict[str, Any]:
    """What every example begins with, as the reference says."""
    pytest.importorskip("numpy")  # for the small tokenizer
    sys.path.insert(0, str(SITE))
    import public

    sys.path.remove(str(SITE))
    names: dict[str, Any] = {}
    exec(public.BEGINNING, names)
    return names


def test_everything_public_has_a_docstring_and_stands_in_the_reference() -> None:
    for extra in EXTRAS:
        pytest.importorskip(extra)
    import public

    assert not public.ungrouped(), "a page of docs/_site/public.py must show each public name"
    assert not public.undocumented()


def test_each_public_method_shows_an_example() -> None:
    import public

    without = [
        name
        for page in public.PAGES
        if page.module == "chatparsers"
        for name, found in public.members(page)
        if (inspect.isfunction(found) or inspect.ismethod(found))
        and ">>> " not in (inspect.getdoc(found) or "")
    ]
    assert not without


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(PACKAGE).as_posix())
def test_examples_run(file: Path, beginning: dict[str, Any]) -> None:
    """Those of private modules too. An example begins with what the reference says, and sees its module's names."""
    name = ".".join(["chatparsers", *file.relative_to(PACKAGE).with_suffix("").parts])
    try:
        module = importlib.import_module(name.removesuffix(".__init__"))
    except ModuleNotFoundError as error:
        if error.name not in EXTRAS:
            raise
        pytest.skip(f"needs {error.name}")
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner()
    said: list[str] = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        text = ast.get_docstring(node) if isinstance(node, kinds) else None
        if text and ">>> " in text:
            names = {**vars(module), **beginning}
            where = getattr(node, "name", "the module"), str(file), getattr(node, "lineno", 1) - 1
            runner.run(parser.get_doctest(text, names, *where), out=said.append)
    assert runner.tries, "no example is found where the file shows one"
    assert not runner.failures, "".join(said)
