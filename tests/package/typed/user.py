"""What users typically write. Both type checkers must find nothing here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import chatparsers
import chatparsers.formats.qwen3 as qwen3
from chatparsers.answers import Builder, Format, Json, Node, Nodelike, Tool

TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
MESSAGES = [{"role": "user", "content": "Hello"}]


def answer(folder: Path) -> Iterator[str]:
    chat = chatparsers.load(folder, polyfills=["tools"])
    turn = chat.prepare(
        MESSAGES, tools=TOOLS, tool_choice="required", thinking=False, template_kwargs={"a": 1}
    )
    grammar = turn.grammar("lark", token_references=False, max_size=1_000_000)
    if grammar is not None:
        print(str(grammar), [weakened.path for weakened in grammar.weakened], grammar.triggers)
    stream = turn.stream(strict=True)
    for piece in ("He", "llo"):
        for event in stream.feed(piece):
            if isinstance(event, chatparsers.Content):
                yield event.text
            elif isinstance(event, chatparsers.CallStart):
                yield event.name
    stream.finish()
    message: chatparsers.Message = stream.message
    for call in message.tool_calls:
        yield call.name + call.arguments
    print(message.to_openai(), message.diagnostics, turn.stop_ids, turn.stops)


@dataclass
class Person:
    name: str


def ask(chat: chatparsers.Chat, engine: object) -> str:
    cities = chat.ask(engine, "Which cities?", list[str], tries=2)
    first: str = cities[0]
    person: Person = chat.ask(engine, "Who?", Person)
    data = chat.ask(engine, MESSAGES, {"type": "object"})
    ids: list[int] = chat.prepare(MESSAGES).prompt_ids + chat.encode(MESSAGES).input_ids
    return first + person.name + str(data["name"]) + str(ids)


async def ask_later(chat: chatparsers.Chat, engine: object) -> str:
    person = await chat.aask(engine, "Who?", Person)
    return person.name


def talk(chat: chatparsers.Chat) -> str:
    conversation = chat.conversation(MESSAGES, tools=TOOLS, parallel_tool_calls=False, id_seed="a")
    grown = conversation.append({"role": "user", "content": "And now?"})
    return grown.text if not grown.rewritten else conversation.text


def bare(ids: list[int]) -> chatparsers.Message:
    turn = chatparsers.get_format("qwen3").bind(tools=TOOLS, prefix="<think>\n")
    return turn.parse(ids)


def build(p: Builder) -> Node:
    def call(tool: Tool) -> Nodelike:
        return "<call>" + p.name(tool) + "\n" + p.args(tool, Json()) + "</call>"

    return p.body(p.calls(p.each_tool(call), "\n"))


FORMAT = Format(
    name="mine", title="Mine", url="https://example.org", build=build, markers=("<call>",), stops=("</s>",)
)


def names() -> list[str]:
    chatparsers.register(qwen3.FORMAT, replace=True)
    chatparsers.unregister("qwen3")
    return [info.name for info in chatparsers.list_formats()]


def found(source: str) -> str | None:
    try:
        return chatparsers.detect(source).name
    except chatparsers.TemplateError as error:
        return str(error)
