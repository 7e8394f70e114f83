"""Our rollouts inside trainers: a loop of verifiers with our `Renderer`, and TRL's `rollout_func`."""

from __future__ import annotations

import asyncio
import importlib.util
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tinies import MESSAGES, TOOLS, tiny

import chatparsers
from chatparsers.testing.tiny import tiny_model

sys.path.insert(0, str(Path(__file__).parents[1] / "chat"))

from completions import served
from dialogues import TOOLS as TALK_TOOLS
from played import chat_of

CALL = '<tool_call>\n{"name":"get_weather","arguments":{"city":"Oslo %d"}}\n</tool_call><|im_end|>'
TURNS = 10


def test_a_loop_of_verifiers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its training client bridges every turn by our renderer, and its trace has the engine's ids."""
    train = pytest.importorskip("verifiers.v1.clients.train", reason="verifiers is not installed")
    from verifiers.v1 import SamplingConfig, graph, types
    from verifiers.v1.configs.client import TrainClientConfig
    from verifiers.v1.dialects import ChatDialect
    from verifiers.v1.trace import Trace

    from chatparsers.adapters.renderers import Renderer

    monkeypatch.setenv("NO_KEY", "none")
    chat = chat_of(Path(__file__).parents[1] / "templates_own" / "qwen3.jinja")
    held: list[int] = []
    sampled: list[int] = []
    turns = 0

    def engine(prompt: list[int], most: int, stops: Sequence[int]) -> tuple[list[int], list[float]]:
        nonlocal turns
        assert prompt[: len(held)] == held
        turns += 1
        wire = CALL % turns if turns < TURNS else "It is cold.<|im_end|>"
        ids = chat.tokenizer.encode(wire, add_special_tokens=False).ids
        held[:] = prompt + ids
        sampled.extend(ids)
        return ids, [-0.5] * len(ids)

    async def loop(url: str) -> Any:
        config = TrainClientConfig(base_url=url, api_key_var="NO_KEY", renderer_model_name="ours")
        pool = train.ElasticRendererPool("ours", config.renderer, multiplex=config.multiplex)
        pool.renderers.append(train.RendererSlot(Renderer(chat)))
        client = train.TrainClient(config)
        trace = Trace.model_construct(nodes=[], tools=[], mm_token_type_id_map={})
        tools = [types.Tool(**tool["function"]) for tool in TALK_TOOLS]
        messages: list[Any] = [types.UserMessage(content="Is it cold?")]
        for number in range(TURNS):
            turn = graph.prepare_turn(trace, messages, tools)
            answer = await client.get_response(ChatDialect(), {"model": "m"}, SamplingConfig(), turn=turn)
            turn.commit(answer)
            assert answer.tokens.bridged is (number > 0)
            messages.append(answer.message)
            for call in answer.message.tool_calls or ():
                messages.append(types.ToolMessage(tool_call_id=call.id, content=f"{number} degrees"))
        await client.close()
        return trace

    with served(engine) as url:
        trace = asyncio.run(loop(url))
    ids = [id for node in trace.nodes for id in node.token_ids]
    mask = [mark for node in trace.nodes for mark in node.mask]
    assert ids == held and [id for id, mark in zip(ids, mask, strict=True) if mark] == sampled


def packages() -> tuple[Any, Any, Any]:
    """torch, datasets and transformers, where TRL is installed with them; else the test is skipped."""
    pytest.importorskip("trl", reason="trl is not installed")
    torch, datasets, transformers = (
        pytest.importorskip(name, reason=f"{name} is not installed")
        for name in ("torch", "datasets", "transformers")
    )
    torch.set_num_threads(1)
    return torch, datasets, transformers


@pytest.mark.filterwarnings("ignore")  # of trl and transformers, which deprecate each other's names
def test_a_rollout_function_of_trl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """GRPO trains a tiny model on rollouts with tools: what it did not sample is masked."""
    torch, datasets, transformers = packages()
    from trl import GRPOConfig, GRPOTrainer

    from chatparsers.adapters.transformers import TurnMask

    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    folder = tiny("qwen3").write_folder(tmp_path / "qwen3")
    chat = chatparsers.load(folder)
    seen: list[Any] = []

    def generate(model: Any, rollout: Any) -> tuple[list[int], list[float]]:
        ids = torch.tensor([rollout.ids])
        out = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            logits_processor=[TurnMask(rollout.turn)],
            eos_token_id=list(rollout.turn.stop_ids),
            max_new_tokens=120,
            do_sample=True,
            output_scores=True,
            return_dict_in_generate=True,
        )
        new = out.sequences[0, ids.shape[1] :]
        scores = torch.stack(out.scores).squeeze(1).log_softmax(-1)
        return new.tolist(), scores.gather(1, new[:, None])[:, 0].tolist()

    # docs/rollouts.md shows this function
    def rollout_func(prompts: list[Any], trainer: Any) -> dict[str, list[Any]]:
        columns: dict[str, list[Any]] = {
            "prompt_ids": [],
            "completion_ids": [],
            "logprobs": [],
            "env_mask": [],
        }
        for messages in prompts:
            rollout = chat.rollout(messages, tools=TOOLS, tool_choice="required", history="exact")
            for _ in range(3):
                message = rollout.sampled(*generate(trainer.model, rollout))
                results = [{"role": "tool", "tool_call_id": c.id, "content": "4"} for c in message.tool_calls]
                rollout.append(*results or MESSAGES)
            (sample,) = rollout.samples()
            start = sample.loss_mask.index(1)
            pairs = zip(sample.logprobs[start:], sample.loss_mask[start:], strict=True)
            columns["prompt_ids"].append(sample.ids[:start])
            columns["completion_ids"].append(sample.ids[start:])
            columns["env_mask"].append(sample.loss_mask[start:])
            columns["logprobs"].append([p if mask else 0.0 for p, mask in pairs])
            seen.append(sample)
        return columns

    trainer = GRPOTrainer(
        model=transformers.AutoModelForCausalLM.from_pretrained(folder),
        processing_class=transformers.AutoTokenizer.from_pretrained(folder),
        reward_funcs=lambda completions, **_: [float(number) for number in range(len(completions))],
        train_dataset=datasets.Dataset.from_list([{"prompt": MESSAGES}] * 4),
        args=GRPOConfig(
            output_dir=str(tmp_path / "out"),
            max_steps=2,
            per_device_train_batch_size=2,
            num_generations=2,
            max_completion_length=600,
            use_cpu=True,
            bf16=False,
            report_to=[],
            logging_steps=1,
            learning_rate=1e-3,
        ),
        rollout_func=rollout_func,
    )
    trainer.train()
    assert len(seen) >= 4 and all(0 < sample.counted < len(sample) for sample in seen)
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert len(losses) == 2 and all(loss == loss for loss in losses)  # no nan


TALK = [
    {"role": "user", "content": "Is it cold?"},
    {"role": "assistant", "reasoning_content": "It is winter.", "content": "Yes."},
    {"role": "user", "content": "Sure?"},
    {"role": "assistant", "reasoning_content": "I looked.", "content": "Quite."},
]


def trained(trainer: Any) -> list[float]:
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert losses and all(loss == loss for loss in losses)  # no nan
    return losses


def arguments(tmp_path: Path, **more: Any) -> dict[str, Any]:
    fixed = {"use_cpu": True, "bf16": False, "report_to": [], "logging_steps": 1, "max_steps": 3}
    return {"output_dir": str(tmp_path / "out"), "per_device_train_batch_size": 2, **fixed, **more}


@pytest.mark.filterwarnings("ignore")  # of trl and transformers, which deprecate each other's names
@pytest.mark.parametrize("packed", [False, True])
def test_supervised_rows_in_trl(packed: bool, tmp_path: Path) -> None:
    """SFTTrainer takes the rows of `Encode` as they are, and packed rows through `Collator`: the loss of the first step
    is that of the counted ids alone."""
    torch, datasets, transformers = packages()
    from trl import SFTConfig, SFTTrainer

    from chatparsers.data import Encode

    folder = tiny("qwen3").write_folder(tmp_path / "qwen3")
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    talks = datasets.Dataset.from_list([{"messages": TALK}] * 2)
    encode = Encode(folder, as_sampled=True)
    rows = talks.with_format("arrow").map(encode, batched=True, remove_columns=["messages"]).with_format(None)
    samples = [chatparsers.Sample.from_row(row) for row in rows]
    assert len(samples) == 4 and all(sample.counted for sample in samples)
    collator = chatparsers.Collator(pad_id=0)
    expected = torch.tensor(0.0)
    with torch.no_grad():
        for sample in samples:
            batch = collator([sample])
            out = model(
                input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], labels=batch["labels"]
            )
            expected += out.loss * sample.counted
    expected = expected / sum(sample.counted for sample in samples)
    more: dict[str, Any] = {}
    if packed:
        whole = chatparsers.pack(samples, 1_000)
        row = {
            "input_ids": whole[0].column("ids"),
            "labels": whole[0].labels(),
            "position_ids": whole[0].position_ids,
        }
        assert len(whole) == 1
        rows = datasets.Dataset.from_list([row])

        # Without a mask, attention of transformers keeps to each run of positions.
        def collate(given: list[dict[str, Any]]) -> dict[str, Any]:
            return {name: torch.tensor([each[name] for each in given]) for name in row}

        more["data_collator"] = collate
    trainer = SFTTrainer(
        model=model,
        processing_class=transformers.AutoTokenizer.from_pretrained(folder),
        train_dataset=rows,
        args=SFTConfig(
            **arguments(tmp_path, per_device_train_batch_size=4, learning_rate=1e-2),
            max_length=None,
            remove_unused_columns=not packed,  # position_ids are one
        ),
        **more,
    )
    losses = trained(trainer)
    assert losses[0] == pytest.approx(float(expected), abs=2e-3) and losses[-1] < losses[0]


@pytest.mark.filterwarnings("ignore")  # of trl and transformers, which deprecate each other's names
def test_pairs_in_trl(tmp_path: Path) -> None:
    """DPOTrainer takes ready ids if it is told that its data is prepared."""
    _, datasets, transformers = packages()
    from trl import DPOConfig, DPOTrainer

    folder = tiny("qwen3").write_folder(tmp_path / "qwen3")
    chat = chatparsers.load(folder)

    # docs/training.md shows these
    class Ready(DPOTrainer):
        def _prepare_dataset(self, dataset: Any, *_: Any) -> Any:
            return dataset

    def row(messages: Any, good: Any, bad: Any) -> dict[str, list[int]]:
        chosen, rejected = chat.encode_pair(messages, good, bad)
        prompt = chosen.prompt_length
        return {
            "prompt_ids": chosen.ids[:prompt],
            "chosen_ids": chosen.ids[prompt:],
            "rejected_ids": rejected.ids[prompt:],
        }

    answers = ({"role": "assistant", "content": text} for text in ("Yes, it is.", "Perhaps."))
    rows = datasets.Dataset.from_list([row(TALK[:1], *answers)] * 4)
    trainer = Ready(
        model=transformers.AutoModelForCausalLM.from_pretrained(folder),
        ref_model=transformers.AutoModelForCausalLM.from_pretrained(folder),
        processing_class=transformers.AutoTokenizer.from_pretrained(folder),
        train_dataset=rows,
        args=DPOConfig(**arguments(tmp_path, learning_rate=1e-2, remove_unused_columns=False)),
    )
    losses = trained(trainer)
    assert losses[0] == pytest.approx(0.6931, abs=1e-3) and losses[-1] < losses[0]


# docs/training.md shows these
def parts(row: dict[str, Any]) -> dict[str, Any]:
    start = row["loss_mask"].index(1)
    mask = row["loss_mask"][start:]
    return {
        "prompt_ids": row["input_ids"][:start],
        "response_ids": row["input_ids"][start:],
        "response_mask": mask,
        "response_logprobs": [p if m else 0.0 for p, m in zip(row["logprobs"][start:], mask, strict=True)],
    }


def test_rows_in_verl(tmp_path: Path) -> None:
    """A rollout with a call, its result and an answer is what verl's agent loops give."""
    loops = pytest.importorskip("verl.experimental.agent_loop.agent_loop", reason="verl is not installed")
    chat = chatparsers.load(tiny("qwen3").write_folder(tmp_path / "qwen3"))
    rollout = chat.rollout(MESSAGES, tools=TOOLS)
    for number, text in enumerate((CALL % 1, "It is cold.<|im_end|>")):
        ids = chat.tokenizer.encode(text).ids
        message = rollout.sampled(ids, [-0.5 - number] * len(ids))
        results = [{"role": "tool", "tool_call_id": call.id, "content": "4"} for call in message.tool_calls]
        if results:
            rollout.append(*results)
    (sample,) = rollout.samples()
    row = sample.to_row(reward=1.0, answers=[1, 2])
    output = loops.AgentLoopOutput(
        **parts(row), reward_score=row["reward"], num_turns=2, metrics=loops.AgentLoopMetrics()
    ).as_dict()
    assert [*output["prompts"], *output["responses"]] == sample.ids
    mask, probs = output["response_mask"], output["rollout_log_probs"]
    assert int(mask.sum()) == sample.counted and len(mask) == len(probs)
    assert {float(p) for p, m in zip(probs, mask, strict=True) if m} == {-0.5, -1.5}


@pytest.mark.filterwarnings("ignore")  # of axolotl, llamafactory and what they load
def test_ready_rows(tmp_path: Path) -> None:
    """Axolotl and LLaMA-Factory take rows that are encoded, and change nothing in them."""
    _, datasets, transformers = packages()
    wrappers = pytest.importorskip("axolotl.utils.data.wrappers", reason="axolotl is not installed")
    loader = pytest.importorskip("llamafactory.data.loader", reason="llamafactory is not installed")
    from axolotl.utils.dict import DictDefault
    from llamafactory.data.collator import SFTDataCollatorWith4DAttentionMask
    from llamafactory.data.template import TEMPLATES

    from chatparsers.data import Encode

    folder = tiny("qwen3").write_folder(tmp_path / "qwen3")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    talks = datasets.Dataset.from_list([{"messages": TALK}] * 2)
    rows = talks.with_format("arrow").map(
        Encode(folder, as_sampled=True), batched=True, remove_columns=["messages"]
    )

    # docs/training.md shows these
    ready = rows.with_format(None).map(lambda row: {"attention_mask": [1] * len(row["input_ids"])})
    ready = ready.select_columns(["input_ids", "attention_mask", "labels"])
    ready.to_parquet(str(tmp_path / "rows.parquet"))
    datasets.DatasetDict({"train": ready}).save_to_disk(str(tmp_path / "rows"))

    read = datasets.load_dataset("parquet", data_files=str(tmp_path / "rows.parquet"), split="train")
    config = DictDefault({"path": "rows.parquet", "ds_type": "parquet", "type": None})
    kept, _ = wrappers.get_dataset_wrapper(config, tokenizer, DictDefault({}), None, read)
    assert kept is read and len(kept) == 4
    given = DictDefault({"tokenized_path": str(tmp_path / "rows"), "streaming": False})
    found = loader.get_dataset(None, None, given, None, "sft", tokenizer)["train_dataset"]
    more = {"model": None, "tokenizer": tokenizer, "pad_to_multiple_of": 8, "label_pad_token_id": -100}
    theirs = SFTDataCollatorWith4DAttentionMask(template=TEMPLATES["qwen3"], **more)([*found])
    collator = chatparsers.Collator(pad_id=tokenizer.pad_token_id, multiple_of=8)
    ours = collator([*rows.with_format(None)])
    assert all(bool((theirs[name] == ours[name]).all()) for name in ("input_ids", "attention_mask", "labels"))


@pytest.fixture
def loop(tmp_path: Path) -> Any:
    """The file of docs/learning.md as a module. What the page shows of TRL is its ``trl``, as text."""
    packages()
    for name in ("openai", "starlette", "uvicorn", "httpx2"):
        pytest.importorskip(name, reason=f"{name} is not installed")
    page = (Path(__file__).parents[2] / "docs" / "learning.md").read_text(encoding="utf-8")
    code, trl = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    file = tmp_path / "learn.py"
    file.write_text(code, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("learn", file)
    assert spec is not None and spec.loader is not None
    learn: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(learn)
    learn.trl = trl.partition("\n\n\nwith gateway")[0]
    return learn


@pytest.mark.filterwarnings("ignore")  # of transformers
def test_the_loop_of_the_page_learns(loop: Any, tmp_path: Path) -> None:
    """An OpenAI client before a gateway over the model, and GRPO on the gateway's rows. The model that samples and the
    one that learns give each id the same probability, and the reward goes up."""
    found = loop.main(tiny_model("hermes-2-pro").write_folder(tmp_path / "tiny"), rate=1e-2)
    rewards = [reward for reward, _ in found]
    assert len(found) == 30 and max(gap for _, gap in found) < 1e-5
    assert sum(rewards[-3:]) / 3 > 0.8 > 0.1 > sum(rewards[:3]) / 3, rewards


@pytest.mark.filterwarnings("ignore")  # of trl and transformers, which deprecate each other's names
def test_the_loop_of_the_page_in_trl(loop: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same sessions by `GRPOTrainer`'s own loss."""
    _, datasets, transformers = packages()
    from trl import GRPOConfig, GRPOTrainer

    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    folder = tiny_model("hermes-2-pro").write_folder(tmp_path / "tiny")
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    loop.reward = lambda text: sum(map(str.isalnum, text)) / max(len(text), 1)  # seldom 0
    means: list[float] = []

    def rewards(completions: Any, value: list[float], **_: Any) -> list[float]:
        means.append(sum(value) / len(value))
        return value

    with loop.gateway(folder, model) as loop.url:
        exec(loop.trl, vars(loop))
        prompts = [{"prompt": [{"role": "user", "content": asked}]} for asked in loop.QUESTIONS]
        more = arguments(tmp_path, per_device_train_batch_size=16, learning_rate=1e-2)
        trainer = GRPOTrainer(
            model=model,
            processing_class=transformers.AutoTokenizer.from_pretrained(folder),
            reward_funcs=rewards,
            train_dataset=datasets.Dataset.from_list(prompts * 8),
            args=GRPOConfig(**more, num_generations=8, lr_scheduler_type="constant"),
            rollout_func=loop.rollout_func,
        )
        losses = trained(trainer)
    assert len(losses) == len(means) == 3 and any(losses) and all(0 < mean <= 1 for mean in means)
