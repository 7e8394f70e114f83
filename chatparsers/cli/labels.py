"""``chatparsers labels``: what a trainer's batch really teaches."""

from __future__ import annotations

from argparse import Namespace

from .files import Refused, print_json
from .request import chat_of


def run(arguments: Namespace) -> int:
    """Prints the charges, each with count, share and witness. Returns 1 with one, 2 if a row cannot be read."""
    try:
        from ..data.batch.inputs import BatchError
        from ..data.labelled import judge_batch
    except ModuleNotFoundError as error:
        raise Refused(str(error)) from error
    from ..labels.judge import Judge
    from ..tokens import read_tokenizer

    tokenizer = None if arguments.tokenizer is None else read_tokenizer(arguments.tokenizer)
    judge = Judge(chat_of(arguments.model, arguments, tokenizer=tokenizer))
    rows = [] if arguments.beside is None else [arguments.beside]
    try:
        report = judge_batch(judge, arguments.labelled, rows, limit=arguments.limit)
    except BatchError as error:
        raise Refused(str(error)) from error
    if arguments.form == "json":
        print_json(report.to_dict(), indent=2)
    else:
        for line in report.lines():
            print(line)
    return report.status
