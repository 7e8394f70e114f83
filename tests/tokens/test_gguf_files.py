from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, normalizers

from chatparsers.errors import LoadError
from chatparsers.tokens import Detokenizer, SpecialTokens, Vocabulary, read_model, read_tokenizer
from chatparsers.tokens.gguf_metadata import Metadata

gguf = pytest.importorskip("gguf")

TYPES = {"normal": 1, "unknown": 2, "control": 3, "user": 4, "byte": 6}


def write(path: Path, fill: Callable[[Any], None], order: Any = gguf.GGUFEndian.LITTLE) -> Path:
    writer = gguf.GGUFWriter(path, "llama", endianess=order)
    fill(writer)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def vocabulary_of(tokenizer: Tokenizer) -> tuple[list[str], list[int]]:
    """The tokens in the order of their ids, and their GGUF types."""
    by_id = {id: token for token, id in tokenizer.get_vocab(True).items()}
    added = tokenizer.get_added_tokens_decoder()
    tokens = [by_id.get(id, f"[PAD{id}]") for id in range(max(by_id) + 1)]
    types = []
    for id, token in enumerate(tokens):
        kind = "byte" if token.startswith("<0x") and len(token) == 6 else "normal"
        if id in added:
            kind = "control" if added[id].special else "user"
        types.append(TYPES["unknown" if token == "<unk>" and id in added else kind])
    return tokens, types


def write_byte_level(path: Path, tokenizer: Tokenizer) -> Path:
    tokens, types = vocabulary_of(tokenizer)
    merges = json.loads(tokenizer.to_str())["model"]["merges"]

    def fill(writer: Any) -> None:
        writer.add_name("Qwen9 1B")
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre("gpt-2")
        writer.add_token_list(tokens)
        writer.add_token_types(types)
        writer.add_token_merges([" ".join(merge) for merge in merges])
        writer.add_bos_token_id(tokenizer.token_to_id("<|endoftext|>"))
        writer.add_eos_token_id(tokenizer.token_to_id("<|im_end|>"))
        writer.add_eot_token_id(tokenizer.token_to_id("<|im_end|>"))
        writer.add_eom_token_id(tokenizer.token_to_id("<|im_start|>"))
        writer.add_chat_template(
            [{"name": "default", "template": "{{ a }}"}, {"name": "tool_use", "template": "{{ b }}"}]
        )

    return write(path, fill)


def test_templates_names_and_tokens(tmp_path: Path, byte_level: Tokenizer) -> None:
    model = read_model(write_byte_level(tmp_path / "model.gguf", byte_level))
    end, start = byte_level.token_to_id("<|im_end|>"), byte_level.token_to_id("<|im_start|>")
    assert model.templates == {"default": "{{ a }}", "tool_use": "{{ b }}"}
    assert (model.bos_token, model.eos_token) == ("<|endoftext|>", "<|im_end|>")
    assert model.eos_ids == (end, start)
    assert model.special_tokens["eom_token"] == "<|im_start|>"
    assert model.names == ("Qwen9 1B", "llama", "model")
    assert model.tokenizer is not None
    special = SpecialTokens.from_tokenizer(model.tokenizer, model.special_config)
    assert special.eos_ids == {end, start}
    assert special.bos is not None and special.bos.text == "<|endoftext|>"


def test_a_byte_level_vocabulary_spells_the_same(
    tmp_path: Path, byte_level: Tokenizer, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_byte_level(tmp_path / "model.gguf", byte_level)
    monkeypatch.setitem(sys.modules, "gguf", None)  # the package is not needed
    check(read_tokenizer(path), byte_level, text)


def check(built: Tokenizer, original: Tokenizer, text: str) -> None:
    one, two = Vocabulary.of(built), Vocabulary.of(original)
    assert one.added.keys() == two.added.keys()
    for id in original.get_vocab(True).values():
        assert one.pieces[id] == two.pieces[id]
        assert (id in one.added) == (id in two.added)
        assert id not in one.added or one.added[id] == two.added[id]
    ids = original.encode(text, add_special_tokens=False).ids
    assert built.encode(text, add_special_tokens=False).ids == ids
    detokenizer = Detokenizer(one)
    assert detokenizer.decode_all(ids) + detokenizer.flush() in (text, " " + text)


@pytest.mark.parametrize("with_merges", [False, True])
def test_a_sentence_piece_vocabulary(
    tmp_path: Path, new_byte_fallback: Callable[[], Tokenizer], text: str, with_merges: bool
) -> None:
    """Files of the kind ``llama`` have scores, and put a space before a text; ``gemma4`` has merges, and does not."""
    byte_fallback = new_byte_fallback()
    if with_merges:
        byte_fallback.normalizer = normalizers.Replace(" ", "▁")
    tokens, types = vocabulary_of(byte_fallback)
    order = ["th", "the", "▁the", "▁▁", "in"]

    def fill(writer: Any) -> None:
        writer.add_tokenizer_model("gemma4" if with_merges else "llama")
        writer.add_token_list(tokens)
        writer.add_token_types(types)
        writer.add_token_scores([-float(order.index(token)) if token in order else -1e3 for token in tokens])
        writer.add_unk_token_id(0)
        if with_merges:
            writer.add_token_merges(["t h", "th e", "▁ the", "▁ ▁", "i n"])

    check(read_tokenizer(write(tmp_path / "model.gguf", fill)), byte_fallback, text)


def test_no_space_goes_before_the_text_where_the_file_says_so(
    tmp_path: Path, byte_fallback: Tokenizer
) -> None:
    tokens, types = vocabulary_of(byte_fallback)

    def fill(writer: Any) -> None:
        writer.add_tokenizer_model("llama")
        writer.add_token_list(tokens)
        writer.add_token_types(types)
        writer.add_add_space_prefix(False)

    tokenizer = read_tokenizer(write(tmp_path / "model.gguf", fill))
    assert tokenizer.encode("in", add_special_tokens=False).tokens == ["in"]


def test_an_embedded_tokenizer_is_taken_as_it_is(tmp_path: Path, byte_level: Tokenizer) -> None:
    def fill(writer: Any) -> None:
        writer.add_tokenizer_model("rwkv")
        writer.add_string("tokenizer.huggingface.json", byte_level.to_str())

    assert read_tokenizer(write(tmp_path / "model.gguf", fill)).to_str() == byte_level.to_str()


def test_a_file_without_a_vocabulary(tmp_path: Path) -> None:
    def fill(writer: Any) -> None:
        writer.add_chat_template("{{ a }}")
        writer.add_eos_token_id(7)
        writer.add_bos_token_id(2**32 - 1)  # minus one: none

    path = write(tmp_path / "small.gguf", fill)
    model = read_model(path)
    assert (model.templates, model.tokenizer) == ({"default": "{{ a }}"}, None)
    assert (model.eos_ids, model.eos_token, model.bos_token, model.special_ids) == ((7,), None, None, {})
    assert model.names == ("llama", "small")
    with pytest.raises(LoadError, match=r"small\.gguf: no tokenizer there"):
        read_tokenizer(path)


def add_tokens(writer: Any, *, model: str = "gpt2", **changes: Any) -> None:
    writer.add_tokenizer_model(model)
    writer.add_token_list(["a", "b", "ab"])
    if "types" in changes:
        writer.add_token_types(changes["types"])
    if "merges" in changes:
        writer.add_token_merges(changes["merges"])
    if "eos" in changes:
        writer.add_eos_token_id(changes["eos"])


@pytest.mark.parametrize(
    ("fill", "message"),
    [
        (
            lambda w: add_tokens(w, model="rwkv"),
            r'"tokenizer\.ggml\.model": a .rwkv. vocabulary.*pass the model',
        ),
        (lambda w: add_tokens(w, types=[1]), r'"tokenizer\.ggml\.token_type": expected 3 entries.*found 1'),
        (
            lambda w: add_tokens(w, merges=["ab"]),
            r'"tokenizer\.ggml\.merges\[0\]": expected two tokens with a space',
        ),
        (
            lambda w: add_tokens(w, merges=["a z"]),
            r'"tokenizer\.ggml\.merges": expected merges of the tokens',
        ),
        (
            lambda w: w.add_string("tokenizer.huggingface.json", "{}"),
            r'"tokenizer\.huggingface\.json": expected a tok',
        ),
        (
            lambda w: w.add_string("tokenizer.ggml.eos_token_id", "2"),
            r'"tokenizer\.ggml\.eos_token_id": expected a',
        ),
        (
            lambda w: add_tokens(w, eos=9),
            r'"tokenizer\.ggml\.eos_token_id": .*tokens, which has 3 entries, found 9',
        ),
        (
            lambda w: w.add_uint32("tokenizer.chat_template", 2),
            r'"tokenizer\.chat_template": expected a text, found',
        ),
        (
            lambda w: (w.add_tokenizer_model("gpt2"), w.add_string("tokenizer.ggml.tokens", "a")),
            r'"tokenizer\.ggml\.tokens": expected an array, found a text',
        ),
    ],
)
def test_broken_fields_are_named(tmp_path: Path, fill: Callable[[Any], None], message: str) -> None:
    with pytest.raises(LoadError, match=r"broken\.gguf: field " + message):
        read_tokenizer(write(tmp_path / "broken.gguf", fill))


CUT = r"not a GGUF file, or cut short: .*download it again"


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        *(
            pytest.param(lambda data, keep=keep: data[:keep], CUT, id=f"{keep} bytes")
            for keep in (0, 3, 40, 200)
        ),
        pytest.param(lambda data: b"<html>" * 50, "not a GGUF file", id="another kind"),
        pytest.param(
            lambda data: b"GGUF" + (1).to_bytes(4, "little") + bytes(40),
            r"its version is 1, expected 2 or 3",
            id="from before the first release",
        ),
        pytest.param(
            lambda data: data.replace(b"{{ a }}", b"{{ \xff }}"),
            r'"tokenizer\.chat_template": expected UTF-8, found a broken byte at 3',
            id="a text that is not UTF-8",
        ),
    ],
)
def test_a_broken_file_is_an_error_at_once(
    tmp_path: Path, byte_level: Tokenizer, spoil: Callable[[bytes], bytes], said: str
) -> None:
    path = write_byte_level(tmp_path / "model.gguf", byte_level)
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(LoadError, match=r"model\.gguf: .*" + said):
        read_model(path)


def test_values_of_every_type_and_both_byte_orders(tmp_path: Path) -> None:
    def fill(writer: Any) -> None:
        for kind in ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"):
            getattr(writer, f"add_{kind}")(f"x.{kind}", 7)
        writer.add_float32("x.float32", 0.5)
        writer.add_float64("x.float64", 0.25)
        writer.add_bool("x.bool", True)
        writer.add_array("x.numbers", [1, 2, 3])
        writer.add_array("x.empty", ["a"])
        writer.add_array("x.nested", [[1, 2], [3, 4]])
        writer.add_chat_template("é")

    for order in (gguf.GGUFEndian.LITTLE, gguf.GGUFEndian.BIG):
        metadata = Metadata(write(tmp_path / "values.gguf", fill, order))
        assert {metadata.number(key) for key in metadata if "int" in key} == {7}
        assert metadata.flag("x.bool") is True
        assert metadata.numbers("x.numbers") == [1, 2, 3]
        assert metadata.text("tokenizer.chat_template") == "é"
        assert (metadata.text("x.none"), metadata.number("x.none"), metadata.flag("x.none")) == (
            None,
            None,
            None,
        )
        assert metadata.texts("x.none") == []
        with pytest.raises(LoadError, match=r'"x\.bool": expected a number, found true or false'):
            metadata.number("x.bool")
        with pytest.raises(LoadError, match=r'"x\.numbers\[0\]": expected a text, found a number'):
            metadata.texts("x.numbers")


def test_without_the_tokenizers_package(
    tmp_path: Path, byte_level: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = read_model(write_byte_level(tmp_path / "model.gguf", byte_level))
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    assert model.tokenizer is None
    with pytest.raises(LoadError, match=r"model\.gguf: .*pip install tokenizers"):
        read_tokenizer(tmp_path / "model.gguf")
