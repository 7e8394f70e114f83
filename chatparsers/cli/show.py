"""Pictures for the command line: ``parse --show``, ``parse --timeline``, ``inspect --html``, ``formats --diagram``."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .files import Refused

if TYPE_CHECKING:
    from ..chat.chat import Chat
    from ..core.format import Turn

__all__ = ["show_diagram", "show_model", "show_output"]

_CONVERSATION = [
    {"role": "user", "content": "What is the weather in Oslo?"},
    {"role": "assistant", "content": "It is cold.", "reasoning_content": "Norway, winter."},
    {"role": "user", "content": "Thanks."},
    {"role": "assistant", "content": "You are welcome.", "reasoning_content": "Polite."},
]


def show_output(turn: Turn, arguments: Namespace, pieces: Sequence[Any]) -> int:
    """Draws an output: its strip, its timeline, or both."""
    from ..display import strip, timeline
    from ..display.looks import wants_colour
    from ..display.picture import Picture, page

    pictures: list[Picture] = []
    if arguments.show:
        stream = turn.stream(strict=arguments.strict, reasoning=arguments.reasoning)
        for piece in pieces:
            stream.feed(piece)
        stream.finish()
        ids = [id for piece in pieces for id in piece] if arguments.ids else []
        pictures.append(strip(stream.message, ids=ids, turn=turn))
    if arguments.timeline:
        pictures.append(timeline(turn, pieces))
    if arguments.html is not None:
        _write(arguments.html, page(f"{turn.format.name}: {arguments.file}", *pictures))
        return 0
    colour = wants_colour(sys.stdout, arguments.color)
    print("\n\n".join(picture.text(colour=colour) for picture in pictures))
    return 0


def show_model(chat: Chat, record: Sequence[tuple[str, str]], path: str) -> None:
    """Writes a page about a model: its record, and a conversation with the kind and the loss mask of each part; of a
    template that no known format reads, also what its analysis found."""
    from ..core.errors import ChatParsersError
    from ..detection.analysis import analyse
    from ..display import Card, diagram, show, strip
    from ..display.picture import Picture, page

    parts: list[Picture | str] = [Card("what is known of it", tuple(record))]
    try:
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
    _write(path, page(chat.name, *parts))


def show_diagram(name: str | None, path: str) -> int:
    """Writes the railroad diagram of a format."""
    from ..display import diagram
    from ..registry import get_format

    if name is None:
        raise Refused("--diagram: expected the name of a format before it (`chatparsers formats` lists them)")
    try:
        drawn = diagram(get_format(name))
    except ModuleNotFoundError as error:
        raise Refused(str(error)) from error
    _write(path, drawn.svg)
    return 0


def _write(path: str, text: str) -> None:
    if path == "-":
        print(text)
    else:
        Path(path).write_text(text, encoding="utf-8")
