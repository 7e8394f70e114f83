from __future__ import annotations

import copy
import gc
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models

from chatparsers.errors import RequestError
from chatparsers.tokens import Detokenizer, Vocabulary
from chatparsers.tokens import vocabulary as module


def number(tokenizer: Tokenizer, token: str) -> int:
    found = tokenizer.token_to_id(token)
    assert found is not None
    return found


def test_added_tokens_are_in_the_table_whatever_their_flag(byte_level: Tokenizer) -> None:
    vocabulary = Vocabulary.of(byte_level)
    think, end = number(byte_level, "<think>"), number(byte_level, "<|im_end|>")
    assert vocabulary.id_of("<think>") == think
    assert (vocabulary.added[think].text, vocabulary.added[think].special) == ("<think>", False)
    assert vocabulary.added[end].special
    assert vocabulary.id_of("the") is None
    assert vocabulary.id_of("<thin") is None


# The byte alphabet does not respell the letters of an added token, and its ``▁`` stays.
PIECES: dict[str, dict[str, str | bytes]] = {
    "byte_level": {
        "A": "A",
        "Ġ": " ",
        "Ċ": "\n",
        "ð": b"\xf0",  # half a character
        "ÿ": b"\xff",
        "é!": "é!",
        "<｜tool▁call｜>": "<｜tool▁call｜>",
    },
    "byte_fallback": {
        "<0x0A>": "\n",
        "<0xE2>": b"\xe2",
        "▁the": " the",
        "\ufffd": "\ufffd",
        "<｜a▁b｜>": "<｜a▁b｜>",
        "▁▁▁": "   ",
    },
    "measured": {"<0xE2>": b"\xe2", "▁the": " the"},
}


@pytest.mark.parametrize("name", PIECES)
def test_a_piece_is_text_for_whole_characters_and_bytes_else(
    name: str, request: pytest.FixtureRequest, new_byte_fallback: Callable[[], Tokenizer]
) -> None:
    if name == "measured":  # of such a chain of decoders nothing is known
        tokenizer = new_byte_fallback()
        tokenizer.decoder = decoders.Sequence(
            [decoders.ByteFallback(), decoders.Fuse(), decoders.Replace("▁", " ")]
        )
    else:
        tokenizer = request.getfixturevalue(name)
    pieces = Vocabulary.of(tokenizer).pieces
    assert {token: pieces[number(tokenizer, token)] for token in PIECES[name]} == PIECES[name]


def test_every_byte_has_its_character(byte_level: Tokenizer) -> None:
    pieces = Vocabulary.of(byte_level).pieces
    single = [pieces[id] for token, id in byte_level.get_vocab(False).items() if len(token) == 1]
    data = [piece.encode() if isinstance(piece, str) else piece for piece in single]
    assert sorted(data) == [bytes([byte]) for byte in range(256)]


def test_an_id_may_be_any_integer_and_an_unknown_one_spells_nothing(byte_level: Tokenizer) -> None:
    class Scalar:
        """An integer that hashes by identity, like a zero-dimensional tensor."""

        def __index__(self) -> int:
            return number(byte_level, "A")

    pieces = Vocabulary.of(byte_level).pieces
    known: Any = Scalar()
    assert pieces[known] == "A"
    assert known not in pieces
    for wrong in ("A", 1.5):
        with pytest.raises(TypeError):
            pieces[wrong]  # type: ignore[index]
        with pytest.raises(TypeError):
            Detokenizer(Vocabulary.of(byte_level)).decode(wrong)  # type: ignore[arg-type]
    assert [pieces[unknown] for unknown in (-1, 10**6, 2**32, 2**80)] == [""] * 4


def test_one_vocabulary_for_a_tokenizer(byte_level: Tokenizer) -> None:
    vocabulary = Vocabulary.of(byte_level)
    assert Vocabulary.of(byte_level) is vocabulary
    assert Vocabulary.of(vocabulary) is vocabulary
    assert copy.deepcopy(vocabulary) is vocabulary
    pieces = vocabulary.pieces
    del vocabulary
    assert Vocabulary.of(byte_level).pieces is pieces


@pytest.fixture
def new_objects_alone() -> None:
    """A pass of the collector looks at what is made from here on."""
    gc.collect(0)
    gc.freeze()


@pytest.mark.usefixtures("new_objects_alone")
def test_the_cache_keeps_no_tokenizer_alive(new_byte_level: Callable[[], Tokenizer]) -> None:
    before = len(module._cache)
    tokenizer = new_byte_level()
    vocabulary = Vocabulary.of(tokenizer)
    pieces = vocabulary.pieces
    letter = number(tokenizer, "A")
    assert len(module._cache) == before + 1
    del tokenizer
    gc.collect()  # the vocabulary keeps its tokenizer, and nothing keeps both
    assert [vocabulary.text_of(id) for id in vocabulary.encode("<think>")] == ["<think>"]
    del vocabulary
    gc.collect()
    assert len(module._cache) == before
    assert pieces[letter] == "A"


def test_tokens_added_later_are_seen(new_byte_level: Callable[[], Tokenizer]) -> None:
    tokenizer = new_byte_level()
    for text in ("<late>", "<later>"):
        assert Vocabulary.of(tokenizer).id_of(text) is None
        tokenizer.add_tokens([AddedToken(text, special=False)])
        assert Vocabulary.of(tokenizer).id_of(text) == number(tokenizer, text)


def test_a_wrapper_of_a_tokenizer_will_do(byte_level: Tokenizer) -> None:
    class Fast:
        backend_tokenizer = byte_level

    class Proxy:
        __slots__ = ()

        def __getattr__(self, name: str) -> Any:
            if name == "backend_tokenizer":
                raise AttributeError(name)
            return getattr(byte_level, name)

    wrapped: Any = Fast()
    assert Vocabulary.of(wrapped) is Vocabulary.of(byte_level)
    assert Vocabulary.of(Proxy()).id_of("<think>") == number(byte_level, "<think>")


MARKERS = ["<tool_call>", "[CALL]", "[TOOL_CALLS]", "the in", " the", "\n\n", "<think>", "<think>\n", "é你"]
MARKERS += ["<｜DSML｜invoke", "<function=", "\n</parameter>"]


def test_ids_of_spell_the_marker_alone(any_tokenizer: Tokenizer) -> None:
    vocabulary = Vocabulary.of(any_tokenizer)
    for marker in MARKERS:
        assert Detokenizer(vocabulary).decode_all(vocabulary.ids_of(marker)) == marker
    said = any_tokenizer.encode("<think>hi", add_special_tokens=False).ids
    assert vocabulary.encode("<think>hi") == said


class Loud:
    """A decoder that is written in Python."""

    def decode_chain(self, tokens: list[str]) -> list[str]:
        return [token.upper() for token in tokens]


@pytest.mark.parametrize(
    "decoder",
    [
        None,
        decoders.Decoder.custom(Loud()),
        decoders.WordPiece(prefix="##", cleanup=False),
        decoders.Metaspace(),
        decoders.Sequence([decoders.Metaspace(), decoders.Fuse()]),
        decoders.Sequence([decoders.Replace("##", ""), decoders.Fuse(), decoders.Replace("a", "b")]),
    ],
    ids=["none", "in Python", "wordpiece", "metaspace", "metaspace-fuse", "replace-after-fuse"],
)
def test_other_decoders_spell_what_they_add_behind_a_token(decoder: Any) -> None:
    tokens = ["[UNK]", "play", "##ing", "▁games", "a", ",", "##s"]
    tokenizer = Tokenizer(models.WordPiece({token: id for id, token in enumerate(tokens)}, unk_token="[UNK]"))
    if decoder is not None:
        tokenizer.decoder = decoder
    pieces = Vocabulary.of(tokenizer).pieces
    for ids in ([1, 2, 3, 4, 5, 6], [1, 4, 4, 2, 6, 3], [1]):
        spelt = "".join(str(pieces[id]) for id in ids)
        assert spelt.removeprefix(" ") == tokenizer.decode(ids, skip_special_tokens=False)


@pytest.mark.nightly
def test_a_pickle_knows_every_id_without_the_tokenizer(small: Tokenizer) -> None:
    vocabulary = Vocabulary.of(small)
    data = pickle.dumps(vocabulary)
    assert pickle.loads(data) is vocabulary
    script = (
        "import pickle, sys\n"
        "vocabulary = pickle.loads(sys.stdin.buffer.read())\n"
        "assert 'tokenizers' not in sys.modules\n"
        "assert vocabulary is pickle.loads(pickle.dumps(vocabulary))\n"
        "sys.stdout.buffer.write(pickle.dumps((dict(vocabulary.pieces), dict(vocabulary.added))))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], input=data, capture_output=True, check=True)
    pieces, added = pickle.loads(done.stdout)
    assert pieces == {id: vocabulary.pieces[id] for id in small.get_vocab(True).values()}
    assert added == dict(vocabulary.added)


@pytest.mark.usefixtures("new_objects_alone")
def test_an_unpickled_vocabulary_cannot_encode_and_says_so(
    new_byte_fallback: Callable[[], Tokenizer],
) -> None:
    vocabulary = Vocabulary.of(new_byte_fallback())
    data = pickle.dumps(vocabulary)
    marker = vocabulary.id_of("[CALL]")
    del vocabulary
    gc.collect()
    restored: Vocabulary = pickle.loads(data)
    assert restored.ids_of("[CALL]") == (marker,)
    assert restored.pieces[10**6] == ""
    with pytest.raises(RequestError, match=r"unpickled without its tokenizer.*Vocabulary\.of"):
        restored.encode("text")
