"""transformers: a tiny model generates under the grammar, and the streamer reads it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from asked import check_asking
from tinies import FORMATS, MESSAGES, RUNS, TOOLS, Table, tiny, wrong_in

import chatparsers

transformers = pytest.importorskip(
    "transformers", reason="transformers is not installed: tests/hosts/install transformers"
)
torch = pytest.importorskip("torch", reason="torch is not installed: tests/hosts/install transformers")
pytest.importorskip("safetensors", reason="safetensors is not installed")
if not hasattr(transformers, "__version__"):
    pytest.skip("transformers is a stand-in here", allow_module_level=True)

from chatparsers.adapters.transformers import TurnMask, TurnStreamer  # noqa: E402

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
        ids = generated(model, prompt, streamer, seed, guide=turn.guide(engine))
        table.add(streamer.message, turn.parse(ids), choice == "required")
    table.check(f"transformers, {engine}, {name}, {choice}", RUNS)


@pytest.mark.parametrize("engine", ENGINES)
def test_thoughts_take_no_more_than_their_budget(engine: Any, folders: Any) -> None:
    folder, tokenizer, model = folders("qwen3")
    chat = chatparsers.load(folder)
    for budget in (0, 3, 17):
        turn = chat.prepare(MESSAGES, tools=TOOLS, tool_choice="required", thinking=True)
        prompt = tokenizer(turn.prompt, add_special_tokens=False, return_tensors="pt")
        streamer = TurnStreamer(turn)
        ids = generated(model, prompt, streamer, budget, guide=turn.guide(engine, thinking_tokens=budget))
        regions = turn.parse(ids).regions
        thought = [r.token_end - r.token_start for r in regions if r.kind == "reasoning"]
        assert sum(thought) <= budget + 3 and streamer.message.complete and streamer.message.tool_calls


@pytest.mark.parametrize("engine", ENGINES)
def test_each_row_of_a_batch_keeps_to_its_own_turn(engine: Any, folders: Any) -> None:
    """Three prompts of different lengths, each with other tools, in one ``generate``; and one turn for several rows."""
    folder, tokenizer, model = folders("qwen3-coder")
    chat = chatparsers.load(folder)
    asked = [TOOLS[:1], TOOLS[1:2], TOOLS[2:]]
    turns = [chat.prepare(MESSAGES, tools=tools, tool_choice="required") for tools in asked]
    tokenizer.padding_side, tokenizer.pad_token = "left", "<|tiny_pad|>"
    for found, copies in ((turns, 1), (turns[:1], 3), (turns[:2], 2)):
        prompts = [turn.prompt for turn in found for _ in range(copies)]
        padded = tokenizer(prompts, add_special_tokens=False, return_tensors="pt", padding=True)
        torch.manual_seed(5)
        out = model.generate(
            **padded,
            logits_processor=[TurnMask([turn.guide(engine) for turn in found])],
            eos_token_id=list(found[0].stop_ids),
            max_new_tokens=700,
            do_sample=True,
        )
        for row, ids in enumerate(out[:, padded["input_ids"].shape[1] :].tolist()):
            turn = found[row // copies]
            end = next(place for place, id in enumerate(ids) if id in turn.stop_ids)
            message = turn.parse(ids[: end + 1], strict=True)
            names = {tool["function"]["name"] for tool in asked[row // copies]}
            assert message.complete and {call.name for call in message.tool_calls} == names
            assert not [
                wrong for call in message.tool_calls if (wrong := wrong_in(call.name, call.arguments))
            ]


def test_a_streamer_and_a_mask_refuse_what_they_cannot_read(folders: Any) -> None:
    folder, _, _ = folders("qwen3")
    turn = chatparsers.load(folder).prepare(MESSAGES, tools=TOOLS)
    with pytest.raises(chatparsers.RequestError, match="expected one prompt, found a batch of 2"):
        TurnStreamer(turn).put(torch.zeros((2, 4), dtype=torch.long))
    with pytest.raises(chatparsers.RequestError, match="expected one, or one for each of 3 rows, found 2"):
        TurnMask([turn, turn])(torch.zeros((3, 4), dtype=torch.long), torch.zeros((3, 500)))


@pytest.mark.parametrize("engine", ENGINES)
def test_streams_in_several_threads(engine: Any, folders: Any) -> None:
    """Two generations of one model at once, and a reader of each: no state is shared but the tokenizer and the masks'
    compiler."""
    folder, tokenizer, model = folders("hermes-2-pro")
    chat = chatparsers.load(folder)

    def ask(seed: int) -> tuple[Any, chatparsers.Message, list[Any]]:
        tools = TOOLS[seed % 2 : seed % 2 + 1]
        turn = chat.prepare(MESSAGES, tools=tools, tool_choice="required")
        prompt = tokenizer(turn.prompt, add_special_tokens=False, return_tensors="pt")
        streamer = TurnStreamer(turn, timeout=120)
        with ThreadPoolExecutor(1) as inner:
            made = inner.submit(generated, model, prompt, streamer, seed, guide=turn.guide(engine))
            events = list(streamer)
            ids = made.result()
        assert {call.name for call in streamer.message.tool_calls} == {tools[0]["function"]["name"]}
        return turn.parse(ids), streamer.message, events

    table = Table()
    with ThreadPoolExecutor(2) as pool:
        for whole, message, events in pool.map(ask, range(6)):
            table.add(message, whole, required=True)
            text = "".join(event.text for event in events if isinstance(event, chatparsers.CallArguments))
            assert text == "".join(call.arguments for call in message.tool_calls)
    table.check(f"transformers, {engine}, in threads", 6)


def test_asking(folders: Any) -> None:
    folder, _, model = folders("qwen3")
    check_asking(chatparsers.load(folder), model, temperature=1.0)
