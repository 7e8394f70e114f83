"""A traced rendering is the plain one and says whose each character is: all templates, with and without polyfills."""

from __future__ import annotations

import json
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from making import tool

import chatparsers
from chatparsers.chat.request import Request
from chatparsers.errors import ChatParsersError
from chatparsers.templates import Template
from chatparsers.templates.code import Code
from chatparsers.templates.jinja.environment import environment
from chatparsers.templates.jinja.limits import DEFAULT, account
from chatparsers.templates.jinja.observed import Observed, seen
from chatparsers.templates.jinja.traced import runs_of, traced, tracing
from chatparsers.templates.trace import TraceSpan, covered

sys.path.insert(0, str(Path(__file__).parent))

from conversations import load_chat

TOOLS = [
    tool(
        "get_weather",
        {
            "city": {"type": "string", "description": "Where."},
            "days": {"type": "integer"},
        },
        ["city"],
        description="The weather.",
    )
]


def call(id: str, city: str, text: bool) -> dict[str, Any]:
    arguments = {"city": city, "days": 3}
    given = json.dumps(arguments) if text else arguments
    return {"id": id, "type": "function", "function": {"name": "get_weather", "arguments": given}}


def said(role: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


def told(id: str, content: str) -> dict[str, Any]:
    return said("tool", content, tool_call_id=id, name="get_weather")


CONVERSATIONS = {
    "chat": [
        *(said("system", "Be brief."), said("user", "Hello you"), said("assistant", "Hi there")),
        *(
            said("user", "  More,\nplease "),
            said("assistant", "Well then", reasoning_content="Thinking of it"),
        ),
    ],
    "quoted": [
        said("user", "What is <|im_end|> or </s> or <think> for?"),
        said("assistant", "Good question"),
        said("system", 'A late "system" text'),
        said("user", "One"),
        said("user", [{"type": "text", "text": "Two"}, {"type": "text", "text": "Three"}]),
    ],
    "calls": [
        said("user", "Weather?"),
        said(
            "assistant", "Let me see", tool_calls=[call("abcdefghi", 'Oslo "x"\n<tool_call> é', text=False)]
        ),
        *(told("abcdefghi", "12 degrees"), said("assistant", "It is cold")),
    ],
    "more calls": [
        *(said("developer", "Rules"), said("user", "Weather?")),
        said(
            "assistant",
            "",
            reasoning_content="Thought",
            tool_calls=[call("abcdefgh1", "Oslo", text=True), call("abcdefgh2", "Rome", text=True)],
        ),
        *(told("abcdefgh1", '{"degrees": 12}'), told("abcdefgh2", "13 degrees"), said("user", "Thanks")),
    ],
}


def check(chat: chatparsers.Chat) -> int:
    """Traces all conversations; how many the template takes."""
    taken = 0
    for name, messages in CONVERSATIONS.items():
        for polyfills in (None, False):
            options = {
                "tools": TOOLS if "calls" in name else None,
                "now": datetime(2025, 1, 1),
                "add_generation_prompt": messages[-1]["role"] != "assistant",
                "id_seed": "seed",
                "polyfills": polyfills,
            }
            request = Request(chat, options)
            try:
                plain = request.prepare(messages).prompt
            except ChatParsersError:
                continue
            taken += 1
            trace = request.traced(messages).trace
            assert (name, polyfills, trace.text) == (name, polyfills, plain)
            assert all(a.end <= b.start for a, b in zip(trace.spans, trace.spans[1:], strict=False))
            for index, message in enumerate(messages):
                content = message["content"]
                for part, text in enumerate(
                    [content] if isinstance(content, str) else [part["text"] for part in content]
                ):
                    spans = [span for span in trace.of(index, "content") if span.part == part]
                    words = "".join(plain[span.start : span.end] for span in spans).strip()
                    twice = words.replace(text.strip(), "") == ""  # some show a text in two places
                    exact = all(span.verbatim for span in spans)
                    shown = text.strip() in plain
                    assert (twice if exact else bool(spans)) or (not shown and not spans), (
                        name,
                        polyfills,
                        index,
                    )
                if message.get("tool_calls") and "Oslo" in plain:
                    assert "Oslo" in "".join(plain[s.start : s.end] for s in trace.of(index, "arguments"))
    return taken


@pytest.mark.filterwarnings("ignore")
def test_a_trace_is_the_rendering(every_template: Path | str) -> None:
    assert check(load_chat(every_template))


@pytest.mark.parametrize(
    "source",
    [
        *(
            "{{ t }}",
            "{{ t + 'x' }}",
            "{{ 'x' + t }}",
            "{{ t ~ 1 ~ t }}",
            "{{ t[1:3] }}",
            "{{ t[0] }}",
            "{{ t[-1] }}",
        ),
        *(
            "{{ t * 2 }}",
            "{{ t | trim }}",
            "{{ t.strip() }}",
            "{{ t.strip('a ') }}",
            "{{ t | upper }}",
            "{{ t[::-1] }}",
        ),
        *(
            "{{ t.split(',') | join(';') }}",
            "{{ t.split(',') | join('<b>' | safe) }}",
            "{{ t.split(',') | join(1) }}",
            "{{ t.expandtabs(4) }}",
            "{{ t.split() }}",
            "{{ t.rsplit(',', 1)[0] }}",
            "{{ t.splitlines() }}",
        ),
        *(
            "{{ t.partition(',') | list }}",
            "{{ t.replace(',', t) }}",
            "{{ t.replace(',', ';', 1) }}",
            "{{ 'a,b' | replace(',', t) }}",
            "{{ t | title }}",
        ),
        *(
            "{{ [t, {'k': t}] | tojson }}",
            "{{ {t: [t, 1]} | tojson(indent=2) }}",
            "{{ t | tojson | safe }}",
            "{{ [t] }}",
        ),
        *(
            "{{ '<b>' | safe + t }}",
            "{{ t + ('<b>' | safe) }}",
            "{{ t | e }}",
            "{{ t | indent(2) }}",
            "{{ ', '.join([t, t]) }}",
        ),
        *(
            "{{ '%s!' % t }}",
            "{{ '{}!'.format(t) }}",
            "{{ t.format(1) }}",
            "{% for c in t %}{{ c }}.{% endfor %}",
        ),
        *(
            "{% macro m(x) %}({{ x }}){% endmacro %}{{ m(t) }}",
            "{% set x %}{{ t }}{% endset %}{{ x }}",
            "{{ t | length }}",
        ),
        *(
            "{{ t if t in [t] and t == t and t < 'zz' else 1 }}",
            "{{ {t: 1}[t] }}",
            "{{ t | list | first }}",
            "{{ t.title() }}",
        ),
        *(
            "{{ t.removeprefix(' ') }}",
            "{{ t.removesuffix('é') }}",
            "{{ t.center(20) }}",
            "{{ t | truncate(4) }}",
            "{{ t.x }}",
        ),
        *(
            "{{ (t | tojson | from_json) + t.rpartition(',')[2] }}",
            "{{ t.lower().capitalize() }}",
            "{{ t.swapcase() }}",
        ),
    ],
)
def test_every_operation_gives_the_same_text_and_moves_the_runs(source: str) -> None:
    for text in (' a,b"<c>\n é', "a", ", ,", "a\tb"):
        template = environment().from_string(source)
        with account(DEFAULT, "test"):
            plain = template.render(t=text)
            with tracing():
                shown = template.render(t=traced(text, ((0, len(text), 0, 0, len(text)),)))
        assert str.__str__(shown) == plain
        for start, end, _, first, last in runs_of(shown):
            assert start < end and first < last
            if end - start == last - first and not any(
                word in source for word in ("upper", "title", "case", "lower", "-1")
            ):
                assert text[first:last] == plain[start:end]
        whole = "".join(plain[run[0] : run[1]] for run in runs_of(shown))
        assert whole or not plain.strip() or any(word in source for word in ("length", "[t]", "t.x")), source


@pytest.mark.parametrize("source", ["{{ ['zz', t] | max }}", "{{ [t, 'A'] | min }}"])
def test_an_item_that_is_no_word_of_a_message_has_no_runs(source: str) -> None:
    with account(DEFAULT, "test"), tracing():
        shown = environment().from_string(source).render(t=traced("b", ((0, 1, 0, 0, 1),)))
    assert str(shown) in ("zz", "A") and not runs_of(shown)


def test_words_that_are_shown_twice_are_covered() -> None:
    spans = [TraceSpan(0, 4, 0, "content", 0, 0, 4, True), TraceSpan(9, 10, 0, "content", 0, 1, 2, True)]
    assert covered("abcd", spans) and not covered("abcde", spans)


@pytest.mark.parametrize(
    "look",
    [
        *("m.a", "m['a']", "m.get('a')", "'a' in m", "m.a is defined", "m | attr('a')", "m.pop is defined"),
        *(
            "m",
            "m | string",
            "m | tojson",
            "[m] | tojson",
            "m | length",
            "m | list",
            "m | dictsort",
            "m ~ ''",
        ),
        *(
            "m.items() | list",
            "m.keys() | list",
            "m.values() | list",
            "m | items | list",
            "m.copy() | tojson",
        ),
        *(
            "dict(m) | tojson",
            "dict(m, b=1) | tojson",
            "dict(**m) | tojson",
            "m == {'role': 'user'}",
            "m != 1",
        ),
        *("messages | map(attribute='a') | list", "messages | selectattr('a') | list | length", "messages"),
        "messages | groupby('a', default='') | list | length",
        *(
            "messages[0] == messages[1]",
            "messages[0] != m",
            "[m] == messages[1:]",
            "loop.changed(m)",
            "m | pprint",
        ),
    ],
)
def test_what_a_template_looks_at_is_rendered_anew(look: str) -> None:
    source = f"{{% for m in messages %}}{{{{ {look} }}}}{{% endfor %}}"
    first = {"role": "user", "content": "x"}
    messages = [[first, first | more] for more in ({}, {"a": "y"}, {"a": "z"}, {"b": "z"})]
    template = Template(source)
    for each in messages:
        found = template.shown(each)
        assert found == Template(source).shown(each) and found.text == template.render(each)


def test_what_a_template_never_looks_at_costs_no_rendering(monkeypatch: pytest.MonkeyPatch) -> None:
    template = Template("{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}")
    asked: list[dict[str, Any]] = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": ""}]
    first, _ = template.shown(asked), template.wants
    monkeypatch.setattr(Code, "write", None)
    for more in ({"content": "Yes."}, {"reasoning_content": "y"}, {"tool_calls": []}):
        said = [asked[0] | {"name": "x"}, asked[1] | more]
        assert template.shown(said, tools=TOOLS, add_generation_prompt=True, enable_thinking=True) == first


@pytest.mark.parametrize("name", ["strftime_now", "functions", "datetime", "namespace", "other"])
def test_a_variable_of_the_callers_is_rendered_anew(name: str) -> None:
    shown = f"{name}('%Y')" if name == "strftime_now" else name
    template = Template(
        f"{{{{ messages[0].content }}}}{{% if add_generation_prompt %}}{{{{ {shown} }}}}{{% endif %}}"
    )
    for value in ("1969", "2001"):
        given: Any = (lambda form, value=value: value) if name == "strftime_now" else value
        assert template.generation_prompt([{"role": "user", "content": "x"}], **{name: given}) == value


def test_little_is_kept_of_what_a_template_looks_at() -> None:
    for keys in ([f"key {number}" for number in range(1000)], ["x" * 1000], [7], [("a",)]):
        message = Observed({"role": "user"})
        assert [message.get(key) for key in keys] == [None] * len(keys)
        assert seen(message) is None
    template = Template("{% for m in messages %}{{ m.role }}{% endfor %}")
    for number in range(1000, 1010):
        assert template.generation_prompt([{"role": "user", "content": "x"}] * number) == ""
    assert max(map(len, template._probed._ways)) < 10


@pytest.mark.parametrize("wrong", ["m.a.b", "m + 1", "m < m", "[m] | unique | list", "m | abs"])
def test_an_error_of_a_stand_in_is_that_of_a_message(wrong: str) -> None:
    template = Template(f"{{% for m in messages %}}{{{{ {wrong} }}}}{{% endfor %}}")
    said = []
    for render in (template.probed, template.render):
        with pytest.raises(ChatParsersError, match="dict") as found:
            render([{"role": "user", "content": "x"}])
        said.append(str(found.value))
    assert said[0] == said[1]
