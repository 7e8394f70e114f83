"""A tiny model that knows nothing, in files that real hosts load: to try an adapter or a server without a download.

    model = tiny_model("qwen3")
    model.write_gguf("tiny.gguf")  # llama.cpp; needs gguf
    model.write_folder("tiny/")  # transformers, mlx-lm, vLLM, SGLang; needs safetensors

It has the shape of a real model: a byte-level vocabulary with merges, the format's markers and ends of turn as added
tokens, and a chat template. Its weights are random, so it takes any token that a grammar allows. Under the grammar of
a turn it writes calls with valid arguments; without one it writes noise. The same seed gives the same files.

Strategy: a random model ends strings and lists too rarely to be of use. So every token has a bias in the weights: what
closes a string, a list, a reasoning or a turn is likely, and characters outside ASCII are rare. Llama has no bias for
its output; one dimension of every embedding is constant instead, so a column of the output matrix is the bias.

``python -m chatparsers.testing.tiny qwen3 tiny.gguf`` writes such a file from the command line.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from ..answers.format import Format
from ..answers.idioms import Options
from ..answers.nodes import Literal, Value
from ..chat.chat import Chat
from ..core.tree import once
from ..errors import ChatParsersError
from ..kept import cached
from ..registry import get_format
from ..templates.builtins import builtin_source
from ..tokens import ModelFiles
from ..values import Raw

_BEGIN, _END, _PAD = "<|tiny_begin|>", "<|tiny_end|>", "<|tiny_pad|>"
_WORDS = (
    '{"', '":', '", "', '"}', '"}}', '."\n', '}"\n', '": "', "\n\n", "><", "</", ">\n", "[{", "}]", "),", "='", '="',
    "weather", "city", "days", "name", "arguments", "parameters", "function", "true", "false", "null", "tool", "call",
    " the", " is", " of", " and", " in", " a", " to", " you", "the", "Oslo", "Rome", "Hm", "think", "```", "json",
)  # fmt: skip
_CONTROL = re.compile(r"<[|｜][^|｜<>\s]+[|｜]>|\[/?INST\]|</?s>|<(?:start|end)_of_turn>")
"""Texts of a template that are control tokens in real vocabularies."""
_SHAPE = {"layers": 2, "width": 64, "inner": 128, "heads": 2, "context": 8192}
_CONSTANT = 8.0
"""The value of the constant dimension; the other values of an embedding are about 1."""


def tiny_model(
    format: str | Format = "qwen3", *, template: str | None = None, seed: int = 0, special: bool = True
) -> TinyModel:
    """A tiny random model that is served as one of ``format``.

    ``template``: the text of its chat template; None takes the format's built-in one. ``seed``: of its weights.
    ``special``: the flag of its markers, which real vocabularies set or not; the ends of turn always have it. Raises
    `UnknownFormat`, or `LoadError` if there is no built-in template.
    """
    found = get_format(format) if isinstance(format, str) else format
    return TinyModel(found, builtin_source(found.name) if template is None else template, seed, special)


@dataclass(frozen=True)
class TinyModel:
    """A tiny random model. Made by `tiny_model`."""

    format: Format
    template: str
    seed: int = 0
    special: bool = True

    @cached
    def tokenizer(self) -> Tokenizer:
        """Its tokenizer: every byte, some words with their merges, the format's literals, and the added tokens."""
        vocabulary = {letter: id for id, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
        merges = []
        for word in map(_spelt, (*_WORDS, *self._literals)):
            for end in range(2, len(word) + 1):  # a word is merged from its first letter on
                if word[:end] not in vocabulary:
                    vocabulary[word[:end]] = len(vocabulary)
                    merges.append((word[: end - 1], word[end - 1]))
        tokenizer = Tokenizer(models.BPE(vocabulary, merges))
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        tokenizer.add_special_tokens([AddedToken(text, special=True) for text in self._control])
        markers = [text for text in self.format.preserved_tokens if text not in self._control]
        added = [AddedToken(text, special=self.special, normalized=False) for text in markers]
        (tokenizer.add_special_tokens if self.special else tokenizer.add_tokens)(added)
        return tokenizer

    @cached
    def chat(self) -> Chat:
        """The chat of this model, with its format named."""
        roles = {"bos_token": _BEGIN, "eos_token": self.eos_token, "pad_token": _PAD}
        files = ModelFiles(
            Path(f"tiny {self.format.name}"),
            {"default": self.template},
            bos_token=_BEGIN,
            eos_token=self.eos_token,
            eos_ids=self.eos_ids,
            special_tokens=roles,
        )
        return Chat._made(files, tokenizer=self.tokenizer, format=self.format)

    @property
    def eos_token(self) -> str:
        """The token that ends a turn: the format's first stop that is one token, or one of its own."""
        return next((stop for stop in self.format.stops if stop in self._control), _END)

    @property
    def eos_ids(self) -> tuple[int, ...]:
        """The ids of all tokens that end a turn, the one of `eos_token` first."""
        ends = [self.eos_token, *(stop for stop in self.format.stops if stop in self._control)]
        return tuple(dict.fromkeys(map(self._id, ends)))

    def write_gguf(self, path: str | PathLike[str]) -> Path:
        """Writes the model as one file for llama.cpp, about 0.7 MB, and returns its path. Needs ``gguf``."""
        import gguf

        path, shape = Path(path), _SHAPE
        tokens, added = self._tokens, self.tokenizer.get_added_tokens_decoder()
        normal, control, user = gguf.TokenType.NORMAL, gguf.TokenType.CONTROL, gguf.TokenType.USER_DEFINED
        writer = gguf.GGUFWriter(path, "llama")
        writer.add_name(f"{self.format.title.split(',')[0]} tiny")
        writer.add_context_length(shape["context"])
        writer.add_embedding_length(shape["width"])
        writer.add_block_count(shape["layers"])
        writer.add_feed_forward_length(shape["inner"])
        writer.add_head_count(shape["heads"])
        writer.add_head_count_kv(shape["heads"])
        writer.add_layer_norm_rms_eps(1e-5)
        writer.add_rope_dimension_count(shape["width"] // shape["heads"])
        writer.add_vocab_size(len(tokens))
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre("gpt-2")
        writer.add_token_list(tokens)
        writer.add_token_types(
            [(control if added[id].special else user) if id in added else normal for id in range(len(tokens))]
        )
        writer.add_token_merges([" ".join(merge) for merge in self._merges])
        writer.add_bos_token_id(self._id(_BEGIN))
        writer.add_eos_token_id(self.eos_ids[0])
        writer.add_pad_token_id(self._id(_PAD))
        for id in self.eos_ids[1:2]:
            writer.add_eot_token_id(id)
        writer.add_add_bos_token(False)
        writer.add_chat_template(self.template)
        for name, values in self._weights().items():
            writer.add_tensor(_gguf_name(name), values)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path

    def write_folder(self, folder: str | PathLike[str]) -> Path:
        """Writes the model as a folder for transformers and all that load such folders, and returns its path. Needs
        ``safetensors``."""
        from safetensors.numpy import save_file

        folder, shape = Path(folder), _SHAPE
        folder.mkdir(parents=True, exist_ok=True)
        roles = {"bos_token": _BEGIN, "eos_token": self.eos_token, "pad_token": _PAD}
        ends = {
            "bos_token_id": self._id(_BEGIN),
            "eos_token_id": list(self.eos_ids),
            "pad_token_id": self._id(_PAD),
        }
        config = {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "vocab_size": len(self._tokens),
            "hidden_size": shape["width"],
            "intermediate_size": shape["inner"],
            "num_hidden_layers": shape["layers"],
            "num_attention_heads": shape["heads"],
            "num_key_value_heads": shape["heads"],
            "max_position_embeddings": shape["context"],
            "rms_norm_eps": 1e-5,
            "hidden_act": "silu",
            "rope_theta": 10000.0,
            "tie_word_embeddings": False,
            "torch_dtype": "float32",
            **ends,
        }
        files: Mapping[str, Any] = {
            "config.json": config,
            "generation_config.json": ends,
            "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", **roles},
        }
        for name, fields in files.items():
            (folder / name).write_text(json.dumps(fields, indent=1), encoding="utf-8")
        (folder / "chat_template.jinja").write_text(self.template, encoding="utf-8", newline="\n")
        self.tokenizer.save(str(folder / "tokenizer.json"))
        save_file(self._weights(), folder / "model.safetensors", metadata={"format": "pt"})
        return folder

    def _id(self, token: str) -> int:
        return self.tokenizer.get_vocab()[token]

    @property
    def _control(self) -> tuple[str, ...]:
        """The control tokens: the model's own, the ends of turn, and those that the template writes."""
        found = _CONTROL.findall(self.template)
        ends = [stop for stop in self.format.stops if stop == stop.strip()]
        markers = set(self.format.preserved_tokens) - set(ends)
        return tuple(
            dict.fromkeys([_BEGIN, _END, _PAD, *ends, *(text for text in found if text not in markers)])
        )

    @cached
    def _literals(self) -> tuple[str, ...]:
        """The literals that the format's calls and values are made of."""
        found: dict[str, None] = {}
        for node in once(self.format.tree(Options(tools=True))):
            if isinstance(node, Literal):
                found.update(dict.fromkeys((node.text, node.text.strip())))
            elif isinstance(node, Value) and isinstance(node.syntax, Raw):
                found.update(dict.fromkeys(node.syntax.stops))
        return tuple(text for text in found if text)

    @property
    def _tokens(self) -> list[str]:
        """The text of every token in the order of ids, as a vocabulary writes it."""
        return [str(self.tokenizer.id_to_token(id)) for id in range(self.tokenizer.get_vocab_size())]

    @property
    def _merges(self) -> list[tuple[str, str]]:
        return [(left, right) for left, right in json.loads(self.tokenizer.to_str())["model"]["merges"]]

    def _weights(self) -> dict[str, Any]:
        """The weights by the names that transformers gives them; each matrix has a row for each output."""
        random = np.random.default_rng(self.seed)
        width, inner, size = _SHAPE["width"], _SHAPE["inner"], len(self._tokens)

        def matrix(rows: int, columns: int, scale: float) -> Any:
            return (random.standard_normal((rows, columns)) * scale).astype(np.float32)

        embeddings, output = matrix(size, width, 1.0), matrix(size, width, 0.1)
        embeddings[:, 0] = _CONSTANT
        constant = _CONSTANT / np.sqrt((_CONSTANT**2 + width - 1) / width)  # what the last norm makes of it
        output[:, 0] = self._biases() / constant
        weights = {"model.embed_tokens.weight": embeddings, "lm_head.weight": output}
        weights["model.norm.weight"] = np.ones(width, dtype=np.float32)
        for layer in range(_SHAPE["layers"]):
            name = f"model.layers.{layer}."
            for norm in ("input_layernorm", "post_attention_layernorm"):
                weights[f"{name}{norm}.weight"] = np.ones(width, dtype=np.float32)
            for part in "qkvo":
                weights[f"{name}self_attn.{part}_proj.weight"] = matrix(width, width, 0.05)
            for part, rows, columns in (("gate", inner, width), ("up", inner, width), ("down", width, inner)):
                weights[f"{name}mlp.{part}_proj.weight"] = matrix(rows, columns, 0.05)
        return weights

    def _biases(self) -> Any:
        """The bias of each token's logit."""
        ends, markers = set(self.eos_ids), set(self.format.preserved_tokens)
        added = self.tokenizer.get_added_tokens_decoder()
        literals = {_spelt(text) for text in self._literals if len(text) > 3}
        biases = np.zeros(len(self._tokens), dtype=np.float32)
        for id, text in enumerate(self._tokens):
            if id in added and id not in ends and text not in markers:
                biases[id] = -20  # real models do not write those of other turns
            elif id in added:
                closes = "/" in text or "end" in text.lower()
                biases[id] = 10 if id in ends else 9 if closes else 7.5
            elif text in _CLOSERS:
                biases[id] = _CLOSERS[text]
            elif text in literals:
                biases[id] = 5
            elif text.isascii() and text.isalnum():
                biases[id] = 1
            elif not text.isascii() and text[0] not in "ĠĊ":
                biases[id] = -3
        return biases


def _spelt(text: str) -> str:
    """``text`` in the letters of a byte-level vocabulary."""
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return "".join(piece for piece, _ in level.pre_tokenize_str(text))


_CLOSERS = {
    **dict.fromkeys(map(_spelt, ("'", "}", "]", ")", "<", ">", ",", '"}', "</")), 5.0),
    _spelt('"'): 8.0,
    _spelt("\n"): 8.5,
}
"""What ends strings, lists and lines, and its bias."""
_GGUF = {
    "model.embed_tokens": "token_embd",
    "lm_head": "output",
    "model.norm": "output_norm",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def _gguf_name(name: str) -> str:
    """The name of a tensor in GGUF."""
    name = name.removesuffix(".weight")
    if name.startswith("model.layers."):
        _, _, layer, part = name.split(".", 3)
        return f"blk.{layer}.{_GGUF[part]}.weight"
    return f"{_GGUF[name]}.weight"


def main(arguments: Iterable[str] | None = None) -> None:
    """Writes a tiny model: ``FORMAT PATH``, where PATH ends in ``.gguf`` or is a folder."""
    parser = argparse.ArgumentParser(
        prog="python -m chatparsers.testing.tiny", description="Writes a tiny random model."
    )
    parser.add_argument("format", help="the name of a format, such as qwen3")
    parser.add_argument("path", type=Path, help="a .gguf file, or a folder for transformers")
    parser.add_argument("--seed", type=int, default=0, help="the seed of its weights")
    given = parser.parse_args(None if arguments is None else list(arguments))
    try:
        model = tiny_model(given.format, seed=given.seed)
        write = model.write_gguf if given.path.suffix == ".gguf" else model.write_folder
        print(write(given.path))
    except ModuleNotFoundError as error:
        parser.error(f"{given.path} needs {error.name}, which is not installed: pip install {error.name}")
    except (ChatParsersError, OSError) as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
