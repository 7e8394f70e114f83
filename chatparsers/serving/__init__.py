"""Three chat APIs without I/O: their requests become what `Chat.prepare` takes, events become what they stream.

A request: `read_chat`, `read_responses` and `read_messages` check a body and return a `Request`. They raise `ApiError`,
which has the status and the body that the API's clients expect.

An answer: `OpenAIChat`, `OpenAIResponses` and `AnthropicMessages` are writers. ``start()``, ``event(e)`` for each event
of the stream and ``finish(reason, usage)`` return what the API streams, as JSON data. ``answer`` is the whole answer;
``whole(message)`` makes it of a message. `sse` frames the data for a stream over HTTP. `ContentStops` cuts the answer
at the client's own stops, `WholeCalls` makes text of calls that the model broke.

It imports nothing but the standard library and this package, and does no I/O.
"""

from __future__ import annotations

from .errors import ApiError
from .images import Image, ImageLimits, image_number
from .messages import AnthropicMessages
from .openai_chat import OpenAIChat
from .read_chat import read_chat
from .read_messages import read_messages
from .read_responses import read_responses
from .request import Request
from .responses import OpenAIResponses
from .stops import ContentStops
from .usage import Usage
from .whole_calls import WholeCalls
from .writer import Writer, sse

__all__ = [
    "AnthropicMessages",
    "ApiError",
    "ContentStops",
    "Image",
    "ImageLimits",
    "OpenAIChat",
    "OpenAIResponses",
    "Request",
    "Usage",
    "WholeCalls",
    "Writer",
    "image_number",
    "read_chat",
    "read_messages",
    "read_responses",
    "sse",
]
