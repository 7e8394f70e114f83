"""A fault for each code of the doctor: what to change of a template, of a model's files or of the request."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

OWN = Path(__file__).parents[1] / "templates_own"
FINE = [
    "qwen3-coder",
    "hermes-2-pro",
    "glm-4-5",
    "granite-4",
    "seed-oss",
    "internlm2",
    "minimax-m2",
    "xlam",
    "nanbeige",
    "deepseek-v3-1",
]
"""Templates that have few faults: a fault of one's own is put into each."""
TAGGED = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' %}"
    "{% generation %}{{ m.content }}<|im_end|>{% endgeneration %}{% else %}{{ m.content }}<|im_end|>{% endif %}\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_REFUSE = "{{ raise_exception('needle refusal') }}"
_CALLS = "{%- for m in messages -%}{%- for c in m.tool_calls or [] -%}{%- set f = c.function or c -%}"
_ENDS = "{%- endfor -%}{%- endfor -%}"
_TEXT_LOST = (
    "{%- set ns = namespace(m=[]) -%}{%- for m in messages -%}{%- set ns.c = [] -%}{%- for c in m.tool_calls or [] -%}"
    "{%- set f = c.function or c -%}{%- set given = f.arguments if f.arguments is mapping else {} -%}"
    "{%- set ns.c = ns.c + [dict(c, function=dict(f, arguments=given))] -%}{%- endfor -%}"
    "{%- set ns.m = ns.m + [dict(m, tool_calls=ns.c) if ns.c else m] -%}{%- endfor -%}{%- set messages = ns.m -%}"
)

PLAIN = {
    "tagged": TAGGED,
    "plain": TAGGED.replace("{% generation %}", "").replace("{% endgeneration %}", ""),
    "bare": "{% for m in messages %}{{ m.content }}{{ '</s>' if m.role == 'assistant' }}{% endfor %}",
}
_DUMPED = "call.function.arguments | tojson"


def source(name: str) -> str:
    """A template by its name: our own, one of ``PLAIN``, or Hermes with arguments as they are given."""
    if name == "with-ids":
        shown = source("as-given").replace(
            "'tool\\n<tool_response>\\n'", "'tool\\n' + message.tool_call_id + '\\n'"
        )
        return shown.replace('{"name": \'', '{"id": \' + call.id | tojson + \', "name": \'')
    if name == "as-text":
        return source("hermes-2-pro").replace(_DUMPED, "call.function.arguments")
    if name == "as-given":
        kept = "(call.function.arguments if call.function.arguments is string else call.function.arguments | tojson)"
        return source("hermes-2-pro").replace(_DUMPED, kept)
    return PLAIN.get(name) or (OWN / f"{name}.jinja").read_text(encoding="utf-8")


def format_of(name: str) -> str | None:
    """The format with which a template is checked; None: the detected one."""
    return "hermes-2-pro" if name in ("as-given", "as-text", "with-ids") else None if name in PLAIN else name


def each(changed: str, where: str = "true") -> str:
    """All messages anew: each as ``changed`` says, if ``where`` holds."""
    return (
        "{%- set ns = namespace(m=[]) -%}{%- for m in messages -%}{%- if "
        + where
        + " -%}{%- set ns.m = ns.m + ["
        + changed
        + "] -%}{%- endif -%}{%- endfor -%}{%- set messages = ns.m -%}"
    )


def before(text: str) -> Callable[[str], str]:
    return lambda template: text + template


def behind(text: str) -> Callable[[str], str]:
    return lambda template: template + text


def replaced(*pairs: tuple[str, str]) -> Callable[[str], str]:
    def edit(template: str) -> str:
        for old, new in pairs:
            template = template.replace(old, new)
        return template

    return edit


@dataclass(frozen=True)
class Fault:
    """``check`` finds ``code`` in a template after ``edit``. ``also``: beginnings of codes that follow from it.
    ``on``: the templates that can have it; all fine ones if empty."""

    code: str
    check: str
    edit: Callable[[str], str]
    also: tuple[str, ...] = ()
    on: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


def _tool(parameters: Any) -> list[dict[str, Any]]:
    return [{"type": "function", "function": {"name": "f", "description": "Does", "parameters": parameters}}]


_SAME = replaced()
_JSON = ("hermes-2-pro", "xlam")
_LONG = "{%- if messages|length > 150 -%}{%- for i in range(99999999) -%}{{ i }}{%- endfor -%}{%- endif -%}"
_FOLLOWS = ("mask-", "format-", "prompt-", "not-append-only", "bridge-", "stop-")

FAULTS = [
    Fault("loses-tools", "loses", before("{%- set tools = none -%}"), ("call-not-read", "loses-tool-shape")),
    Fault(
        "loses-tools",
        "loses",
        before("{%- if messages[0].role == 'system' -%}{%- set tools = none -%}{%- endif -%}"),
    ),
    Fault(
        "loses-tools",
        "loses",
        before("{%- if messages|length > 2 -%}{%- set tools = none -%}{%- endif -%}"),
        ("not-append-only", "bridge-", "mask-"),
    ),
    Fault(
        "loses-system",
        "loses",
        before(
            "{%- if tools and messages[0].role == 'system' -%}{%- set messages = messages[1:] -%}{%- endif -%}"
        ),
        ("loses-late-system",),
    ),
    Fault("loses-system", "loses", before(each("m", "m.role != 'system'")), ("loses-late-system",)),
    Fault(
        "loses-late-system",
        "loses",
        before(each("m", "m.role != 'system' or loop.first")),
        ("bridge-", "mask-"),
    ),
    Fault(
        "loses-two-users",
        "loses",
        before(
            "{%- for m in messages -%}{%- if m.role == 'user' and loop.previtem is defined and "
            "loop.previtem.role == 'user' -%}" + _REFUSE + "{%- endif -%}{%- endfor -%}"
        ),
        ("bridge-",),
    ),
    Fault("loses-result-ids", "loses", lambda template: source("as-given"), ("",), ("with-ids",)),
    Fault(
        "loses-results",
        "loses",
        before(each("m", "m.role != 'tool'")),
        ("loses-several-results", "loses-result-ids", *_FOLLOWS),
    ),
    Fault(
        "loses-results",
        "loses",
        before(
            "{%- if messages[-1].role != 'tool' -%}"
            + each("dict(m, content='[old]') if m.role == 'tool' else m")
            + "{%- endif -%}"
        ),
        ("not-append-only", "bridge-", "mask-"),
    ),
    Fault(
        "loses-several-results",
        "loses",
        before(each("m", "m.role != 'tool' or loop.first or loop.previtem.role != 'tool'")),
        ("loses-result-ids", "bridge-", "mask-"),
    ),
    Fault(
        "loses-calls",
        "loses",
        before(each("m", "m.role != 'assistant'")),
        ("loses-", "arguments-", *_FOLLOWS),
    ),
    Fault(
        "loses-calls",
        "loses",
        before(each("dict(m, tool_calls=[]) if m.tool_calls and not loop.last else m")),
        ("not-append-only", *_FOLLOWS),
    ),
    Fault(
        "loses-several-calls",
        "loses",
        before(each("dict(m, tool_calls=m.tool_calls[:1]) if m.tool_calls else m")),
        ("bridge-", "mask-", "loses-result"),
    ),
    Fault(
        "loses-text-beside-calls",
        "loses",
        before(each("dict(m, content='') if m.tool_calls else m")),
        ("loses-null-content", "bridge-", "mask-"),
    ),
    Fault(
        "loses-reasoning",
        "loses",
        before(each("dict(m, reasoning_content='', thinking='', reasoning='')")),
        _FOLLOWS,
        ("glm-4-5", "minimax-m2", "seed-oss", "qwen3"),
    ),
    Fault(
        "loses-unicode",
        "loses",
        replaced(("tojson", "tojson(ensure_ascii=true)")),
        ("arguments-", "loses-"),
        _JSON,
    ),
    Fault(
        "loses-empty-arguments",
        "loses",
        before(_CALLS + "{%- if f.arguments in [{}, '{}'] -%}" + _REFUSE + "{%- endif -%}" + _ENDS),
        ("bridge-",),
    ),
    Fault(
        "loses-escapes",
        "loses",
        replaced(("tojson", "tojson | replace('\\\\n', ' ')")),
        ("arguments-",),
        ("hermes-2-pro",),
    ),
    Fault(
        "loses-tool-shape",
        "loses",
        before(
            "{%- for t in tools or [] -%}{%- if not (t.function if t.function is defined else t).description "
            "-%}" + _REFUSE + "{%- endif -%}{%- endfor -%}"
        ),
    ),
    Fault(
        "loses-null-content",
        "loses",
        before(each("dict(m, content=m.content|string)")),
        ("loses-", "whitespace-", "mask-"),
        ("hermes-2-pro", "as-given", "qwen3-coder"),
    ),
    Fault(
        "not-append-only",
        "append-only",
        before("{{ messages|length }}\n"),
        ("mask-", "format-", "prompt-not-in", "bridge-", "stop-untrained"),
    ),
    Fault(
        "not-append-only",
        "append-only",
        before("{%- if messages|length > 8 -%}{%- set messages = messages[-7:] -%}{%- endif -%}"),
    ),
    Fault(
        "round-broken",
        "rounds",
        before(
            "{%- set ns = namespace(last=0) -%}{%- for m in messages -%}{%- if m.role == 'user' -%}"
            "{%- set ns.last = loop.index0 -%}{%- endif -%}{%- endfor -%}"
            + each("dict(m, reasoning_content='') if loop.index0 < ns.last else m").replace(
                "namespace(m=[])", "namespace(m=[], last=ns.last)"
            )
        ),
        ("not-append-only", "bridge-", "mask-", "loses-reasoning"),
        ("glm-4-5", "seed-oss", "minimax-m2"),
    ),
    Fault("arguments-lost", "arguments", before(_TEXT_LOST), ("arguments-",)),
    Fault(
        "arguments-respelt",
        "arguments",
        replaced(("call.function.arguments", "call.function.arguments | from_json | tojson")),
        ("arguments-",),
        ("as-text",),
    ),
    Fault(
        "arguments-escaped-twice",
        "arguments",
        lambda template: source("hermes-2-pro"),
        ("arguments-respelt",),
        ("as-given",),
    ),
    Fault(
        "arguments-escaped-twice",
        "arguments",
        replaced(("value | tojson", "value | tojson | tojson")),
        ("arguments-", "loses-", "grammar-", "call-"),
        ("qwen3-coder", "glm-4-5", "seed-oss", "minimax-m2"),
    ),
    Fault(
        "arguments-text-refused",
        "arguments",
        before(_CALLS + "{%- if f.arguments is string -%}" + _REFUSE + "{%- endif -%}" + _ENDS),
        ("arguments-", "loses-null-content"),
        ("hermes-2-pro", "as-given", "nanbeige", "xlam"),
    ),
    Fault(
        "whitespace-trimmed",
        "whitespace",
        before(each("dict(m, content=m.content|trim if m.content is string else m.content)")),
    ),
    Fault("prompt-unknown-variable", "prompt", before("{{ nowhere.attribute }}")),
    Fault("prompt-unknown-variable", "prompt", before("{%- if tools -%}{{ nowhere }}{%- endif -%}")),
    Fault(
        "prompt-refused",
        "prompt",
        before("{%- if messages|length == 1 -%}" + _REFUSE + "{%- endif -%}"),
    ),
    Fault(
        "prompt-not-in-history",
        "prompt",
        behind("{%- if add_generation_prompt -%}<needle>{%- endif -%}"),
        ("not-append-only", "bridge-", "mask-", "format-", "call-", "grammar-", "stop-"),
    ),
    Fault("no-generation-prompt", "prompt", before("{%- set add_generation_prompt = false -%}")),
    Fault("system-invented", "prompt", before("You are a very helpful assistant indeed.\n")),
    Fault("system-invented", "prompt", before("Be helpful.\n")),
    Fault(
        "prompt-escapes-html",
        "prompt",
        before("{%- for m in messages -%}{{ m.content | e }}{%- endfor -%}"),
        ("",),
    ),
    Fault("date", "prompt", before("{{ strftime_now('%Y-%m-%d') }}\n")),
    Fault("date", "prompt", before("{%- if tools -%}{{ strftime_now('%d %b %Y') }}\n{% endif -%}")),
    Fault("bos-twice", "prompt", before("<s><s>"), ("system-",)),
    Fault("stop-missing", "ends", replaced(("</s>", "")), ("",), ("bare",)),
    Fault("stop-missing", "ends", replaced(("<|im_end|>", "")), ("",), ("plain",)),
    Fault(
        "stop-untrained",
        "ends",
        replaced(("        {{- end }}", "        {{- end if not message.tool_calls }}")),
        ("",),
        ("hermes-2-pro",),
    ),
    Fault(
        "generation-tags-wrong",
        "masks",
        replaced(("{% generation %}{{ m.content }}<|im_end|>", "<|im_end|>{% generation %}{{ m.content }}")),
        ("",),
        ("tagged",),
    ),
    Fault("no-generation-tags", "masks", lambda template: source("plain"), ("",), ("tagged",)),
    Fault(
        "mask-empty",
        "masks",
        before(each("dict(m, content=m.content|replace('Fine', 'Good'))")),
        ("",),
    ),
    Fault(
        "mask-leaves-out",
        "masks",
        before(each("dict(m, reasoning_content='') if not loop.last else m")),
        ("",),
        ("glm-4-5", "minimax-m2", "seed-oss"),
    ),
    Fault(
        "mask-impossible",
        "masks",
        before(
            "{%- if messages[0].content == 'BeBrief' and messages[1].content == 'Hi' -%}"
            + _REFUSE
            + "{%- endif -%}"
        ),
    ),
    Fault("bridge-unproved", "bridge", before("{{ messages|length }}\n"), ("",), ("internlm2",)),
    Fault(
        "call-not-read",
        "grammar",
        _SAME,
        ("",),
        ("hermes-2-pro", "xlam", "internlm2"),
        {"format": "kimi-k2"},
    ),
    Fault(
        "grammar-refuses-own-call",
        "grammar",
        replaced(('{"name": ', '{"kind": 1, "name": ')),
        ("format-", "loses-", "arguments-"),
        ("hermes-2-pro",),
    ),
    Fault(
        "grammar-weakened",
        "grammar",
        _SAME,
        ("",),
        (),
        {"tools": _tool({"type": "object", "not": {"required": ["a"]}})},
    ),
    Fault(
        "grammar-refused",
        "grammar",
        _SAME,
        ("",),
        (),
        {"tools": _tool({"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}})},
    ),
    Fault("cost-limit", "cost", before(_LONG)),
    Fault(
        "cost-growth",
        "cost",
        before(
            "{%- for a in messages -%}{%- for b in messages -%}{%- set x = a.content ~ b.content ~ a.role -%}"
            "{%- endfor -%}{%- endfor -%}"
        ),
    ),
    Fault(
        "cost-tools",
        "cost",
        before("{%- for t in tools or [] -%}{{ 'long ' * 500 }}{%- endfor -%}\n"),
        ("system-invented",),
    ),
    Fault(
        "template-fails",
        "prompt",
        before("{%- if messages|length == 1 and not add_generation_prompt -%}" + _REFUSE + "{%- endif -%}"),
        ("",),
    ),
]


DETECTED = [
    Fault(
        "format-analysed",
        "format",
        replaced(("<tool_call>", "«call»"), ("</tool_call>", "«end»")),
        ("",),
        ("hermes-2-pro",),
    ),
    Fault(
        "format-unknown",
        "format",
        replaced(
            ("<tool_call>", "«call»"),
            ("</tool_call>", "«end»"),
            ("call.function.name | tojson", "call.function.name | upper | reverse"),
        ),
        ("",),
        ("hermes-2-pro",),
    ),
    Fault("format-partial", "format", before(each("dict(m, tool_calls=[])")), ("",), ("hermes-2-pro",)),
    Fault(
        "format-in-part",
        "format",
        before('{%- if tools -%}Answer as {"function": a name, "input": an object}\n{%- endif -%}'),
        ("",),
        ("hermes-2-pro",),
    ),
]
"""Faults of templates whose format is not named."""


def tokenizer(*markers: Any, letters: Iterable[str] | None = None, normalizer: Any = None) -> Any:
    """A tokenizer of single bytes (or ``letters``) and these added tokens."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    known = sorted(pre_tokenizers.ByteLevel.alphabet()) if letters is None else ["?", *letters]
    vocabulary = {letter: id for id, letter in enumerate(known)}
    made = Tokenizer(models.BPE(vocabulary, [], unk_token=None if letters is None else "?"))
    if letters is None:
        made.pre_tokenizer, made.decoder = level, decoders.ByteLevel()
    if normalizer is not None:
        made.normalizer = normalizer
    made.add_special_tokens(list(markers))
    return made


MARKERS = ("<tool_call>", "</tool_call>", "<|im_end|>", "<|endoftext|>", "<s>")


def token(text: str, **flags: Any) -> Any:
    from tokenizers import AddedToken

    return AddedToken(text, special=True, **{"normalized": False, **flags})


def files(
    edit: Callable[[str], str] = _SAME,
    *,
    made: Any = None,
    config: Any = None,
    ends: Iterable[str] = ("<|im_end|>",),
) -> dict[str, str]:
    """A model's files, by name. ``ends``: the tokens that generation_config.json names."""
    made = made or tokenizer(*map(token, MARKERS))
    ids = [id for text in ends if (id := made.token_to_id(text)) is not None]
    return {
        "chat_template.jinja": edit(source("as-given")),
        "tokenizer.json": made.to_str(),
        "tokenizer_config.json": json.dumps({"eos_token": "<|im_end|>", **(config or {})}),
        "generation_config.json": json.dumps({"eos_token_id": ids}),
    }


def written(folder: Path, texts: dict[str, str]) -> Path:
    """A model's folder with these files."""
    folder.mkdir(exist_ok=True)
    for file, text in texts.items():
        (folder / file).write_text(text, encoding="utf-8")
    return folder


@dataclass(frozen=True)
class Folder:
    """``check`` finds ``code`` in the files that ``made`` makes, and not in those of ``fine``."""

    code: str
    check: str
    made: Callable[[], dict[str, str]]
    fine: Callable[[], dict[str, str]] = files


def _normalized(**flags: Any) -> dict[str, str]:
    from tokenizers import normalizers

    markers = [
        token("<tool_call>", **flags),
        *map(token, ("</tool_call>", "<|im_end|>", "<|endoftext|>", "<s>")),
    ]
    return files(made=tokenizer(*markers, normalizer=normalizers.Replace("_", "-")))


def _lowered() -> dict[str, str]:
    from tokenizers import normalizers

    return files(made=tokenizer(*map(token, MARKERS), normalizer=normalizers.Lowercase()))


_ESCAPED = before(each("dict(m, content=m.content|replace('<', '< ') if m.role == 'user' else m.content)"))
_BOS = before("{{ bos_token }}")
FOLDERS = [
    Folder("marker-several-tokens", "ids", lambda: files(made=tokenizer(*map(token, MARKERS[1:])))),
    Folder(
        "marker-missing", "ids", lambda: files(made=tokenizer(token("<|im_end|>"), letters="abcdeflort_>"))
    ),
    Folder(
        "token-strips",
        "ids",
        lambda: files(made=tokenizer(token("<tool_call>", lstrip=True), *map(token, MARKERS[1:]))),
    ),
    Folder("token-normalized", "ids", lambda: _normalized(normalized=True), _normalized),
    Folder("marker-in-user-text", "ids", files, lambda: files(_ESCAPED)),
    Folder("text-changes", "ids", _lowered),
    Folder("stop-differs", "ends", lambda: files(config={"eos_token": "<s>"}, ends=["<|endoftext|>"])),
    Folder("stop-config-differs", "ends", lambda: files(ends=["<|endoftext|>"])),
    Folder("stop-several-tokens", "ends", lambda: files(made=tokenizer(*map(token, MARKERS[:2])))),
    Folder("stop-is-padding", "ends", lambda: files(config={"pad_token": "<|im_end|>"})),
    Folder(
        "stop-inside-answer",
        "ends",
        lambda: files(ends=["<|im_end|>", "</tool_call>"]),
        lambda: files(ends=["<|im_end|>", "<s>"]),
    ),
    Folder(
        "bos-twice",
        "prompt",
        lambda: files(before("{{ bos_token * 2 }}"), config={"bos_token": "<s>"}),
        lambda: files(_BOS, config={"bos_token": "<s>"}),
    ),
    Folder(
        "format-name-differs",
        "format",
        lambda: files(config={"name_or_path": "Qwen/Qwen3-Coder-30B-A3B-Instruct"}),
    ),
]
