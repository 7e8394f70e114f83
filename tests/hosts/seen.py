"""What images must become on their way through the gateway into a host that sees."""

from __future__ import annotations

from typing import Any

from tinies import TOOLS
from visions import BLUE, RED, asked, say, seeing


def check_images(api: str, gateway: Any, engine: Any, images: list[Any]) -> None:
    """Two images reach the host in their order and at their places, streamed and whole."""
    for stream in (True, False):
        body = {**asked(api, "Not <|pad|>:", RED, "or", BLUE), "temperature": 0.5, "stream": stream}
        answer = say(gateway, api, {**body, "max_tokens": 30} if api != "responses" else body)
        assert answer.status_code == 200, answer.text
        assert [image.size for image in images] == [(28, 28), (30, 20)]
        assert (
            gateway.whole.text and engine.seen.skip_special_tokens is False and engine.seen.temperature == 0.5
        )
        assert set(engine.seen.stop_token_ids) == set(seeing().eos_ids)
        assert engine.prompt.count(seeing().tokenizer.token_to_id("<|pad|>")) == 2


def check_images_and_a_grammar(gateway: Any) -> None:
    """An answer to an image that must be a call is one."""
    body = {**asked("chat", "Weather?", RED), "tools": TOOLS, "tool_choice": "required", "max_tokens": 2500}
    answer = say(gateway, "chat", body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["choices"][0]["message"]["tool_calls"]
