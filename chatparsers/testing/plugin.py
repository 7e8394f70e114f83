"""The pytest plugin: a whole matrix of tests in one line, and its table at the end of the run.

    # conftest.py
    pytest_plugins = ["chatparsers.testing"]

    # test_acme.py
    from chatparsers.testing import matrix
    test_matrix = matrix("acme", templates=["acme.jinja"])

The same without any file: ``pytest -p chatparsers.testing --pyargs chatparsers.testing.suite --chatparsers-format acme
--chatparsers-template acme.jinja``.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from ..answers.format import Format
from ..errors import UnknownFormat
from ..registry import get_format
from .entry import Entry
from .matrix import Record, feed_in_every_way, table
from .rendering import Inexpressible, cannot_show, render
from .scenarios import Scenario, scenarios

CUTS = pytest.StashKey[int]()
"""Random cuts for each case; 16 if unset."""
TOKENIZERS = pytest.StashKey[Path | None]()
"""The folder of real tokenizers, if the option is not given."""
TEMPLATES = pytest.StashKey[list[Path]]()
"""Real templates, for the tests that assign them to formats."""
_PROPERTY = "chatparsers"


def matrix(
    format: str | Format | Callable[[pytest.Config], Iterable[Entry]],
    templates: Iterable[str | Path] = (),
    cells: str | Path | None = None,
    eos_token: str | None = None,
) -> Callable[..., None]:
    """A test of every scenario that a template can show, in every way to cut it, each text once.

    ``format``: a format or its name, or a function of pytest's config that gives the entries; ``templates``: files.
    ``cells``: a file of what exists, as `exists` says it; then nothing is rendered to find that out. Files are
    relative to that of the test. ``eos_token``: what the templates write for it; None as in `Entry`. A failure tells
    the pieces with which it can be seen again, and the ``eos_token``.
    """

    def test_matrix(chatparsers_row: tuple[Entry, list[str]], request: pytest.FixtureRequest) -> None:
        entry, names = chatparsers_row
        shown = (scenario for scenario in scenarios(entry.format) if scenario.name in names)
        problems = [problem for scenario in shown for problem in _problems(request, entry, scenario)]
        if problems:
            used = f"{entry.path.name} was rendered with eos_token={entry.eos_token!r}"
            pytest.fail("\n".join([*problems, f"{used}; matrix(…, eos_token=…) sets another"]), pytrace=False)

    def entries(config: pytest.Config, folder: Path) -> list[Entry]:
        if callable(format):
            return list(format(config))
        try:
            found = get_format(format) if isinstance(format, str) else format
        except UnknownFormat as error:
            raise pytest.Collector.CollectError(f"matrix: {error}") from error
        return [Entry(found, folder / template, eos_token) for template in templates]

    def existing(entries: list[Entry], folder: Path) -> Cells:
        if cells is None:
            return exists(entries)
        pinned: Cells = json.loads((folder / cells).read_text(encoding="utf-8"))
        return pinned

    test_matrix.chatparsers_entries = entries  # type: ignore[attr-defined]
    test_matrix.chatparsers_existing = existing  # type: ignore[attr-defined]
    return test_matrix


Cells = dict[str, dict[str, str]]
"""For each format and template (`Entry.key`) its scenarios that the probe does not rule out: ``"run"``; ``"as "`` and
the template of the same format that has the same text; ``"not: "`` and why there is no text after all."""


def exists(entries: Iterable[Entry]) -> Cells:
    """What the matrix of these entries has, found by rendering all of it."""
    first: dict[object, str] = {}
    found: Cells = {}
    for entry in entries:
        cells = found[entry.key] = {}
        for scenario in scenarios(entry.format):
            if cannot_show(entry.format, entry.template(), scenario):
                continue
            try:
                case = render(entry.format, entry.template(), scenario)
            except Inexpressible as reason:
                cells[scenario.name] = "not: " + str(reason).partition(":")[0]
                continue
            owner = first.setdefault(case.key, entry.path.name)
            same = owner != entry.path.name or scenario.name in cells
            cells[scenario.name] = f"as {owner}" if same else "run"
    return found


def _problems(request: pytest.FixtureRequest, entry: Entry, scenario: Scenario) -> list[str]:
    """What is wrong with the scenario's text, in any way to cut it; first a line that names the scenario."""
    config = request.config
    record = Record(entry.format.name, entry.path.name, scenario.name, entry.real)
    try:
        try:
            case = render(entry.format, entry.template(), scenario)
        except Inexpressible as reason:
            record.skipped = str(reason)
            return []
        problems = feed_in_every_way(case, record, tokenizer_loaders(config), config.stash.get(CUTS, 16))
        if problems:
            return [f"{entry.format.name}, {entry.path.name}, {scenario.name}", *problems]
        return []
    finally:
        add_record(request, record.as_dict())


def add_record(request: pytest.FixtureRequest, record: Mapping[str, Any]) -> None:
    """Adds a line to what the summary is made of."""
    request.node.user_properties.append((_PROPERTY, dict(record)))


def tokenizer_loaders(config: pytest.Config) -> dict[str, Callable[[], Any]]:
    """The tokenizers (``NAME.json``, ``NAME.json.gz``) of the folder given, each loaded once, when asked for."""
    given = config.getoption("--chatparsers-tokenizers", default=None)
    folder = Path(given) if given else config.stash.get(TOKENIZERS, None)
    if folder is None or not folder.is_dir():
        return {}
    files = sorted(file for file in folder.iterdir() if file.name.endswith((".json", ".json.gz")))
    return {file.name.partition(".json")[0]: lambda file=file: _tokenizer(file) for file in files}  # type: ignore[misc]


@lru_cache(maxsize=16)
def _tokenizer(file: Path) -> Any:
    from tokenizers import Tokenizer

    data = file.read_bytes()
    return Tokenizer.from_str((gzip.decompress(data) if file.suffix == ".gz" else data).decode("utf-8"))


# hooks


def pytest_addoption(parser: pytest.Parser) -> None:
    """Pytest's hook: the options that choose formats and scenarios."""
    group = parser.getgroup("chatparsers", "chatparsers: formats of chat models")
    group.addoption("--chatparsers-format", metavar="NAME", help="only this format (name or alias)")
    group.addoption(
        "--chatparsers-scenario",
        metavar="NAME",
        action="append",
        default=[],
        help="only this scenario of the matrix, such as tool-auto-single; may be repeated",
    )
    group.addoption(
        "--chatparsers-template",
        metavar="FILE",
        action="append",
        default=[],
        help="a chat template for the matrix of --chatparsers-format in chatparsers.testing.suite; may be repeated",
    )
    group.addoption(
        "--chatparsers-tokenizers", metavar="DIR", help="tokenizers (.json, .json.gz) at whose tokens to cut"
    )
    group.addoption(
        "--chatparsers-matrix",
        choices=["short", "full", "none"],
        default="short",
        help="how the matrix is printed: a line for each format, or for each scenario of it",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Pytest's hook: refuses files that are not there."""
    for template in config.getoption("--chatparsers-template", default=()):
        if not Path(template).is_file():
            raise pytest.UsageError(
                f"--chatparsers-template: expected a chat template's file, found none at {template}"
            )
    folder = config.getoption("--chatparsers-tokenizers", default=None)
    if folder and not Path(folder).is_dir():
        raise pytest.UsageError(f"--chatparsers-tokenizers: expected a folder, found none at {folder}")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Pytest's hook: one test for each entry and scenario of a `matrix`."""
    entries = getattr(metafunc.function, "chatparsers_entries", None)
    if entries is None:
        return
    only = metafunc.config.getoption("--chatparsers-format")
    try:
        wanted = get_format(only).name if only else None
    except UnknownFormat as error:
        raise pytest.Collector.CollectError(f"--chatparsers-format: {error}") from None
    named = metafunc.config.getoption("--chatparsers-scenario")
    folder = Path(str(metafunc.module.__file__)).parent
    chosen = [e for e in entries(metafunc.config, folder) if wanted in (None, e.format.name)]
    names = {each.name for entry in chosen for each in scenarios(entry.format)}
    for name in (name for name in named if names and name not in names):
        message = f"--chatparsers-scenario: no scenario is named {name!r}"
        raise pytest.Collector.CollectError(f"{message}: write one of {', '.join(sorted(names))}")
    existing = metafunc.function.chatparsers_existing(chosen, folder)
    rows = []
    for entry in chosen:
        known = existing.get(entry.key) or {each.name: "run" for each in scenarios(entry.format)}
        shown = [name for name, said in known.items() if said == "run" and (not named or name in named)]
        if shown:
            rows.append(pytest.param((entry, shown), id=f"{entry.format.name}-{entry.path.stem}"))
    metafunc.parametrize("chatparsers_row", rows)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Pytest's hook: the table of formats and scenarios at the end of the run."""
    records = []
    for kind in ("passed", "failed", "skipped"):
        for report in terminalreporter.stats.get(kind, ()):
            if getattr(report, "when", "") == "call" or kind == "skipped":
                records += [
                    value for name, value in getattr(report, "user_properties", ()) if name == _PROPERTY
                ]
    cells = sorted((r for r in records if "scenario" in r), key=lambda r: (r["format"], r["template"]))
    if not records:
        return
    how = config.getoption("--chatparsers-matrix")
    if cells and how != "none":
        order = {name: place for place, name in enumerate(_order(cells))}
        terminalreporter.section("matrix: format × scenario × chunking")
        for line in table(sorted(cells, key=lambda r: order[r["scenario"]]), how == "full"):
            terminalreporter.write_line(line)
    cases = [r["case"] for r in records if "case" in r]
    if cases:
        terminalreporter.write_line(f"{len(cases)} cases of files in {sum(map(_feedings, cases))} feedings")
    templates = sorted({r["template"] for r in records if r.get("real")})
    tokenizers = sorted({name for r in records for name in r.get("tokenizers", ())})
    terminalreporter.section("real data")
    for what, names in (("templates", templates), ("tokenizers", tokenizers)):
        terminalreporter.write_line(
            f"{len(names)} real {what} used" + (f": {', '.join(names)}" if names else "")
        )


def _feedings(counts: Mapping[str, int]) -> int:
    return sum(counts.values())


def _order(cells: Iterable[Mapping[str, Any]]) -> list[str]:
    """The scenarios in the order of the definition, whichever process ran them first. Their names are the same for each
    format, and the cells' own may be registered nowhere."""
    known = [scenario.name for scenario in scenarios(get_format("content-only"))]
    return list(dict.fromkeys([*known, *(cell["scenario"] for cell in cells)]))
