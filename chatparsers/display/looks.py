"""How kinds of text look, and how a text is made safe to show."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from html import escape
from typing import NamedTuple

from ..chat.sample import Kind
from ..guide.guide import Origin


class Look(NamedTuple):
    """How a kind is drawn: its name, its letter, a colour of the Okabe–Ito palette, the terminal's code for it."""

    name: str
    letter: str
    colour: str
    code: int


LOOKS = {
    Kind.MARKUP: Look("markup", "m", "#767676", 245),
    Kind.SYSTEM: Look("system", "s", "#cc79a7", 175),
    Kind.USER: Look("user", "u", "#56b4e9", 74),
    Kind.RESULT: Look("result", "t", "#a6761d", 136),
    Kind.ANSWER_MARKUP: Look("markup", "m", "#767676", 245),
    Kind.REASONING: Look("reasoning", "R", "#0072b2", 32),
    Kind.CONTENT: Look("content", "C", "#2b8a3e", 71),
    Kind.CALL: Look("call", "N", "#d55e00", 166),
    Kind.ARGUMENT: Look("argument", "A", "#e69f00", 178),
    Kind.STOP: Look("stop", "x", "#8b0000", 131),
    Kind.PADDING: Look("padding", "p", "#bbbbbb", 250),
}
MOST = 200_000
"""How many characters of one text a picture shows."""
CUT = "… {left:,} more characters are not shown"


def cut(text: str, most: int = MOST) -> tuple[str, str]:
    """The text that is shown, and a note of what is not."""
    return (text, "") if len(text) <= most else (text[:most], CUT.format(left=len(text) - most))


def _hidden(character: str) -> bool:
    """Whether a character moves the cursor, turns the direction of text, or cannot be seen."""
    return character != "\n" and unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")


def _named(character: str) -> str:
    """A picture of a hidden character: ␛ for a control character, else its number."""
    code = ord(character)
    if character == "\t":
        return "→"
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"⟨U+{code:04X}⟩"


ORIGINS: Mapping[Origin, str] = {
    "sampled": "sampled",
    "budget": "sampled, counted by the budget for thoughts",
    "forced": "forced by the grammar",
    "closed": "forced by a limit",
}
"""How tokens of a guided answer came, in words."""


def for_terminal(text: str) -> str:
    """The text with pictures of its control characters; a line break is shown as ⏎."""
    return "".join(_named(c) if _hidden(c) else "⏎" if c == "\n" else c for c in text)


def columns(text: str) -> int:
    """How many columns of a terminal a text takes: East Asian letters and emoji take two, marks over letters none."""
    return sum(
        0 if unicodedata.combining(each) else 2 if unicodedata.east_asian_width(each) in "WF" else 1
        for each in text
    )


def for_html(text: str, *, breaks: bool = True) -> str:
    """The text as HTML, with hidden characters in boxes; ``breaks``: a line break is shown as ⏎ as well."""
    out = []
    for character in text:
        if character == "\n":
            out.append("<u></u>\n" if breaks else "\n")  # the style draws ⏎, so that it is not copied
        elif _hidden(character):
            shown = "→" if character == "\t" else f"U+{ord(character):04X}"
            out.append(f'<span class="cp-box">{shown}</span>')
        else:
            out.append(escape(character))
    return "".join(out)


def coloured(text: str, kind: Kind, colour: bool) -> str:
    return f"\x1b[38;5;{LOOKS[kind].code}m{text}\x1b[0m" if colour else text


_KINDS = "\n".join(
    f".cp .k{int(kind)} {{ --c: {look.colour}; border-bottom-style: "
    f"{('solid', 'dotted', 'dashed', 'double')[int(kind) % 4]}; }}"
    for kind, look in LOOKS.items()
)
MORE = """
  background:
    linear-gradient(90deg, var(--paper) 40%, transparent) 0 0 / 3rem 100%,
    linear-gradient(-90deg, var(--paper) 40%, transparent) 100% 0 / 3rem 100%,
    linear-gradient(90deg, #8886, transparent) 0 0 / 1rem 100%,
    linear-gradient(-90deg, #8886, transparent) 100% 0 / 1rem 100%;
  background-repeat: no-repeat;
  background-attachment: local, local, scroll, scroll;
"""
"""Shades an edge after which more can be scrolled to; ``--paper`` is the colour after the text."""
STYLE = f"""
.cp {{ color-scheme: light dark; font: 14px/1.9 ui-monospace, monospace; color: canvastext; background: canvas; }}
[data-jp-theme-light=true] .cp, .vscode-light .cp {{ color-scheme: light; }} /* a notebook's theme, not the system's */
[data-jp-theme-light=false] .cp, .vscode-dark .cp {{ color-scheme: dark; }}
.cp {{ padding: .5rem; overflow-wrap: anywhere; }}
.cp .chips {{ white-space: pre-wrap; }}
.cp .chip {{ background: color-mix(in srgb, var(--c) 16%, canvas); border-radius: 2px; }}
.cp .chip {{ border-bottom: 3px solid color-mix(in srgb, var(--c) 75%, canvastext); padding-bottom: 2px; }}
.cp [data-l]::before {{ content: attr(data-l); font-size: 70%; vertical-align: super; margin-right: 1px; }}
.cp .chip i {{ font-style: normal; }}
.cp .chip i:nth-of-type(even) {{ background: color-mix(in srgb, var(--c) 22%, transparent); }}
.cp .steps td.chips {{ min-width: 9ch; }}
.cp .forced {{ outline: 1px dashed; }} .cp .closed {{ outline: 2px solid; }}
.cp .budget {{ text-decoration: underline dotted; text-underline-offset: 3px; }}
.cp .uncounted {{ background: none; border-bottom-width: 1px; }}
.cp u {{ text-decoration: none; color: color-mix(in srgb, canvastext 65%, canvas); }}
.cp u::before {{ content: "⏎"; content: "⏎" / ""; }}
.cp mark u {{ color: #444; }}
.cp .at {{ color: light-dark(#a33b00, #ff9a57); font-weight: bold; }}
.cp .cp-box {{ border: 1px solid; border-radius: 3px; font-size: 80%; padding: 0 2px; }}
.cp .note {{ border-left: 4px solid #d55e00; padding-left: .5rem; margin: .35rem 0; white-space: pre-wrap; }}
.cp .scroll {{ overflow: auto; max-height: 28rem; --paper: canvas; {MORE} }} .cp .whole {{ max-height: none; }}
.cp svg.railroad-diagram {{ background: none; color: canvastext; }}
.cp svg.railroad-diagram rect {{ fill: canvas; }}
.cp .long {{ white-space: pre-wrap; max-height: 24rem; overflow: auto; }} .cp .title {{ font-weight: bold; }}
.cp .chips details {{ display: inline; }} .cp .chips summary {{ display: inline; cursor: pointer; }}
.cp .chips summary {{ border: 1px dashed; border-radius: 3px; padding: 0 .3rem; }}
.cp .chips summary::before {{ content: "▸ "; }} .cp .chips [open] > summary::before {{ content: "▾ "; }}
.cp h1 {{ font-size: 1.3rem; line-height: 1.3; }} .cp h2 {{ font-size: 1.1rem; }}
.cp th[scope=row] {{ min-width: 8rem; }}
.cp p, .cp ul {{ margin: .35rem 0; }} .cp .head {{ font-weight: bold; }}
.cp thead th, .cp .line, .cp .tokens td {{ white-space: nowrap; }} .cp th {{ overflow-wrap: normal; }}
.cp table {{ border-collapse: collapse; }} .cp td, .cp th {{ padding: .1rem .6rem; text-align: left; }}
.cp td, .cp th {{ border-bottom: 1px solid color-mix(in srgb, canvastext 20%, canvas); vertical-align: top; }}
.cp tr:has(+ tr > th:empty) > * {{ border-bottom: 0; }}
@media (max-width: 30rem) {{ .cp td, .cp th {{ padding: .1rem .25rem; }} }}
.cp mark {{ background: #f0e442; color: black; }}
.cp .legend {{ margin-bottom: .35rem; }}
.cp .legend > span {{ margin-right: .8rem; white-space: nowrap; display: inline-block; }}
.cp input[type=range] {{ width: min(30rem, 100%); }}
{_KINDS}
"""
