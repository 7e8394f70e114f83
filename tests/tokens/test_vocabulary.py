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


@pytest.mark.parametrize("id", [-1, 10**6, 2**32, 2**80])
def test_an_unknown_id_spells_nothing(small: Tokenizer, id: int) -> None:
    assert Vocabulary.of(small).pieces[id] == ""


def test_an_id_may_be_any_integer_type_but_nothing_else(byte_level: Tokenizer) -> None:
    class Scalar:
        """An integer that hashes by identity, like a zero-dimensional tensor."""

        def __index__(self) -> int:
            return number(byte_level, "A")

    pieces = Vocabulary.of(byte_level).pieces
    known: Any = Scalar()
    assert pieces[known] == "A"
    assert known not in pieces
    wrong: Any = "A"
    with pytest.raises(TypeError):
        pieces[wrong]


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
    del tokenizer, vocabulary
    gc.collect()
    assert len(module._cache) == before
    assert pieces[letter] == "A"


@pytest.mark.usefixtures("new_objects_alone")
def test_the_vocabulary_keeps_its_tokenizer(new_byte_level: Callable[[], Tokenizer]) -> None:
    vocabulary = Vocabulary.of(new_byte_level())
    gc.collect()
    assert [vocabulary.text_of(id) for id in vocabulary.encode("<think>")] == ["<think>"]


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


def test_encode_adds_no_special_tokens(qwen3: Tokenizer) -> None:
    vocabulary = Vocabulary.of(qwen3)
    assert vocabulary.encode("<think>hi") == qwen3.encode("<think>hi", add_special_tokens=False).ids


@pytest.mark.parametrize("marker", ["<tool_call>", "[CALL]", "the in", " the", "\n\n", "<think>", "é你"])
def test_ids_of_spell_the_marker_alone(small: Tokenizer, marker: str) -> None:
    vocabulary = Vocabulary.of(small)
    ids = vocabulary.ids_of(marker)
    data = [
        piece.encode() if isinstance(piece, str) else piece
        for piece in map(vocabulary.pieces.__getitem__, ids)
    ]
    assert b"".join(data) == marker.encode()


def test_ids_of_on_real_tokenizers(real: Tokenizer) -> None:
    vocabulary = Vocabulary.of(real)
    for marker in (
        "<tool_call>",
        "[TOOL_CALLS]",
        "<think>\n",
        "<｜DSML｜invoke",
        "<function=",
        "\n</parameter>",
    ):
        assert Detokenizer(vocabulary).decode_all(vocabulary.ids_of(marker)) == marker


@pytest.mark.parametrize(
    "decoder",
    [
        None,
        decoders.WordPiece(prefix="##", cleanup=False),
        decoders.Metaspace(),
        decoders.Sequence([decoders.Metaspace(), decoders.Fuse()]),
        decoders.Sequence([decoders.Replace("##", ""), decoders.Fuse(), decoders.Replace("a", "b")]),
    ],
    ids=["none", "wordpiece", "metaspace", "metaspace-fuse", "replace-after-fuse"],
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


def test_a_decoder_written_in_python_is_measured() -> None:
    class Loud:
        def decode_chain(self, tokens: list[str]) -> list[str]:
            return [token.upper() for token in tokens]

    tokenizer = Tokenizer(models.WordPiece({"ab": 0, "cd": 1}, unk_token="ab"))
    tokenizer.decoder = decoders.Decoder.custom(Loud())
    assert Vocabulary.of(tokenizer).pieces[1] == "CD"


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


def test_the_public_names_are_there() -> None:
    import chatparsers.tokens as tokens

    assert all(hasattr(tokens, name) for name in tokens.__all__)
    assert dir(tokens) == sorted(tokens.__all__)
    with pytest.raises(AttributeError, match="nothing"):
        tokens.nothing  # noqa: B018 - the access is what is tested
