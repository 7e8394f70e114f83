"""The parts of the judge beside judges of their own: statistics, what clients read, dictation."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("httpx2", reason="the packages of the gateway are not installed")
pytest.importorskip("jsonschema", reason="the package jsonschema is not installed")

from models import tiny, written

from chatparsers.testing.tiny import tiny_model
from chatparsers.verify import dictation
from chatparsers.verify.apis import APIS
from chatparsers.verify.asking import Asked, Asker, exchange_of
from chatparsers.verify.checks import CHECKS
from chatparsers.verify.client import Budget, Response
from chatparsers.verify.events import events
from chatparsers.verify.judging import judge, model_facts
from chatparsers.verify.plan import Plan
from chatparsers.verify.probes import Probe, user
from chatparsers.verify.raw import Raw
from chatparsers.verify.run import run
from chatparsers.verify.server import Server
from chatparsers.verify.statistics import interval, sign_test, trigger
from chatparsers.verify.subject import Subject
from chatparsers.verify.text import _model

_PARAMETERS = {"type": "object", "properties": {"to": {"type": "string"}, "seats": {"type": "integer"}}}
_TOOLS = [{"type": "function", "function": {"name": "find_train", "parameters": _PARAMETERS}}]


def test_intervals_and_tests_are_those_of_the_tables() -> None:
    """Wilson's interval for 8 of 10 and 0 of 10, the sign test for 9 of 10, the F1 of three pairs."""
    assert interval(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert interval(0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4)
    assert sign_test(9, 1) == pytest.approx(22 / 1024) and sign_test(0, 0) == 1.0
    found = trigger([(True, True), (True, False), (False, False)])
    assert found.f1 == pytest.approx(2 / 3) and trigger([]).f1 == 1.0


def test_events_are_read_as_the_standard_says() -> None:
    text = ': hello\r\n\r\nevent: a\r\ndata: {"x":\r\ndata: 1}\r\n\r\ndata:[DONE]\n\ndata: no\n\n'
    assert [(event.name, event.data) for event in events(text)] == [
        ("a", {"x": 1}),
        ("", "[DONE]"),
        ("", "no"),
    ]


@pytest.mark.parametrize("api", APIS.values(), ids=APIS)
def test_a_body_that_is_no_answer_is_told_and_raises_nothing(api: Any) -> None:
    for data in (
        {},
        {"choices": [None]},
        {"content": {"a": 1}},
        {"output": "x"},
        {"error": {"message": "no"}},
    ):
        assert api.read(data).faults
    said = api.read_events(events('data: {"choices": 1, "type": "x"}\n\ndata: garbage\n\n'))
    assert said.faults


@pytest.mark.parametrize("lost", [False, True])
def test_a_parser_that_is_fed_alone(lost: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What reads as we do is fine; what ends at the text ``</tool_call>`` inside an argument loses calls."""
    subject = Subject(tiny("qwen3").chat)

    def feed(client: Any, server: Server, one: dictation.Dictated) -> dictation.Fed:
        message = one.turn.parse(one.text).to_openai("drop")
        if lost and "</tool_call>" in "".join(
            call["function"]["arguments"] for call in message.get("tool_calls", ())
        ):
            message.pop("tool_calls")
        finish = "length" if one.cut else "tool_calls" if message.get("tool_calls") else "stop"
        answer = {"choices": [{"message": message, "finish_reason": finish}]}
        return dictation.Fed("/parse", {}, Response(200, ""), APIS["chat"].read(answer))

    monkeypatch.setattr(dictation, "ways", lambda client, server: [dictation.DictationRoute("test", feed)])
    server: Any = Server("other", "", "m")
    asked, way = dictation.dictate(None, server, subject)  # type: ignore[arg-type]
    rows, judged = judge(asked, "other")
    assert way == "test" and len(asked) > 30 and judged["call-lost"] > 30
    assert {row.code for row in rows if row.blame == "server"} == ({"call-lost"} if lost else set())


def test_a_model_that_does_not_write_what_is_dictated_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server may force nothing until a thought has ended: what it reads then is another text."""

    def feed(client: Any, server: Server, one: dictation.Dictated) -> dictation.Fed:
        answer = APIS["chat"].read({"choices": [{"message": {"content": ""}, "finish_reason": "stop"}]})
        return dictation.Fed("/chat", {}, Response(200, ""), answer, Raw(text=""))

    monkeypatch.setattr(
        dictation, "ways", lambda client, server: [dictation.DictationRoute("test", feed, forces=True)]
    )
    server: Any = Server("other", "", "m")
    assert dictation.dictate(None, server, Subject(tiny("qwen3").chat)) == ([], "")  # type: ignore[arg-type]


_CALL = '<tool_call>\n{"name": "find_train", "arguments": {"to": "a </tool_call> b"}}\n</tool_call>'
_OTHER = '[TOOL_CALLS][{"name": "find_train", "arguments": {"to": "a"}}]'
_TRAIN = ("find_train", '{"to": "a </tool_call> b"}')


_KIMI = (
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.find_train:0"
    '<|tool_call_argument_begin|>{"to": "Oslo"}'
)
_FORCED = '</think>[{"name": "find_train", "parameters": {"to": "<|tiny_end|>Os'
"""A call that a server's own grammar forced where the format has no JSON array, and that was cut off."""
_A = [("find_train", '{"to": "a"}')]
_TAGGED, _TAGGED_END = (
    "<tool_call>\n<function=find_train>\n<parameter=to>\n",
    "\n</parameter>\n</function>\n</tool_call>",
)
_VALUE = "a </tool_call> <function=b> <think>"
_BROKEN_JSON = '<tool_call>\n{"name": "find_train", "arguments": {"to": "a" b'
_PLACEHOLDER = (
    "<start_function_call>call:FFF_FIRST_FUN_F{to:<escape>b<escape>}<end_function_call><end_function_call>"
)


@pytest.mark.parametrize(
    ("name", "choice", "raw", "content", "calls", "finish", "blames"),
    [
        ("qwen3", "auto", f"{_CALL}<|im_end|>", "", [_TRAIN], "tool_calls", {}),
        # a marker in a value is the value's, so the server cut it off there
        (
            "qwen3",
            "auto",
            f"{_CALL}<|im_end|>",
            "",
            [("find_train", '{"to": "a"}')],
            "tool_calls",
            {"call-differs": "server"},
        ),
        # markers where none belongs: what becomes of them is nobody's fault but the model's
        (
            "qwen3",
            "auto",
            "</tool_call>Hi</think><|im_end|>",
            "</tool_call>Hi",
            [],
            "stop",
            {"content-differs": "model", "markup-shown": "model"},
        ),
        (
            "qwen3",
            "auto",
            "<think>\n<think>\nHm.\n</think>\n\nHi<|im_end|>",
            "Hi",
            [],
            "stop",
            {"reasoning-lost": "model"},
        ),
        (
            "qwen3",
            "auto",
            "<think>\nHm.\n</think>\n\nHi<|im_end|>",
            "Hi",
            [],
            "stop",
            {"reasoning-lost": "server"},
        ),
        (
            "qwen3",
            "auto",
            "<think><|im_end|>",
            "<think>",
            [],
            "stop",
            {"content-differs": "model", "markup-shown": "model"},
        ),
        ("qwen3", "auto", "Hi\n<|im_end|>", "Hi\n\n", [], "stop", {"white-space": "policy"}),
        (
            "qwen3",
            "auto",
            "<|im_end|>",
            "<|im_end|>",
            [],
            "stop",
            {"content-differs": "server", "markup-shown": "server"},
        ),
        (
            "qwen3",
            "auto",
            "<think>\n\n</think>\n\n<|im_end|>",
            "</think>",
            [],
            "stop",
            {"content-differs": "server", "markup-shown": "server"},
        ),
        # what was cut off may be left out, but it is no whole call and no text
        ("qwen3", "auto", _CALL[:-3], "", [], "length", {"call-lost": "policy"}),
        ("qwen3", "auto", _CALL[:70], "", [], "length", {}),
        ("qwen3", "auto", _CALL[:70], "", [("find_train", "{}")], "length", {"call-invented": "server"}),
        (
            "qwen3",
            "auto",
            _CALL[:70],
            _CALL[:70],
            [],
            "length",
            {"cut-markup": "server", "markup-shown": "server"},
        ),
        (
            "qwen3",
            "auto",
            f"</think>{_CALL[:70]}",
            _CALL[:70],
            [],
            "length",
            {"cut-markup": "model", "markup-shown": "model"},
        ),
        # a special token that is no marker has no place either, and servers drop it or show it
        (
            "qwen3",
            "auto",
            "<|tiny_pad|><|im_end|>",
            "<|tiny_pad|>",
            [],
            "stop",
            {"content-differs": "model", "markup-shown": "model"},
        ),
        # the prompt opened the thought, and the model ends it at once: that marker has its place
        (
            "nanbeige",
            "auto",
            "</think><|im_end|>",
            "</think>",
            [],
            "stop",
            {"content-differs": "server", "markup-shown": "server"},
        ),
        (
            "nanbeige",
            "auto",
            "</think>\n\nHi<|im_end|>",
            "</think>\n\nHi",
            [],
            "stop",
            {"content-differs": "server", "markup-shown": "server"},
        ),
        # an answer that is ended before it says anything
        (
            "hyperclovax",
            "auto",
            "\n<|im_end|><|endofturn|>",
            "<|im_end|>",
            [],
            "stop",
            {"content-differs": "server", "markup-shown": "server"},
        ),
        # a forced call that was cut off is no whole one in the server's own form; as text it is text with its values
        (
            "glm-4-5",
            "required",
            _FORCED,
            "",
            [("find_train", '{"to": "Os"}')],
            "length",
            {"call-invented": "server"},
        ),
        ("glm-4-5", "required", f'{_FORCED}"}}', "", [("find_train", '{"to": "Os"}')], "length", {}),
        (
            "glm-4-5",
            "required",
            _FORCED,
            _FORCED.removeprefix("</think>"),
            [],
            "length",
            {"markup-shown": "policy"},
        ),
        # what was cut off may be left out, also of a text that was broken before
        (
            "kimi-k2",
            "auto",
            f"</think>{_KIMI}",
            "</think>",
            [],
            "length",
            {"call-lost": "policy", "markup-shown": "model"},
        ),
        # a value goes on to the marker that ends it: other markers, and the ends of calls, are the value's
        ("qwen3-coder", "auto", f"{_TAGGED}a </tool_call> b", "", _A, "length", {"call-invented": "server"}),
        (
            "qwen3-coder",
            "auto",
            f"{_TAGGED}{_VALUE}{_TAGGED_END}",
            "",
            _A,
            "tool_calls",
            {"call-differs": "server"},
        ),
        (
            "qwen3-coder",
            "auto",
            f"{_TAGGED}{_VALUE}{_TAGGED_END}",
            "",
            [("find_train", json.dumps({"to": _VALUE}))],
            "tool_calls",
            {},
        ),
        ("qwen3-coder", "auto", f"{_TAGGED}{_VALUE}", "<think>", [], "length", {"markup-shown": "server"}),
        # but what ends a call without the end of its value, or breaks its JSON, is broken
        ("qwen3-coder", "auto", f"{_TAGGED}a </tool_call>", "", _A, "tool_calls", {"call-invented": "model"}),
        (
            "qwen3",
            "auto",
            f"{_BROKEN_JSON} </tool_call> b",
            "",
            _A,
            "length",
            {"call-invented": "model", "content-differs": "model"},
        ),
        # a name that no tool has is the server's where its own grammar forced it
        ("function-gemma", "required", _PLACEHOLDER, "", _A, "tool_calls", {"call-differs": "server"}),
        ("function-gemma", "auto", _PLACEHOLDER, "", _A, "tool_calls", {"call-differs": "model"}),
        # a call as another format writes it is the model's
        ("qwen3", "auto", f"{_OTHER}<|im_end|>", _OTHER, [], "stop", {"call-in-content": "model"}),
        # a message whose header does not say which part it is
        (
            "muse",
            "auto",
            "<|message|>Hi<|eot|>",
            "Hi",
            [],
            "stop",
            {"reasoning-in-content": "model"},
        ),
    ],
)
def test_whose_fault_it_is(
    name: str,
    choice: str,
    raw: str,
    content: str,
    calls: list[tuple[str, str]],
    finish: str,
    blames: dict[str, str],
) -> None:
    """The rules of docs/tables/verify-rules.md: the same answer is the server's fault or not by what the model wrote,
    by the prompt and by the request. The server tells the ids that the model wrote."""
    subject = Subject(tiny(name).chat)
    assert subject.tokenizer is not None
    body = {"messages": [user("Hi")], "tools": _TOOLS, "tool_choice": choice}
    made = [
        {"id": f"call_{at}", "function": {"name": name, "arguments": text}}
        for at, (name, text) in enumerate(calls)
    ]
    answer = {
        "choices": [{"message": {"content": content, "tool_calls": made}, "finish_reason": finish}],
        "__verbose": {"content": raw, "tokens": subject.tokenizer.encode(raw, add_special_tokens=False).ids},
    }
    response = Response(200, json.dumps(answer))
    exchange = exchange_of(subject, Probe("test", body), APIS["chat"], False, body, response)
    rows, _ = judge([Asked(exchange)], "llama-server")
    assert {row.code: row.blame for row in rows} == blames


@pytest.mark.parametrize(
    ("content", "sane", "row"),
    [
        (_CALL, True, ("server", "a call of find_train as qwen3 writes it")),
        (_CALL, False, ("unknown", "a call of find_train as qwen3 writes it")),
        (_OTHER, True, ("unknown", "a call that nobody read: other-format: ")),
        ("I use `find_train` now.", True, None),
        ('{"name": "find_train"}\n\nis JSON.', True, None),
    ],
)
def test_a_call_in_the_content_is_seen_without_a_raw_text(
    content: str, sane: bool, row: tuple[str, str] | None
) -> None:
    answer = {"choices": [{"message": {"content": content}, "finish_reason": "stop"}]}
    body = {"messages": [user("Hi")], "tools": _TOOLS}
    for choice in ("auto", "none"):
        probe = Probe("test", {**body, "tool_choice": choice})
        response = Response(200, json.dumps(answer))
        exchange = exchange_of(Subject(tiny("qwen3").chat), probe, APIS["chat"], False, probe.body, response)
        exchange.sane = sane
        found = [each for check in CHECKS if check.where(exchange) for each in check.judge(exchange)]
        rows = [(each.blame, each.what) for each in found if each.code == "call-in-content"]
        if row is None or choice == "none":
            assert not rows
        else:
            ((blame, what),) = rows
            assert blame == row[0] and what.startswith(row[1])


_NINE = """{%- for message in messages %}{%- for call in message.tool_calls or [] %}{%- if call.id | length != 9 %}
{{- raise_exception("ids have nine letters") }}{%- endif %}{%- endfor %}{%- endfor %}"""


@pytest.mark.parametrize(
    ("name", "id", "blame"),
    [
        ("mine", "call00001", "server"),  # the template renders it, so the server has to take it
        ("mine", "call_1", "policy"),  # the template refuses such an id itself
        ("prompt/sent-back", "call_1", "server"),  # an id that the server gave
    ],
)
def test_a_refusal_is_judged_by_what_a_plain_host_renders(name: str, id: str, blame: str) -> None:
    template = Path(__file__).parents[1] / "templates_own" / "qwen3.jinja"
    chat = tiny_model("qwen3", template=_NINE + template.read_text(encoding="utf-8")).chat
    call = {"id": id, "type": "function", "function": {"name": "find_train", "arguments": '{"to": "Oslo"}'}}
    said = {"role": "assistant", "content": None, "tool_calls": [call]}
    body = {
        "messages": [user("Hi"), said, {"role": "tool", "tool_call_id": id, "content": "8:25"}],
        "tools": _TOOLS,
    }
    exchange = exchange_of(Subject(chat), Probe(name, body), APIS["chat"], False, body, Response(400, "no"))
    rows, _ = judge([Asked(exchange)], "other")
    assert [(row.code, row.blame) for row in rows] == [("refused", blame)]


class _Completions:
    """A server as a provider's: it tells no raw text, and completes any prompt. ``lost``: it drops a call."""

    def __init__(self, lost: bool) -> None:
        self.url, self.keyed, self.lost, self.budget = "http://x", False, lost, Budget(200, 10**6)

    def close(self) -> None:
        """Holds nothing."""

    def used(self, tokens: int | None) -> None:
        """Counts nothing."""

    def get(self, path: str) -> Response:
        return Response(200, json.dumps({"data": [{"id": "m", "owned_by": "someone"}]}))

    def post(self, path: str, body: dict[str, Any]) -> Response:
        chat = tiny("qwen3").chat
        if path == "/v1/completions":
            turn, prompt = chat.bind(tools=_TOOLS), body["prompt"]
        elif (
            body.get("logprobs")
            or "return_token_ids" in body
            or "verbose" in body
            or "return_input_ids_in_sglext" in body
        ):
            return Response(400, "{}")
        else:
            asked = {name: body[name] for name in ("tools", "tool_choice") if name in body}
            turn = chat.prepare(body["messages"], template_kwargs=body.get("chat_template_kwargs"), **asked)
            prompt = turn.prompt
        text = written(turn, prompt)
        encode = chat.tokenizer.encode
        counts = [len(encode(each, add_special_tokens=False).ids) for each in (prompt, text)]
        usage = {"prompt_tokens": counts[0], "completion_tokens": counts[1]}
        if path == "/v1/completions":
            return Response(200, json.dumps({"choices": [{"text": text}], "usage": usage}))
        message = turn.parse(text).to_openai()
        if self.lost:
            message.pop("tool_calls", None)
        reason = "tool_calls" if message.get("tool_calls") else "stop"
        choice = {"message": message, "finish_reason": reason}
        return Response(200, json.dumps({"choices": [choice], "usage": usage}))


@pytest.mark.parametrize("lost", [False, True])
def test_completions_of_the_same_prompt_make_a_lost_call_likely(
    lost: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chatparsers.verify.run.Client", lambda url, budget, **options: _Completions(lost))
    monkeypatch.setattr("chatparsers.verify.asking.Asker.ask", _whole_alone)
    verdict = run("http://x", tiny("qwen3").chat, Plan(probes=("text", "auto")))
    assert verdict.facts["raw"].startswith("/v1/completions")
    assert {row.code for row in verdict.blamed("likely")} == ({"call-lost"} if lost else set())
    assert not verdict.blamed("server") and verdict.status(strict=True) == int(lost)


_ask = Asker.ask


def _whole_alone(asker: Asker, probe: Any, api: Any, **more: Any) -> Any:
    return _ask(asker, probe, api, streams=False, **more)


def test_the_page_of_engines_is_what_its_script_writes() -> None:
    docs = Path(__file__).parents[2] / "docs"
    if not docs.is_dir():
        pytest.skip("no docs: not a checkout")
    page = runpy.run_path(str(docs / "_verified.py"))["page"]
    assert page() == (docs / "tables" / "verified.md").read_text(encoding="utf-8"), "run docs/_verified.py"


_CACHED: dict[str, list[dict[str, Any]]] = {
    "chat": [
        {"prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": n}}
        for n in (0, 7)
    ],
    "responses": [
        {"input_tokens": 9, "output_tokens": 1, "input_tokens_details": {"cached_tokens": n}} for n in (0, 7)
    ],
    "messages": [
        {
            "input_tokens": 9 - n,
            "output_tokens": 1,
            "cache_read_input_tokens": n,
            "cache_creation_input_tokens": 0,
        }
        for n in (0, 7)
    ],
}


@pytest.mark.parametrize("api", _CACHED)
def test_a_cache_of_which_nothing_is_said_is_told(api: str) -> None:
    """The prompt of a streamed answer was read for the whole one a moment before."""
    reads = APIS[api].read
    cold, warm = (reads({"usage": usage}) for usage in _CACHED[api])
    assert [(said.prompt, said.cached) for said in (cold, warm)] == [(9, 0), (9, 7)]
    for said, words in ((cold, "none of 1 prompts"), (warm, "")):
        stream = SimpleNamespace(said=said, answer=said)
        asked: Any = SimpleNamespace(whole=SimpleNamespace(said=None), stream=stream)
        facts = model_facts([asked])
        assert facts == {"prompts cached": [int(said is warm), 1]}
        assert words in " ".join(_model(facts)) and bool(words) == bool([*_model(facts)])
