"""The shapes that are known, each with its source, and how one is found for a row. The first that fits is taken.

A shape fits by the names of a row's columns and by what they contain, so every row is judged by itself: batches of
any size give the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...answers.format import Format
from ...registry import get_format
from .blocks import has_blocks, read_anthropic, read_gemini
from .pairs import read_alpaca, read_bfcl, read_glaive, read_old_swift, read_prompt, read_query, read_xlam
from .steps import read_adp, read_atif
from .talk import Talk, Unreadable
from .tools import openai_tools, tools_in_text
from .turns import Turns, content_of, read_system, read_turns
from .wires import GLAIVE, OPEN_THOUGHTS, TOOLACE

Row = dict[str, Any]
_HUB = "https://huggingface.co/datasets/"
_PLAIN = Turns()
_ADP = "https://github.com/neulab/agent-data-protocol"


@dataclass(frozen=True)
class Shape:
    """A shape of rows. ``columns``: those that a row has. ``fits``: what else must be true of it. ``turns``: the
    columns of which the first holds the turns. ``reads`` takes what it reads out of the row; what is left is kept."""

    name: str
    source: str
    columns: frozenset[str]
    fits: Callable[[Row], bool]
    reads: Callable[[Row, Talk, Turns], None]
    wire: Callable[[], Format | None] = lambda: None
    how: Turns = _PLAIN

    def read(self, row: Row, talk: Talk, wire: Format | None, roles: Mapping[str, str]) -> None:
        """Makes the conversation. ``wire``: the format of the assistants' texts, if the shape does not say it.
        ``roles``: names of roles beside the usual ones. Raises `Unreadable`."""
        self.reads(row, talk, replace(self.how, wire=self.wire() or wire, roles={**self.how.roles, **roles}))


TURNS = ("messages", "conversations", "trajectory", "traj", "conversation")
"""The columns that may hold the turns; the first that is there does."""


def turns_of(row: Mapping[str, Any]) -> Any:
    """The turns of a row, as data; None if it has none."""
    for name in TURNS:
        if row.get(name) is not None:
            return _data(row[name])
    return None


def _data(value: Any) -> Any:
    if isinstance(value, str):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return None
    return value


def _first(row: Row) -> Mapping[str, Any]:
    turns = turns_of(row)
    first = turns[0] if isinstance(turns, list) and turns else {}
    return first if isinstance(first, Mapping) else {}


def _any_turn(row: Row, fits: Callable[[Mapping[str, Any]], bool]) -> bool:
    turns = turns_of(row)
    return isinstance(turns, list) and any(isinstance(turn, Mapping) and fits(turn) for turn in turns)


def _roles(row: Row) -> set[str]:
    turns = turns_of(row)
    found = turns if isinstance(turns, list) else []
    return {str(turn.get("role", turn.get("from"))) for turn in found if isinstance(turn, Mapping)}


def _texts(row: Row) -> str:
    turns = turns_of(row)
    found = turns if isinstance(turns, list) else []
    return "\n".join(
        text
        for turn in found
        if isinstance(turn, Mapping)
        for text in (turn.get("content", turn.get("value")),)
        if isinstance(text, str)
    )


def _tools_first(*names: str) -> Callable[[Row, Talk, Turns], None]:
    """A reader of turns whose tools are in the first of these columns."""

    def read(row: Row, talk: Talk, how: Turns) -> None:
        for name in names:
            if row.get(name) not in (None, "", []):
                talk.tools = openai_tools(row.pop(name))
                break
            row.pop(name, None)
        system = row.pop("system", None)
        if system:
            read_system(talk, content_of(system))
        name = next(name for name in TURNS if row.get(name) is not None)
        read_turns(row.pop(name), talk, how)

    return read


_read = _tools_first("tools")


def _prose_tools(row: Row, talk: Talk, how: Turns) -> None:
    _read(row, talk, how)
    if not talk.tools:
        talk.lose("names-in-prose")


def _smoltalk(row: Row, talk: Talk, how: Turns) -> None:
    kwargs = row.get("chat_template_kwargs") or {}
    tools = kwargs.get("xml_tools") or kwargs.get("python_tools")
    if tools:
        talk.tools = openai_tools(tools)
    _read(row, talk, how)


def _olmo() -> Format:
    return get_format("olmo-3")


def _always(row: Row) -> bool:
    return True


def _toolace(row: Row) -> bool:
    return not row.get("tools") and bool(tools_in_text(str(row.get("system") or "")))


def _hermes(row: Row) -> bool:
    text = _texts(row)
    return "from" in _first(row) and "<tools>" in text


def _dolci(row: Row) -> bool:
    return _any_turn(row, lambda turn: bool(turn.get("function_calls") or turn.get("functions")))


def _shape(
    name: str,
    source: str,
    columns: str,
    fits: Callable[[Row], bool] = _always,
    reads: Callable[[Row, Talk, Turns], None] = _read,
    wire: Callable[[], Format | None] = lambda: None,
    how: Turns = _PLAIN,
) -> Shape:
    return Shape(name, source, frozenset(columns.split()), fits, reads, wire, how)


def _classes(row: Row) -> bool:
    content = _data(row["content"])
    return isinstance(content, list) and any(
        isinstance(step, Mapping) and "class_" in step for step in content
    )


def _sources(row: Row) -> bool:
    steps = _data(row["steps"])
    return isinstance(steps, list) and any(isinstance(step, Mapping) and "source" in step for step in steps)


def _anthropic(row: Row, talk: Talk, how: Turns) -> None:
    read_anthropic(row, talk)


def _gemini(row: Row, talk: Talk, how: Turns) -> None:
    read_gemini(row, talk)


def _adp(row: Row, talk: Talk, how: Turns) -> None:
    read_adp(row, talk)


def _atif(row: Row, talk: Talk, how: Turns) -> None:
    read_atif(row, talk)


def _paired(row: Row) -> bool:
    return isinstance(row.get("conversation"), list) and "human" in _first(row)


SHAPES: tuple[Shape, ...] = (
    _shape("adp", f"{_ADP}/tree/main/schema", "content", _classes, _adp),
    _shape("atif", "https://github.com/laude-institute/harbor", "steps", _sources, _atif),
    _shape("gemini", "https://ai.google.dev/api/caching#Content", "contents", _always, _gemini),
    _shape("xlam", f"{_HUB}Salesforce/xlam-function-calling-60k", "query answers tools", _always, read_xlam),
    _shape(
        "bfcl",
        f"{_HUB}gorilla-llm/Berkeley-Function-Calling-Leaderboard",
        "question function",
        reads=read_bfcl,
    ),
    _shape(
        "glaive",
        f"{_HUB}glaiveai/glaive-function-calling-v2",
        "system chat",
        reads=read_glaive,
        wire=lambda: GLAIVE,
    ),
    _shape("toolace", f"{_HUB}Team-ACE/ToolACE", "system conversations", _toolace, wire=lambda: TOOLACE),
    _shape(
        "dolci",
        f"{_ADP}/tree/main/datasets/dolci_instruct_sft_tool_use",
        "messages",
        _dolci,
        wire=_olmo,
        how=Turns(bare_calls=get_format("olmo-3")),
    ),
    _shape(
        "toucan",
        f"{_HUB}Agent-Ark/Toucan-1.5M",
        "messages available_tools",
        reads=_tools_first("available_tools", "tools"),
    ),
    _shape(
        "swe-agent",
        f"{_HUB}nebius/SWE-agent-trajectories",
        "trajectory",
        lambda row: "ai" in _roles(row),
        reads=_prose_tools,
    ),
    _shape(
        "swe-smith",
        f"{_ADP}/tree/main/datasets/SWE-smith_5kTrajectories",
        "messages instance_id traj_id",
        reads=_prose_tools,
        how=Turns(observations=True),
    ),
    _shape("swe-gym", f"{_ADP}/tree/main/datasets/SWE-Gym_OpenHands-Sampled-Trajectories", "messages run_id"),
    _shape("swe-rebench", f"{_HUB}nebius/SWE-rebench-openhands-trajectories", "trajectory trajectory_id"),
    _shape(
        "open-swe-traces",
        f"{_HUB}nvidia/Open-SWE-Traces",
        "tools resolved",
        lambda row: turns_of(row) is not None,
    ),
    _shape("tau-bench", "https://github.com/sierra-research/tau-bench", "traj task_id", reads=_prose_tools),
    _shape(
        "open-thoughts",
        f"{_HUB}open-thoughts/OpenThoughts-114k",
        "conversations",
        lambda row: "<|begin_of_thought|>" in _texts(row),
        wire=lambda: OPEN_THOUGHTS,
    ),
    _shape("hermes", f"{_HUB}NousResearch/hermes-function-calling-v1", "conversations", _hermes),
    _shape(
        "apigen-mt",
        f"{_HUB}Salesforce/APIGen-MT-5k",
        "conversations tools system",
        lambda row: "function_call" in _roles(row),
    ),
    _shape(
        "agent-instruct",
        f"{_ADP}/tree/main/datasets/agenttuning_os",
        "conversations",
        lambda row: _any_turn(row, lambda turn: "loss" in turn),
    ),
    _shape("ms-swift-old", "https://github.com/modelscope/ms-swift", "conversation", _paired, read_old_swift),
    _shape("sharegpt", "https://github.com/hiyouga/LLaMA-Factory/blob/main/data/README.md", "conversations"),
    _shape(
        "nemotron",
        f"{_HUB}nvidia/Llama-Nemotron-Post-Training-Dataset",
        "uuid messages",
        lambda row: "generator" in row or "reasoning" in row or "category" in row,
    ),
    _shape(
        "anthropic",
        "https://docs.anthropic.com/en/api/messages",
        "messages",
        lambda row: has_blocks(_data(row["messages"])),
        _anthropic,
    ),
    _shape("tulu", f"{_HUB}allenai/tulu-3-sft-mixture", "messages source id", lambda row: "tools" not in row),
    _shape(
        "ms-swift",
        "https://github.com/modelscope/ms-swift/blob/main/docs/source_en/Customization/Custom-dataset.md",
        "messages",
        lambda row: bool({"tool_call", "tool_response"} & _roles(row)),
    ),
    _shape("openai", "https://platform.openai.com/docs/guides/fine-tuning", "messages"),
    _shape("trajectory", f"{_ADP}/tree/main/datasets", "trajectory"),
    _shape("ms-swift-query", "https://github.com/modelscope/ms-swift", "query response", reads=read_query),
    _shape("alpaca", "https://github.com/tatsu-lab/stanford_alpaca", "instruction output", reads=read_alpaca),
    _shape(
        "prompt-completion",
        "https://huggingface.co/docs/trl/dataset_formats",
        "prompt completion",
        reads=read_prompt,
    ),
)
"""The shapes, the special ones before the general ones."""


def shape_of(row: Row) -> Shape | None:
    """The first shape that a row fits; None if it fits none."""
    present = {name for name, value in row.items() if value is not None}
    for shape in SHAPES:
        if shape.columns <= present and shape.fits(row):
            return shape
    return None


def named_shape(name: str) -> Shape:
    """The shape of that name. Raises `Unreadable` for an unknown name."""
    for shape in SHAPES:
        if shape.name == name:
            return shape
    raise Unreadable(f"no shape is named {name!r}: known are {', '.join(shape.name for shape in SHAPES)}")
