"""Twenty turns behind a completion server: the engine sees each id once, and all that it sampled is trained."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from completions import complete, served
from dialogues import TOOLS
from played import chat_of

OWN = Path(__file__).parents[1] / "templates_own"
CALL = '<tool_call>\n{"name":"get_weather","arguments":{"city":"Oslo %d"}}\n</tool_call><|im_end|>'


def test_an_engine_gets_only_what_it_has_not_seen() -> None:
    chat = chat_of(OWN / "qwen3.jinja")
    held: list[int] = []
    sampled: list[int] = []

    def engine(prompt: list[int], most: int, stops: Sequence[int]) -> tuple[list[int], list[float]]:
        assert prompt[: len(held)] == held, "the engine's cache is lost"
        ids = chat.tokenizer.encode(CALL % len(sampled), add_special_tokens=False).ids
        assert ids[-1] in stops and len(ids) <= most
        held[:] = prompt + ids
        sampled.extend(ids)
        return ids, [-0.5] * len(ids)

    rollout = chat.rollout([{"role": "user", "content": "Is it cold?"}], tools=TOOLS)
    with served(engine) as url:
        for turn in range(20):
            message = complete(url, rollout)
            assert message.complete and len(message.tool_calls) == 1
            if turn < 19:
                call = message.tool_calls[0].id
                rollout.append({"role": "tool", "tool_call_id": call, "content": f"{turn} degrees"})
    (sample,) = rollout.samples()
    assert sample.ids == held and sample.counted == len(sampled) and not rollout.breaks
    assert [id for id, mask in zip(sample.ids, sample.loss_mask, strict=True) if mask] == sampled
    assert [p for p, mask in zip(sample.logprobs, sample.loss_mask, strict=True) if mask] == [-0.5] * len(
        sampled
    )
