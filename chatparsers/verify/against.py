"""Two servers side by side: the same requests with the same seeds, in pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from .asking import Asked
from .checks.shape import follows
from .exchange import Exchange
from .statistics import Trigger, interval, sign_test, trigger
from .verdict import Verdict


@dataclass(frozen=True, slots=True)
class Compared:
    """Two servers. ``better`` and ``worse``: in how many pairs this one is right and the other wrong, and the other way
    round. ``chance``: how likely so uneven a split is by chance. ``calls``: whether there are calls, beside the other
    server. ``itself``: the other server beside a second run of itself. ``valid``: of this one's calls, how many follow
    their schema."""

    pairs: int
    better: int
    worse: int
    chance: float
    calls: Trigger
    itself: Trigger
    valid: tuple[int, int]
    other_valid: tuple[int, int]


def compare(
    mine: tuple[Verdict, Sequence[Asked]],
    other: tuple[Verdict, Sequence[Asked]],
    again: Sequence[Asked],
) -> Compared:
    """Compares a run with one of another server, and that with a second run of itself."""
    (verdict, asked), (verdict2, asked2) = mine, other
    left, right, second = _wholes(asked), _wholes(asked2), _wholes(again)
    names = [name for name in left if name in right]
    wrong = {row.probe.removesuffix("/stream") for row in verdict.rows if row.blame in ("server", "likely")}
    wrong2 = {row.probe.removesuffix("/stream") for row in verdict2.rows if row.blame in ("server", "likely")}
    better = sum(name not in wrong and name in wrong2 for name in names)
    worse = sum(name in wrong and name not in wrong2 for name in names)
    tools = [name for name in names if left[name].probe.tools]
    return Compared(
        len(names),
        better,
        worse,
        sign_test(better, worse),
        trigger((_calls(left[name]), _calls(right[name])) for name in tools),
        trigger((_calls(second[name]), _calls(right[name])) for name in tools if name in second),
        _valid(left.values()),
        _valid(right.values()),
    )


def lines(found: Compared, url: str) -> Iterator[str]:
    """The comparison as text."""
    yield ""
    split = f"better in {found.better}, worse in {found.worse} (p = {found.chance:.3f})"
    yield f"beside {url}: {found.pairs} pairs; {split}"
    yield (
        f"trigger F1 {found.calls.f1:.2f} (both {found.calls.both}, only this {found.calls.only_this}, only the other "
        f"{found.calls.only_other}); the other server beside itself {found.itself.f1:.2f}"
    )
    for name, (valid, of) in (("this", found.valid), ("the other", found.other_valid)):
        low, high = interval(valid, of)
        yield f"calls of {name} that follow their schema: {valid} of {of} ({low:.0%} to {high:.0%})"


def _wholes(asked: Sequence[Asked]) -> dict[str, Exchange]:
    return {
        one.whole.probe.name: one.whole
        for one in asked
        if one.whole.said is not None and not one.whole.probe.prompt and one.whole.api.name == "chat"
    }


def _calls(exchange: Exchange) -> bool:
    return bool(exchange.answer.calls)


def _valid(exchanges: Iterable[Exchange]) -> tuple[int, int]:
    valid = of = 0
    for exchange in exchanges:
        tools: Mapping[str, object] = exchange.probe.tools
        for call in exchange.answer.calls:
            of += 1
            known = call.name in tools and isinstance(call.value, dict)
            valid += known and not follows(tools[str(call.name)], call.value)
    return valid, of
