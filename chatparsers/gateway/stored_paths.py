"""The paths of the Responses API for what is kept: responses, their input, and conversations."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from uuid import uuid4

import anyio
from anyio.to_thread import run_sync
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse
from starlette.routing import Route

from ..serving import ApiError
from ..serving.fields import whole_request
from ..serving.items import kept_items, listed
from ..serving.read_responses import metadata_of
from .store import StoredResponse, StoreFull
from .storing import Following, Storing

_ITEMS = 20
"""How many items one request may give to a conversation."""
_PATIENCE, _LOOK = 5.0, 0.1
"""How many seconds a request to cancel waits until the response has ended, and how often it looks."""
_RESPONSE, _CONVERSATION = "/v1/responses/{id}", "/v1/conversations/{id}"

Handler = Callable[["Asking"], Any]


class Asking:
    """One request: ``owner``, the ids in its path, its query, and its body (None without one)."""

    def __init__(self, owner: str, http: HttpRequest, body: object) -> None:
        self.owner = owner
        self.ids: Mapping[str, str] = http.path_params
        self.query = http.query_params
        self._body = body

    @property
    def body(self) -> Mapping[str, Any]:
        return whole_request(self._body)


class StoredPaths:
    """Answers requests for what is kept. ``most``: bytes of a conversation's items."""

    def __init__(self, storing: Storing, most: int, keep_alive: float) -> None:
        self._store = storing.store
        self._most = most
        self._keep_alive = keep_alive

    def routes(self, endpoint: Callable[[Handler], Callable[[HttpRequest], Awaitable[Any]]]) -> list[Route]:
        """``endpoint``: makes what answers HTTP of a handler, which runs in a thread."""
        found: list[tuple[str, str, Handler]] = [
            ("GET", _RESPONSE, self._retrieve),
            ("DELETE", _RESPONSE, self._delete_response),
            ("POST", f"{_RESPONSE}/cancel", self._cancel),
            ("GET", f"{_RESPONSE}/input_items", self._input_items),
            ("POST", "/v1/conversations", self._begin),
            ("GET", _CONVERSATION, self._conversation),
            ("POST", _CONVERSATION, self._change),
            ("DELETE", _CONVERSATION, self._delete_conversation),
            ("POST", f"{_CONVERSATION}/items", self._add),
            ("GET", f"{_CONVERSATION}/items", self._items),
            ("GET", f"{_CONVERSATION}/items/{{item}}", self._item),
            ("DELETE", f"{_CONVERSATION}/items/{{item}}", self._delete_item),
        ]
        return [Route(path, endpoint(handler), methods=[method]) for method, path, handler in found]

    # responses

    def _kept(self, asking: Asking) -> StoredResponse:
        kept = self._store.response(asking.owner, asking.ids["id"])
        if kept is None:
            raise _missing("response", asking.ids["id"])
        return kept

    def _retrieve(self, asking: Asking) -> Any:
        kept = self._kept(asking)
        if asking.query.get("stream") != "true":
            return kept.response
        if not kept.response.get("background"):
            raise ApiError("only a response in the background can be followed", param="stream")
        after = asking.query.get("starting_after", "")
        number = int(after) if after.isascii() and after.isdigit() and len(after) < 10 else -1
        return Following(self._store, asking.owner, kept.id, number, self._keep_alive)

    def _delete_response(self, asking: Asking) -> Any:
        self._kept(asking)
        self._store.delete(asking.owner, asking.ids["id"])
        return {"id": asking.ids["id"], "object": "response", "deleted": True}

    def _cancel(self, asking: Asking) -> Any:
        if not self._kept(asking).response.get("background"):
            raise ApiError("only a response in the background can be cancelled", param="response_id")
        self._store.cancel(asking.owner, asking.ids["id"])
        return self._cancelled(asking)

    async def _cancelled(self, asking: Asking) -> Any:
        with anyio.move_on_after(_PATIENCE):
            while (await run_sync(self._kept, asking)).running:
                await anyio.sleep(_LOOK)
        return (await run_sync(self._kept, asking)).response

    def _input_items(self, asking: Asking) -> Any:
        return listed(self._kept(asking).input, asking.query)

    # conversations

    def _found(self, asking: Asking) -> dict[str, Any]:
        found = self._store.conversation(asking.owner, asking.ids["id"])
        if found is None:
            raise _missing("conversation", asking.ids["id"])
        return found[0]

    def _begin(self, asking: Asking) -> Any:
        body = asking.body
        id = f"conv_{uuid4().hex}"
        data = {
            "id": id,
            "object": "conversation",
            "created_at": int(time.time()),
            "metadata": metadata_of(body),
        }
        items = _given(body.get("items") or [])
        self._store.begin_conversation(asking.owner, id, data, items)
        return data

    def _conversation(self, asking: Asking) -> Any:
        return self._found(asking)

    def _change(self, asking: Asking) -> Any:
        data = {**self._found(asking), "metadata": metadata_of(asking.body)}
        self._store.change(asking.owner, asking.ids["id"], data)
        return data

    def _delete_conversation(self, asking: Asking) -> Any:
        self._found(asking)
        self._store.delete(asking.owner, asking.ids["id"])
        return {"id": asking.ids["id"], "object": "conversation.deleted", "deleted": True}

    def _add(self, asking: Asking) -> Any:
        self._found(asking)
        items = _given(asking.body.get("items"))
        self._store.add_items(asking.owner, asking.ids["id"], items)
        return listed(items, {"order": "asc", "limit": "100"})

    def _all(self, asking: Asking) -> list[dict[str, Any]]:
        self._found(asking)
        return self._store.items(asking.ids["id"], self._most)

    def _items(self, asking: Asking) -> Any:
        return listed(self._all(asking), asking.query)

    def _item(self, asking: Asking) -> Any:
        for item in self._all(asking):
            if item["id"] == asking.ids["item"]:
                return item
        raise _missing("item", asking.ids["item"])

    def _delete_item(self, asking: Asking) -> Any:
        found = self._found(asking)
        if not self._store.delete_item(asking.owner, asking.ids["id"], asking.ids["item"]):
            raise _missing("item", asking.ids["item"])
        return found


async def answered(handler: Handler, asking: Asking) -> Any:
    """The response of a handler. Raises `ApiError`."""
    try:
        found = await run_sync(handler, asking)
    except StoreFull as error:
        raise ApiError(
            "the store cannot be written, and is as it was: try again later", status=507, code="store_full"
        ) from error
    if isinstance(found, Awaitable):
        found = await found
    return JSONResponse(found) if isinstance(found, dict) else found


def _given(items: object) -> list[dict[str, Any]]:
    found = kept_items(items, "items")
    if len(found) > _ITEMS:
        raise ApiError(f"expected at most {_ITEMS} items, found {len(found)}", param="items")
    return found


def _missing(what: str, id: str) -> ApiError:
    return ApiError(f"no {what} {id[:99]!r} is kept here", status=404)
