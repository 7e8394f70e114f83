"""The wire of a dataset: the format in which its assistants' texts hold calls and thoughts, found by reading back.

A format is a candidate if a text holds what the format writes before a call or a thought. It explains a text if its
parser reads calls or thoughts there without a mistake, and if its writer gives a text that is read as the same message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ...answers.format import Format
from ...errors import ChatParsersError
from ...registry import get_format, list_formats
from ...streams.message import Message
from .talk import Talk
from .wires import DATASET_WIRES

NONE = "none"
"""The name that stands for texts without calls or thoughts."""

_TAG = re.compile(r"""<[\w:]+(?:=| name=)["']?([\w.-]+)""")
"""The begin of a tag that gives a name."""
_MISTAKES = frozenset(
    {"malformed", "truncated", "stray-marker", "unwanted-call", "markup-in-value", "repeated-argument"}
)


@dataclass(frozen=True)
class Decision:
    """The wire of texts. ``format`` None: none of them holds a call or a thought. ``read``: how many of the marked
    texts each candidate explains, the best first."""

    format: Format | None
    marked: int
    read: tuple[tuple[str, int], ...]


def wire_named(name: str) -> Format | None:
    """The wire of that name: of a dataset, else of a model; None for `NONE`. Raises `UnknownFormat`."""
    if name == NONE:
        return None
    return next((wire for wire in DATASET_WIRES if wire.name == name), None) or get_format(name)


@lru_cache(maxsize=1)
def _openers() -> tuple[tuple[Format, tuple[str, ...], tuple[str, ...]], ...]:
    """Each format with what it writes before a call and before a thought: anywhere, and at the begin of a text only."""
    found = []
    for format in (*DATASET_WIRES, *(info.load() for info in list_formats() if info.origin == "chatparsers")):
        anywhere: set[str] = set()
        begin: set[str] = set()
        call = {"type": "function", "function": {"name": "needle_name", "arguments": '{"a": "b"}'}}
        tools = [{"name": "needle_name", "parameters": {"properties": {"a": {"type": "string"}}}}]
        for message in (
            {"content": "", "tool_calls": [call]},
            {"content": "", "reasoning_content": "needle_name"},
        ):
            try:
                before = format.render(message, tools).partition("needle_name")[0].strip()
            except ChatParsersError:
                continue
            words = before.split()
            if words and re.search(r"[<\[|◁\]]\S{3,}|\w{5,}", words[0]) and not words[0].startswith("[{"):
                anywhere |= {words[0], *(word for word in words if re.match(r"[<◁]\S{4,}", word))}
            elif words:
                begin.add(words[0])
        if format.features.reasoning and anywhere | begin:
            anywhere |= {"<think>"} & set(_thought_openers(format))
        if anywhere or begin:
            found.append((format, tuple(sorted(anywhere)), tuple(sorted(begin))))
    return tuple(found)


def _thought_openers(format: Format) -> Iterable[str]:
    try:
        text = format.render({"content": "x", "reasoning_content": "needle"})
    except ChatParsersError:
        return ()
    return text.partition("needle")[0].split()


def candidates(text: str, tools: Sequence[Mapping[str, Any]] = ()) -> list[Format]:
    """The formats that may have written the text. Calls that only brackets announce count if they name a tool."""
    found = []
    start = text.lstrip()
    for format, anywhere, begin in _openers():
        begun = any(start.startswith(opener) for opener in begin) and _names(start, tools)
        if begun or any(opener in text for opener in anywhere):
            found.append(format)
    return found


def _names(text: str, tools: Sequence[Mapping[str, Any]]) -> bool:
    return any(str(tool.get("function", tool).get("name")) in text[:400] for tool in tools)


def marked(format: Format, text: str) -> bool:
    """Whether the text holds what the format writes before a call or a thought."""
    for known, anywhere, begin in _openers():
        if known.name == format.name:
            start = text.lstrip()
            return any(opener in text for opener in anywhere) or any(map(start.startswith, begin))
    return any(marker in text for marker in format.preserved_tokens)


def decide(texts: Iterable[tuple[str, Sequence[Mapping[str, Any]]]]) -> Decision:
    """The one wire that explains most of the texts, each given with the tools of its row."""
    counts: dict[str, list[int]] = {}
    formats: dict[str, Format] = {}
    total = 0
    for text, tools in texts:
        possible = candidates(text, tools)
        if not possible:
            continue
        total += 1
        for format in possible:
            formats[format.name] = format
            score = _score(format, text, tools)
            known = counts.setdefault(format.name, [0, 0])
            known[0] += score > 0
            known[1] += score
    order = sorted(counts, key=lambda name: (-counts[name][0], -counts[name][1], _rank(name), name))
    best = next((name for name in order if counts[name][0]), None)
    read = tuple((name, counts[name][0]) for name in order)
    return Decision(None if best is None else formats[best], total, read)


def decide_row(texts: Sequence[str], tools: Sequence[Mapping[str, Any]]) -> Format | None:
    """The wire of one row's texts: the first usual one that writes them as they are, else the one that reads most."""
    marked = [(text, possible) for text in texts if (possible := candidates(text, tools))]
    shared = [f for f in marked[0][1] if all(f in possible for _, possible in marked)] if marked else []
    for format in sorted(shared, key=lambda format: (_rank(format.name), format.name)):
        if all(_score(format, text, tools) == 4 for text, _ in marked):
            return format
    return decide((text, tools) for text, _ in marked).format


def _rank(name: str) -> int:
    """Of formats that explain as much, those that many models share are named first."""
    usual = ("hermes-2-pro", "qwen3", "qwen3-coder", "deepseek-r1", "pythonic", "llama-3-x", "mistral-nemo")
    return usual.index(name) if name in usual else len(usual)


def _score(format: Format, text: str, tools: Sequence[Mapping[str, Any]]) -> int:
    """0: not explained; 3: calls or thoughts are read, and are read from what the format writes; 4: it is the text."""
    try:
        turn = format.bind(tools=list(tools) or _any(text), id_seed="")
        message = turn.parse(text)
        if not message.complete or any(d.code in _MISTAKES for d in message.diagnostics):
            return 0
        if not (message.tool_calls or message.reasoning):
            return 0
        written = format.render(_written(message), tools or None)
        same = _compared(turn.parse(written)) == _compared(message)
    except ChatParsersError:
        return 1
    return 1 + 2 * same + (_bare(written) == _bare(text))


def _any(text: str) -> list[dict[str, Any]]:
    """Tools that stand for those that the row does not tell: what its text calls in tags is declared."""
    return [{"name": name} for name in dict.fromkeys(("any", *_TAG.findall(text)))]


def _bare(text: str) -> str:
    return "".join(text.split())


def _compared(message: Message) -> tuple[Any, ...]:
    calls = [(call.name, _bare(call.arguments)) for call in message.tool_calls]
    return message.content.strip(), message.reasoning.strip(), calls


def _written(message: Message) -> dict[str, Any]:
    return {**message.to_openai(), "content": message.content}


def read_answer(talk: Talk, format: Format | None, text: str, reasoning: str = "") -> None:
    """Adds an assistant's text to the conversation, read in the wire. A call that cannot be read stays in the content,
    and the conversation has an error."""
    if format is None or not marked(format, text):
        talk.answer(text, reasoning)
        return
    try:
        turn = format.bind(tools=talk.tools or _any(text), id_seed="")
    except ChatParsersError:
        turn = format.bind(tools=_any(text), id_seed="")
    message = turn.parse(text)
    wrong = next((d for d in message.diagnostics if d.code in _MISTAKES), None)
    if wrong is not None:
        if any(not call.complete for call in message.tool_calls) or not message.tool_calls:
            talk.lose("arguments-not-json") if message.tool_calls else None
            talk.answer(text, reasoning)
            talk.fail(f"the wire {format.name!r}: {wrong}")
            return
        talk.fail(f"the wire {format.name!r}: {wrong}")
    if any(d.code == "mended" for d in message.diagnostics):
        talk.lose("arguments-respelt")
    kinds = [r.kind for r in message.regions if message.text[r.start : r.end].strip() and r.kind != "markup"]
    if "call" in kinds:
        after = kinds[len(kinds) - kinds[::-1].index("call") :]
        if "content" in after:
            talk.lose("text-after-calls")
    if "reasoning" in kinds and kinds != sorted(kinds, key=("reasoning", "content", "call").index):
        talk.lose("order")
    calls = [
        (None if call.id == turn.call_id(call.index) else call.id, call.name, call.arguments)
        for call in message.tool_calls
    ]
    thoughts = "\n".join(filter(None, (reasoning, message.reasoning.strip())))
    talk.answer(message.content.strip() if calls or thoughts else message.content, thoughts, calls)
