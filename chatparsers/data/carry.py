"""What of a message survives a format: it is written, read back and compared, and each difference has a code.

A message that a format has no place for is written in another way, the one that loses least: text and calls apart, one
call after the other, without its reasoning. A difference that no code names raises `Changed`: it is a mistake of ours.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..answers.format import Format
from ..errors import RequestError

_ANY: list[dict[str, Any]] = [{"name": "any"}]
Message = dict[str, Any]


class Changed(Exception):
    """A message came back as another one, and no code of `LOSSES` says how."""


def carry(
    format: Format, message: Mapping[str, Any], tools: Sequence[Mapping[str, Any]] = (), seed: str = ""
) -> tuple[list[Message], set[str]]:
    """An assistant's message as the format carries it, one message or several, and the codes of what is lost.

    Raises `RequestError` if the format has no place for it in any way, and `Changed`.
    """
    refused: Exception | None = None
    for parts, codes in _ways(message):
        try:
            back = [_back(format, part, tools, seed) for part in parts]
            lost = set(codes)
            for part, found in zip(parts, back, strict=True):
                lost |= differences(part, found)
        except RequestError as error:
            refused = refused or error
            continue
        return back, lost
    assert refused is not None
    raise refused


def _ways(message: Mapping[str, Any]) -> Iterator[tuple[list[Message], tuple[str, ...]]]:
    """The ways to write a message, and the codes of what each of them loses: first the ones that lose least."""
    whole = {**message, "content": message.get("content") or ""}
    calls = list(whole.get("tool_calls") or ())
    thought = str(whole.get("reasoning_content") or "")
    if not thought and "reasoning_content" in whole:
        whole.pop("reasoning_content")
    said = {key: value for key, value in whole.items() if key != "tool_calls"}
    bare = {"role": "assistant", "content": ""}
    for without in (False, True) if thought else (False,):
        lost = (("reasoning" if thought.strip() else "empty-reasoning"),) if without else ()
        if without:
            whole = {key: value for key, value in whole.items() if key != "reasoning_content"}
            said = {key: value for key, value in said.items() if key != "reasoning_content"}
        yield [whole], lost
        if calls and (said["content"] or said.get("reasoning_content")):
            yield [said, {**bare, "tool_calls": calls}], (*lost, "order")
        if len(calls) > 1:
            each = [{**bare, "tool_calls": [call]} for call in calls[1:]]
            yield [{**whole, "tool_calls": calls[:1]}, *each], (*lost, "several-calls")
            if said["content"] or said.get("reasoning_content"):
                all_calls = [{**bare, "tool_calls": [call]} for call in calls]
                yield [said, *all_calls], (*lost, "order", "several-calls")


def _back(format: Format, message: Message, tools: Sequence[Mapping[str, Any]], seed: str) -> Message:
    text = format.render(message, tools or None)
    found = format.bind(tools=list(tools) or _ANY, id_seed=seed).parse(text)
    back: Message = {"role": "assistant", "content": found.content}
    if found.reasoning:
        back["reasoning_content"] = found.reasoning
    if found.tool_calls:
        back["tool_calls"] = found.to_openai()["tool_calls"]
    broken = [call for call in found.tool_calls if not call.complete]
    if broken:
        raise Changed(
            f"{format.name}: the call of {broken[0].name} is not read back: {found.diagnostics[:1]}"
        )
    return back


def differences(message: Mapping[str, Any], back: Mapping[str, Any]) -> set[str]:
    """The codes of what ``back`` lacks of ``message``. White space at the edges of a text is not counted. Raises
    `Changed` for a difference that no code names."""
    lost: set[str] = set()
    thought, again = (str(m.get("reasoning_content") or "") for m in (message, back))
    if thought.strip() != again.strip():
        if again.strip():
            raise Changed(f"expected the reasoning {thought!r:.80}, found {again!r:.80}")
        lost.add("reasoning")
    elif thought and not again:
        lost.add("empty-reasoning")
    said, found = (str(m.get("content") or "") for m in (message, back))
    if said.strip() != found.strip():
        raise Changed(f"expected the content {said!r:.80}, found {found!r:.80}")
    calls, read = (list(m.get("tool_calls") or ()) for m in (message, back))
    names, read_names = ([call["function"]["name"] for call in some] for some in (calls, read))
    if names != read_names:
        raise Changed(f"expected calls of {names}, found {read_names}")
    for call, other in zip(calls, read, strict=True):
        if call.get("id") != other.get("id"):
            lost.add("ids")
        lost |= _arguments(call["function"].get("arguments"), other["function"]["arguments"])
    return lost


def _arguments(given: Any, found: str) -> set[str]:
    text = given if isinstance(given, str) else json.dumps(given or {}, ensure_ascii=False)
    if text == found:
        return set()
    try:
        one, other = json.loads(text or "{}"), json.loads(found)
    except ValueError as error:
        raise Changed(f"expected the arguments {text!r:.80}, found {found!r:.80}") from error
    if _same(one, other):
        return {"arguments-respelt"}
    if _same(one, other, null=True):
        return {"null-argument", "arguments-respelt"}
    raise Changed(f"expected the arguments {text!r:.80}, found {found!r:.80}")


def _same(one: Any, other: Any, *, null: bool = False) -> bool:
    """Whether two JSON values are equal; with ``null``, where the first has null the second may have anything."""
    if null and one is None:
        return True
    if isinstance(one, dict) and isinstance(other, dict):
        keys = one.keys() | other.keys()
        missing = object()
        return all(
            (null and one.get(key, missing) is None)
            or (key in one and key in other and _same(one[key], other[key], null=null))
            for key in keys
        )
    if isinstance(one, list) and isinstance(other, list):
        if null and len(one) != len(other):
            one, other = [item for item in one if item is not None], [i for i in other if i is not None]
        return len(one) == len(other) and all(_same(a, b, null=null) for a, b in zip(one, other, strict=True))
    return type(one) is type(other) and bool(one == other)
