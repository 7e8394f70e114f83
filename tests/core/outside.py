"""A format's document as a grammar of parsimonious: a reader of whole texts that shares no line with ours.

`outside(document, tools)` is the grammar, or `Unsayable` where no PEG says the format: what looks back at an earlier
text, reads a header as one whole, or writes values in a syntax of its own. It has no cuts and no mends: it reads what
the tree says, so it judges texts of which the parser, without mends, has nothing to complain.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import regex
from parsimonious import Grammar
from parsimonious.nodes import Node

_VALUES = r"""
    json = json_object / json_array / json_string / json_number / "true" / "false" / "null"
    json_object = "{" blank (json_member ("," blank json_member)*)? "}"
    json_member = json_string blank ":" blank json blank
    json_number = ~r'-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?'
    json_array = "[" blank (json blank ("," blank json blank)*)? "]"
    json_string = ~r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"'
    python = python_dict / python_list / python_string / python_word
    python_dict = "{" blank (python_member ("," blank python_member)*)? "}"
    python_member = python blank ":" blank python blank
    python_word = ~r'[+-]?[0-9][0-9_.eE+-]*|True|False|None|true|false|null'
    python_list = "[" blank (python blank ("," blank python blank)*)? "]"
    python_string = ~r'"(?:[^"\\\n]|\\.)*"|\x27(?:[^\x27\\\n]|\\.)*\x27'
    blank = ~r'[ \t\r\n]*'
"""
_SETS = {"word": r"\w", "digit": r"\d", "space": r"\s"}
_NAMES = {"not": ["space", *"\"'<>[](){}=,|｜"]}
_SILENT = {"commit"}


class Unsayable(Exception):
    """No PEG says this."""


class Read(NamedTuple):
    """What the outside reader found, without white space in the texts: where it stands is a rule of ours."""

    content: str
    reasoning: str
    calls: list[str]


def outside(document: Mapping[str, Any], tools: Iterable[str]) -> str:
    """The grammar of whole answers to a request with these tools, as parsimonious takes it. Raises `Unsayable`."""
    return _Writer(document, list(tools)).grammar()


def read(grammar: Grammar, text: str) -> Read:
    """Raises parsimonious' ParseError."""
    found: dict[str, list[str]] = {"content": [], "reasoning": [], "tool": []}
    todo = [grammar.parse(text)]
    while todo:
        node: Node = todo.pop()
        kind = node.expr_name.partition("__")[0]
        if kind in found:
            found[kind].append(node.text)
        elif kind not in ("json", "python"):
            todo += reversed(node.children)
    content, reasoning = ("".join("".join(found[kind]).split()) for kind in ("content", "reasoning"))
    return Read(content, reasoning, found["tool"])


class _Writer:
    def __init__(self, document: Mapping[str, Any], tools: list[str]) -> None:
        self.shared: Mapping[str, Any] = document.get("shared", {})
        self.stops = list(document.get("stops", ()))
        self.tools = tools
        self.rules: dict[str, str] = {}
        self.tree = document["tree"]

    def grammar(self) -> str:
        whole = self.say(self.tree)
        over = self.texts(self.stops) if self.stops else "'\\n'"
        self.rules = {"answer": f"{whole} ({over} ~r'(?s).*')?", **self.rules}
        return "\n".join(f"{name} = {body}" for name, body in self.rules.items()) + _VALUES

    def rule(self, kind: str, body: str) -> str:
        """The name of a rule of its own, whose text is of a kind."""
        name = f"{kind}__{len(self.rules)}"
        self.rules[name] = body
        return name

    def say(self, node: Any) -> str:
        if isinstance(node, str):
            return self.text(node) if node else "''"
        if isinstance(node, list):
            return "(" + " ".join(map(self.say, node)) + ")" if node else "''"
        for key in node:
            if way := getattr(self, f"_{key}", None):
                made: str = way(node[key], node)
                return made
        if _SILENT & set(node):
            return "''"
        raise Unsayable(", ".join(node))

    def text(self, text: str) -> str:
        return f"~r'{_literal(text)}'"

    def texts(self, texts: Iterable[Any]) -> str:
        listed = [one for text in texts for one in (self.stops if isinstance(text, dict) else [text])]
        return "(" + " / ".join(self.say(text) for text in listed) + ")"

    def _token(self, text: str, node: Any) -> str:
        return self.texts([text, *node.get("also", ())])

    def _space(self, text: str, node: Any) -> str:
        return r"~r'[ \t\r\n]*'"

    def _first_of(self, options: Any, node: Any) -> str:
        return "(" + " / ".join(map(self.say, options)) + ")"

    def _optional(self, inner: Any, node: Any) -> str:
        return f"({self.say(inner)})?"

    def _repeat(self, inner: Any, node: Any) -> str:
        return f"({self.say(inner)}){{{node.get('min', 0)},{node.get('max', '')}}}"

    def _chars(self, chars: Any, node: Any) -> str:
        return f"~r'{self.klass(chars)}{{{node.get('min', 1)},{node.get('max', '')}}}+'"

    def _any_char(self, _: Any, node: Any) -> str:
        return "~r'(?s).'"

    def _until(self, texts: Any, node: Any) -> str:
        return f"(!{self.texts(texts)} ~r'(?s).')*"

    def _end(self, _: Any, node: Any) -> str:
        return "&(" + " / ".join([*map(self.say, self.stops), r"~r'\Z'"]) + ")"

    def _stops(self, _: Any, node: Any) -> str:
        return self.texts(self.stops)

    def _line_start(self, _: Any, node: Any) -> str:
        after = "|".join(["^", r"\n", *sorted(map(_literal, self.tokens()))])
        return f"~r'(?<={after})'"

    def tokens(self) -> set[str]:
        """The markers of the document: the start of a line is right after one too."""
        found, todo = set(), [self.tree, dict(self.shared)]
        while todo:
            node = todo.pop()
            if isinstance(node, dict):
                found |= {node["token"]} if isinstance(node.get("token"), str) else set()
                todo += node.values()
            elif isinstance(node, list):
                todo += node
        return found

    def _peek(self, inner: Any, node: Any) -> str:
        return f"&{self.say(inner)}"

    def _not(self, inner: Any, node: Any) -> str:
        return f"!{self.say(inner)}"

    def _read(self, inner: Any, node: Any) -> str:
        return self.say(inner)

    def _rule(self, name: str, node: Any) -> str:
        own = f"rule__{''.join(c if c.isalnum() else '_' for c in name)}"
        self.rules.setdefault(own, "''")
        self.rules[own] = self.say(node["is"])
        return own

    def _ref(self, name: str, node: Any) -> str:
        return f"rule__{''.join(c if c.isalnum() else '_' for c in name)}"

    def _use(self, name: str, node: Any) -> str:
        return self.say(self.shared[name])

    def _as(self, kind: str, node: Any) -> str:
        inner = self.say(node["is"])
        return self.rule(kind, inner) if kind in ("content", "reasoning") else inner

    def _atomic(self, inner: Any, node: Any) -> str:
        return self.say(inner)

    def _calls(self, inner: Any, node: Any) -> str:
        one = self.say(inner)
        return f"({one} ({self.say(node.get('separator', ''))} {one})*)"

    def _call(self, inner: Any, node: Any) -> str:
        return self.say(inner)

    def _name(self, whose: str, node: Any) -> str:
        if "escapes" in node or whose == "id":
            raise Unsayable("a name with escapes, or an id")
        chars = self.klass(node.get("class", _NAMES))
        if whose != "tool":
            return f"~r'{chars}{{1,1024}}+'"
        odd = [name for name in self.tools if not regex.fullmatch(f"{chars}+", name)]
        names = " / ".join([*map(self.text, sorted(odd, key=len, reverse=True)), f"~r'{chars}{{1,1024}}+'"])
        return self.rule("tool", names)

    def _json_name(self, whose: str, node: Any) -> str:
        run = r"""~r'[^"\\]+'"""
        return self.rule("tool", run) if whose == "tool" else run

    def _declared(self, _: Any, node: Any) -> str:
        if "lacks" in node:
            raise Unsayable("declared without an argument")
        return f"~r'(?<={'|'.join(map(_literal, self.tools))})'"

    def _implied(self, whose: str, node: Any) -> str:
        raise Unsayable("a name that the text does not have")

    def _object(self, syntax: Any, node: Any) -> str:
        return f"&'{{' {self.value(syntax)}"

    def _value(self, syntax: Any, node: Any) -> str:
        return self.value(syntax)

    def _json_value(self, _: Any, node: Any) -> str:
        return "json"

    def _arguments(self, inner: Any, node: Any) -> str:
        if "positional" in node:
            raise Unsayable("arguments by place")
        one, between = self.say(inner), self.say(node.get("separator", ""))
        return f"({one} ({between} {one})*)?"

    def _if_tools(self, inner: Any, node: Any) -> str:
        return self.say(inner)

    def _thought(self, span: Any, node: Any) -> str:
        if node.get("always"):
            raise Unsayable("a thought that begins by itself")
        return f"({self.blank} {self.span('reasoning', span)} {self.blank})?"

    def _body(self, body: Any, node: Any) -> str:
        sections = [self.say(body["calls"])] if "calls" in body else []
        sections += [self.span(kind, body[kind]) for kind in ("reasoning", "content") if kind in body]
        sections += [self.say(body["marks"])] if "marks" in body else []
        thought = next((one["thought"] for one in self.parts() if "thought" in one), None)
        sections += [self.span("reasoning", thought)] if thought else []
        text = self.rule("content", (f"!{self.texts(self.stops)} " if self.stops else "") + "~r'(?s).'")
        start = f"{self.say(body['start'])}?" if "start" in body else ""
        return f"({start} ({' / '.join([*sections, text])})*)"

    def parts(self) -> list[Any]:
        whole = self.tree if isinstance(self.tree, list) else [self.tree]
        return [one for one in whole if isinstance(one, dict)]

    blank = r"~r'\s*'"

    def span(self, kind: str, span: Any) -> str:
        if span.get("optional"):
            raise Unsayable("a span whose opener may be missing")
        if "close" not in span:
            raise Unsayable("a span up to the next section")
        close = self.say(span["close"])
        inside = self.rule(kind, f"(!{close} ~r'(?s).')*")
        return f"({self.say(span['open'])} {inside} {close})"

    def value(self, syntax: Any) -> str:
        if syntax in ("json", "python"):
            return str(syntax)
        if isinstance(syntax, dict) and syntax.get("syntax") == "raw":
            until = [*_listed(syntax["until"]), *_listed(syntax.get("also", ()))]
            # A value loses the line break at its end, where the syntax names one and the text has it.
            breaks = ("~r'\\n?' " if text.startswith("\n") else "" for text in until)
            ends = (
                line + self.text(text.removeprefix("\n")) for line, text in zip(breaks, until, strict=True)
            )
            return f"(!({' / '.join(ends)}) ~r'(?s).')*"
        raise Unsayable(f"values as {json.dumps(syntax)[:30]}")

    def klass(self, chars: Any) -> str:
        negated = isinstance(chars, dict)
        inside = "".join(
            _SETS.get(one) or "-".join(map(_escaped, one.split("-") if len(one) == 3 else [one]))
            for one in (chars["not"] if negated else chars)
        )
        return f"[{'^' if negated else ''}{inside}]"


def _listed(texts: Any) -> list[str]:
    return [texts] if isinstance(texts, str) else list(texts)


def _literal(text: str) -> str:
    """The text as an expression between quotes of a grammar."""
    return "".join(f"\\x{ord(char):02x}" if char in "'\n\t\r" else regex.escape(char) for char in text)


def _escaped(char: str) -> str:
    """The character as it stands in a class."""
    return f"\\x{ord(char):02x}" if char in "'\n\t\r" else f"\\{char}" if char in r"\]^-[&~|" else char
