"""What keys have spent of their day's tokens, in a file: a gateway that is killed goes on where it was."""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import suppress
from pathlib import Path

from ..gateway.keys import Keys
from ..gateway.store import URLS

EACH = 2.0
"""After how many seconds it is written again, if it has changed."""


class Spent:
    """The file, which is of one process. One that cannot be read or written is as none."""

    def __init__(self, path: Path, keys: Keys) -> None:
        self._path = path
        self._keys = keys
        with suppress(OSError, ValueError, TypeError, AttributeError):
            self._keys.restore(
                {name: (int(day), int(n)) for name, (day, n) in json.loads(path.read_text()).items()}
            )
        self._written = keys.spent()

    async def keep(self) -> None:
        """Writes it again and again."""
        while True:
            await asyncio.sleep(EACH)
            self.write()

    def write(self) -> None:
        """Writes it, if it has changed."""
        found = self._keys.spent()
        if found != self._written:
            fresh = self._path.with_suffix(".new")
            with suppress(OSError):
                fresh.write_text(json.dumps(found))
                os.replace(fresh, self._path)
                self._written = found


def spent_of(store: str | None, port: int, keys: Keys) -> Spent | None:
    """The file beside a store in a folder; None where there is no such folder."""
    if store is None or store == "memory" or store.startswith(URLS):
        return None
    return Spent(Path(store) / f"spent-{port}.json", keys)
