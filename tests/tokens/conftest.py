"""Tokenizers for these tests: two small ones made here, and the real ones if the folder of real data has them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from chatparsers.testing.plugin import tokenizer_loaders

CORPUS = [
    "def answer(question: str) -> dict[str, int]:\n\treturn {'tool_call': 42}  # the weather in Oslo\n",
    "The quick brown fox jumps over the lazy dog; it costs 12,50 € and 1,234.5 more.\n\n",
    "Grüße aus Köln, 你好世界, こんにちは, привет, नमस्ते, 😀👩‍👩‍👧🇳🇴\n",
    '{"name": "get_weather", "arguments": {"city": "Trondheim", "days": 3, "metric": true}}\n',
]
TEXT = "".join(CORPUS) * 3 + "unseen: ظهر ħ 🦜 \x00\x7f\u200d 𝔘 ￿ \ufeff end"

REAL = (
    "qwen3",
    "llama3.1",
    "deepseek-v3x",
    "o200k_harmony",
    "gemma-4",
    "tekken-v13",
    "mistral-spm-v7",
)


def make_byte_level() -> Tokenizer:
    """Byte-level BPE with the added tokens of a Qwen-like model: ``<think>`` is not flagged special."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    tokenizer.add_tokens(
        [
            AddedToken(text, special=False, normalized=False)
            for text in ("<think>", "</think>", "<｜tool▁call｜>", "é!")
        ]
    )
    return tokenizer


def make_byte_fallback() -> Tokenizer:
    """A SentencePiece-like vocabulary: ``▁`` is a space, bytes fall back to ``<0xNN>``, the newline too."""
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁"]
    tokens += [chr(letter) for letter in range(0x21, 0x7F)] + [
        "é",
        "你",
        "th",
        "the",
        "▁the",
        "▁▁",
        "in",
        "\ufffd",
    ]
    merges = [("t", "h"), ("th", "e"), ("▁", "the"), ("▁", "▁"), ("i", "n")]
    vocab = {token: number for number, token in enumerate(tokens)}
    tokenizer = Tokenizer(
        models.BPE(vocab=vocab, merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    )
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in ("[CALL]", "▁▁▁", "<｜a▁b｜>")])
    return tokenizer


@pytest.fixture(scope="session")
def byte_level() -> Tokenizer:
    return make_byte_level()


@pytest.fixture(scope="session")
def byte_fallback() -> Tokenizer:
    return make_byte_fallback()


@pytest.fixture(scope="session")
def new_byte_level() -> Callable[[], Tokenizer]:
    """A fresh tokenizer, for tests that change it or drop it."""
    return make_byte_level


@pytest.fixture(scope="session")
def new_byte_fallback() -> Callable[[], Tokenizer]:
    return make_byte_fallback


@pytest.fixture(scope="session", params=["byte_level", "byte_fallback"])
def small(request: pytest.FixtureRequest) -> Tokenizer:
    tokenizer: Tokenizer = request.getfixturevalue(request.param)
    return tokenizer


@pytest.fixture(scope="session", params=REAL)
def real(request: pytest.FixtureRequest) -> Tokenizer:
    """Each real tokenizer in turn, loaded once in a run."""
    return load_real(request.config, request.param)


@pytest.fixture(scope="session", params=["byte_level", "byte_fallback", *REAL])
def any_tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    """The small ones and the real ones."""
    if request.param in REAL:
        return load_real(request.config, request.param)
    tokenizer: Tokenizer = request.getfixturevalue(request.param)
    return tokenizer


def load_real(config: pytest.Config, name: str) -> Tokenizer:
    loaders = tokenizer_loaders(config)
    if name not in loaders:
        pytest.skip(f"no real tokenizer {name} in the data folder (option --shared)")
    tokenizer: Tokenizer = loaders[name]()
    return tokenizer


@pytest.fixture
def text() -> str:
    return TEXT
