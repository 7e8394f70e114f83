"""The part of GBNF that llama.cpp has documented and parsed since the end of 2024, as a checker of a grammar's text.

The compiled parsers of five releases from 2024 to 2026 read all grammars that keep to it (docs/grammar.md). Left out:
``\\-``, ``\\^`` and ``\\/``, a count past 2,000, also multiplied by the groups and counts in what is counted, left
recursion, and a repeated part that may be empty.
References to tokens (``<[id]>``) are newer (2026).
"""

from __future__ import annotations

import re

_ESCAPE = r'\\(?:[nrt\\"\[\]]|u[0-9A-F]{4}|U[0-9A-F]{8})'
_CHAR = rf"(?:[^\\\]\[\n^-]|{_ESCAPE})"
_ATOM = re.compile(
    rf'(?P<literal>"(?:[^"\\\n]|{_ESCAPE})*")|(?P<set>\[\^?(?:{_CHAR}(?:-{_CHAR})?)*-?\])'
    r"|(?P<name>[a-z][a-z0-9-]*)|(?P<token><\[[0-9]+\]>)|(?P<open>\()"
)
_REPEAT = re.compile(r"[*+?]|\{(?P<least>[0-9]+)(?P<open>,(?P<most>[0-9]*))?\}")
_MOST = 1_999
_RULES = re.compile(r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|(\()|\{(?:[0-9]+,)?([0-9]+)')
"""What llama.cpp makes rules of: a group, and a count."""


class _Reader:
    """Reads one grammar: of each rule whether it may be empty, and the rules that it may begin with."""

    def __init__(self, text: str, ids: bool) -> None:
        self.ids = ids
        self.faults: list[str] = []
        self.rules: dict[str, str] = {}
        for line in text.splitlines():
            name, defined, body = line.partition(" ::= ")
            if not defined or not re.fullmatch(r"[a-z][a-z0-9-]*", name) or name in self.rules:
                self.faults.append(f"no rule of its own: {line:.80}")
            self.rules[name] = body
        self.empty: dict[str, bool] = dict.fromkeys(self.rules, False)
        self.begins: dict[str, set[str]] = {}
        self.loops: list[tuple[str, str]] = []
        self.named = {"root"}

    def run(self) -> list[str]:
        if "root" not in self.rules:
            self.faults.append("no rule root")
        settled = False
        while not settled:  # whether a rule may be empty follows from the rules that it names
            before, found, self.loops = dict(self.empty), self.faults[:], []
            for name, body in self.rules.items():
                self.begins[name] = set()
                self.empty[name], end = self.options(name, body, 0)
                if end < len(body):
                    self.faults.append(f"{name}: not read: {body[end:][:60]!r}")
            settled = before == self.empty or bool(self.faults)
            if not settled:
                self.faults = found
        self.faults += [f"{name}: a repeated part may be empty: {part}" for name, part in self.loops]
        self.faults += [f"{name}: no rule names it" for name in self.rules if name not in self.named]
        return self.faults + self.left_recursion()

    def options(self, rule: str, text: str, at: int) -> tuple[bool, int]:
        empty = False
        while True:
            one, at = self.sequence(rule, text, at)
            empty |= one
            if not text.startswith("| ", at):
                return empty, at
            at += 2

    def sequence(self, rule: str, text: str, at: int) -> tuple[bool, int]:
        empty = True
        while found := _ATOM.match(text, at):
            kind, begun = found.lastgroup, at
            at = found.end()
            one = kind == "literal" and found[0] == '""'
            if kind == "open":
                one, at = self.options(rule if empty else "", text, at)
                if not text.startswith(")", at):
                    self.faults.append(f"{rule}: no closing bracket: {text[begun:][:60]!r}")
                    return one, at
                at += 1
            elif kind == "name":
                self.named.add(found[0])
                one = self.empty.get(found[0], False)
                if found[0] not in self.rules:
                    self.faults.append(f"{rule}: no rule {found[0]}")
                if empty and rule:
                    self.begins[rule].add(found[0])
            elif kind == "token" and not self.ids:
                self.faults.append(f"{rule}: a reference to a token: {found[0]}")
            if repeat := _REPEAT.match(text, at):
                at = repeat.end()
                counts = [int(count) for count in (repeat["least"], repeat["most"]) if count]
                inside = _RULES.finditer(text, begun, repeat.start())
                made = sum(int(rule[2] or 1) for rule in inside if rule.lastindex)
                if max(counts, default=0) * max(1, made) > _MOST:
                    self.faults.append(f"{rule}: a count past {_MOST}: {repeat[0]}")
                if one and repeat[0] != "?":
                    self.loops.append((rule, text[begun:at][:60]))
                one |= repeat[0] in "*?" or repeat["least"] == "0"
            empty &= one
            at += text.startswith(" ", at)
        return empty, at

    def left_recursion(self) -> list[str]:
        done: set[str] = set()
        for first in self.rules:
            path: list[tuple[str, list[str]]] = [(first, sorted(self.begins.get(first, ())))]
            while path and path[0][0] not in done:
                name, left = path[-1]
                if not left:
                    done.add(name)
                    path.pop()
                    continue
                then = left.pop()
                if any(then == on for on, _ in path):
                    return [f"left recursion: {then}"]
                if then not in done:
                    path.append((then, sorted(self.begins.get(then, ()))))
        return []


def faults(text: str, ids: bool = False) -> list[str]:
    """What an old llama.cpp would not read in ``text``. ``ids``: references to tokens may stand there."""
    return _Reader(text, ids).run()
