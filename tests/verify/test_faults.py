"""Broken servers, each with one fault: the judge finds it, with the raw text and without, and charges nobody else."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="the packages of the gateway are not installed")
pytest.importorskip("httpx2", reason="the packages of the gateway are not installed")
pytest.importorskip("jsonschema", reason="the package jsonschema is not installed")

from broken import FAULTS, Fault, broken
from models import tiny
from servers import Server

from chatparsers.verify import Verdict
from chatparsers.verify.checks import CHECKS
from chatparsers.verify.plan import Plan
from chatparsers.verify.run import run


def judged(fault: Fault, *, dark: bool) -> Verdict:
    """The verdict on a server with a fault. ``dark``: it tells no raw text, as a provider does."""
    chat = tiny("qwen3").chat
    server = Server(broken(chat, fault, hidden=dark))
    apis = ("chat",) if fault.api == "chat" else ("chat", fault.api)
    try:
        return run(server.url, chat, Plan(apis, answer_tokens=600, requests=200, black_box=dark))
    finally:
        server.close()


@pytest.mark.parametrize("dark", [False, True], ids=["ids", "dark"])
def test_a_server_without_a_fault_is_charged_with_nothing(dark: bool) -> None:
    verdict = judged(Fault(()), dark=dark)
    assert not verdict.blamed("server", "likely", "unknown") and verdict
    assert verdict.facts["raw"] == ("nothing" if dark else "return_token_ids")


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("other", "dark"), [("llama-3-x", False), ("gpt-oss", True)], ids=["ids", "dark"])
def test_files_of_another_model_charge_nobody(other: str, dark: bool) -> None:
    """The server is right, and the files are another model's, by template and tokenizer."""
    server = Server(broken(tiny("qwen3").chat, Fault(()), hidden=dark))
    try:
        verdict = run(server.url, tiny(other).chat, Plan(answer_tokens=600, requests=60, black_box=dark))
    finally:
        server.close()
    assert verdict.rows[0].code == "other-model" and not verdict.blamed("server", "likely")
    assert verdict.status(strict=True) == 2 and "are these the files" in str(verdict)


WAYS = [(name, False) for name in FAULTS] + [(name, True) for name, fault in FAULTS.items() if fault.dark]


@pytest.mark.one_in(24)
@pytest.mark.parametrize(("name", "dark"), WAYS, ids=lambda value: {True: "dark", False: "ids"}.get(value))
def test_a_fault_is_found(name: str, dark: bool) -> None:
    fault = FAULTS[name]
    verdict = judged(fault, dark=dark)
    found = {row.code for row in verdict.blamed("server")}
    assert found.intersection(fault.codes), f"expected one of {fault.codes}, found {verdict.rows}"
    assert verdict.status() == 1 and not verdict


def test_the_page_has_a_section_for_each_code() -> None:
    page = Path(__file__).parents[2] / "docs" / "tables" / "verify-codes.md"
    if not page.exists():
        pytest.skip("no docs: not a checkout")
    codes = {code for check in CHECKS for code in check.codes} | {"prompt-count", "stream-differs"}
    codes |= {code for fault in FAULTS.values() for code in fault.codes}
    missing = [code for code in codes if f"\n## {code}\n" not in page.read_text(encoding="utf-8")]
    assert not missing, f"docs/tables/verify-codes.md: expected a section for {missing}"
