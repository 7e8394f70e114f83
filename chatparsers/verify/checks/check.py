"""What a check is: a function from an exchange to rows, with the codes that it judges and where it can judge."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

from ..exchange import Exchange
from ..rows import Row

Judge: TypeAlias = Callable[[Exchange], Iterator[Row]]
Where: TypeAlias = Callable[[Exchange], bool]


class Check(NamedTuple):
    """``codes``: of the rows that it may give. ``where``: whether it can say something of an exchange."""

    codes: tuple[str, ...]
    where: Where
    judge: Judge


def judges(*codes: str, where: Where) -> Callable[[Judge], Check]:
    """Makes a check of a function."""
    return lambda judge: Check(codes, where, judge)


def answered(exchange: Exchange) -> bool:
    return exchange.said is not None and not exchange.probe.prompt
