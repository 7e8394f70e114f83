"""Each check finds its own fault in templates that are fine, and finds nothing else there."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from faults import DETECTED, FAULTS, FINE, FOLDERS, Fault, Folder, files, format_of, source, written

import chatparsers
import chatparsers.doctor.check
from chatparsers.doctor import grammar, masks
from chatparsers.doctor.check import CHECKS
from chatparsers.streams.message import Message

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
OURS = {"mask-counts-context", "grammar-not-read", "engine-refuses-call", "renders-otherwise"}
"""Codes of faults of our own, an engine's or a renderer's, which no edit of a template shows."""


@lru_cache(maxsize=32)
def _fine(name: str, only: tuple[str, ...], **options: Any) -> set[str]:
    return set(chatparsers.check(source(name), format=format_of(name), only=only, **options).codes())


@pytest.mark.one_in(12)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.code)
def test_a_fault_is_found_and_nothing_else(fault: Fault, amount: Callable[[int, int, int], int]) -> None:
    """Of the fault's own check in a quick run, of all checks otherwise."""
    only = (fault.check,) if amount(1, 0, 0) else ()
    tried = 0
    for name in fault.on or FINE:
        before = _fine(name, only)
        if fault.code in before or tried == amount(1, 1, 10):
            continue
        tried += 1
        options = {"format": format_of(name), **fault.options}
        after = chatparsers.check(fault.edit(source(name)), only=only, **options)
        assert fault.code in after.codes(), f"{name}: {after}"
        allowed = (fault.code, *fault.also)
        new = {code for code in set(after.codes()) - before if not code.startswith(allowed)}
        assert not new, f"{name}: {after}"
        found = next(finding for finding in after.findings if finding.code == fault.code)
        assert found.message and found.mend and (found.witness or fault.code == "no-generation-tags")
    assert tried, "expected a template without this fault"


@pytest.mark.parametrize("fault", DETECTED, ids=lambda fault: fault.code)
def test_a_format_that_is_not_known(fault: Fault) -> None:
    only = (fault.check,)
    for name in fault.on:
        assert fault.code not in chatparsers.check(source(name), only=only).codes()
        assert fault.code in chatparsers.check(fault.edit(source(name)), only=only).codes()


@pytest.mark.parametrize("fault", FOLDERS, ids=lambda fault: fault.code)
def test_a_fault_of_a_models_files(fault: Folder, tmp_path: Path) -> None:
    codes = []
    for name, made in (("fine", fault.fine), ("bad", fault.made)):
        folder = written(tmp_path / name, made())
        codes.append(set(chatparsers.check(folder, only=[fault.check]).codes()))
    assert fault.code in codes[1] - codes[0]


def test_faults_of_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mask that counts the prompt, and a grammar that generates what is not read, are errors of the report."""
    template = source("hermes-2-pro")

    def everything(model: Any, messages: Any, **options: Any) -> Any:
        sample = real(model, messages, **options)
        sample._columns["loss_mask"] = array("b", b"\x01" * len(sample))
        return sample

    real = masks.sampled
    monkeypatch.setattr(masks, "sampled", everything)
    monkeypatch.setattr(
        grammar, "_wrong", lambda message, model: "seeded" if isinstance(message, Message) else ""
    )
    codes = chatparsers.check(template, format="hermes-2-pro", only=["masks", "grammar"]).codes()
    assert {"mask-counts-context", "grammar-not-read"} <= set(codes)


def test_an_engine_that_refuses_a_call(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An engine that takes every id but that of a marker in the call."""
    chat = chatparsers.load(written(tmp_path, files()))
    refused = chat.tokenizer.token_to_id("</tool_call>")
    for taken in (True, False):
        guide = SimpleNamespace(
            accepts=lambda ids, taken=taken: len(ids) if taken else ids.index(refused), ended=True, size=1
        )
        guide.fork = lambda guide=guide: guide
        monkeypatch.setattr(chatparsers.Turn, "guide", lambda *_, guide=guide: guide)
        report = chatparsers.doctor.check.examined(chat, only=["grammar"], samples=1)
        assert ("engine-refuses-call" in report.codes()) is not taken


def _codes() -> Iterator[str]:
    for path in (Path(chatparsers.__file__).parent / "doctor").glob("*.py"):
        if path.name == "document.py":
            continue  # of another command, and another page
        text = path.read_text(encoding="utf-8")
        yield from re.findall(r'Finding\(\s*"([\w-]+)"', text)
        if path.name == "history.py":
            yield from (
                f"loses-{part}" for part in re.findall(r'^    \("\w+", "([\w-]+)", "', text, re.MULTILINE)
            )
            yield from re.findall(r'\("(loses-[\w-]+)", "', text)
        if path.name == "prompt.py":
            yield from re.findall(r'"(prompt-(?:refused|unknown-variable))"', text)


def test_every_code_has_a_fault_and_its_section_in_the_page() -> None:
    docs = Path(__file__).parents[2] / "docs"
    page = (docs / "tables" / "findings.md").read_text(encoding="utf-8")
    codes = set(_codes())
    assert {"stop-differs", "loses-calls", "loses-escapes", "prompt-refused"} <= codes
    missing = [code for code in sorted(codes) if f"## {code}\n" not in page]
    assert not missing, "docs/tables/findings.md: expected a section for each code"
    assert all(f"| `{name}` |" in (docs / "check.md").read_text(encoding="utf-8") for name in CHECKS)
    seeded = {fault.code for fault in (*FAULTS, *DETECTED, *FOLDERS)}
    assert codes - seeded == OURS, "expected a fault for each code"


def test_a_plugin_adds_a_check(monkeypatch: pytest.MonkeyPatch) -> None:
    from chatparsers import plugins

    def mine(model: Any) -> Any:
        yield chatparsers.Finding(
            "acme-short", "note", "the template is short", str(len(model.template.source))
        )

    def broken(model: Any) -> Any:
        yield from ()
        raise KeyError("mistake")

    checks = [("acme", mine), ("acme-broken", broken)]
    monkeypatch.setattr(plugins.Plugins, "checks", lambda self: iter(checks))
    report = chatparsers.check("{{ messages[0].content }}")
    assert "acme-short" in report.codes() and report.skipped[-1] == ("acme-broken", "KeyError: 'mistake'")
