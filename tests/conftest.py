"""Options and fixtures of all tests: the folder of real templates and tokenizers, and how long to run.

``--shared DIR`` (or ``CHATPARSERS_SHARED``, or ``../shared`` if it exists) has ``templates/`` and ``tokenizers/``. A
llama.cpp checkout works too; its templates are in ``models/templates/``.
"""

from __future__ import annotations

import gc
import os
import re
import sys
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from chatparsers import CORE

from .draw import Draw

_TESTS = Path(__file__).parent
for _folder in (
    "browser",
    "common",
    "core",
    "data",
    "doctor",
    "gateway",
    "grammar",
    "hosts",
    "interop",
    "real",
    "storage",
    "verify",
):
    sys.path.insert(0, str(_TESTS / _folder))  # what its tests share is imported as plain modules
sys.path.insert(0, str(_TESTS.parent / "docs" / "tables"))  # and the scripts that write the tables

# pytest itself must import this first, so that its asserts show the compared values.
pytest_plugins = ["chatparsers.testing", "grammar_report"]

NO_TEMPLATES = "no real templates: give --shared DIR or --templates DIR, or set CHATPARSERS_SHARED"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("chatparsers")
    group.addoption(
        "--shared", metavar="DIR", help="folder with templates/ and tokenizers/, or a llama.cpp checkout"
    )
    group.addoption("--templates", metavar="DIR", help="folder of real chat templates (*.jinja)")
    group.addoption("--quick", action="store_true", help="for half a minute: the fewest cases, no slow test")
    group.addoption(
        "--of-the-folder", action="store_true", help="only tests that read the folder of real data"
    )
    group.addoption(
        "--whole", action="store_true", help="all cases of each test; CHATPARSERS_WHOLE=1 does the same"
    )
    group.addoption("--nightly", action="store_true", help="all cases, and ten times as many random ones")
    group.addoption("--draw", metavar="SEED", help="which cases run of tests with many: else by the commit")
    group.addoption(
        "--update-goldens", action="store_true", help="rewrite the golden cases: then read the diff"
    )


def pytest_configure(config: pytest.Config) -> None:
    from hypothesis import settings

    from chatparsers.testing.plugin import CUTS, TEMPLATES, TOKENIZERS

    # A busy machine fails no test, and the same code has the same cases. Nightly runs draw new ones.
    settings.register_profile(
        "usual",
        deadline=None,
        derandomize=not config.getoption("--nightly"),
        max_examples=(50, 100, 1000)[_size(config)],
    )
    settings.load_profile("usual")
    config.addinivalue_line(
        "markers",
        "one_in(number, quick): usually one case in so many runs, with --quick another one; 1: all cases always run",
    )
    config.addinivalue_line("markers", "slow: does not run with --quick")
    config.addinivalue_line(
        "markers", "nightly: starts processes that only --nightly needs, or whoever names it"
    )
    config.addinivalue_line(
        "markers", "of_the_folder: reads the folder of real data, by no fixture that says so"
    )
    config.addinivalue_line("markers", "pure: counts or replaces steps that a compiled core does not show")
    if os.environ.get("CHATPARSERS_WHOLE"):
        config.option.whole = True
    sent = getattr(config, "workerinput", {}).get("draw")
    config.stash[DRAW] = Draw(*sent) if sent else Draw.of_checkout(config.getoption("--draw"))
    folder = shared_folder(config)
    tokenizers = folder and not config.getoption("--quick")  # loading them takes seconds
    config.stash[FOLDER] = (folder / "tokenizers" if folder and tokenizers else None, template_files(config))
    config.stash[TOKENIZERS], config.stash[TEMPLATES] = config.stash[FOLDER]
    config.stash[CUTS] = (8, 16, 2000)[_size(config)]


def pytest_report_header(config: pytest.Config) -> str:
    """Which cases this run draws, and how to draw them again."""
    return f"cases of tests with many: {config.stash[DRAW]}"


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """pytest-xdist's processes draw as the one that starts them."""
    node.workerinput["draw"] = tuple(node.config.stash[DRAW])


def _size(config: pytest.Config) -> int:
    """0: usual, 1: all cases, 2: nightly."""
    return 2 if config.getoption("--nightly") else 1 if config.getoption("--whole") else 0


MANY, ONE_IN = 20, 96
"""Of a test over so many formats or templates or more, usually one case in so many runs. Tables of cases run whole."""
QUICKER = 4
"""With ``--quick`` one in so many of these."""
LEFT_OUT, DRAW = pytest.StashKey[str](), pytest.StashKey[Draw]()
FOLDER = pytest.StashKey[tuple[Path | None, list[Path]]]()
"""The tokenizers and templates of the folder of real data."""
READERS = ("shared_dir", "real_templates", "tokenizer", "shared_folder_or_none", "real", "any_tokenizer")
"""The fixtures that read it."""
TOGETHER = {
    "tests/ids/": "all real tokenizers",
    "tests/tokens/": "all real tokenizers",
    "tests/gateway/test_hostile.py": "all real tokenizers",
    "tests/needle/test_matrix.py::test_matrix": "all real tokenizers",
    "tests/serving/test_clients.py": "clients of the companies",
    "tests/gateway/test_clients.py": "clients of the companies",
    "tests/gateway/test_faults.py": "clients of the companies",
    "tests/gateway/test_probable.py": "clients of the companies",
}
"""What loads for seconds, so that the tests of these folders and files share one process."""


def pytest_itemcollected(item: pytest.Item) -> None:
    """``-k qwen3_coder`` finds what ``-k qwen3-coder`` finds: the name of a format's module is as good as its own."""
    callspec = getattr(item, "callspec", None)
    if callspec is not None:
        item.extra_keyword_matches |= {callspec.id.replace("-", "_"), callspec.id.replace("_", "-")}


@cache
def _names() -> re.Pattern[str]:
    """Finds the name of a format at the start of a case, the longest that fits."""
    from chatparsers import list_formats

    names = sorted((info.name for info in list_formats()), key=len, reverse=True)
    return re.compile(f"({'|'.join(map(re.escape, names))})[-\\]]")


def _format_of(nodeid: str) -> str | None:
    """The format with whose name a test's case begins."""
    found = _names().match(f"{nodeid.partition('[')[2]}-")
    return found[1] if found else None


def _over_formats(item: pytest.Item) -> bool:
    values = item.callspec.params.values()  # type: ignore[attr-defined]
    templates = (isinstance(value, (str, Path)) and str(value).endswith(".jinja") for value in values)
    return any(templates) or _format_of(item.nodeid) is not None


@pytest.hookimpl(trylast=True)  # after -k and -m have chosen
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves a part of the cases of each test over formats or templates: other ones for each and with each commit.

    All cases run of what differs (`draw`), and where cases are named, by ``-k``, ``--chatparsers-format`` or
    ``file::test``.
    """
    if CORE != "pure":
        for item in items:
            if item.get_closest_marker("pure"):
                item.add_marker(pytest.mark.skip(reason="the core is compiled: CHATPARSERS_PURE=1 runs it"))
    draw, quick = config.stash[DRAW], config.getoption("--quick")
    named = config.getoption("-k") or config.getoption("--chatparsers-format") or "::" in "".join(config.args)
    every = _size(config) or named or config.getoption("--update-goldens")
    apart = [] if config.getoption("--nightly") else ["nightly"] * (not named) + ["slow"] * quick
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if not any(map(item.get_closest_marker, apart)):
            cases[item.nodeid.partition("[")[0]].append(item)
    kept: set[pytest.Item] = set()
    for found in cases.values():
        share = 1 if not quick and every else _share(found, quick)
        kept.update(draw.some(found, _nodeid, -(-len(found) // share)))
        if not quick:
            kept.update(item for item in found if _format_of(item.nodeid) in draw.whole)
    if config.getoption("--of-the-folder"):
        kept = set(filter(_of_the_folder, kept))
    out = [item for item in items if item not in kept]
    if out:
        marked = len(items) - sum(map(len, cases.values()))
        tests = f" and {marked} of tests marked {' or '.join(apart)}" if marked else ""
        many = f"left out {len(out) - marked} of tests with many (--whole runs them){tests}"
        config.stash[LEFT_OUT] = f"{len(items)} cases: {many}"
        config.hook.pytest_deselected(items=out)
    items[:] = [item for item in items if item in kept]


def _of_the_folder(item: pytest.Item) -> bool:
    """Whether the test reads the folder of real data, or is another one where there is none."""
    if item.get_closest_marker("of_the_folder") or not set(READERS).isdisjoint(item.fixturenames):  # type: ignore[attr-defined]
        return True
    callspec = getattr(item, "callspec", None)
    paths = [getattr(value, "path", value) for value in callspec.params.values()] if callspec else []
    return any(isinstance(path, Path) and _TESTS.parent not in path.parents for path in paths)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Every other test does not see the folder. So it does the same where there is none, and `.ci/run` runs it once."""
    from chatparsers.testing.plugin import TEMPLATES, TOKENIZERS

    stash = item.config.stash
    stash[TOKENIZERS], stash[TEMPLATES] = stash[FOLDER] if _of_the_folder(item) else (None, [])


def _nodeid(item: pytest.Item) -> str:
    return item.nodeid


def _share(cases: list[pytest.Item], quick: bool) -> int:
    """One in so many of the cases of a test runs."""
    mark = cases[0].get_closest_marker("one_in")
    many = len(cases) >= MANY
    share: int = mark.args[0] if mark else ONE_IN if many and _over_formats(cases[0]) else 1
    if not quick:
        return share
    quicker: int = mark.kwargs.get("quick", 0) if mark else 0
    return quicker or (share * QUICKER if share > 1 and many else share)


def pytest_collection() -> None:
    gc.disable()  # all that is made now lives as long as the run


def pytest_collection_finish() -> None:
    """The collector need not look again and again at what lives as long as the run: a tenth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Of pytest-xdist's processes each collects; what it left out is told by the one that prints."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left out"] = session.config.stash.get(LEFT_OUT, "")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """All cases of a format run in one process, which compiles it once; so does what else is in a file, and what needs
    the same slow things."""
    if config.getoption("dist") != "load":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class ByFormat(LoadScopeScheduling):  # type: ignore[misc]  # it has no types
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("[")[0]
            for start, scope in TOGETHER.items():
                if file.startswith(start):
                    return scope
            return _format_of(nodeid) or file.split("::")[0]

    return ByFormat(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    node.config.stash[LEFT_OUT] = getattr(node, "workeroutput", {}).get("left out", "")


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if config.stash.get(LEFT_OUT, ""):
        terminalreporter.section("left out")
        terminalreporter.write_line(f"{config.stash[LEFT_OUT]}; {config.stash[DRAW]}")


@pytest.fixture(scope="session")
def drawn(pytestconfig: pytest.Config) -> Draw:
    """What is drawn where a test tries some of many."""
    return pytestconfig.stash[DRAW]


@pytest.fixture(scope="session")
def amount(pytestconfig: pytest.Config) -> Callable[[int, int, int], int]:
    """``amount(usual, whole, nightly)``: how many random cases this run draws."""
    return lambda *amounts: amounts[_size(pytestconfig)]


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
def openai() -> Any:
    """The SDK of OpenAI; skips the test if it is not installed. It loads for a second, so no file imports it."""
    return pytest.importorskip("openai", reason="the package openai is not installed")


@pytest.fixture(scope="session")
def anthropic() -> Any:
    """The SDK of Anthropic; skips the test if it is not installed."""
    return pytest.importorskip("anthropic", reason="the package anthropic is not installed")


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
    """Runs a test that has an argument ``entry`` for every format with each template of its family; ``own_entry``, with
    our own; ``real_entry``, with the real ones."""
    name = next(
        (name for name in ("entry", "own_entry", "real_entry") if name in metafunc.fixturenames), None
    )
    if name is not None:
        from chatparsers import get_format

        from .needle.test_matrix import entries

        only = metafunc.config.getoption("--chatparsers-format")
        chosen = [
            e
            for e in entries(metafunc.config)
            if (only is None or e.format.name == get_format(only).name)
            and (name == "entry" or e.real == (name == "real_entry"))
        ]
        ids = [f"{entry.format.name}-{entry.path.stem}" for entry in chosen]
        # The scope puts the tests of a template one after another: it is compiled and probed once.
        metafunc.parametrize(name, chosen, ids=ids, scope="session")
