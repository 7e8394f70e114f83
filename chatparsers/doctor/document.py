"""The checks of a format's document, a stranger's too: its samples, the turns of a model, and three ways to lie.

A document that reads and writes every turn of a template is well chosen, and may lie all the same: a word of prose
opens a call, a text is hidden as a mark, a marker is no token. What it says beside the turns that were shown is found
here.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from ..answers import nodes as n
from ..answers.format import Format, Turn
from ..answers.idioms import Options
from ..answers.nodes import Node, Tag
from ..chat.chat import Chat
from ..core.tree import begins, children, once, walk
from ..detection.contest import reads, writes
from ..detection.shown import Probe, probes_of, several_calls, without_end
from ..errors import ChatParsersError
from ..streams.message import Message
from ..templates.jinja.limits import account
from .report import LEVELS, Fact, Finding, Report
from .subject import quoted

_CUTS = 80
"""In how many ways the text of a sample is cut."""
_FEWEST = 3
_ASKED = ("title", "tools", "prefix", "text", "expect")
_EXPECTED = ("content", "reasoning", "calls", "complete")
_CALLS = ('{"city": "Oslo"}', '{"city": "Paris", "days": 2}')


def document_report(path: str, format: Format, samples: Sequence[Any], chat: Chat | None = None) -> Report:
    """What is wrong with the document of ``format``. ``chat``: a model that is said to write it."""
    said: list[Finding | Fact] = [*_samples(format, samples)]
    skipped = () if chat is not None else (("model", "no model was given: say --model DIR"),)
    if chat is not None:
        said += _turns(format, chat)
        said += _strange(format, chat)
    findings = sorted(
        (one for one in said if isinstance(one, Finding)), key=lambda one: LEVELS.index(one.severity)
    )
    facts = tuple(("document", one.text) for one in said if isinstance(one, Fact))
    return Report(path, format.name, tuple(findings), () if findings else ("document",), skipped, facts)


# samples


def samples_of(format: Format) -> list[dict[str, Any]]:
    """Texts as a model of this format writes them, each with what it says."""
    calls = [
        {"id": f"call{place:05}", "type": "function", "function": {"name": "get_weather", "arguments": text}}
        for place, text in enumerate(_CALLS)
    ]
    messages: dict[str, dict[str, Any]] = {
        "an answer": {"content": "It is sunny."},
        "an answer after reasoning": {"reasoning_content": "Oslo.", "content": "It is sunny."},
        "a call": {"content": "", "tool_calls": calls[:1]},
        "a call after text": {"content": "I look.", "tool_calls": calls[:1]},
        "two calls": {"content": "", "tool_calls": calls},
    }
    found = []
    for title, message in messages.items():
        try:
            text = format.render({"role": "assistant", **message}, _tools(["get_weather"]))
        except ChatParsersError:
            continue  # the format has no place for a part of it
        expect = _as_data(_turn(format, ["get_weather"]).parse(text))
        if bool(expect["calls"]) == bool(message.get("tool_calls")):
            found.append({"title": title, "text": text, "expect": _short(expect)})
    return found


def _short(said: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in said.items() if value not in ("", [], True)}


def _as_data(message: Message) -> dict[str, Any]:
    calls = [{"name": call.name, "arguments": call.arguments} for call in message.tool_calls]
    return dict(content=message.content, reasoning=message.reasoning, calls=calls, complete=message.complete)


def _tools(names: Sequence[str]) -> list[dict[str, Any]]:
    properties = {"city": {"type": "string"}, "days": {"type": "integer"}}
    schema = {"type": "object", "properties": properties, "required": ["city"]}
    return [{"type": "function", "function": {"name": name, "parameters": schema}} for name in names]


def _turn(format: Format, names: Sequence[str], prefix: str = "", tools: Any = None) -> Turn:
    return format.bind(tools=tools or _tools(names) or None, prefix=prefix, id_seed="")


def _samples(format: Format, samples: Sequence[Any]) -> Iterator[Finding | Fact]:
    if len(samples) < _FEWEST:
        yield Finding(
            "few-samples",
            "warning",
            f"the document has {len(samples)} samples, and {_FEWEST} are the fewest that show a format",
            mend="write an answer, a call and two calls under samples, as models write them",
        )
    for place, sample in enumerate(samples):
        yield from _sample(format, sample, f"$.samples[{place}]")
    yield Fact(f"{len(samples)} samples, each read whole and in {_CUTS} cuts")


def _sample(format: Format, sample: Any, at: str) -> Iterator[Finding]:
    wrong = malformed(sample)
    if wrong:
        yield Finding("sample-malformed", "error", f"{at}: {wrong}", mend="write title, text and expect")
        return
    text, expect = sample["text"], sample["expect"]
    wanted = {"content": "", "reasoning": "", "calls": [], "complete": True, **expect}
    names = dict.fromkeys(call["name"] for call in wanted["calls"])
    try:
        turn = _turn(format, [*names], sample.get("prefix", ""), sample.get("tools"))
        said = _as_data(turn.parse(text))
    except ChatParsersError as error:
        yield Finding("sample-malformed", "error", f"{at}: {error}", mend="write tools as OpenAI has them")
        return
    for part in _EXPECTED:
        if said[part] != wanted[part]:
            yield Finding(
                "sample-differs",
                "error",
                f"{at}: the format reads {part} otherwise than the sample expects",
                f"text: {quoted(text)}\nexpected: {wanted[part]!r}\nread: {said[part]!r}",
                "mend the tree, or what the sample expects",
            )
    draw = random.Random(text)
    for _ in range(_CUTS):
        stream = turn.stream()
        for piece in _pieces(text, draw):
            stream.feed(piece)
        stream.finish()
        if _as_data(stream.message) != said:  # a promise of ours
            yield Finding(
                "sample-cut", "error", f"{at}: a cut text is read otherwise", quoted(text), "report it"
            )
            return


def malformed(sample: Any) -> str:
    """What is wrong with a sample of a document; "" if it is one."""
    if not isinstance(sample, dict):
        return "expected an object"
    for key in sample:
        if key not in _ASKED:
            return f"there is no key {key!r:.40}"
    expect = sample.get("expect")
    if not isinstance(sample.get("text"), str) or not isinstance(sample.get("prefix", ""), str):
        return "expected a text as text"
    if not isinstance(expect, dict) or not set(expect) <= set(_EXPECTED):
        return f"expected an object with some of {', '.join(_EXPECTED)} as expect"
    calls = expect.get("calls", [])
    if not isinstance(calls, list) or not all(
        isinstance(call, dict) and call.keys() == {"name", "arguments"} and isinstance(call["name"], str)
        for call in calls
    ):
        return "expected calls, each with a name and with arguments as text"
    return ""


def _pieces(text: str, draw: random.Random) -> Iterator[str]:
    at = 0
    while at < len(text):
        size = draw.randint(1, 1 + len(text) // 4)
        yield text[at : at + size]
        at += size


# the turns of a model


def probes(chat: Chat) -> list[Probe]:
    """The turns that the model's template renders, without their ends."""
    template = chat.template()
    with account(template.limits, template.name):
        return without_end(template, [*probes_of(template), *several_calls(template)])


def _turns(format: Format, chat: Chat) -> Iterator[Finding | Fact]:
    turns = probes(chat)
    unread = [probe for probe in turns if not reads(format, probe)]
    for probe in unread:
        yield Finding(
            "turn-not-read",
            "error",
            f"{probe.what}, as the template writes it, is read otherwise",
            f"written: {quoted(probe.wire)}",
            "mend the tree until the format reads what the template writes",
        )
    for probe in turns:
        if probe not in unread and not writes(format, probe):
            yield Finding(
                "turn-not-written",
                "warning",
                f"the format writes {probe.what} otherwise than the template",
                f"written: {quoted(probe.wire)}",
                "mend what is generated: white space, the order of members",
            )
    yield Fact(f"{len(turns) - len(unread)} of {len(turns)} turns of the template are read")


def _strange(format: Format, chat: Chat) -> Iterator[Finding | Fact]:
    """What the document reads that nothing of the model shows."""
    template = chat.template()
    shown = template.source + "\n".join(probe.prompt + probe.wire for probe in probes(chat))
    tree = format.tree(Options(tools=True))
    unseen: dict[str, str] = {}
    for part, opener in _openers(tree):
        for text in begins(opener):
            if text.strip() not in shown:
                unseen.setdefault(text, part)
    for text, part in unseen.items():
        prose = not any(sign in text for sign in "<>[]{}|｜`§«»#@")
        yield Finding(
            "opener-not-shown",
            "error" if prose else "note",
            f"{text!r} opens {part}, and nothing that the template writes holds it",
            mend="if the model writes it, show it in a sample; if not, leave it out: prose may hold it",
        )
    for call, opener in _implied(tree):
        if not any(text.strip() in shown for text in begins(opener)):
            yield Finding(
                "implied-call",
                "error",
                f"a text that names no tool is a call of {call.value!r}, and the template shows no such opener",
                " or ".join(map(repr, begins(opener)[:4])),
                "let the text name its tool, or begin it with a marker that the template writes",
            )
    yield from _texts(format, chat, tree)


def _openers(tree: Node) -> Iterator[tuple[str, Node]]:
    for node in once(tree):
        if isinstance(node, n.Think):
            yield "a thought", node.span.open
        elif isinstance(node, n.Body):
            for part, opener in (("a call", node.calls), ("a call", node.start), ("a mark", node.marks)):
                if opener is not None:
                    yield part, opener
            for part, span in (("a thought", node.reasoning), ("an answer", node.content)):
                if span is not None:
                    yield part, span.open


def _implied(node: Node) -> Iterator[tuple[n.Implied, Node]]:
    """The names of tools that no text spells, each with the way to read it that begins a call."""
    if isinstance(node, (n.Choice, n.Lenient, n.Calls, n.EachTool, n.Body)):
        for part in children(node):
            yield from _implied(part)
        return
    for part in walk(node):
        if isinstance(part, n.Implied) and part.tag is Tag.NAME:
            yield part, node
        elif isinstance(part, n.Body) and part is not node:
            yield from _implied(part)


def _texts(format: Format, chat: Chat, tree: Node) -> Iterator[Finding]:
    """Markers that are one special token of the model, and that the document has as text."""
    if chat.tokenizer is None:
        return
    added = (token.content for token in chat.tokenizer.get_added_tokens_decoder().values())
    special = sorted({text for text in added if len(text.strip()) > 2 and not text.strip().isalnum()})
    for node in once(tree, lambda one: children(one, True)):
        if isinstance(node, n.Literal):
            for text in special:
                if text in node.text:
                    yield Finding(
                        "marker-as-text",
                        "error",
                        f"the marker {text!r} is a special token of this model, and the document has it as text",
                        "a user's text that spells it would count as the marker (docs/security.md)",
                        f'write {{"token": "{text}"}}',
                    )
