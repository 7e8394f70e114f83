"""llama-cpp-python: a tiny GGUF generates under the grammar, lazily too, and the chat handler reads its ids."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from asked import check_asking
from tinies import FORMATS, MESSAGES, RUNS, TOOLS, Table, tiny

import chatparsers

llama_cpp = pytest.importorskip(
    "llama_cpp", reason="llama-cpp-python is not installed: tests/hosts/install llama-cpp-python"
)

from chatparsers.adapters.llama_cpp import ChatHandler, generate, register, to_llama_grammar  # noqa: E402


@pytest.fixture(scope="session")
def llamas(tmp_path_factory: pytest.TempPathFactory) -> Any:
    @cache
    def loaded(name: str) -> Any:
        path = tiny(name).write_gguf(tmp_path_factory.mktemp("gguf") / f"{name}.gguf")
        return llama_cpp.Llama(str(path), n_ctx=4096, n_threads=1, verbose=False, chat_handler=ChatHandler())

    return loaded


def run(llama: Any, turn: Any, seed: int, most: int = 900) -> tuple[chatparsers.Message, list[int]]:
    """Generates and feeds id by id; the message and the ids."""
    llama.set_seed(seed)
    stream, ids = turn.stream(), []
    for id in generate(llama, turn, temp=1.0, top_k=0, top_p=1.0, min_p=0.0):
        ids.append(id)
        stream.feed(id)
        if id in turn.stop_ids or len(ids) == most:
            break
    stream.finish("stop" if ids[-1] in turn.stop_ids else "length")
    return stream.message, ids


@pytest.mark.parametrize("choice", ["required", "auto"])
@pytest.mark.parametrize("name", FORMATS)
def test_every_run_is_complete_valid_and_equal(name: str, choice: str, llamas: Any) -> None:
    llama = llamas(name)
    chat = chatparsers.load(llama.model_path)
    assert chat.format.name == name
    table = Table()
    for seed in range(RUNS):
        turn = chat.prepare(MESSAGES, tools=TOOLS, tool_choice=choice)
        message, ids = run(llama, turn, seed)
        table.add(message, turn.parse(ids), choice == "required")
    table.check(f"llama-cpp-python, {name}, {choice}", RUNS)


def joined(chunks: Iterator[Any]) -> tuple[dict[str, Any], str, int]:
    """The message that a client makes of the chunks, the finish reason, and how many pieces its arguments had."""
    message: dict[str, Any] = {"content": "", "reasoning": "", "tool_calls": []}
    reason, pieces = "", 0
    for chunk in chunks:
        (choice,) = chunk["choices"]
        reason = choice["finish_reason"] or reason
        for key in ("content", "reasoning"):
            message[key] += choice["delta"].get(key) or ""
        for call in choice["delta"].get("tool_calls", ()):
            if "id" in call:
                message["tool_calls"].append({"id": call["id"], **call["function"]})
            else:
                message["tool_calls"][call["index"]]["arguments"] += call["function"]["arguments"]
                pieces += 1
    return message, reason, pieces


@pytest.mark.parametrize("name", FORMATS)
def test_the_chat_completion_is_the_message(name: str, llamas: Any) -> None:
    """Streamed and whole, ``create_chat_completion`` gives what a stream of the same ids gives."""
    llama, sampling = (
        llamas(name),
        {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "repeat_penalty": 1.0},
    )
    for seed in range(3):
        asked = {"tools": TOOLS, "tool_choice": "required", "seed": seed, **sampling}
        whole = llama.create_chat_completion(MESSAGES, **asked)
        streamed, reason, pieces = joined(llama.create_chat_completion(MESSAGES, stream=True, **asked))
        turn = chatparsers.load(llama.model_path).prepare(MESSAGES, tools=TOOLS, tool_choice="required")
        message, ids = run(llama, turn, seed)
        answer = whole["choices"][0]["message"]
        calls = [(call.name, call.arguments) for call in message.tool_calls]
        assert reason == whole["choices"][0]["finish_reason"] == "tool_calls"
        assert (answer["content"] or "", answer.get("reasoning", "")) == (message.content, message.reasoning)
        assert (streamed["content"], streamed["reasoning"]) == (message.content, message.reasoning)
        assert [(c["function"]["name"], c["function"]["arguments"]) for c in answer["tool_calls"]] == calls
        assert [(c["name"], c["arguments"]) for c in streamed["tool_calls"]] == calls
        assert pieces >= len(calls) and len({c["id"] for c in streamed["tool_calls"]}) == len(calls)
        assert whole["usage"]["completion_tokens"] == len(ids)


def test_a_lazy_grammar_begins_at_the_call(llamas: Any) -> None:
    """In ``auto`` the text is free, and a call that begins is kept to the schema."""
    llama = llamas("hermes-2-pro")
    chat = chatparsers.load(llama.model_path)
    calls = 0
    for seed in range(RUNS):
        turn = chat.prepare(MESSAGES, tools=TOOLS)
        assert turn.grammar().lazy
        calls += len(run(llama, turn, seed)[0].tool_calls)
    assert calls, "no run had a call: the trigger was never tried"


def test_requests_that_it_cannot_serve_say_why(llamas: Any) -> None:
    llama = llamas("qwen3")
    with pytest.raises(
        chatparsers.RequestError, match="functions: this handler has no place for it: use tools"
    ):
        llama.create_chat_completion(MESSAGES, functions=[{"name": "f"}])
    with pytest.raises(chatparsers.RequestError, match="less than 4096 tokens"):
        llama.create_chat_completion([{"role": "user", "content": "word " * 9000}])


def test_stops_limits_and_formats(llamas: Any) -> None:
    llama = llamas("qwen3")
    sampling = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "repeat_penalty": 1.0, "seed": 3}
    cut = llama.create_chat_completion(MESSAGES, max_tokens=2, **sampling)["choices"][0]
    assert cut["finish_reason"] == "length"
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    answer = llama.create_chat_completion(
        MESSAGES, response_format={"type": "json_object", "schema": schema}, **sampling
    )["choices"][0]
    assert isinstance(json.loads(answer["message"]["content"])["a"], int)
    own = llama_cpp.LlamaGrammar.from_string('root ::= "abc, " "stop" "def"')
    stopped = llama.create_chat_completion(MESSAGES, grammar=own, stop=["stop"], **sampling)["choices"][0]
    assert (stopped["message"]["content"], stopped["finish_reason"]) == ("abc, ", "stop")


def test_the_registered_format_is_the_handler(llamas: Any) -> None:
    register()
    llama = llama_cpp.Llama(
        llamas("qwen3").model_path, n_ctx=2048, n_threads=1, verbose=False, chat_format="chatparsers"
    )
    answer = llama.create_chat_completion(MESSAGES, tools=TOOLS, tool_choice="required", temperature=1.0)
    assert answer["choices"][0]["message"]["tool_calls"]


def test_no_grammar_stays_none() -> None:
    assert to_llama_grammar(None) is None


def test_asking(llamas: Any) -> None:
    llama = llamas("qwen3")
    check_asking(chatparsers.load(llama.model_path), llama, temperature=1.0, seed=3)


def test_thoughts_take_no_more_than_their_budget(llamas: Any) -> None:
    """The handler steers by a guide; so does ``generate``."""
    llama = llamas("qwen3")
    chat = chatparsers.load(llama.model_path)
    for budget in (0, 3, 17):
        turn = chat.prepare(MESSAGES, tools=TOOLS, tool_choice="required")
        llama.set_seed(budget)
        ids: list[int] = []
        for id in generate(
            llama, turn, guide=turn.guide(thinking_tokens=budget, max_calls=1), temp=1.0, top_k=0
        ):
            ids.append(id)
            if id in turn.stop_ids or len(ids) == 900:
                break
        message = turn.parse(ids, strict=True)
        assert message.complete and len(message.tool_calls) == 1
        thought = sum(r.token_end - r.token_start for r in message.regions if r.kind == "reasoning")
        assert thought <= budget + 3
        handler = ChatHandler(limits={"thinking_tokens": budget, "max_calls": 1})
        answer = handler(llama=llama, messages=MESSAGES, tools=TOOLS, tool_choice="required", seed=budget)
        (choice,) = answer["choices"]
        assert choice["finish_reason"] == "tool_calls" and len(choice["message"]["tool_calls"]) == 1
