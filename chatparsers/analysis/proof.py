"""Nothing is believed of a format that was found before it has read back what the template wrote.

Each turn that was asked for, and a second set that the analysis never saw (other names and keys, values with quotes,
markup, line breaks and words of other alphabets, three calls), is read whole and by the character; every message must be
the one that was asked for, complete and without complaint. What the template lost of a message by itself is not held
against the format.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ..core.format import Format
from .found import Analysis, Refused
from .openings import prompt_prefix
from .probes import ASKED, HELD_BACK, Asker, Call, Rendering, Words, tools_for

__all__ = ["prove"]


def prove(asker: Asker, analysis: Analysis, format: Format) -> int:
    """How many turns the format read back. Raises `Refused`, which says of the first that it did not."""
    count = 0
    for answer in _answers(asker, analysis):
        _read(answer, analysis, format)
        count += 1
    return count


def _answers(asker: Asker, analysis: Analysis) -> Iterator[Rendering]:
    can = asker.template.probe()
    for words in (ASKED, HELD_BACK):
        for question in _questions(words, analysis, can.content_beside_calls):
            answer = asker.ask(**question)
            if answer is not None and _expressed(answer):
                yield answer


def _questions(words: Words, analysis: Analysis, beside: bool) -> Iterator[dict[str, Any]]:
    for thinking in (None, True, False):
        yield {"what": "an answer", "content": words.content, "thinking": thinking}
    if analysis.reasoning is not None:
        for thinking in (True, None):
            yield {
                "what": "an answer behind reasoning",
                "content": words.content,
                "reasoning": words.reasoning,
                "thinking": thinking,
            }
    if analysis.calls is None:
        return
    one = Call(words.names[0], {words.keys[0]: words.texts[0]}, words.ids[0])
    none = Call(words.names[1], {}, words.ids[1])
    many = Call(
        words.names[2],
        {words.keys[1]: words.texts[1], words.keys[0]: words.texts[2], words.keys[2]: words.number},
        words.ids[2],
    )
    values = Call(
        words.names[0],
        {"a": 1.5, "b": True, "c": False, "e": "", "f": [1, "x", {"y": True}], "g": {"h": {"i": []}}, "j": "42", "k": []},
        words.ids[0],
    )
    yield {"what": "a call", "calls": (one,)}
    yield {"what": "a call without arguments", "calls": (none,)}
    yield {"what": "a call with three arguments", "calls": (many,)}
    yield {"what": "a call with values of all types", "calls": (values,)}
    if analysis.calls.parallel:
        yield {"what": "two calls", "calls": (one, many)}
        yield {"what": "three calls", "calls": (one, none, many)}
    if beside:
        yield {"what": "text beside a call", "content": words.content, "calls": (one,)}
    if analysis.reasoning is not None:
        yield {"what": "a call behind reasoning", "reasoning": words.reasoning, "calls": (one,), "thinking": True}
    if analysis.reasoning is not None and beside:
        yield {
            "what": "all three",
            "content": words.content,
            "reasoning": words.reasoning,
            "calls": (one,),
            "thinking": True,
        }


def _expressed(answer: Rendering) -> bool:
    """Whether the template shows all of the message: what it drops, it does not write for a model to read either."""
    for text in (answer.content, answer.reasoning):
        if text and text not in answer.wire:
            return False
    for call in answer.calls:
        if call.name not in answer.wire:
            return False
    return True


def _read(answer: Rendering, analysis: Analysis, format: Format) -> None:
    prefix = prompt_prefix(format, answer.opening)
    turn = format.bind(
        tools=tools_for(answer.calls) or None, prefix=prefix, thinking=answer.thinking
    )
    message = turn.parse(answer.wire)
    expected = (answer.content, answer.reasoning, [(c.name, dict(c.arguments)) for c in answer.calls])
    try:
        said = (
            message.content,
            message.reasoning,
            [(call.name, json.loads(call.arguments)) for call in message.tool_calls],
        )
    except ValueError:
        raise Refused(f"{answer.what}: the arguments that were read are no JSON") from None
    if said != expected:
        raise Refused(f"{answer.what}: asked {expected!r:.200}, read {said!r:.200} from {answer.wire!r:.300}")
    wrong = [d for d in message.diagnostics if d.code != "mended"]
    if wrong or not message.complete:
        raise Refused(f"{answer.what}: {'; '.join(map(str, wrong)) or 'not complete'}, in {answer.wire!r:.300}")
    stream = turn.stream()
    for character in answer.wire:
        stream.feed(character)
    stream.finish()
    if stream.message != message:
        raise Refused(f"{answer.what}: read by the character it is another message")
