"""The forms of calls that a template's prompt describes to the model, and whether a format reads them.

A prompt may show a form in its instructions (``Respond in the format {"name": function name, "parameters": …}``) that
is not the one of the template's past calls, or where the template shows none. A model follows the prompt.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from ..answers.format import Format
from ..errors import ChatParsersError
from ..templates import Template
from ..templates.probe.differences import is_marker, units
from ..templates.probe.stand_ins import ARGUMENTS, NAME, TOOLS
from .limits import Limit
from .shown import CALL, prompt_of

_OBJECT = re.compile(
    r'\{\s*"(?P<name>name|function|function_name|tool|tool_name)"\s*:\s*[^{}\n]{1,60}?,'
    r'\s*"(?P<args>parameters|arguments|args|input|tool_input)"\s*:'
)
_PYTHON = re.compile(r"\[\w+\(\w+\s*=[^()\n]{1,80}\)")


def unread_forms(template: Template, fmt: Format) -> tuple[Limit, ...]:
    """A limit for each form of calls that the prompt describes and the format does not read."""
    if not fmt.features.tools:
        return ()
    prompt = prompt_of(template)
    return tuple(
        Limit("told form", f"the prompt tells to write calls as {shown}, which {fmt.name} does not read")
        for shown, text, own in _described(prompt)
        if not (_reads(fmt, text) or _describes(prompt, _written(fmt), own))
    )


def describes(template: Template, fmt: Format, least: int = 1) -> bool:
    """Whether the prompt shows the format's own words before a call's name, such as ``functools[`` or a marker, which
    have at least so many characters."""
    begun = _written(fmt).partition(NAME)[0].partition("{")[0]
    return len(begun) >= least and begun in re.sub(r"\s", "", prompt_of(template))


def _describes(prompt: str, written: str, own: str) -> bool:
    """Whether ``written`` is a call in the form ``own``, and the prompt has one of the markers before it, if any."""
    before, form, _ = written.partition(own)
    markers = [unit for unit in units(before) if is_marker(unit)]
    return bool(form) and (not markers or any(marker in prompt for marker in markers))


def _described(prompt: str) -> Iterator[tuple[str, str, str]]:
    """Each form as the prompt shows it, a call in it, and the text by which a call in this form is known."""
    found = next((found for found in _OBJECT.finditer(prompt) if NAME not in found[0]), None)
    if found is not None:
        call = json.dumps({found["name"]: NAME, found["args"]: ARGUMENTS})
        yield f"{found[0]} …}}", call, re.sub(r"\s", "", call[: call.index("{", 1)])
    python = _PYTHON.search(prompt)
    if python is not None:
        written = ", ".join(f"{key}={value!r}" for key, value in ARGUMENTS.items())
        yield f"{python[0]}]", f"[{NAME}({written})]", f"{NAME}({next(iter(ARGUMENTS))}="


def _reads(fmt: Format, text: str) -> bool:
    calls = fmt.bind(tools=TOOLS).parse(text).tool_calls
    return [
        (call.name, call.arguments and json.loads(call.arguments)) for call in calls if call.complete
    ] == [(NAME, ARGUMENTS)]


def _written(fmt: Format) -> str:
    """A call as the format writes it, without white space."""
    try:
        text = fmt.render({"role": "assistant", "content": "", "tool_calls": [CALL]}, TOOLS)
    except ChatParsersError:
        return ""
    return re.sub(r"\s", "", text)
