"""Searches for inputs that break the promises: ``python -m chatparsers.testing.fuzz --minutes 10``.

Strategy: each target draws a case from a seed and checks it. A case is plain JSON data, so a find can be made smaller
and written down. A case depends only on the seed, the target and its number, so the same command finds it again. A
watchdog ends a case that takes longer than `PATIENCE` seconds of the processor, however busy the machine is, and one
that waits as long without working.

Targets: ``texts`` and ``ids`` are read in many pieces and must keep C1 to C6, C9 and the prefix property. ``tools`` and
``schemas`` are bound and their grammars written, ``templates`` rendered and detected, ``files`` loaded. Each must end
and may raise only the documented errors.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import FrameType
from typing import Any

from .. import get_format, list_formats
from ..answers.format import Format, Turn
from ..answers.nodes import Body
from ..core.tree import walk
from ..errors import ChatParsersError, OutputError, RequestError, SchemaError
from ..streams.message import Message
from .check import check_cuts, check_message, check_prefixes, same
from .chunkings import characters, random_cuts
from .scenarios import TOOLS
from .wild import broken, call_openers, fragments, samples

PATIENCE = 10.0
"""The seconds of the processor that a case may take, and the seconds by the clock that it may wait without working."""

Case = dict[str, Any]


@dataclass(slots=True)
class Find:
    """A case that breaks a promise: ``target``, the ``case`` made small, and ``wrong``, what happened."""

    target: str
    number: int
    case: Case
    wrong: str


@dataclass(slots=True)
class Report:
    """The results of a campaign: cases by target, and the faults that it found."""

    cases: Counter[str] = field(default_factory=Counter)
    finds: list[Find] = field(default_factory=list)


class Hang(Exception):
    """A case took longer than it may."""


@contextmanager
def _watchdog(seconds: float) -> Iterator[None]:
    """Raises `Hang` in the block after that time of the processor, or after that time by the clock in which it does
    nothing, if the system has timers that interrupt."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    worked = time.process_time()

    def bark(number: int, frame: FrameType | None) -> None:
        nonlocal worked
        now = time.process_time()
        if number == signal.SIGALRM and now - worked > 0.001:  # it works, but the machine is busy
            worked = now
            return
        raise Hang(f"not done after {seconds:g} seconds")

    timers = {signal.SIGPROF: signal.ITIMER_PROF, signal.SIGALRM: signal.ITIMER_REAL}
    before = {number: signal.signal(number, bark) for number in timers}
    for timer in timers.values():
        signal.setitimer(timer, seconds, seconds)
    try:
        yield
    finally:
        for timer in timers.values():
            signal.setitimer(timer, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


# Texts


_REQUESTS: tuple[Case, ...] = (
    {"tools": True},
    {"tools": True, "tool_choice": "required", "parallel_tool_calls": False},
    {"tools": True, "tool_choice": "none"},
    {"tools": True, "response_format": {"type": "json_object"}},
    {"tools": True, "thinking": False},
    {},
)


def _bound(case: Case, **more: Any) -> Turn:
    options = {**case.get("options", {}), **more}
    if options.get("tools") is True:
        options["tools"] = TOOLS
    return get_format(case["format"]).bind(**options, prefix=case.get("prefix", ""))


def _text(chance: random.Random, format: Format) -> str:
    """Markers, wild pieces and mutations of samples, in any order."""
    pieces = fragments(format)
    kind = chance.random()
    if kind < 0.4:
        return next(broken(format, 1, chance.getrandbits(32)))
    if kind < 0.8:
        return "".join(chance.choices(pieces, k=chance.randint(1, 16)))
    wholes = samples(format) or ["Text."]
    return "".join(chance.choice([chance.choice(wholes), chance.choice(pieces)]) for _ in range(4))


def _draw_text(chance: random.Random, format: Format) -> Case:
    case: Case = {"format": format.name, "text": _text(chance, format), "options": chance.choice(_REQUESTS)}
    if chance.random() < 0.2:
        case["prefix"] = chance.choice([text for text in fragments(format)[:12] if len(text) < 40] or [""])
    return case


def _check_text(case: Case) -> None:
    turn, text = _bound(case), case["text"]
    whole = check_cuts(turn, text, [characters(text), *random_cuts(text, 2)])
    if len(text) < 300:
        check_prefixes(turn, text, 1 + len(text) // 40)
    check_cuts(turn, text, random_cuts(text, 1), reasoning="inline")
    for at in sorted(random.Random(text).choices(range(len(text) + 1), k=6)):
        stream = turn.stream()
        stream.feed(text[:at])
        stream.finish("length")
        for call in stream.message.tool_calls:
            if call.complete:
                found = whole.tool_calls[call.index : call.index + 1]
                assert found == [call], f"cut off at {at} there is {call}, and {found} in the whole turn"
    try:
        strict: Message | None = turn.parse(text, strict=True)
    except OutputError:
        strict = None
    serious = any(wrong.code in ("malformed", "truncated") for wrong in whole.diagnostics)
    assert (strict is None) == serious, "strict mode and the diagnostics differ"


# Ids


@lru_cache(maxsize=64)
def _tokenizer(name: str, vocabulary: int) -> Any:
    """A tokenizer like real ones: bytes, merges learnt from the format's texts, and added tokens, some special and some
    not."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

    chance, format = random.Random(vocabulary), get_format(name)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator([*samples(format), *fragments(format)], trainer)
    markers = [text for text in (*format.preserved_tokens, *format.stops) if chance.random() < 0.8]
    for text in (*markers, "<|unused|>"):
        added = AddedToken(text, special=chance.random() < 0.7, normalized=False)
        tokenizer.add_special_tokens([added]) if added.special else tokenizer.add_tokens([added])
    return tokenizer


def _draw_ids(chance: random.Random, format: Format) -> Case:
    return {**_draw_text(chance, format), "vocabulary": chance.randrange(8), "spelt": chance.random() < 0.3}


def _check_ids(case: Case) -> None:
    tokenizer = _tokenizer(case["format"], case["vocabulary"])
    turn, text = _bound(case, tokenizer=tokenizer), case["text"].replace("\ufeff", "")
    pieces = list(text) if case["spelt"] else [text]
    ids = [id for piece in pieces for id in tokenizer.encode(piece, add_special_tokens=False).ids]
    whole = turn.parse(ids)
    check_message(whole, turn)
    chance = random.Random(case["vocabulary"])
    for sizes in ((1,), (1, 2, 5, 40)):
        stream, at = turn.stream(), 0
        while at < len(ids):
            size = chance.choice(sizes)
            stream.feed(ids[at] if size == 1 else ids[at : at + size])
            at += size
        stream.finish()
        same(stream.message, whole, "the message depends on how the ids are grouped")
    if case["spelt"] and not case.get("prefix") and _opens_by_id(turn):
        assert not whole.tool_calls, "a call was opened by a marker that is spelt out (C9)"


def _opens_by_id(turn: Turn) -> bool:
    """Whether every call of the turn begins with a marker that is a token of the tokenizer."""
    bodies = [node for node in walk(turn.tree) if isinstance(node, Body)]
    openers = [text.strip() for text in call_openers(turn.format)]
    return (
        bool(openers) and all(body.start is None for body in bodies) and set(openers) <= set(turn.marker_ids)
    )


# Tools and schemas


_ODD: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1.5,
    10**30,
    "",
    "a",
    "^a*$",
    [],
    {},
    ["a"],
    {"type": "string"},
    "#",
    "#/$defs/a",
)
_KEYWORDS = (
    "type", "properties", "required", "items", "prefixItems", "enum", "const", "anyOf", "oneOf", "allOf", "not", "$ref",
    "pattern", "format", "minimum", "maximum", "exclusiveMinimum", "multipleOf", "minLength", "maxLength", "minItems",
    "maxItems", "additionalProperties", "patternProperties", "minProperties", "default", "nullable", "title",
)  # fmt: skip
_TYPES = ("string", "integer", "number", "boolean", "null", "array", "object")


def _schema(chance: random.Random, depth: int = 0) -> Any:
    """A random schema. Now and then a part of it is invalid."""
    if chance.random() < 0.05:
        return chance.choice(_ODD)
    if chance.random() < 0.1:
        return {"$ref": chance.choice(["#", "#/$defs/a", "#/$defs/b", "#/nowhere"])}
    if depth > 2 or chance.random() < 0.4:
        kind = chance.choice(_TYPES[:5])
        more = {chance.choice(_KEYWORDS): chance.choice(_ODD)} if chance.random() < 0.2 else {}
        return {"type": kind, **more}
    names = chance.sample(["a", "b", "c d", "é", '"', ""], chance.randint(0, 4))
    inner = [_schema(chance, depth + 1) for _ in range(4)]
    return chance.choice(
        [
            {
                "type": "object",
                "properties": dict(zip(names, inner, strict=False)),
                "required": [name for name in names if chance.random() < 0.5],
                "additionalProperties": chance.choice([True, False, inner[0]]),
            },
            {"type": "array", "items": inner[0], "minItems": chance.randint(0, 3)},
            {"prefixItems": inner[:2], "items": chance.choice([False, inner[2]])},
            {chance.choice(["anyOf", "oneOf", "allOf"]): inner[: chance.randint(1, 3)]},
            {"enum": [1, "a", None, [1], {"a": 1}][: chance.randint(1, 5)]},
            {"type": chance.sample(_TYPES, 2)},
        ]
    )


def _draw_schema(chance: random.Random, format: Format) -> Case:
    parameters = _schema(chance)
    if isinstance(parameters, dict):
        parameters = {**parameters, "$defs": {"a": _schema(chance, 1), "b": _schema(chance, 1)}}
    tool = {"type": "function", "function": {"name": "get_weather", "parameters": parameters}}
    text = chance.choice(samples(format) or ["Text."])
    return {"format": format.name, "text": text, "options": {"tools": [tool], "tool_choice": "required"}}


def _draw_tools(chance: random.Random, format: Format) -> Case:
    tools = copy.deepcopy(chance.sample(TOOLS, chance.randint(0, 3)))
    places: list[Any] = [tools, *tools, *(tool["function"] for tool in tools)]
    for _ in range(chance.randint(1, 2)):
        place = chance.choice(places)
        if isinstance(place, dict):
            place[chance.choice(["type", "function", "name", "parameters", "strict"])] = chance.choice(_ODD)
        else:
            place.append(chance.choice(_ODD))
    options: Case = {"tools": chance.choice([tools, tools, chance.choice(_ODD)])}
    if chance.random() < 0.5:
        options["tool_choice"] = chance.choice(["required", "none", "get_weather", *_ODD])
    if chance.random() < 0.3:
        options["response_format"] = chance.choice(
            [{"type": "json_schema", "json_schema": chance.choice(_ODD)}, *_ODD]
        )
    if chance.random() < 0.2:
        options[chance.choice(["thinking", "parallel_tool_calls"])] = chance.choice(_ODD)
    return {"format": format.name, "text": chance.choice(samples(format) or ["Text."]), "options": options}


def _check_request(case: Case) -> None:
    """Checks that a documented error is raised, or that the text is read and the grammars are written."""
    try:
        turn = _bound(case)
    except RequestError:
        return
    check_cuts(turn, case["text"], random_cuts(case["text"], 1))
    for dialect in ("gbnf", "lark", "structural_tag"):
        with suppress(RequestError, SchemaError):
            turn.grammar(dialect)


# Templates and files


_JINJA = (
    "{% for m in messages %}", "{% endfor %}", "{% if tools %}", "{% elif m.tool_calls %}", "{% else %}", "{% endif %}",
    "{{ m.content }}", "{{ m['content'] }}", "{{ m.role }}", "{{ tools | tojson }}",
    "{{ m.tool_calls | tojson(indent=2) }}",
    "{{ m.tool_calls[0].function.arguments }}", "{{ raise_exception('no') }}", "{% set x = namespace(a=[]) %}",
    "{% set x.a = x.a + [1] %}", "{% set x = 'x' * 99 %}", "{{ x }}", "{% for i in range(9) %}", "{% macro f(a) %}",
    "{{ f(1) }}", "{% endmacro %}", "{% generation %}", "{% endgeneration %}", "{{ bos_token }}", "{{ 1 / 0 }}",
    "{% if add_generation_prompt %}", "{{ m.content.split('</think>')[-1] }}", "{% break %}", "{{ ''.__class__ }}",
    "{{ strftime_now('%Y') }}", "{{ '%s' % x }}", "{{ x | join | upper | trim }}", "{#", "#}", "{{", "}}", "{%", "%}",
    "\n",
    "<tool_call>", "</tool_call>", "<think>", "</think>", "<|im_start|>", "<|im_end|>", "\x00", "é", " ", "{{- x -}}",
)  # fmt: skip


def _draw_template(chance: random.Random, format: Format) -> Case:
    parts = [chance.choice(_JINJA) for _ in range(chance.randint(0, 14))]
    if chance.random() < 0.6:  # one that is likely to compile
        parts = [
            "{% for m in messages %}",
            *(p for p in parts if not p.startswith(("{%", "{#")) and len(p) > 2),
            "{% endfor %}",
        ]
    return {"format": format.name, "text": "".join(parts)}


def _check_template(case: Case) -> None:
    from .. import detect
    from ..templates import Template

    history = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]
    for use in (
        lambda: detect(case["text"]),
        lambda: Template(case["text"]).render(history, tools=list(TOOLS), add_generation_prompt=True),
        lambda: Template(case["text"]).probe(),
    ):
        with suppress(ChatParsersError):
            use()


def _draw_file(chance: random.Random, format: Format) -> Case:
    name = chance.choice(
        ["tokenizer_config.json", "tokenizer.json", "config.json", "model.gguf", "chat_template.jinja"]
    )
    data: dict[str, Any] = {
        "chat_template": chance.choice(
            ["{{ messages[0].content }}", [{"name": "default", "template": "x"}], *_ODD]
        ),
        "bos_token": chance.choice(["<s>", {"content": "<s>"}, *_ODD]),
        "eos_token": chance.choice(_ODD),
        "added_tokens_decoder": chance.choice([{"0": {"content": "<s>", "special": True}}, {"x": 1}, *_ODD]),
    }
    text = json.dumps(chance.choice([data, data, chance.choice(_ODD)]))
    if name == "model.gguf":
        text = "GGUF\x03\x00\x00\x00" + "".join(
            chance.choice("\x00\x00\x00\x01\x08\x09ÿ") for _ in range(chance.randint(0, 60))
        )
    at = chance.randrange(len(text) + 1)
    text = chance.choice([text, text, text[:at], text[:at] + chance.choice('\x00{["ÿ') + text[at:]])
    return {"format": format.name, "text": text, "file": name}


def _check_file(case: Case) -> None:
    from .. import load

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / case["file"]
        path.write_bytes(case["text"].encode("latin-1" if path.suffix == ".gguf" else "utf-8", "replace"))
        for source in (path, Path(folder)):
            with suppress(ChatParsersError):
                load(source)


@dataclass(frozen=True, slots=True)
class Target:
    """``draw`` makes a case of a format from a random source. ``check`` raises if the case breaks a promise."""

    draw: Callable[[random.Random, Format], Case]
    check: Callable[[Case], None]


TARGETS = {
    "texts": Target(_draw_text, _check_text),
    "ids": Target(_draw_ids, _check_ids),
    "tools": Target(_draw_tools, _check_request),
    "schemas": Target(_draw_schema, _check_request),
    "templates": Target(_draw_template, _check_template),
    "files": Target(_draw_file, _check_file),
}


# The campaign


def fault(target: str, case: Case) -> str:
    """The fault of a case of that target; "" if it has no fault."""
    try:
        with _watchdog(PATIENCE):
            TARGETS[target].check(case)
    except (Exception, RecursionError, MemoryError) as error:
        told = str(error).partition("\nassert ")[0]
        return f"{type(error).__name__}: {told}"[:2000]
    return ""


def _smaller(target: str, case: Case, patience: int = 300) -> Case:
    """The case with as little text as still is wrong in the same way: stretches are left out, large ones first."""
    kind = fault(target, case).partition(":")[0]
    text = case["text"]
    size = max(len(text) // 2, 1)
    while patience:
        at = 0
        while at < len(text) and patience:
            less = text[:at] + text[at + size :]
            patience -= 1
            if fault(target, {**case, "text": less}).partition(":")[0] == kind:
                text = less
            else:
                at += size
        if size == 1:
            break
        size //= 2
    return {**case, "text": text}


def campaign(
    names: Sequence[str],
    targets: Sequence[str],
    seed: int,
    number: int | None = None,
    seconds: float | None = None,
    found: Callable[[Find], None] = lambda find: None,
) -> Report:
    """Runs ``number`` cases of each target, or cases of each target in turn for ``seconds``. Calls ``found`` with each
    find."""
    report = Report()
    chosen = [get_format(name) for name in names]
    end = None if seconds is None else time.monotonic() + seconds
    seen: set[tuple[str, str]] = set()
    count = 0
    while (number is None or count < number) and (end is None or time.monotonic() < end):
        for name in targets:
            chance = random.Random(f"{seed} {name} {count}")
            case = TARGETS[name].draw(chance, chosen[count % len(chosen)])
            report.cases[name] += 1
            wrong = fault(name, case)
            if wrong and (name, wrong[:60]) not in seen:
                seen.add((name, wrong[:60]))
                small = _smaller(name, case)
                report.finds.append(Find(name, count, small, fault(name, small) or wrong))
                found(report.finds[-1])
        count += 1
    return report


def write(find: Find, folder: Path, source: str) -> Path:
    """Writes a find as a case, and returns its file.

    A find about a text goes into ``folder`` as a case of the needle tests, whose expectation is then corrected by hand.
    All others go into the folder ``fuzzed`` beside it. They have no expectation: the case must have no fault.
    """
    if find.target == "texts":
        return _write_text(find, folder, source)
    folder = folder.parent / "fuzzed"
    folder.mkdir(parents=True, exist_ok=True)
    taken = [int(path.stem[:4]) for path in folder.glob("[0-9][0-9][0-9][0-9]-*.json")]
    path = folder / f"{max(taken, default=0) + 1:04}-{find.target}.json"
    title = find.wrong.splitlines()[0][:200]
    return _saved(path, {"title": title, "source": source, "target": find.target, "case": find.case})


def _saved(path: Path, case: Case) -> Path:
    path.write_text(json.dumps(case, ensure_ascii=False, indent=2) + "\n", encoding="utf-8", newline="\n")
    return path


def _write_text(find: Find, folder: Path, source: str) -> Path:
    taken = [int(path.stem[:4]) for path in folder.glob("[0-9][0-9][0-9][0-9]*.json")]
    taken += [int(path.stem) for path in folder.glob("[0-9][0-9][0-9].json")]
    options = {key: value for key, value in find.case.get("options", {}).items() if key != "tools"}
    case: Case = {
        "format": find.case["format"],
        "title": find.wrong.splitlines()[0][:200],
        "source": source,
        "text": find.case["text"],
    }
    if find.case.get("options", {}).get("tools") is True:
        case["tools"] = [tool["function"]["name"] for tool in TOOLS]
    if find.case.get("prefix"):
        case["prefix"] = find.case["prefix"]
    if options:
        case["options"] = options
    message = _bound(find.case).parse(find.case["text"])
    calls = [
        {"name": call.name, "arguments": call.arguments, "complete": call.complete}
        for call in message.tool_calls
    ]
    case["expect"] = {
        "content": message.content,
        "reasoning": message.reasoning,
        "calls": calls,
        "complete": message.complete,
        "diagnostics": [diagnostic.code for diagnostic in message.diagnostics],
    }
    return _saved(folder / f"{max(taken, default=0) + 1:04}-fuzz.json", case)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command. Returns 1 if it found a fault."""
    parser = argparse.ArgumentParser(
        prog="python -m chatparsers.testing.fuzz", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--minutes", type=float, default=1.0, help="how long to look (default: 1)")
    parser.add_argument("--format", help="only this format (name or alias); default: all in turn")
    parser.add_argument("--target", choices=sorted(TARGETS), help="only this target; default: all in turn")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other cases (default: 0)")
    parser.add_argument("--no-write", action="store_true", help="print what is found, and write no case")
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path("tests/needle/found"),
        help="where cases of texts go, the others beside it into fuzzed (default: tests/needle/found)",
    )
    given = parser.parse_args(arguments)
    try:
        names = [get_format(given.format).name] if given.format else [info.name for info in list_formats()]
    except ChatParsersError as error:
        parser.error(str(error))
    targets = [given.target] if given.target else list(TARGETS)

    def found(find: Find) -> None:
        print(f"{find.target}, case {find.number} of seed {given.seed}: {find.wrong}")
        print(f"  {json.dumps(find.case, ensure_ascii=False)[:4000]}")
        if not given.no_write:
            source = f"python -m chatparsers.testing.fuzz --seed {given.seed}: {find.target} {find.number}"
            try:
                with _watchdog(PATIENCE):
                    path = write(find, given.folder, source)
                more = ": read it, and say in `expect` what is right" if find.target == "texts" else ""
                print(f"  written to {path}{more}")
            except Exception as error:
                print(f"  not written: {type(error).__name__}: {error}")
        sys.stdout.flush()

    report = campaign(names, targets, given.seed, seconds=given.minutes * 60, found=found)
    counted = ", ".join(f"{number:,} {name}" for name, number in report.cases.items())
    print(f"{counted}; {len(report.finds)} found")
    return 1 if report.finds else 0


if __name__ == "__main__":
    sys.exit(main())
