"""Errors in the shape of each API."""

from __future__ import annotations

from typing import Any

from ..errors import ChatParsersError, LoadError, UnknownFormat

_OPENAI = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}
_ANTHROPIC = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}


_LONGEST = 2_000
"""How many characters of a message are shown: most repeat what the request has."""


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


class ApiError(ChatParsersError):
    """A request that cannot be answered.

    ``status`` is the HTTP status: 4xx if the request is wrong, 5xx if the server failed. ``param`` is the path of the
    wrong field, such as ``messages[2].content``. ``code`` is a short name for programs, or None. ``retry_after``: after
    how many seconds it is worth to ask again, of one that passes (429, 503).

    >>> from chatparsers.serving import ApiError
    >>> error = ApiError.of(chatparsers.RequestError("tools[0]: no name"))
    >>> error.status, error.openai()["error"]["message"]
    (400, 'tools[0]: no name')
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        param: str | None = None,
        code: str | None = None,
        retry_after: int = 1,
    ) -> None:
        self.message = _short(message)
        self.status = status
        self.param = param if param is None else _short(param)
        self.code = code
        self.retry_after = retry_after
        super().__init__(self.message if param is None else f"{self.param}: {self.message}")

    @classmethod
    def of(cls, error: Exception) -> ApiError:
        """The error of an API for an error of this package.

        An error in the request, its messages or its schemas is the client's (400). An error in the model's files, and
        any other, is the server's (500); then the client reads only its class.
        """
        if isinstance(error, cls):
            return error
        if isinstance(error, ChatParsersError) and not isinstance(error, (LoadError, UnknownFormat)):
            return cls(str(error))
        return cls(f"the server failed: {type(error).__name__}", status=500)

    @classmethod
    def too_long(cls, prompt: int, context: int, param: str) -> ApiError:
        """The error for a prompt that leaves no room in the engine's context. ``param``: the field of the prompt."""
        return _TooLong(prompt, context, param)

    def openai(self) -> dict[str, Any]:
        """The body of an OpenAI error. Many clients show its message alone, so that has the path of the field too."""
        kind = _OPENAI.get(self.status, "invalid_request_error" if self.status < 500 else "server_error")
        return {
            "error": {"message": str(self), "type": kind, "param": self.param, "code": self.code},
        }

    def anthropic(self) -> dict[str, Any]:
        """The body of an Anthropic error. The path of the wrong field comes before the message, as it has no field."""
        kind = _ANTHROPIC.get(self.status, "invalid_request_error" if self.status < 500 else "api_error")
        return {"type": "error", "error": {"type": kind, "message": str(self)}}


class _TooLong(ApiError):
    """Each API has words of its own for it, by which its clients know it."""

    def __init__(self, prompt: int, context: int, param: str) -> None:
        said = f"This model's maximum context length is {context} tokens. However, your messages resulted in {prompt} "
        super().__init__(f"{said}tokens. Please reduce the length of the messages.", param=param)
        self.code = "context_length_exceeded"
        self._said = f"prompt is too long: {prompt} tokens > {context} maximum"

    def openai(self) -> dict[str, Any]:
        found = super().openai()
        found["error"]["message"] = self.message
        return found

    def anthropic(self) -> dict[str, Any]:
        return {"type": "error", "error": {"type": "invalid_request_error", "message": self._said}}
