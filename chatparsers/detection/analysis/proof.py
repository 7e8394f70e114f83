"""Proves a found format: it must read back the turns that the template wrote.

The turns are those of the analysis, and a second set that the analysis never saw (other names and keys, values with
quotes, markup, line breaks and words of other alphabets, three calls). Each is read whole and by the character. Every
message must be the one that was asked for, complete and without diagnostics. And the grammar must generate each turn
that has only calls. If the template itself drops a part of a message, the format is not blamed for it.

What is proved is used, and what is not is a `Limit`. Answers, reasoning, and a call with plain texts must always be
proved. A turn with more in it than that may fail, if the same turn without this part is read: then the part is named.
Strings and turns that are not read must say so by a diagnostic, for no request tells that they will come. Values of a
JSON type need not: the request's tools tell it, and whoever binds such a tool is warned.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ...answers import Raw
from ...answers.format import Format
from ...templates.probe.edges import edges_of
from ..limits import Limit
from .accepted import accepts
from .arguments import SPECIAL_NAME
from .found import Analysis, Refused
from .probes import ASKED, HELD_BACK, Asker, Call, Rendering, Words


class _Unread(Refused):
    """A turn that is not read as it was asked for. ``loud``: its diagnostics say so. ``space``: only white space around
    content or reasoning differs. ``generated``: it is read, but the grammar does not generate it."""

    def __init__(self, why: str, *, loud: bool = False, space: bool = False, generated: bool = True) -> None:
        super().__init__(why)
        self.loud, self.space, self.generated = loud, space, generated


def prove(asker: Asker, analysis: Analysis, format: Format) -> tuple[Analysis, int]:
    """The analysis with what of it holds, and how many turns the format read back. Raises `Refused`, which names the
    first turn that it must read back and does not."""
    limits: dict[str, Limit] = {}
    answers = list(_answers(asker, analysis))
    proved = []
    for answer in answers:
        try:
            _read(answer, analysis, format)
            proved.append(answer)
        except _Unread as error:
            for limit in _limits(asker, analysis, format, answer, error):
                limits.setdefault(limit.part, limit)
    if not any(answer.content for answer in proved):
        raise Refused("no answer is shown by which it could be proved")
    held_back = {call.name for answer in answers for call in answer.calls} & set(HELD_BACK.names)
    if analysis.calls is not None and not (held_back and any(answer.calls for answer in proved)):
        raise Refused("no call is shown by which it could be proved")
    every = [needs for needs, _ in _questions(ASKED) if needs != {"calls", "escaped"} or _escaped(analysis)]
    share = len(proved) / (2 * len(every))
    known = (*analysis.limits, *limits.values())
    return replace(analysis, confidence=round(share, 2), limits=known), len(proved)


def _limits(
    asker: Asker, analysis: Analysis, format: Format, answer: Rendering, error: _Unread
) -> Iterator[Limit]:
    """The parts of a turn by which it is not read. Raises ``error`` if it must be read."""
    if error.space or not error.generated:
        yield Limit("white space" if error.space else "grammar", str(error))
        return

    def reads(less: Rendering | None) -> bool:
        try:
            if less is not None:
                _read(less, analysis, format)
        except _Unread as narrower:
            return not narrower.generated or narrower.space
        return less is not None

    wrong = {part: less for part, less in _of_types(asker, answer) if not reads(less)}
    for part, less in wrong.items():
        yield Limit(part, f"{less.what} is not read: {less.wire!r:.300}" if less else "it is not written")
    if not wrong:
        without = next((part for part, less in _without(asker, answer) if reads(less)), None)
        if without is None or not error.loud:
            raise error
        yield Limit(without, str(error))


def _of_types(asker: Asker, answer: Rendering) -> Iterator[tuple[str, Rendering | None]]:
    """For each value of the turn's first call that is no string, its JSON type, and a call with this value alone."""
    for call in answer.calls[:1]:
        for key, value in call.arguments.items():
            if not isinstance(value, str):
                one = Call(call.name, {key: value}, call.id)
                yield _type_of(value), asker.ask(f"a call with {json.dumps(value)}", calls=(one,))


def _without(asker: Asker, answer: Rendering) -> Iterator[tuple[str, Rendering | None]]:
    """The turn without one part, for each part that it may be read without."""
    given: dict[str, Any] = {
        "content": answer.content,
        "reasoning": answer.reasoning,
        "thinking": answer.thinking,
    }
    calls = tuple(
        replace(call, arguments={key: _PLAIN.get(str(value), value) for key, value in call.arguments.items()})
        for call in answer.calls
    )
    if calls != answer.calls:
        yield "special characters", asker.ask(f"{answer.what}, plain texts", calls=calls, **given)
    if calls and answer.reasoning:
        yield "calls after reasoning", asker.ask("a call", calls=calls, **{**given, "reasoning": ""})
    if calls and answer.content:
        yield "text beside calls", asker.ask("a call", calls=calls, **{**given, "content": ""})
    if len(calls) > 1:
        yield "several calls", asker.ask("a call", calls=calls[:1], **given)


_PLAIN = dict(zip(HELD_BACK.texts, ("reeds", "mud", "Osmo"), strict=True))
"""The texts with special characters, each with one that has none."""


def _type_of(value: object) -> str:
    if isinstance(value, bool):
        return "boolean"
    if value is None:
        return "null"
    return "number" if isinstance(value, (int, float)) else "object" if isinstance(value, dict) else "array"


def _escaped(analysis: Analysis) -> bool:
    return analysis.calls is not None and bool(analysis.calls.arguments.escapes)


def _answers(asker: Asker, analysis: Analysis) -> Iterator[Rendering]:
    """The turns of all questions, as far as the template writes all that was asked for."""
    shows = {
        "reasoning": analysis.reasoning is not None,
        "calls": analysis.tools,
        "several": analysis.parallel,
        "beside": asker.template.can.content_beside_calls,
        "escaped": _escaped(analysis),
    }
    for words in (ASKED, HELD_BACK):
        for needs, question in _questions(words):
            answer = asker.ask(**question) if all(shows[need] for need in needs) else None
            if answer is not None and _expressed(answer, analysis.stops):
                yield answer


def _questions(words: Words) -> Iterator[tuple[set[str], dict[str, Any]]]:
    """All questions, each with what the template must show for it: reasoning, calls, several calls, text beside calls,
    names of arguments with escaped characters."""
    for thinking in (None, True, False):
        yield set(), {"what": "an answer", "content": words.content, "thinking": thinking}
    one = Call(words.names[0], {words.keys[0]: words.texts[0]}, words.ids[0])
    yield set(), {"what": "an answer, with tools", "content": words.content, "offered": (one,)}
    thought = {"reasoning": words.reasoning, "thinking": True}
    after = {"what": "an answer after reasoning", "content": words.content, **thought}
    yield {"reasoning"}, after
    yield {"reasoning"}, {**after, "thinking": None}
    none = Call(words.names[1], {}, words.ids[1])
    mixed = {words.keys[1]: words.texts[1], words.keys[0]: words.texts[2], words.keys[2]: words.number}
    many = Call(words.names[2], mixed, words.ids[2])
    typed = Call(words.names[0], _VALUES, words.ids[0])
    named = Call(words.names[0], {SPECIAL_NAME: words.texts[0]}, words.ids[0])
    beside = {"content": words.content, "calls": (one,)}
    yield {"calls"}, {"what": "a call", "calls": (one,)}
    yield {"calls"}, {"what": "a call without arguments", "calls": (none,)}
    yield {"calls"}, {"what": "a call with three arguments", "calls": (many,)}
    yield {"calls"}, {"what": "a call with values of all types", "calls": (typed,)}
    yield {"calls", "escaped"}, {"what": "a call with special characters in a name", "calls": (named,)}
    yield {"calls", "several"}, {"what": "two calls", "calls": (one, many)}
    yield {"calls", "several"}, {"what": "three calls", "calls": (one, none, many)}
    yield {"calls", "beside"}, {"what": "text beside a call", **beside}
    yield {"calls", "reasoning"}, {"what": "a call after reasoning", "calls": (one,), **thought}
    yield {"calls", "beside", "reasoning"}, {"what": "all three", **beside, **thought}


_VALUES: dict[str, Any] = {
    "a": 1.5,
    "b": True,
    "c": False,
    "e": "",
    "f": [1, "x", {"y": True}],
    "g": {"h": {"i": []}},
    "j": "42",
    "k": [],
}


def _expressed(answer: Rendering, stops: tuple[str, ...]) -> bool:
    """Whether the template shows all of the message in one turn. Models have not learnt to write dropped text."""
    for text in (answer.content, answer.reasoning):
        if text and text not in answer.wire:
            return False
    if any(call.name not in answer.wire for call in answer.calls):
        return False
    last = answer.wire.rfind(answer.calls[-1].name) if answer.calls else 0
    return not any(0 <= answer.wire.find(stop) < last for stop in stops)


def _read(answer: Rendering, analysis: Analysis, format: Format) -> None:
    """Raises `_Unread` if the format does not read the turn as the message that was asked for."""
    prefix = edges_of(format).opening(answer.opening)
    turn = format.bind(tools=answer.tools, prefix=prefix, thinking=answer.thinking)
    message = turn.parse(answer.wire)
    expected = (
        answer.content,
        answer.reasoning,
        [(call.name, dict(call.arguments)) for call in answer.calls],
    )
    try:
        calls = [(call.name, json.loads(call.arguments)) for call in message.tool_calls]
    except ValueError:
        raise _Unread(
            f"{answer.what}: the arguments that were read from {answer.wire!r:.300} are no JSON",
            loud=bool(message.diagnostics),
        ) from None
    said = (message.content, message.reasoning, calls)
    wrong = [
        diagnostic
        for diagnostic in message.diagnostics
        if diagnostic.code not in ("mended", "markup-in-value", "repeated-call")
    ]
    if said != expected:
        raise _Unread(
            f"{answer.what}: asked {expected!r:.200}, read {said!r:.200} from {answer.wire!r:.300}",
            loud=any(one.code != "markup-in-value" for one in message.diagnostics) or not message.complete,
            space=(said[0].strip(), said[1].strip(), calls) == (answer.content, answer.reasoning, expected[2])
            and not wrong,
        )
    if wrong or not message.complete:
        why = "; ".join(map(str, wrong)) or "it is not complete"
        raise _Unread(f"{answer.what}: {why}, in {answer.wire!r:.300}", loud=True)
    stream = turn.stream()
    for character in answer.wire:
        stream.feed(character)
    stream.finish()
    if stream.message != message:
        raise Refused(f"{answer.what}: read by the character it is another message")
    if answer.calls and not answer.content and not message.diagnostics and not _as_python(answer, analysis):
        required = format.bind(
            tools=answer.tools, prefix=prefix, thinking=answer.thinking, tool_choice="required"
        )
        if not accepts(required, *_generated(answer.wire, analysis)):
            raise _Unread(
                f"{answer.what}: the grammar does not generate {answer.wire!r:.300}", generated=False
            )


def _as_python(answer: Rendering, analysis: Analysis) -> bool:
    """Whether the template may have printed an object or array as Python does: the parser mends it, the grammar writes
    JSON."""
    syntax = None if analysis.calls is None else analysis.calls.arguments.syntax
    values = [value for call in answer.calls for value in call.arguments.values()]
    return isinstance(syntax, Raw) and syntax.python and any(isinstance(v, (dict, list)) for v in values)


def _generated(wire: str, analysis: Analysis) -> set[str]:
    """The part of a turn of calls that the grammar must generate, in all readings: without its end, without a lone
    closer of an empty thought that the prompt would have written, and with the calls' closer if the template omits
    it."""
    ends = [wire.find(stop) for stop in analysis.stops if stop in wire]
    text = wire[: min(ends)] if ends else wire
    found = {wire, text, text.rstrip("\n"), text.rstrip().removesuffix(analysis.sep)}
    reasoning, calls = analysis.reasoning, analysis.calls
    if reasoning is not None and reasoning.bare_close:
        without = {other.lstrip().removeprefix(reasoning.close.strip()) for other in found}
        found |= without | {other.lstrip() for other in without}
    if calls is not None and calls.end_optional:
        found |= {other + calls.section[1] for other in found} | {other + calls.after for other in found}
    return found
