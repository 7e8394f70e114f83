"""A tiny model that sees: a chat template with a place for images, a random encoder for llama.cpp, and pictures."""

from __future__ import annotations

import base64
import struct
import zlib
from functools import lru_cache
from pathlib import Path
from typing import Any

import httpx2

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


RED, BLUE = png(), png(30, 20, (0, 0, 255))
PATHS = {"chat": "chat/completions", "responses": "responses", "messages": "messages"}


def part_of(api: str, raw: bytes) -> dict[str, Any]:
    """An image as the clients of an API send it."""
    if api == "messages":
        data = base64.b64encode(raw).decode()
        return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    if api == "responses":
        return {"type": "input_image", "detail": "auto", "image_url": data_url(raw)}
    return {"type": "image_url", "image_url": {"url": data_url(raw), "detail": "high"}}


def text_of(api: str, text: str) -> dict[str, Any]:
    return {"type": "input_text" if api == "responses" else "text", "text": text}


def asked(api: str, *content: Any, result: list[Any] | None = None) -> dict[str, Any]:
    """A request with a user's message, and with a call and its result if there is one."""
    parts = [text_of(api, one) if isinstance(one, str) else part_of(api, one) for one in content]
    result = (
        None
        if result is None
        else [text_of(api, x) if isinstance(x, str) else part_of(api, x) for x in result]
    )
    user = {"role": "user", "content": parts}
    if api == "responses":
        called: Any = {"type": "function_call", "call_id": "call00001", "name": "f", "arguments": "{}"}
        output: Any = {"type": "function_call_output", "call_id": "call00001", "output": result}
        return {"input": [{"type": "message", **user}, *([] if result is None else [called, output])]}
    if api == "messages":
        called = {"type": "tool_use", "id": "call00001", "name": "f", "input": {}}
        output = {"type": "tool_result", "tool_use_id": "call00001", "content": result}
        more = [{"role": "assistant", "content": [called]}, {"role": "user", "content": [output]}]
    else:
        called = {"id": "call00001", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        output = {"role": "tool", "tool_call_id": "call00001", "content": result}
        more = [{"role": "assistant", "tool_calls": [called]}, output]
    return {"messages": [user, *([] if result is None else more)], "max_tokens": 50}


def say(server: Any, api: str, body: dict[str, Any]) -> Any:
    return httpx2.post(f"{server.url}/v1/{PATHS[api]}", json=body, timeout=20)


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
