"""The check of ends: what the template writes after an answer, and what each of the model's files names as an end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..chat.sample import Kind
from ..errors import ChatParsersError, UnknownFormat
from ..registry import get_format
from .report import Fact, Finding
from .subject import Subject, answer, call, excerpt, quoted, result, sampled, user


def ends(model: Subject) -> Iterator[Finding | Fact]:
    """Whether the stop is the same in the template and in all files, is one token, is trained, and is in the
    history after every answer; what the other ends of the files do."""
    stops = [stop for stop in model.template.end_of_turn(model.format) if stop.strip()]
    listed = {name: _texts(model, values) for name, values in model.chat.files.ends.items()}
    if not stops or _header_alone(model, stops, listed):
        yield from _missing(model)
    else:
        yield from _compared(stops, listed)
        if model.tokenizer is not None:
            yield from _tokens(model, stops)
        yield from _untrained(model, stops)
    yield from _others(model, stops, sorted({text for texts in listed.values() for text in texts}))
    if stops:
        said = ", ".join(f"{name}: {' '.join(texts)}" for name, texts in listed.items())
        yield Fact(
            f"the template ends an answer with {', '.join(map(quoted, stops))}{'; ' * bool(said)}{said}"
        )


def _texts(model: Subject, values: tuple[str | int, ...]) -> tuple[str, ...]:
    """The ends as texts; an id as a number if there is no tokenizer."""
    found = []
    for value in values:
        text = None
        if isinstance(value, int) and model.tokenizer is not None:
            text = model.tokenizer.id_to_token(value)
        found.append(value if isinstance(value, str) else text or f"id {value}")
    return tuple(found)


def _compared(stops: list[str], listed: dict[str, tuple[str, ...]]) -> Iterator[Finding]:
    known = {text for texts in listed.values() for text in texts if not text.startswith("id ")}
    witness = "\n".join(
        [f"template: {', '.join(map(quoted, stops))}", *(f"{n}: {' '.join(t)}" for n, t in listed.items())]
    )
    if not known:
        return
    wanted = {stop.strip() for stop in stops}
    gguf = any(name.startswith("tokenizer.ggml.") for name in listed)  # engines read all its fields
    if not known & wanted:
        yield Finding(
            "stop-differs",
            "error",
            "the stop that the template writes is not one that the files name as an end",
            witness,
            f"set tokenizer.ggml.eos_token_id to the id of {stops[0].strip()}: gguf-set-metadata, --override-kv"
            if gguf
            else f"add the id of {stops[0].strip()} to eos_token_id in generation_config.json",
        )
        return
    without = [
        name
        for name, texts in listed.items()
        if not gguf and not wanted & set(texts) and not any(text.startswith("id ") for text in texts)
    ]
    if without:
        yield Finding(
            "stop-config-differs",
            "note",
            f"{', '.join(without)} does not name the template's stop; an engine that reads no other file goes on",
            witness,
            "give engines all ends (Turn.stop_ids has them), or name the stop there",
        )


def _tokens(model: Subject, stops: list[str]) -> Iterator[Finding]:
    pad = model.chat.files.special_tokens.get("pad_token")
    for stop in stops:
        ids = model.ids(stop.strip())
        if len(ids) != 1:
            yield Finding(
                "stop-several-tokens",
                "warning",
                f"the stop {stop.strip()!r} is not one token of this tokenizer",
                f"{stop.strip()} → {ids}",
                "engines must stop on text; name it as a stop text",
            )
        elif stop.strip() == pad:
            yield Finding(
                "stop-is-padding",
                "warning",
                f"the stop {pad!r} is the padding token too: a trainer that leaves padding out never trains the stop",
                f"pad_token: {pad}, id {ids[0]}",
                "take labels from Chat.encode, or name another pad_token",
            )


def _header_alone(model: Subject, stops: list[str], listed: dict[str, tuple[str, ...]]) -> bool:
    """Whether nothing but the header of the next message follows an answer, and neither a file nor the format names it
    as an end."""
    alone = model.tried([user("FirstQuestion"), answer("FirstAnswer")])
    both = model.tried([user("FirstQuestion"), answer("FirstAnswer"), user("NextQuestion")])
    if alone is None or both is None or not alone.rstrip().endswith("FirstAnswer"):
        return False
    if not model.template.eos_token and "eos_token" in model.template.variables:
        return False  # the template's own file does not say what it writes there
    try:
        own = get_format(model.format.name).stops  # model.format has those of this template too
    except UnknownFormat:  # it was made of this template
        own = ()
    if any(stop.strip() in texts for stop in stops for texts in (own, *listed.values())):
        return False
    before, between = both.partition("FirstQuestion")[0], both.partition("FirstAnswer")[2]
    header = between.partition("NextQuestion")[0].strip()
    return before.rstrip().endswith(header)


def _missing(model: Subject) -> Iterator[Finding]:
    history = model.tried([user("Q"), answer("FirstAnswer"), user("R")])
    yield Finding(
        "stop-missing",
        "warning",
        "the template writes no end after an answer in the history",
        "" if history is None else excerpt(history, history.find("FirstAnswer")),
        "write the end token after the content: else training does not teach the model to stop",
    )


def _untrained(model: Subject, stops: list[str]) -> Iterator[Finding]:
    """Whether an end comes after an answer and after a call, and whether a loss counts it."""
    shown: list[tuple[str, list[dict[str, Any]], tuple[str, str]]] = [
        (
            "an answer",
            [user("Q"), answer("FirstAnswer"), user("NextQuestion")],
            ("FirstAnswer", "NextQuestion"),
        )
    ]
    if model.can.tool_calls and model.can.tool_role:
        messages = [user("Q"), call({"city": "FarTown"}), result("ColdThere")]
        shown.append(("a call", messages, ("FarTown", "ColdThere")))
    known = [stop.strip() for stop in (*stops, *model.format.stops)]
    for what, messages, (last, following) in shown:
        try:
            sample = sampled(model.bare, messages)
        except ChatParsersError:
            continue
        written = "".join(
            letter
            for letter, kind, mask in zip(sample.text, sample.kinds, sample.loss_mask, strict=True)
            if mask and kind == Kind.STOP
        )
        after = sample.text[sample.text.rfind(last) + len(last) : sample.text.rfind(following)]
        if sample.counted and not any(stop in (written or after) for stop in known):
            yield Finding(
                "stop-untrained",
                "warning",
                f"no stop after {what} in the history is counted by a loss, so training does not teach to stop there",
                f"counted: {quoted(written)}\nafter {what}: {quoted(after)}",
                "write the end token after every answer",
            )


def _others(model: Subject, stops: list[str], listed: list[str]) -> Iterator[Finding]:
    """Whether an answer contains an end that the files name, so that an engine stops in its middle."""
    said: list[dict[str, Any]] = [answer("FirstAnswer")]
    if model.can.reasoning:
        said.append(answer("FirstAnswer", "FirstThought"))
    if model.can.tool_calls:
        said.append(
            call({"city": "Oslo"}, {"city": "Rome"}) if model.can.parallel_calls else call({"city": "Oslo"})
        )
    wanted = {stop.strip() for stop in stops}
    for message in said:
        shown = model.answered(message)
        if shown is None:
            continue
        _, wire = shown
        for text in listed:
            at = wire.find(text)
            if text in wanted or at < 0 or not wire[at + len(text) :].strip():
                continue
            if "FirstAnswer" in wire[at:] or "Oslo" in wire[at:] or "Rome" in wire[at:]:
                yield Finding(
                    "stop-inside-answer",
                    "error",
                    f"the files name {text!r} as an end, and the template writes it in the middle of an answer",
                    excerpt(wire, at),
                    "take it out of eos_token_id: the engine stops before the answer",
                )
                return
