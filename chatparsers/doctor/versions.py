"""A model's chat templates, version by version: what is found of each, and what changed since the one before.

Models change their templates. A history is a folder ``DIR/MODEL/VERSION.jinja`` (``DIR/MODEL.jinja``: a model of one
version), or a JSON file ``{model: [versions]}``, whose versions are texts or ``{"version": …, "template": …}``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from ..chat.chat import Chat
from ..chat.load import load
from ..chat.record import differences
from ..detection.contest import in_two_turns, reads
from ..detection.shown import HISTORY, call_after_text, probes_of, several_calls
from ..errors import ChatParsersError, LoadError
from ..lazy import load_reference
from ..plain import one_line
from ..templates.probe.stand_ins import TOOLS, answer, ending_in
from ..tokens.files import read_text

_TALKS: tuple[tuple[list[dict[str, Any]], bool], ...] = (
    (HISTORY, False),
    (HISTORY, True),
    ([*HISTORY, answer(), *HISTORY], False),
    (ending_in("tool"), True),
)
"""The conversations whose prompts are compared with those of transformers, each without tools or with them."""
_LARGEST = 64_000_000
"""Bytes of a file of histories."""


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a model's template. ``changed``: what of the record differs from the version before it.
    ``messages``: how many messages the template renders; ``lost``: those that the format does not read back, white
    space around them aside. ``differ``: of how many prompts transformers makes another text; None where it is not
    installed. ``limits``: what detection has not proved. ``error``: why nothing could be found."""

    model: str
    version: str
    format: str = ""
    score: float = 0.0
    changed: tuple[str, ...] = ()
    messages: int = 0
    lost: tuple[str, ...] = ()
    differ: int | None = None
    limits: tuple[str, ...] = ()
    error: str = ""

    def __bool__(self) -> bool:
        return not (self.error or self.lost or self.differ)

    def to_dict(self) -> dict[str, Any]:
        """The row as plain values, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        told = [f"{self.messages - len(self.lost)} of {self.messages} messages back"]
        if self.error:
            told = [self.error]
        elif self.lost:
            told.append(f"not read: {', '.join(self.lost)}")
        if self.differ is not None and not self.error:
            told.append(
                f"{self.differ} prompts differ from transformers'"
                if self.differ
                else "prompts as transformers'"
            )
        if self.changed:
            told.append(f"changed: {', '.join(self.changed)}")
        return (
            f"{self.model} {self.version}: {self.format or 'no format'} {self.score:.1f}; {'; '.join(told)}"
        )


def versions(path: str) -> Iterator[Version]:
    """The rows of all histories at a path. Raises `LoadError` if there is none."""
    for model, history in _histories(Path(path)):
        before: Chat | None = None
        for version, source in history:
            row, chat = _row(model, version, source, before)
            before = chat or before
            yield row


def _row(model: str, version: str, source: str, before: Chat | None) -> tuple[Version, Chat | None]:
    try:
        chat = load(source, bos_token="<s>", eos_token="</s>")
        found, fmt, template = chat.detection, chat.format, chat.template()
        beside = call_after_text(template)
        probes = [*probes_of(template), *several_calls(template)]
        probes += [beside] if beside is not None and not in_two_turns(fmt, beside) else []
        lost = tuple(probe.what for probe in probes if not reads(fmt, probe, spaces=False))
        changed = () if before is None else _changed(before, chat)
        limits = tuple(limit.part for limit in found.limits)
        differ = _differ(chat)
    except ChatParsersError as error:
        return Version(model, version, error=one_line(str(error))[:200]), None
    name = found.name or ""
    return Version(model, version, name, found.score, changed, len(probes), lost, differ, limits), chat


def _changed(before: Chat, chat: Chat) -> tuple[str, ...]:
    """What of the record differs; the text alone if nothing does."""
    if before.template().source == chat.template().source:
        return ()
    found = tuple(
        name.replace("_", " ") for name in differences(asdict(before.record()), asdict(chat.record()))
    )
    return found or ("the text alone",)


def _differ(chat: Chat) -> int | None:
    """Of how many conversations transformers makes another prompt; None if it is not installed."""
    try:
        render_jinja_template = load_reference("transformers.utils.chat_template_utils:render_jinja_template")
    except ImportError:
        return None
    source, now = chat.template().source, datetime.now()

    def theirs(messages: list[dict[str, Any]], tools: Any) -> str | None:
        special = {"bos_token": "<s>", "eos_token": "</s>"}
        options = {"chat_template": source, "tools": tools, "add_generation_prompt": True, **special}
        try:
            return str(render_jinja_template([messages], **options)[0][0])
        except Exception:  # whatever a template and its sandbox raise
            return None

    def ours(messages: list[dict[str, Any]], tools: Any) -> Iterator[str]:
        """What `prepare` renders, and the same with the messages as they are, in no shape that the template wants."""
        with suppress(ChatParsersError):
            yield chat.prepare(messages, tools=tools, polyfills=False, now=now).prompt
        with suppress(ChatParsersError):
            template = chat.template(tools is not None)
            yield template.render_unshaped(messages, tools=tools, add_generation_prompt=True)

    asked = [(messages, TOOLS if tools else None) for messages, tools in _TALKS]
    made = ((theirs(*one), ours(*one)) for one in asked)
    return sum(
        text is not None and text not in mine for text, mine in made
    )  # what it refuses is not compared


def _histories(path: Path) -> Iterator[tuple[str, Iterable[tuple[str, str]]]]:
    """Each model with its versions, the oldest first."""
    if path.is_dir():
        found = {each.stem: [each] for each in sorted(path.glob("*.jinja"))}
        found |= {
            each.name: sorted(each.glob("*.jinja"), key=_order)
            for each in sorted(path.iterdir())
            if each.is_dir()
        }
        if not any(found.values()):
            raise LoadError(f"{path}: expected MODEL/VERSION.jinja in it, found no .jinja file")
        for model, files in found.items():
            yield model, ((file.stem, read_text(file)) for file in files)
        return
    try:
        data = json.loads(read_text(path, _LARGEST))
    except (ValueError, RecursionError) as error:
        raise LoadError(f"{path}: expected a folder, or JSON {{model: [versions]}}: {error}") from None
    if not isinstance(data, dict):
        raise LoadError(f"{path}: expected an object {{model: [versions]}}, found {type(data).__name__}")
    for model, listed in data.items():
        if not isinstance(listed, list):
            raise LoadError(f"{path}: {model}: expected a list of versions, found {type(listed).__name__}")
        yield model, [_version(path, model, number, each) for number, each in enumerate(listed, 1)]


def _version(path: Path, model: str, number: int, given: object) -> tuple[str, str]:
    if isinstance(given, str):
        return str(number), given
    if isinstance(given, Mapping) and isinstance(given.get("template"), str):
        return str(given.get("version", number)), given["template"]
    raise LoadError(f"{path}: {model}, version {number}: expected a template's text or {{version, template}}")


def _order(file: Path) -> list[tuple[int, str]]:
    """The order of versions: numbers count as such."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", file.stem)]
