"""What each command prints for what it is given: a table of command lines, as a user writes them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

import chatparsers

from .conftest import TOOLS, Run, put

MESSAGES = [{"role": "user", "content": "Is it raining? Ærlig talt."}]
HALF = [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
CALL = 'Hm.\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Ærø \\u2713"}}\n</tool_call>'
CUT = CALL[:-20]
CODER = (
    "A day.\n</think>\n\nYes.\n\n<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n"
    "</function>\n</tool_call>"
)
OWN = Path(__file__).parents[1] / "templates_own"
TEMPLATE = (OWN / "qwen3-coder.jinja").read_text(encoding="utf-8")
SPECIAL = "{{ bos_token }}{% for m in messages %}{{ m.content }}{{ eos_token }}{% endfor %}"
UNKNOWN = (
    "{% for m in messages %}@{{ m.role }}@ {{ m.content }}{% for c in m.tool_calls or [] %}"
    "%%{{ c.function.name }} -> {{ c.function.arguments | tojson }}%%{% endfor %}{% endfor %}"
    "{% if tools %}{{ tools | tojson }}{% endif %}{% if add_generation_prompt %}@assistant@ {% endif %}"
)
SCHEMA = {"type": "object", "properties": {"mood": {"enum": ["good", "bad"]}}, "required": ["mood"]}
FILES: dict[str, object] = {
    "messages.json": MESSAGES,
    "half.json": HALF,
    "tools.json": TOOLS,
    "request.json": {"model": "m", "tools": TOOLS},
    "lone.json": [{"type": "function", "function": {"name": "a\ud800b"}}],
    "schema.json": SCHEMA,
    "whole.json": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}},
    "own.gbnf": 'root ::= "yes" | "no"\n',
    "output.txt": CALL,
    "marked.txt": "\ufeffone\r\ntwo\r",  # line ends and marks stay as they are
    "coder.jinja": TEMPLATE,
    "qwen3.jinja": (OWN / "qwen3.jinja").read_text(encoding="utf-8"),
    "opening.jinja": TEMPLATE.rstrip() + "{%- if add_generation_prompt %}{{ '<think>\\n' }}{%- endif %}",
    "plain.jinja": "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}",
    "renamed.txt": TEMPLATE,
    "unknown.jinja": UNKNOWN,
    "coder/tokenizer_config.json": {"chat_template": TEMPLATE},
    "special/tokenizer_config.json": {"chat_template": SPECIAL, "bos_token": "<s>", "eos_token": "</s>"},
    "bare/tokenizer_config.json": {"bos_token": "<s>"},
}


class Case(NamedTuple):
    """What a command line prints.

    ``out``: the whole text, or what makes it; None: any. ``words``: they are in the output, one after the other, but
    for white space. ``found``: values of the JSON that is printed, by their path; ``#`` is a length, "" the whole.
    ``said``: words of the standard error, which has nothing if there are none."""

    command: str
    stdin: str = ""
    status: int = 0
    out: str | Callable[[], str] | None = None
    words: tuple[str, ...] = ()
    found: Mapping[str, object] = MappingProxyType({})
    said: tuple[str, ...] = ()


@cache
def prompt(template: str, tools: bool = False, **options: Any) -> str:
    chat = chatparsers.load(str(FILES[template]))
    found: str = chat.prepare(MESSAGES, tools=TOOLS if tools else None, **options).prompt
    return found


def grammar(**options: Any) -> str:
    return (
        str(chatparsers.get_format("hermes-2-pro").bind(tools=TOOLS, **options).grammar()).rstrip("\n") + "\n"
    )


RENDER = "render --messages messages.json --template"
PARSE = "parse --format hermes-2-pro"
CODED = "parse --format qwen3-coder --prefix '<think>\n' --tools tools.json"
OPENED = "parse --tools tools.json --template opening.jinja"
GRAMMAR = "grammar --format hermes-2-pro"
DETECTED = {"name": "qwen3-coder", "score": 1.0}
QUESTION = str(MESSAGES[0]["content"])
BROKEN = CALL.replace("}}", "} 5}")
MESSAGE = json.loads(
    json.dumps(chatparsers.get_format("hermes-2-pro").bind(tools=TOOLS, id_seed="").parse(CALL).to_dict())
)
CASES = {
    "render": Case(f"{RENDER} coder.jinja", out=lambda: prompt("coder.jinja")),
    "render with tools": Case(
        f"{RENDER} coder.jinja --tools tools.json",
        out=lambda: prompt("coder.jinja", True),
        words=("get_weather",),
    ),
    "render without an answer's beginning": Case(
        f"{RENDER} coder.jinja --no-generation-prompt",
        out=lambda: prompt("coder.jinja", add_generation_prompt=False),
    ),
    "render a request from standard input": Case(
        "render --template coder.jinja --messages -",
        json.dumps({"messages": MESSAGES}),
        out=lambda: prompt("coder.jinja"),
    ),
    "render without thoughts": Case(
        f"{RENDER} qwen3.jinja --thinking off", out=lambda: prompt("qwen3.jinja", thinking=False)
    ),
    "render with thoughts": Case(
        f"{RENDER} qwen3.jinja --thinking on", out=lambda: prompt("qwen3.jinja", thinking=True)
    ),
    "render with an effort": Case(
        f"{RENDER} qwen3.jinja --effort none", out=lambda: prompt("qwen3.jinja", thinking=False)
    ),
    "render with a model's file": Case(f"{RENDER} special/tokenizer_config.json", out=f"<s>{QUESTION}</s>"),
    "render with a model's folder": Case(f"{RENDER} special", out=f"<s>{QUESTION}</s>"),
    "render with other tokens": Case(f"{RENDER} special --bos-token B --eos-token ''", out=f"B{QUESTION}"),
    "render a model without a template": Case(
        f"{RENDER} bare",
        out=f"<|im_start|>user\n{QUESTION}<|im_end|>\n<|im_start|>assistant\n",
    ),
    "detect a model without a template": Case(
        "detect bare/tokenizer_config.json",
        status=2,
        out="",
        said=("no chat template", "chat_template", "'chatml'"),
    ),
    "detect": Case("detect coder.jinja", words=("qwen3-coder 1.00",)),
    **{
        f"detect {name}": Case(f"detect --json {name}", TEMPLATE, found=DETECTED)
        for name in ("coder.jinja", "renamed.txt", "coder/tokenizer_config.json", "-")
    },
    "detect nothing": Case("detect unknown.jinja", status=1, words=("none 0.00",)),
    "detect nothing, as JSON": Case("detect --json unknown.jinja", status=1, found={"name": None}),
    "detect nothing to emit": Case(
        "detect --emit data unknown.jinja", status=1, out="", said=("none  0.00\n",)
    ),
    "inspect": Case(
        "inspect coder.jinja",
        words=(
            "format qwen3-coder",
            "score 1.0",
            "stops <|im_end|>",
            "thoughts none",
            "lacks reasoning, reasoning with calls, result ids, images",
            r'roles: system "<|im_start|>system\n…<|im_end|>\n"',
            "special tokens –",
        ),
    ),
    "inspect, as JSON": Case("inspect --json coder.jinja", found={"format": "qwen3-coder"}),
    "inspect another format": Case(
        "inspect --json --format hermes-2-pro coder.jinja", found={"format": "hermes-2-pro"}
    ),
    "inspect a conversation": Case(
        "inspect --json coder.jinja --messages half.json",
        found={"format": "qwen3-coder", "polyfills": [], "prefix": ""},
    ),
    "inspect polyfills": Case(
        "inspect plain.jinja --messages half.json --tools tools.json", words=("polyfills tools",)
    ),
    "inspect no difference": Case("inspect coder.jinja --diff coder.jinja"),
    "inspect a difference": Case(
        "inspect coder.jinja --diff qwen3.jinja", status=1, words=("format: qwen3-coder -> qwen3",)
    ),
    "inspect a difference, as JSON": Case(
        "inspect coder.jinja --diff qwen3.jinja --json", status=1, found={"reasoning": [False, True]}
    ),
    "grammar": Case(f"{GRAMMAR} --tools tools.json", out=grammar),
    "grammar of a choice": Case(
        f"{GRAMMAR} --tools tools.json --tool-choice get_weather",
        out=lambda: grammar(tool_choice="get_weather"),
    ),
    "grammar of nothing": Case(
        GRAMMAR, status=1, out="", said=("constrains nothing", "give --tools or --response-format")
    ),
    "grammar of an answer": Case(f"{GRAMMAR} --response-format schema.json", words=("mood",)),
    "grammar of an answer, in OpenAI's form": Case(
        f"{GRAMMAR} --response-format whole.json",
        out=lambda: (
            str(
                chatparsers.get_format("hermes-2-pro").bind(response_format=FILES["whole.json"]).grammar()
            ).rstrip("\n")
            + "\n"
        ),
    ),
    "grammar of one's own": Case(f"{GRAMMAR} --response-format own.gbnf", words=('"yes"',)),
    **{
        f"grammar in {dialect}": Case(
            f"grammar --template coder.jinja --tools tools.json --dialect {dialect}",
            words=("<function=", "get_weather"),
            found={"type": "structural_tag"} if dialect == "structural_tag" else {},
        )
        for dialect in ("gbnf", "lark", "structural_tag")
    },
    "check a grammar": Case("grammar check own.gbnf", out="own.gbnf: a GBNF grammar of 1 rule, no errors\n"),
    "check a grammar from standard input": Case("grammar check -", 'root ::= "a"\n'),
    **{
        f"parse {name}": Case(
            f"{PARSE} --tools tools.json {more}",
            CALL,
            found={"": MESSAGE},
        )
        for name, more in (
            ("standard input", ""),
            ("standard input by its name", "-"),
            ("a file", "output.txt"),
            ("characters", "--pieces 1"),
            ("pieces", "--pieces 7"),
        )
    },
    "parse line ends and marks": Case(
        "parse --format generic marked.txt", found={"text": FILES["marked.txt"]}
    ),
    "parse a thought": Case(CODED, CODER, found={"reasoning": "A day.", "content": "Yes."}),
    "parse a thought inline": Case(
        f"{CODED} --reasoning inline",
        CODER,
        found={"reasoning": "", "content": "A day.\n</think>\n\nYes."},
    ),
    "parse into OpenAI's message": Case(
        f"{CODED} --openai",
        CODER,
        found={
            "role": "assistant",
            "reasoning_content": "A day.",
            "tool_calls.0.function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'},
        },
    ),
    "parse with a request's tools": Case(f"{PARSE} --tools request.json", CALL, found={"tool_calls.#": 1}),
    "parse with tools that may not be called": Case(
        f"{PARSE} --tools request.json --tool-choice none",
        CALL,
        found={"tool_calls.#": 0, "diagnostics.0.code": "unwanted-call"},
    ),
    "parse a call without tools": Case(
        PARSE,
        CALL,
        found={"content": CALL},
        said=("tools-not-given", "'get_weather'", "say --tools FILE"),
    ),
    "parse a word that is no call": Case(PARSE, "<tool_call> is a tag"),
    "parse after a prompt that opens a thought": Case(OPENED, CODER, found={"reasoning": "A day."}),
    "parse with a template that is none": Case(
        "parse --template -", status=2, out="", said=("expected a chat template",)
    ),
    "parse after another prompt": Case(
        f"{OPENED} --prefix ''", f"<think>\n{CODER}", found={"reasoning": "A day."}
    ),
    # The prompt has opened a thought, also for a format that declares none.
    "parse after such a prompt in a format without thoughts": Case(
        f"{OPENED} --format hermes-2-pro",
        f"A day.\n</think>\n\n{CALL}",
        found={"reasoning": "A day.", "tool_calls.#": 1},
    ),
    "parse with a name that UTF-8 cannot hold": Case(
        f"{PARSE} --tools lone.json",
        '<tool_call>\n{"name": "other", "arguments": {}}\n</tool_call>',
        found={"diagnostics.0.expected": "one of a\ud800b"},
    ),
    "parse what was cut off": Case(
        f"{PARSE} --tools tools.json",
        CUT,
        found={"complete": False, "diagnostics.#": 1},
        said=("chatparsers: truncated at character ",),
    ),
    "parse what was cut off into OpenAI's message": Case(
        f"{PARSE} --tools tools.json --openai", CUT, said=("chatparsers: truncated at character ",)
    ),
    "parse what was cut off, strictly": Case(
        f"{PARSE} --tools tools.json --strict",
        CUT,
        status=2,
        out="",
        said=("at character", "expected"),
    ),
    "parse what is broken": Case(
        f"{PARSE} --tools tools.json", BROKEN, said=("chatparsers: malformed at character ",)
    ),
    "parse what is broken into OpenAI's message": Case(
        f"{PARSE} --tools tools.json --openai", BROKEN, said=("chatparsers: malformed at character ",)
    ),
}


def value(found: Any, path: str) -> Any:
    for step in path.split(".") if path else ():
        found = len(found) if step == "#" else found[int(step) if isinstance(found, list) else step]
    return found


@pytest.mark.parametrize("name", CASES)
def test_what_a_command_prints(name: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES[name]
    monkeypatch.chdir(tmp_path)
    for file in (file for file in FILES if file.partition("/")[0] in case.command):
        Path(file).parent.mkdir(exist_ok=True)
        put(Path(file), FILES[file])
    ran = run(*shlex.split(case.command), stdin=case.stdin)
    assert ran.status == case.status, ran.err
    assert [word for word in case.said if word not in ran.err] == [], ran.err
    assert bool(ran.err) == bool(case.said), ran.err
    assert not ran.err.startswith("chatparsers: ") or ran.err.count("\n") == 1, "one line"
    if case.out is not None:
        assert ran.out == (case.out() if callable(case.out) else case.out)
    printed = "\n".join(" ".join(line.split()) for line in ran.out.splitlines())
    places = {word: printed.find(word) for word in case.words}
    assert -1 not in places.values() and [*places.values()] == sorted(places.values()), (places, ran.out)
    if case.found:
        record = json.loads(ran.out)
        assert {path: value(record, path) for path in case.found} == case.found
