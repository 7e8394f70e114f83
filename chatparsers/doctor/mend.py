"""Mends of a template, each proved by the checks that found the fault.

Strategy. A candidate is a small edit of the template's source: a condition that always or never holds, arguments that
are written as text where they are text, an end token after an answer, tools told in the system text, generation tags
around what the model writes. Each candidate is checked anew. It is taken if the finding is gone, no check finds more
than before, every word of a few conversations that came out still comes out, the format still reads the template's
own answers, and the changed template alone still tells as much of its format. So a mend is never believed from the
source alone, and one that cannot be proved is not written.
"""

from __future__ import annotations

import difflib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from ..chat.chat import Chat
from ..errors import ChatParsersError
from ..templates.rewrite.declared import declared
from ..templates.rewrite.polyfills import describe
from .check import examined
from .generation import with_tags
from .report import Report
from .stops import folder_of, naming_stop
from .subject import TOOLS, Subject, answer, call, result, unasked_headers, user, with_prompt, with_source

_CANDIDATES = 80
"""How many edits are tried for one finding."""
_ARGUMENTS = re.compile(r"([\w.]+(?:\['\w+'\])*[.'\[]+arguments(?:'\])?)\s*\|\s*tojson(?:\([^)]*\))?")
_CONTENT = re.compile(r"(?<!set )\b\w+(?:\.content\b|\[['\"]content['\"]\])(?!\s*=[^=])")
_IF = re.compile(r"\{%-?\s*(?:el)?if\s+(.*?)\s*-?%\}", re.DOTALL)
_CONVERSATIONS: list[tuple[list[dict[str, Any]], tuple[str, ...]]] = [
    (
        [
            {"role": "system", "content": "Aword"},
            user("Bword"),
            answer("Cword"),
            user("Dword"),
            answer("Eword"),
        ],
        ("Aword", "Bword", "Cword", "Dword", "Eword"),
    ),
    (
        [user("Aword"), call({"city": "Bword"}), result("Cword"), answer("Dword"), user("Eword")],
        ("Aword", "check_weather", "Bword", "Cword", "Dword", "Eword"),
    ),
    ([user("Aword"), answer("Bword", "Cword")], ("Aword", "Bword", "Cword")),
    (
        [user("Aword"), call({"city": "Bword"}, {"city": "Cword"}), result("D"), result("E", 1)],
        ("Bword", "Cword"),
    ),
]

_FINDERS = {
    "not-append-only": ("append-only",),
    "no-generation-tags": ("masks",),
    "generation-tags-wrong": ("masks",),
    "no-generation-prompt": ("prompt",),
}
"""The cheapest check that finds a code: it is asked first."""


@dataclass(frozen=True, slots=True)
class Mend:
    """A proved mend: the code of the finding that it removes, the reason, and the file's text before it and after."""

    code: str
    reason: str
    file: str
    before: str
    text: str


def mends(chat: Chat, report: Report) -> Iterator[Mend]:
    """The mends that are known and proved, each on top of those before it."""
    if not chat.files.templates:
        return
    for code in dict.fromkeys(finding.code for finding in report.findings):
        for reason, text in _edits(code, chat):
            changed = _mended(chat, text)
            if changed is not None and _better(chat, changed, code):
                yield Mend(code, reason, _template_file(chat), chat.template().source, text)
                chat = changed
                break
    yield from _stops(chat, report)


def _template_file(chat: Chat) -> str:
    """The name of the file in which a mended template is written: in a model's folder, that which hosts read there."""
    name = chat.files.template_name() or "default"
    if name == "default" and folder_of(chat.files) is not None:
        return "chat_template.jinja"
    return f"{name}.jinja"


def _edits(code: str, chat: Chat) -> Iterator[tuple[str, str]]:
    """Candidates against a finding: a reason, and the whole new source."""
    source = chat.template().source
    if code == "arguments-escaped-twice":
        for found in _ARGUMENTS.finditer(source):
            kept = f"({found[1]} if {found[1]} is string else {found[0]})"
            yield "arguments that are text are written as they were given", _put(source, found.span(), kept)
    elif code == "loses-null-content":
        reason = "content that is null is written as no text"
        for found in _CONTENT.finditer(source):
            yield reason, _put(source, found.span(), f"({found[0]} or '')")
        yield reason, _CONTENT.sub(r"(\g<0> or '')", source)
    elif code == "stop-missing" and chat.files.eos_token:
        for found in re.finditer(r"(message\.content|message\['content'\])(?=[^}]*\}\})", source):
            yield (
                "the end token stands after an answer",
                _put(
                    source,
                    found.span(),
                    f"{found[1]} + (eos_token if message['role'] == 'assistant' else '')",
                ),
            )
    elif code == "loses-tools":
        yield from _tools_in_system(chat, source)
    elif code == "no-generation-prompt":
        for header in unasked_headers(Subject(chat)):
            for text in with_prompt(source, header):
                yield "the header of an answer stands at the end of the prompt", text
    elif code in ("no-generation-tags", "generation-tags-wrong"):
        made = with_tags(chat)
        if made is not None:
            yield "generation tags stand around what the model writes, and nothing else", made
    elif code == "not-append-only":
        conditions = list(_IF.finditer(source))[:_CANDIDATES]
        less = [(found, one) for found in conditions for one in _weaker(found[1])]
        fixed = [(found, one) for found in conditions for one in ("true", "false")]
        for found, one in less + fixed:
            before, after = (" ".join(text.split()) for text in (found[1], one))
            reason = f"`{before}` is `{after}`: history is written as it was generated"
            yield reason, _put(source, found.span(1), one)


def _weaker(condition: str) -> Iterator[str]:
    """The condition without one of the parts that ``and`` joins."""
    parts, depth, begin = [], 0, 0
    for token in re.finditer(r"[()\[\]]|\b(?:and|or|if)\b", condition):
        if depth == 0 and token[0] in ("or", "if"):
            return
        if depth == 0 and token[0] == "and":
            parts.append(condition[begin : token.start()].strip())
            begin = token.end()
        depth += (token[0] in "([") - (token[0] in ")]")
    if parts:
        parts.append(condition[begin:].strip())
        for left_out in range(len(parts)):
            yield " and ".join(part for number, part in enumerate(parts) if number != left_out)


def _tools_in_system(chat: Chat, source: str) -> Iterator[tuple[str, str]]:
    """Tools written into the system text, in the words of the polyfill."""
    parts = describe(TOOLS, chat.syntax).split(declared(TOOLS[0]["function"], "json"))
    if len(parts) != 2:
        return
    one = "(tool.function if tool.function is defined else tool) | tojson"
    before, after = (json.dumps(part, ensure_ascii=False) for part in parts)
    told = (
        "{%- if tools %}{%- set told = namespace(text='') %}{%- for tool in tools %}"
        f"{{%- set told.text = told.text + ('' if loop.first else '\\n') + ({one}) %}}{{%- endfor %}}"
        f"{{%- set told.text = {before} + told.text + {after} %}}"
        "{%- if messages and messages[0]['role'] == 'system' %}"
        "{%- set first = dict(messages[0], content=messages[0]['content'] + '\\n\\n' + told.text) %}"
        "{%- set messages = [first] + messages[1:] %}"
        "{%- else %}{%- set messages = [{'role': 'system', 'content': told.text}] + messages %}{%- endif %}{%- endif %}"
    )
    yield "tools are told in the system text", told + source


def _put(source: str, span: tuple[int, int], text: str) -> str:
    return source[: span[0]] + text + source[span[1] :]


def _mended(chat: Chat, source: str) -> Chat | None:
    """The same model with another template; None if it is none, or a template that writes something wrong."""
    changed = with_source(chat, source, chat.format)
    try:
        changed.prepare([{"role": "user", "content": "Hello"}])
    except ChatParsersError:
        return None
    return changed


def _better(chat: Chat, changed: Chat, code: str) -> bool:
    """Whether the finding is gone, and no other check finds more."""
    if _counted(changed, _FINDERS.get(code, ("arguments", "loses", "ends")))[code]:
        return False
    before, after = _counted(chat, ()), _counted(changed, ())
    return (
        not after[code]
        and all(after[other] <= before[other] for other in after)
        and _words(chat) <= _words(changed)
        and _doubts(changed) <= _doubts(chat)
    )


@lru_cache(maxsize=4)
def _words(chat: Chat) -> set[tuple[int, str]]:
    """The words of a few conversations that the template shows, and those after which the next one comes in order."""
    model = Subject(chat)
    shown: set[tuple[int, str]] = set()
    for number, (messages, words) in enumerate(_CONVERSATIONS):
        text = model.tried(messages, tools=True) or ""
        shown |= {(number, word) for word in words if word in text}
        places = [text.find(word) for word in words]
        shown |= {
            (number, f"{a} {b}") for (a, x), (b, y) in pairwise(zip(words, places, strict=True)) if 0 <= x < y
        }
    return shown


@lru_cache(maxsize=4)
def _counted(chat: Chat, checks: tuple[str, ...]) -> Counter[str]:
    # The format is the chat's own in both, so that only the template differs.
    named = Chat._made(chat.files, tokenizer=chat.tokenizer, format=chat.format, limits=chat.limits)
    return Counter(finding.code for finding in examined(named, only=checks).findings)


@lru_cache(maxsize=4)
def _doubts(chat: Chat) -> Counter[str]:
    """What is found of the format if only the files tell it, as for a user who loads the mended model."""
    alone = Chat._made(chat.files, tokenizer=chat.tokenizer, limits=chat.limits)
    return Counter(finding.code for finding in examined(alone, only=("format",)).findings)


def _stops(chat: Chat, report: Report) -> Iterator[Mend]:
    """The model's JSON files with the stop that the template writes, in each that names another."""
    code = next((code for code in ("stop-differs", "stop-config-differs") if code in report.codes()), None)
    made = None if code is None else naming_stop(chat)
    if code is None or made is None:
        return
    changed, stop, texts = made
    if _better(chat, changed, code):
        for name, (before, text) in texts.items():
            yield Mend(code, f"{stop} is named as an end", name, before, text)


def diff(before: str, after: str, name: str) -> str:
    """The change as a unified diff."""
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{name}", f"b/{name}"
    )
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def refuse_files(folder: Path, names: Iterable[str]) -> None:
    """Raises FileExistsError for a file that is there: nothing is overwritten."""
    for name in names:
        if (folder / name).exists():
            raise FileExistsError(17, "is there already, and is not overwritten", str(folder / name))


def written_to(folder: Path, found: Sequence[Mend]) -> list[Path]:
    """Writes each file in its last state. Raises FileExistsError for a file that is there."""
    last = {mend.file: mend.text for mend in found}
    folder.mkdir(parents=True, exist_ok=True)
    refuse_files(folder, last)
    for name, text in last.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in last]
