"""What the tests of all hosts share: the formats, the request, and what every run must be."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
from making import KINDS, tool

import chatparsers
from chatparsers.testing.tiny import TinyModel, tiny_model

FORMATS = ("qwen3", "qwen3-coder", "hermes-2-pro", "gpt-oss", "lfm2")
RUNS = 20
MESSAGES = [{"role": "user", "content": "What is the weather in Oslo?"}]


TOOLS = [tool(name, *given, additionalProperties=False) for name, given in KINDS.items()]
_SCHEMAS = {tool["function"]["name"]: tool["function"]["parameters"] for tool in TOOLS}


@lru_cache(maxsize=16)
def tiny(name: str) -> TinyModel:
    """The tiny model of a format, with a template that shows the format by itself."""
    path = Path(__file__).parents[1] / "templates_own" / f"{name}.jinja"
    return tiny_model(name, template=path.read_text(encoding="utf-8"))


def host_tokenizers(folders: Any) -> Callable[[str], Any]:
    """Makes the tokenizer of a tiny model as hosts load it, each once. ``folders``: pytest's ``tmp_path_factory``."""
    import transformers

    @cache
    def loaded(name: str) -> Any:
        return transformers.AutoTokenizer.from_pretrained(tiny(name).write_folder(folders.mktemp(name)))

    return loaded


class Table(Counter[str]):
    """What became of the runs: ``runs``, ``complete``, ``valid``, ``equal``; and the first failures."""

    def __init__(self) -> None:
        super().__init__()
        self.failures: list[str] = []

    def add(self, message: chatparsers.Message, whole: chatparsers.Message, required: bool) -> None:
        """Counts a run. ``message`` was streamed in the host; ``whole`` is the parse of all its ids at once."""
        self["runs"] += 1
        invalid = [wrong for call in message.tool_calls if (wrong := wrong_in(call.name, call.arguments))]
        if required and not message.tool_calls:
            invalid.append("no call")
        self["complete"] += message.complete
        self["valid"] += not invalid
        self["equal"] += message == whole
        self["calls"] += len(message.tool_calls)
        if not message.complete or invalid or message != whole:
            shown = f"{message.complete=} {invalid} {message.diagnostics} …{message.text[-200:]!r}"
            self.failures.append(shown + ("" if message == whole else f"\nwhole: …{whole.text[-200:]!r}"))

    def check(self, label: str, runs: int) -> None:
        """Prints the row, and fails unless every run was complete, valid and equal."""
        print(
            f"\n{label}: "
            + ", ".join(f"{self[key]} {key}" for key in ("runs", "complete", "valid", "equal", "calls"))
        )
        assert not self.failures, f"{label}: {len(self.failures)} of {self['runs']}:\n" + "\n".join(
            self.failures[:3]
        )
        assert self["runs"] == self["complete"] == self["valid"] == self["equal"] == runs


def wrong_in(name: str, arguments: str) -> str | None:
    """What is wrong with a call; None if its arguments follow the schema of its tool."""
    try:
        jsonschema.validate(json.loads(arguments), _SCHEMAS[name])
    except (ValueError, KeyError, jsonschema.ValidationError) as error:
        return f"{name}: {arguments!r}: {str(error).splitlines()[0]}"
    return None


def chosen(mask: Any, scores: Any) -> int:
    """The id that is sampled under a mask of packed words."""
    allowed = np.unpackbits(mask.view(np.uint8), bitorder="little")[: len(scores)].astype(bool)
    return int(np.where(allowed, scores, -np.inf).argmax())


def draft_of(guide: chatparsers.Guide, scores: Any) -> list[int]:
    """What a draft model proposes under the grammar, an id for each row of ``scores``. It changes nothing."""
    fork, ids = guide.fork(), []
    mask = np.zeros((max(guide.size, scores.shape[1]) + 31) // 32, dtype=np.int32)
    for row in scores:
        if fork.ended:
            break
        fork.fill(mask)
        ids.append(chosen(mask, row))
        fork.feed(ids[-1])
    return ids
