"""Writes structural tags: the JSON that xgrammar, vLLM and SGLang take.

Strategy: what surrounds the calls is native, as those engines run and inspect it: free text with calls is
``triggered_tags``, reasoning is a tag around ``any_text``. What is inside a call is one grammar in xgrammar's
own dialect: GBNF, with its ``TagDispatch`` for text up to a marker and its ``Regex`` for strings, which
compile in a tenth of the time of rules that say the same. Its ``json_schema`` is not used: it admits no free
order of members that also keeps the required ones.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from .gbnf import GbnfWriter, literal
from .ir import Alt, Free, Ir, Lang, Rep, Seq, Shared, Text, TokenRef, literal_text, seq
from .residual import residual

__all__ = ["write_structural_tag"]

_BEGUN = (
    r'"([^"\\\x00-\x1f]|\\(["\\/bfnrt]|u([0-9a-cA-CefEF]H{3}|[dD]([0-7]H{2}|[89abAB]H{2}\\u[dD][c-fC-F]H{2}))))*'
).replace("H", "[0-9a-fA-F]")
"""A JSON string but for its closing quote."""
_INSIDE = ' (= "\\"" [ \\n\\t]* [,}\\]])'
"""What follows that in an object or array. Told so, xgrammar need not try at run time the tokens that go on
otherwise: a mask takes a third less."""


def _macro(regex: str) -> str:
    return 'Regex("' + regex.replace("\\", "\\\\").replace('"', '\\"') + '")'


class _Writer(GbnfWriter):
    """GBNF with xgrammar's own forms."""

    def new_lang(self, node: Lang) -> str:
        if not node.parts and not node.least and node.most is None:
            if node.encoding != "raw":
                begun = self.rule("begun", _macro(_BEGUN) + (_INSIDE if node.nested else ""))
                string = self.rule("string", f'{begun} "\\""')
                return self.rule("key", " ".join([string, *map(self.atom, node.end)])) if node.end else string
            if node.stops and not _overlapping(node):
                excludes = ", ".join(literal(stop) for stop in node.stops)
                text = self.rule("text", f"TagDispatch(excludes=({excludes},))")
                return self.rule("text", " ".join([text, *map(self.atom, node.end)])) if node.end else text
        return super().new_lang(node)


def _overlapping(node: Lang) -> bool:
    """Whether text without a stop can form one with the beginning of the end marker."""
    end = node.end_text
    return any(
        stop.endswith(end[:size]) and len(stop) > size for stop in node.stops for size in range(1, len(end))
    )


def _holds(node: Ir, test: Callable[[Ir], bool]) -> bool:
    """Whether ``test`` holds of a node or of one in it, not below a shared rule."""
    if isinstance(node, Rep):
        return _holds(node.node, test)
    items = node.items if isinstance(node, Seq) else node.options if isinstance(node, Alt) else ()
    return test(node) or any(_holds(item, test) for item in items)


def _native(node: Ir) -> bool:
    """Whether ``node`` holds what is worth a form of its own: free text with calls, or text up to a marker."""
    return _holds(node, lambda part: isinstance(part, Free) or (isinstance(part, Lang) and _plain(part)))


def _plain(node: Lang) -> bool:
    """Whether a language is text up to a marker and no more."""
    return (
        node.encoding == "raw"
        and not node.parts
        and not node.least
        and node.most is None
        and bool(node.stops or not node.end)
    )


class _Tags:
    def __init__(self, rules: Mapping[str, Ir]) -> None:
        self.rules = rules
        self.grammars: list[str] = []

    def format(self, node: Ir) -> dict[str, Any]:
        """``node`` as a format object."""
        if isinstance(node, (Text, TokenRef)):
            return {"type": "const_string", "value": node.text}
        if not _native(node):
            return self.grammar(node)
        if isinstance(node, Free):
            return self.free(node)
        if isinstance(node, Lang):
            if _overlapping(node):
                return self.grammar(node)
            text: dict[str, Any] = {"type": "any_text", "excludes": list(node.stops)}
            if not node.end:
                return text
            return {"type": "tag", "begin": "", "content": text, "end": node.end_text}
        if isinstance(node, Alt):
            return {"type": "or", "elements": [self.format(option) for option in node.options]}
        if isinstance(node, Rep):
            return self.repeat(node)
        assert isinstance(node, Seq)
        return self.sequence(node.items)

    def sequence(self, items: tuple[Ir, ...]) -> dict[str, Any]:
        """A sequence: what is not native in one piece, a marker with the text behind it as one tag."""
        out: list[dict[str, Any]] = []
        run: list[Ir] = []

        def flush() -> None:
            if run:
                literals = all(isinstance(item, (Text, TokenRef)) for item in run)
                out.append(
                    {"type": "const_string", "value": literal_text(run)}
                    if literals
                    else self.grammar(seq(*run))
                )
                run.clear()

        for item in items:
            if not _native(item):
                run.append(item)
                continue
            made = self.format(item)
            if made["type"] == "tag" and run and all(isinstance(part, (Text, TokenRef)) for part in run):
                made = {**made, "begin": literal_text(run)}
                run.clear()
            flush()
            out.append(made)
        flush()
        return out[0] if len(out) == 1 else {"type": "sequence", "elements": out}

    def repeat(self, node: Rep) -> dict[str, Any]:
        content = self.format(node.node)
        if (node.least, node.most) == (0, 1):
            return {"type": "optional", "content": content}
        if node.most is None and node.least <= 1:
            return {"type": "plus" if node.least else "star", "content": content}
        return {
            "type": "repeat",
            "min": node.least,
            "max": -1 if node.most is None else node.most,
            "content": content,
        }

    def grammar(self, node: Ir) -> dict[str, Any]:
        self.grammars.append(_Writer(self.rules).write(node))
        return {"type": "grammar", "grammar": self.grammars[-1]}

    def free(self, node: Free) -> dict[str, Any]:
        tags = []
        for trigger in node.triggers:
            rest = residual(node.calls, trigger)
            if rest is not None:
                content, end = _without_end(rest)
                tags.append({"type": "tag", "begin": trigger, "content": self.format(content), "end": end})
        return {
            "type": "triggered_tags",
            "triggers": [tag["begin"] for tag in tags],
            "tags": tags,
            "at_least_one": False,
            "stop_after_first": not node.parallel,
        }


def _without_end(node: Ir) -> tuple[Ir, str]:
    """``node`` without the literals at its end, and their text."""
    if isinstance(node, Shared):
        return _without_end(node.node)
    if isinstance(node, Seq) and node.items:
        size = len(node.items)
        while size > 1 and isinstance(node.items[size - 1], (Text, TokenRef)):
            size -= 1
        return seq(*node.items[:size]), literal_text(node.items[size:])
    return node, ""


def write_structural_tag(root: Ir, rules: Mapping[str, Ir]) -> str:
    """The structural tag as JSON text."""
    tags = _Tags(rules)
    format = tags.format(root)
    free = _holds(root, lambda part: isinstance(part, Free))  # for which a grammar has no form
    if len(tags.grammars) > 1 and not free:  # they share no rules: one grammar of all may be shorter
        whole = _Writer(rules).write(root)
        if len(whole) < sum(map(len, tags.grammars)):
            format = {"type": "grammar", "grammar": whole}
    return json.dumps({"type": "structural_tag", "format": format}, ensure_ascii=False)
