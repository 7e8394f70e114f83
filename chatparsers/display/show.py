"""The picture of each of the package's objects: what a notebook shows of it."""

from __future__ import annotations

import json
import warnings
from dataclasses import fields, replace
from functools import singledispatch
from typing import Any, Protocol, runtime_checkable

from ..answers.format import Format, Turn
from ..chat.chat import Chat
from ..chat.rollout import Rollout
from ..chat.sample import Sample
from ..detection.analysis.found import Analysis
from ..detection.detect import Detection
from ..explaining.causes import Explanation
from ..explaining.explain import explain
from ..grammar import Grammar
from ..streams.message import Message, ToolCall
from ..templates.probe.capabilities import Capabilities
from ..watch import observe
from .card import Card
from .diagram import diagram
from .drift import drift
from .picture import Picture
from .strip import strip


@runtime_checkable
class Pictured(Protocol):
    """What makes its picture itself, as it belongs to a part of the package that is above this one."""

    def picture(self) -> Picture: ...


@singledispatch
def show(thing: Any) -> Picture:
    """The picture of an object of this package: Chat, Message, ToolCall, Sample, Format, Turn, Grammar, Detection,
    Rollout, Report, Explanation, and of an analysis and the capabilities of a template. Below a message of a turn
    stands why it was not read as somebody expected (`explain`), where its diagnostics or its look ask for it.

    Raises TypeError for anything else.

    >>> from chatparsers import detect
    >>> print(show(detect("{% for m in messages %}{{ m.content }}{% endfor %}")))
    content-only, score 1.0
    evidence:
      the template renders neither tools nor calls nor reasoning
    """
    if isinstance(thing, Pictured):
        return thing.picture()
    raise TypeError(f"show: expected an object of chatparsers, found {type(thing).__name__}")


@show.register
def _(thing: Sample) -> Picture:
    return strip(thing)


@show.register
def _(thing: Message) -> Picture:
    turn = getattr(thing, "_turn", None)
    if turn is None or not (thing.diagnostics or observe(turn, thing)):
        return strip(thing)
    return replace(strip(thing), causes=tuple(explain(thing.text, turn).causes))


@show.register
def _(thing: Explanation) -> Picture:
    return replace(strip(thing.message), causes=tuple(thing.causes))


@show.register
def _(thing: ToolCall) -> Picture:
    rows = [("id", thing.id), *(() if thing.complete else (("complete", "no: it was cut off or broken"),))]
    arguments = thing.parsed_arguments
    text = thing.arguments if arguments is None else json.dumps(arguments, ensure_ascii=False, indent=2)
    return Card(f"call {thing.index}: {thing.name}", tuple(rows), texts=(("arguments", text),))


@show.register
def _(thing: Chat) -> Picture:
    record = thing.record()
    rows = (
        ("format", record.format),
        ("stops", ", ".join(map(repr, record.stops)) or "none"),
        ("thinking", ", ".join(record.capabilities["thinking_switches"]) or "no switch"),
        ("tokenizer", "yes" if thing.tokenizer is not None else "none: text in, text out"),
    )
    shown = (
        ("how the format was found", thing.detection),
        ("what the template shows", thing.template().probe()),
    )
    return Card(thing.name, rows, pictures=tuple((heading, show(each)) for heading, each in shown))


@show.register
def _(thing: Format) -> Picture:
    return diagram(thing)


@show.register
def _(thing: Detection) -> Picture:
    lists = [("evidence", thing.evidence), ("not proved", tuple(map(str, thing.limits)))]
    title = f"{thing.name or 'no format'}, score {thing.score}"
    return Card(title, lists=tuple((name, lines) for name, lines in lists if lines))


@show.register
def _(thing: Analysis) -> Picture:
    rows = [
        ("kind", thing.variant),
        ("read back in the proof", f"{thing.confidence:.0%}"),
        ("role header", repr(thing.header)),
        ("reasoning", "none found" if thing.reasoning is None else "found"),
        (
            "calls",
            "none found" if thing.calls is None else "several a turn" if thing.parallel else "one a turn",
        ),
        ("the turn ends with", ", ".join(map(repr, thing.stops)) or "nothing"),
    ]
    lists = [
        ("markers", tuple(f"{use}: {marker!r}" for use, marker in thing.markers())),
        ("not proved", tuple(map(str, thing.limits))),
        ("questions that stayed open", thing.refused),
    ]
    return Card("a format by analysis", tuple(rows), tuple((name, lines) for name, lines in lists if lines))


@show.register
def _(thing: Capabilities) -> Picture:
    values = {field.name.replace("_", " "): getattr(thing, field.name) for field in fields(thing)}
    flags = {name: value for name, value in values.items() if type(value) is bool and "default" not in name}
    rows = [
        ("shows", ", ".join(name for name, shown in flags.items() if shown) or "nothing"),
        ("drops or refuses", ", ".join(name for name, shown in flags.items() if not shown) or "nothing"),
        *((name, _fact_text(value)) for name, value in values.items() if name not in flags),
    ]
    return Card("what the template shows", tuple(rows))


@show.register
def _(thing: Grammar) -> Picture:
    rows = [
        ("dialect", thing.dialect),
        ("begins", "at a call" if thing.lazy else "with the first token"),
        *(("switched on by", f"{trigger.kind} {trigger.value!r}") for trigger in thing.triggers),
        *((("written by id", ", ".join(thing.by_id)),) if thing.by_id else ()),
    ]
    weak = tuple(f"{each.path or 'the schema'}, {each.keyword}: {each.why}" for each in thing.weakened)
    lists = (("not enforced", weak),) if weak else ()
    title = f"a grammar of {len(thing.text):,} characters"
    return Card(title, tuple(rows), lists, (("grammar", thing.text),))


@show.register
def _(thing: Turn) -> Picture:
    rows = [
        ("format", thing.format.name),
        ("tools", ", ".join(thing.tools.names()) or "none"),
        ("tool choice", thing.named or thing.options.mode),
        ("prefix", repr(thing.prefix) if thing.prefix else "none"),
        ("stops", ", ".join(map(repr, thing.stops)) or "none"),
        *((("written in another way", ", ".join(thing.polyfills)),) if thing.polyfills else ()),
        *((("does not fit", "; ".join(thing.warnings)),) if thing.warnings else ()),
    ]
    return Card("a turn", tuple(rows), texts=(("prompt", thing.prompt),) if thing.prompt else ())


@show.register
def _(thing: Rollout) -> Picture:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of segments in which nothing counts
        samples = thing.samples()
    pictures: list[tuple[str, Picture]] = [
        (f"sample {number} of {len(samples)}", strip(sample, tokenizer=thing.turn.tokenizer))
        for number, sample in enumerate(samples, 1)
    ]
    pictures += [
        (f"rewritten by the template at message {each.message} ({each.reason})", drift(each.held, each.shown))
        for each in thing.breaks
    ]
    pictures += [
        (
            f"not as the template writes it, at message {each.message} ({each.what})",
            drift(each.held, each.shown),
        )
        for each in thing.differs
    ]
    rows = (("ids", f"{len(thing.ids):,}"), ("messages", str(len(thing.messages))))
    return Card("a rollout", rows, pictures=tuple(pictures))


def _fact_text(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(repr, filter(None, value))) or "none"
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "not said"}[value]
    return str(value) if isinstance(value, str) and value.isidentifier() else repr(value)
