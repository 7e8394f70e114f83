"""The real clients rebuild from our frames exactly the message that was read, for every format and chunking."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

import pytest
from making import bytewise

from chatparsers import (
    CallArguments,
    CallEnd,
    CallStart,
    Content,
    Event,
    Format,
    Message,
    Reasoning,
    Region,
    RequestError,
    Turn,
)
from chatparsers.serving import AnthropicMessages, OpenAIChat, OpenAIResponses, Usage, Writer, sse
from chatparsers.testing import TOOLS, chunkings
from chatparsers.testing.wild import broken, samples

Pieces = Iterable[Any]


def written(
    writer: Writer[Any, Any], turn: Turn, pieces: Pieces, reason: Any = None
) -> tuple[str, Message, list[Event]]:
    """The frames of a whole stream, the stream's message, and its events."""
    stream = turn.stream()
    events: list[Event] = []
    frames = [sse(writer.start(7), named=writer.named)]
    for piece in pieces:
        for event in stream.feed(piece):
            events.append(event)
            frames.append(sse(writer.event(event), named=writer.named))
    for event in stream.finish(reason):
        events.append(event)
        frames.append(sse(writer.event(event), named=writer.named))
    usage = Usage.of(stream.message, 7, completion=30)
    frames.append(sse(writer.finish(reason, usage), named=writer.named) + writer.end)
    return "".join(frames), stream.message, events


def wanted(message: Message, events: list[Event]) -> tuple[str, str, list[tuple[str, str]]]:
    assert len([event for event in events if isinstance(event, CallStart)]) == len(message.tool_calls)
    return message.content, message.reasoning, [(call.name, call.arguments) for call in message.tool_calls]


def called(message: Message) -> bool:
    return any(call.complete for call in message.tool_calls)


def chat(client: Any, wire: Any, turn: Turn, pieces: Pieces) -> None:
    writer = OpenAIChat("m", call_id=turn.call_id, include_usage=True)
    wire.stream, message, events = written(writer, turn, pieces)
    wire.whole = writer.text()
    asked: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
    with client.chat.completions.stream(**asked) as stream:
        streamed = stream.get_final_completion()
    whole = client.chat.completions.create(**asked)
    for found in (streamed, whole):
        said = found.choices[0].message
        calls = [(call.function.name, call.function.arguments) for call in said.tool_calls or ()]
        assert (said.content or "", getattr(said, "reasoning", ""), calls) == wanted(message, events)
        assert getattr(said, "reasoning_content", "") == message.reasoning
        assert all(call.id for call in said.tool_calls or ())
        assert found.choices[0].finish_reason == ("tool_calls" if called(message) else "stop")
        assert (found.usage.prompt_tokens, found.usage.completion_tokens) == (7, 30)
    ids = [[call.id for call in found.choices[0].message.tool_calls or ()] for found in (streamed, whole)]
    assert ids[0] == ids[1] and len(set(ids[0])) == len(ids[0])


def responses(client: Any, wire: Any, turn: Turn, pieces: Pieces) -> None:
    writer = OpenAIResponses("m", call_id=turn.call_id)
    wire.stream, message, events = written(writer, turn, pieces)
    wire.whole = writer.text()
    built: dict[int, str] = {}
    with client.responses.stream(model="m", input="Hi") as stream:
        for number, event in enumerate(stream):
            assert event.sequence_number == number
            if event.type.endswith(".delta"):
                built[event.output_index] = built.get(event.output_index, "") + event.delta
        streamed = stream.get_final_response()
    whole = client.responses.create(model="m", input="Hi")
    for found in (streamed, whole):
        content, reasoning, calls = "", "", []
        for index, item in enumerate(found.output):
            if item.type == "message":
                text = item.content[0].text
                content += text
            elif item.type == "reasoning":
                text = item.content[0].text
                reasoning += text
            else:
                text = item.arguments
                calls.append((item.name, text))
            assert built.get(index, "") == text
        assert (content, reasoning, calls) == wanted(message, events)
        assert found.status == "completed" and found.output_text == content
        assert (found.usage.input_tokens, found.usage.output_tokens) == (7, 30)


def messages(client: Any, wire: Any, turn: Turn, pieces: Pieces) -> None:
    writer = AnthropicMessages("m", call_id=turn.call_id)
    wire.stream, message, events = written(writer, turn, pieces)
    wire.whole = writer.text()
    asked: dict[str, Any] = {
        "model": "m",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "Hi"}],
    }
    pieces_of: dict[int, str] = {}
    with client.messages.stream(**asked) as stream:
        for event in stream:
            if event.type == "content_block_delta" and event.delta.type == "input_json_delta":
                pieces_of[event.index] = pieces_of.get(event.index, "") + event.delta.partial_json
        streamed = stream.get_final_message()
    whole = client.messages.create(**asked)
    for found in (streamed, whole):
        text = "".join(block.text for block in found.content if block.type == "text")
        thought = "".join(block.thinking for block in found.content if block.type == "thinking")
        uses = [(index, block) for index, block in enumerate(found.content) if block.type == "tool_use"]
        content, reasoning, calls = wanted(message, events)
        assert (text, thought, [block.name for _, block in uses]) == (
            content,
            reasoning,
            [name for name, _ in calls],
        )
        for (index, block), call in zip(uses, message.tool_calls, strict=True):
            sent = pieces_of.get(index, "")
            assert call.arguments.startswith(sent)
            if call.complete:
                assert sent == call.arguments and block.input == json.loads(call.arguments)
        assert found.stop_reason == ("tool_use" if called(message) else "end_turn")
        assert (found.usage.input_tokens, found.usage.output_tokens) == (7, 30)


APIS: list[Any] = [
    pytest.param("openai", chat, id="chat"),
    pytest.param("openai", responses, id="responses"),
    pytest.param("anthropic", messages, id="messages"),
]


@pytest.mark.parametrize("whole", [True, False], ids=["whole", "broken"])
@pytest.mark.parametrize(("company", "check"), APIS)
def test_clients_rebuild_the_message(
    company: str,
    check: Callable[..., None],
    whole: bool,
    format: Format,
    clients: Callable[[str], Any],
    wire: Any,
    pytestconfig: pytest.Config,
) -> None:
    """Of broken outputs too: a client raises on arguments that cannot be JSON, so they must not reach it as pieces of
    JSON."""
    nightly = pytestconfig.getoption("--nightly")
    most, cuts = (200, 40) if nightly else (2, 1)
    texts = samples(format) if whole else broken(format, most)
    for number, text in enumerate(islice(texts, most)):
        turn = format.bind(tools=TOOLS, prefix="") if whole else format.bind(tools=TOOLS)
        ways = [*chunkings.random_cuts(text, cuts if whole else 1, most=10, seed=number)]
        if whole and nightly:
            ways += [[text], chunkings.characters(text)]
        for pieces in ways:
            check(clients(company), wire, turn, pieces)


@pytest.mark.parametrize(("company", "check"), APIS)
def test_a_repeated_id_is_replaced(
    company: str, check: Callable[..., None], clients: Callable[[str], Any], wire: Any
) -> None:
    """Clients tell calls apart by id; OpenAI's raises if two calls of a response share one."""
    from chatparsers import get_format

    twice = {
        "kimi-k2": "<|tool_calls_section_begin|>"
        + "<|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{}<|tool_call_end|>" * 2
        + "<|tool_calls_section_end|>",
        "mistral-nemo": '[TOOL_CALLS][{"name": "get_weather", "arguments": {}, "id": "abcdefghi"}, '
        '{"name": "get_weather", "arguments": {}, "id": "abcdefghi"}]',
    }
    for name, text in twice.items():
        turn = get_format(name).bind(tools=TOOLS)
        first, second = turn.parse(text).tool_calls
        assert first.id == second.id
        check(clients(company), wire, turn, [text])
        writer = OpenAIChat("m")
        written(writer, turn, [text])
        ids = [call["id"] for call in writer.answer["choices"][0]["message"]["tool_calls"]]
        assert len(set(ids)) == 2 and (name == "mistral-nemo" or ids[0] == first.id)


def test_a_late_id_is_a_generated_one_that_stays(format: Format) -> None:
    """Where the model writes the id after the arguments, the first delta already has one, and no later one differs."""
    turn = format.bind(tools=TOOLS)
    for text in samples(format):
        for writer in (OpenAIChat("m"), OpenAIResponses("m"), AnthropicMessages("m")):
            stream = turn.stream()
            chunks = [c for piece in text for event in stream.feed(piece) for c in writer.event(event)]
            chunks += [c for event in stream.finish() for c in writer.event(event)]
            named = [id for chunk in chunks for id in ids_in(chunk)]
            assert len(set(named)) == len(stream.message.tool_calls)
            assert all(named)


def ids_in(value: Any) -> list[str]:
    """The calls' ids in a chunk, of any API."""
    found: list[str] = []
    if isinstance(value, dict):
        if value.get("type") in ("function", "tool_use"):
            found.append(value["id"])
        elif value.get("type") == "function_call":
            found.append(value["call_id"])
        found += [id for item in value.values() for id in ids_in(item)]
    elif isinstance(value, list):
        found += [id for item in value for id in ids_in(item)]
    return found


def test_the_whole_answer_of_a_message_is_that_of_its_stream(format: Format) -> None:
    for text in samples(format):
        turn = format.bind(tools=TOOLS)
        message = turn.parse(text)
        for kind in (OpenAIChat, OpenAIResponses, AnthropicMessages):
            one, other = (kind("m", id="x", created=1, call_id=turn.call_id) for _ in range(2))
            _, _, events = written(one, turn, [text])
            other.whole(message, None, Usage.of(message, 7, completion=30))
            if [ORDER[type(event)] for event in events] != sorted(ORDER[type(event)] for event in events):
                continue  # the message has its texts joined, and its calls last
            assert shown(one.answer) == shown(other.answer)


ORDER = {Reasoning: 0, Content: 1, CallStart: 2, CallArguments: 2, CallEnd: 2}


def shown(answer: Any) -> Any:
    """Without what is random in both, and without the ids of calls, which may come late."""
    if isinstance(answer, dict):
        return {k: shown(v) for k, v in answer.items() if k not in ("id", "call_id")}
    return [shown(item) for item in answer] if isinstance(answer, list) else answer


def test_length_is_passed_on() -> None:
    from chatparsers import get_format

    turn = get_format("qwen3-coder").bind(tools=TOOLS)
    text = "<tool_call>\n<function=get_weather>\n<parameter=city>\nOs"
    chat = OpenAIChat("m")
    written(chat, turn, [text], "length")
    assert chat.answer["choices"][0]["finish_reason"] == "length"
    answered = OpenAIResponses("m")
    written(answered, turn, [text], "length")
    assert answered.answer["status"] == "incomplete"
    assert answered.answer["incomplete_details"] == {"reason": "max_output_tokens"}
    assert [item["status"] for item in answered.answer["output"]] == ["incomplete"]
    said = AnthropicMessages("m")
    written(said, turn, [text], "length")
    assert said.answer["stop_reason"] == "max_tokens"
    for writer in (chat, answered, said):  # an unknown word is not taken for the end of a whole answer
        with pytest.raises(RequestError, match=r"expected the reason 'stop' or 'length', .* found 'paused'"):
            writer.finish("paused")


@pytest.mark.parametrize(
    "word", ["stop", "eos", "stop_sequence", "tool_calls", "STOP", "abort", "MAX_TOKENS"]
)
def test_an_engines_word_says_whether_an_answer_is_whole(word: str) -> None:
    from chatparsers import get_format

    whole = word not in ("abort", "MAX_TOKENS")
    stream = get_format("qwen3").bind(tools=TOOLS).stream()
    stream.feed("Hi")
    stream.finish(word)
    assert stream.message.complete is whole
    writer = OpenAIChat("m")
    writer.start(0)
    writer.finish(word)
    assert writer.answer["choices"][0]["finish_reason"] == ("stop" if whole else "length")


def test_numbers_are_as_the_model_wrote_them() -> None:
    """But for one that clients read as an infinity."""
    writer = AnthropicMessages("m")
    writer.start()
    writer.event(CallStart(0, "f", None))
    writer.event(CallArguments(0, '{"a": 1e999, "b": 1.10, "c": 12345678901234567890123}'))
    writer.finish()
    assert '"input": {"a": 1.7976931348623157e+308, "b": 1.10, "c": 12345678901234567890123}' in writer.text()


def test_usage_counts_the_tokens_of_regions() -> None:
    from chatparsers import get_format

    tokenizer = bytewise()
    text = "<think>\nHmm.\n</think>\n\nHi."
    turn = get_format("qwen3").bind(tokenizer=tokenizer)
    message = turn.parse(tokenizer.encode(text).ids)
    usage = Usage.of(message, 5)
    assert usage == Usage(5, len(text), len("Hmm."), 0)
    # A token that ends one thought and begins the next is one token.
    spans = [Region("reasoning", 0, 3, 0, 2), Region("markup", 3, 4, 1, 2), Region("reasoning", 4, 9, 1, 4)]
    assert Usage.of(Message(regions=spans)) == Usage(0, 4, 4, 0)
    assert Usage.of(message, 5, completion=3).openai()["total_tokens"] == 8
