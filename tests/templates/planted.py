"""Conversations as a trainer would have them, and faults that are planted into their labels."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from making import bytewise, tool

import chatparsers
from chatparsers import Chat, Kind, Sample
from chatparsers.sessions.samples import export
from chatparsers.sessions.session import Sampled, Session
from chatparsers.templates.builtins import builtin_source
from chatparsers.templates.probe.turns import MARKER

Message = dict[str, Any]
TOOLS = [
    tool(name, {"word": {"type": "string"}}, description=f"Does {name}.") for name in ("find_it", "count_it")
]
_MARKERS = re.compile(
    rf"{MARKER.pattern}|<[|｜][^<>\s]+[|｜]>|\[/?[A-Z_]{{3,}}\]|</?s>|</?(?:think|tool_call|tool_response)>"
)


@cache
def trained_chat(template: Path | str) -> Chat:
    """The chat of a template's file, or of a built-in one, with a small tokenizer that has the markers in it."""
    source = template.read_text("utf-8") if isinstance(template, Path) else builtin_source(template)
    found = {
        text for text in _MARKERS.findall(source) if len(text) < 40 and not re.search(r"[\s{}%'\"]", text)
    }
    given: dict[str, Any] = {"source" if isinstance(template, Path) else "template": template}
    given.update(bos_token="<s>", eos_token="</s>")
    fmt = chatparsers.load(**given).syntax
    special = {text.strip() for text in (*fmt.preserved_tokens, *fmt.stops)} - {""}
    tokenizer = bytewise(*sorted({*special, "<s>", "</s>"}), added=sorted(found - special))
    return chatparsers.load(**given, tokenizer=tokenizer)


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def answer(text: str, *calls: Message, thought: str = "") -> Message:
    message: Message = {"role": "assistant", "content": text}
    if thought:
        message["reasoning_content"] = thought
    return {**message, "tool_calls": list(calls)} if calls else message


def call(name: str, word: str, id: str) -> Message:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": f'{{"word": "{word}"}}'}}


def result(text: str, id: str, name: str = "find_it") -> Message:
    return {"role": "tool", "tool_call_id": id, "name": name, "content": text}


SYSTEM = {"role": "system", "content": "Answer in short words only."}
PLAIN = [
    SYSTEM,
    user("Is seven a prime number?"),
    answer("Yes, as only one and seven divide it."),
    user("And is eight one too?"),
    answer("No, as two and four divide it as well."),
]
_FIRST, _SECOND = call("find_it", "Oslo", "call00001"), call("count_it", "Rome", "call00002")
CALLED = [
    SYSTEM,
    user("Is it cold in the north today?"),
    answer("", _FIRST, thought="I need to look that up."),
    result("Four degrees below zero.", "call00001"),
    answer("It is very cold there, so take a warm coat.", thought="That is cold weather."),
]
ROWS: Mapping[str, list[Message]] = {
    "plain": PLAIN,
    "a call": CALLED,
    "two calls": [
        user("Is it cold there?"),
        answer("", _FIRST, _SECOND),
        result("Four degrees.", "call00001"),
        result("Nine degrees.", "call00002", "count_it"),
        answer("It is."),
    ],
    "calls in a row": [
        user("Is it cold there?"),
        answer("", _FIRST),
        result("Four degrees.", "call00001"),
        answer("", _SECOND),
        result("Nine degrees.", "call00002", "count_it"),
        answer("It is."),
    ],
    "text and call": [
        user("Is it?"),
        answer("Let me look.", _FIRST),
        result("So it is.", "call00001"),
        answer("It is."),
    ],
    "thoughts": [
        user("Is it?"),
        answer("It is.", thought="So."),
        user("Was it?"),
        answer("It was.", thought="Hm."),
    ],
    "a late system text": [
        user("Is it?"),
        answer("It is."),
        {**SYSTEM, "content": "In one word."},
        user("Was it?"),
        answer("No."),
    ],
    "quoted markers": [
        user("How?"),
        answer("Write <|im_start|>user\nand <|end|>."),
        user("So?"),
        answer("So."),
    ],
    "ends with a call": [user("Is it?"), answer("It is."), user("Look."), answer("", _FIRST)],
}


def tools_of(messages: Sequence[Message]) -> list[Message] | None:
    return TOOLS if any("tool_calls" in message for message in messages) else None


def encoded(chat: Chat, messages: Sequence[Message], **how: Any) -> Any:
    tools = tools_of(CALLED if how.pop("with_tools", False) else messages)
    encode: Any = chat.encode
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return encode(messages, **({"tools": tools} if tools else {}), **how)


def session_samples(chat: Chat, messages: Sequence[Message]) -> list[Sample]:
    """The samples of a session in which a client asks for each answer, with thoughts where it has one, and the model
    writes it as its format does."""
    session = Session(chat, "s", now=datetime(2025, 1, 1))
    tools = tools_of(messages)
    asked: list[Message] = []
    calls: dict[str, str] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for message in messages:
            if message["role"] != "assistant":
                known = calls.get(message.get("tool_call_id", ""))
                asked.append({**message, "tool_call_id": known} if known else message)
                continue
            thinking = bool(message.get("reasoning_content"))
            step = session.ask(asked, {"thinking": thinking, **({"tools": tools} if tools else {})})
            model = step.rollout.fork()
            model.said(message)
            chunks = model.begun()[-1].spoken.chunks  # what the template writes for no thought does not count
            ids = [id for chunk in chunks for id, on in zip(chunk.ids, chunk.counted, strict=True) if on]
            told = session.answered(step, Sampled(ids, cut=False)).told
            for made, read in zip(message.get("tool_calls", ()), told.get("tool_calls", ()), strict=True):
                calls[made["id"]] = read["id"]
            asked.append({**told})
        return [row.sample for row in export(session).rows]


class Planted(NamedTuple):
    """A fault: the code that names it, and what a judge is given."""

    code: str
    ids: Sequence[int]
    labels: Sequence[int]
    messages: Sequence[Message] | None = None
    tools: Any = None


def planted(chat: Chat) -> Iterator[Planted]:
    """Each fault that can be planted for this template."""
    plain: Sample = encoded(chat, PLAIN)
    called: Sample = encoded(chat, CALLED, rewritten=True)
    tokenizer = chat.tokenizer
    assert tokenizer is not None

    def off(sample: Sample, places: Sequence[int]) -> tuple[list[int], list[int]]:
        labels = [-100 if at in places else label for at, label in enumerate(sample.labels())]
        return sample.ids, labels

    def on(sample: Sample, places: Sequence[int]) -> tuple[list[int], list[int]]:
        return sample.ids, [
            sample.ids[at] if at in places else label for at, label in enumerate(sample.labels())
        ]

    def of(sample: Sample, *kinds: Kind) -> list[int]:
        return [at for at, kind in enumerate(sample.kinds) if kind in kinds]

    answers = [run for run in _runs(plain) if Kind.CONTENT in plain.kinds[slice(*run)]]
    first, last = answers[0], answers[-1]
    stops = of(plain, Kind.STOP)
    words = [at for at in range(*first) if plain.kinds[at] == Kind.CONTENT]
    middle = words[len(words) // 2]
    yield Planted("nothing-counted", plain.ids, [-100] * len(plain))
    yield Planted("user-counted", *on(plain, of(plain, Kind.USER)))
    yield Planted("stop-not-counted", *off(plain, stops))
    yield Planted("words-end-mask", *off(plain, range(middle, first[1])))
    if not _some_prompt_writes(chat, plain.ids, first[0]):
        yield Planted("opener-not-counted", *off(plain, [first[0]]))
    headers = [at for at in range(first[0] - 3, first[0]) if plain.kinds[at] == Kind.MARKUP]
    if headers:
        yield Planted("header-counted", *on(plain, headers))
    added, left_open = (
        tokenizer.get_added_tokens_decoder(),
        len(encoded(chat, PLAIN, final_stop=False)) < len(plain),
    )
    if not left_open and plain.ids[first[1]] not in added and plain.ids[first[1] + 1] in added:
        yield Planted("after-stop-counted", *on(plain, [first[1]]))
    other = list(plain.labels())
    other[middle] += 1
    yield Planted("label-differs", plain.ids, other)
    end = [at for at in range(*last) if plain.kinds[at] == Kind.CONTENT]
    half = end[len(end) // 2]
    inner = [at for at in stops if at < last[0]]
    if not left_open:  # a stop that is the next header has no text of its own, and no end can be told
        yield Planted("cut", plain.ids[:half], plain.labels()[:half])
    if not left_open and inner and inner[0] in range(*first):
        kept = [at for at in range(len(plain)) if at not in inner]
        yield Planted("stop-missing", [plain.ids[at] for at in kept], [plain.labels()[at] for at in kept])
    if Kind.RESULT in called.kinds:
        yield Planted("result-counted", *on(called, of(called, Kind.RESULT)))
    calls = of(called, Kind.CALL, Kind.ARGUMENT)
    if calls and called.loss_mask[calls[0]]:
        yield Planted("call-not-counted", *off(called, calls))
    # beside the rows: another conversation was encoded than the one that is said

    def said(code: str, messages: Sequence[Message], given: Sequence[Message] = CALLED) -> Planted:
        sample = encoded(chat, messages, rewritten=True, with_tools=True)
        return Planted(code, sample.ids, sample.labels(), given, TOOLS)

    yield said("text-lost", [*CALLED[:-1], answer("It is very cold there.", thought="That is cold weather.")])
    yield said("text-added", [{**SYSTEM, "content": f"{SYSTEM['content']} detailed mode off"}, *CALLED[1:]])
    yield said("weight-ignored", CALLED, [*CALLED[:-1], {**CALLED[-1], "weight": 0}])
    more = {**CALLED[2], "tool_calls": [_FIRST, _SECOND]}
    both = [*CALLED[:2], more, CALLED[3], result("Nine.", "call00002", "count_it"), CALLED[4]]
    yield said("call-lost", CALLED, both)
    yield said("result-elsewhere", [*CALLED[:3], {**CALLED[3], "content": "Nine degrees above."}, CALLED[4]])
    if Kind.REASONING in called.kinds:
        bare = [{key: value for key, value in one.items() if key != "reasoning_content"} for one in CALLED]
        yield said("thought-lost", bare)
    without: Sample = encoded(chat, PLAIN)
    with_tools: Sample = encoded(chat, PLAIN, with_tools=True)
    if without.ids != with_tools.ids:
        yield Planted("tools-lost", without.ids, without.labels(), PLAIN, TOOLS)


def _some_prompt_writes(chat: Chat, ids: Sequence[int], place: int) -> bool:
    """Whether the prompt of some wish for thoughts goes on to this place of the first answer."""
    tokenizer: Any = chat.tokenizer
    for wish in (True, False):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            prompt = chat.prepare(PLAIN[:2], thinking=wish).prompt
        begun = tokenizer.encode(prompt, add_special_tokens=False).ids
        if len(begun) > place and list(ids[: len(begun)]) == begun:
            return True
    return False


def _runs(sample: Sample) -> list[tuple[int, int]]:
    """The runs of ids that count."""
    borders = [at for at in range(len(sample) + 1) if _on(sample, at) != _on(sample, at - 1)]
    return list(zip(borders[::2], borders[1::2], strict=True))


def _on(sample: Sample, at: int) -> bool:
    return 0 <= at < len(sample) and bool(sample.loss_mask[at])
