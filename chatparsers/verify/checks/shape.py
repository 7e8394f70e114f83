"""The shape of an answer: what every client needs, whatever the model wrote."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jsonschema

from ..answer import NOT_JSON, AnswerCall
from ..client import TRIES
from ..exchange import Exchange
from ..probes import SENT_BACK, with_short_ids
from ..rows import Blame, Row
from .check import answered, judges


@judges("refused", "error", where=lambda exchange: not exchange.response.inconclusive)
def status(exchange: Exchange) -> Iterator[Row]:
    """A valid request gets an answer, whatever the model wrote. What the template itself refuses, a server may too."""
    response = exchange.response
    if response.ok:
        return
    shown = response.text[:300]
    if response.failed:
        happened = (
            f"status {response.status}" if response.status else "no answer, and the connection is closed"
        )
        what = f"{happened} for a valid request, {response.tries} times"
        proved: Blame = "server" if response.tries >= TRIES else "unknown"
        yield exchange.row("error", what, shown, "an answer", blame=proved)
    else:
        own = (
            exchange.probe.name == SENT_BACK.name
        )  # what it wrote itself, it has to take back, with its own ids
        body = with_short_ids(exchange.probe.body) if own else exchange.probe.body
        blame: Blame = "server" if exchange.subject.prompts(body).bare else "policy"
        what = f"status {response.status} for a valid request"
        yield exchange.row("refused", what, shown, "an answer", blame=blame)


@judges("stream-shape", "error-in-stream", "answer-shape", where=lambda exchange: exchange.said is not None)
def shape(exchange: Exchange) -> Iterator[Row]:
    """Events that a client can read, in an order that it can follow."""
    for fault in exchange.answer.faults:
        yield exchange.row(fault.code, fault.what, fault.shown)


def _called(exchange: Exchange) -> bool:
    return answered(exchange) and bool(exchange.answer.calls)


@judges("arguments-not-text", "arguments-double", "arguments-not-json", where=_called)
def arguments(exchange: Exchange) -> Iterator[Row]:
    """The arguments are the JSON text of an object."""
    for call in exchange.answer.calls:
        value, shown = call.value, [call.name, call.arguments]
        if not isinstance(call.arguments, str) and exchange.api.name != "messages":
            yield exchange.row("arguments-not-text", "the arguments are data, not JSON text", shown)
        elif exchange.cut and value == NOT_JSON:
            continue
        elif value == NOT_JSON:
            blame = _wrote(exchange, call)
            yield exchange.row("arguments-not-json", "the arguments are no JSON", shown, blame=blame)
        elif isinstance(value, str):
            yield exchange.row("arguments-double", "the arguments are JSON in JSON", shown, value)


@judges("arguments-schema", where=lambda exchange: _called(exchange) and not exchange.cut)
def schema(exchange: Exchange) -> Iterator[Row]:
    """The arguments follow the tool's schema. Without a grammar that is up to the model."""
    tools = exchange.probe.tools
    for call in exchange.answer.calls:
        value = call.value
        if call.name not in tools or not isinstance(value, dict):
            continue
        wrong = next(iter(_errors(tools[str(call.name)], value)), None)
        if wrong is not None:
            blame = _wrote(exchange, call)
            yield exchange.row("arguments-schema", wrong[:200], [call.name, value], blame=blame)


def _wrote(exchange: Exchange, call: AnswerCall) -> Blame:
    """Whose fault wrong arguments are: the model's if its own text has them, and the request does not force a call."""
    if exchange.probe.forced:
        return "server"
    if exchange.reading is None:
        return "unknown"
    ours = [(each.name, each.parsed_arguments) for each in exchange.reading.tool_calls]
    return "model" if exchange.broken or (call.name, call.value) in ours else exchange.blame


def _errors(schema: Any, value: Any) -> Iterator[str]:
    validator = jsonschema.Draft202012Validator(schema)
    yield from (f"{error.json_path}: {error.message}" for error in validator.iter_errors(value))


def follows(schema: Any, value: Any) -> str:
    """What is wrong with a value by a schema; "" if nothing is."""
    return next(iter(_errors(schema, value)), "")


@judges("call-ids", where=_called)
def ids(exchange: Exchange) -> Iterator[Row]:
    """Each call has an id of its own, by which its result comes back."""
    found = [call.id for call in exchange.answer.calls]
    if any(not isinstance(id, str) or not id for id in found) or len(set(map(str, found))) < len(found):
        yield exchange.row("call-ids", "ids of calls are missing or equal", found)


@judges("finish-reason", where=answered)
def finish(exchange: Exchange) -> Iterator[Row]:
    """The finish reason says why the answer ended: with calls, at the most tokens, or by itself."""
    said = exchange.answer
    if said.finish is None:
        yield exchange.row("finish-reason", "no finish reason that the API knows", said.reason)
        return
    stopped = bool(said.calls) and said.finish == "stop"
    if stopped and exchange.probe.choice != "named":  # OpenAI says stop after a named one
        yield exchange.row("finish-reason", "there are calls", said.reason, "the reason for calls")
    if not said.calls and said.finish == "calls":
        yield exchange.row("finish-reason", "there is no call", said.reason, "stop")
    if said.finish == "length" or not exchange.full:
        return
    ids, reading = exchange.raw.ids, exchange.reading
    if ids is not None and ids[-1] in exchange.subject.ends | set(exchange.turn.stop_ids):
        return  # it ended by itself at the last token
    proved = ids is not None and reading is not None and not reading.complete
    what = f"the answer has all {exchange.most} tokens that it may have"
    blame: Blame = exchange.blame if proved else "unknown"
    yield exchange.row("finish-reason", what, said.reason, "the reason for a cut", blame=blame)
