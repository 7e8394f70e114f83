"""Compaction of the Responses API: a conversation becomes its user's messages and one item with a summary of it.

The API gives the item as one word that only its server reads. Here the model writes the summary, and the word is the
summary (`chatparsers.serving.sealed`), so any gateway can go on from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NoReturn
from uuid import uuid4

from ..streams.message import FinishReason
from .errors import ApiError
from .request import Request
from .responses import OpenAIResponses
from .sealed import opened, sealed
from .usage import Usage

_ASKS = (
    "The conversation above is about to be left out. Write a summary of it, from which you can go on without it: what "
    "the user wants, what was decided and why, what was done and found (names, numbers, paths and code exactly), and "
    "what is left to do. Write the summary alone, and call no function."
)
_TELLS = "The conversation up to here was left out. Its summary:\n\n"


def summarizing(request: Request, items: Iterable[Mapping[str, Any]]) -> Request:
    """The request for the summary of a conversation. ``items``: all of its items."""
    return replace(
        request,
        messages=[*request.messages, {"role": "user", "content": _ASKS}],
        tool_choice="none",
        response_format=None,
        stops=(),
        stream=False,
        body={**request.body, "input": [*items]},
    )


def summary_of(item: Mapping[str, Any], path: str) -> str:
    """The text of a compaction. Raises `ApiError` for one of another server: without it the conversation has a hole."""
    found = opened(str(item.get("encrypted_content")))
    if found is None:
        said = "expected the compaction of this server: another one's cannot be read"
        raise ApiError(said, param=f"{path}.encrypted_content", code="compaction_not_readable")
    return f"{_TELLS}{found}"


class CompactedResponse(OpenAIResponses):
    """Writes a compacted response. ``request``: the body, whose ``input`` has all items of the conversation."""

    def __init__(self, model: str, *, request: Mapping[str, Any], **more: Any) -> None:
        super().__init__(model, request=request, **more)
        self._kept = [
            item for item in request["input"] if item.get("type") == "message" and item.get("role") == "user"
        ]
        self._summary_id = f"cmp_{uuid4().hex}"

    def finish(
        self,
        reason: FinishReason | str | None = None,
        usage: Usage | None = None,
        *,
        stop_sequence: str | None = None,
    ) -> list[Any]:
        """Raises `ApiError` for a summary that is cut off or empty: a client would go on from it."""
        chunks = super().finish(reason, usage, stop_sequence=stop_sequence)
        if reason == "length":
            _failed("the summary was cut off: ask with a larger max_output_tokens, or raise --max-tokens")
        if not self._summary.strip():
            _failed("the model wrote no summary: try again")
        return chunks

    @property
    def _summary(self) -> str:
        return "".join(part.text for part in self._parts if part.kind == "content")

    @property
    def answer(self) -> Any:
        item = {"id": self._summary_id, "type": "compaction", "encrypted_content": sealed(self._summary)}
        return {
            "id": self.id,
            "object": "response.compaction",
            "created_at": self.created,
            "output": [*self._kept, item],
            "usage": self._usage.responses(),
        }


def _failed(said: str) -> NoReturn:
    raise ApiError(said, status=502, code="compaction_failed")
