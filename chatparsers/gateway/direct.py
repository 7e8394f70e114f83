"""An answer of an engine over HTTP without a gateway: what `Chat.ask` and `Chat.run` do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any
from weakref import WeakKeyDictionary

from ..answers.format import Turn
from ..chat.chat import Chat
from ..errors import warn_user
from ..grammar.budget import MAX_SIZE, MAX_WORK
from .account import Account
from .encode import Encoder
from .engine import End, Engine, Job
from .http_engine import HttpEngine
from .llama_server import LlamaServer
from .ollama import Ollama
from .openai_completions import VLLM, OpenAICompletions, SGLang
from .same_ids import known_ids, same_ids

_OWNERS: dict[str, type[HttpEngine]] = {
    "llamacpp": LlamaServer,
    "vllm": VLLM,
    "sglang": SGLang,
    "library": Ollama,
}
"""The engines by what they say in ``/v1/models`` of who owns a model."""
_started: WeakKeyDictionary[Engine, WeakKeyDictionary[Chat, None]] = WeakKeyDictionary()
_at: dict[str, HttpEngine] = {}


async def generate(
    chat: Chat,
    engine: Engine | str,
    turn: Turn,
    quoted: Callable[[], Sequence[tuple[int, int]]],
    most: int,
    sampling: Mapping[str, Any],
    feed: Callable[[Any], bool],
) -> bool:
    """Gives the pieces of an answer to ``feed``, until it returns True. Whether the answer was cut off.

    ``engine``: or the URL of a server. ``most``: tokens of the answer. Raises `EngineError`.
    """
    if isinstance(engine, str):
        engine = await _engine_at(engine)
    await _start(chat, engine)
    if engine.takes_ids and chat.tokenizer is not None and known_ids(chat):
        prompt: str | list[int] = Encoder(chat.tokenizer).encode(turn.prompt, quoted())
    else:
        prompt = turn.prompt.removeprefix(chat.files.bos_token or "")
    if isinstance(prompt, list):
        room = Account.room(len(prompt), most, engine.context, "messages")
        assert room is not None
        most = room
    grammar = engine.grammar(turn, max_size=MAX_SIZE, max_work=MAX_WORK)
    ends, end, over = frozenset(turn.stop_ids), End(None), False
    async with aclosing(engine.generate(Job(turn, prompt, grammar, most, dict(sampling)))) as batches:
        async for batch in batches:
            end = end if batch.end is None else end.then(batch.end)
            piece = (batch.ids or []) if engine.ids else batch.text
            if piece and not over:
                over = feed(piece) or (engine.ids and not ends.isdisjoint(piece))
    return end.reason == "length" and not over


async def _start(chat: Chat, engine: Engine) -> None:
    """Starts the engine for a chat, once."""
    chats = _started.setdefault(engine, WeakKeyDictionary())
    if chat not in chats:
        for warning in [*await engine.start(chat), *await same_ids(chat, engine)]:
            warn_user(warning)
        chats[chat] = None


async def _engine_at(url: str) -> HttpEngine:
    """The engine at a URL, by what it says of itself."""
    if url not in _at:
        asking = OpenAICompletions(url)
        try:
            data = (await asking.get("/v1/models")).get("data")
        finally:
            await asking.close()
        owners = [str(one.get("owned_by")) for one in data or () if isinstance(one, dict)]
        kind = next((_OWNERS[owner] for owner in owners if owner in _OWNERS), OpenAICompletions)
        _at[url] = kind(url)
    return _at[url]
