"""Arguments as they were written before, said with today's words. It goes with 1.0."""

from __future__ import annotations

from argparse import Namespace


def as_today(found: Namespace, unknown: list[str]) -> list[str]:
    """Changes what was found to what the same is called today. Returns what nobody knows."""
    given = vars(found)
    if given.get("page") is not None:  # --html FILE in place of --as html --out FILE
        found.form, found.out = "html", found.page
    command = found.parser.prog.partition(" ")[2]
    if command == "report":
        like_a_model = found.answer is not None or not str(found.given).endswith((".txt", ".jsonl"))
        if found.model is None and like_a_model:  # report MODEL --output FILE, report MODEL --ids FILE
            found.model = found.given
            if found.ids and found.answer is None and len(unknown) == 1:
                found.answer, unknown = unknown[0], []
        elif found.answer is None:
            found.answer = found.given
    if command == "formats list":
        if found.check is not None:  # formats --check FILE
            found.run, found.table = "chatparsers.cli.formats:table", found.check
        elif found.diagram is not None:  # formats NAME --diagram FILE
            found.run, found.source, found.out = (
                "chatparsers.cli.show:show_diagram",
                found.drawn,
                found.diagram,
            )
        elif found.drawn is not None:
            unknown = [found.drawn, *unknown]
    if command == "rollouts list" and found.samples_out is not None:  # rollouts DIR --samples FILE
        found.run, found.lines_out = "chatparsers.cli.rollouts:samples", found.samples_out
    return unknown
