"""Options and fixtures of all tests: the folder of real templates and tokenizers, and how long to run.

``--shared DIR`` (or ``CHATPARSERS_SHARED``, or ``../shared`` if it exists) has ``templates/`` and ``tokenizers/``. A
llama.cpp checkout works too; its templates are in ``models/templates/``.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

_TESTS = Path(__file__).parent
for _folder in ("browser", "core", "data", "doctor", "gateway", "grammar", "hosts"):
    sys.path.insert(0, str(_TESTS / _folder))  # what its tests share is imported as plain modules

# pytest itself must import this first, so that its asserts show the compared values.
pytest_plugins = ["chatparsers.testing", "grammar_report"]

NO_TEMPLATES = "no real templates: give --shared DIR or --templates DIR, or set CHATPARSERS_SHARED"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("chatparsers")
    group.addoption(
        "--shared", metavar="DIR", help="folder with templates/ and tokenizers/, or a llama.cpp checkout"
    )
    group.addoption("--templates", metavar="DIR", help="folder of real chat templates (*.jinja)")
    group.addoption("--nightly", action="store_true", help="ten times as many random cases")
    group.addoption(
        "--quick",
        action="store_true",
        help="few random cases, and a sixth of the cases of each test that has many; CHATPARSERS_QUICK=1 does the same",
    )
    group.addoption(
        "--update-goldens", action="store_true", help="rewrite the golden cases: then read the diff"
    )


def pytest_configure(config: pytest.Config) -> None:
    from hypothesis import settings

    from chatparsers.testing.plugin import CUTS, TEMPLATES, TOKENIZERS

    # A busy machine fails no test, and the same code has the same cases. Nightly runs draw new ones.
    settings.register_profile("usual", deadline=None, derandomize=not config.getoption("--nightly"))
    settings.load_profile("usual")
    if os.environ.get("CHATPARSERS_QUICK"):
        config.option.quick = True
    folder = shared_folder(config)
    if folder is not None:
        config.stash[TOKENIZERS] = folder / "tokenizers"
    config.stash[TEMPLATES] = template_files(config)
    config.stash[CUTS] = 2000 if config.getoption("--nightly") else 8 if config.getoption("--quick") else 16


MANY, KEPT = 20, 6
"""With ``--quick``, a test with so many cases or more runs one case in so many."""


def pytest_itemcollected(item: pytest.Item) -> None:
    """``-k qwen3_coder`` finds what ``-k qwen3-coder`` finds: the name of a format's module is as good as its own."""
    callspec = getattr(item, "callspec", None)
    if callspec is not None and "-" in callspec.id:
        item.extra_keyword_matches.add(callspec.id.replace("-", "_"))


@pytest.hookimpl(trylast=True)  # after -k and -m have chosen
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """``--quick`` leaves every test in, and of a test with many cases a sixth: other formats for each test."""
    if not config.getoption("--quick"):
        return
    tests = Counter(_test(item) for item in items)
    left = [item for item in items if tests[_test(item)] < MANY or not crc32(item.nodeid.encode()) % KEPT]
    out = set(items) - set(left)
    items[:] = left
    config.hook.pytest_deselected(items=list(out))


def _test(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


@pytest.fixture(scope="session")
def amount(pytestconfig: pytest.Config) -> Callable[[int, int, int], int]:
    """``amount(quick, usual, nightly)``: how many random cases this run draws."""
    at = 0 if pytestconfig.getoption("--quick") else 2 if pytestconfig.getoption("--nightly") else 1
    return lambda *amounts: amounts[at]


def shared_folder(config: pytest.Config) -> Path | None:
    """The folder of real data; None if there is none."""
    given = config.getoption("--shared") or os.environ.get("CHATPARSERS_SHARED")
    folder = Path(given) if given else _TESTS.parents[1] / "shared"
    if not folder.is_dir():
        if given:
            raise pytest.UsageError(f"--shared: {folder} is no folder")
        return None
    return folder


def template_files(config: pytest.Config) -> list[Path]:
    """The real templates of all folders, sorted by name."""
    given = config.getoption("--templates")
    if given:
        folders = [Path(given)]
        if not folders[0].is_dir():
            raise pytest.UsageError(f"--templates: {given} is no folder")
    else:
        folder = shared_folder(config)
        names = ("templates", "models/templates", "templates-new")
        folders = [folder / name for name in names] if folder else []
    found = {path.name: path for at in reversed(folders) for path in at.glob("*.jinja")}
    return [found[name] for name in sorted(found)]


@pytest.fixture(scope="session")
def shared_dir(pytestconfig: pytest.Config) -> Path:
    """The folder of real data; skips the test if there is none."""
    folder = shared_folder(pytestconfig)
    if folder is None:
        pytest.skip("no real data: give --shared DIR or set CHATPARSERS_SHARED")
    return folder


@pytest.fixture(scope="session")
def real_templates(pytestconfig: pytest.Config) -> list[Path]:
    """All real templates; skips the test if there are none."""
    found = template_files(pytestconfig)
    if not found:
        pytest.skip(NO_TEMPLATES)
    return found


@pytest.fixture
def tokenizer(request: pytest.FixtureRequest) -> Callable[[str], Any]:
    """``tokenizer(name)``: a real tokenizer, loaded once in a run; skips the test if it is missing."""

    from chatparsers.testing.plugin import add_record, tokenizer_loaders

    def load(name: str) -> Any:
        loaders = tokenizer_loaders(request.config)
        if name not in loaders:
            pytest.skip(f"no real tokenizer {name!r}: give --shared DIR or set CHATPARSERS_SHARED")
        add_record(request, {"tokenizers": [name]})
        return loaders[name]()

    return load


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs a test that has an argument ``entry`` for every format with each template of its family."""
    if "entry" in metafunc.fixturenames:
        from chatparsers import get_format

        from .needle.test_matrix import entries

        only = metafunc.config.getoption("--chatparsers-format")
        chosen = [
            e for e in entries(metafunc.config) if only is None or e.format.name == get_format(only).name
        ]
        ids = [f"{entry.format.name}-{entry.path.stem}" for entry in chosen]
        # The scope puts the tests of a template one after another: it is compiled and probed once.
        metafunc.parametrize("entry", chosen, ids=ids, scope="session")
