"""docs/tables/trainers.md: the page is that of its data, and each cell what its batch says today."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import _trainers as TABLE
import pytest

from chatparsers.labels.charges import CODES

TABLES = Path(__file__).parents[2] / "docs" / "tables"
# The template, the tokenizer and the end of each model of the batches, and markers that its tokenizer lacks.
MODELS: dict[str, tuple[str, str, str, str]] = {
    "qwen3": ("Qwen-Qwen3-0.6B", "qwen3", "<|im_end|>", ""),
    "qwen2.5": ("Qwen-Qwen2.5-7B-Instruct", "qwen3", "<|im_end|>", ""),
    "gpt-oss": ("openai-gpt-oss-120b", "o200k_harmony", "<|return|>", ""),
    "llama-3.1": ("meta-llama-Llama-3.1-8B-Instruct", "llama3.1", "<|eot_id|>", ""),
    "deepseek-v3.1": ("deepseek-ai-DeepSeek-V3.1", "deepseek-v3x", "<｜end▁of▁sentence｜>", ""),
    "glm-4.6": (
        *("GLM-4.6", "qwen3", "<|endoftext|>"),
        "[gMASK] <sop> <|system|> <|user|> <|assistant|> <|observation|> <tool_call> </tool_call> <arg_key> </arg_key> "
        "<arg_value> </arg_value> <think> </think> /nothink",
    ),
}

CELLS: dict[str, dict[str, list[str]]] = json.loads(TABLE.DATA.read_text("utf-8"))["cells"]


def test_the_page_is_written_from_the_data() -> None:
    assert TABLE.main(["--check"]) == 0, "run python docs/tables/_trainers.py"


def test_each_cell_has_codes_alone() -> None:
    rows = {name: list(cells) for name, cells in CELLS.items()}
    assert len({tuple(names) for names in rows.values()}) == 1
    for name, cells in CELLS.items():
        assert name.partition(".")[0] in TABLE.VERSIONS and name.partition(".")[2] in MODELS
        for row, codes in cells.items():
            assert codes == [TABLE.REFUSED] or (codes == sorted(set(codes)) and set(codes) <= CODES.keys()), (
                name,
                row,
            )


def _model(shared: Path, name: str, folder: Path) -> Path:
    template, file, end, markers = MODELS[name]
    with gzip.open(shared / "tokenizers" / f"{file}.json.gz") as packed:
        tokenizer: dict[str, Any] = json.load(packed)
    have = [token["content"] for token in tokenizer["added_tokens"]]
    more = [marker for marker in markers.split() if marker not in have]
    top = max(token["id"] for token in tokenizer["added_tokens"])
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    tokenizer["added_tokens"] += [
        {"id": top + place, "content": marker, **plain} for place, marker in enumerate(more, 1)
    ]
    starts = [one for one in ("<|begin_of_text|>", "<｜begin▁of▁sentence｜>") if one in have]
    config = {"eos_token": end, **({"bos_token": starts[0]} if starts else {})}
    (folder / "chat_template.jinja").write_text(
        (shared / "templates" / f"{template}.jinja").read_text("utf-8"), "utf-8"
    )
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), "utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps(config), "utf-8")
    return folder


@pytest.mark.slow
@pytest.mark.one_in(6)
@pytest.mark.parametrize("model", MODELS)
def test_each_cell_is_what_its_batch_says(model: str, shared_dir: Path, tmp_path: Path) -> None:
    batches = shared_dir / "edges5" / "batches"
    if not batches.exists():
        pytest.skip("no batches in the shared folder")
    folder = _model(shared_dir, model, tmp_path)
    rows = [json.loads(line) for line in (batches / "rows.jsonl").read_text("utf-8").splitlines()]
    for name in (name for name in CELLS if name.partition(".")[2] == model):
        assert TABLE.judged(folder, batches / f"{name}.jsonl", rows) == CELLS[name], name
