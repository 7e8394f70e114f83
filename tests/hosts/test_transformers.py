"""transformers: a tiny model generates under the grammar, and the streamer reads it."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tinies import FORMATS, MESSAGES, RUNS, TOOLS, Table, tiny

import chatparsers

transformers = pytest.importorskip(
    "transformers", reason="transformers is not installed: tests/hosts/install transformers"
)
torch = pytest.importorskip("torch", reason="torch is not installed: tests/hosts/install transformers")
pytest.importorskip("safetensors", reason="safetensors is not installed")
if not hasattr(transformers, "__version__"):
    pytest.skip("transformers is a stand-in here", allow_module_level=True)

from chatparsers.adapters.transformers import TurnStreamer  # noqa: E402

torch.set_num_threads(1)  # the model is tiny: more threads only wait for one another
ENGINES = ("xgrammar", "llguidance")


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Any:
    @cache
    def loaded(name: str) -> tuple[Path, Any, Any]:
        folder = tiny(name).write_folder(tmp_path_factory.mktemp(name))
        model = transformers.AutoModelForCausalLM.from_pretrained(folder)
        return folder, transformers.AutoTokenizer.from_pretrained(folder), model

    return loaded


def generated(model: Any, prompt: Any, streamer: Any, seed: int, **options: Any) -> list[int]:
    torch.manual_seed(seed)
    out = model.generate(
        **prompt, **streamer.options(**options), max_new_tokens=600, do_sample=True, temperature=1.0
    )
    return list(out[0, prompt["input_ids"].shape[1] :].tolist())


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("choice", ["required", "auto"])
@pytest.mark.parametrize("name", FORMATS)
def test_every_run_is_complete_valid_and_equal(name: str, choice: str, engine: Any, folders: Any) -> None:
    folder, tokenizer, model = folders(name)
    chat = chatparsers.load(folder)
    assert chat.format.name == name
    table = Table()
    for seed in range(RUNS):
        turn = chat.prepare(MESSAGES, tools=TOOLS, tool_choice=choice)
        prompt = tokenizer(turn.prompt, add_special_tokens=False, return_tensors="pt")
        streamer = TurnStreamer(turn)
        ids = generated(model, prompt, streamer, seed, engine=engine)
        table.add(streamer.message, turn.parse(ids), choice == "required")
    table.check(f"transformers, {engine}, {name}, {choice}", RUNS)
