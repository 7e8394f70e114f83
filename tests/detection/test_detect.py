"""Each real template and each of ours is detected as its own format, also after cosmetic edits of its source."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from chatparsers import Detection, detect, list_formats, load
from chatparsers.templates import Template
from chatparsers.templates.jinja.environment import environment

HERE = Path(__file__).parent
OWN = sorted((HERE.parent / "templates_own").glob("*.jinja"))
FAMILIES = json.loads((HERE.parent / "needle" / "templates.json").read_text(encoding="utf-8"))

# This format has no markers: a model without a tool syntax gets its instructions in the system prompt.
UNDETECTABLE = {"generic"}
MARKERS = {info.name: info.markers for info in list_formats()}

Tokens = list[list[str]]


def lex(source: str) -> Tokens:
    tokens = [[kind, text] for _, kind, text in environment().lex(source)]
    for before, token in pairwise(tokens):
        if before[0] == "data" and before[1].endswith("{") and token[1].endswith("-"):
            before[1] += "\n"  # the white space between them, which the lexer strips
    return tokens


def write(tokens: Tokens) -> str:
    return "".join(text for _, text in tokens)


def is_plain(token: list[str]) -> bool:
    return token[0] == "string" and not set("\"'\\{}%") & set(token[1][1:-1]) and len(token[1]) > 2


def quotes(tokens: Tokens) -> str:
    for token in tokens:
        if is_plain(token):
            other = "'" if token[1][0] == '"' else '"'
            token[1] = other + token[1][1:-1] + other
    return write(tokens)


def tilde(tokens: Tokens) -> str:
    solid = [token for token in tokens if token[0] != "whitespace"]
    for before, token, after in zip(solid, solid[1:], solid[2:], strict=False):
        if token == ["operator", "+"] and "string" in (before[0], after[0]):
            token[1] = "~"
    return write(tokens)


def wide(tokens: Tokens) -> str:
    for token in tokens:
        if token[0] == "whitespace":
            token[1] += "\n  "
    return write(tokens)


def roomy(tokens: Tokens) -> str:
    for token in tokens:
        if token[0] in ("variable_begin", "block_begin"):
            token[1] += "  "
    return write(tokens)


def comment(tokens: Tokens) -> str:
    return "{# <tool_call> [TOOL_CALLS] <|channel|> #}" + write(tokens)


def unused(tokens: Tokens) -> str:
    return "{% set zz_unused = '<function=' %}" + write(tokens)


def hexed(tokens: Tokens) -> str:
    for token in tokens:
        if is_plain(token) and token[1][1].isascii():
            token[1] = f"{token[1][0]}\\x{ord(token[1][1]):02x}{token[1][2:]}"
    return write(tokens)


def split(tokens: Tokens) -> str:
    solid = [token for token in tokens if token[0] != "whitespace"]
    for before, token, after in zip(solid, solid[1:], solid[2:], strict=False):
        if (
            is_plain(token)
            and len(token[1]) > 4
            and before[1] in ("+", "{{", "{{-")
            and after[1] in ("+", "}}", "-}}")
        ):
            quote, text = token[1][0], token[1][1:-1]
            token[1] = f"({quote}{text[:2]}{quote} ~ {quote}{text[2:]}{quote})"
    return write(tokens)


def constants(tokens: Tokens) -> str:
    spelt = {
        "true": "True",
        "false": "False",
        "none": "None",
        "True": "true",
        "False": "false",
        "None": "none",
    }
    solid = [token for token in tokens if token[0] != "whitespace"]
    for before, token in pairwise(solid):
        if token[0] == "name" and before[1] not in (".", "is", "not"):
            token[1] = spelt.get(token[1], token[1])
    return write(tokens)


def lines(tokens: Tokens) -> str:
    return write(tokens).replace("\r\n", "\n").replace("\n", "\r\n")


EDITS: list[Callable[[Tokens], str]] = [
    quotes,
    tilde,
    wide,
    roomy,
    comment,
    unused,
    hexed,
    split,
    constants,
    lines,
]


def check(path: Path, expected: str | None) -> Detection:
    source = path.read_text(encoding="utf-8")
    found = detect(source)
    assert found.name == expected, found
    can = Template(source).probe()
    edited = 0
    for first, second in zip(EDITS[::2], EDITS[1::2], strict=True):
        once = first(lex(source))
        other = second(lex(once))
        edited += (once != source) + (other != once)
        assert Template(other).probe() == can, (first.__name__, second.__name__)
        again = detect(other)
        assert (again.name, again.score) == (found.name, found.score), (
            first.__name__,
            second.__name__,
            again,
        )
    assert edited >= 5, "the edits must change the source, or they show nothing"
    return found


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.stem)
def test_own_templates(path: Path) -> None:
    found = check(path, None if path.stem in UNDETECTABLE else path.stem)
    evidence = " ".join(found.evidence)
    assert [marker for marker in MARKERS[path.stem] if repr(marker) not in evidence] == []


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_real_templates(name: str, real_templates: list[Path]) -> None:
    path = next((path for path in real_templates if path.name == name), None)
    if path is None:
        pytest.skip(f"{name} is not among the real templates")
    check(path, FAMILIES[name]["format"])


def test_a_model_is_read_once(tmp_path: Path) -> None:
    """Each file is opened once, and a path tells what `load` finds there: its template for tools too."""
    source = (OWN[0].parent / "qwen3.jinja").read_text(encoding="utf-8")
    plain = "{% for m in messages %}<{{ m.role }}>{{ m.content }}</{{ m.role }}>{% endfor %}<assistant>"
    templates = [{"name": "default", "template": plain}, {"name": "tool_use", "template": source}]
    config = {"chat_template": templates, "eos_token": "<|im_end|>"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    code = f"""
import json, sys
from pathlib import Path
from chatparsers import detect
opened = []
def watch(event, arguments):
    if event == "open" and str(arguments[0]).startswith({str(tmp_path)!r}):
        opened.append(Path(str(arguments[0])).name)
sys.addaudithook(watch)
found = detect({str(tmp_path)!r})
print(json.dumps([found.name, found.score, sorted(opened)]))"""
    # Such a hook stays until its process ends, and would be called for all that later tests do.
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == ["qwen3", 1.0, ["config.json", "tokenizer_config.json"]]
    found = detect(tmp_path)
    assert load(tmp_path).detection == found
