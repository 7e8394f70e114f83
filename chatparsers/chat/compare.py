"""What was given and sampled, compared with the rendering of the whole conversation.

Answers are compared as messages: the template may write arguments anew, or other white space. All else is compared as
text. What a generation prompt wrote and the history lacks is no change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..templates.borders import Lead
from ..templates.messages import reasoning_of
from ..templates.probe.turns import common, outside_marker
from .around import Rendered
from .bridge import Delta, delta_at, unshown
from .parts import Completion
from .places import turn_end
from .same import calls_key, text_of
from .segment import Segment, thoughts_in
from .shapes import read_answer, shape_of


@dataclass(frozen=True, slots=True)
class Break:
    """Where the template rewrote what was given or sampled. ``reason``: ``thought`` (one was dropped), ``content`` (an
    answer's text was dropped), ``moved`` (a text is elsewhere, such as in a thought), ``variables`` (the request
    changed) or ``unproved``. ``message``: the index of the first
    message that differs. ``kept``: how many ids both segments begin with. ``held``, ``shown``: the two texts
    from there on."""

    reason: str
    message: int
    kept: int
    held: str
    shown: str


@dataclass(frozen=True, slots=True)
class Difference:
    """Where the ids are not what the template would write, and stay so. ``what``: ``stop``, ``dropped`` (ids after
    it), ``order`` (of results), ``prompt`` (a generation prompt's text that the history lacks), or with
    ``history="exact"`` the reason of a break. ``message``: its index. ``held``, ``shown``: the two texts."""

    what: str
    message: int
    held: str
    shown: str


class Verdict(NamedTuple):
    """``reason``: None if nothing was rewritten. ``delta``: what follows the answer. ``proved``: whether a stand-in
    showed it. ``lacking``: what prompts wrote that the history lacks, each with the index of the answer."""

    reason: str | None
    delta: Delta | None
    proved: bool = True
    message: int = -1
    held: str = ""
    shown: str = ""
    lacking: Sequence[tuple[int, str]] = ()
    whole: Rendered | None = None

    @property
    def status(self) -> str:
        """What is kept of it: ``kept``, ``tail`` (only the whole rendering shows what follows) or the reason."""
        return self.reason or ("kept" if self.proved else "tail")


def compare(
    segment: Segment,
    whole: Rendered,
    delta: Delta | None,
    messages: Sequence[Mapping[str, Any]],
) -> Verdict:
    """The verdict on a step from ``segment``, which ends in an answer, to the rendering ``whole`` of ``messages``."""
    text = whole.turn.prompt
    lacking: list[tuple[int, str]] = []
    at = following = 0  # the first message of the text before an answer
    for lead, turn in segment.answers():
        begun = _answer_begins(lead, text, at)
        if begun is None and lead is segment.lead:
            return _opening(segment, whole, delta)
        if begun is None:
            return Verdict("moved", delta, True, following, lead.history, text[at:], (), whole)
        at, prefix, lost = begun
        lacking += [(turn.index, lost)] if lost else []
        stop = _stop(whole, messages, turn.index, at)
        end = at if stop is None else stop[0]
        shown = text[at:end]
        wrong = _lost(whole, turn) if stop is None else _otherwise(turn, messages, shown, prefix)
        if turn is segment.last:
            break
        if wrong is not None:
            return Verdict(wrong, delta, True, turn.index, turn.spoken.message.text, shown, (), whole)
        at, following = end, turn.index + 1
    said = segment.last
    new = messages[said.index + 1 :]
    tail = None if stop is None else delta_at(whole, messages, stop, new)
    unseen = None if stop is None else unshown(whole.trace, new, said.index + 1, stop[0])
    if unseen is not None:  # with history="exact" too, as no text after the answer has the words
        held = text_of(messages[unseen].get("content"))
        return Verdict(wrong or "moved", None, True, unseen, held, text[end:], (), whole)
    if wrong is None and tail is not None:
        proved = delta is not None and delta.text == tail.text
        return Verdict(None, tail, proved, lacking=lacking, whole=whole)
    if wrong in ("content", "unproved") and any(
        span.start >= end for span in whole.trace.of(said.index, "content")
    ):
        wrong = "moved"
    return Verdict(wrong, tail or delta, True, said.index, said.spoken.message.text, shown, (), whole)


def _lost(whole: Rendered, said: Completion) -> str:
    """Why the end of an answer is not found: the template writes nothing of its text or thought, or it is not known."""
    message = said.spoken.message
    if message.content.strip():
        return "unproved" if [*whole.trace.of(said.index, "content")] else "content"
    thought = message.reasoning.strip() and not message.tool_calls
    return "thought" if thought and said.index not in thoughts_in(whole.trace) else "unproved"


def _answer_begins(lead: Lead, text: str, at: int) -> tuple[int, str, str] | None:
    """Where an answer begins in ``text``; None if it has not the text before that answer from ``at`` on. Besides, how
    much of the answer's prefix it shows, and what of the generation prompt it lacks."""
    at = _along(lead.history, text, at)
    if at < 0:
        return None
    asked = lead.generated
    shared = outside_marker(text, at + common(text[at : at + len(asked)], asked)) - at
    return at + shared, asked[len(asked) - len(lead.prefix) : shared], asked[shared:]


def _stop(
    whole: Rendered, messages: Sequence[Mapping[str, Any]], index: int, at: int
) -> tuple[int, int] | None:
    """Where the stop of the answer that begins at ``at`` begins and ends; None if the template shows it elsewhere or
    not at all."""
    stop = turn_end(whole, messages, index)
    if stop is not None:
        return stop if stop[0] >= at else None
    shape, text = shape_of(messages[index]), whole.turn.prompt
    if any(shape):
        return None
    return at, at + max((len(stop) for stop in whole.turn.stops if text.startswith(stop, at)), default=0)


def _along(held: str, text: str, at: int) -> int:
    """Where ``held`` ends if it is in ``text`` at ``at``, with other white space beside markers; -1 if not."""
    place = 0
    while True:
        shared = common(held[place:], text[at : at + len(held) - place])
        place, at = place + shared, at + shared
        if place == len(held):
            return at
        spaces = _spaces(held, place), _spaces(text, at)
        if spaces == (place, at) or not _beside(held, place, spaces[0]):
            return -1
        # White space that both share may be before the difference.
        if held[spaces[0] : spaces[0] + 1] != text[spaces[1] : spaces[1] + 1]:
            return spaces[1] if spaces[0] == len(held) else -1
        place, at = spaces


def _spaces(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _beside(text: str, start: int, end: int) -> bool:
    """Whether a marker comes before or after this white space."""
    before = text[:start].rstrip()[-1:]
    return before in tuple(">]") or text[end : end + 1] in tuple("<[") or not text[end:]


def _opening(segment: Segment, whole: Rendered, delta: Delta | None) -> Verdict:
    """The verdict if the text that the segment began with is not there."""
    prompt, held = whole.turn.prompt, segment.lead.text
    same = common(prompt, held)
    lost = segment.thoughts - thoughts_in(whole.trace)
    reason, index = ("thought", min(lost)) if lost else ("moved", 0)
    return Verdict(reason, delta, True, index, held[same:], prompt[same:], (), whole)


def _otherwise(
    said: Completion, messages: Sequence[Mapping[str, Any]], shown: str, prefix: str
) -> str | None:
    """Why the text ``shown`` is another message than the answer; None if it is the same."""
    own = said.spoken.text(said.spoken.turn.tokenizer)
    if shown == own:
        return None
    mine = messages[said.index]
    read = read_answer(said.spoken.turn._replace(prefix=prefix), shown, mine)
    words, thought = text_of(mine.get("content")).strip(), reasoning_of(mine).strip()
    thought_stands = not thought or thought == read.reasoning.strip()
    if not said.spoken.message.complete:  # what the template makes of a broken call is no answer of the model
        return None if thought_stands else "thought"
    if words != read.content.strip():
        return "unproved" if not words else "moved" if words in shown else "content"
    if not thought_stands:
        return "moved" if thought in shown else "thought"
    same = calls_key(said.spoken.message.to_openai()) == calls_key(read.to_openai())
    return None if same else "unproved"
