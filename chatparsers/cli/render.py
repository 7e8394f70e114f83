"""``chatparsers render``: the prompt that a model reads."""

from __future__ import annotations

import sys
from argparse import Namespace

from .files import items
from .request import chat_of, thinking_of


def run(arguments: Namespace) -> int:
    """Prints the prompt as it is, without a line end of its own."""
    chat = chat_of(arguments.model, arguments)
    turn = chat.prepare(
        items(arguments.messages, "messages"),
        tools=None if arguments.tools is None else items(arguments.tools, "tools"),
        thinking=thinking_of(arguments),
        effort=arguments.effort,
        add_generation_prompt=not arguments.no_generation_prompt,
    )
    sys.stdout.write(turn.prompt)
    return 0
