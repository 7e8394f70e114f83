"""What an engine says of its tokens: read in each engine's form, and given to the regions of the answer.

An engine says something of a token with the event that brings it. The token's region may be decided later, when the
stream has read on. So each token waits for its region, in the order of the answer, and none is lost or doubled.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from ..plain import whole_characters
from ..serving.logprobs import TokenLogprob, TopLogprob, cut
from ..streams.message import RegionKind
from ..streams.stream import Stream
from .engine import Batch, EngineError, Placed

_UNLIKELY = -9999.0
"""What the API says of a token that is next to impossible; JSON has no minus infinity."""
_BY_ID = "token_id:"
Pieces: TypeAlias = Mapping[int, "str | bytes"]
"""What each id spells."""


def records(value: object, pieces: Pieces | None = None) -> list[TokenLogprob]:
    """Of a list of objects with ``token`` and ``logprob``, as llama-server and Ollama send them; or, with ``pieces``,
    with ``token_id``, as vLLM does where it has no tokenizer."""
    found = []
    for one in _several(value):
        if not isinstance(one, Mapping):
            raise _wrong(one)
        tops = [_top(top, pieces) for top in _several(one.get("top_logprobs"))]
        found.append(TokenLogprob(**_top(one, pieces), top_logprobs=tops))
    return found


def triples(value: object, tops: object, pieces: Pieces | None, last: int) -> list[TokenLogprob]:
    """Of the ``last`` entries of lists of a logprob, an id and maybe a text, as SGLang sends them. ``tops``: a list of
    such for each token."""
    own, others = _several(value)[-last:], _several(tops)[-last:]
    found = []
    for one, listed in zip(own, others if len(others) == len(own) else [()] * len(own), strict=True):
        found.append(
            TokenLogprob(**_triple(one, pieces), top_logprobs=[_triple(top, pieces) for top in listed or ()])
        )
    return found


def _triple(one: object, pieces: Pieces | None) -> TopLogprob:
    if not isinstance(one, (list, tuple)) or len(one) < 2 or type(one[1]) is not int or one[1] < 0:
        raise _wrong(one)
    return _spelt(f"{_BY_ID}{one[1]}", one[0], pieces)


def columns(value: object, pieces: Pieces | None = None) -> list[TokenLogprob]:
    """Of an object of lists, as the old completions endpoint sends it. ``pieces``: what each id spells, for tokens
    that are named by their ids."""
    if value is None:
        return []
    if not isinstance(value, Mapping):
        raise _wrong(value)
    tokens, numbers = _several(value.get("tokens")), _several(value.get("token_logprobs"))
    tops = _several(value.get("top_logprobs")) or [None] * len(tokens)
    if not len(tokens) == len(numbers) == len(tops):
        raise EngineError("the engine sent lists of log probabilities that are not equally long")
    found = []
    for token, number, others in zip(tokens, numbers, tops, strict=True):
        if others is not None and not isinstance(others, Mapping):
            raise _wrong(others)
        listed = [_spelt(name, value, pieces) for name, value in (others or {}).items()]
        found.append(TokenLogprob(**_spelt(token, number, pieces), top_logprobs=listed))
    return found


def _several(value: object) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise _wrong(value)
    return value


def _top(one: object, pieces: Pieces | None = None) -> TopLogprob:
    if isinstance(one, Mapping) and type(one.get("token_id")) is int and pieces is not None:
        return _spelt(f"{_BY_ID}{one['token_id']}", one.get("logprob"), pieces)
    if not isinstance(one, Mapping) or not isinstance(one.get("token"), str):
        raise _wrong(one)
    token, given = whole_characters(one["token"]), one.get("bytes")
    spelt = _bytes(token)
    if isinstance(given, list) and all(type(byte) is int and 0 <= byte < 256 for byte in given):
        spelt = given
    return {"token": token, "logprob": _number(one.get("logprob")), "bytes": spelt}


def _spelt(token: object, number: object, pieces: Pieces | None) -> TopLogprob:
    if not isinstance(token, str):
        raise _wrong(token)
    piece: str | bytes = token
    id = token.removeprefix(_BY_ID)
    if pieces is not None and token.startswith(_BY_ID) and id.isdecimal() and len(id) < 10:
        piece = pieces[int(id)]
    text = whole_characters(piece) if isinstance(piece, str) else piece.decode("utf-8", "replace")
    return {
        "token": text,
        "logprob": _number(number),
        "bytes": _bytes(text if isinstance(piece, str) else piece),
    }


def _bytes(piece: str | bytes) -> list[int]:
    return list(piece if isinstance(piece, bytes) else piece.encode("utf-8"))


def _number(value: object) -> float:
    if value is None:
        return _UNLIKELY
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _wrong(value)
    return max(float(value), _UNLIKELY) if math.isfinite(value) else _UNLIKELY


def _wrong(value: object) -> EngineError:
    return EngineError(f"the engine sent {value!r:.80} for log probabilities")


def placed(found: Sequence[TokenLogprob], ids: Sequence[int] | None, text: str) -> list[Placed] | None:
    """Each token with its place in an event: among its ``ids``, or in its ``text`` if the stream is not fed ids.

    If an engine leaves ids out, what it says is of the last ones. If its tokens do not spell its text, they have the
    place where the text begins.
    """
    if not found:
        return None
    if ids is not None:
        lacking = len(ids) - len(found)
        return [(max(lacking + place, 0), one) for place, one in enumerate(found)]
    if "".join([one["token"] for one in found]) != whole_characters(text):
        return [(0, one) for one in found]
    places, at = [], 0
    for one in found:
        places.append((at, one))
        at += len(one["token"])
    return places


class Probable:
    """The tokens of one answer, on their way to their regions. ``most``: how many alternatives the client wants."""

    __slots__ = ("_by_ids", "_fed", "_kinds", "_most", "_said", "_stream", "_waiting")

    def __init__(self, stream: Stream, most: int, *, by_ids: bool) -> None:
        self._stream = stream
        self._most = most
        self._by_ids = by_ids
        self._fed = 0
        self._kinds: list[RegionKind] = []
        self._waiting: deque[Placed] = deque()
        self._said = False

    def take(self, batch: Batch, kept: int) -> None:
        """Takes what came with a batch, of which the stream is fed the first ``kept`` ids or characters. Raises
        `EngineError` if the engine says nothing."""
        if batch.logprobs is not None:
            self._said = True
            for place, one in batch.logprobs:
                if place < max(kept, 1):
                    self._waiting.append((self._fed + place, cut(one, self._most)))
        elif kept and not self._said:
            said = "the engine gives no log probabilities: leave logprobs out"
            raise EngineError(said, status=400, code="unsupported_parameter")
        self._fed += kept

    def decided(self) -> list[tuple[RegionKind, list[TokenLogprob]]]:
        """The tokens whose regions are known by now, in runs of one region."""
        runs: list[tuple[RegionKind, list[TokenLogprob]]] = []
        for kind, one in self._known():
            if runs and runs[-1][0] == kind:
                runs[-1][1].append(one)
            else:
                runs.append((kind, [one]))
        return runs

    def rest(self) -> list[tuple[RegionKind, list[TokenLogprob]]]:
        """The tokens that are left when the stream is finished: all have regions, or come after its last token."""
        runs = self.decided()
        if self._waiting:
            runs.append(("markup", [one for _, one in self._waiting]))
            self._waiting.clear()
        return runs

    def _known(self) -> list[tuple[RegionKind, TokenLogprob]]:
        waiting = self._waiting
        if not waiting:
            return []
        found: list[tuple[RegionKind, TokenLogprob]] = []
        if self._by_ids:
            kinds = self._kinds
            kinds += self._stream.token_regions(len(kinds))
            while waiting and waiting[0][0] < len(kinds):
                place, one = waiting.popleft()
                found.append((kinds[place], one))
            return found
        for kind in self._stream.token_regions(starts=[place for place, _ in waiting]):
            found.append((kind, waiting.popleft()[1]))
        return found
