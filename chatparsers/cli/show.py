"""Pictures for the command line: of ``parse``, ``inspect`` and ``formats diagram``."""

from __future__ import annotations

import sys
import warnings
from argparse import Namespace
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ..plain import wants_colour
from .files import Refused

if TYPE_CHECKING:
    from ..answers.format import Turn
    from ..chat.chat import Chat
    from ..streams.message import Message

_MOST = 200
"""How many outputs a page shows."""
_CONVERSATION = [
    {"role": "user", "content": "What is the weather in Oslo?"},
    {"role": "assistant", "content": "It is cold.", "reasoning_content": "Norway, winter."},
    {"role": "user", "content": "Thanks."},
    {"role": "assistant", "content": "You are welcome.", "reasoning_content": "Polite."},
]


def show_output(turn: Turn, arguments: Namespace, outputs: Iterable[tuple[str, Sequence[Any]]]) -> int:
    """Draws outputs, each given by its name and its pieces: its strip, its timeline, or both. Several of them make one
    page, which begins with a list."""
    from ..display import strip, timeline
    from ..display.picture import Picture, page

    drawn: list[tuple[str, list[Picture]]] = []
    left = 0
    for name, pieces in outputs:
        if len(drawn) == _MOST:
            left += 1
            continue
        pictures: list[Picture] = []
        stream = turn.stream(strict=arguments.strict, reasoning=arguments.reasoning)
        for piece in pieces:
            stream.feed(piece)
        stream.finish()
        if arguments.show:
            ids = [id for piece in pieces for id in piece] if arguments.ids else []
            pictures.append(strip(stream.message, ids=ids, turn=turn))
        if arguments.timeline:
            pictures.append(timeline(turn, pieces))
        drawn.append((f"{name}: {_in_words(stream.message)}", pictures))
    more = [f"… {left:,} more outputs are not shown"] if left else []
    titled = [([title] if len(drawn) > 1 else [], pictures) for title, pictures in drawn]
    if arguments.form == "html":
        parts: list[Picture | str] = []
        for title, pictures in titled:
            parts += title
            parts += pictures
        print(page(f"{turn.format.name}: {arguments.answer}", *parts, *more))
        return 0
    colour = wants_colour(sys.stdout, arguments.color)
    texts = [[*title, *(picture.text(colour=colour) for picture in pictures)] for title, pictures in titled]
    print("\n\n".join([*("\n\n".join(each) for each in texts), *more]))
    return 0


def _in_words(message: Message) -> str:
    """What an answer is, in a few words."""
    from ..display.looks import for_terminal

    calls = ", ".join(call.name for call in message.tool_calls)
    kinds = [
        kind for kind, there in (("reasoning", message.reasoning), ("content", message.content)) if there
    ]
    said = ", ".join([*kinds, *([f"calls {calls}"] if calls else [])]) or "nothing"
    wrong = ", ".join(dict.fromkeys(note.code for note in message.diagnostics))
    return for_terminal(f"{said} ({wrong})" if wrong else said)[:200]


def show_model(chat: Chat, record: Sequence[tuple[str, str]]) -> None:
    """Prints a page about a model: its record, and a conversation with the kind and the loss mask of each part; of a
    template that no known format reads, also what its analysis found."""
    from ..detection.analysis import analyse
    from ..display import Card, diagram, show, strip
    from ..display.picture import Picture, page
    from ..errors import ChatParsersError

    parts: list[Picture | str] = [Card("what is known of it", tuple(record))]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that nothing counts: the page shows it
            sample = chat.encode(_CONVERSATION)
        parts += ["A conversation, and what a loss counts", strip(sample, tokenizer=chat.tokenizer)]
    except ChatParsersError as error:
        parts.append(f"A conversation cannot be shown: {error}")
    try:
        parts += ["What the model writes", diagram(chat.format)]
    except ModuleNotFoundError as error:
        parts.append(str(error))
    if chat.detection.format is not None:
        found = analyse(chat.template()).analysis
        parts += ["How the format was found", show(found)] if found is not None else []
    print(page(chat.name, *parts))


def show_diagram(arguments: Namespace) -> int:
    """Prints the railroad diagram of a format."""
    from ..display import diagram
    from .export import format_of

    try:
        drawn = diagram(format_of(arguments.source))
    except ModuleNotFoundError as error:
        raise Refused(str(error)) from error
    print(drawn.svg)
    return 0
