from __future__ import annotations

import inspect
import pickle
import random
from argparse import ArgumentParser

import pytest
from tokenizers import Tokenizer
from tokenizers.decoders import DecodeStream

from chatparsers.tokens import Detokenizer, Vocabulary


def decode(tokenizer: Tokenizer, ids: list[int]) -> str:
    """The text of ``ids``, through a Detokenizer, one at a time."""
    detokenizer = Detokenizer(Vocabulary.of(tokenizer))
    text = "".join([detokenizer.decode(id) for id in ids]) + detokenizer.flush()
    assert detokenizer.pending == 0
    return text


def same(text: str, whole: str) -> bool:
    """Whether ``text`` is ``whole``, with or without a first space that the tokenizer strips."""
    return text in (whole, " " + whole)


def fallback(tokenizer: Tokenizer, data: bytes) -> list[int]:
    ids = [tokenizer.token_to_id(f"<0x{byte:02X}>") for byte in data]
    return [id for id in ids if id is not None]


def broken_in_part(tokenizer: Tokenizer, ids: list[int]) -> bool:
    """Whether a run of byte-fallback ids is partly broken. Then ``decode`` replaces the whole run."""
    run = b""
    for id in [*ids, None]:
        token = tokenizer.id_to_token(id) if id is not None else None
        if token is not None and len(token) == 6 and token.startswith("<0x"):
            run += bytes.fromhex(token[3:5])
        elif run:
            text = run.decode("utf-8", "replace")
            if "\ufffd" in text and text.strip("\ufffd"):
                return True
            run = b""
    return False


def test_text_comes_back(any_tokenizer: Tokenizer, text: str) -> None:
    """Of the first and the last 20,000 ids of a long text."""
    source = inspect.getsource(inspect.getmodule(ArgumentParser) or inspect)
    ids = any_tokenizer.encode(source + text * 30, add_special_tokens=False).ids
    assert len(ids) >= 20_000
    for part in (ids[:20_000], ids[-20_000:]):
        assert same(decode(any_tokenizer, part), any_tokenizer.decode(part, skip_special_tokens=False))


def test_random_ids(any_tokenizer: Tokenizer) -> None:
    """Nothing raises, and the text is that of ``decode``, also for unknown ids and broken bytes."""
    chance = random.Random(7)
    size = any_tokenizer.get_vocab_size(True) + 20
    skip = {any_tokenizer.token_to_id(token) for token in ("é!", "▁▁▁", "<｜a▁b｜>")}
    for _ in range(400 if size < 1_000 else 150):
        ids = [chance.randrange(size) for _ in range(60)]
        ids = [id for id in ids if id not in skip]  # here a token's own text is better than that of decode
        text = decode(any_tokenizer, ids)
        if not broken_in_part(any_tokenizer, ids):
            assert same(text, any_tokenizer.decode(ids, skip_special_tokens=False))


def test_a_split_emoji_is_held_until_it_is_whole_and_never_lost(byte_level: Tokenizer) -> None:
    detokenizer = Detokenizer(Vocabulary.of(byte_level))
    ids = byte_level.encode("🦜", add_special_tokens=False).ids
    assert len(ids) > 1
    given = []
    for place, id in enumerate(ids):
        given.append(detokenizer.decode(id))
        assert (detokenizer.pending > 0) == (place < len(ids) - 1)
    assert given == [""] * (len(ids) - 1) + ["🦜"]
    assert detokenizer.flush() == ""
    assert detokenizer.decode_all(ids[:-1]) == "" and detokenizer.pending in (1, 2, 3)
    assert detokenizer.flush() == byte_level.decode(ids[:-1]) == "\ufffd" and detokenizer.flush() == ""
    marked = [*ids[:-1], byte_level.token_to_id("<think>")]  # what is held comes before a marker
    assert [detokenizer.decode(id) for id in marked][-1] == "\ufffd<think>"


def test_split_emoji_come_back(any_tokenizer: Tokenizer) -> None:
    text = "a🦜👩🏽‍🚀🇳🇴\U0001fae8b"
    ids = any_tokenizer.encode(text, add_special_tokens=False).ids
    assert same(decode(any_tokenizer, ids), text)
    ids = any_tokenizer.encode("🦜", add_special_tokens=False).ids
    ids.insert(-1, 10**6)  # an unknown id does not break it
    assert same(decode(any_tokenizer, ids), "🦜")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\xe2\x82", "\ufffd\ufffd"),
        (b"\xf0\x9f\x98", "\ufffd\ufffd\ufffd"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b"\xed\xa0\x80", "\ufffd\ufffd\ufffd"),
        (b"\xe2\x82\xac", "€"),
        ("\ufffd".encode(), "\ufffd"),
    ],
)
def test_byte_fallback_replaces_each_broken_byte(byte_fallback: Tokenizer, data: bytes, text: str) -> None:
    ids = fallback(byte_fallback, data)
    assert decode(byte_fallback, ids) == byte_fallback.decode(ids) == text


def test_the_trap_of_a_broken_byte_after_a_newline(byte_fallback: Tokenizer) -> None:
    """DecodeStream raises here and at every later step: it returned the newline, and then took it back."""
    ids = [*fallback(byte_fallback, b"\n\xe2"), *byte_fallback.encode("the", add_special_tokens=False).ids]
    stream = DecodeStream([], False)
    with pytest.raises(Exception, match="Invalid prefix"):
        for id in ids:
            stream.step(byte_fallback, id)
    assert decode(byte_fallback, ids) == "\n\ufffd the"


def test_a_copy_goes_its_own_way(byte_level: Tokenizer) -> None:
    first, *rest = byte_level.encode("é", add_special_tokens=False).ids
    one = Detokenizer(Vocabulary.of(byte_level))
    assert one.decode(first) == ""
    two = one.copy()
    assert one.flush() == "\ufffd"
    assert two.decode_all(rest) == "é"
    assert (one.pending, two.pending) == (0, 0)


def test_a_pickle_goes_on_where_it_was(small: Tokenizer, text: str) -> None:
    ids = small.encode(text, add_special_tokens=False).ids
    detokenizer = Detokenizer(Vocabulary.of(small))
    given = ""
    for place, id in enumerate(ids):
        given += detokenizer.decode(id)
        if place % 97 == 0 or detokenizer.pending:
            detokenizer = pickle.loads(pickle.dumps(detokenizer))
    assert same(given + detokenizer.flush(), small.decode(ids, skip_special_tokens=False))
