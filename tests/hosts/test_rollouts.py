"""Rollouts of a tiny model of transformers: twenty turns, in the process and behind a server; then it is trained."""

from __future__ import annotations

import copy
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tinies import MESSAGES, TOOLS, tiny

import chatparsers

transformers = pytest.importorskip(
    "transformers", reason="transformers is not installed: tests/hosts/install transformers"
)
torch = pytest.importorskip("torch", reason="torch is not installed: tests/hosts/install transformers")
pytest.importorskip("safetensors", reason="safetensors is not installed")
if not hasattr(transformers, "__version__"):
    pytest.skip("transformers is a stand-in here", allow_module_level=True)

sys.path.insert(0, str(Path(__file__).parents[1] / "chat"))

from completions import complete, served  # noqa: E402

from chatparsers.adapters.transformers import TurnMask  # noqa: E402

torch.set_num_threads(1)
TURNS = 20


@pytest.mark.parametrize("behind_a_server", [False, True])
@pytest.mark.parametrize("name", ["qwen3", "gpt-oss"])
def test_twenty_turns_are_trained(name: str, behind_a_server: bool, tmp_path: Path) -> None:
    folder = tiny(name).write_folder(tmp_path / name)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    chat = chatparsers.load(folder)
    torch.manual_seed(3)
    # gpt-oss shows no thought of earlier turns, and an answer that 300 ids cut short ends in one.
    rollout = chat.rollout(MESSAGES, tools=TOOLS, tool_choice="required", history="exact")
    held: list[int] = []

    def engine(prompt: list[int], most: int, stops: Sequence[int]) -> tuple[list[int], list[float]]:
        assert prompt[: len(held)] == held
        ids = torch.tensor([prompt])
        out = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            logits_processor=[TurnMask(rollout.turn)],
            eos_token_id=list(stops),
            max_new_tokens=most,
            do_sample=True,
            output_scores=True,
            return_dict_in_generate=True,
        )
        new = out.sequences[0, len(prompt) :]
        scores = torch.stack(out.scores).squeeze(1).log_softmax(-1)
        held[:] = out.sequences[0].tolist()
        return new.tolist(), scores.gather(1, new[:, None])[:, 0].tolist()

    def played(url: str | None) -> None:
        for turn in range(TURNS):
            if url is not None:
                message = complete(url, rollout)
            else:
                ids, logprobs = engine(rollout.ids, 300, rollout.turn.stop_ids)
                message = rollout.sampled(ids, logprobs)
            if turn + 1 < TURNS:
                results = [
                    {"role": "tool", "tool_call_id": call.id, "name": call.name, "content": f"{turn} degrees"}
                    for call in message.tool_calls
                ]
                rollout.append(*results or MESSAGES)

    if behind_a_server:
        with served(engine) as url:
            played(url)
    else:
        played(None)
    samples = rollout.samples()
    assert not rollout.breaks and [sample.ids for sample in samples] == [held]
    mask = torch.tensor(samples[0].loss_mask[1:]).bool()
    assert mask.sum() == samples[0].counted
    labels = torch.tensor(samples[0].labels())
    others = torch.where(labels == -100, torch.tensor(samples[0].ids), -100)
    twin = copy.deepcopy(model)
    before, loss, reached, after = trained(model, samples[0].ids, labels)
    *_, other = trained(twin, samples[0].ids, others)
    on, off = ([losses[which].mean().item() for losses in (before, after, other)] for which in (mask, ~mask))
    print(f"\n{name}, {len(mask)} ids, {mask.sum()} counted: on the mask, off it: {on}, {off}")
    # The loss is that of the mask's ids alone, and it changes the model only by them.
    assert loss == pytest.approx(on[0], abs=1e-3) and torch.equal(reached, mask)
    assert on[1] < 0.8 * on[0]
    # An untrained model also learns what both have in common. A twin that is trained on all other ids is the measure.
    assert on[1] < on[2] and off[1] > off[2]


def trained(model: Any, sampled: list[int], labels: Any) -> tuple[Any, float, Any, Any]:
    """The loss of each id before ten steps; that of the first step, and which ids it reaches; and the loss of each id
    afterwards."""
    ids = torch.tensor([sampled])
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)

    def losses() -> Any:
        with torch.no_grad():
            logits = model(input_ids=ids).logits[0, :-1]
        return torch.nn.functional.cross_entropy(logits, ids[0, 1:], reduction="none")

    before = losses()
    first: Any = None
    for _ in range(10):
        optimizer.zero_grad()
        out = model(input_ids=ids, labels=labels[None])
        out.logits.retain_grad()
        out.loss.backward()
        optimizer.step()
        first = first or out
    return before, first.loss.item(), first.logits.grad[0, :-1].abs().sum(-1) > 0, losses()
