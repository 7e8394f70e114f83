"""``chatparsers parse``: reads a raw output and prints its message or its events."""

from __future__ import annotations

import codecs
import json
import os
import re
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ..plain import one_line
from ..watch import observe
from .files import Refused, name_of, print_json, read_text, standard_input, to_json
from .request import turn_of
from .token_ids import checked_ids, read_answer, tokenizer_for_ids

if TYPE_CHECKING:
    from ..answers.format import Turn
    from ..streams.events import Event
    from ..streams.message import Message
    from ..streams.stream import Stream

_READ = 65_536
_word = re.compile(r"(?<=[a-z])(?=[A-Z])")


def run(arguments: Namespace) -> int:
    """Parses ANSWER and prints the message, or with ``--stream`` each event as it comes and the message last; with
    ``--why``, why nothing was called, as `chatparsers explain`."""
    if arguments.tokenizer is not None and not arguments.ids:
        raise Refused("--tokenizer is for token ids: say --ids as well, or leave it out")
    turn = turn_of(arguments, tokenizer=tokenizer_for_ids(arguments))
    if arguments.why:
        from .explain import say

        return say(read_answer(arguments), turn)
    lines = arguments.jsonl or arguments.answer.endswith(".jsonl")
    if arguments.form == "html" and not arguments.timeline:
        arguments.show = True
    if arguments.show or arguments.timeline:
        from .show import show_output

        if not lines:
            return show_output(turn, arguments, [(name_of(arguments.answer), list(_pieces(arguments)))])
        outputs = ((f"line {number}", value) for number, value in _each(arguments))
        size = arguments.pieces
        return show_output(
            turn, arguments, ((name, list(_cut(value, size or len(value)))) for name, value in outputs)
        )
    if lines:
        return _lines(arguments, turn)
    stream = turn.stream(strict=arguments.strict, reasoning=arguments.reasoning)
    fed: list[int] = []
    for events in _events(stream, _pieces(arguments), fed):
        if arguments.stream and events:
            sys.stdout.writelines(to_json(event_record(event)) + "\n" for event in events)
            sys.stdout.flush()
    _tell(turn, stream.message, fed)
    message = _record(stream.message, arguments.form)
    if arguments.stream:
        print_json({"event": "message", "message": message})
    else:
        print_json(message, indent=2)
    return 0


def _lines(arguments: Namespace, turn: Turn) -> int:
    """Parses each line of ANSWER, and prints a line with its message."""
    if arguments.stream or arguments.pieces:
        raise Refused("--stream and --pieces are for one output: leave them out with JSON lines")
    for number, value in _each(arguments):
        message = turn.parse(value, strict=arguments.strict, reasoning=arguments.reasoning)
        _tell(turn, message, () if isinstance(value, str) else value, f"line {number}: ")
        print_json(_record(message, arguments.form))
    return 0


def _each(arguments: Namespace) -> Iterator[tuple[int, Any]]:
    """The output of each line of ANSWER, with the line's number."""
    for number, line in enumerate(read_text(arguments.answer).split("\n"), 1):
        if line.strip():
            yield number, _output(line, f"{name_of(arguments.answer)}, line {number}", arguments)


def _output(line: str, where: str, arguments: Namespace) -> Any:
    """The output in a line: a text, a list of ids, or an object that has one of them."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Refused(f"{where}: expected JSON: {error}") from error
    if isinstance(value, dict):
        if arguments.field not in value:
            raise Refused(
                f"{where}: expected an object with {arguments.field!r}, found {', '.join(map(repr, value)) or 'none'} "
                "(say --field NAME)"
            )
        value = value[arguments.field]
    if arguments.ids:
        return checked_ids(value, where)
    if not isinstance(value, str):
        raise Refused(f"{where}: expected a text, found {to_json(value):.40} (token ids: say --ids)")
    return value


def _tell(turn: Turn, message: Message, ids: Sequence[int], where: str = "") -> None:
    """Says on standard error what was broken or cut off, and what looks like a call and is content."""
    for diagnostic in message.diagnostics:
        if diagnostic.code in ("malformed", "truncated"):
            print(f"chatparsers: {where}{one_line(str(diagnostic))}", file=sys.stderr)
    for diagnostic in observe(turn, message, ids):
        hint = f"(it is content: say {'--why' if turn.tools else '--tools FILE'})"
        print(f"chatparsers: {where}{one_line(str(diagnostic))} {hint}", file=sys.stderr)


def event_record(event: Event) -> dict[str, Any]:
    """An event as JSON data: its kind under ``event`` (``content``, ``call_start``, …) and its fields."""
    return {"event": _word.sub("_", type(event).__name__).lower(), **asdict(event)}


def _record(message: Message, form: str) -> dict[str, Any]:
    return message.to_openai() if form == "openai" else message.to_dict()


def _events(stream: Stream, pieces: Iterator[Any], ids: list[int]) -> Iterator[list[Event]]:
    """The events of each piece. The ids that were fed are added to ``ids``."""
    for piece in pieces:
        if not isinstance(piece, str):
            ids += piece if isinstance(piece, list) else [piece]
        yield stream.feed(piece)
    yield stream.finish()


def _pieces(arguments: Namespace) -> Iterator[Any]:
    """The output in pieces: as it arrives, or cut by ``--pieces``."""
    size: int | None = arguments.pieces
    if arguments.stream and arguments.answer == "-" and size is None and not arguments.ids:
        yield from _arriving()
    else:
        answer = read_answer(arguments)
        yield from _cut(answer, size or (1 if arguments.stream and arguments.ids else len(answer)))


def _cut(whole: Any, size: int) -> Iterator[Any]:
    for start in range(0, len(whole), max(size, 1)):
        yield whole[start : start + size]


def _arriving() -> Iterator[str]:
    """Reads standard input, as much at a time as has arrived. Raises `Refused` if it is not UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        number = standard_input().fileno()
    except (OSError, ValueError):  # not a file of the system
        yield read_text("-")
        return
    offset = 0
    while True:
        raw = os.read(number, _READ)
        try:
            text = decoder.decode(raw, final=not raw)
        except UnicodeDecodeError as error:
            raise Refused(
                f"standard input: expected UTF-8 text, found {error.object[error.start]:#04x} "
                f"after byte {offset}"
            ) from error
        if text:
            yield text
        if not raw:
            return
        offset += len(raw)
