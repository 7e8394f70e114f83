"""A tiny model that sees: a chat template with a place for images, a random encoder for llama.cpp, and pictures."""

from __future__ import annotations

import base64
import struct
import zlib
from functools import lru_cache
from pathlib import Path

from chatparsers.testing.tiny import TinyModel, tiny_model

PLACE = "<|see|><|pad|><|seen|>"
TEMPLATE = r"""
{%- macro written(content) %}
  {%- for part in ([{'type': 'text', 'text': content}] if content is string else content) %}
    {%- if part.type == 'image' %}{{ '<|see|><|pad|><|seen|>' }}
    {%- elif part.type == 'text' %}{{ part.text }}{% endif %}
  {%- endfor %}
{%- endmacro %}
{%- if tools %}{{ '<|im_start|>system\n<tools>' }}
  {%- for t in tools %}{{ '\n' }}{{ t | tojson }}{% endfor %}{{ '\n</tools><|im_end|>\n' }}
{%- endif %}
{%- for m in messages %}
  {{- '<|im_start|>' + m.role + '\n' }}
  {%- if m.reasoning_content %}{{ '<think>\n' + m.reasoning_content + '\n</think>\n\n' }}{% endif %}
  {{- written(m.content) }}
  {%- for c in m.tool_calls or [] %}
    {{- '\n<tool_call>\n' }}{{ (c.function or c) | tojson }}{{ '\n</tool_call>' }}
  {%- endfor %}
  {{- '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"""
SIZE, PATCH = 28, 14
TOKENS = (SIZE // PATCH) ** 2
"""How many tokens an image takes."""
_WIDTH = 64


@lru_cache(maxsize=1)
def seeing() -> TinyModel:
    """The tiny model with that template."""
    return tiny_model("qwen3", template=TEMPLATE)


def png(width: int = SIZE, height: int = SIZE, color: tuple[int, int, int] = (255, 0, 0)) -> bytes:
    """A picture of one color."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + bytes(color) * width) * height
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = (chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def data_url(raw: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(raw).decode()}"


def write_mmproj(path: Path) -> Path:
    """A random image encoder for the tiny model, for llama.cpp's ``--mmproj``. Needs ``gguf``."""
    import gguf
    import numpy as np

    random = np.random.default_rng(0)
    writer = gguf.GGUFWriter(path, "clip")
    writer.add_bool("clip.has_vision_encoder", True)
    writer.add_string("clip.projector_type", "mlp")
    writer.add_bool("clip.use_gelu", True)
    numbers = {
        "image_size": SIZE,
        "patch_size": PATCH,
        "embedding_length": _WIDTH,
        "feed_forward_length": 2 * _WIDTH,
        "block_count": 2,
        "attention.head_count": 4,
        "projection_dim": _WIDTH,
    }
    for name, number in numbers.items():
        writer.add_uint32(f"clip.vision.{name}", number)
    writer.add_float32("clip.vision.attention.layer_norm_epsilon", 1e-5)
    writer.add_array("clip.vision.image_mean", [0.5, 0.5, 0.5])
    writer.add_array("clip.vision.image_std", [0.5, 0.5, 0.5])

    def add(name: str, *shape: int) -> None:
        writer.add_tensor(name, random.normal(size=shape).astype(np.float32) * 0.2)

    add("v.patch_embd.weight", _WIDTH, 3, PATCH, PATCH)
    add("v.position_embd.weight", TOKENS, _WIDTH)
    for layer in range(2):
        for name in ("attn_q", "attn_k", "attn_v", "attn_out"):
            add(f"v.blk.{layer}.{name}.weight", _WIDTH, _WIDTH)
            add(f"v.blk.{layer}.{name}.bias", _WIDTH)
        for name in ("ln1", "ln2"):
            add(f"v.blk.{layer}.{name}.weight", _WIDTH)
            add(f"v.blk.{layer}.{name}.bias", _WIDTH)
        add(f"v.blk.{layer}.ffn_up.weight", 2 * _WIDTH, _WIDTH)
        add(f"v.blk.{layer}.ffn_up.bias", 2 * _WIDTH)
        add(f"v.blk.{layer}.ffn_down.weight", _WIDTH, 2 * _WIDTH)
        add(f"v.blk.{layer}.ffn_down.bias", _WIDTH)
    for number in (0, 2):
        add(f"mm.{number}.weight", _WIDTH, _WIDTH)
        add(f"mm.{number}.bias", _WIDTH)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
