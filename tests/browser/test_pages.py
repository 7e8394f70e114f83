"""A real browser opens the playground, the pages that commands write, and any folder of static pages.

``tests/browser/install`` gets what they need; without it they are skipped. ``CHATPARSERS_PAGES`` names folders of
static pages, such as a built site; ``CHATPARSERS_SCREENSHOTS`` a folder for what was seen.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from looking import SIZES, Looked, browser_of, chromium, served, serving

import chatparsers
from chatparsers.cli.main import main
from chatparsers.cli.playground import server
from chatparsers.display import strip
from chatparsers.display.picture import page
from chatparsers.playground.build import build
from chatparsers.playground.examples import examples
from chatparsers.playground.reading import SECTIONS
from chatparsers.testing.tiny import tiny_model

pytest.importorskip("playwright", reason="no Playwright: tests/browser/install")
pytestmark = pytest.mark.skipif(chromium() is None, reason="no Chromium: apt-get install chromium")

ROOT = Path(__file__).parents[2]
OWN = ROOT / "tests" / "templates_own"
MODULES = Path(os.environ.get("CHATPARSERS_BROWSER", ROOT / ".browser")) / "node_modules"
SHOTS = Path(os.environ["CHATPARSERS_SCREENSHOTS"]) if "CHATPARSERS_SCREENSHOTS" in os.environ else None
PAGES = [Path(name) for name in os.environ.get("CHATPARSERS_PAGES", "").split(os.pathsep) if name]
LOOKS = [(size, scheme) for size in SIZES for scheme in ("light", "dark")]
HOSTILE = "<script>alert(1)</script><img src=//evil.example onerror=alert(1)> \x1b[31m \u202e"
PATIENCE = 180_000
"""Milliseconds for what usually takes a few seconds: other work may run beside the test."""


def installed(name: str) -> Path:
    """The folder of an npm package; skips the test without it."""
    if not (MODULES / name).is_dir():
        pytest.skip(f"no {MODULES / name}: tests/browser/install")
    return MODULES / name


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with browser_of(str(chromium())) as found:
        yield found


@pytest.fixture(scope="module")
def axe() -> str:
    return (installed("axe-core") / "axe.min.js").read_text("utf-8")


@pytest.fixture(scope="module")
def playground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("playground")
    size = build(folder, installed("pyodide"))
    assert size < 10_000_000, "so much is transferred even without compression"
    with server(folder, 0) as made, serving(made) as address:
        yield address


def ready(looked: Looked) -> None:
    looked.page.wait_for_selector("#progress[hidden]", state="attached", timeout=PATIENCE)


def read(looked: Looked, **fields: str) -> None:
    """Waits until the page has read a request with these fields."""
    for _ in range(PATIENCE // 100):
        last = json.loads(looked.page.evaluate("() => document.body.dataset.read || '{}'"))
        if last and all(last[name] == value for name, value in fields.items()):
            return
        looked.page.wait_for_timeout(100)
    pytest.fail(f"not read: {fields}; the page says {looked.page.inner_text('#state')}")


def test_the_playground_shows_an_example_before_it_is_loaded(browser: Any, playground: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    shown = context.new_page()
    shown.goto(playground)
    for name in SECTIONS:
        assert shown.inner_text(f"#s-{name}").strip(), name
    assert "get_weather" in shown.inner_text("#s-strip")
    context.close()


def test_the_playground_in_every_look(browser: Any, playground: str, axe: str) -> None:
    for size, scheme in LOOKS:
        looked = Looked(browser, playground, size, scheme).open()
        if (size, scheme) == LOOKS[0]:
            ready(looked)
            read(looked)
        looked.axe(axe)
        looked.narrow()
        if scheme == "light":
            looked.keys()
        looked.shot(SHOTS, "playground")
        assert looked.close() == [], (size, scheme)


def test_the_playground_by_keys_alone(browser: Any, playground: str) -> None:
    looked = Looked(browser, playground, "desktop").open()
    ready(looked)
    keys = looked.page.keyboard
    for example in examples()[1:]:
        looked.page.focus("#example")
        keys.press("ArrowDown")
        read(looked, output=example.asked["output"])
        for name in SECTIONS:
            assert looked.page.inner_text(f"#s-{name}").strip()
        assert looked.page.inner_text("#state").startswith("Read in")
    looked.page.focus("#upto")
    rows = "#s-timeline tbody tr:not([hidden])"
    before = looked.page.locator(rows).count()
    keys.press("ArrowLeft")
    assert looked.page.locator(rows).count() == before - 1
    looked.page.focus("#output")
    keys.press("Control+a")
    keys.insert_text(HOSTILE)
    read(looked, output=HOSTILE)
    assert "<script>alert(1)</script>" in looked.page.inner_text("#s-strip")
    assert looked.page.locator("#results script, #results img").count() == 0
    looked.page.focus("#link")
    keys.press("Enter")
    looked.page.wait_for_url("**/#*")
    address = looked.page.url
    assert looked.close() == []

    other = Looked(browser, playground, "desktop").open("#" + address.partition("#")[2])
    ready(other)
    read(other, output=HOSTILE)
    assert other.page.input_value("#output") == HOSTILE.replace("\r\n", "\n")
    assert other.close() == []


def test_a_link_of_nothing_is_told(browser: Any, playground: str) -> None:
    looked = Looked(browser, playground, "phone").open("#not-a-link")
    looked.page.get_by_text("could not be read").wait_for(timeout=PATIENCE)
    assert looked.close() == []


def test_pages_that_commands_and_notebooks_show(browser: Any, axe: str, tmp_path: Path) -> None:
    chat = chatparsers.load(OWN / "qwen3.jinja")
    tools = [{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}]
    turn = chat.prepare([{"role": "user", "content": HOSTILE}], tools=tools)
    said = f'<think>{HOSTILE * 40}</think>Hi.\n<tool_call>\n{{"name": "f", "arguments": {{"a": 1'
    (tmp_path / "out.txt").write_text(said, "utf-8")
    shown = [turn, turn.parse(said), turn.grammar(), chat.detection, chat.template().probe(), chat.format]
    cells = "".join(f"<section>{thing._repr_html_()}</section>" for thing in shown)  # type: ignore[union-attr]
    head = '<!doctype html><html lang="en"><meta charset="utf-8"><title>A notebook</title>'
    (tmp_path / "notebook.html").write_text(f"{head}<main><h1>A notebook</h1>{cells}</main>", "utf-8")
    parse = ["parse", str(tmp_path / "out.txt"), "--format", "qwen3", "--show", "--timeline", "--pieces", "7"]
    assert main([*parse, "--html", str(tmp_path / "parse.html")]) == 0
    assert main(["inspect", str(OWN / "qwen3.jinja"), "--html", str(tmp_path / "inspect.html")]) == 0
    assert main(["check", str(OWN / "qwen3.jinja"), "--html", str(tmp_path / "check.html")]) == 1
    (tmp_path / "empty.html").write_text(page("Nothing"), "utf-8")
    by_ids = turn.format.bind(tools=tools, tokenizer=tiny_model("qwen3").tokenizer)
    ids = by_ids.tokenizer.encode(said, add_special_tokens=False).ids
    tokens = strip(by_ids.parse(ids), ids=ids, turn=by_ids)
    assert all(chip.tokens for chip in tokens.chips)
    (tmp_path / "tokens.html").write_text(page("Tokens", tokens), "utf-8")
    look_at(browser, tmp_path, axe, LOOKS)


@pytest.mark.parametrize("folder", PAGES)
def test_folders_of_static_pages(folder: Path, browser: Any, axe: str, pytestconfig: pytest.Config) -> None:
    """Without a folder (``CHATPARSERS_PAGES``) this is skipped."""
    look_at(browser, folder, axe, LOOKS if pytestconfig.getoption("--nightly") else LOOKS[:1] + LOOKS[3:])


def test_what_is_wrong_is_seen(browser: Any, axe: str, tmp_path: Path) -> None:
    """The judge itself: a page with one fault of each kind."""
    (tmp_path / "index.html").write_text(
        '<!doctype html><html lang="en"><title>Wrong</title><h1>Wrong</h1><p style="color:#ccc">pale</p>'
        '<div style="width:3000px">wide</div><button onfocus="this.blur()">never</button>'
        '<button id="last" style="display:none">hidden</button><img alt="" src="http://evil.invalid/x.png">'
        "<script>console.error('planted'); fetch('missing')</script></html>",
        "utf-8",
    )
    with served(tmp_path) as address:
        looked = Looked(browser, address, "phone").open()
        looked.page.wait_for_timeout(300)
        looked.axe(axe)
        looked.narrow()
        looked.keys()
        wrong = "\n".join(looked.close())
    for said in ("console: planted", "asked another host", "404: ", "axe: color-contrast", "pixels wider"):
        assert said in wrong, said
    assert "hidden" not in wrong


def look_at(browser: Any, folder: Path, axe: str, looks: list[tuple[str, str]]) -> None:
    """Every page of a folder, in these looks."""
    wrong = []
    with served(folder) as address:
        for file in sorted(folder.rglob("*.html")):
            path = file.relative_to(folder).as_posix()
            for size, scheme in looks:
                looked = Looked(browser, address, size, scheme).open(path)
                looked.shot(SHOTS, path.removesuffix(".html").replace("/", "-"))
                looked.unfold()
                looked.axe(axe)
                looked.narrow()
                if scheme == "light":
                    looked.keys()
                wrong += [f"{path}, {size}, {scheme}: {what}" for what in looked.close()]
    assert not wrong, "\n".join(wrong)
