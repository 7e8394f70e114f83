"""Mistakes of users. Both type checkers must refuse each line that ends in ``# wrong``, and no other."""

from __future__ import annotations

import chatparsers


def mistakes(chat: chatparsers.Chat, turn: chatparsers.Turn) -> None:
    chat.bind(tols=[])  # wrong
    chat.bind(tools=[], prefix=3)  # wrong
    chat.conversation([], thinkin=True)  # wrong
    chat.conversation([], parallel_tool_calls="yes")  # wrong
    chat.prepare([], tool_choices="auto")  # wrong
    chat.prepare("Hello")  # wrong
    turn.grammar("gnbf")  # wrong
    turn.grammar(dialect="gbnf", motor="xgrammar")  # wrong
    turn.grammar(engine=3)  # wrong
    turn.stream(reasoning="hidden")  # wrong
    turn.prompt_ids.append("Hello")  # wrong
    chat.ask(print, "How many?", int).upper()  # wrong
    turn.stream().feed(None)  # wrong
    chatparsers.formats()  # wrong
    chatparsers.load(template=3)  # wrong
    chatparsers.get_format(None)  # wrong
    chat.tokenizer.encoed("a")  # wrong
