"""How llama.cpp cuts a text into words, by the name in ``tokenizer.ggml.pre`` of a GGUF file.

The names, expressions and flags are those of ``src/llama-vocab.cpp`` of llama.cpp (b11434, November 2026); the comment
of a row has the names of its ``LLAMA_VOCAB_PRE_TYPE``. The expressions say what llama.cpp does, which is not always
what a model's tokenizer.json says. The ids of a GGUF differ from those of the tokenizer.json in these places:

- Beyond ASCII llama.cpp does not tell capitals from small letters. For their classes in a tokenizer.json it takes any
  letter (``youtu``, ``tiny_aya``), or any but ``a-z`` or ``A-Z`` (``gpt-4o``, ``tekken``), and then no marks (accents).
- ``kimi-k2`` does not part ``HelloWorld``, and takes no marks into words.
- ``afmoe`` and ``tiny_aya`` leave what is before a number with its first digits.
- ``superbpe`` means the digits of ASCII by ``\\d``. ``(?i:'s)`` does not take ``'ſ``.
- ``bailingmoe`` has greedy quantifiers for possessive ones.

Not here: ``mmbert`` and ``whitespace``, which only encoders have. The flag ``clean_spaces``: llama.cpp
reads it where it writes a whole text from ids, which no stream does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class PreTokenizer:
    """How a text becomes words, within which alone tokens are merged.

    ``expressions``: regular expressions of Oniguruma. Each cuts the pieces that the one before it left: a match is a
    piece, and so is what is between two matches. ``ignore_merges``: a word that is a token is that token, whatever
    the merges say. ``add_bos``: whether a text begins with the token for beginnings, unless the file says otherwise.
    ``byte_letters``: whether tokens spell bytes by GPT-2's letters; else they spell characters, and a space as ``▁``.
    """

    expressions: tuple[str, ...]
    ignore_merges: bool = False
    add_bos: bool = False
    byte_letters: bool = True


def _cased(letters: str) -> str:
    """Words that begin with capitals or end with small letters; only those of ASCII are told apart."""
    upper, lower = rf"[[{letters}]&&[^a-z]]", rf"[[{letters}]&&[^A-Z]]"
    return rf"[^\r\n\p{{L}}\p{{N}}]?(?:{upper}*{lower}+|{upper}+{lower}*)"


_SHORT = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
_WORD = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_MARKED = r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+"
_SIGNS = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
_SIGNS_AND_SLASHES = r" ?[^\s\p{L}\p{N}]+[\r\n/]*"
_BLANKS = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_LLAMA3 = rf"{_SHORT}|{_WORD}|\p{{N}}{{1,3}}|{_SIGNS}|{_BLANKS}"
_QWEN2 = rf"{_SHORT}|{_WORD}|\p{{N}}|{_SIGNS}|{_BLANKS}"
_DEEPSEEK = r"[!-/:-@\[-`{-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+"
_KANJI_AND_KANA = r"[\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+"
_UNSPACED = r"[\x{4E00}-\x{9FA5}\x{0800}-\x{4E00}\x{AC00}-\x{D7FF}&&\S]+"
_NO_PUNCTUATION = r" ?[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{0964}\x{06D4}\x{060C})]+"
_LINES = r"[^\n]+|\n+"
_HAN = (
    r"\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{20000}-\x{2A6DF}\x{2A700}-\x{2B73F}\x{2B740}-\x{2B81F}"
    r"\x{2B820}-\x{2CEAF}\x{2CEB0}-\x{2EBEF}\x{F900}-\x{FAFF}\x{2F800}-\x{2FA1F}"
)
# Groups of three digits, counted from the end of a number. The look ahead is at its beginning alone, so that a long
# number costs no more. In the first expression what is before a number stays with its first group.
_THREES = r"\P{N}*+(?<!\p{N})\p{N}{1,2}(?=(?:\p{N}{3})*+(?!\p{N}))|\P{N}*+\p{N}{3}|\P{N}++"
_ASCII_THREES = r"(?<![0-9])[0-9]{1,2}(?=(?:[0-9]{3})++(?![0-9]))|[0-9]{3}"
_POWERS = "|".join(rf"\s{{{n}}}(?!\S)" for n in ("512", "256", "128", "64", "32", "16", "8", "4", "1,2"))
# Letters that have two cases, in the Unicode of 2018.
_TWO_CASES = (
    "A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-"
    "ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿ"
    "ﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃"
)
_CASED, _CASED_AND_MARKED = _cased(r"\p{L}"), _cased(r"\p{L}\p{M}")
_llama3 = PreTokenizer((_LLAMA3,))

_ROWS: tuple[tuple[str, PreTokenizer], ...] = (
    # DEFAULT; also a file that names none
    ("default", PreTokenizer((r"[\p{P}$+<=>^~|]+", _GPT2, r"\p{N}+", "[0-9][0-9][0-9]"))),
    # LLAMA3
    (
        "llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano",
        replace(_llama3, ignore_merges=True, add_bos=True),
    ),
    # DBRX, SMAUG, CHATGLM4
    ("dbrx smaug-bpe chatglm-bpe", _llama3),
    ("glm4 glm5", replace(_llama3, ignore_merges=True)),
    # JAIS2
    ("jais-2", PreTokenizer((rf"{_SHORT}|{_WORD}|\p{{N}}{{1,3}}|{_SIGNS}|\s*[\r\n]+|{_POWERS}|\s",))),
    # DEEPSEEK_LLM
    (
        "deepseek-llm",
        PreTokenizer(
            (
                r"[\r\n]",
                rf"\s?[{_TWO_CASES}]+",
                r"\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3001}\x{3002}]+",
                r"\s+\z",
                _UNSPACED,
                r"\p{N}+",
            )
        ),
    ),
    # DEEPSEEK_CODER
    ("deepseek-coder", PreTokenizer((r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _UNSPACED, r"\p{N}"))),
    # DEEPSEEK3_LLM, HUNYUAN_DENSE, JOYAI_LLM, HY_V4
    (
        "deepseek-v3 hunyuan-dense joyai-llm hy_v4",
        PreTokenizer((r"\p{N}{1,3}", _KANJI_AND_KANA, rf"{_DEEPSEEK}[\r\n]*|{_BLANKS}")),
    ),
    # SPARK2_5
    (
        "spark2_5",
        PreTokenizer((r"\p{N}{1,3}", _KANJI_AND_KANA, rf"{_DEEPSEEK}|[\r\n]|\s+(?!\S)|\s+", r"\p{N}")),
    ),
    # YOUTU
    (
        "youtu",
        PreTokenizer(
            (
                r"[\x{AC00}-\x{D7A3}\x{3131}-\x{318E}]+"
                r"|[\x{FF01}\x{2026}\x{201C}\x{201D}\x{2018}\x{2019}\x{2014}\x{FF1A}\x{FF1B}\x{FF0C}"
                r"\x{3001}-\x{303F}\x{FE30}-\x{FE4F}]+"
                rf"|[\x{{3105}}-\x{{312F}}]+|{_KANJI_AND_KANA}",
                rf"{_MARKED}{_SHORT}?|\p{{N}}|{_SIGNS_AND_SLASHES}|{_BLANKS}",
            ),
            ignore_merges=True,
        ),
    ),
    # FALCON
    ("falcon", PreTokenizer((r"[\p{P}$+<=>^~|`]+", _GPT2, "[0-9][0-9][0-9]"))),
    # STARCODER, REFACT, COMMAND_R, SMOLLM, CODESHELL, EXAONE, MINERVA, MELLUM2
    (
        "starcoder refact command-r smollm codeshell exaone minerva-7b mellum2",
        PreTokenizer((r"\p{N}", _GPT2)),
    ),
    # GPT2, MPT, OLMO, JAIS, TRILLION, GRANITE_DOCLING
    (
        "gpt-2 phi-2 jina-es jina-de gigachat jina-v2-es jina-v2-de a.x-4.0 mellum modern-bert jina-v1-en "
        "jina-v2-code roberta-bpe exaone4 mpt olmo jais trillion granite-docling",
        PreTokenizer((_GPT2,)),
    ),
    # QWEN2, STABLELM2, HUNYUAN, SOLAR_OPEN, GROK_2
    (
        "qwen2 deepseek-r1-qwen kormo f2llmv2 megrez stablelm2 hunyuan solar-open grok-2",
        PreTokenizer((_QWEN2,)),
    ),
    # QWEN35
    (
        "qwen35",
        PreTokenizer((rf"{_SHORT}|{_MARKED}|\p{{N}}| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_BLANKS}",)),
    ),
    # PORO, BLOOM, GPT3_FINNISH
    ("poro-chat bloom gpt3-finnish", PreTokenizer((_NO_PUNCTUATION,))),
    # VIKING
    ("viking", PreTokenizer((_NO_PUNCTUATION, r"\p{N}"))),
    # TEKKEN
    (
        "tekken",
        PreTokenizer(
            (rf"{_CASED}|\p{{N}}|{_SIGNS_AND_SLASHES}|{_BLANKS}",), ignore_merges=True, add_bos=True
        ),
    ),
    # CHAMELEON
    (
        "chameleon",
        PreTokenizer(
            (
                "<sentinel:[0-9]+>",
                "IMGIMG[A-I]{1,4}Z",
                r"[\t\n]|    |  ",
                r"\p{N}",
                r"[\p{P}!-/:-@\[-`{-~]",
                _GPT2,
            ),
            add_bos=True,
        ),
    ),
    # GPT4O, MINIMAX_M2
    (
        "gpt-4o llama4 kanana2 talkie minimax-m2",
        PreTokenizer((rf"{_CASED}{_SHORT}?|\p{{N}}{{1,3}}|{_SIGNS_AND_SLASHES}|{_BLANKS}",)),
    ),
    # GRANITE_EMB_MULTI
    (
        "granite-embed-multi-97m",
        PreTokenizer(
            (rf"{_CASED_AND_MARKED}{_SHORT}?|\p{{N}}{{1,3}}|{_SIGNS_AND_SLASHES}|{_BLANKS}",),
            ignore_merges=True,
        ),
    ),
    # TINY_AYA; its digits are a function in llama.cpp
    (
        "tiny_aya cohere2moe",
        PreTokenizer((_THREES, rf"{_MARKED}{_SHORT}?|\p{{N}}{{1,3}}|{_SIGNS_AND_SLASHES}|{_BLANKS}")),
    ),
    # KIMI_K2; a function in llama.cpp
    (
        "kimi-k2",
        PreTokenizer(
            (
                rf"[{_HAN}]+|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}&&[^{_HAN}]]+{_SHORT}?"
                rf"|\p{{N}}{{1,3}}|{_SIGNS}|{_BLANKS}",
            )
        ),
    ),
    # SUPERBPE
    ("superbpe", PreTokenizer((r"\p{N}+", _ASCII_THREES))),
    # BAILINGMOE
    (
        "bailingmoe bailingmoe2 llada-moe",
        PreTokenizer((rf"{_SHORT}|{_WORD}|\p{{N}}|{_SIGNS}|\s*[\r\n]|\s+(?!\S)|\s+",)),
    ),
    # SEED_CODER
    ("seed-coder", PreTokenizer((rf"{_SHORT}|{_WORD}|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+|{_BLANKS}",))),
    # UFAKZEKA
    ("ufakzeka", PreTokenizer((rf"{_WORD}|\p{{N}}|{_SIGNS}|{_BLANKS}",))),
    # AFMOE; its digits are a function in llama.cpp
    (
        "afmoe",
        PreTokenizer(
            (
                _THREES,
                r"[\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{8C48}-\x{FAFF}\x{3040}-\x{309F}\x{30A0}-\x{30FF}"
                r"\x{FF65}-\x{FF9F}\x{2F00}-\x{2FDF}\x{0E40}-\x{0E7F}\x{0E80}-\x{0EFF}\x{1780}-\x{17FF}"
                r"\x{1000}-\x{109F}\x{AA60}-\x{AA7F}\x{A9E0}-\x{A9FF}\x{AC00}-\x{D7AF}\x{1100}-\x{11FF}]+",
                rf"{_DEEPSEEK}[\r\n]*|{_BLANKS}",
            )
        ),
    ),
    # LAGUNA
    ("laguna", PreTokenizer((_LINES, _QWEN2))),
    # EXAONE_MOE
    (
        "exaone-moe",
        PreTokenizer(
            (
                rf"{_SHORT}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}\p{{M}}*(?: ?\p{{L}}\p{{M}}*)*"
                rf"|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+",
            )
        ),
    ),
    # GEMMA4
    ("gemma4 granite-embed-multi-311m", PreTokenizer((_LINES,), add_bos=True, byte_letters=False)),
    # SARVAM_MOE
    ("sarvam-moe", PreTokenizer((_LINES,), byte_letters=False)),
    # MINICPM5
    (
        "minicpm5",
        PreTokenizer((r"\p{N}{1,3}", rf"{_SHORT}|{_WORD}|\p{{N}}+|{_SIGNS}|{_BLANKS}"), ignore_merges=True),
    ),
)

PRE_TOKENIZERS: Mapping[str, PreTokenizer] = MappingProxyType(
    {name: pre for names, pre in _ROWS for name in names.split()}
)
"""The pre-tokenizers by the names that files give them."""
