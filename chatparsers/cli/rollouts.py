"""``chatparsers rollouts``: what a folder that ``serve --rollouts`` wrote has, and its samples."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..plain import one_line
from .files import Refused, existing, print_json

_SHOWN = 60


def run(arguments: Namespace) -> int:
    """Prints a table, or JSON. Raises `Refused`."""
    folder = _folder(arguments)
    from ..sessions.log import Logs
    from ..sessions.report import Counts, first_witnesses, sessions_of

    found = [
        told
        for told in sessions_of(Logs(folder, write=False))
        if arguments.session in (None, told.id) and arguments.group in (None, told.group)
    ]
    total = Counts()
    for told in found:
        total.add(told.counts)
    witnesses = first_witnesses(witness for told in found for witness in told.witnesses)
    if arguments.form == "json":
        sessions = [
            {
                "id": one.id,
                "group": one.group,
                "closed": one.closed,
                "reward": one.reward,
                **one.counts.to_dict(),
            }
            for one in found
        ]
        shown = {"sessions": sessions, "all": total.to_dict(), "witnesses": list(map(asdict, witnesses))}
        print_json(shown, indent=2)
        return 0
    for line in _lines(found, total, witnesses):
        print(line)
    return 0


def _lines(found: Any, total: Any, witnesses: Any) -> Iterator[str]:
    wide = max([7, *(len(one_line(told.id)) for told in found)])
    yield f"{'session':<{wide}}  answers  lines     ids  exact  reward"
    for told in found:
        counts, reward = told.counts, "" if told.reward is None else f"{told.reward:g}"
        numbers = f"{counts.answers:>7,}  {counts.lines:>5,}  {counts.sampled:>6,} {counts.exact:>6.0%}"
        yield f"{one_line(told.id):<{wide}}  {numbers}  {reward}".rstrip()
    yield ""
    told_of = {"kept": total.reasons, "forgiven": total.forgiven}
    for name, counts in told_of.items():
        listed = ", ".join(f"{kind} {number:,}" for kind, number in counts.most_common())
        yield f"{name:<9} {listed or 'nothing'}"
    if total.failed or total.undelivered:
        yield f"{'left':<9} failed {total.failed:,}, undelivered {total.undelivered:,}"
    for one in witnesses:
        yield f"{one.reason}: first in {one_line(one.session)}, answer {one.answer}"
        if one.held or one.shown:
            yield f"  held  {one_line(one.held)[:_SHOWN]!r}"
            yield f"  shown {one_line(one.shown)[:_SHOWN]!r}"


def _folder(arguments: Namespace) -> Path:
    folder = Path(arguments.recorded)
    if not folder.is_dir():
        raise Refused(f"{folder}: expected a folder that serve --rollouts wrote, found none")
    return folder


def samples(arguments: Namespace) -> int:
    """Writes the rows, and says on standard error what became of all sampled ids."""
    folder = _folder(arguments)
    if arguments.model is None:
        raise Refused("which model? Say --model with its folder or template, and --tokenizer")
    from ..sessions.samples import rows_of, summary, to_arrow, to_lines
    from ..sessions.sessions import Sessions
    from .request import chat_of

    tokenizer = None if arguments.tokenizer is None else existing(arguments.tokenizer)
    chat = chat_of(arguments.model, arguments, tokenizer=tokenizer)
    sessions = Sessions(chat, str(folder), write=False)
    heads = [
        head
        for head in sessions.heads()
        if arguments.session in (None, head.id) and arguments.group in (None, head.group)
    ]
    found = [sessions.export(sessions.get(head.id), arguments.twins) for head in heads]
    rows = [row for export, about in found for row in rows_of(export, about)]
    if arguments.lines_out.endswith(".arrow"):
        try:
            Path(arguments.lines_out).write_bytes(to_arrow(rows))
        except ModuleNotFoundError as error:
            raise Refused(str(error)) from error
    else:
        lines = to_lines(rows)
        if arguments.lines_out == "-":
            sys.stdout.write(lines)
        else:
            Path(arguments.lines_out).write_text(lines, encoding="utf-8")
    print(json.dumps(summary([export for export, _ in found])), file=sys.stderr)
    return 0
