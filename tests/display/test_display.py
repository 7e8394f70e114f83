"""Pictures: nothing that a model writes becomes a terminal code or markup, and all that it wrote is shown."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest

import chatparsers
from chatparsers import display
from chatparsers.chat.sample import Kind
from chatparsers.cli.main import main
from chatparsers.display.looks import LOOKS
from chatparsers.display.picture import page

OWN = Path(__file__).parents[1] / "templates_own"
TOOLS = [{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}]
HOSTILE = [
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "\r\x08\x7f\x9b2J",
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "' onmouseover='alert(1)",
    '"><svg onload=alert(1)>',
    "</div></style><style>*{display:none}",
    "\u202eevil\u2066\u200b\ufeff",
    "&lt;b&gt; &#x3c;",
    "永 😀 é",
    "\ud800",
    "]]><!--",
]


class _Markup(HTMLParser):
    """The tags and attributes of a page, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.parts: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.parts.append(data)


_TAGS = {
    "div",
    "style",
    "span",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "label",
    "input",
    "i",
    "p",
    "mark",
}
_ATTRIBUTES = {"class", "data-l", "data-n", "title", "tabindex", "style", "aria-hidden"}
_SLIDER = {"type", "min", "max", "value", "oninput"}


def _hostile(rng: random.Random, format: chatparsers.Format) -> str:
    parts = [
        *HOSTILE,
        *format.preserved_tokens,
        '{"name": "f", "arguments": {"a": "',
        '"}}',
        "f",
        "\n",
        " text ",
    ]
    return "".join(rng.choices(parts, k=12))


def test_nothing_that_is_written_comes_through(amount: Callable[[int, int, int], int]) -> None:
    rng = random.Random(7)
    infos = [info for info in chatparsers.list_formats() if info.origin == "chatparsers"]
    for _ in range(amount(20, 100, 5_000)):
        turn = rng.choice(infos).load().bind(tools=TOOLS)
        text = _hostile(rng, turn.format)
        message = turn.parse(text)
        cuts = sorted(rng.choices(range(len(text)), k=5))
        pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        other = _hostile(rng, turn.format)
        for picture in (display.strip(message), display.timeline(turn, pieces), display.drift(text, other)):
            plain = picture.text()
            assert all(c == "\n" or c.isprintable() for c in plain), repr(plain)
            codes = re.sub(r"\x1b\[(?:38;5;\d+|[07])m", "", picture.text(colour=True))
            assert "\x1b" not in codes
            markup = _Markup(picture.html())
            slider = _SLIDER if isinstance(picture, display.Timeline) else set()
            assert markup.tags <= _TAGS and markup.attributes <= _ATTRIBUTES | slider, markup.tags
        assert "".join(chip.text for chip in display.strip(message).chips) == message.text


def test_kinds_are_told_apart_without_colour() -> None:
    letters = {look.name: look.letter for look in LOOKS.values()}
    assert len(set(letters.values())) == len(letters)
    assert set(LOOKS) == set(Kind)


def test_a_picture_says_what_is_held_and_when_it_goes_out() -> None:
    turn = chatparsers.get_format("qwen3").bind(tools=TOOLS, prefix="<think>")
    steps = display.timeline(turn, ["Hm</th", "ink>Hi <tool", "s>"]).steps
    assert [step.held for step in steps] == ["</th", " <tool", "", ""] or steps[0].held == "</th"
    said = "".join(event.text for step in steps for event in step.events if hasattr(event, "text"))
    assert said == "HmHi <tools>"


def test_a_long_text_is_cut_with_a_note() -> None:
    message = chatparsers.get_format("qwen3").bind().parse("x" * 1_000_000)
    picture = display.strip(message)
    assert len(picture.html()) < 230_000 and "800,000 more characters are not shown" in picture.text()


def test_the_strip_of_a_sample_shows_its_mask() -> None:
    chat = chatparsers.load(OWN / "qwen3.jinja")
    sample = chat.encode([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}])
    picture = display.strip(sample)
    assert "".join(chip.text for chip in picture.chips) == sample.text
    shown = {(chip.kind, chip.counted) for chip in picture.chips if chip.text.strip()}
    assert (Kind.USER, False) in shown and (Kind.CONTENT, True) in shown
    assert "1 C content   Hello" in picture.text() and "Hello" in sample._repr_html_()


def test_every_format_has_a_diagram() -> None:
    pytest.importorskip("railroad")
    for info in chatparsers.list_formats():
        drawn = display.diagram(info.load())
        assert drawn.svg.startswith("<svg") and "script" not in drawn.svg
        shown = unescape(drawn.svg)
        assert "content" in shown
        assert info.name != "qwen3" or ("<tool_call>" in shown and "</think>" in shown)


def test_commands_draw(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    output = tmp_path / "out.txt"
    output.write_text("<think>Hm.</think>\x1b[2JHi <b>")
    html = tmp_path / "page.html"
    arguments = ["parse", str(output), "--format", "qwen3", "--show", "--timeline", "--pieces", "4"]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    assert "R reasoning Hm." in printed and "\x1b" not in printed
    assert main([*arguments, "--html", str(html)]) == 0
    assert "<b>" not in html.read_text("utf-8")
    assert main([*arguments, "--color", "always"]) == 0
    assert "\x1b[38;5;" in capsys.readouterr().out
    assert main(["inspect", str(OWN / "qwen3.jinja"), "--html", str(html)]) == 0
    assert "qwen3" in html.read_text("utf-8") and "<svg" in html.read_text("utf-8")
    assert main(["formats", "qwen3", "--diagram", str(tmp_path / "d.svg")]) == 0
    assert main(["formats", "qwen3"]) == 2
    assert main(["parse", str(output), "--format", "qwen3", "--html", str(html)]) == 2


def test_a_page_asks_nobody() -> None:
    message = chatparsers.get_format("qwen3").bind().parse("http://evil.example <link href=//evil.example>")
    text = page("a", display.strip(message))
    assert not re.search(r"<(?:script|link|img|iframe)|@import|url\(", text)
    assert message._repr_html_() == display.strip(message).html()
