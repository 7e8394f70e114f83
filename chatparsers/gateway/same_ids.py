"""Whether the gateway's tokenizer gives a text the ids that the engine's gives it.

The gateway sends prompts as ids. By ids of another tokenizer a model reads words that it hardly knows, and answers with
names that are none. So before the first request both encode a text that tells tokenizers apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher

from ..chat.chat import Chat
from .engine import Engine, EngineError, marker_texts

_TELLING = (
    "We're sure 'TIS Ann'sBox, I'LL say:  two   blanks, a\ttab.\n\nThe 1st of 22, 333, 4444 and 1234567 (3.14%)\r\n\r\n"
    "def getItem_v2(self):\n    return {'a': [1, -2], \"b\": x**2}  # HelloWorld XMLHttp\n\n\n"
    "Grüße, ÀÉ naïve e\u0301 Привет МИР שלום مرحبا नमस्ते ภาษาไทย 你好，世界。かなカナ 한국어 "
    "😀👩\u200d👩\u200d👧🇳🇴 “…” —\u00a0½²   \n  \n end  "
)
_MOST_TOKENS = 16
_MOST_SHOWN, _MOST_IDS = 3, 8


def known_ids(chat: Chat) -> bool:
    """Whether the chat's tokenizer is known to give a text the model's ids."""
    return chat.files.unknown_pre is None or chat.tokenizer is not chat.files.tokenizer


def telling_text(chat: Chat) -> str:
    """Digits, blanks, line breaks, short forms, code, scripts, emoji; and added tokens of this vocabulary."""
    assert chat.tokenizer is not None
    added = [token.content for _, token in sorted(chat.tokenizer.get_added_tokens_decoder().items())]
    markers = [text for text in marker_texts(chat) if text in added]
    half = _MOST_TOKENS // 2
    chosen = dict.fromkeys([*markers[:half], *added[:half], *added[-half:]])
    return _TELLING + "".join(f"{text} a{text}\n" for text in list(chosen)[:_MOST_TOKENS])


async def same_ids(chat: Chat, engine: Engine, *, trusted: bool = False) -> list[str]:
    """What is to be said of the engine's ids. ``trusted``: go on if they are others.

    Raises `EngineError` if they are others, and are not trusted.
    """
    if chat.tokenizer is None or not engine.takes_ids:
        return []  # prompts are text
    if not known_ids(chat) and not trusted:
        pre = chat.files.unknown_pre
        return [
            f"the model's pre-tokenizer {pre!r} is not known: prompts go as text, which the engine encodes"
        ]
    text = telling_text(chat)
    theirs = await engine.tokenize(text)
    if theirs is None:
        return [
            "the engine has no /tokenize: it is not known whether its ids are those of the tokenizer here"
        ]
    ours: list[int] = chat.tokenizer.encode(text, add_special_tokens=False).ids
    if ours == theirs:
        return []
    told = "; ".join(_differences(chat, ours, theirs))
    said = f"the engine's tokenizer gives a text other ids than the one here: {told}"
    if trusted:
        return [said]
    raise EngineError(
        f"{said}. The model would read other words than were sent. Name the files of the model that the engine runs "
        "with --model or --tokenizer; if these are they, --trust-ids goes on"
    )


def _differences(chat: Chat, ours: list[int], theirs: list[int]) -> Iterator[str]:
    assert chat.tokenizer is not None
    changes = SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes()
    places = [change for change in changes if change[0] != "equal"]
    for _, begin, end, their_begin, their_end in places[:_MOST_SHOWN]:
        end = min(end, begin + _MOST_IDS)
        their_end = min(their_end, their_begin + _MOST_IDS)
        piece = chat.tokenizer.decode(ours[begin:end], skip_special_tokens=False)
        yield f"{piece!r} is {ours[begin:end]} here, and {theirs[their_begin:their_end]} there"
    if len(places) > _MOST_SHOWN:
        yield f"and {len(places) - _MOST_SHOWN} more"
