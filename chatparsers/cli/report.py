"""``chatparsers report``: all that mends an answer that was read wrongly, in one JSON file."""

from __future__ import annotations

import sys
import warnings
from argparse import Namespace

from .files import Refused, existing, items, print_json
from .token_ids import read_answer


def run(arguments: Namespace) -> int:
    """Prints the report, and says on standard error what was left out."""
    from .. import __version__
    from ..doctor.bundle import bundle
    from .request import chat_of

    if arguments.model is None:
        raise Refused("which model? Say --model with its folder, a file of it, a .gguf or .jinja file")
    output = None if arguments.answer is None else read_answer(arguments)
    tools = None if arguments.tools is None else items(arguments.tools, "tools")
    tokenizer = None if arguments.tokenizer is None else existing(arguments.tokenizer)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = bundle(
            chat_of(arguments.model, arguments, tokenizer=tokenizer),
            __version__,
            output=output,
            tools=tools,
            prefix=arguments.prefix,
        )
    print_json(found, indent=2)
    for path in found["about"]["left_out"]:
        print(f"chatparsers: left out, as its key looks secret: {path}", file=sys.stderr)
    return 0
