"""What no template writes: fragments of a format in any order, and outputs that are broken on purpose."""

from __future__ import annotations

import inspect
import random
import re
import sys
import textwrap
from collections.abc import Iterator

from ..answers.format import Format
from ..answers.idioms import Options
from ..answers.nodes import Body, Literal, Token
from ..core.tree import first, once
from ..errors import DefinitionError

_TREE = Options(tools=True)
_SCRAPS = (
    *(
        "{",
        "}",
        "[",
        "]",
        '"',
        "'",
        "\\",
        ",",
        ":",
        "(",
        ")",
        "<",
        ">",
        "|",
        "=",
        "\n",
        "\n\n",
        " ",
        "\t",
        "0",
        "-1.5e3",
    ),
    *(
        "true",
        "None",
        "null",
        '{"name": "get_weather", "arguments": {"city": "Oslo"}}',
        "get_weather",
        "city",
        "Oslo",
    ),
    *(
        '"name": ',
        '"arguments": ',
        '{"city": ',
        "```",
        "```json\n",
        "\ufeff",
        "é",
        "😀",
        "\u0301",
        "\x00",
        "\r\n",
    ),
    *("Some words of prose. ", "<b>bold</b>", "&lt;", "\\u0041", "\\", '\\"'),
)


def samples(format: Format) -> list[str]:
    """The literal wire texts in the docstring of the format's module: its indented blocks."""
    module = sys.modules.get(format.build.__module__)
    text = inspect.getdoc(module) or "" if module is not None else ""
    blocks: list[list[str]] = [[]]
    for line in text.split("\n"):
        if line.startswith("    "):
            blocks[-1].append(line)
        elif line.strip():
            blocks.append([])
        elif blocks[-1]:
            blocks[-1].append(line)
    return [textwrap.dedent("\n".join(block)).strip("\n") for block in blocks if any(map(str.strip, block))]


def sample(format: Format) -> str:
    """The first of `samples`; ``""`` if there are no samples."""
    return next(iter(samples(format)), "")


def fragments(format: Format) -> list[str]:
    """Markers and literals of the format, halves of them, its stops, pieces of its sample, JSON, prose."""
    tree = format.tree(_TREE)
    markers = dict.fromkeys(
        node.text for node in once(tree) if isinstance(node, (Token, Literal)) and node.text
    )
    found = [*markers, *format.stops, *format.markers]
    found += [text[: len(text) // 2 + 1] for text in markers if len(text) > 2]
    found += [text[len(text) // 2 :] for text in markers if len(text) > 2]
    for text in samples(format):
        found += [text, text[: len(text) // 2], text[len(text) // 2 :], *re.findall(r"\S+\s*", text)]
    return list(dict.fromkeys([*found, *_SCRAPS]))


def call_openers(format: Format) -> list[str]:
    """The texts with which calls begin in running text; those that are prose or JSON left out."""
    found: list[str] = []
    for node in once(format.tree(_TREE)):
        if isinstance(node, Body) and node.calls is not None:
            try:
                found += first(node.calls)
            except DefinitionError:
                continue
    return [text for text in dict.fromkeys(found) if len(text.strip()) > 2]


def broken(format: Format, number: int, seed: int = 0) -> Iterator[str]:
    """``number`` outputs made of the format's samples by leaving out, doubling, moving and putting in."""
    chance = random.Random(f"{format.name}{seed}")
    pieces = fragments(format)
    wholes = samples(format) or ["Text."]
    for _ in range(number):
        text = chance.choice(wholes)
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(text) + 1)
            to = min(len(text), at + chance.choice((1, 2, 5, 20)))
            text = {
                "drop": text[:at] + text[to:],
                "double": text[:to] + text[at:],
                "put": text[:at] + chance.choice(pieces) + text[at:],
                "cut": text[: max(at, 1)],
                "more": text + chance.choice(pieces),
                "before": chance.choice(pieces) + text,
            }[chance.choice(("drop", "double", "put", "put", "cut", "more", "before"))]
        yield text
