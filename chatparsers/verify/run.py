"""One run: asks the probes, judges the answers, and gives the verdict."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Any

from ..chat.chat import Chat
from ..chat.load import load
from .apis import APIS
from .asking import Asked, Asker, can_ask
from .client import Budget, Client, Spent, VerifyError
from .dictation import dictate
from .exchange import Exchange
from .judging import judge, model_facts
from .plan import Plan, chosen
from .probes import LATER, MOST, Probe, cuts, sent_back
from .served import other_model, unblamed
from .server import Server, server_of
from .shrinking import shrink as shrunk
from .subject import Subject
from .verdict import Verdict, ranked

KEY = "CHATPARSERS_VERIFY_KEY"
_VERSION = str(vars(sys.modules["chatparsers"])["__version__"])  # its package names this module: no circle


@contextmanager
def _opened(url: str, plan: Plan, budget: Budget) -> Iterator[tuple[Client, Server]]:
    """The server at an address, and who asks it."""
    client = Client(url, budget, key=plan.key or os.environ.get(KEY), timeout=plan.timeout)
    try:
        yield client, server_of(client, engine=plan.engine, name=plan.name)
    finally:
        client.close()


def run(url: str, chat: Chat, plan: Plan, on_asked: Callable[[Asked], None] | None = None) -> Verdict:
    """Asks and judges. ``on_asked`` gets what was asked, to write it down. Raises `VerifyError` if the server does not
    answer, or refuses the key."""
    started, subject = time.monotonic(), Subject(chat)
    prompts, probes, left = chosen(chat, plan)
    with _opened(url, plan, plan.budget) as (client, server):
        sampling = {"temperature": 0, "seed": plan.seed}
        asker = Asker(client, subject, server, sampling, plan.extra, most=plan.answer_tokens)
        if not plan.black_box:
            asker.find_way()
        asked, stopped = _all_asked(asker, plan, prompts, probes)
        left += [f"stopped at {stopped}: what is left was not asked"] if stopped else []
        verdict = verdict_of(asked, {}, left, subject, server.engine)
        if plan.shrink:
            verdict = replace(verdict, rows=shrunk(verdict.rows, asked, asker))
    if on_asked is not None:
        for one in asked:
            on_asked(one)
    facts = facts_of(subject, client.url, server, client, asker.way.name, time.monotonic() - started)
    if asker.refused:
        facts["refused"] = list(dict.fromkeys(asker.refused))
    return replace(verdict, facts={**facts, **verdict.facts})


def verdict_of(
    asked: Sequence[Asked], facts: dict[str, Any], left: Sequence[str], subject: Subject, engine: str
) -> Verdict:
    """Judges exchanges, and puts the verdict together."""
    kept = [one for one in asked if one.whole.response.status not in _ABSENT or one.whole.api.name == "chat"]
    absent = {one.whole.api.name for one in asked} - {one.whole.api.name for one in kept}
    exchanges = [each for one in kept for each in one.exchanges]
    busy = [each for each in exchanges if each.response.inconclusive]
    not_judged = [*left, *(f"the server has no {APIS[name].path}" for name in sorted(absent))]
    not_judged += [f"{each.api.name}: {each.name}: status {each.response.status or 'none'}" for each in busy]
    if subject.tokenizer is None:
        not_judged.append("counts and ids: the model's files have no tokenizer")
    rows, judged = judge(kept, engine) if exchanges else ((), {})
    other = other_model(exchanges)
    rows = rows if other is None else ranked([other, *map(unblamed, rows)])
    facts = {**facts, "answers": len(exchanges) - len(busy), **model_facts(kept)}
    return Verdict(rows, facts, judged, tuple(not_judged))


_ABSENT = (404, 405, 501)
"""The statuses of a server that does not have an API."""


def facts_of(
    subject: Subject,
    url: str,
    server: Server | None = None,
    client: Client | None = None,
    raw: str = "",
    seconds: float = 0.0,
    *,
    engine: str = "other",
) -> dict[str, Any]:
    """What a verdict is about: of whom, of which model, when, and at what cost."""
    chat = subject.chat
    source = chat.template(True).source
    return {
        "url": url,
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        "chatparsers": _VERSION,
        "format": chat.format.name,
        "template": hashlib.sha256(source.encode()).hexdigest()[:16],
        "engine": engine if server is None else server.engine,
        "version": "" if server is None else server.version,
        "model": chat.name if server is None else server.model,
        "raw": raw or "what was recorded",
        "keyed": client is not None and client.keyed,
        "requests": 0 if client is None else client.budget.sent,
        "tokens": 0 if client is None else client.budget.used,
        "seconds": round(seconds, 1),
    }


def dictation(url: str, chat: Chat, plan: Plan) -> Verdict:
    """Feeds the server's parser alone, where that is possible. Raises `VerifyError` if it is not."""
    started, subject = time.monotonic(), Subject(chat)
    with _opened(url, plan, plan.dictated) as (client, server):
        try:
            asked, way = dictate(client, server, subject)
        except Spent as spent:
            raise VerifyError(f"the texts need more than {spent}") from None
    if not way:
        raise VerifyError(f"the parser of {server.engine} cannot be fed alone here: leave --dictate out")
    facts = facts_of(subject, client.url, server, client, f"dictated by {way}", time.monotonic() - started)
    return verdict_of(asked, facts, (), subject, server.engine)


def _all_asked(
    asker: Asker, plan: Plan, prompts: list[Probe], probes: list[Probe]
) -> tuple[list[Asked], str]:
    """All that could be asked within the budget, and what it stopped at."""
    stopped: list[str] = []

    def ask(task: _Task) -> Asked | None:
        if stopped:
            return None
        try:
            return asker.ask(task.probe, APIS[task.api], more=task.more)
        except Spent as spent:
            stopped.append(str(spent))
            return None

    tasks = [_Task(probe) for probe in prompts if probe not in LATER]
    tasks += _tasks(plan, [probe for probe in probes if probe not in LATER])
    with ThreadPoolExecutor(plan.concurrency) as pool:
        asked = [one for one in pool.map(ask, tasks) if one is not None]
    wanted = {probe.name for probe in LATER if probe in prompts or probe in probes}
    for made in _made_of(asked):
        if made.name in wanted and not can_ask(asker.subject, made):
            later = [_Task(made)] if made.prompt else list(_tasks(plan, [made]))
            asked += [one for task in later if (one := ask(task)) is not None]
    return asked, stopped[0] if stopped else ""


@dataclass(frozen=True)
class _Task:
    probe: Probe
    api: str = "chat"
    more: Mapping[str, Any] = field(default_factory=dict)


def _tasks(plan: Plan, probes: Iterable[Probe]) -> Iterator[_Task]:
    """With samples, the model's own sampling, each with a seed of its own."""
    for probe in probes:
        for api in plan.apis:
            if probe.stops and not APIS[api].stops:
                continue
            for number in range(plan.samples):
                more = {"seed": plan.seed + number, "temperature": None} if plan.samples > 1 else {}
                shown = (
                    probe if plan.samples == 1 else replace(probe, name=f"{probe.name}#{plan.seed + number}")
                )
                yield _Task(shown, api, more)


def _made_of(asked: Iterable[Asked]) -> Iterator[Probe]:
    """The probes that are made of the server's first whole answer with calls."""
    wholes = [one.whole for one in asked if one.whole.said is not None and one.whole.api.name == "chat"]
    for whole in wholes:
        span = _call_span(whole) if whole.probe.forced else None
        if span is not None:
            yield from cuts(whole.probe, *span)
            break
    for whole in wholes:
        said = whole.answer
        if not said.calls or whole.cut or not whole.probe.tools:
            continue
        calls = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in said.calls
        ]
        if all(isinstance(call.value, dict) and isinstance(call.id, str) for call in said.calls):
            yield sent_back(whole.probe, said.content, said.reasoning, calls)
            return


def _call_span(exchange: Exchange) -> tuple[int, int] | None:
    """The tokens of the first call, by the counts if the raw text is not known."""
    for region in [] if exchange.reading is None else exchange.reading.regions:
        if region.kind == "call" and region.token_start is not None and region.token_end is not None:
            return region.token_start, region.token_end
    paid = exchange.answer.completion
    return (paid // 3, paid) if paid and exchange.answer.calls and not exchange.cut else None


def verify(
    url: str,
    model: Any,
    *,
    tokenizer: Any = None,
    format: str | None = None,
    api: str = "chat",
    engine: str = "auto",
    name: str | None = None,
    probes: Iterable[str] = (),
    samples: int = 1,
    seed: int = 0,
    requests: int | None = None,
    tokens: int | None = None,
    answer_tokens: int = MOST,
    concurrency: int = 2,
    black_box: bool = False,
    extra: Mapping[str, Any] | None = None,
    shrink: bool = False,
    key: str | None = None,
    timeout: float = 300.0,
) -> Verdict:
    """Asks the server at ``url``, and says what in its answers is wrong for the model, with a witness, and whose fault
    it is.

    ``model``: what `load` takes, or a `Chat`. ``api``: ``chat``, ``messages``, ``responses`` or ``all``. ``engine``:
    what runs there, ``auto`` to ask it. ``name``: the model's name there. ``probes``: only these requests. ``samples``:
    how often each is asked, with the model's own sampling if more than once, from ``seed`` on. ``requests``,
    ``tokens``: where it stops. ``answer_tokens``: the most of one answer. ``black_box``: without the raw text.
    ``extra``: fields for every request. ``shrink``: finds the smallest request that shows each fault. ``key``: the
    server's, else that in ``$CHATPARSERS_VERIFY_KEY``. ``timeout``: seconds of silence.

    Raises `LoadError` if the model cannot be loaded, and `VerifyError` if the server does not answer.

    >>> from chatparsers.verify import VerifyError
    >>> try:
    ...     verdict = chatparsers.verify("http://127.0.0.1:9", chat)  # nothing listens there
    ... except VerifyError as error:
    ...     print(error)
    the server does not answer: ConnectError
    """
    chat = model if isinstance(model, Chat) else load(model, tokenizer=tokenizer, format=format)
    plan = Plan(
        apis=tuple(APIS) if api == "all" else (api,),
        engine=engine,
        name=name,
        probes=tuple(probes),
        samples=samples,
        seed=seed,
        requests=requests,
        tokens=tokens,
        answer_tokens=answer_tokens,
        concurrency=concurrency,
        black_box=black_box,
        extra=extra or {},
        shrink=shrink,
        key=key,
        timeout=timeout,
    )
    return run(url, chat, plan)
