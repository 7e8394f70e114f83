"""What a gateway says of itself: at ``/``, and at ``/v1/models``."""

from __future__ import annotations

import time
from datetime import datetime, timezone
from typing import Any

from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response

from ..serving import ApiError
from ..serving.fields import LONGEST_NAME
from .apis import CHAT
from .guard import Guard
from .metrics import Metrics
from .models import Model, Models
from .settings import Settings


class About:
    """What a gateway says of itself."""

    def __init__(self, served: Models, settings: Settings, guard: Guard, metrics: Metrics) -> None:
        self.served = served
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
        settings, model = self.settings, self.served.first
        found |= {
            "model": model.name,
            "format": model.chat.format.name,
            "context": model.engine.context,
            "most_tokens": model.settings.max_tokens,
            "requests": f"{self.metrics.active} of {settings.concurrency}",
            "keeps": settings.store is not None,
        }
        return found | {"models": [one.name for one in self.served.all]} if self.served.several else found

    def models(self, http: HttpRequest) -> Response:
        """The models that the key may ask: one by its name (of one alone, any name), or as a list."""
        try:
            caller = self.guard.check_key(http.headers)
            name = http.path_params.get("name")
            if name is None:
                shown = [self._shown(key, one) for key, one in self.served.open_to(caller).items()]
            else:
                if len(name) > LONGEST_NAME:
                    raise ApiError("this server has no model of such a long name", status=404)
                shown = [self._shown(name, self.served.of(name, caller))]
        except ApiError as error:
            return CHAT.failed(error)
        if name is not None:
            return JSONResponse(shown[0])
        ends = {
            "first_id": shown[0]["id"] if shown else None,
            "last_id": shown[-1]["id"] if shown else None,
            "has_more": False,
        }
        return JSONResponse({"object": "list", "data": shown, **ends})

    def _shown(self, name: str, model: Model) -> dict[str, Any]:
        return {
            "id": name,
            "object": "model",
            "type": "model",
            "display_name": model.name,
            "created": self._created,
            "owned_by": "chatparsers",
            "created_at": _date(self._created),  # in Anthropic's API
            "lifecycle": "active",
            "max_input_tokens": model.engine.context,
        }


def _date(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat().replace("+00:00", "Z")
