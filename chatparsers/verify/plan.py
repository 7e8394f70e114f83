"""What a run asks: the options, the probes that they choose, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..chat.chat import Chat
from .apis import APIS
from .asking import can_ask
from .client import Budget, VerifyError
from .probes import LATER, MOST, Probe, answers, conversations
from .server import ENGINES
from .subject import Subject

_REQUESTS, _TOKENS, _SHRINKING, _DICTATED = 60, 40_000, 300, 500


@dataclass(frozen=True)
class Plan:
    """What a run asks. ``probes``: only these names, or the beginnings of names. ``requests``: the most, None: 60 for
    each API and sample. ``replayed``: requests of the user's own, instead of the probes. ``shrink``: also asks for the
    smallest request that shows each fault. ``key``: the server's key."""

    apis: tuple[str, ...] = ("chat",)
    engine: str = "auto"
    name: str | None = None
    probes: tuple[str, ...] = ()
    samples: int = 1
    seed: int = 0
    requests: int | None = None
    tokens: int | None = None
    answer_tokens: int = MOST
    concurrency: int = 2
    black_box: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)
    replayed: tuple[Probe, ...] = ()
    shrink: bool = False
    key: str | None = None
    timeout: float = 300.0

    def __post_init__(self) -> None:
        for name in self.apis:
            if name not in APIS:
                raise VerifyError(f"expected an API of {', '.join(APIS)}, found {name!r}")
        if self.engine not in ("auto", *ENGINES):
            raise VerifyError(f"expected an engine of auto, {', '.join(ENGINES)}, found {self.engine!r}")
        if self.samples < 1 or self.concurrency < 1:
            raise VerifyError("samples and concurrency: expected at least 1")

    @property
    def budget(self) -> Budget:
        times = len(self.apis) * self.samples
        more = _SHRINKING if self.shrink else 0
        requests = self.requests or _REQUESTS * times + more
        return Budget(requests, self.tokens or _TOKENS * times + more * self.answer_tokens)

    @property
    def dictated(self) -> Budget:
        """The budget of a dictation, whose texts cost no model anything."""
        return Budget(self.requests or _DICTATED, self.tokens or _TOKENS)


class Chosen(NamedTuple):
    """The probes of a run: conversations whose prompt is judged, requests whose answer is, and why others are left
    out."""

    prompts: list[Probe]
    answers: list[Probe]
    left: list[str]


def chosen(chat: Chat, plan: Plan) -> Chosen:
    """The probes that a plan names. Raises `VerifyError` for a name that no probe has."""
    probes = list(plan.replayed or (*conversations(chat), *answers(chat), *LATER))
    for name in plan.probes:
        if not any(_named(probe, name) for probe in probes):
            known = ", ".join(probe.name for probe in probes)
            raise VerifyError(f"no probe {name!r}: expected one of {known}")
    if plan.probes:
        probes = [probe for probe in probes if any(_named(probe, name) for name in plan.probes)]
    subject, found = Subject(chat), Chosen([], [], [])
    for probe in probes:
        why = can_ask(subject, probe) if probe.body["messages"] else ""
        if why:
            found.left.append(f"{probe.name}: {why}")
        else:
            (found.prompts if probe.prompt else found.answers).append(probe)
    return found


def _named(probe: Probe, name: str) -> bool:
    return probe.name == name or probe.name.startswith(f"{name}/")


def planned(chat: Chat, plan: Plan) -> list[str]:
    """What a run would send, without sending it."""
    prompts, asked, left = chosen(chat, plan)
    each = 2 * len(plan.apis) * plan.samples
    most = {probe.name: int(probe.body.get("max_tokens", plan.answer_tokens)) for probe in asked}
    requests, tokens = len(prompts) + each * len(asked), len(prompts) + each * sum(most.values())
    repeats = each * len(asked)
    budget = plan.budget
    return [
        *(f"{probe.name}: 1 request, 1 token" for probe in prompts),
        *(
            f"{name}: {each} requests, at most {each * tokens_each} tokens"
            for name, tokens_each in most.items()
        ),
        *(f"left out: {why}" for why in left),
        f"{requests} requests and at most {tokens:,} tokens; up to 5 requests more find the raw text, and up to "
        f"{repeats} repeat what differs; it stops at {budget.requests} requests or {budget.tokens:,} tokens",
    ]
