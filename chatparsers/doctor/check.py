"""Runs all checks on a model. A check is a function of a `Subject` that yields findings; a plugin can add one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

from ..answers.format import Format
from ..chat.chat import Chat
from ..chat.load import load
from ..errors import ChatParsersError, TemplateError
from ..plugins import plugins
from ..public import public
from ..registry import list_formats
from .cost import cost
from .ends import ends
from .format import format_found
from .grammar import grammar
from .history import append_only, arguments, loses, rounds, whitespace
from .masks import bridge, masks
from .otherwise import renderers
from .prompt import prompt
from .report import LEVELS, Fact, Finding, Report
from .subject import Subject
from .tokens import ids

Check = Callable[[Subject], Iterable[Finding | Fact]]

CHECKS: Mapping[str, Check] = {
    "format": format_found,
    "loses": loses,
    "append-only": append_only,
    "rounds": rounds,
    "arguments": arguments,
    "whitespace": whitespace,
    "ends": ends,
    "prompt": prompt,
    "ids": ids,
    "masks": masks,
    "bridge": bridge,
    "grammar": grammar,
    "cost": cost,
    "renderers": renderers,
}


@public
def check(
    source: str | PathLike[str],
    *,
    format: str | Format | None = None,
    tools: Sequence[Mapping[str, Any]] | None = None,
    tokenizer: Any = None,
    only: Iterable[str] = (),
    samples: int = 0,
) -> Report:
    """What is wrong with a model's template, tokenizer, format and grammar.

    ``source``: as `load` takes it. ``format``: a format or its name, which overrides detection. ``tools``: tools of
    your own, whose schemas the grammar must hold. ``tokenizer``: as for `load`. ``only``: the names of the checks
    to run, all if empty. ``samples``: how many answers each installed engine (xgrammar, llguidance) samples under
    the grammar; a second or more for each engine, and it needs the tokenizer. A template runs within the limits of
    `load`. Raises the errors of `load`.

    >>> report = check("{% for m in messages %}{{ m.content }}{% endfor %}")
    >>> "loses-calls" in report.codes()
    True
    """
    return examined(load(source, format=format, tokenizer=tokenizer), tools=tools, only=only, samples=samples)


def examined(
    chat: Chat,
    *,
    tools: Sequence[Mapping[str, Any]] | None = None,
    only: Iterable[str] = (),
    samples: int = 0,
) -> Report:
    """As `check`, for a model that is loaded."""
    model = Subject(chat, tools, samples).asked()
    wanted = set(only)
    findings: list[Finding] = []
    fine: list[str] = []
    skipped: list[tuple[str, str]] = []
    facts: list[tuple[str, str]] = []
    for name, run in _checks():
        if wanted and name not in wanted:
            continue
        if name == "ids" and model.tokenizer is None:
            skipped.append((name, "the model's files have no tokenizer"))
            continue
        if name != "prompt" and model.refusal is not None:
            skipped.append((name, "the template refuses the simplest conversation"))
            continue
        said: list[Finding | Fact] = []
        try:
            for one in run(model):
                said.append(one)
        except TemplateError as error:
            message = f"the template fails in the check {name!r}"
            said.append(Finding("template-fails", "error", message, str(error), "see the error"))
        except Exception as error:
            if name in CHECKS and not isinstance(error, ChatParsersError):
                raise  # a fault of ours
            skipped.append((name, f"{type(error).__name__}: {error}"))
            if not said:
                continue
        found = [one for one in said if isinstance(one, Finding)]
        facts += [(name, one.text) for one in said if isinstance(one, Fact)]
        findings += found
        if not found:
            fine.append(name)
    if _authored(chat):
        findings = [replace(one, mend=_AUTHORS.get(one.code, one.mend)) for one in findings]
        facts.append(
            ("format", f"{chat.format.name} is a definition of your own: judge it by itself ({_CHECK})")
        )
    once = list(dict.fromkeys(findings))
    once.sort(key=lambda finding: LEVELS.index(finding.severity))
    return Report(chat.name, chat.detection.name, tuple(once), tuple(fine), tuple(skipped), tuple(facts))


_CHECK = "chatparsers formats check FORMAT TEMPLATE"
_READ = f"mend your definition: it has to read what the template writes ({_CHECK} shows where)"
_WRITTEN = f"mend your definition: first in p.reads stands what the template writes ({_CHECK})"
_AUTHORS = {
    "call-not-read": _READ,
    "mask-counts-context": _READ,
    "grammar-not-read": f"mend your definition: it has to read what it writes itself ({_CHECK})",
    "grammar-refuses-own-call": _WRITTEN,
    "engine-refuses-call": _WRITTEN,
}
"""What an author has to mend, where it is a fault of ours if the format is."""


def _authored(chat: Chat) -> bool:
    """Whether somebody else wrote the format's definition: it is none of ours, and no analysis made it."""
    format = chat.format
    ours = [info for info in list_formats() if info.name == format.name and info.origin == "chatparsers"]
    return chat.detection.format is None and not any(info.load().build == format.build for info in ours)


def names() -> list[str]:
    """The names of all checks, those of plugins last."""
    return [name for name, _ in _checks()]


def _checks() -> Iterator[tuple[str, Check]]:
    """Our checks, then those of plugins."""
    yield from CHECKS.items()
    yield from plugins().checks()
