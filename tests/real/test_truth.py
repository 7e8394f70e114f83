"""The rows of a session with a real engine: the engine, asked again with a row's ids, gives each sampled id the same
probability. A wrong id, a wrong order or a wrong mask would give others."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import fmean
from typing import Any

import httpx2
import pytest

PLAYERS = ("Ada", "Bo", "Cleo")
LIKELIEST = 300
"""How many ids the engine is asked for at each place: one that is less likely is not compared."""
LEFT_OUT = 8
"""How many ids before the first sampled one the control lacks: the header of the answer, and what ends the message
before it. One id less is not always seen: the model is often as sure of its words without it."""
TOOL = {
    "type": "function",
    "function": {
        "name": "score_of",
        "description": "The score of a player.",
        "parameters": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
    },
}


def ask(base: str) -> None:
    """A few turns, with the results of what calls there are."""
    import openai

    messages: list[Any] = [{"role": "user", "content": "What is the score of Ada?"}]
    with openai.OpenAI(base_url=base, api_key="none", max_retries=0, timeout=600) as client:
        for player in PLAYERS:
            found = client.chat.completions.create(
                model="x", messages=messages, tools=[TOOL], temperature=1, seed=7, max_tokens=40
            )
            message = found.choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            results = [
                {"role": "tool", "tool_call_id": call.id, "content": "12"}
                for call in message.tool_calls or ()
            ]
            messages += results or [{"role": "user", "content": f"And of {player}?"}]


def said_again(engine: str, ids: list[int], place: int) -> float | None:
    """What the engine says now of the id at a place; None if it is not among the likeliest there."""
    asked = {
        "prompt": ids[:place],
        "n_predict": 1,
        "n_probs": LIKELIEST,
        "temperature": 1,
        "cache_prompt": True,
    }
    answer = httpx2.post(f"{engine}/completion", json=asked, timeout=600, trust_env=False).json()
    likeliest = answer["completion_probabilities"][0]["top_logprobs"]
    return next((one["logprob"] for one in likeliest if one["id"] == ids[place]), None)


def gaps(engine: str, row: dict[str, Any]) -> list[float]:
    """How far each sampled id's logprob is from what the engine says now; a row whose ids are all unlikely has none."""
    places = [place for place, mask in enumerate(row["loss_mask"]) if mask]
    now = [said_again(engine, row["input_ids"], place) for place in places]
    return [abs(row["logprobs"][at] - one) for at, one in zip(places, now, strict=True) if one is not None]


@pytest.mark.usefixtures("openai")
def test_the_engine_says_the_same_again(running: Any, gguf: Path, tmp_path: Path) -> None:
    from processes import free_port, process

    url = f"http://127.0.0.1:{(port := free_port())}"
    command = [
        *(sys.executable, "-m", "chatparsers", "serve", "--upstream", running.engine, "--port", str(port)),
        *("--upstream-kind", "llama-server", "--model", str(gguf), "--rollouts", str(tmp_path / "runs")),
    ]
    with process(command, f"{url}/ready", tmp_path / "log"):
        ask(f"{url}/sessions/s/v1")
        told = httpx2.get(f"{url}/sessions/s", timeout=60, trust_env=False).json()
        lines = httpx2.get(f"{url}/sessions/s/samples", timeout=60, trust_env=False).text.splitlines()
    rows = [json.loads(line) for line in lines]
    assert told["counted"] == told["sampled"] == sum(sum(row["loss_mask"]) for row in rows) > 20
    found = [gap for row in rows for gap in gaps(running.engine, row)]
    wrong = dict(rows[-1])
    first = wrong["loss_mask"].index(1)
    rest = slice(LEFT_OUT, None)
    wrong["input_ids"] = [*wrong["input_ids"][: first - LEFT_OUT], *wrong["input_ids"][first:]]
    wrong |= {"loss_mask": wrong["loss_mask"][rest], "logprobs": wrong["logprobs"][rest]}
    control = gaps(running.engine, wrong)
    shown = f"{fmean(found):.3f} (worst {max(found):.3f}); with {LEFT_OUT} ids left out {fmean(control):.3f}"
    print(f"\n{len(found)} of {told['sampled']} ids, mean gap {shown} (worst {max(control):.3f})")
    assert len(found) > told["sampled"] * 0.8
    assert fmean(found) < 0.05 and max(found) < 0.5, "the engine rounds otherwise for batches of other sizes"
    assert fmean(control) > 5 * fmean(found) and max(control) > 2 * max(found)
