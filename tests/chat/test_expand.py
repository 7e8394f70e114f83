"""Images in rollouts: the engine's ids in the place of a placeholder are the context of what it sampled."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from making import bytewise

import chatparsers
from chatparsers import RequestError, Rollout

TEMPLATE = """{%- for message in messages %}<|im_start|>{{ message.role }}
{% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}
{%- if part.type == 'image_url' %}<|vision_start|><|image_pad|><|vision_end|>{% else %}{{ part.text }}{% endif %}
{%- endfor %}{% endif %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
MARKS = ("<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|image_pad|>", "<|vision_end|>")
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}


def shown(text: str, *more: Any) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text}, IMAGE, *more]}


@pytest.fixture(scope="module")
def chat() -> chatparsers.Chat:
    return chatparsers.load(TEMPLATE, format="hermes-2-pro", tokenizer=bytewise(*MARKS))


def expanded(rollout: Rollout, size: int) -> list[int]:
    """What an engine makes of the ids: so many pads for each image. The rollout has them too."""
    start, pad, end = map(rollout.turn.tokenizer.token_to_id, MARKS[2:])
    ids = rollout.ids
    for one in reversed(rollout.placeholders):
        assert ids[one.start : one.end] == [start, pad, end] and one.kind == "image_url"
        ids[one.start : one.end] = [start, *[pad] * size, end]
        rollout.expand(one, ids[one.start : one.start + size + 2])
    assert rollout.ids == ids and not rollout.placeholders
    return ids


def say(rollout: Rollout, text: str) -> None:
    rollout.sampled(rollout.turn.tokenizer.encode(f"{text}<|im_end|>").ids, [-0.5] * (len(text) + 1))


def test_the_engines_ids_are_the_context(chat: chatparsers.Chat) -> None:
    rollout = chat.rollout([shown("Look: <|image_pad|>", {"type": "text", "text": "well"}, IMAGE)])
    fork = rollout.fork()
    assert [(one.message, one.part) for one in rollout.placeholders] == [(0, 1), (0, 3)]
    first = expanded(rollout, 5)
    assert len(first) == len(fork.ids) + 2 * 4 and len(fork.placeholders) == 2, "a copy has its own"
    say(rollout, "A cat.")
    rollout.append({"role": "user", "content": "And this?"})
    say(rollout, "No.")
    held = rollout.ids
    rollout.append(shown("Or this?"))
    ids = expanded(rollout, 7)
    assert ids[: len(held)] == held and held[: len(first)] == first and not rollout.breaks
    say(rollout, "A dog.")
    for one in (rollout, pickle.loads(pickle.dumps(rollout)), rollout.fork()):
        (sample,) = one.samples()
        assert sample.ids == one.ids and sample.counted == len("A cat.No.A dog.") + 3
        sizes = [found.end - found.start for found in sample.placeholders]
        assert sizes == [7, 7, 9] and [found.message for found in sample.placeholders] == [0, 0, 4]
        marked = [mask for found in sample.placeholders for mask in sample.loss_mask[found.start : found.end]]
        assert not any(marked) and sample.logprobs[len(first)] == -0.5
        kinds = {sample.kinds[at] for found in sample.placeholders for at in range(found.start, found.end)}
        assert kinds == {chatparsers.Kind.MARKUP}, "what is after them is what it was"
        words = [
            id for id, kind in zip(sample.ids, sample.kinds, strict=True) if kind == chatparsers.Kind.USER
        ]
        assert chat.tokenizer.decode(words) == "Look: <|image_pad|>wellAnd this?Or this?"


@pytest.mark.parametrize("answered", [True, False])
def test_what_is_added_later_takes_nothing_back(chat: chatparsers.Chat, answered: bool) -> None:
    rollout = chat.rollout([shown("Look")])
    expanded(rollout, 5)
    if answered:
        say(rollout, "A cat.")
    wanted = rollout.fork()
    rollout.append(shown("First", IMAGE))
    expanded(rollout, 6)
    rollout.append(shown("Second"))
    assert [(one.message, one.part) for one in rollout.placeholders] == [(2 + answered, 1)]
    expanded(rollout, 7)
    rollout.append({"role": "user", "content": "What is it?"})
    wanted.append(shown("First", IMAGE), shown("Second"), {"role": "user", "content": "What is it?"})
    for one, size in zip(reversed(wanted.placeholders), (7, 6, 6, 5), strict=False):
        start, pad, end = wanted.ids[one.start : one.end]
        wanted.expand(one, [start, *[pad] * size, end])
    assert rollout.ids == wanted.ids and not rollout.placeholders and not rollout.breaks


def test_only_a_placeholder_is_expanded_and_once(chat: chatparsers.Chat) -> None:
    rollout = chat.rollout([shown("Look")])
    (one,) = rollout.placeholders
    with pytest.raises(RequestError, match=r"expand: expected one of Rollout\.placeholders"):
        rollout.expand(one._replace(start=one.start + 1), [1])
    rollout.expand(one, [1, 2])
    with pytest.raises(RequestError, match="expand"):
        rollout.expand(one, [1, 2])
    rebased = rollout.rebased([shown("Look again")])
    assert len(rebased.placeholders) == 1, "the template's text is encoded anew"
