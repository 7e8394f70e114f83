"""The ids of a tokenizer made from a GGUF are llama.cpp's.

``llama_cpp_words.json`` has what llama.cpp itself made of a few telling texts, for every name of a pre-tokenizer. With
``CHATPARSERS_LLAMA_CPP``, a folder with llama.cpp's sources, its own vocabularies and texts are tried too.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, pre_tokenizers

from chatparsers.tokens import read_model, read_tokenizer
from chatparsers.tokens.gguf_words import PRE_TOKENIZERS

gguf = pytest.importorskip("gguf")

WORDS = json.loads((Path(__file__).parent / "llama_cpp_words.json").read_bytes())
ROWS = {name: row for row in WORDS["rows"] for name in row["pre"]}
LETTERS = sorted(pre_tokenizers.ByteLevel.alphabet())
NORMAL, UNKNOWN, CONTROL, USER = 1, 2, 3, 4
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a GGUF with a vocabulary: its tokens, with the type of each that is not normal."""

    def write(
        model: str,
        tokens: list[str],
        *,
        types: dict[str, int] | None = None,
        name: str = "A model",
        pre: str | None = None,
        merges: list[str] | None = None,
        scores: dict[str, float] | None = None,
        bos: str | None = None,
    ) -> Path:
        writer = gguf.GGUFWriter(tmp_path / "model.gguf", "llama")
        writer.add_name(name)
        writer.add_tokenizer_model(model)
        writer.add_token_list(tokens)
        writer.add_token_types([(types or {}).get(token, NORMAL) for token in tokens])
        if pre is not None:
            writer.add_tokenizer_pre(pre)
        if scores is not None:
            writer.add_token_scores([scores.get(token, -1e3) for token in tokens])
        if merges is not None:
            writer.add_token_merges(merges)
        if bos is not None:
            writer.add_bos_token_id(tokens.index(bos))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.close()
        return tmp_path / "model.gguf"

    return write


def encoded(tokenizer: Tokenizer, text: str) -> list[str]:
    return [tokenizer.id_to_token(id) for id in tokenizer.encode(text, add_special_tokens=False).ids]


@pytest.mark.parametrize("pre", sorted(ROWS))
def test_the_words_are_those_of_llama_cpp(write: Write, pre: str) -> None:
    row = ROWS[pre]
    kind = "gemma4" if pre == "gemma4" else "gpt2"
    vocabulary = [*LETTERS, "▁", "<s>", "ab"]  # no merge makes the last
    path = write(kind, vocabulary, types={"<s>": CONTROL}, pre=pre, merges=[], bos="<s>")
    tokenizer = read_tokenizer(path)
    for text, words in zip(WORDS["texts"], row["words"], strict=True):
        text = text if PRE_TOKENIZERS[pre].byte_letters else text.replace(" ", "▁")
        found = [end - start for _, (start, end) in tokenizer.pre_tokenizer.pre_tokenize_str(text)]
        assert found == [int(word) for word in words.split() if word != "0"], text
    assert encoded(tokenizer, "ab") == (["ab"] if row["ignore_merges"] else ["a", "b"])
    assert tokenizer.encode("a").tokens == (["<s>", "a"] if row["add_bos"] else ["a"])


def test_an_unknown_pre_tokenizer_is_named(write: Write) -> None:
    model = read_model(write("gpt2", LETTERS, pre="brand-new", merges=[]))
    assert model.unknown_pre == "brand-new"
    with pytest.warns(UserWarning, match=r"model\.gguf: the pre-tokenizer 'brand-new' is not known"):
        assert encoded(model.tokenizer, "a1") == ["a", "1"]


CHATS = ["<unk>", "<s>", "</s>"]
# The kind of a vocabulary, its tokens, what more the file says, and a text with its tokens.
CUT: dict[str, tuple[str, list[str], dict[str, Any], str, list[str]]] = {
    "no name means the default": (
        "gpt2",
        [*LETTERS, "12", "123", "23"],
        {"merges": ["1 2", "2 3", "12 3"]},
        "12345",
        ["123", "4", "5"],
    ),
    "a byte without a token parts its neighbours": (
        "gpt2",
        [*(letter for letter in LETTERS if letter != "!"), "ab"],
        {"pre": "bloom", "merges": ["a b"]},
        "ab a(b a!b",
        ["ab", "Ġ", "a", "(", "b", "Ġ", "a", "b"],
    ),
    "a word of Gemma 4 that is the end elsewhere": (
        "gemma4",
        ["▁", *"</s>", "</s>", "<|tool_response>"],
        {"types": {"</s>": CONTROL, "<|tool_response>": USER}, "merges": []},
        "</s><|tool_response>",
        [*"</s>", "<|tool_response>"],
    ),
    "tokens of Phi 3 take the blanks after them": (
        "llama",
        [*CHATS, "<|end|>", "▁", "a", "<0x0A>"],
        {
            "types": {"<unk>": UNKNOWN, "<s>": CONTROL, "</s>": CONTROL, "<|end|>": USER},
            "name": "Phi-3 mini",
            "scores": {},
        },
        "<|end|>\n a<s> a",
        ["<|end|>", "▁", "a", "<s>", "▁", "▁", "a"],
    ),
    # Gemma's runs of blanks: the text has spaces, which no token spells before they become ``▁``.
    "a token that the user defined is merged as well": (
        "llama",
        [*CHATS, "▁", "▁▁", "▁▁▁", "a"],
        {"types": {"▁▁": USER, "▁▁▁": USER}, "scores": {"▁▁": -1.0, "▁▁▁": -2.0}},
        "  a",
        ["▁▁▁", "a"],
    ),
}


@pytest.mark.parametrize("case", CUT)
def test_where_a_text_is_cut(write: Write, case: str) -> None:
    kind, tokens, more, text, cut = CUT[case]
    model = read_model(write(kind, tokens, **more))
    assert model.unknown_pre is None and set(PRE_TOKENIZERS) == set(ROWS)
    assert encoded(model.tokenizer, text) == cut
    if "Phi" in case:
        assert model.tokenizer.encode("a").tokens == ["<s>", "▁", "a"]


def test_tokens_of_known_names_are_cut_out_whatever_their_type(write: Write) -> None:
    names = ["<|im_end|>", "<|fim_prefix|>", "<fim-prefix>", "<|message|>", "<|other|>", "</s>"]
    tokenizer = read_tokenizer(write("gpt2", [*LETTERS, *names], pre="gpt-2", merges=[]))
    assert encoded(tokenizer, "".join(names[:2])) == names[:2]
    assert encoded(tokenizer, "</s>") == ["</s>"]
    assert encoded(tokenizer, "<|message|>") == ["<|message|>"]
    assert encoded(tokenizer, "<fim-prefix>") == list("<fim-prefix>")  # a file has one such token
    assert encoded(tokenizer, "<|other|>") == list("<|other|>")
    added = {token.content: token.special for token in tokenizer.get_added_tokens_decoder().values()}
    assert added == {"<|im_end|>": True, "<|fim_prefix|>": True, "<|message|>": False, "</s>": True}


def vocabularies() -> list[Path]:
    folder = os.environ.get("CHATPARSERS_LLAMA_CPP")
    return sorted(Path(folder, "models").glob("ggml-vocab-*.gguf.inp")) if folder else []


@pytest.mark.parametrize("texts", vocabularies() or [None], ids=lambda path: path and path.name[11:-9])
def test_the_vocabularies_of_llama_cpp(texts: Path | None) -> None:
    if texts is None:
        pytest.skip("no vocabularies of llama.cpp: set CHATPARSERS_LLAMA_CPP to a folder with its models/")
    model = read_model(texts.with_suffix(""))
    if "bert" in texts.name:
        pytest.skip("a vocabulary of an encoder, which is not read")
    assert model.unknown_pre is None
    cases = texts.read_bytes().decode().split("\n__ggml_vocab_test__\n")
    wanted = texts.with_suffix(".out").read_text().split("\n")
    tokenizer: Any = model.tokenizer
    for text, ids in zip(cases, wanted, strict=False):  # the last line is empty
        assert tokenizer.encode(text, add_special_tokens=False).ids == [int(id) for id in ids.split()], text
