"""What a gateway says of itself: at ``/``, and at ``/v1/models``."""

from __future__ import annotations

import time
from datetime import datetime, timezone
from typing import Any

from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response

from ..chat.chat import Chat
from ..serving import ApiError
from ..serving.fields import LONGEST_NAME
from .apis import CHAT
from .engine import Engine
from .guard import Guard
from .metrics import Metrics
from .settings import Settings


class About:
    """What a gateway says of itself."""

    def __init__(
        self, chat: Chat, engine: Engine, settings: Settings, guard: Guard, metrics: Metrics
    ) -> None:
        self.chat = chat
        self.engine = engine
        self.settings = settings
        self.guard = guard
        self.metrics = metrics
        self._created = int(time.time())

    def shown(self, http: HttpRequest, paths: list[str]) -> dict[str, Any]:
        """What the server is. Who has no key, where one is asked for, sees only the paths."""
        found: dict[str, Any] = {"name": "chatparsers", "paths": paths}
        try:
            self.guard.check_key(http.headers)
        except ApiError:
            return found
        settings = self.settings
        return found | {
            "model": settings.model,
            "format": self.chat.format.name,
            "context": self.engine.context,
            "most_tokens": settings.max_tokens,
            "requests": f"{self.metrics.active} of {settings.concurrency}",
            "keeps": settings.store is not None,
        }

    def models(self, http: HttpRequest) -> Response:
        """The model: alone under any name, or as a list."""
        try:
            self.guard.check_key(http.headers)
        except ApiError as error:
            return CHAT.failed(error)
        name = http.path_params.get("name")
        if name is not None and len(name) > LONGEST_NAME:
            return CHAT.failed(ApiError("this server has no model of such a long name", status=404))
        model = {
            "id": name or self.settings.model,  # a request may name it as it likes
            "object": "model",
            "type": "model",
            "display_name": self.settings.model,
            "created": self._created,
            "owned_by": "chatparsers",
            "created_at": _date(self._created),  # in Anthropic's API
            "lifecycle": "active",
            "max_input_tokens": self.engine.context,
        }
        ends = {"first_id": model["id"], "last_id": model["id"], "has_more": False}
        return JSONResponse(model if name is not None else {"object": "list", "data": [model], **ends})


def _date(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat().replace("+00:00", "Z")
