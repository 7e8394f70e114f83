"""Servers with one fault each: our gateway over a good model, with its answers changed on the way out."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from models import Good

from chatparsers.gateway import Job, Settings, create_app

Object: TypeAlias = "dict[str, Any]"
Edit: TypeAlias = Callable[[Object, Object], "Object | list[Object] | None"]
"""Changes a whole answer or an event of a stream. It gets the request too."""


@dataclass(frozen=True)
class Fault:
    """``codes``: any of these rows is right. ``dark``: whether it can be seen without the raw text. ``whole`` and
    ``event`` change what goes out, ``ask`` what comes in, ``prompt`` what the model reads."""

    codes: tuple[str, ...]
    whole: Edit | None = None
    event: Edit | None = None
    ask: Callable[[Object], Object | int] | None = None
    prompt: Callable[[str], str] | None = None
    write: Callable[[str, Job], str] | None = None
    lines: Callable[[str], str] | None = None
    dark: bool = True
    api: str = "chat"


def _calls(data: Object) -> list[Object]:
    choice = (data.get("choices") or [{}])[0]
    part = choice.get("message") or choice.get("delta") or {}
    return part.get("tool_calls") or []


def _each_call(change: Callable[[Object], None]) -> Edit:
    def edit(data: Object, body: Object) -> Object:
        for call in _calls(data):
            change(call)
        return data

    return edit


def _choice(change: Callable[[Object, Object], None]) -> Edit:
    """Changes a choice, given its message or delta."""

    def edit(data: Object, body: Object) -> Object:
        for choice in data.get("choices") or ():
            change(choice, choice.get("message") or choice.get("delta") or {})
        return data

    return edit


def _leaked(choice: Object, part: Object) -> None:
    calls = part.pop("tool_calls", None)
    if calls:
        shown = [
            json.dumps({"name": c["function"]["name"], "arguments": c["function"]["arguments"]})
            for c in calls
        ]
        part["content"] = (part.get("content") or "") + "".join(
            f"<tool_call>\n{each}\n</tool_call>" for each in shown
        )
        choice["finish_reason"] = "stop"


def _as_texts(call: Object) -> None:
    try:
        found = json.loads(call["function"]["arguments"])
    except ValueError:
        return
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in found.items()}
    call["function"]["arguments"] = json.dumps(texts)


def _stopped(choice: Object, part: Object) -> None:
    if choice.get("finish_reason") == "tool_calls":
        choice["finish_reason"] = "stop"


def _unstopped(choice: Object, part: Object) -> None:
    if choice.get("finish_reason") == "length":
        choice["finish_reason"] = "stop"


def _thinking_shown(choice: Object, part: Object) -> None:
    thought = part.pop("reasoning", None) or part.get("reasoning_content")
    part.pop("reasoning_content", None)
    if thought:
        part["content"] = f"<think>\n{thought}\n</think>\n\n" + (part.get("content") or "")


def _no_thought(choice: Object, part: Object) -> None:
    for name in ("reasoning", "reasoning_content"):
        part.pop(name, None)


def _half_thought(choice: Object, part: Object) -> None:
    for name in ("reasoning", "reasoning_content"):
        if part.get(name):
            part[name] = part[name][: len(part[name]) // 2]


def _first_call_alone(choice: Object, part: Object) -> None:
    if part.get("tool_calls"):
        part["tool_calls"] = [call for n, call in enumerate(part["tool_calls"]) if call.get("index", n) == 0]


def _twice(choice: Object, part: Object) -> None:
    if part.get("tool_calls"):
        part["tool_calls"] += [{**copy.deepcopy(part["tool_calls"][0]), "id": "call_again"}]


def _swapped(choice: Object, part: Object) -> None:
    calls = part.get("tool_calls") or []
    if len(calls) == 2:
        first, second = (call["function"] for call in calls)
        first["arguments"], second["arguments"] = second["arguments"], first["arguments"]


def _content(change: Callable[[str], str]) -> Edit:
    def edit(choice: Object, part: Object) -> None:
        if part.get("content"):
            part["content"] = change(part["content"])

    return _choice(edit)


def _end_shown(choice: Object, part: Object) -> None:
    if choice.get("finish_reason") == "stop":
        part["content"] = (part.get("content") or "") + "<|im_end|>"


def _arguments(change: Callable[[Any], Any]) -> Edit:
    def edit(call: Object) -> None:
        if call.get("function", {}).get("arguments"):
            call["function"]["arguments"] = change(call["function"]["arguments"])

    return _each_call(edit)


def _field(name: str, value: Any) -> Edit:
    def edit(call: Object) -> None:
        if name in call:
            call[name] = value

    return _each_call(edit)


def _python(text: str) -> str:
    return text.replace("true", "True").replace('"', "'") if text else text


def _object(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _usage(**counts: Callable[[int], int]) -> Edit:
    def edit(data: Object, body: Object) -> Object:
        for name, change in counts.items():
            if data.get("usage"):
                data["usage"][name] = change(data["usage"][name])
        return data

    return edit


def _called_anyway(data: Object, body: Object) -> Object:
    if body.get("tool_choice") == "none":
        call = {
            "id": "call_x",
            "type": "function",
            "function": {"name": "find_train", "arguments": '{"to": "Bergen"}'},
        }
        data["choices"][0]["message"] = {"role": "assistant", "content": None, "tool_calls": [call]}
        data["choices"][0]["finish_reason"] = "tool_calls"
    return data


def _fenced(data: Object, body: Object) -> Object:
    if body.get("response_format"):
        message = data["choices"][0]["message"]
        message["content"] = f"Here it is:\n```json\n{message['content']}\n```"
    return data


def _stop_kept(data: Object, body: Object) -> Object:
    message = data["choices"][0]["message"]
    if body.get("stop") and message.get("content"):
        message["content"] += body["stop"][0]
    return data


def _names(data: Object, body: Object) -> Object:
    for call in _calls(data):
        if call["function"].get("name"):
            call["function"]["name"] = f"functions.{call['function']['name']}"
    return data


def _named_again() -> Edit:
    known: dict[str, str] = {}

    def edit(data: Object, body: Object) -> Object:
        for call in _calls(data):
            key = f"{data.get('id')}{call.get('index')}"
            known[key] = call["function"].get("name") or known.get(key, "")
            call["function"]["name"] = known[key]
        return data

    return edit


def _ended_twice(data: Object, body: Object) -> list[Object]:
    ended = any(choice.get("finish_reason") for choice in data.get("choices") or ())
    return [data, data] if ended else [data]


def _late(data: Object, body: Object) -> list[Object]:
    if any(choice.get("finish_reason") for choice in data.get("choices") or ()):
        late = copy.deepcopy(data)
        late["choices"][0].update(delta={"content": "!"}, finish_reason=None)
        return [data, late]
    return [data]


def _no_usage(data: Object, body: Object) -> Object | None:
    return None if data.get("usage") and not data.get("choices") else data


def _first_letter_lost(choice: Object, part: Object) -> None:
    if " " in (part.get("content") or ""):
        part["content"] = part["content"].replace(" ", "", 1)


def _unnamed(body: Object) -> Object:
    return {**body, "tool_choice": "auto"} if isinstance(body.get("tool_choice"), dict) else body


def _many(body: Object) -> Object:
    return {name: value for name, value in body.items() if name != "parallel_tool_calls"}


def _other_block(data: Object, body: Object) -> Object:
    return {**data, "index": data["index"] + 1} if data.get("type") == "content_block_start" else data


def _without(kind: str) -> Edit:
    return lambda data, body: None if data.get("type") == kind else data


def _numbered(data: Object, body: Object) -> Object:
    return {**data, "sequence_number": 0}


def _never(text: str, job: Job) -> str:
    """A server that does not enforce a call, with a model that likes to talk."""
    return (
        "It is cold in Bergen." if job.turn.tools and job.turn.options.mode in ("required", "auto") else text
    )


def _second(text: str, job: Job) -> str:
    """A server that does not enforce one call, with a model that likes two."""
    return f"{text}\n{text[text.index('<tool_call>') :]}" if "<tool_call>" in text else text


_NONE = ("call-lost", "tokens-unaccounted", "choice-ignored", "markup-shown")
FAULTS: dict[str, Fault] = {
    # those of the first list of broken servers, written anew
    "calls-leak-as-text": Fault(_NONE, _choice(_leaked)),
    "arguments-twice-json": Fault(("arguments-double",), _arguments(json.dumps)),
    "arguments-all-texts": Fault(("call-differs", "arguments-schema"), _each_call(_as_texts)),
    "finish-stop-with-calls": Fault(("finish-reason",), _choice(_stopped), _choice(_stopped)),
    "thought-in-content": Fault(("reasoning-in-content", "markup-shown"), _choice(_thinking_shown)),
    "thought-dropped": Fault(
        ("reasoning-lost", "tokens-unaccounted", "stream-differs"), _choice(_no_thought)
    ),
    "end-token-shown": Fault(("markup-shown",), _choice(_end_shown), _choice(_end_shown)),
    "second-call-dropped": Fault(
        ("call-lost", "tokens-unaccounted"), _choice(_first_call_alone), _choice(_first_call_alone)
    ),
    "spaces-lost": Fault(
        ("content-differs", "stream-differs"), _content(lambda text: text.replace(" you", "you"))
    ),
    "no-completion-tokens": Fault(
        ("usage-wrong",), _usage(completion_tokens=lambda n: 0), _usage(completion_tokens=lambda n: 0)
    ),
    "required-not-enforced": Fault(("choice-ignored",), write=_never),
    "prompt-has-more": Fault(
        ("prompt-differs", "prompt-count"),
        prompt=lambda text: text.replace("# Tools", "# Tools that you may use"),
    ),
    "braces-lost-in-stream": Fault(
        ("arguments-not-json", "stream-differs"), event=_arguments(lambda text: text.replace("}", ""))
    ),
    "all-calls-index-0": Fault(("stream-differs", "stream-shape", "call-lost"), event=_field("index", 0)),
    "space-lost-in-stream": Fault(("stream-differs", "content-differs"), event=_choice(_first_letter_lost)),
    # twenty more
    "arguments-as-object": Fault(("arguments-not-text",), _arguments(_object)),
    "no-call-ids": Fault(("call-ids",), _field("id", None)),
    "same-call-ids": Fault(("call-ids",), _field("id", "call_0"), _field("id", "call_0")),
    "no-done": Fault(("stream-shape",), lines=lambda text: text.replace("data: [DONE]\n\n", "")),
    "two-finish-reasons": Fault(("stream-shape",), event=_ended_twice),
    "delta-after-finish": Fault(("stream-shape", "stream-differs"), event=_late),
    "name-in-every-delta": Fault(("stream-shape",), event=_named_again()),
    "no-usage-in-stream": Fault(("stream-shape",), event=_no_usage),
    "cut-says-stop": Fault(("finish-reason",), _choice(_unstopped), _choice(_unstopped), dark=False),
    "letters-replaced": Fault(
        ("call-differs", "stream-differs"),
        _arguments(lambda text: text.replace("ü", "?").replace("\\u00fc", "?")),
    ),
    "python-arguments": Fault(("arguments-not-json",), _arguments(_python), _arguments(_python)),
    "call-given-twice": Fault(("call-invented", "stream-differs", "parallel-ignored"), _choice(_twice)),
    "parallel-ignored": Fault(("parallel-ignored",), ask=_many, write=_second),
    "called-under-none": Fault(("choice-ignored",), _called_anyway),
    "json-in-a-fence": Fault(("format-ignored",), _fenced),
    "stop-kept": Fault(("stop-shown",), _stop_kept),
    "fails-for-nested-tools": Fault(("error",), ask=lambda body: 500 if "book_stay" in str(body) else body),
    "refuses-named-choice": Fault(
        ("refused",), ask=lambda body: 400 if isinstance(body.get("tool_choice"), dict) else body
    ),
    "named-tool-forgotten": Fault(
        ("choice-ignored",),
        ask=_unnamed,
        write=lambda text, job: text.replace("read_clock", "find_train").replace("zone", "to"),
    ),
    "tools-left-out": Fault(
        ("tools-not-shown", "prompt-differs", "prompt-count"),
        ask=lambda body: {k: v for k, v in body.items() if k not in ("tools", "tool_choice")},
    ),
    "line-lost-in-prompt": Fault(
        ("prompt-differs", "prompt-count"), prompt=lambda text: text.replace("<|im_end|>\n", "<|im_end|>")
    ),
    "prefixed-names": Fault(("unknown-tool", "call-differs"), _names, _names),
    "arguments-swapped": Fault(("call-differs", "stream-differs"), _choice(_swapped)),
    "half-a-thought": Fault(("reasoning-differs", "stream-differs"), _choice(_half_thought)),
    "prompt-tokens-doubled": Fault(
        ("usage-wrong", "prompt-count"),
        _usage(prompt_tokens=lambda n: 2 * n),
        _usage(prompt_tokens=lambda n: 2 * n),
    ),
    "block-index-jumps": Fault(("stream-shape",), event=_other_block, api="messages"),
    "no-message-stop": Fault(("stream-shape",), event=_without("message_stop"), api="messages"),
    "numbers-stand-still": Fault(("stream-shape",), event=_numbered, api="responses"),
    "deltas-dropped": Fault(
        ("stream-shape",), event=_without("response.function_call_arguments.delta"), api="responses"
    ),
}


class _Edited(Good):
    """A good model behind a broken server: its prompt and its text are changed as the fault says."""

    fault: Fault

    def answer(self, job: Job) -> str:
        text = super().answer(job)
        return self.fault.write(text, job) if self.fault.write is not None else text

    def generate(self, job: Job) -> Any:
        if self.fault.prompt is not None and isinstance(job.prompt, list):
            text = self.fault.prompt(self.tokenizer.decode(job.prompt, skip_special_tokens=False))
            job.prompt[:] = self.tokenizer.encode(text, add_special_tokens=False).ids
        return super().generate(job)


def broken(chat: Any, fault: Fault, *, hidden: bool = False) -> Any:
    """The application with a fault. ``hidden``: it tells no ids and takes no log probabilities, as a provider does."""
    engine = _Edited(chat)
    engine.fault = fault
    inner = create_app(chat, engine, Settings(model="m"))

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await inner(scope, receive, send)
            return
        body = json.loads(await _read(receive))
        if hidden:
            body = {
                name: value for name, value in body.items() if name not in ("return_token_ids", "logprobs")
            }
        asked = fault.ask(dict(body)) if fault.ask is not None else body
        if isinstance(asked, int):
            await _sent(
                send, asked, b'{"error": {"message": "no"}}', [(b"content-type", b"application/json")]
            )
            return
        status, raw, headers = await _answered(inner, scope, asked)
        if status == 200:
            raw = _changed(raw.decode(), fault, body, hidden).encode()
        await _sent(send, status, raw, headers)

    return app


def _changed(text: str, fault: Fault, body: Object, hidden: bool) -> str:
    if text.startswith("{"):
        data = json.loads(text)
        if hidden:
            _hide(data)
        return json.dumps(fault.whole(data, body) if fault.whole is not None else data)
    text = "".join(_events(text, fault, body, hidden))
    return fault.lines(text) if fault.lines is not None else text


def _events(text: str, fault: Fault, body: Object, hidden: bool) -> Iterator[str]:
    for block in text.split("\n\n"):
        head, mark, data = block.rpartition("data: ")
        if not mark or data == "[DONE]":
            yield f"{block}\n\n" if block else ""
            continue
        found = json.loads(data)
        if hidden:
            _hide(found)
        changed = fault.event(found, body) if fault.event is not None else found
        for each in changed if isinstance(changed, list) else [] if changed is None else [changed]:
            yield f"{head}data: {json.dumps(each)}\n\n"


def _hide(data: Object) -> None:
    data.pop("prompt_token_ids", None)
    for choice in data.get("choices") or ():
        choice.pop("token_ids", None)


async def _read(receive: Any) -> bytes:
    raw = bytearray()
    while True:
        message = await receive()
        raw += message.get("body", b"")
        if not message.get("more_body"):
            return bytes(raw)


async def _answered(app: Any, scope: Any, body: Object) -> tuple[int, bytes, list[tuple[bytes, bytes]]]:
    raw, out, head = json.dumps(body).encode(), bytearray(), {}
    given = [{"type": "http.request", "body": raw, "more_body": False}]

    async def receive() -> Any:
        if given:
            return given.pop()
        import asyncio

        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        head.update({k: v for k, v in message.items() if k in ("status", "headers")})
        out.extend(message.get("body", b""))

    kept = [(name, value) for name, value in scope["headers"] if name != b"content-length"]
    length = (b"content-length", str(len(raw)).encode())
    await app({**scope, "headers": [*kept, length]}, receive, send)
    return int(head["status"]), bytes(out), list(head["headers"])


async def _sent(send: Any, status: int, raw: bytes, headers: list[tuple[bytes, bytes]]) -> None:
    kept = [(name, value) for name, value in headers if name.lower() != b"content-length"]
    length = (b"content-length", str(len(raw)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [*kept, length]})
    await send({"type": "http.response.body", "body": raw})
