"""``chatparsers check``: what is wrong with a model's template, tokenizer, format and grammar."""

from __future__ import annotations

import sys
import warnings
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from ..plain import one_line, plain_lines
from .files import Refused, existing, items, print_json, writable

if TYPE_CHECKING:
    from ..chat.chat import Chat
    from ..doctor.report import Report


def run(arguments: Namespace) -> int:
    """Prints the report of each model. Returns 0 if all are fine, 1 if there are findings (with ``--strict``, notes
    too), 2 if a model could not be checked."""
    from ..doctor.check import examined, names
    from ..errors import ChatParsersError
    from .request import chat_of

    if arguments.versions is not None:
        return _versions(arguments)
    if not arguments.model:
        raise Refused("check: expected at least one MODEL, or --templates DIR (see chatparsers check --help)")
    for name in arguments.only:
        if name not in names():
            raise Refused(f"--only {name}: expected one of {', '.join(names())}")
    if arguments.response_template is not None and arguments.fix is None:
        raise Refused("--response-template goes with --fix: say --fix DIR as well")
    fixed = None if arguments.fix is None else writable(Path(arguments.fix))  # before the work, not after it
    if arguments.html is not None:
        existing(str(Path(arguments.html).parent))
    tools = None if arguments.tools is None else items(arguments.tools, "tools")
    reports: list[Report] = []
    failed = False
    for model in arguments.model:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tokenizer = None if arguments.tokenizer is None else existing(arguments.tokenizer)
                chat = chat_of(model, arguments, tokenizer=tokenizer)
                report = examined(chat, tools=tools, only=arguments.only, samples=arguments.samples)
                if fixed is not None:
                    _fix(chat, report, fixed, arguments)
        except (ChatParsersError, Refused) as error:
            if len(arguments.model) == 1:
                raise
            print(f"chatparsers: {one_line(f'{model}: {error}')}", file=sys.stderr)
            failed = True
            continue
        reports.append(report)
    _show(reports, arguments)
    if failed:
        return 2
    bad = any(report.findings if arguments.findings else not report for report in reports)
    return 1 if bad else 0


def _versions(arguments: Namespace) -> int:
    """Prints a row for each version of each template. Returns 1 if one is not read or rendered as it should be."""
    from ..doctor.versions import versions

    if arguments.model or arguments.form not in ("text", "json"):
        raise Refused("--templates goes alone, or with --as json: leave MODEL and the other forms out")
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for row in versions(arguments.versions):
            rows.append(row)
            if arguments.form == "text":
                print(one_line(str(row)), flush=True)
    if arguments.form == "json":
        print_json([row.to_dict() for row in rows], indent=2)
    else:
        print(
            f"{len(rows)} templates of {len({row.model for row in rows})} models, {sum(map(bool, rows))} fine"
        )
    return 0 if all(rows) else 1


def _show(reports: list[Report], arguments: Namespace) -> None:
    from .. import CORE, __version__
    from ..doctor import outputs
    from .about import compiling

    if arguments.html is not None:
        Path(arguments.html).write_text(outputs.html(reports), encoding="utf-8")
    form = arguments.form
    if form == "html":
        print(outputs.html(reports))
    elif form == "json":
        values = [report.to_dict() for report in reports]
        print_json(values[0] if len(values) == 1 == len(arguments.model) else {"reports": values}, indent=2)
    elif form == "sarif":
        print_json(outputs.sarif(reports, __version__), indent=2)
    elif form == "junit":
        print(outputs.junit(reports, "chatparsers check"), end="")
    elif form == "github":
        print(outputs.github(reports))
    elif len(arguments.model) > 1:
        for report in reports:
            print(one_line(report.line()))
    else:
        for report in reports:
            print(plain_lines(str(report)))
            print(f"chatparsers {__version__}, {CORE} core{compiling()}")


def _fix(chat: Chat, report: Report, folder: Path, arguments: Namespace) -> None:
    """Writes the proved mends, and prints each as a diff on standard error."""
    from ..doctor.mend import diff, mends, refuse_files, written_to
    from ..doctor.shipped import response_template_mend

    folder = folder / Path(chat.name).stem if len(arguments.model) > 1 else folder
    found = []
    for mend in mends(chat, report):
        refuse_files(folder, [mend.file])
        found.append(mend)
    if arguments.response_template is not None:
        mend, lost = response_template_mend(chat, arguments.response_template, found)
        refuse_files(folder, [mend.file])
        found.append(mend)
        for line in lost:
            print(f"chatparsers: the response_template loses: {one_line(line)}", file=sys.stderr)
    if not found:
        print(f"chatparsers: {chat.name}: no mend could be proved; nothing is written", file=sys.stderr)
        return
    for mend in found:
        print(f"# {mend.code}: {one_line(mend.reason)}", file=sys.stderr)
        print(plain_lines(diff(mend.before, mend.text, mend.file)), file=sys.stderr)
    for path in written_to(folder, found):
        print(f"chatparsers: wrote {path}", file=sys.stderr)
