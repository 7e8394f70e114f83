"""``chatparsers report``: all that mends an answer that was read wrongly, in one JSON file."""

from __future__ import annotations

import sys
import warnings
from argparse import Namespace
from pathlib import Path

from .files import existing, items, print_json, read_text, to_json
from .token_ids import read_ids


def run(arguments: Namespace) -> int:
    """Writes the report, and says on standard error what was left out."""
    from .. import __version__
    from ..doctor.bundle import bundle
    from .request import chat_of

    output = None
    if arguments.output is not None:
        output = read_text(arguments.output)
    tools = None if arguments.tools is None else items(arguments.tools, "tools")
    tokenizer = None if arguments.tokenizer is None else existing(arguments.tokenizer)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = bundle(
            chat_of(arguments.model, arguments, tokenizer=tokenizer),
            __version__,
            output=output if arguments.ids is None else read_ids(arguments.ids),
            tools=tools,
            prefix=arguments.prefix,
        )
    if arguments.out == "-":
        print_json(found, indent=2)
    else:
        Path(arguments.out).write_text(to_json(found, indent=2) + "\n", encoding="utf-8")
    for path in found["about"]["left_out"]:
        print(f"chatparsers: left out, as its key looks secret: {path}", file=sys.stderr)
    return 0
