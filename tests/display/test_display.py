"""Pictures: nothing that a model writes becomes a terminal code or markup, and all that it wrote is shown."""

from __future__ import annotations

import copy
import io
import os
import pickle
import random
import re
from collections.abc import Callable
from html import escape, unescape
from html.parser import HTMLParser
from itertools import combinations, pairwise
from pathlib import Path

import pytest

import chatparsers
from chatparsers import display
from chatparsers.chat.sample import Kind
from chatparsers.cli.main import main
from chatparsers.detection.analysis import analyse
from chatparsers.display.looks import LOOKS, ORIGINS, columns, for_terminal
from chatparsers.display.picture import page
from chatparsers.plain import wants_colour
from chatparsers.testing.tiny import tiny_model

OWN = Path(__file__).parents[1] / "templates_own"
DOCS = Path(__file__).parents[2] / "docs"
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
    "u",
    "p",
    "ul",
    "li",
    "mark",
    "details",
    "summary",
}
_ATTRIBUTES = {"class", "data-l", "data-n", "title", "tabindex", "style", "aria-hidden", "aria-label", "open"}
_ATTRIBUTES |= {"role", "scope"}
_DRAWN = {"svg", "title", "style", "rect", "path", "text"}
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
    tokenizer = tiny_model("qwen3").tokenizer
    by_ids = chatparsers.get_format("qwen3").bind(tools=TOOLS, tokenizer=tokenizer)
    for _ in range(amount(20, 100, 5_000)):
        turn = rng.choice(infos).load().bind(tools=TOOLS)
        text = _hostile(rng, turn.format)
        message = turn.parse(text)
        cuts = sorted(rng.choices(range(len(text)), k=5))
        pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        other = _hostile(rng, turn.format)
        ids = tokenizer.encode(other.replace("\ud800", ""), add_special_tokens=False).ids
        timeline = display.timeline(turn, pieces)
        assert _Markup(timeline.svg(text)).tags <= _DRAWN
        prompted = turn.format.bind(tools=TOOLS, prompt=text)
        tokens = display.strip(by_ids.parse(ids), ids=ids, turn=by_ids)
        assert all(chip.tokens for chip in tokens.chips)
        pictures = (
            display.strip(message, turn=turn),
            timeline,
            display.drift(text, other),
            display.show(prompted),
            tokens,
        )
        for picture in pictures:
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


def test_wide_letters_stay_in_line() -> None:
    """The arrows of a timeline stand below one another, and the boxes of a drawing side by side."""
    turn = chatparsers.get_format("qwen3").bind(tools=TOOLS, prefix="<think>")
    timeline = display.timeline(turn, ["永遠に", "😀 ok", "e\u0301t\u00e9", "plain", "</think>永"])
    arrows = {columns(line.partition("→")[0]) for line in timeline.text().splitlines()}
    assert arrows == {columns("</think>永") + 2}
    drawn = re.findall(r'<rect x="([\d.]+)" y="20" width="([\d.]+)"', display.strip(timeline.message).svg())
    assert len(drawn) == 3
    for (x, wide), (next_x, _) in pairwise(drawn):
        assert float(x) + float(wide) == pytest.approx(float(next_x), abs=0.1)
    assert columns("永😀") == 4 and columns("e\u0301") == 1


def test_colours_are_wanted_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(os, "name", "posix")
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    assert wants_colour(Terminal()) and not wants_colour(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not wants_colour(Terminal()) and wants_colour(Terminal(), "always")
    monkeypatch.setenv("NO_COLOR", "")  # an empty one says nothing: no-color.org
    assert wants_colour(Terminal()) and not wants_colour(Terminal(), "never")
    monkeypatch.setenv("TERM", "dumb")
    assert not wants_colour(Terminal()) and wants_colour(Terminal(), "always")


def test_a_picture_says_what_is_held_and_when_it_goes_out() -> None:
    turn = chatparsers.get_format("qwen3").bind(tools=TOOLS, prefix="<think>")
    steps = display.timeline(turn, ["Hm</th", "ink>Hi <tool", "s>"]).steps
    assert [step.held for step in steps] == ["</th", " <tool", "", ""] or steps[0].held == "</th"
    said = "".join(event.text for step in steps for event in step.events if hasattr(event, "text"))
    assert said == "HmHi <tools>"


def test_a_long_text_is_cut_with_a_note_and_a_long_thought_folded() -> None:
    text = f"<think>{'mused ' * 1_000}end</think>Hi"
    html = display.strip(chatparsers.get_format("qwen3").bind().parse(text)).html()
    assert "more characters</summary>" in html
    shown = "".join(_Markup(html.partition("every part")[0]).parts)
    assert re.sub(r"[\d,]+ more characters", "", shown).count("mused ") == 1_000
    turn = chatparsers.get_format("qwen3").bind(tokenizer=tiny_model("qwen3").tokenizer)
    picture = display.strip(turn.parse("x" * 1_000_000))
    assert len(picture.html()) < 230_000 and "800,000 more characters are not shown" in picture.text()
    ids = turn.tokenizer.encode("word \n" * 60_000).ids
    picture = display.strip(turn.parse(ids), ids=ids, turn=turn)
    assert len(picture.html()) < 1_000_000
    assert re.search(r"from token 4,000 on.*; … [\d,]+ more tokens are not shown", picture.text())


def test_each_token_tells_its_id_span_region_and_state() -> None:
    tokenizer = tiny_model("qwen3").tokenizer
    turn = chatparsers.get_format("qwen3").bind(tools=TOOLS, tokenizer=tokenizer, prefix="<think>")
    text = 'Hm😀.</think>Hi\n<tool_call>\n{"name": "f", "arguments": {"a": "b"}}\n</tool_call><|im_end|>'
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    picture = display.strip(turn.parse(ids), ids=ids, turn=turn)
    tokens = [(token, chip) for chip in picture.chips for token in chip.tokens]
    assert [token.id for token, _ in tokens] == ids == [id for chip in picture.chips for id in chip.ids]
    assert all(text[slice(*token.span)] == token.text for token, _ in tokens)
    assert {chip.kind for _, chip in tokens} >= {Kind.REASONING, Kind.CONTENT, Kind.CALL, Kind.ARGUMENT}
    states = {token.text: token.state for token, _ in tokens}
    argument = next(token.place for token, chip in tokens if chip.kind == Kind.ARGUMENT)
    assert states["i"] == "known at once" and states["<tool_call>"] == f"held until token {argument}"
    assert states[""] == "no whole character yet"
    spans = {token.text: token.span for token, _ in tokens}
    (close,) = tokenizer.encode("</think>", add_special_tokens=False).ids
    start, end = spans["</think>"]
    said = f"id {close}, token {ids.index(close)}, characters {start} to {end}, markup, {states['</think>']}"
    assert f'<i title="{said}">' in picture.html()


def test_each_part_of_a_text_tells_how_long_it_is_held() -> None:
    turn = chatparsers.get_format("qwen3").bind(tools=TOOLS, prefix="<think>")
    text = 'Hm.</think>Hi\n<tool_call>\n{"name": "f", "arguments": {"a": "b"}}\n</tool_call><tool'
    stream, known = turn.stream(), list[int]()
    for place, character in enumerate(text):  # as `message` says it: what belongs to a region is known
        stream.feed(character)
        known += [place] * (max((region.end for region in stream.message.regions), default=0) - len(known))
    states = {}
    for chip in display.strip(turn.parse(text), turn=turn).chips:
        start, end = chip.span
        held = (
            max(out - place for place, out in enumerate(known[start:end], start)) if end <= len(known) else -1
        )
        states[chip.text] = chip.state
        said = {-1: "held until the end", 0: "known at once", 1: "held for up to 1 character"}
        assert chip.state == said.get(held, f"held for up to {held} characters"), chip
        assert chip.state in chip.tip
    assert states["Hi"] == "known at once" and states["</think>"] == "held for up to 7 characters"
    assert states["}\n</tool_call><tool"] == "held until the end"
    assert not display.strip(turn.parse(text), turn=turn.format.bind()).chips[0].state, "read in another way"


def test_a_diagnostic_is_marked_at_its_place() -> None:
    """Where it is: in a folded text, in a token, after the last character."""
    tokenizer = tiny_model("qwen3").tokenizer
    turn = chatparsers.get_format("qwen3").bind(tools=TOOLS, tokenizer=tokenizer)
    call = '<tool_call>\n{"name": "%s", "arguments": {"a": "b"}}\n</tool_call>\n'
    cut_off = '<tool_call>\n{"name": "f", "arguments": {"a": "b'
    text = f"{'Hi ' * 400}</think>{'you ' * 800}\n{call % 'g'}{call % 'h'}{cut_off}"
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    for picture in (display.strip(turn.parse(text)), display.strip(turn.parse(ids), ids=ids, turn=turn)):
        html = picture.html()
        assert len(picture.notes) == 4 and picture.notes[-1][0] == len(text)
        for number, (place, note) in enumerate(picture.notes, 1):
            before, _, after = html.partition(f'data-l="!{number}" title="{escape(for_terminal(note))}"')
            shown = "".join(_Markup(before.partition('<div class="chips">')[2] + ">").parts)
            assert re.sub(r"[\d,]+ more (characters|tokens)", "", shown) == text[:place] and after
            assert f"!{number} character {place}: {escape(note)}" in html
        lines = picture.text().splitlines()
        assert "unknown-tool" in lines[lines.index("N call      g") - 1]


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
        _, _, wide, high = map(float, re.findall(r"[\d.]+", drawn.svg.partition("viewBox=")[2])[:4])
        assert wide < 800, "a line that is too long goes on below"
        places = [dict(re.findall(r'(\w+)="([\d.]+)"', rect)) for rect in re.findall("<rect .*?>", drawn.svg)]
        boxes = [(float(at["x"]), float(at["y"]), float(at["width"]), float(at["height"])) for at in places]
        assert all(x + w < wide and y + h < high for x, y, w, h in boxes), info.name
        for (x, y, w, h), (x_2, y_2, w_2, h_2) in combinations(boxes, 2):
            assert x + w <= x_2 or x_2 + w_2 <= x or y + h <= y_2 or y_2 + h_2 <= y, info.name
        shown = unescape(drawn.svg)
        assert "content" in shown
        assert "p." not in drawn.line, "a builder's call is no word of a diagram"
        if info.format().features.tools:
            assert "name" in drawn.line and ("arguments" in drawn.line or "value" in drawn.line), drawn.line
        if info.name == "qwen3":
            assert "<tool_call>" in shown and "</think>" in shown
            assert ":␣<" in shown, "a space at a border is drawn"
            assert "root ::=" in drawn.html()


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
    lines = tmp_path / "out.jsonl"
    lines.write_text('"Hi"\n\n"<think>Hm.</think>\\u001b[2J<tool_call>"\n' + '"x"\n' * 200)
    assert main(["parse", str(lines), "--format", "qwen3", "--show", "--html", str(html)]) == 0
    listed = html.read_text("utf-8")
    assert '<li><a href="#part-2">line 3: reasoning, content' in listed and '<h2 id="part-2">line 3' in listed
    assert listed.count("<h2") == 201 and "2 more outputs are not shown</h2>" in listed
    assert main(["parse", str(lines), "--format", "qwen3", "--show"]) == 0
    assert "line 1: content\n\nC content   Hi\n\nline 3" in capsys.readouterr().out
    assert main([*arguments, "--color", "always"]) == 0
    assert "\x1b[38;5;" in capsys.readouterr().out
    assert main(["inspect", str(OWN / "qwen3.jinja"), "--html", str(html)]) == 0
    assert "qwen3" in html.read_text("utf-8") and "<svg" in html.read_text("utf-8")
    strange = tmp_path / "strange.jinja"
    strange.write_text((OWN / "hermes-2-pro.jinja").read_text("utf-8").replace("tool_call>", "act>"))
    assert main(["inspect", str(strange), "--html", str(html)]) == 0
    assert "a format by analysis" in html.read_text("utf-8") and "&lt;act&gt;" in html.read_text("utf-8")
    assert main(["formats", "qwen3", "--diagram", str(tmp_path / "d.svg")]) == 0
    assert main(["formats", "qwen3"]) == 2
    assert main(["parse", str(output), "--model", "qwen3", "--as", "html"]) == 0
    assert "<b>" not in capsys.readouterr().out


def test_what_notebooks_show() -> None:
    source = (OWN / "qwen3.jinja").read_text("utf-8")
    chat = chatparsers.load(source, format="auto")
    turn = chat.prepare([{"role": "user", "content": "Hi"}], tools=TOOLS)
    call = '<tool_call>\n{"name": "get_weather", "arguments": {}}\n</tool_call>'
    shown = {
        "an answer": chatparsers.detect(source),
        "<tool_call>": analyse(chat.template()).analysis,
        "enable_thinking": chat.template().probe(),
        "switched on by": turn.grammar(),
        "Hi": turn,
        "R reasoning": turn.parse("<think>Hm</think>"),
        "what the template shows": chat,
        "warning: loses-tools": chatparsers.check(
            "{% for m in messages %}{{ m.content }}{% endfor %}", only=["loses"]
        ),
        "call 0: get_weather": turn.parse(call).tool_calls[0],
    }
    for said, thing in shown.items():
        picture = display.show(thing)
        assert said in picture.text()
        assert thing is not None and thing._repr_html_() == picture.html()
    with pytest.raises(TypeError, match="found int"):
        display.show(1)


def test_a_message_that_looks_like_a_call_says_why_it_is_none() -> None:
    """In a notebook too. Its turn is no part of it: a copy and a pickle say nothing."""
    turn = chatparsers.get_format("qwen3").bind(tools=TOOLS)
    text = '[TOOL_CALLS][{"name": "f", "arguments": {"a": "<b>"}}]'
    message = turn.parse(text)
    first = chatparsers.explain(text, turn).causes[0]
    for thing in (message, chatparsers.explain(text, turn)):
        shown = str(display.show(thing)).splitlines()
        assert shown[0].startswith("C content") and shown[1:3] == list(first.lines())
        html = thing._repr_html_()
        assert html is not None and f"<li><b>{first.code}</b>" in html and '"<b>"' not in html
    again = pickle.loads(pickle.dumps(message))
    assert again == message == copy.copy(message) and message.to_dict() == again.to_dict()
    for plain in (
        again,
        copy.copy(message),
        turn.parse("f is <b>bold</b>."),
        turn.parse(text, regions=False),
    ):
        assert "because:" not in str(display.show(plain))


def test_a_rollout_shows_its_samples_and_where_it_was_rewritten() -> None:
    tokenizer = tiny_model("qwen3").tokenizer
    chat = chatparsers.load(OWN / "qwen3.jinja", tokenizer=tokenizer)
    rollout = chat.rollout([{"role": "user", "content": "Hi"}])
    said = "<think>\nHm.\n</think>\n\nHello<|im_end|>"
    rollout.sampled(tokenizer.encode(said, add_special_tokens=False).ids)
    with pytest.warns(UserWarning, match="drops the thoughts"):
        rollout.append({"role": "user", "content": "Go on"})
    picture = display.show(rollout)
    assert "1 R reasoning Hm." in picture.text() and "1 C content   Hello" in picture.text()
    ids = ", ".join(map(str, tokenizer.encode("Hm.", add_special_tokens=False).ids))
    assert f'counted by a loss, ids {ids}"' in picture.html()
    assert [each.reason for each in rollout.breaks] == ["thought"]
    assert "rewritten by the template at message 1 (thought)" in picture.text()
    assert rollout._repr_html_() == picture.html()


@pytest.mark.parametrize("budget", [0, 3])
def test_a_guided_answer_tells_how_each_token_came(budget: int) -> None:
    pytest.importorskip("llguidance", reason="llguidance is not installed")
    tokenizer = tiny_model("qwen3").tokenizer
    turn = chatparsers.get_format("qwen3").bind(
        tools=TOOLS, tool_choice="required", tokenizer=tokenizer, prefix="<think>\n"
    )
    guide = turn.guide(thinking_tokens=budget)
    guide.feed(tokenizer.encode("Hm, so").ids[:budget])
    guide.feed(guide.forced())
    guide.feed(tokenizer.encode('<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call><|im_end|>').ids)
    guide.finish()
    picture = display.strip(guide)
    assert "".join(chip.text for chip in picture.chips) == guide.message.text
    said = {origin: "".join(c.text for c in picture.chips if c.origin == origin) for origin in ORIGINS}
    assert said["budget"] == guide.message.reasoning and len(guide.origins()) == len(guide.ids)
    assert guide.origins().count("budget") == budget
    assert said["closed"] == "</think>" and "f" in said["forced"] and "<|im_end|>" in said["sampled"]
    lines = picture.text().splitlines()
    assert "closed  m markup    </think>" in lines
    for drawing in (picture.html(), picture.svg()):
        assert all((ORIGINS[origin] in drawing) == bool(text) for origin, text in said.items())


def test_a_page_asks_nobody() -> None:
    message = chatparsers.get_format("qwen3").bind().parse("http://evil.example <link href=//evil.example>")
    text = page("a", display.strip(message))
    assert not re.search(r"<(?:script|link|img|iframe)|@import|url\(", text)
    assert message._repr_html_() == display.strip(message).html()
