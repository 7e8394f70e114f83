"""The text between an answer and the next generation prompt, without rendering the history.

Strategy. A short stand-in conversation is rendered: a question, an answer of the same shape with the same calls, and
the new messages themselves. Its trace says where the stand-in's turn ends (`places`); what follows is what the template
writes after the real answer too: it does not depend on the words. This is believed only after a proof: for each kind of
history, shape of the answer and kinds of new messages, the whole conversation is rendered once. There the text of the
history must still be the one that was given and sampled, and the text after the answer must be the stand-in's. What
was proved is kept for all rollouts with the same options.

Invariant: a step whose kind is not proved renders the whole conversation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..answers.format import Turn
from ..errors import ChatParsersError
from ..templates.borders import Lead
from ..templates.jinja.environment import Asked
from ..templates.messages import reasoning_of
from ..templates.trace import Trace, covered
from .around import HOSTS, Around, Rendered
from .loading import LOADS, Loads
from .places import parts_of, turn_end, words_of
from .request import Request
from .shapes import shape_of

_WORDS, _QUESTION = "Words of it", "A question"


@dataclass(frozen=True, slots=True)
class Delta:
    """What comes between an answer's words and the next answer. ``lead``: its text. ``stop``: how many of its
    characters the model itself would have written. ``header``: whether the stop is the next message's header.
    ``shown``: the prompt of the next answer, which is the rendering of ``messages``: the stand-in's, or all.
    """

    lead: Lead
    stop: int
    header: bool
    shown: Rendered
    messages: Sequence[Mapping[str, Any]]

    @property
    def text(self) -> str:
        """The text between."""
        return self.lead.text


def stand_in(
    request: Request,
    answer: Mapping[str, Any],
    new: Sequence[Mapping[str, Any]],
    *,
    system: bool,
    loads: Loads = (),
) -> Delta | None:
    """The delta between ``answer`` and the answer to ``new``, from a short conversation; None if it shows none.
    ``system``: whether a system's message begins it. ``loads``: what the messages before have loaded."""
    lead: list[Mapping[str, Any]] = [{"role": "system", "content": _QUESTION}] if system else []
    question: dict[str, Any] = {"role": "user", "content": _QUESTION}
    lead += ({**question, LOADS: loads} if loads else question, _like(answer))
    messages, index = [*lead, *new], len(lead) - 1
    try:
        shown = request.traced(messages, since=index)
    except ChatParsersError:
        return None
    trace = shown.trace
    stop = turn_end(shown, messages, index)
    if stop is None or not trace.text[stop[0] :].strip():
        return None
    if any(span.start >= stop[0] for span in trace.of(index, "content", "arguments")):
        return None  # the template moves words of the answer after it
    if unshown(trace, new, index + 1, stop[0]) is not None:
        return None  # it writes one before the answer's end, as gpt-oss the first of two results
    return delta_at(shown, messages, stop, new)


def delta_at(
    shown: Rendered,
    messages: Sequence[Mapping[str, Any]],
    stop: tuple[int, int],
    new: Sequence[Mapping[str, Any]],
) -> Delta:
    """What the rendering of ``messages`` has from an answer's stop on, up to the answer to ``new``."""
    text = shown.trace.text[stop[0] :]
    written = text[: stop[1] - stop[0]]
    calls = bool(messages[len(messages) - len(new) - 1].get("tool_calls"))
    header = shown.around.is_header(calls, written)
    return Delta(lead_of(shown.around, shown.turn, new, text), len(written), header, shown, messages)


def lead_of(around: Around, turn: Turn, messages: Sequence[Mapping[str, Any]], text: str) -> Lead:
    """The text before the answer to ``messages``, with which the prompt of ``turn`` ends."""
    if not messages:
        return Lead(text, turn.prefix, turn.prefix)
    asked = around.asked(str(messages[-1].get("role")))
    generated = turn.prefix  # at least that is what a history does not have
    if asked is not None and len(asked.generated) > len(generated) and text.endswith(asked.generated):
        generated = asked.generated
    return Lead(text, generated, turn.prefix)


def _like(answer: Mapping[str, Any]) -> dict[str, Any]:
    """A stand-in of the answer's shape, with the ids and names of its calls."""
    shape = shape_of(answer)
    if not shape.calls:
        return {"role": "assistant", "content": _WORDS}
    given = [call for call in answer.get("tool_calls") or () if isinstance(call, Mapping)]
    calls = [
        {
            "id": str(call.get("id")),
            "type": "function",
            "function": {"name": _name(call), "arguments": {"words": _WORDS} if call is given[-1] else {}},
        }
        for call in given
    ]
    return {"role": "assistant", "content": _WORDS if shape.content else "", "tool_calls": calls}


def _name(call: Mapping[str, Any]) -> str:
    function = call.get("function")
    return str(function.get("name")) if isinstance(function, Mapping) else ""


class HistoryKind(NamedTuple):
    """The kind of a history: which messages followed which before the last question, and which since then."""

    before: frozenset[str] = frozenset()
    since: frozenset[str] = frozenset()
    last: str = ""

    def then(self, messages: Iterable[Mapping[str, Any]], asked: Asked) -> HistoryKind:
        """The history with more messages. ``asked``: what the template asks of their texts; two texts that answer
        otherwise make two kinds, so that no proof is used for a text by which the template goes another way."""
        before, since, last = self
        for message in messages:
            kind = _kind(message, asked)
            since |= {f"{last}>{kind}"}
            last = kind
            if message.get("role") == "user":
                before, since = before | since, frozenset()
        return HistoryKind(before, since, last)


def _kind(message: Mapping[str, Any], asked: Asked) -> str:
    role = str(message.get("role"))
    found = [*map(asked.of, (*words_of(message), reasoning_of(message)))]
    told = f" {found}" if any(found) else ""
    if role != "assistant":
        words = isinstance(message.get("content"), str) and message["content"]
        return f"{role}{'' if words else ' without text'}{told}"
    shape = shape_of(message)
    return f"{shape}{' and text' if shape.content and shape.calls else ''}{told}"


def unshown(trace: Trace, new: Sequence[Mapping[str, Any]], first: int, start: int) -> int | None:
    """Which of the messages ``new``, of which the first has the index ``first``, has words that the text from ``start``
    on does not show; None if all are there. A system's words may go first: then the history's text changes, which is
    seen there."""
    for index, message in enumerate(new, first):
        if message.get("role") in HOSTS:
            continue
        spans = [span for span in trace.of(index, "content") if span.start >= start]
        for part, words in parts_of(message):
            if not covered(words, [span for span in spans if span.part == part]):
                return index
    return None
