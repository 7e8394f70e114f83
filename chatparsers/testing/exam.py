"""One exam for a format, whatever it is: a module, a document, a plugin's, or what the analysis found.

Strategy: the model's own template is the judge. What it writes must be read in every way to cut it, and be what the
format writes; its ends must be the format's stops; the grammar must take it. Then the format's own text of a call is
changed in small ways, as models change it: nothing may be lost without a word. `exam` returns what is wrong alone.
"""

from __future__ import annotations

import json
import random
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, pairwise
from os import PathLike
from pathlib import Path
from typing import Literal, TypeAlias

from ..answers.format import Format, Turn
from ..answers.idioms import Options
from ..answers.nodes import Args, Header, Name, Tag
from ..chat.chat import Chat
from ..chat.load import load
from ..core.tree import once, walk
from ..doctor.check import examined
from ..doctor.document import document_report, samples_of
from ..errors import ChatParsersError, RequestError
from ..plain import one_line
from ..registry import get_format
from .check import check_conservation, check_stream
from .entry import Entry
from .matrix import Record, feed_in_every_way
from .rendering import Case, Inexpressible, render
from .scenarios import Scenario, scenarios

Part: TypeAlias = Literal["reads", "writes", "grammar", "names", "broken", "ends", "document"]

_CUTS = 6
"""Random cuts of each text. `matrix` makes more."""
_LINES = 3
"""The most lines of one check for one template."""
_DAMAGES = 60
_ID = "a1b2c3d4e"
_OTHER = "No_such-2"
_ARGUMENTS = {"city": "Oslo", "days": 3}
_TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city"],
        },
    },
}
_OWN = {
    "grammar-not-read": "let the definition read all that it writes: p.reads(written, …) reads what is listed alone",
    "call-not-read": "let the definition read what the template writes",
}
"""What an author does about a finding of which a user can only send a report."""
_DOCTOR: dict[str, Part] = {"grammar-": "grammar", "no-stop": "ends", "stop": "ends", "markers-": "reads"}
"""The doctor's findings that are the format's fault, by how their codes begin."""


@dataclass(frozen=True, slots=True)
class Failure:
    """What is wrong with a format: the ``check`` that found it, what it ``says``, and the ``mend``."""

    check: Part
    says: str
    mend: str

    def __str__(self) -> str:
        return f"{self.check} {one_line(self.says)}\n  mend: {one_line(self.mend)}"


def exam(
    format: str | Format,
    templates: Iterable[str | PathLike[str]],
    known: str | PathLike[str] | None = None,
) -> list[Failure]:
    """What is wrong with a format, judged by chat templates of its models. An empty list: passed.

    ``format``: a format or its name. ``templates``: files of chat templates. ``known``: a JSON file of differences that
    are accepted: by the format's name, a list of texts, each the beginning of ``"CHECK SAYS"``. The checks:

    - ``reads``: what a template writes is read, however it is cut.
    - ``writes``: the format writes calls as the template does, closers too, and parts as far apart.
    - ``grammar``: the grammar takes what the template writes.
    - ``names``: white space around a name is read, and never becomes part of it; ids come back.
    - ``broken``: a message has what is left of a damaged call, whatever the cut; a value in place of the object of
      arguments is a broken call.
    - ``ends``: the template ends a turn with one of the format's stops.
    - ``document``: the format can be written as a document, whose samples it reads, and opens nothing by plain words.

    It takes some seconds a template. Raises `UnknownFormat` for a name, and `RequestError` for a template that cannot
    be read or no template.

    >>> from chatparsers.testing import exam
    >>> exam("qwen3", [])
    Traceback (most recent call last):
    chatparsers.RequestError: exam: expected at least one chat template of the format's models, found none
    """
    found = get_format(format) if isinstance(format, str) else format
    paths = [Path(template) for template in templates]
    if not paths:
        raise RequestError("exam: expected at least one chat template of the format's models, found none")
    accepted = _accepted(known, found.name)
    failures: dict[Failure, None] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for path in paths:
            entry = Entry(found, path)
            chat = load(path, format=found)
            for check in (
                _reads_and_writes(entry),
                _doctor(chat),
                _ends(entry),
                _document(found, chat, path),
            ):
                failures.update(dict.fromkeys(islice(check, _LINES)))
        if found.features.tools:
            for of_calls, most in ((_names, _LINES), (_no_object, 1), (_broken, 1)):
                failures.update(dict.fromkeys(islice(of_calls(found), most)))
    return [one for one in failures if not f"{one.check} {one.says}".startswith(accepted)]


def _accepted(known: str | PathLike[str] | None, name: str) -> tuple[str, ...]:
    if known is None:
        return ()
    try:
        found = json.loads(Path(known).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RequestError(f"known: {known}: expected a JSON file: {error}") from error
    if not isinstance(found, dict):
        raise RequestError(f"known: {known}: expected an object, with a list of texts for a format's name")
    return tuple(map(str, found.get(name, ())))


def _reads_and_writes(entry: Entry) -> Iterator[Failure]:
    """What the template writes of each scenario that it can show."""
    seen: set[str] = set()
    for scenario in scenarios(entry.format):
        if scenario.heavy:
            continue
        try:
            case = render(entry.format, entry.template(), scenario)
        except Inexpressible:
            continue
        record = Record(entry.format.name, entry.path.name, scenario.name)
        wrong = feed_in_every_way(case, record, {}, _CUTS)
        where = f"{entry.path.name}, {scenario.name}"
        if wrong and "reads" not in seen:
            seen.add("reads")
            mend = "let the definition read what the template writes"
            yield Failure("reads", f"{where}: {wrong[0].partition(chr(10))[0][:200]}", mend)
        elif (
            not wrong
            and "writes" not in seen
            and scenario.calls
            and not scenario.content
            and not scenario.after
        ):
            for failure in _writes(case, scenario, where):
                seen.add("writes")
                yield failure
        if not wrong and "between" not in seen and not scenario.after:
            for failure in _between(case, scenario, where):
                seen.add("between")
                yield failure


def _between(case: Case, scenario: Scenario, where: str) -> Iterator[Failure]:
    """Whether the thought, the content and the first call stand apart as the template writes them."""
    message = case.turn().parse(case.text)
    found = {"thought": message.reasoning.strip(), "content": message.content.strip()}
    found["call"] = message.tool_calls[0].name if message.tool_calls else ""
    parts = [(part, words) for part, words in found.items() if words]
    try:
        ours = case.format.render(
            {
                "role": "assistant",
                "content": message.content,
                "reasoning_content": message.reasoning,
                "tool_calls": message.to_openai().get("tool_calls", []),
            },
            scenario.tools,
        )
    except ChatParsersError:
        return
    for (part, words), (next, others) in pairwise(parts):
        theirs, written = (_gap(text, words, others) for text in (case.text, ours))
        if theirs is not None and written is not None and theirs != written:
            yield Failure(
                "writes",
                f"{where}: between the {part} and the {next} the format writes {written!r:.60}, "
                f"the template {theirs!r:.60}",
                "say it as the template does: the markers of p.think, `lead` of p.body, the text of p.space",
            )
            return


def _gap(text: str, before: str, after: str) -> str | None:
    """What stands between the end of ``before`` and ``after``; None if they do not stand so."""
    _, found, rest = text.partition(before)
    gap, there, _ = rest.partition(after[:12])
    return gap if found and there else None


def _writes(case: Case, scenario: Scenario, where: str) -> Iterator[Failure]:
    """Whether the calls that were read are written as the template wrote them, to the end of the turn."""
    format = case.format
    calls = [
        {
            "id": call.id or _ID,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for call in case.turn().parse(case.text).tool_calls
    ]
    message = {
        "role": "assistant",
        "content": "",
        "reasoning_content": scenario.reasoning,
        "tool_calls": calls,
    }
    try:
        ours = format.render(message, scenario.tools).strip()
    except ChatParsersError:
        return  # an id or a value that this format refuses to write; the template escapes it in its own way
    theirs = case.text.rstrip()
    for stop in format.stops:
        theirs = theirs.removesuffix(stop.rstrip()).rstrip()
    name = scenario.calls[0].name
    # What stands before the call may be the prompt's: texts are compared from the first call on.
    ours, theirs = ours[max(ours.find(name), 0) :], theirs[max(theirs.find(name), 0) :]
    if ours == theirs:
        return
    if theirs.startswith(ours):
        rest = theirs[len(ours) :]
        if rest.strip():
            yield Failure(
                "writes",
                f"{where}: after the calls the template writes {rest[:60]!r}, and the format nothing",
                "write the closer: it is read, and not generated",
            )
        return
    at = next(
        (n for n, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), min(len(ours), len(theirs))
    )
    yield Failure(
        "writes",
        f"{where}: the format writes {ours[at : at + 40]!r}, the template {theirs[at : at + 40]!r}",
        "put first in p.reads what the template writes; look at the text of p.space and the order of members",
    )


def _doctor(chat: Chat) -> Iterator[Failure]:
    """The doctor's findings that are the format's fault."""
    for finding in examined(chat, only=("grammar", "ends")).findings:
        part = next((part for begin, part in _DOCTOR.items() if finding.code.startswith(begin)), None)
        if part is not None and finding.severity == "error":
            mend = _OWN.get(finding.code) or finding.mend or "see docs/check.md"
            yield Failure(part, f"{finding.code}: {finding.message}", mend)


def _ends(entry: Entry) -> Iterator[Failure]:
    """Whether the template writes a stop after an answer, before the next one."""
    said = [
        {"role": role, "content": text}
        for role, text in (("user", "Q"), ("assistant", "WORD"), ("user", "R"))
    ]
    try:
        after = entry.template().render(said).partition("WORD")[2]
    except ChatParsersError:
        return
    stops = [stop.strip() for stop in entry.format.stops if stop.strip()]
    if stops and after and not any(stop in after for stop in stops):
        yield Failure(
            "ends",
            f"{entry.path.name}: after an answer the template writes {after[:40]!r}; the stops are {stops}",
            "stops=: name the text that ends a turn",
        )


def _document(format: Format, chat: Chat, path: Path) -> Iterator[Failure]:
    """The document's own checks: its samples, and the turns of the model."""
    try:
        report = document_report(str(path), format, samples_of(format), chat)
    except ChatParsersError as error:
        yield Failure("document", str(error), "see docs/formats-as-data.md")
        return
    for finding in report.findings:
        if finding.severity == "error" and not finding.code.startswith("turn-"):
            yield Failure(
                "document", f"{finding.code}: {finding.message}", finding.mend or "see docs/check.md"
            )


def _call(format: Format) -> tuple[Turn, str]:
    """A turn with one tool, and a call of it as the format writes it; "" if it cannot."""
    function = {"name": "get_weather", "arguments": json.dumps(_ARGUMENTS)}
    call = {"id": _ID, "type": "function", "function": function}
    try:
        text = format.render({"role": "assistant", "content": "", "tool_calls": [call]}, [_TOOL])
    except ChatParsersError:
        text = ""
    return format.bind(tools=[_TOOL], id_seed=""), text


def _names(format: Format) -> Iterator[Failure]:
    """White space around each name on the wire, within a name of an argument, and the id."""
    turn, text = _call(format)
    nodes = list(walk(format.tree(Options(tools=True)), True))
    if not text or any(isinstance(node, Header) for node in nodes):
        return
    kinds = {node.tag for node in nodes if isinstance(node, Name)}
    for tag, name, where in ((Tag.NAME, "get_weather", "p.name"), (Tag.ARG_NAME, "city", "p.arg_name")):
        if tag not in kinds or name not in text or f'"{name}"' in text:
            continue  # the name stands in quotes, where a blank is a part of it
        for spaced in (f" {name}", f"\n{name}\n"):
            calls = turn.parse(text.replace(name, spaced, 1)).tool_calls
            if [(call.name, call.parsed_arguments) for call in calls] != [("get_weather", _ARGUMENTS)]:
                mend = rf"{where}: no \n in its `chars`, p.space() before it, and after it too, if need be in p.reads"
                yield Failure("names", f"white space around a name is not read: {spaced!r}", mend)
                break
    for tag, name, where in ((Tag.NAME, "get_weather", "p.name"), (Tag.ARG_NAME, "city", "p.arg_name")):
        if tag in kinds and name in text and _OTHER not in _said(turn, text.replace(name, _OTHER)):
            mend = f"{where}: let `chars` take letters, digits, _ and -"
            yield Failure("names", f"a name that nobody declared is not read: {_OTHER}", mend)
    if Tag.ARG_NAME in kinds:
        odd = turn.parse(text.replace("city", "ci\nty", 1)).tool_calls
        if any("\n" in key for call in odd for key in call.parsed_arguments or ()):
            mend = r"p.arg_name: add \n to what `chars` excludes"
            yield Failure("names", "a line break becomes a part of an argument's name", mend)
    ids = [call.id for call in turn.parse(text).tool_calls]
    if Tag.ID in kinds and _ID in text and ids != [_ID]:
        yield Failure("names", f"the id {_ID} comes back as {ids}", "p.id: its class, or what ends it")


def _said(turn: Turn, text: str) -> set[str]:
    """The names of tools and arguments in the calls of a text."""
    calls = turn.parse(text).tool_calls
    return {name for call in calls for name in (call.name, *(call.parsed_arguments or ()))}


def _no_object(format: Format) -> Iterator[Failure]:
    """Arguments that are another JSON value than an object, if they are one: a broken call, unless it begins with plain
    text, which may be prose."""
    turn, text = _call(format)
    calls = turn.parse(text).tool_calls
    before, found, after = text.rpartition(calls[0].arguments if calls else "no call")
    if not found or not any(isinstance(node, Args) for node in once(format.tree(Options(tools=True)))):
        return
    may_be_prose = not any(token in before for token in format.preserved_tokens)
    for value in ("[1, 2]", '"Oslo"', "12", "true"):
        message = turn.parse(before + value + after)
        read = [(call.name, call.arguments) for call in message.tool_calls]
        if read != [("get_weather", value)] and (read or not may_be_prose):
            mend = "what ends the name is no brace alone: p.reads(…, p.space() + p.peek(p.any()))"
            yield Failure("broken", f"arguments that are no object make no broken call: {value}", mend)


def _broken(format: Format) -> Iterator[Failure]:
    """A call that is cut, or loses or gets a few characters: the message tells all its text, whatever the pieces."""
    turn, text = _call(format)
    chance = random.Random(4)
    for _ in range(_DAMAGES if text else 0):
        start = chance.randrange(len(text))
        end = min(len(text), start + chance.randrange(1, 6))
        added = chance.choice('"{}<>\n')
        damaged = chance.choice(
            (text[:start], text[:start] + text[end:], text[:start] + added + text[start:])
        )
        try:
            check_conservation(turn.parse(damaged), turn)
            check_stream(turn, damaged, list(damaged))
        except AssertionError as error:
            says = f"{damaged[-80:]!r}: {str(error).partition(chr(10))[0][:160]}"
            yield Failure("broken", says, "say what must stand between a value and what follows it")
