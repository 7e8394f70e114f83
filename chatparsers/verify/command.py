"""The command ``chatparsers verify``: asks, judges, and writes the report in every form that was asked for."""

from __future__ import annotations

import warnings
from argparse import Namespace
from collections.abc import Iterable
from pathlib import Path

from ..chat.chat import Chat
from ..cli.files import Refused, existing, json_object, print_json, read_text, to_json
from ..cli.request import chat_of
from ..doctor import outputs
from ..plain import plain_lines
from . import against
from .apis import APIS
from .asking import Asked
from .client import VerifyError
from .findings import RULES, report_of
from .page import page
from .plan import Plan, planned
from .probes import Probe
from .recorded import record, recorded, requests
from .run import dictation, facts_of, run, verdict_of
from .subject import Subject
from .text import lines
from .verdict import Verdict


def run_command(arguments: Namespace) -> int:
    """Returns the exit status: 0, 1 for something to the server's charge, 2 if nothing could be judged."""
    for name in (arguments.json, arguments.html, arguments.record):
        if name is not None and name != "-":
            existing(str(Path(name).parent))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tokenizer = None if arguments.tokenizer is None else existing(arguments.tokenizer)
        chat = chat_of(arguments.model, arguments, tokenizer=tokenizer)
        try:
            plan = _plan(arguments)
            if arguments.plan:
                print("\n".join(planned(chat, plan)))
                return 0
            verdict, more = _judged(chat, plan, arguments)
        except VerifyError as error:
            raise Refused(str(error)) from error
    _write(verdict, arguments, more)
    return verdict.status(strict=arguments.likely)


def _plan(arguments: Namespace) -> Plan:
    replayed: list[Probe] = []
    for name in arguments.replay:
        replayed += requests(existing(name))
    return Plan(
        apis=tuple(APIS) if arguments.api == "all" else (arguments.api,),
        engine=arguments.kind,
        name=arguments.served_name,
        probes=tuple(filter(None, (arguments.probes or "").split(","))),
        samples=arguments.times,
        seed=arguments.seed,
        requests=arguments.requests,
        tokens=arguments.tokens,
        answer_tokens=arguments.answer_tokens,
        concurrency=arguments.concurrency,
        black_box=arguments.black_box,
        extra=json_object("--extra", arguments.extra),
        replayed=tuple(replayed),
        shrink=arguments.shrink,
        key=arguments.key if arguments.key_file is None else read_text(arguments.key_file).strip(),
        timeout=arguments.timeout,
    )


def _judged(chat: Chat, plan: Plan, arguments: Namespace) -> tuple[Verdict, list[str]]:
    """The verdict, and what is to be said after it."""
    if arguments.judge is not None:
        subject = Subject(chat)
        asked, left = recorded(existing(arguments.judge), subject)
        engine = "other" if plan.engine == "auto" else plan.engine
        facts = facts_of(subject, arguments.url or arguments.judge, engine=engine)
        return verdict_of(asked, facts, left, subject, engine), []
    if arguments.url is None:
        raise Refused("which server? Say its URL, such as http://127.0.0.1:8080, or --judge FILE")
    if arguments.dictate:
        return dictation(arguments.url, chat, plan), []
    kept: list[Asked] = []
    verdict = run(arguments.url, chat, plan, kept.append)
    if arguments.record is not None:
        _save(arguments.record, "".join(f"{line}\n" for one in kept for line in record(one)))
    if arguments.against is None:
        return verdict, []
    other: list[Asked] = []
    again: list[Asked] = []
    verdict2 = run(arguments.against, chat, plan, other.append)
    run(arguments.against, chat, plan, again.append)
    found = against.compare((verdict, kept), (verdict2, other), again)
    return verdict, list(against.lines(found, str(verdict2.facts["url"])))


def _write(verdict: Verdict, arguments: Namespace, more: Iterable[str]) -> None:
    texts = arguments.show_texts
    if arguments.html is not None:
        _save(arguments.html, page(verdict, texts=texts))
    if arguments.json is not None and arguments.json != "-":
        _save(arguments.json, to_json(verdict.to_dict(texts=texts), indent=1) + "\n")
    form = "json" if arguments.json == "-" else arguments.form
    report = report_of(verdict, arguments.model, texts=texts)
    if form == "html":
        print(page(verdict, texts=texts))
    elif form == "json":
        print_json(verdict.to_dict(texts=texts), indent=1)
    elif form == "sarif":
        print_json(outputs.sarif([report], str(verdict.facts["chatparsers"]), RULES), indent=2)
    elif form == "github":
        print(outputs.github([report]))
    elif form == "junit":
        print(outputs.junit([report], "chatparsers verify"), end="")
    else:
        print(plain_lines("\n".join([*lines(verdict, texts=texts), *more])))


def _save(path: str, text: str) -> None:
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise Refused(f"{path}: {error.strerror or error}") from error
