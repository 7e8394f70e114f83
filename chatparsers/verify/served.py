"""Whether the files are the served model's, which is asked before anybody is blamed.

A prompt that is another model's has nothing of these files: not the words of its request, if its ids are of another
tokenizer, and no marker that the template writes, if it is of another template. A server that renders the right
template wrongly leaves some of both. The files count as another model's if all prompts are so. Where a server tells
counts alone, no prompt has the right one, and some are longer and some are shorter: one fault adds or loses.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..templates.probe.turns import MARKER
from .checks.prompt import prompt_sizes, prompt_text
from .exchange import Exchange
from .rows import OTHER_MODEL, Row

_FEWEST = 3
"""How many prompts tell anything by their counts alone."""
_MEND = "pass the files of the model that is served (--model, --tokenizer), or start it with their template"


def other_model(exchanges: Iterable[Exchange]) -> Row | None:
    """A row that says so if the files seem to be another model's."""
    answered = [each for each in exchanges if each.said is not None]
    shown = [each for each in answered if prompt_text(each) is not None]
    whys = [_strange(each) for each in shown]
    told: object
    should: object
    if shown and all(whys):
        what, told, should = whys[0], prompt_text(shown[0]), _ours(shown[0])
    else:
        shown = [each for each in answered if prompt_text(each) is None and prompt_sizes(each)]
        more = [_more(each) for each in shown]
        if len(shown) < _FEWEST or 0 in more or not min(more) < 0 < max(more):
            return None
        what, told, should = (
            "the count of tokens is wrong",
            shown[0].answer.prompt,
            sorted(prompt_sizes(shown[0])),
        )
    what = f"in all of {len(shown)} prompts {what}: are these the files of the model that is served?"
    return replace(shown[0].row(OTHER_MODEL, what, told, should, blame="unknown"), mend=_MEND)


def unblamed(row: Row) -> Row:
    """The row of a run in which the files seem to be another model's: nobody is to blame for it."""
    return replace(row, blame="unknown", mend="") if row.blame in ("server", "likely") else row


def _strange(exchange: Exchange) -> str:
    """Why a prompt seems to be another model's; ``""`` if it does not."""
    theirs = prompt_text(exchange) or ""
    ours = _ours(exchange)
    words = [each["content"] for each in exchange.probe.body["messages"] if isinstance(each["content"], str)]
    if words and not any(word.strip() in theirs for word in words):
        return "the ids are not this tokenizer's" if exchange.raw.prompt is None else "the words are missing"
    markers = {marker for marker in MARKER.findall(ours) if not any(marker in word for word in words)}
    return "there is no marker of this template" if markers and not any(map(theirs.count, markers)) else ""


def _more(exchange: Exchange) -> int:
    """How many tokens a prompt has more than the nearest one that may be right."""
    given = exchange.answer.prompt or 0
    return min((given - size for size in prompt_sizes(exchange)), key=abs)


def _ours(exchange: Exchange) -> str:
    """The prompt that the files give."""
    return next(iter(exchange.subject.prompts(exchange.probe.body).right))
