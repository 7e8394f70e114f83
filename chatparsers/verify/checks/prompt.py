"""The prompt that the model read, beside the one that its template renders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..exchange import Exchange
from ..rows import Blame, Row, first_difference
from ..subject import same_but_dates
from .check import judges

_AROUND = 60


def _knows_prompt(exchange: Exchange) -> bool:
    return exchange.said is not None and exchange.probe.prompt and prompt_text(exchange) is not None


def prompt_text(exchange: Exchange) -> str | None:
    """The prompt as text, if the server tells it or its ids."""
    raw = exchange.raw
    if raw.prompt is not None:
        return raw.prompt
    return None if raw.prompt_ids is None else exchange.subject.decoded(raw.prompt_ids)


@judges("prompt-differs", "prompt-default", "tools-not-shown", where=_knows_prompt)
def prompt(exchange: Exchange) -> Iterator[Row]:
    """The prompt is what the template renders of the request, or differs by a choice that servers make."""
    theirs, subject = prompt_text(exchange) or "", exchange.subject
    prompts = subject.prompts(exchange.probe.body)
    right, known = prompts.right, prompts.known
    begin = subject.chat.files.bos_token or ""
    forms = {theirs, theirs.removeprefix(begin), begin + theirs}
    if forms & right.keys():
        return
    policy = next((known[form] for form in forms if form in known), None)
    ours = next(iter(right))
    if policy is None and any(same_but_dates(theirs, each) for each in [*right, *known]):
        policy = "a date"
    if policy is not None:
        yield exchange.row("prompt-default", policy, *_excerpts(theirs, ours), blame="policy")
        return
    names = exchange.probe.tools
    blame: Blame = "server" if prompts.bare else "policy"
    if names and not any(name in theirs for name in names):
        if not any(name in (prompts.plain or "") for name in names):
            blame = "policy"  # the template has them from a variable of its own, which no plain host gives
        what = "the prompt names no tool"
        yield exchange.row("tools-not-shown", what, *_excerpts(theirs, ours), blame=blame)
        return
    what = f"the prompt differs from character {first_difference(theirs, ours)}"
    if not prompts.bare:
        what += "; the template alone cannot show this, so each server writes it in its own way"
    yield exchange.row("prompt-differs", what, *_excerpts(theirs, ours), blame=blame)


def _excerpts(theirs: str, ours: str) -> tuple[str, str]:
    """The two texts around the first difference."""
    at = first_difference(theirs, ours)
    begin = max(at - _AROUND, 0)
    return theirs[begin : at + _AROUND], ours[begin : at + _AROUND]


def _counted(exchange: Exchange) -> bool:
    has = exchange.said is not None and exchange.answer.prompt is not None
    return has and exchange.subject.tokenizer is not None


@judges("usage-wrong", where=lambda exchange: _counted(exchange) and _knows_prompt(exchange))
def prompt_usage(exchange: Exchange) -> Iterator[Row]:
    """The usage counts the prompt that was read, with a first token or without it."""
    ids = exchange.raw.prompt_ids
    size = len(ids) if ids is not None else exchange.subject.count(prompt_text(exchange) or "")
    counted = exchange.answer.prompt
    assert size is not None and counted is not None
    if counted not in (size, size + 1):
        yield exchange.row("usage-wrong", "prompt tokens", counted, size)


def by_count(exchange: Exchange) -> bool:
    """Whether the prompt of an exchange can be judged by its count alone."""
    if not _counted(exchange) or prompt_text(exchange) is not None:
        return False
    return not exchange.subject.quotes(exchange.probe.body)


def counts(exchanges: Sequence[Exchange]) -> Iterator[Row]:
    """The prompts of a server that tells their counts alone. A first token more is the same in all of them."""
    sizes = [_sizes(exchange) for exchange in exchanges]
    offset = max(
        (0, 1),
        key=lambda more: sum(_fits(each, *size, more) for each, size in zip(exchanges, sizes, strict=True)),
    )
    for exchange, (right, known, without) in zip(exchanges, sizes, strict=True):
        given = exchange.answer.prompt
        assert given is not None
        found = given - offset
        if found in right:
            continue
        if found in known:
            yield exchange.row("prompt-default", known[found], given, sorted(right), blame="policy")
        elif found == without.get("tools"):
            yield exchange.row("tools-not-shown", "as many tokens as without tools", given, sorted(right))
        else:
            bare = exchange.subject.prompts(exchange.probe.body).bare
            what = f"prompt tokens ({offset} more is a first token)" if offset else "prompt tokens"
            what += "".join(f", as many as without {name}" for name in without if found == without[name])
            blame: Blame = "server" if bare else "policy"
            yield exchange.row("prompt-count", what, given, sorted(right), blame=blame)


def prompt_sizes(exchange: Exchange) -> set[int]:
    """The counts of the prompts that may be right; none if the server tells no count, or nothing can be counted."""
    if not by_count(exchange):
        return set()
    right, known, without = _sizes(exchange)
    return {*right, *known, *(size for size in without.values() if size is not None)}


def _fits(
    exchange: Exchange, right: set[int], known: dict[int, str], without: dict[str, int | None], offset: int
) -> bool:
    given = exchange.answer.prompt
    return given is not None and given - offset in right


def _sizes(exchange: Exchange) -> tuple[set[int], dict[int, str], dict[str, int | None]]:
    """The counts of the right prompts, of the known choices, and of the prompts without a field of the request."""
    subject, body = exchange.subject, exchange.probe.body
    right, known, *_ = subject.prompts(body)
    fields = [name for name in ("tools", "chat_template_kwargs") if body.get(name) and not _has_calls(body)]
    return (
        {size for text in right if (size := subject.count(text)) is not None},
        {size: name for text, name in known.items() if (size := subject.count(text)) is not None},
        {name: subject.count(subject.turn(_without(body, name)).prompt) for name in fields},
    )


def _without(body: Mapping[str, Any], name: str) -> dict[str, Any]:
    left_out = (name, "tool_choice") if name == "tools" else (name,)
    return {key: value for key, value in body.items() if key not in left_out}


def _has_calls(body: object) -> bool:
    return "tool_calls" in str(body)
