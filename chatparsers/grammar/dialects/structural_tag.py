"""Writes structural tags: the JSON that xgrammar, vLLM and SGLang take.

Strategy: the parts around the calls are native, because those engines run and inspect them. Free text with calls is
``triggered_tags``, reasoning is a tag around ``any_text``. The inside of a call is one grammar in xgrammar's own
dialect: GBNF with ``TagDispatch`` for text up to a marker and ``Regex`` for strings. These two compile in a tenth of
the time of equal rules. xgrammar's ``json_schema`` is not used: it cannot say that members come in any order and that
some are required.

A marker that the stream takes by its id is a ``token``. Tags that begin with a token allow no excluded texts in the
free text around them. With such tags, free text with calls is spelled out: ``(any_text call)* any_text``. So it is
where each tag would hold the calls of all tools after its own call.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from typing import Any

from .. import ir
from ..reading.residual import residual
from .closing import closing
from .gbnf import WHITE, XgrammarWriter, literal, regex

_STRING = (
    r'"([^"\\\x00-\x1f]|\\(["\\/bfnrt]|u([0-9a-cA-CefEF]H{3}|[dD]([0-7]H{2}|[89abAB]H{2}\\u[dD][c-fC-F]H{2}))))*"'
).replace("H", "[0-9a-fA-F]")
"""A JSON string."""
_INSIDE = " (= [,}\\]])"
"""The text after a string in an object or array. With this look-ahead, xgrammar tries fewer tokens at run time, so a
mask inside a string takes half of the time. White space in it would cost a quarter more. Without it, a mask allows the
quote and then white space, but no token that has both."""
_COMMA = "," + WHITE
"""What is between an object's members."""
_BEFORE_NAME = ' (= ["])'
"""The text after a comma and its white space in an object: the quote of a name."""


class _Writer(XgrammarWriter):
    """GBNF with xgrammar's own forms."""

    def __init__(self, rules: Mapping[str, ir.Ir], token_ids: Mapping[str, int], regexes: bool) -> None:
        super().__init__(rules, token_ids, regexes)
        self.closings: dict[tuple[int, tuple[int, ...]], tuple[ir.State, ...]] = {}
        self.closed_names: dict[int, str] = {}

    def by_id(self, node: ir.Lang) -> bool:
        """Whether the text ends at a marker that is written by its id."""
        return bool(node.end) and node.end[-1].text in self.token_ids

    def order(self, node: ir.Order) -> str:
        """An order. A string at the end of an object's member takes in the comma (closing.py)."""
        names = [*map(self.shared, node.members)]
        closed: dict[int, str] = {}
        if node.extra is None and len(names) > 1 and self.regexes:
            comma = self.choice(node.separator)
            found = ((at, self.closed(member, comma)) for at, member in enumerate(node.members))
            closed = {at: name for at, name in found if name}
        if not closed:
            return self.in_order(node, names, node.states)
        key = (id(node.states), tuple(closed))
        states = self.closings.get(key)
        if states is None:
            self.alive.append(node.states)
            states = self.closings[key] = closing(node.states, len(names), tuple(closed))
        return self.in_order(node, [*names, *closed.values()], states)

    def closed(self, node: ir.Ir, comma: str) -> str:
        """The right side of a member and the comma after it, if a string at its end can take in the comma; else ""."""
        if isinstance(node, ir.Lang):
            plain = node.nested and node.unconstrained and not node.end
            return self.rule("string", regex(_STRING + _COMMA) + _BEFORE_NAME) if plain else ""
        if isinstance(node, ir.Shared):
            name = self.closed_names.get(id(node))
            if name is None:
                found = self.closed(node.node, comma)
                name = self.closed_names[id(node)] = found and self.rule(node.hint.lower(), found)
                self.alive.append(node)
            return name
        if isinstance(node, ir.Seq) and node.items:
            last = self.closed(node.items[-1], comma)
            if last and isinstance(node.items[-1], ir.Alt):
                last = f"({last})"
            return last and " ".join([*self.atoms(node.items[:-1]), last])
        if isinstance(node, ir.Alt):
            each = [self.closed(option, comma) for option in node.options]
            if any(each):
                options = zip(each, node.options, strict=True)
                return " | ".join([one or f"{self.choice(option)} {comma}" for one, option in options])
        return ""

    def new_lang(self, node: ir.Lang) -> str:
        if node.unconstrained and not node.opened:
            if node.encoding != "raw" and self.regexes:
                string = self.rule("string", regex(_STRING) + (_INSIDE if node.nested else ""))
                return self.rule("key", " ".join([string, *map(self.atom, node.end)])) if node.end else string
            if node.encoding == "raw" and node.stops and not self.by_id(node) and not _overlapping(node):
                excludes = ", ".join(literal(stop) for stop in node.stops)
                text = self.rule("text", f"TagDispatch(excludes=({excludes},))")
                return self.rule("text", " ".join([text, *map(self.atom, node.end)])) if node.end else text
        return super().new_lang(node)


def _overlapping(node: ir.Lang) -> bool:
    """Whether text without a stop can form one with the beginning of the end marker."""
    end = node.end_text
    return any(
        stop.endswith(end[:size]) and len(stop) > size for stop in node.stops for size in range(1, len(end))
    )


def _holds(node: ir.Ir, test: Callable[[ir.Ir], bool]) -> bool:
    """Whether ``test`` holds for ``node`` or for a node in it. Does not look into shared rules."""
    if isinstance(node, ir.Rep):
        return _holds(node.node, test)
    items = node.items if isinstance(node, ir.Seq) else node.options if isinstance(node, ir.Alt) else ()
    return test(node) or any(_holds(item, test) for item in items)


def _native(node: ir.Ir) -> bool:
    """Whether ``node`` holds a part with a native form: free text with calls, or text up to a marker."""
    return _holds(
        node, lambda part: isinstance(part, ir.Free) or (isinstance(part, ir.Lang) and _plain(part))
    )


def _plain(node: ir.Lang) -> bool:
    """Whether a language is only text up to a marker."""
    return node.encoding == "raw" and node.unconstrained and bool(node.stops or not node.end)


class _Tags:
    def __init__(self, rules: Mapping[str, ir.Ir], token_ids: Mapping[str, int], regexes: bool) -> None:
        self.rules = rules
        self.token_ids = token_ids
        self.regexes = regexes
        self.grammars: list[str] = []

    def format(self, node: ir.Ir) -> dict[str, Any]:
        """``node`` as a format object."""
        if isinstance(node, (ir.Text, ir.TokenRef)):
            return self.literal([node])
        if not _native(node):
            return self.grammar(node)
        if isinstance(node, ir.Free):
            return self.free(node)
        if isinstance(node, ir.Lang):
            text: dict[str, Any] = {"type": "any_text", "excludes": list(node.stops)}
            if not node.end:
                return text
            if any(map(self.by_id, node.end)):
                return _sequence([text, self.literal(node.end)])
            if _overlapping(node):
                return self.grammar(node)
            return {"type": "tag", "begin": "", "content": text, "end": node.end_text}
        if isinstance(node, ir.Alt):
            # Options without a native form are one grammar: in several, each would repeat the rules of all tools.
            native = [option for option in node.options if _native(option)]
            rest = [option for option in node.options if not _native(option)]
            options = [*([ir.alt(*rest)] if rest else []), *native]
            elements = [self.format(option) for option in options]
            return elements[0] if len(elements) == 1 else {"type": "or", "elements": elements}
        if isinstance(node, ir.Rep):
            return self.repeat(node)
        assert isinstance(node, ir.Seq)
        return self.sequence(node.items)

    def by_id(self, item: ir.Ir) -> bool:
        """Whether a literal is a marker that is written by its id."""
        return isinstance(item, ir.TokenRef) and item.text in self.token_ids

    def literal(self, items: Iterable[ir.Ir]) -> dict[str, Any]:
        """A run of literals."""
        out: list[dict[str, Any]] = []
        for named, run in groupby(items, self.by_id):
            if named:
                out += [{"type": "token", "token": self.token_ids[ir.literal_text([item])]} for item in run]
            else:
                out.append({"type": "const_string", "value": ir.literal_text(run)})
        return _sequence(out)

    def sequence(self, items: tuple[ir.Ir, ...]) -> dict[str, Any]:
        """A sequence. Neighbours without a native form become one piece; a marker and the text after it become one
        tag."""
        out: list[dict[str, Any]] = []
        run: list[ir.Ir] = []

        def flush() -> None:
            if run:
                literals = all(isinstance(item, (ir.Text, ir.TokenRef)) for item in run)
                out.append(self.literal(run) if literals else self.grammar(ir.seq(*run)))
                run.clear()

        for item in items:
            if not _native(item):
                run.append(item)
                continue
            made = self.format(item)
            if made["type"] == "tag" and run and all(map(self.plain, run)):
                made = {**made, "begin": ir.literal_text(run)}
                run.clear()
            flush()
            out.append(made)
        flush()
        return _sequence(out)

    def plain(self, item: ir.Ir) -> bool:
        """Whether a node is a literal that is written as text."""
        return isinstance(item, (ir.Text, ir.TokenRef)) and not self.by_id(item)

    def repeat(self, node: ir.Rep) -> dict[str, Any]:
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

    def grammar(self, node: ir.Ir) -> dict[str, Any]:
        self.grammars.append(self.text(node))
        return {"type": "grammar", "grammar": self.grammars[-1]}

    def free(self, node: ir.Free) -> dict[str, Any]:
        """Free text with calls."""
        if node.within is not None:
            text = {
                "type": "any_text",
                "excludes": [*node.triggers, *node.excludes],
                "max_tokens": node.within,
            }
            call = _sequence([self.format(node.calls), self.format(node.after)])
            return _sequence([text, {"type": "optional", "content": call}])
        counted = node.most is not None and (node.most > 1 or node.left)
        if counted or any(marker in trigger for trigger in node.triggers for marker in self.token_ids):
            return self.spelled_out(node)
        found = [(trigger, residual(node.calls, trigger)) for trigger in node.triggers]
        rests = [(trigger, rest) for trigger, rest in found if rest is not None]
        # A trigger ends where an excluded text in it does, because the engine stops at the first of the two.
        triggers = list(dict.fromkeys(trigger[: node.ends(trigger)] for trigger, _ in rests))
        barred = [trigger for trigger, rest in found if rest is None]  # calls of tools that are not given
        # After a trigger comes a tag. xgrammar would let the turn end inside an excluded text that begins with one.
        excludes = [text for text in (*barred, *node.excludes) if not text.startswith(tuple(triggers))]
        cut_short = any(text in trigger for trigger in triggers for text in excludes)
        if cut_short or self.repeats([rest for _, rest in rests], node.calls):
            return self.spelled_out(node)
        tags = []
        for trigger, rest in rests:
            content, end = _without_end(rest)
            tags.append({"type": "tag", "begin": trigger, "content": self.format(content), "end": end})
        return {
            "type": "triggered_tags",
            "triggers": triggers,
            "tags": tags,
            "at_least_one": False,
            "stop_after_first": node.most == 1,
            **({"excludes": excludes} if excludes else {}),
        }

    def spelled_out(self, node: ir.Free) -> dict[str, Any]:
        """Free text with calls as a sequence of both."""
        text = {"type": "any_text", "excludes": [*node.triggers, *node.excludes]}
        call = _sequence([text, self.format(node.calls)])
        if node.most == 1 and not node.left:
            return {"type": "or", "elements": [call, text]}
        if node.most is None:
            return _sequence([{"type": "star", "content": call}, text])
        return _sequence([{"type": "repeat", "min": 0, "max": node.most, "content": call}, text])

    def repeats(self, rests: list[ir.Ir], calls: ir.Ir) -> bool:
        """Whether a tag for each trigger would repeat most of ``calls``: all end alike, with the calls that follow."""
        last = [rest.items[-1] for rest in rests if isinstance(rest, ir.Seq)]
        if len(last) < 3 or len(last) < len(rests) or any(item is not last[0] for item in last):
            return False
        return self.size(last[0]) * len(last) > 2 * self.size(calls)

    def size(self, node: ir.Ir) -> int:
        """The length of a grammar of ``node``, in characters."""
        return len(self.text(node))

    def text(self, node: ir.Ir) -> str:
        """A grammar of ``node``."""
        return _Writer(self.rules, self.token_ids, self.regexes).write(node)


def _sequence(elements: list[dict[str, Any]]) -> dict[str, Any]:
    """One format after the other; nested sequences become one."""
    flat: list[dict[str, Any]] = []
    for element in elements:
        flat += element["elements"] if element["type"] == "sequence" else [element]
    return flat[0] if len(flat) == 1 else {"type": "sequence", "elements": flat}


def _without_end(node: ir.Ir) -> tuple[ir.Ir, str]:
    """``node`` without the literals at its end, and their text."""
    if isinstance(node, ir.Shared):
        return _without_end(node.node)
    if isinstance(node, ir.Seq) and node.items:
        size = len(node.items)
        while size > 1 and isinstance(node.items[size - 1], (ir.Text, ir.TokenRef)):
            size -= 1
        return ir.seq(*node.items[:size]), ir.literal_text(node.items[size:])
    return node, ""


def write_structural_tag(
    root: ir.Ir, rules: Mapping[str, ir.Ir], token_ids: Mapping[str, int] | None = None, regexes: bool = True
) -> str:
    """The structural tag as JSON text. ``token_ids``: the markers that are written by their ids. ``regexes``: whether
    xgrammar reads regular expressions in rules."""
    tags = _Tags(rules, token_ids or {}, regexes)
    format = tags.format(root)
    free = _holds(root, lambda part: isinstance(part, ir.Free))  # a grammar has no form for these parts
    if len(tags.grammars) > 1 and not free:  # they share no rules: one grammar of all may be shorter
        whole = tags.text(root)
        if len(whole) < sum(map(len, tags.grammars)):
            format = {"type": "grammar", "grammar": whole}
    return json.dumps({"type": "structural_tag", "format": format}, ensure_ascii=False)
