"""Looks at static pages with a real Chromium: what its console says, whom it asks, what axe finds, what keys reach."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

SIZES = {"phone": (400, 800), "desktop": (1200, 900)}
_CHECK = """
async (source) => {
  if (!window.axe) (0, eval)(source);
  const found = await axe.run(document, { resultTypes: ["violations"] });
  return found.violations.filter((each) => ["serious", "critical"].includes(each.impact))
    .map((each) => `${each.id}: ${each.help}: ${each.nodes.slice(0, 3).map((node) => node.target.join(" "))}`);
}
"""
_STOPS = """
() => document.querySelectorAll("a[href], button, input, select, textarea, summary, pre, [tabindex='0']").length
"""
_WAITING = """
() => [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")]
  .filter((each) => each.checkVisibility({ visibilityProperty: true, opacityProperty: true })
    && !each.disabled && each.tabIndex >= 0 && !each.closest("[inert], [hidden]"))
  .map((each) => {
    each.addEventListener("focus", () => { each.dataset.reached = ""; });
    each.dataset.stop = "";
    return 1;
  }).length
"""
_MISSED = """
() => [...document.querySelectorAll("[data-stop]:not([data-reached])")].map((each) => each.outerHTML.slice(0, 80))
"""
_WIDE = "() => document.scrollingElement.scrollWidth - document.documentElement.clientWidth"


def chromium() -> str | None:
    """The browser's path; None if there is none."""
    named = os.environ.get("CHATPARSERS_CHROMIUM")
    return named or next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )


@contextmanager
def browser_of(path: str) -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a plain server of static files."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            pass

    made = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    with made, serving(made) as address:
        yield address


@contextmanager
def serving(server: ThreadingHTTPServer) -> Iterator[str]:
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        thread.join()


class Looked:
    """A page in one size and one scheme, and all that was wrong with it."""

    def __init__(self, browser: Any, address: str, size: str, scheme: str = "light") -> None:
        wide, high = SIZES[size]
        self.page = browser.new_page(viewport={"width": wide, "height": high}, color_scheme=scheme)
        self.address, self.name = address, f"{size}-{scheme}"
        self.wrong: list[str] = []
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.wrong.append(f"error on the page: {error}"))
        self.page.on("request", self._asked)
        self.page.on("response", self._answered)

    def open(self, path: str = "") -> Looked:
        self.page.goto(self.address + path, wait_until="load")
        return self

    def unfold(self) -> None:
        """Opens all that is folded away, so that it is looked at too."""
        self.page.evaluate(
            "() => document.querySelectorAll('details').forEach((each) => { each.open = true; })"
        )

    def axe(self, source: str) -> None:
        """Notes what the checker of accessibility calls serious or critical."""
        self.wrong += [f"axe: {found}" for found in self.page.evaluate(_CHECK, source)]

    def narrow(self) -> None:
        """Notes a page that is wider than its window."""
        over = self.page.evaluate(_WIDE)
        self.wrong += [f"the page is {over} pixels wider than its window"] if over > 0 else []

    def keys(self, most: int = 400) -> None:
        """Notes what the Tab key does not reach, of all that can be used; a page with more than ``most`` is left."""
        self.page.evaluate("() => { document.activeElement?.blur(); window.scrollTo(0, 0); }")
        stops = self.page.evaluate(_WAITING)
        if stops >= most:
            return
        missed = []
        presses = self.page.evaluate(_STOPS) // 2 + 5  # what is not seen yet, or scrolls, is a stop as well
        for _ in range(3):
            for _ in range(presses):
                self.page.keyboard.press("Tab")
            missed = self.page.evaluate(_MISSED)
            if not missed:
                break
        self.wrong += [f"no key reaches {what}" for what in missed[:5]]

    def shot(self, folder: Path | None, name: str) -> None:
        """Writes a screenshot for a person."""
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            self.page.evaluate("() => { document.activeElement?.blur(); window.scrollTo(0, 0); }")
            self.page.screenshot(path=folder / f"{name}-{self.name}.png", full_page=True)

    def close(self) -> list[str]:
        self.page.close()
        return self.wrong

    def _console(self, message: Any) -> None:
        icon = str(message.location.get("url", "")).endswith("/favicon.ico")  # browsers ask by themselves
        if message.type in ("error", "warning") and not icon:
            self.wrong.append(f"console: {message.text}")

    def _asked(self, request: Any) -> None:
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.wrong.append(f"asked another host: {request.url}")

    def _answered(self, response: Any) -> None:
        if response.status >= 400 and not response.url.endswith("/favicon.ico"):
            self.wrong.append(f"{response.status}: {response.url}")
