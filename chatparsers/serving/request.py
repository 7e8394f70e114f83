"""A request of any of the three APIs, and the checks that its readers share.

The readers take what clients really send: they check each field that they read and leave other fields alone. A field
that asks for something that cannot be given (images, stored conversations) is an error, or dropped:
`chatparsers.serving.unsupported` decides. `chatparsers.serving.tools` reads the tools.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..answers.format import Turn
from ..chat.loading import REFERENCE
from ..templates.probe.dial import KINDS
from ..values.cut import cut_json
from .documents import document_text
from .errors import ApiError
from .fields import kind_of, mapping, sequence, string
from .images import Image
from .sealed import PLAIN, Seals
from .tools import Toolkit
from .unsupported import Drops

SAMPLING = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
    "seed",
)
_LOWEST = {"temperature": 0, "top_p": 0, "min_p": 0, "repetition_penalty": 0}
MAX_STOPS, LONGEST_STOP = 64, 1_000
LONGEST_EFFORT = 100


@dataclass(frozen=True, slots=True)
class Request:
    """What a request asks for.

    ``messages``, ``tools`` and ``loaded`` are as `Chat.prepare` takes them, OpenAI-shaped; `prepare` has its other
    arguments too.
    ``kept``: how many first messages are of a history that the server keeps.
    ``stops``: the client's own texts that end the answer. ``sampling``: numbers for the engine, under OpenAI's names
    and ``top_k``, ``min_p``, ``repetition_penalty``. ``include_usage``: the stream ends with the usage. ``toolkit``:
    how the API spells the tools. ``dropped``: what was left out of it. ``ignored``: fields that the API does not have,
    which may be misspelt. ``body`` is the request as it came.
    ``choices``: how many answers. ``logprobs``: how many of the likeliest tokens are said at each place, None if no log
    probabilities are. ``token_ids``: whether the ids of prompt and answer are given.
    ``early_arguments``: whether arguments are streamed before their call is whole, where the API asks (Anthropic's
    ``eager_input_streaming``). ``regions``: whether the parts of the model's text are given
    as it wrote them. ``images``: the images of the messages, which have only their places (`image_number`).
    ``max_calls``: the most calls of the answer. ``thinking_tokens``: how many tokens its thoughts may take together.
    None: any number.
    ``seals``: what seals and opens thoughts. ``hides_thoughts``: the answer has them sealed alone.
    ``keeps_thoughts``: those of earlier turns are wished for in the prompt, a hint.
    ``engine_fields``: ``min_tokens``, ``ignore_eos``, ``stop_token_ids`` and ``logit_bias``, as engines take them.
    """

    model: str
    messages: list[dict[str, Any]]
    kept: int = 0
    tools: list[dict[str, Any]] | None = None
    loaded: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] = "auto"
    parallel_tool_calls: bool = True
    response_format: dict[str, Any] | None = None
    thinking: bool | str | None = None
    effort: str | None = None
    template_kwargs: dict[str, Any] = field(default_factory=dict)
    continue_final_message: bool = False
    add_generation_prompt: bool = True
    stops: tuple[str, ...] = ()
    max_tokens: int | None = None
    sampling: dict[str, Any] = field(default_factory=dict)
    stream: bool = False
    include_usage: bool = False
    toolkit: Toolkit = field(default_factory=Toolkit)
    seals: Seals = PLAIN
    hides_thoughts: bool = False
    keeps_thoughts: bool = False
    dropped: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    choices: int = 1
    logprobs: int | None = None
    token_ids: bool = False
    early_arguments: bool = False
    regions: bool = False
    engine_fields: dict[str, Any] = field(default_factory=dict)
    images: tuple[Image, ...] = ()
    max_calls: int | None = None
    thinking_tokens: int | None = None
    body: Mapping[str, Any] = field(default_factory=dict)

    def begun_call(self, turn: Turn) -> str | None:
        """The id of the call that the answer finishes, as the client has it, for `Writer.begun_call`; None if it
        finishes none. ``turn``: of the answer."""
        calls = self.messages[-1].get("tool_calls") if self.continue_final_message else None
        if not calls:
            return None
        cut = cut_json(calls[-1]["function"]["arguments"]).open or turn.stream().state.kind == "call"
        found: str | None = calls[-1].get("id") if cut else None
        return found

    @property
    def prepare(self) -> dict[str, Any]:
        """The arguments of `Chat.prepare`: ``chat.prepare(**request.prepare)``."""
        return {
            "messages": self.messages,
            "tools": self.tools,
            "loaded": self.loaded,
            "tool_choice": self.tool_choice,
            "parallel_tool_calls": self.parallel_tool_calls,
            "response_format": self.response_format,
            "thinking": self.thinking,
            "effort": self.effort,
            "template_kwargs": self.template_kwargs or None,
            "continue_final_message": self.continue_final_message,
            "add_generation_prompt": self.add_generation_prompt,
            "max_calls": self.max_calls,
        }


def sampling(body: Mapping[str, Any]) -> dict[str, Any]:
    """The fields for the sampler, which must be numbers."""
    found: dict[str, Any] = {}
    for name in SAMPLING:
        value = body.get(name)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ApiError(f"expected a number, found {kind_of(value)}", param=name)
        if not _fits(value):
            raise ApiError("expected a number that is finite and, if it is whole, has 64 bits", param=name)
        if value < _LOWEST.get(name, value):
            raise ApiError(f"expected a number of at least {_LOWEST[name]}, found {value}", param=name)
        if name in ("top_k", "seed") and not isinstance(value, int):
            raise ApiError(f"expected a whole number, found {value}", param=name)
        found[name] = value
    return found


def stops(value: object, path: str) -> tuple[str, ...]:
    """The client's stops: a text or several."""
    if value is None:
        return ()
    listed = [value] if isinstance(value, str) else sequence(value, path, "a string or a list of them")
    if len(listed) > MAX_STOPS:
        raise ApiError(f"expected at most {MAX_STOPS} stops, found {len(listed)}", param=path)
    for index, stop in enumerate(listed):
        if not string(stop, f"{path}[{index}]"):
            raise ApiError("expected a text, found an empty one", param=f"{path}[{index}]")
        if len(stop) > LONGEST_STOP:
            said = f"expected a text of at most {LONGEST_STOP:,} characters, found {len(stop):,}"
            raise ApiError(said, param=f"{path}[{index}]")
    return tuple(listed)


def text_parts(
    value: object, path: str, kinds: tuple[str, ...], drops: Drops, *, images: bool = False
) -> str | list[dict[str, Any]]:
    """The text of a message: a string, or a list of parts. ``kinds``: the types of parts that hold text. ``images``:
    whether it may have images.

    A document that is text is its text. Any other part is refused or dropped.
    """
    if isinstance(value, str):
        return value
    parts = []
    for index, part in enumerate(sequence(value, path, "a string or a list of parts")):
        at = f"{path}[{index}]"
        if isinstance(part, str):
            parts.append({"type": "text", "text": part})
            continue
        kind = mapping(part, at).get("type")
        if kind == REFERENCE and images:
            parts.append(drops.loads(string(part.get("tool_name"), f"{at}.tool_name")))
            continue
        if kind == REFERENCE:
            text = f"[tool {string(part.get('tool_name'), f'{at}.tool_name')}]"
        elif kind in kinds:
            key = "refusal" if kind == "refusal" else "text"
            text = string(part.get(key), f"{at}.{key}")
        else:
            image = drops.image(part, at) if images else None
            if image is not None:
                parts.append(image)
                continue
            found = document_text(part, at)
            if found is None:
                parts += drops.part(kind, at, kinds)
                continue
            text = found
        parts.append({"type": "text", "text": text})
    return parts


def template_options(body: Mapping[str, Any], effort: object, path: str) -> dict[str, Any]:
    """The wish of a request for thoughts: ``thinking``, ``effort`` and ``template_kwargs`` of a `Request`.

    ``chat_template_kwargs``, ``enable_thinking`` and ``thinking`` are fields of one API or of other servers, which
    their users send to every API. ``effort``: the named effort at ``path``.
    """
    given = body.get("chat_template_kwargs")
    kwargs = {} if given is None else dict(mapping(given, "chat_template_kwargs"))
    named = None if effort is None else string(effort, path)
    if named is not None and len(named) > LONGEST_EFFORT:
        raise ApiError(
            f"expected a word such as 'low' or 'high', found {len(named):,} characters", param=path
        )
    thinking: bool | str | None = None
    if isinstance(body.get("enable_thinking"), bool):
        thinking = body["enable_thinking"]
    switch = mapping(body.get("thinking") or {}, "thinking").get("type")
    if switch is not None:
        if switch not in KINDS:
            said = f"expected 'enabled', 'disabled' or 'adaptive', found {switch!r:.60}"
            raise ApiError(said, param="thinking.type")
        thinking = {"enabled": True, "disabled": False}.get(switch, switch)
    if named == "none" and thinking is not True:
        thinking = False
    return {
        "thinking": thinking,
        "effort": None if named in ("", "none") else named,
        "template_kwargs": kwargs,
    }


def response_schema(value: object, path: str, named: object) -> dict[str, Any] | None:
    """The ``response_format`` of `Chat.prepare`. ``named``: the object that has a JSON Schema's name and schema."""
    if value is None:
        return None
    kind = mapping(value, path).get("type")
    if kind == "text":
        return None
    if kind == "json_object":
        return {"type": "json_object"}
    if kind in ("grammar", "regex", "choice") and path == "structured_outputs":
        return dict(mapping(value, path))
    if kind == "json_schema":
        named = named if isinstance(named, Mapping) else {}
        schema = named.get("schema")
        if not isinstance(schema, (Mapping, bool)):
            raise ApiError(f"expected a JSON Schema, found {kind_of(schema)}", param=f"{path}.schema")
        return {"type": "json_schema", "json_schema": {"name": named.get("name", "answer"), "schema": schema}}
    raise ApiError(
        f"expected 'text', 'json_object' or 'json_schema', found {kind!r}",
        param=f"{path}.type",
    )


def _fits(value: float) -> bool:
    """Whether engines can read a number: finite, and a whole one in 64 bits."""
    return -(2**63) <= value < 2**63 if isinstance(value, int) else math.isfinite(value)
