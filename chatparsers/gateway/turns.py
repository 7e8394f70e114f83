"""Turns for streams that have much to read at once, so that the others wait for none of them.

An engine that writes faster than the gateway reads leaves some 64 kB in each connection, which take 30 ms to read. A
thousand such streams would hold the event loop for half a minute. So a stream that has read twice `EVENTS` of them in
one round of the loop waits for its turn, and one of those who wait reads on in each round. Who has little to read
never waits for a turn.
"""

from __future__ import annotations

import asyncio
from collections import deque

EVENTS = 64
"""How many events of an engine a stream reads before it looks whether the round is still the same: some two
milliseconds."""


class Turns:
    """The turns of the streams of one event loop."""

    __slots__ = ("_counting", "_waiting", "round")

    def __init__(self) -> None:
        self.round = 0
        self._counting = False
        self._waiting: deque[asyncio.Future[None]] = deque()

    def begun(self) -> int:
        """The number of this round. It counts on while somebody asks."""
        if not self._counting:
            self._counting = True
            asyncio.get_running_loop().call_soon(self._next)
        return self.round

    async def wait(self) -> None:
        """Waits for a round in which this stream alone reads on, of those who wait."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self.begun()
        await turn

    def _next(self) -> None:
        self._counting = False
        self.round += 1
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():  # else its client has left
                turn.set_result(None)
                break
        if self._waiting:
            self.begun()


class Share:
    """What one stream has read in this round. It looks at the round only once in `EVENTS`."""

    __slots__ = ("_read", "_round", "_turns")

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._round = -1
        self._read = 0

    def taken(self, events: int) -> bool:
        """Counts events. Whether the stream has to wait before the next ones."""
        self._read += events
        if self._read < EVENTS:
            return False
        before, self._round = self._round, self._turns.begun()
        self._read = 0
        return self._round == before
