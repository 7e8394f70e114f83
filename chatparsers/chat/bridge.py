"""The text between an answer and the next generation prompt, without rendering the history.

Strategy. A short stand-in conversation is rendered: a question, an answer of the same shape with the same calls, and
the new messages themselves. What follows the stand-in's words is what the template writes after the real answer too:
it does not depend on the words (`Frames.behind`). This is believed only after a proof: for each kind of history, shape
of the answer and kinds of new messages, the whole conversation is rendered once. There the text of the history must
still be the one that was given and sampled, and the text behind the answer must be the stand-in's. What was proved is
kept for all rollouts with the same options.

Invariant: a step whose kind is not proved renders the whole conversation.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..core.errors import ChatParsersError
from ..core.format import Turn
from ..templates.jinja.environment import Asked
from ..templates.messages import reasoning_of
from ..templates.trace import Trace
from .frames import Behind, Frames, Shape, needle_answer, shape_of
from .places import words_of
from .request import Request

__all__ = ["Delta", "History", "behind_of", "generated", "in_order", "is_header", "stand_in"]

_WORDS = "永N33DLEwords"
_QUESTION = "永N33DLEquestion"


@dataclass(frozen=True, slots=True)
class Delta:
    """What stands between an answer's words and the next answer. ``stop``: how many of its characters the model itself
    would have written. ``header``: whether the stop is the next message's header. ``generated``: the last part of the
    text, which only the generation prompt has. ``turn``: the turn of the next answer, whose prompt is the rendering of
    ``messages``: the stand-in's, or all; ``trace``: of that prompt.
    """

    text: str
    stop: int
    header: bool
    generated: str
    turn: Turn
    trace: Trace
    messages: Sequence[Mapping[str, Any]]


def stand_in(
    request: Request,
    answer: Mapping[str, Any],
    new: Sequence[Mapping[str, Any]],
    *,
    system: bool,
    generate: bool = True,
) -> Delta | None:
    """The delta between ``answer`` and the answer to ``new``, from a short conversation; None if it shows none."""
    shape = shape_of(answer)
    shape = Shape(False, shape.content or not shape.calls, shape.calls)
    behind = behind_of(request.frames, shape, new)
    if behind is None:
        return None
    lead: list[Mapping[str, Any]] = [{"role": "system", "content": _QUESTION}] if system else []
    lead += ({"role": "user", "content": _QUESTION}, _like(answer, shape, request.tools[0]))
    messages = [*lead, *new]
    try:
        turn, trace = request.traced(messages, add_generation_prompt=generate, continue_final_message=False)
    except ChatParsersError:
        return None
    at = turn.prompt.find(_WORDS)
    at = turn.prompt.find(behind.text, at + len(_WORDS)) if at >= 0 else -1
    if at < 0 or _QUESTION in turn.prompt[at:]:  # the template moves words of the answer behind it
        return None
    header = is_header(request.frames, shape, behind)
    text = turn.prompt[at:]
    return Delta(text, behind.stop, header, generated(request, turn, new), turn, trace, messages)


def behind_of(frames: Frames, shape: Shape, new: Sequence[Mapping[str, Any]]) -> Behind | None:
    """What stands behind an answer, before the first of these messages that is not moved elsewhere."""
    found = (frames.behind(shape, str(message.get("role"))) for message in new)
    return next((behind for behind in found if behind is not None and behind.text.strip()), None)


def generated(request: Request, turn: Turn, messages: Sequence[Mapping[str, Any]]) -> str:
    """The last part of a turn's prompt, which the history does not have: at least what belongs to the answer."""
    before = request.frames.before(str(messages[-1].get("role"))) if messages else None
    found = before.generated if before is not None else ""
    return found if len(found) > len(turn.prefix) and turn.prompt.endswith(found) else turn.prefix


def is_header(frames: Frames, shape: Shape, behind: Behind) -> bool:
    """Whether the stop behind an answer is the next message's header: a conversation that ends there has no stop, or
    the stop opens each result."""
    alone = frames.behind(shape, "")
    if not behind.stop or alone is None:
        return False
    return not alone.stop or (bool(shape.calls) and frames.opens_results(behind.text[: behind.stop]))


def _like(answer: Mapping[str, Any], shape: Shape, tool: str) -> dict[str, Any]:
    """A stand-in with the ids and names of the answer's calls."""
    words = needle_answer(shape, _WORDS, tool)
    if shape.calls:
        calls = [
            {
                "id": str(call.get("id")),
                "type": "function",
                "function": {"name": _name(call), "arguments": {}},
            }
            for call in answer.get("tool_calls") or ()
        ]
        calls[-1]["function"]["arguments"] = {"needle": _WORDS}  # type: ignore[index]
        words["tool_calls"] = calls
        words["content"] = _QUESTION if shape.content else ""
    return words


def _name(call: Mapping[str, Any]) -> str:
    function = call.get("function")
    return str(function.get("name")) if isinstance(function, Mapping) else ""


class History(NamedTuple):
    """The kind of a history: which messages followed which before the last question, and which since then."""

    before: frozenset[str] = frozenset()
    since: frozenset[str] = frozenset()
    last: str = ""

    def then(self, message: Mapping[str, Any], asked: Asked) -> History:
        """The history with one more message. ``asked``: what the template asks of its texts; two texts that answer
        otherwise make two kinds, so that no proof is used for a text by which the template goes another way."""
        kind = _kind(message, asked)
        pair = f"{self.last}>{kind}"
        if message.get("role") == "user":
            return History(self.before | self.since | {pair}, frozenset(), kind)
        return History(self.before, self.since | {pair}, kind)


def _kind(message: Mapping[str, Any], asked: Asked) -> str:
    role = str(message.get("role"))
    found = [*map(asked.of, (*words_of(message), reasoning_of(message)))]
    told = f" {found}" if any(found) else ""
    if role != "assistant":
        words = isinstance(message.get("content"), str) and message["content"]
        return f"{role}{'' if words else ' without text'}{told}"
    shape = shape_of(message)
    return f"{shape}{' and text' if shape.content and shape.calls else ''}{told}"


def in_order(
    frames: Request, answer: Mapping[str, Any], new: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """The results in the order of their calls, if the template ties them to the calls by their place alone."""
    ids = [str(call.get("id")) for call in answer.get("tool_calls") or () if isinstance(call, Mapping)]
    number = next((place for place, message in enumerate(new) if message.get("role") != "tool"), len(new))
    results = list(new[:number])
    wanted = sorted(
        results,
        key=lambda m: ids.index(str(m.get("tool_call_id"))) if m.get("tool_call_id") in ids else len(ids),
    )
    if wanted == results or not _tied_by_place(frames):
        return list(new)
    return [*wanted, *new[number:]]


def _tied_by_place(request: Request) -> bool:
    """Whether a result's text does not say which call it answers."""
    found = request.frames.facts.get("tied by place")
    if found is None:
        calls = needle_answer(Shape(False, False, 2), _WORDS, request.tools[0])
        ids = [call["id"] for call in calls["tool_calls"]]
        texts = []
        for order in (ids, ids[::-1]):
            results = [
                {"role": "tool", "tool_call_id": id, "name": request.tools[0], "content": f"{_WORDS}{place}"}
                for place, id in enumerate(order)
            ]
            texts.append(_rendered(request, [{"role": "user", "content": _QUESTION}, calls, *results]))
        found = request.frames.facts["tied by place"] = texts[0] is not None and texts[0] == texts[1]
    return bool(found)


def _rendered(request: Request, messages: Sequence[Mapping[str, Any]]) -> str | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return request.prepare(messages, add_generation_prompt=False, continue_final_message=False).prompt
        except ChatParsersError:
            return None
