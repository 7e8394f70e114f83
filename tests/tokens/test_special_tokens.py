from __future__ import annotations

import pickle
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from chatparsers.tokens import SpecialTokens
from chatparsers.tokens.feed import stop_ids
from chatparsers.tokens.markers import marker_pattern


def id_of(tokenizer: Tokenizer, token: str) -> int:
    found = tokenizer.token_to_id(token)
    assert found is not None
    return found


END, TEXT = "<|im_end|>", "<|endoftext|>"
# A model's configs, and the texts of the tokens that they name: the ends, the beginning, the padding. A text in
# ``*_token_id`` stands for its id.
CONFIGS: list[tuple[dict[str, Any] | None, tuple[str, ...], str | None, str | None]] = [
    ({"eos_token": END, "pad_token": TEXT}, (END,), None, TEXT),
    ({"eos_token": {"content": END, "special": True}, "pad_token": {"content": TEXT}}, (END,), None, TEXT),
    ({"eos_token_id": [END, TEXT], "bos_token_id": TEXT}, (END, TEXT), TEXT, None),
    ({"eos_token_id": END}, (END,), None, None),
    ({"eos_token": END, "eos_token_id": [TEXT, END]}, (END, TEXT), None, None),  # each is named once
    (None, (END, TEXT), None, None),  # the usual names
    ({"eos_token": "<no such token>"}, (), None, None),
    ({"eos_token": ""}, (), None, None),
    ({"eos_token_id": []}, (), None, None),
]


@pytest.mark.parametrize(("config", "eos", "bos", "pad"), CONFIGS)
def test_the_configs_name_the_tokens(
    byte_level: Tokenizer,
    config: dict[str, Any] | None,
    eos: tuple[str, ...],
    bos: str | None,
    pad: str | None,
) -> None:
    def ids(value: Any) -> Any:
        return (
            [id_of(byte_level, one) for one in value] if isinstance(value, list) else id_of(byte_level, value)
        )

    given = config and {key: ids(value) if key.endswith("_id") else value for key, value in config.items()}
    special = SpecialTokens.from_tokenizer(byte_level, given)
    assert tuple(token.text for token in special.eos) == eos
    assert special.eos_ids == {id_of(byte_level, text) for text in eos}
    assert [token and token.text for token in (special.bos, special.pad)] == [bos, pad] or config is None


def test_without_a_config_the_usual_names_are_found(byte_fallback: Tokenizer) -> None:
    special = SpecialTokens.from_tokenizer(byte_fallback)
    assert special.bos is not None and special.bos.text == "<s>"
    assert [token.text for token in special.eos] == ["</s>"]


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
    assert special.ids_of("<think>") == (think.id,)
    ids = special.ids_of("<tool_call>")  # a marker of several tokens
    assert len(ids) > 1 and byte_level.decode(list(ids)) == "<tool_call>"


def test_the_ids_that_end_a_turn(byte_level: Tokenizer) -> None:
    special = SpecialTokens.from_tokenizer(byte_level, {"eos_token": "<|endoftext|>"})
    assert special.end_of_turn(["<|im_end|>", "\n", "<tool_call>", "A"]) == {
        id_of(byte_level, "<|endoftext|>"),
        id_of(byte_level, "<|im_end|>"),
    }
    assert special.end_of_turn([]) == special.eos_ids
    assert pickle.loads(pickle.dumps(special)) == special
    newline = id_of(byte_level, "Ċ")  # an ordinary id may end a turn too
    special = SpecialTokens.from_tokenizer(byte_level, {"eos_token_id": newline})
    assert [(token.id, token.text) for token in special.eos] == [(newline, "\n")]
    assert special.is_special(newline) and not special.should_stream(newline)


@pytest.mark.parametrize("name", [MappingProxyType({"content": TEXT}), {"content": TEXT, (1, 2): None}])
def test_an_end_may_be_named_by_any_mapping(byte_level: Tokenizer, name: Any) -> None:
    assert stop_ids(byte_level, (), {"eos_token": name}, ()) == {id_of(byte_level, TEXT)}


def test_real_tokenizers_name_their_ends(real: Tokenizer) -> None:
    special = SpecialTokens.from_tokenizer(real)
    assert special.eos
    assert not any(special.should_stream(token.id) for token in special.eos)


@given(st.lists(st.text("<ab", max_size=4), max_size=6), st.text("<ab", max_size=8))
def test_of_markers_that_begin_alike_the_longest_counts(markers: list[str], text: str) -> None:
    pattern = marker_pattern(markers)
    for place in range(len(text)):
        here = [marker for marker in markers if marker and text.startswith(marker, place)]
        found = None if pattern is None else pattern.match(text, place)
        assert (found[0] if found else "") == max(here, key=len, default="")
