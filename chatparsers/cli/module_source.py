"""Writes a definition that was found as the source of a format module, for a contributor to start from.

The same `Definition` that builds the tree is run once more, with a builder that records each call as source. So a
format is described only once, and the source always agrees with the definition that was proved.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
import textwrap
from collections.abc import Callable, Sequence
from typing import Any, cast

from ..answers import Builder
from ..answers.idioms import Options
from ..detection.analysis.analyse import Found
from ..detection.analysis.generate import Definition
from ..detection.analysis.probes import Rendering
from ..detection.analysis.reasoning import turn_of
from ..values import Syntax

_WIDTH = 100
_URL = "https://huggingface.co/"


class _Code:
    """An expression: a sum of pieces of code and of literal texts."""

    def __init__(self, *items: str | _Code, text: bool = False) -> None:
        self.items: list[tuple[str, bool]] = []
        for item in items:
            for piece in item.items if isinstance(item, _Code) else [(item, text)]:
                if piece[1] and self.items and self.items[-1][1]:
                    piece = (self.items.pop()[0] + piece[0], True)
                if piece[0]:
                    self.items.append(piece)

    def __add__(self, other: str | _Code) -> _Code:
        return _Code(self, _text(other))

    def __radd__(self, other: str | _Code) -> _Code:
        return _Code(_text(other), self)

    def __or__(self, other: str | _Code) -> _Code:
        return _Code(f"p.choice({self.argument()}, {_text(other).argument()})")

    @property
    def terms(self) -> list[str]:
        return [_quoted(text) if literal else text for text, literal in self.items]

    def node(self) -> str:
        """The code of a node."""
        if len(self.items) == 1 and self.items[0][1]:
            return f"p.literal({self.terms[0]})"
        return " + ".join(self.terms) if self.items else 'p.literal("")'

    def argument(self) -> str:
        """The code of an argument that may be a text as well."""
        return " + ".join(self.terms) if self.items else '""'


def _text(value: str | _Code) -> _Code:
    return value if isinstance(value, _Code) else _Code(value, text=True)


def _quoted(text: str) -> str:
    if "\\" in text and not set('"\n') & set(text) and not text.endswith("\\"):
        return f'r"{text}"'
    if '"' in text and not set("'\\\n") & set(text):
        return f"'{text}'"
    return json.dumps(text, ensure_ascii=False)


class _Writer:
    """Stands for a builder, and writes the statements of ``build``."""

    def __init__(self) -> None:
        self.options = Options(tools=True)
        self.lines: list[str] = []
        self.imports = {"Builder", "Format", "Node"}

    def __getattr__(self, method: str) -> Callable[..., _Code]:
        def call(*arguments: Any, **named: Any) -> _Code:
            return self._call(method, arguments, named)

        return call

    def _call(self, method: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> _Code:
        given = [self._argument(value, method in ("span", "think")) for value in arguments]
        while method in ("body", "each_arg") and given and given[-1] == "None":
            given.pop()
        for key, value in named.items():
            if value not in (None, False, ""):
                given.append(f"{key}={self._argument(value, True)}")
        return _Code(f"p.{method}({', '.join(given)})")

    def _argument(self, value: Any, node: bool) -> str:
        if isinstance(value, _Code):
            return value.node() if node else value.argument()
        if isinstance(value, Syntax):
            return self._record(value)
        if isinstance(value, tuple):
            parts = [self._argument(part, node) for part in value]
            return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
        return _quoted(value) if isinstance(value, str) else repr(value)

    def _record(self, syntax: Syntax) -> str:
        name = type(syntax).__name__
        self.imports.add(name)
        changed = [
            f"{field.name}={self._argument(value, False)}"
            for field in dataclasses.fields(syntax)  # type: ignore[arg-type]
            if (value := getattr(syntax, field.name)) != field.default
        ]
        return f"{name}({', '.join(changed)})"

    def literal(self, text: str) -> _Code:
        return _Code(text, text=True)

    def sequence(self, *items: str | _Code) -> _Code:
        return _Code(*map(_text, items))

    def space(self, text: str = "") -> _Code:
        return _Code(f"p.space({_quoted(text) if text else ''})")

    def trim(self, text: str) -> _Code:
        return _Code(f"p.trim({_quoted(text)})" if text else "")

    def reads(self, strict: str | _Code, *lenient: str | _Code) -> _Code:
        if [_text(item).argument() for item in lenient] == [_text(strict).argument()]:
            return _text(strict)
        named = isinstance(strict, _Code) and any(item is strict for item in lenient)
        name = "section" if isinstance(strict, _Code) and "calls" in strict.terms else self.free("opener")
        if isinstance(strict, _Code) and named:
            self.assign(name, strict)
        found = _Code(f"p.reads({', '.join(_text(item).argument() for item in (strict, *lenient))})")
        return self.assign(name, found) if named else found

    def choice(self, *options: str | _Code) -> _Code:
        alike = _alike([_text(option) for option in options]) if len(options) > 2 else None
        if alike is None:
            return self._call("choice", options, {})
        self.lines += alike[0]
        return _Code(alike[1])

    def each_tool(self, make: Callable[[Any], Any]) -> _Code:
        self.imports.add("Tool")
        body = _text(make(_Code("tool")))
        self.lines += ["    def call(tool: Tool) -> Node:", *_statement("return ", body, 8), ""]
        return _Code("p.each_tool(call)")

    def each_arg(
        self, tool: _Code, make: Callable[[Any], Any], separator: Any = None, positional: Any = None
    ) -> _Code:
        self.imports.add("Argument")
        body = _text(make(_Code("arg")))
        self.lines += ["    def argument(arg: Argument) -> Node:", *_statement("return ", body, 8), ""]
        return self._call("each_arg", (tool, _Code("argument"), separator, positional), {})

    def calls(self, item: _Code, separator: str | _Code = "") -> _Code:
        return self.assign("calls", self._call("calls", (item, separator), {}))

    def array(self, item: _Code, indent: str = "") -> _Code:
        return self.assign("calls", self._call("array", (item, indent) if indent else (item,), {}))

    def body(self, *arguments: Any, **named: Any) -> _Code:
        taken = {"calls", "section"}
        for section, name in (*((one, "section") for one in arguments), (named.get("start"), "start")):
            if isinstance(section, _Code) and section.argument() not in taken:
                self.assign(name, section)
        return self._call("body", arguments, named)

    def free(self, word: str) -> str:
        """The word, or the word and a number: a name that no other expression has."""
        names = itertools.chain((word,), (f"{word}_{i}" for i in itertools.count(2)))
        return next(
            name for name in names if not any(line.startswith(f"    {name} = ") for line in self.lines)
        )

    def assign(self, name: str, value: _Code) -> _Code:
        """Gives the expression a name in all places that use it."""
        self.lines += _statement(f"{name} = ", value, 4)
        value.items = [(name, False)]
        return value


def _alike(options: list[_Code]) -> tuple[list[str], str] | None:
    """Options that differ only in texts: a table of the texts, and one choice over it. None if they differ in more, or
    are texts alone."""
    items = list(zip(*(option.items for option in options), strict=False))
    if len({len(option.items) for option in options}) > 1 or all(
        literal for column in items for _, literal in column
    ):
        return None
    columns: list[tuple[str, list[str]]] = []
    terms: list[str] = []
    for column in items:
        codes = [_quoted(text) if literal else text for text, literal in column]
        if len(set(codes)) == 1:
            terms.append(codes[0])
            continue
        before = _common(codes)
        after = _common([code[len(before) :][::-1] for code in codes])[::-1]
        if all(literal for _, literal in column):
            before, after = "", ""
        else:  # up to the quotes of the text that differs
            before, after = before[: before.rfind('"')], after[after.find('"') + 1 :]
        texts = [code[len(before) : len(code) - len(after)] for code in codes]
        if not all(re.fullmatch(r'"[^"\\]*"|\'[^\'\\]*\'', text) for text in texts):
            return None
        word = "text" if not before else re.split(r"\W+", before.rstrip("="))[-1]
        name = next(n for n in (word, *(f"{word}_{i}" for i in range(2, 9))) if n not in dict(columns))
        columns.append((name, texts))
        terms.append(before + name + after)
    rows = list(zip(*(texts for _, texts in columns), strict=True))
    names = ", ".join(name for name, _ in columns)
    table = [" " * 8 + "(" + ", ".join(row) + ("," if len(row) == 1 else "") + ")," for row in rows]
    made = " + ".join(terms)
    return ["    kinds = (", *table, "    )", ""], f"p.choice(*({made} for {names} in kinds))"


def _common(texts: Sequence[str]) -> str:
    """The characters with which all texts begin."""
    same = (len(set(column)) == 1 for column in zip(*texts, strict=False))
    return texts[0][: len(list(itertools.takewhile(bool, same)))]


def _statement(begin: str, value: _Code, indent: int) -> list[str]:
    return _lines(" " * indent + begin, value.node(), "", indent)


def _lines(begin: str, code: str, end: str, indent: int) -> list[str]:
    """The code on one line. If that is too long, each term of a sum and each argument of a call has its own line."""
    if len(begin) + len(code) + len(end) <= _WIDTH:
        return [begin + code + end]
    margin = " " * (indent + 4)
    terms = _split(code, " + ")
    if len(terms) > 1:
        opened = begin.endswith(("(", "= ", "return ")) or begin.isspace()
        inner = [
            line
            for n, term in enumerate(terms)
            for line in _lines(margin + "+ " * (n > 0), term, "", indent + 4)
        ]
        return [begin + "(", *inner, " " * indent + ")" + end] if opened else [begin + code + end]
    name, bracket, arguments = code.partition("(")
    if not bracket or not code.endswith(")"):
        return [begin + code + end]
    if name == "*":
        made, over = _split(arguments[:-1], " for ")
        inner = [*_sum(margin, _split(made, " + "), indent + 4), f"{margin}for {over}"]
        return [f"{begin}*(", *inner, " " * indent + ")" + end]
    parts = _split(arguments[:-1].removesuffix(","), ", ")  # a tuple of one has its comma already
    inner = [line for part in parts for line in _argument(margin, part, indent + 4)]
    return [f"{begin}{name}(", *inner, " " * indent + ")" + end]


def _argument(margin: str, part: str, indent: int) -> list[str]:
    key = re.match(r"\w+=", part)
    begin = margin + (key[0] if key else "")
    code = part[key.end() :] if key else part
    if len(_split(code, " + ")) > 1 and len(begin) + len(code) >= _WIDTH:
        terms = _split(code, " + ")
        if key:
            return [begin + "(", *_sum(margin + "    ", terms, indent + 4), margin + "),"]
        lines = _sum(margin, terms, indent)
        return [*lines[:-1], lines[-1] + ","]
    return _lines(begin, code, ",", indent)


def _sum(margin: str, terms: list[str], indent: int) -> list[str]:
    return [
        line for n, term in enumerate(terms) for line in _lines(margin + "+ " * (n > 0), term, "", indent)
    ]


def _split(code: str, separator: str) -> list[str]:
    """The parts of an expression between separators that are in no bracket and no string."""
    parts, depth, start, at = [], 0, 0, 0
    while at < len(code):
        if code[at] in "\"'":
            quote, raw = code[at], at > 0 and code[at - 1] == "r"
            at += 1
            while code[at] != quote:
                at += 2 if code[at] == "\\" and not raw else 1
        elif code[at] in "([{":
            depth += 1
        elif code[at] in ")]}":
            depth -= 1
        elif depth == 0 and code.startswith(separator, at):
            parts.append(code[start:at])
            at = start = at + len(separator)
            continue
        at += 1
    return [*parts, code[start:]]


def sample_of(found: Found) -> str:
    """The turn with the most in it that the template rendered, without what ends it."""
    assert found.analysis is not None
    calls = found.analysis.calls is not None

    def weight(answer: Rendering) -> tuple[int, bool, bool]:
        return (len(answer.calls) == 1) if calls else 0, bool(answer.reasoning), bool(answer.content)

    shown = [answer for answer in found.renderings if answer.shows() and len(answer.calls) <= int(calls)]
    best = max(shown, key=weight)
    text = turn_of(best, found.analysis.header)
    reasoning = found.analysis.reasoning
    if reasoning is not None and best.reasoning and reasoning.open.strip() in text:
        text = text[text.index(reasoning.open.strip()) :]  # the prompt may have more before it
    for stop in found.analysis.stops:
        text = text.removesuffix(stop)
    return text.strip("\n").rstrip()


def module_source(found: Found, name: str, stops: Sequence[str] = ()) -> str:
    """The source of a format module named ``name``, which ends turns at ``stops`` as well.

    Raises ValueError if nothing was found.
    """
    if found.analysis is None or found.format is None:
        raise ValueError("no format was found")
    writer = _Writer()
    definition = found.format.build
    assert isinstance(definition, Definition)
    tree = cast(_Code, definition(cast(Builder, writer)))
    body = [*writer.lines, *_statement("return ", tree, 4)]
    analysis = found.analysis
    quirks = [
        f"Found by analysis of the chat template ({analysis.variant}).",
        "What the model writes astray is not known: look at its outputs.",
        *analysis.refused,
    ]
    sample = textwrap.indent(sample_of(found), "    ")
    docstring = f"{name}: {analysis.variant}.\n\n{sample}\n\nQuirks:\n" + "".join(
        f"{line}\n" for quirk in quirks for line in textwrap.wrap(f"- {quirk}", 118, subsequent_indent="  ")
    )
    raw = "r" if "\\" in docstring else ""
    stops = tuple(dict.fromkeys((*found.format.stops, *stops)))
    lines = [
        f'{raw}"""{docstring}"""',
        "",
        f"from chatparsers.answers import {', '.join(sorted(writer.imports))}",
        "",
        "",
        "def build(p: Builder) -> Node:",
        *body,
        "",
        "",
        "FORMAT = Format(",
        f"    name={_quoted(name)},",
        f"    title={_quoted(name)},",
        f"    url={_quoted(_URL)},",
        "    build=build,",
        f"    markers={_tuple(_detected_by(found, stops))},",
        f"    stops={_tuple(stops)},",
        ")",
        "",
    ]
    return "\n".join(lines)


def _detected_by(found: Found, stops: Sequence[str]) -> list[str]:
    """A few texts that a rendering in this format has."""
    assert found.analysis is not None and found.format is not None
    calls, content = found.analysis.calls, found.analysis.content
    tokens = [token for token in found.format.preserved_tokens if token not in stops]
    texts = [calls.section[0], calls.before] if calls is not None else []
    lines = [
        text.strip().partition("\n")[0] for text in (*texts, content.open, found.analysis.header, *stops)
    ]
    return (tokens or [line for line in lines if line])[:3]


def _tuple(texts: Sequence[str]) -> str:
    return "(" + ", ".join(map(_quoted, texts)) + ("," if len(texts) == 1 else "") + ")"
