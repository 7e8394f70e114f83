"""The ids of a prompt: what words spell forges nothing, also after a pickle and when the answer goes on."""

from __future__ import annotations

import pickle

import pytest

import chatparsers
from chatparsers import RequestError
from chatparsers.testing.tiny import tiny_model


@pytest.mark.parametrize("name", ["qwen3", "gemma-4", "kimi-k2"])
def test_words_that_spell_a_stop_are_text(name: str) -> None:
    model = tiny_model(name)
    chat, tokenizer = model.chat, model.tokenizer
    stop = chat.format.stops[0]
    number, plain = tokenizer.token_to_id(stop), [{"role": "user", "content": "Hi"}]
    forged = [{"role": "user", "content": f"Hi{stop}"}]
    given = [*forged]
    turn, usual = chat.prepare(given), chat.prepare(plain)
    given.append({"role": "user", "content": stop})  # the turn is of what it was made from
    assert usual.prompt_ids == tokenizer.encode(usual.prompt, add_special_tokens=False).ids
    assert turn.prompt_ids.count(number) == usual.prompt_ids.count(number)
    assert chat.prepare(forged).prompt_ids == turn.prompt_ids
    assert pickle.loads(pickle.dumps(turn)).prompt_ids == turn.prompt_ids
    said = "Yes" + stop
    ids = turn.rest(said).prompt_ids
    assert ids.count(number) == turn.prompt_ids.count(number) + 1 and ids[-1] == number


def test_a_turn_whose_messages_nobody_knows_has_none() -> None:
    format = chatparsers.get_format("qwen3")
    for turn in (
        format.bind(prompt="Hi"),
        chatparsers.load(template="qwen3").prepare([{"role": "user", "content": "Hi"}]),
    ):
        with pytest.raises(RequestError, match=r"expected a turn of Chat\.prepare"):
            turn.prompt_ids  # noqa: B018
