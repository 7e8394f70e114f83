"""What is put after a sampled answer: closers, its stop if the engine left it out, and what the template adds.

- A stop that was sampled stays, and the text after the template's follows. If it is another stop than the template's,
  and that one is the next message's header, the header is written too.
- A stop that is missing is added. It counts only if it is asked for, and never after an answer that was cut off.
- An answer that was cut off inside a thought or a channel is closed as the format writes it. A call or a character is
  not completed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ..answers.format import Format
from ..streams.message import Message
from ..templates.messages import reasoning_of
from ..templates.trace import part_of
from ..values.cut import cut_json
from ..writer.around import written_around
from .bridge import Delta
from .parts import Given, given
from .spoken import Spoken


class Following(NamedTuple):
    """The text that is put after an answer. ``closer``: of what it was cut off in. ``text``: what the
    template writes from there on, of which the answer's stop takes the first ``stop`` characters. ``before``: the stop
    that was sampled; ``wanted``: the template's, if it is another."""

    closer: str
    text: str
    stop: int
    before: str
    wanted: str | None = None


def following(spoken: Spoken, delta: Delta) -> Following:
    """The text after the answer."""
    wanted = delta.text[: delta.stop]
    if spoken.stop:
        sampled = spoken.stop_text(spoken.turn.tokenizer)
        same = bool(wanted) and sampled.strip().endswith(wanted.strip())
        text = delta.text[delta.stop :] if same or not delta.header else delta.text
        return Following("", text, 0, sampled, None if same else wanted)
    closer = closing(delta.shown.around.syntax, spoken) if spoken.cut else ""
    space = wanted[: len(wanted) - len(wanted.lstrip())]
    if space and spoken.message.text.endswith(space):  # the engine took off the marker alone
        return Following(closer, delta.text[len(space) :], delta.stop - len(space), "")
    return Following(closer, delta.text, delta.stop, "")


def after_answer(
    spoken: Spoken,
    delta: Delta,
    messages: Sequence[tuple[int, Mapping[str, Any]]],
    count_stop: bool,
) -> tuple[Given, list[tuple[str, str]]]:
    """The part after the answer, and what differs from the template's text: what is held, what it would write."""
    closer, text, stop, before, wanted = following(spoken, delta)
    whole = delta.shown.trace
    skipped = len(whole.text) - len(text)
    first = len(delta.messages) - len(messages)  # the index of the first new message there
    begun = messages[0][0] if messages else 0
    trace = part_of(whole, skipped, len(whole.text), before=closer, first=first, index=begun)
    shown = delta.shown._replace(trace=trace)
    part = given(shown, dict(messages), tuple(messages), before.strip(), lead=delta.lead)
    if spoken.stop:
        return part, [] if wanted is None else [(before, wanted)]
    ends = part.spans[1::2]
    first = sum(end <= len(closer) for end in ends)
    last = sum(end <= len(closer) + stop for end in ends)
    counted = count_stop and not spoken.cut
    return replace(part, stop=(first, last), counted=counted and last > first), []


def closing(fmt: Format, spoken: Spoken) -> str:
    """What closes the thought or the content in which the answer was cut off; ``""`` if it was cut off elsewhere."""
    _, thought, content = written_around(fmt)
    return {"reasoning": thought, "content": content}.get(spoken.region, "")


def joined_message(begun: Mapping[str, Any] | None, message: Message) -> dict[str, Any]:
    """The message that was read, after the beginning that the prompt wrote."""
    found = message.to_openai()
    if begun is None:
        return found
    content = begun.get("content")
    if isinstance(content, str) and content:
        found["content"] = content + (found["content"] or "")
    thought = reasoning_of(begun) + str(found.get("reasoning_content") or "")
    if thought:
        found["reasoning_content"] = thought
    calls = list(begun.get("tool_calls") or ())
    if calls:
        new = found.get("tool_calls") or []
        if new and cut_json(calls[-1]["function"]["arguments"]).open:  # the first of them finishes it
            new = [{**new[0], "id": calls[-1].get("id", new[0]["id"])}, *new[1:]]
            calls.pop()
        found["tool_calls"] = calls + new
    return found
