from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from chatparsers.tokens import SpecialTokens, Vocabulary
from chatparsers.tokens.markers import marker_pattern


def id_of(tokenizer: Tokenizer, token: str) -> int:
    found = tokenizer.token_to_id(token)
    assert found is not None
    return found


CONFIGS: list[dict[str, Any]] = [
    {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"},
    {"eos_token": {"content": "<|im_end|>", "special": True}, "pad_token": {"content": "<|endoftext|>"}},
]


@pytest.mark.parametrize("config", CONFIGS)
def test_the_config_of_the_tokenizer_names_the_tokens(byte_level: Tokenizer, config: dict[str, Any]) -> None:
    special = SpecialTokens.from_tokenizer(byte_level, config)
    assert [token.text for token in special.eos] == ["<|im_end|>"]
    assert special.pad is not None and special.pad.text == "<|endoftext|>"
    assert special.bos is None


def test_the_config_of_generation_names_ids(byte_level: Tokenizer) -> None:
    end, text = id_of(byte_level, "<|im_end|>"), id_of(byte_level, "<|endoftext|>")
    special = SpecialTokens.from_tokenizer(byte_level, {"eos_token_id": [end, text], "bos_token_id": text})
    assert [token.id for token in special.eos] == [end, text]
    assert special.eos_ids == {end, text}
    assert special.bos is not None and special.bos.id == text
    assert SpecialTokens.from_tokenizer(byte_level, {"eos_token_id": end}).eos_ids == {end}


def test_both_configs_together_name_each_token_once(byte_level: Tokenizer) -> None:
    end, text = id_of(byte_level, "<|im_end|>"), id_of(byte_level, "<|endoftext|>")
    config = {"eos_token": "<|im_end|>", "eos_token_id": [text, end]}
    assert [token.id for token in SpecialTokens.from_tokenizer(byte_level, config).eos] == [end, text]


def test_without_a_config_the_usual_names_are_found(byte_level: Tokenizer, byte_fallback: Tokenizer) -> None:
    special = SpecialTokens.from_tokenizer(byte_level)
    assert [token.text for token in special.eos] == ["<|im_end|>", "<|endoftext|>"]
    special = SpecialTokens.from_tokenizer(byte_fallback)
    assert special.bos is not None and special.bos.text == "<s>"
    assert [token.text for token in special.eos] == ["</s>"]


@pytest.mark.parametrize(
    "config", [{"eos_token": "<no such token>"}, {"eos_token": ""}, {"eos_token_id": []}]
)
def test_a_name_without_a_token_is_no_token(byte_level: Tokenizer, config: dict[str, Any]) -> None:
    assert SpecialTokens.from_tokenizer(byte_level, config).eos == ()


def test_an_ordinary_id_may_end_a_turn(byte_level: Tokenizer) -> None:
    newline = id_of(byte_level, "Ċ")
    special = SpecialTokens.from_tokenizer(byte_level, {"eos_token_id": newline})
    assert [(token.id, token.text) for token in special.eos] == [(newline, "\n")]
    assert special.is_special(newline)
    assert not special.should_stream(newline)


def test_what_is_special_and_what_is_shown(byte_level: Tokenizer) -> None:
    special = SpecialTokens.from_tokenizer(byte_level)
    seen = {
        text: (special.is_special(id_of(byte_level, text)), special.should_stream(id_of(byte_level, text)))
        for text in ("<|im_end|>", "<|im_start|>", "<think>", "A")
    }
    assert seen == {
        "<|im_end|>": (True, False),
        "<|im_start|>": (True, False),
        "<think>": (True, True),
        "A": (False, True),
    }


def test_added_tokens_by_id_and_by_text(byte_level: Tokenizer) -> None:
    special = SpecialTokens.from_tokenizer(byte_level)
    think = special.by_text["<think>"]
    assert special.by_id[think.id] == think
    assert set(special.by_id) == set(byte_level.get_added_tokens_decoder())


def test_a_marker_is_one_id_or_a_sequence(byte_level: Tokenizer) -> None:
    special = SpecialTokens.from_tokenizer(byte_level)
    assert special.ids_of("<think>") == (id_of(byte_level, "<think>"),)
    ids = special.ids_of("<tool_call>")
    assert len(ids) > 1
    assert byte_level.decode(list(ids)) == "<tool_call>"


def test_the_ids_that_end_a_turn(byte_level: Tokenizer) -> None:
    special = SpecialTokens.from_tokenizer(byte_level, {"eos_token": "<|endoftext|>"})
    assert special.end_of_turn(["<|im_end|>", "\n", "<tool_call>", "A"]) == {
        id_of(byte_level, "<|endoftext|>"),
        id_of(byte_level, "<|im_end|>"),
    }
    assert special.end_of_turn([]) == special.eos_ids


def test_special_tokens_are_plain_values(byte_level: Tokenizer) -> None:
    special = SpecialTokens.from_tokenizer(Vocabulary.of(byte_level))
    restored = pickle.loads(pickle.dumps(special))
    assert restored == special
    assert restored.end_of_turn(["<|im_end|>"]) == special.end_of_turn(["<|im_end|>"])


def test_real_tokenizers_name_their_ends(real: Tokenizer) -> None:
    special = SpecialTokens.from_tokenizer(real)
    assert special.eos
    assert not any(special.should_stream(token.id) for token in special.eos)


def test_think_of_qwen3_is_shown(qwen3: Tokenizer) -> None:
    special = SpecialTokens.from_tokenizer(qwen3)
    think = special.by_text["<think>"]
    assert not think.special
    assert special.is_special(think.id) and special.should_stream(think.id)
    assert [token.text for token in special.eos] == ["<|im_end|>", "<|endoftext|>"]


@given(st.lists(st.text("<ab", max_size=4), max_size=6), st.text("<ab", max_size=8))
def test_of_markers_that_begin_alike_the_longest_counts(markers: list[str], text: str) -> None:
    pattern = marker_pattern(markers)
    for place in range(len(text)):
        here = [marker for marker in markers if marker and text.startswith(marker, place)]
        found = None if pattern is None else pattern.match(text, place)
        assert (found[0] if found else "") == max(here, key=len, default="")
