"""The prompt after an answer that is kept: what was given and sampled up to there stays, and only the rest is new.

A template may write an answer otherwise than the model did, and text can be encoded in several ways. By its own ids the
model reads what it wrote, and the engine finds the whole conversation in its cache.
"""

from __future__ import annotations

from collections.abc import Callable

from ..answers.format import Turn
from ..chat.chat import Chat
from ..errors import ChatParsersError
from ..serving import Request
from .store import ResponseIds


def going_on(
    chat: Chat, request: Request, held: ResponseIds, digest: Callable[[str], str], *, lenient_calls: bool
) -> list[int] | None:
    """The ids of the prompt, which begin with those that are held; None if the template, the tools, the messages or the
    ``digest`` of the prompt are others than then."""
    messages = request.messages
    if not request.kept or messages[request.kept - 1].get("role") != "assistant":
        return None
    options = {name: value for name, value in request.prepare.items() if name != "messages"}
    try:
        conversation = chat.conversation(**options, lenient_calls=lenient_calls)
        conversation.append(*messages[: request.kept - 1])
        if conversation.turn is None or digest(conversation.turn.prompt) != held.prompt:
            return None
        conversation.hold(held.given)
        conversation.append(*messages[request.kept - 1 :], wrote=held.sampled)
    except ChatParsersError:  # the usual way says what is wrong
        return None
    whole = [*held.given, *held.sampled]
    return conversation.ids if conversation.ids[: len(whole)] == whole else None


def resumed(
    chat: Chat, request: Request, held: ResponseIds, digest: Callable[[str], str], *, lenient_calls: bool
) -> Turn | None:
    """The turn that goes on with the last answer, which was cut off, by the ids that are held of it; None if the
    template, the tools or the messages are others than then."""
    history = request.messages[:-1]
    if request.kept != len(request.messages):
        return None
    try:
        options = {**request.prepare, "messages": history, "continue_final_message": False}
        turn = chat.prepare(**options, lenient_calls=lenient_calls)
        return turn.rest(held.sampled) if digest(turn.prompt) == held.prompt else None
    except ChatParsersError:  # the usual way says what is wrong
        return None
