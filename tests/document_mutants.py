"""What the cases of a format tell: ``python tests/document_mutants.py [options] FORMAT…``.

A format's document is changed in one place (a mutant). A case tells the mutant if it reads another message than the
case has. Many mutants are none:

- refused: it is no definition;
- equal programs: the parsers of both are the same, with and without tools. What is generated may differ, which other
  tests see (tests/formats/documents, tests/grammar);
- equal as far as searched: none of many texts is read otherwise, nor told otherwise by a diagnostic. The texts are
  drawn from both trees and spliced, with another seed than the vectors have. They are text: a token that became text
  differs by ids alone.

The rest differs. It prints how many of these the format's cases tell, and how many its vectors (`chatparsers export
--vectors`), and with ``--show`` each that the cases miss, with a text that tells it.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import random
import re
import time
import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from chatparsers import ChatParsersError, DefinitionError, Format, get_format
from chatparsers.answers.format import Turn
from chatparsers.answers.idioms import Options
from chatparsers.core.machine.stops import StopFinder
from chatparsers.parser.compile import _Compiler, program
from chatparsers.schema.tools import Argument, Tool
from chatparsers.testing.cases import bound, check_case, load_cases, update_golden
from chatparsers.testing.drawn import Drawn
from chatparsers.testing.splicing import CALLS, TOOLS, Search
from chatparsers.testing.vectors import message_record, vector, vectors
from chatparsers.testing.wild import fragments
from chatparsers.watch import observe

CASES = Path(__file__).parent / "needle" / "cases"
FORMATS = ("deepseek-v3-1", "kimi-k2", "gemma-4", "minimax-m3", "olmo-3", "functionary-v3-2")
"""One of each of six families: their cases tell nine of ten mutants."""


@dataclass(slots=True)
class Result:
    """What became of the mutants of one format, each named by its change."""

    refused: list[str] = field(default_factory=list)
    equal: list[str] = field(default_factory=list)
    alike: list[str] = field(default_factory=list)
    """No text was found that is read otherwise."""
    told: list[str] = field(default_factory=list)
    """The cases tell it."""
    missed: dict[str, tuple[bool, str]] = field(default_factory=dict)
    """The cases miss it. Whether the request has tools, and a text that tells it."""
    telling: dict[str, list[int]] = field(default_factory=dict)
    """The vectors that tell those."""
    by_vectors: set[str] = field(default_factory=set)

    @property
    def differing(self) -> int:
        return len(self.told) + len(self.missed)

    def __str__(self) -> str:
        made = len(self.refused) + len(self.equal) + len(self.alike) + self.differing
        return (
            f"{made} mutants: {len(self.refused)} refused, {len(self.equal)} equal programs, "
            f"{len(self.alike)} equal as far as searched, {self.differing} differ; "
            f"told by cases {share(len(self.told), self.differing)}, "
            f"by vectors {share(len(self.by_vectors), self.differing)}"
        )


def share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({part / max(whole, 1):.1%})"


# the mutants of a document

_OTHER = {"json": "python", "python": "json", "tool": "argument", "argument": "tool", "content": "reasoning"}
_OTHER |= {"reasoning": "content", "unread": "content", "stray": "content", "call": "content"}
_KINDS = {"optional": "repeat", "repeat": "optional", "peek": "not", "not": "peek", "token": None}


def mutants(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each document that differs in one place of what is read, with what was changed."""
    for part in ("stops", "tree", "shared"):
        for at, what, changed in _changes(document.get(part), f"$.{part}"):
            yield f"{at}: {what}", {**document, part: changed}


def _changes(data: Any, at: str) -> Iterator[tuple[str, str, Any]]:
    """Each way to change ``data`` in one place: where, how, and what it becomes."""
    yield from ((at, what, changed) for what, changed in _here(data, at))
    if isinstance(data, list):
        for place, item in enumerate(data):
            for below, what, changed in _changes(item, f"{at}[{place}]"):
                yield below, what, [*data[:place], changed, *data[place + 1 :]]
    elif isinstance(data, dict):
        for key, item in data.items():
            for below, what, changed in _changes(item, f"{at}.{key}"):
                yield below, what, {**data, key: changed}


def _here(data: Any, at: str) -> Iterator[tuple[str, Any]]:
    if isinstance(data, bool):
        yield f"{not data}".lower(), not data
    elif isinstance(data, int):
        yield f"{data} + 1", data + 1
        yield f"{data} - 1", data - 1
    elif isinstance(data, str):
        if data in _OTHER:
            yield f"{data!r} is {_OTHER[data]!r}", _OTHER[data]
        elif data and not at.endswith((".use", ".rule", ".ref")):
            yield f"{data!r} without its end", data[:-1]
            other = "~" if data[len(data) // 2] != "~" else "^"
            yield f"{data!r} with another sign", data[: len(data) // 2] + other + data[len(data) // 2 + 1 :]
    elif isinstance(data, list):
        for place, item in enumerate(data):
            yield f"without [{place}] {item!r:.50}", data[:place] + data[place + 1 :]
        for place, (one, other) in enumerate(pairwise(data)):
            if one != other:
                yield f"[{place}] after [{place + 1}]", [*data[:place], other, one, *data[place + 2 :]]
    elif isinstance(data, dict):
        for key in data:
            if len(data) > 1:
                yield f"without {key!r}", {name: item for name, item in data.items() if name != key}
            if key in ("optional", "repeat", "read", "write", "atomic", "token", "is", "not"):
                yield f"only what {key!r} has", data[key]
            if _KINDS.get(key):
                yield (
                    f"{key!r} is {_KINDS[key]!r}",
                    {_KINDS[name] if name == key else name: item for name, item in data.items()},
                )


# equal programs


def canonical(value: Any, seen: dict[int, tuple[Any, Any]] | None = None) -> Any:
    """What is equal for equal parts of programs: patterns by their text, functions by name and what they close over."""
    seen = {} if seen is None else seen
    if value is None or isinstance(value, (bool, int, float, str, type)):
        return value
    if isinstance(value, re.Pattern):
        return value.pattern, value.flags
    if isinstance(value, (Tool, Argument)):
        return repr(value)
    if isinstance(value, StopFinder):
        return value.stops
    if id(value) in seen:
        return seen[id(value)][1]
    seen[id(value)] = value, type(value).__name__  # held, so that nothing else gets its id
    found: Any
    if isinstance(value, (list, tuple)):
        found = tuple(canonical(one, seen) for one in value)
    elif isinstance(value, (set, frozenset)):
        found = tuple(sorted(map(str, value)))
    elif isinstance(value, dict):
        found = tuple((canonical(key, seen), canonical(one, seen)) for key, one in value.items())
    elif isinstance(value, functools.partial):
        found = canonical((value.func, value.args, value.keywords), seen)
    elif isinstance(value, (types.MethodType, types.BuiltinMethodType)):
        compiler = isinstance(value.__self__, _Compiler)  # its methods ask it for the alphabet alone
        found = value.__name__, None if compiler else canonical(value.__self__, seen)
    elif isinstance(value, types.FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        found = value.__module__, value.__qualname__, canonical(cells, seen)
    else:
        slots = [name for base in type(value).__mro__ for name in getattr(base, "__slots__", ())]
        names = dict.fromkeys([*slots, *getattr(value, "__dict__", {})])
        parts = [
            (name, canonical(getattr(value, name, None), seen)) for name in names if name != "__weakref__"
        ]
        found = type(value).__name__, *parts
    seen[id(value)] = value, found
    return found


def programs(format: Format) -> list[Any]:
    """The programs of the format, with tools and without, as data."""
    found = []
    for options in (Options(tools=True), Options()):
        made = program.__wrapped__(format, options)
        found.append((canonical(made.code), made.start, made.fallback, made.late_ids))
    return found


# who tells them


class Judge:
    """Tells the mutants of one format from it."""

    def __init__(self, format: Format, tries: int, number: int) -> None:
        self.format = format
        self.programs = programs(format)
        self.cases = [case for _, case in load_cases(CASES / format.name)]
        self.vectors = vectors(format, number)
        search = Search(format, random.Random(f"mutants of {format.name}"))
        search.run(tries=tries)
        texts = [(one.turn, one.text) for one in search.kept]
        texts += [(one.turn, search.spliced(one)) for one in random.Random(0).choices(search.kept, k=tries)]
        self.texts = [(turn, text, message_record(turn, turn.parse(text))) for turn, text in texts]
        self.known = set(fragments(format))

    def case_tells(self, mutant: Format) -> bool:
        for case in self.cases:
            try:
                turn = bound(mutant, case)
                message = turn.parse(case["text"])
                check_case(case, message, observe(turn, message))
            except (AssertionError, ChatParsersError, ValueError):  # arguments that are no JSON
                return True
        return False

    def telling(self, mutant: Format) -> Iterator[int]:
        """The vectors that tell the mutant."""
        for place, one in enumerate(self.vectors):
            turn = mutant.bind(tools=one.get("tools"), prefix=one.get("prefix", ""), id_seed="")
            if vector(turn, one["text"]) != one:
                yield place

    def witness(self, mutant: Format) -> tuple[bool, str] | None:
        """A request and a text that the mutant reads otherwise; None if none was found. The shortest of several."""
        turns: dict[int, Turn] = {}
        found: list[tuple[Turn, str]] = []
        for turn, text, message in [*self.texts, *self.drawn(mutant)]:
            other = turns.get(id(turn))
            if other is None:
                other = mutant.bind(tools=turn.tools or None, prefix=turn.prefix, id_seed="")
                turns[id(turn)] = other
            if message_record(other, other.parse(text)) != message:
                found.append((turn, text))
                if len(found) == _WITNESSES:
                    break
        if not found:
            return None
        turn, text = min(found, key=lambda one: len(one[1]))
        return bool(turn.tools), text

    def drawn(self, mutant: Format) -> Iterator[tuple[Turn, str, dict[str, Any]]]:
        """Texts of the mutant, which may hold what no text of the format holds."""
        draw = random.Random(0)
        turn = self.format.bind(tools=TOOLS, id_seed="")
        drawn = Drawn(mutant.tree(Options(tools=True)), CALLS, draw)
        texts = [drawn.text() for _ in range(150)]
        new = [text for text in fragments(mutant) if text not in self.known]
        for _ in range(150 if new else 0):
            text = draw.choice(self.texts)[1]
            at = draw.randrange(len(text) + 1)
            texts.append(text[:at] + draw.choice(new) + text[at:])
        for text in texts:
            yield turn, text, message_record(turn, turn.parse(text))


_WITNESSES = 12


def judged(judge: Judge, number: int | None) -> Result:
    """What becomes of the mutants of a format: of all, or of ``number`` that are drawn."""
    made = list(mutants(json.loads(json.dumps(judge.format.to_data()))))
    if number is not None and number < len(made):
        made = random.Random(0).sample(made, number)
    result = Result()
    for change, document in made:
        try:
            mutant = Format.from_data(document)
            for tools in (TOOLS, None):
                mutant.bind(tools=tools).parse("")
        except DefinitionError:
            result.refused.append(change)
            continue
        by_cases = judge.case_tells(mutant)
        telling = judge.telling(mutant)
        by_vectors = [*itertools.islice(telling, 1)] if by_cases else [*telling]
        if by_vectors:
            result.by_vectors.add(change)
        if by_cases:
            result.told.append(change)
        elif by_vectors:
            shortest = judge.vectors[by_vectors[0]]
            result.missed[change] = bool(shortest.get("tools")), shortest["text"]
            result.telling[change] = by_vectors
        elif programs(mutant) == judge.programs:
            result.equal.append(change)
        elif (witness := judge.witness(mutant)) is not None:
            result.missed[change] = witness
        else:
            result.alike.append(change)
    return result


def add_cases(judge: Judge, result: Result, number: int) -> None:
    """Writes at most ``number`` golden cases that tell most of what the cases miss: short texts, read without a
    diagnostic if there are any."""
    documents = dict(mutants(json.loads(json.dumps(judge.format.to_data()))))
    drawn = Drawn(judge.format.tree(Options(tools=True)), CALLS, random.Random(1))
    turn = judge.format.bind(tools=TOOLS, id_seed="")
    texts = {text for _ in range(400) if len(text := drawn.text()) < 300}
    texts |= {one["text"] for one in judge.vectors if "tools" in one and "prefix" not in one}
    found = {text: message_record(turn, turn.parse(text)) for text in sorted(texts)}
    telling: dict[str, set[str]] = {text: set() for text in found}
    for change in result.missed:
        mutant = Format.from_data(documents[change]).bind(tools=TOOLS, id_seed="")
        for text, message in found.items():
            if message_record(mutant, mutant.parse(text)) != message:
                telling[text].add(change)
    left = set(result.missed)

    def worth(text: str) -> float:
        clean = 1 if found[text]["diagnostics"] else 4
        return clean * len(telling[text] & left) / (100 + len(text))

    for at in range(1, number + 1):
        text = max(found, key=worth)
        told = sorted(telling[text] & left)
        if not told:
            break
        left -= telling[text]
        named = [tool for tool in TOOLS if tool["function"]["name"] in text] or [TOOLS[0]]
        case = {
            "title": f"drawn from the tree: tells {len(told)} mutants, such as {told[0][:80]}",
            "source": "tests/document_mutants.py; the message was judged by hand",
            "text": text,
            "tools": named,
        }
        path = CASES / judge.format.name / f"golden-drawn-{at:02}.json"
        path.write_text(json.dumps(case, ensure_ascii=False), encoding="utf-8")
        update_golden(judge.format, path)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("formats", nargs="*", default=FORMATS, metavar="FORMAT")
    parser.add_argument("--number", type=int, help="draw so many mutants of each format (all)")
    parser.add_argument("--vectors", type=int, default=300, help="how many vectors of each format (300)")
    parser.add_argument("--tries", type=int, default=3000, help="texts that are tried on a mutant (3000)")
    parser.add_argument(
        "--show", action="store_true", help="print the mutants that are missed, and those alike"
    )
    parser.add_argument(
        "--add",
        type=int,
        metavar="N",
        help="write at most N golden cases, which tell most of those missed: judge them",
    )
    options = parser.parse_args(arguments)
    for name in options.formats:
        began = time.process_time()
        judge = Judge(get_format(name), options.tries, options.vectors)
        result = judged(judge, options.number)
        print(f"{name}: {result}; {time.process_time() - began:.0f} s", flush=True)
        if options.show:
            for change, (tools, text) in result.missed.items():
                by = "" if change in result.by_vectors else "by both "
                print(f"  missed {by}{change}\n    {'tools' if tools else 'no tools'} {text!r}")
            for change in result.told:
                if change not in result.by_vectors:
                    print(f"  missed by vectors {change}")
            for change in result.alike:
                print(f"  alike {change}")
        if options.add:
            add_cases(judge, result, options.add)


if __name__ == "__main__":
    main()
