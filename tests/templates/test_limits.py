"""Hostile templates end in `TemplateError` before they cost time or memory; ordinary ones never meet the limits."""

from __future__ import annotations

import tracemalloc
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest

import chatparsers
from chatparsers.errors import TemplateError
from chatparsers.templates import Limits, Template
from chatparsers.templates.jinja.limits import DEFAULT, Meter, account, current

USER = [{"role": "user", "content": "Hi"}]
SMALL = Limits(work=1_000_000)
OWN = sorted((Path(__file__).parent.parent / "templates_own").glob("*.jinja"))
REASONS = r"more than its limits|makes a number|makes a dict or set|rounds to|recursion|is unsafe|more than \\d+ bytes"

HOSTILE: dict[str, str] = {}
"""The templates of hostile.txt by name: a line ``=== name`` before each."""
for block in (Path(__file__).parent / "hostile.txt").read_text(encoding="utf-8").split("=== ")[1:]:
    name, _, source = block.partition("\n")
    HOSTILE[name] = source.removesuffix("\n")

KEEPING = [
    "append endless",
    "encode",
    "expandtabs",
    "generators kept",
    "kept slices",
    "kept strings",
    "macros kept",
    "namespace list",
    "namespaces kept",
    "range lists",
    "list of text",
    "split",
    "from_json lists",
]


@pytest.mark.one_in(1)
@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_template_ends_in_an_error(case: str) -> None:
    """Without limits nearly all of these take more than eight seconds or three gigabytes. A hang here is the defect."""
    with pytest.raises(TemplateError, match=REASONS):
        Template(HOSTILE[case], limits=SMALL).render(USER)


@pytest.mark.parametrize("case", KEEPING)
def test_what_a_template_keeps_is_bounded(case: str) -> None:
    """At most six bytes a unit: 96 MB with the limits that are usual, 6 MB with these."""
    template = Template(HOSTILE[case], limits=SMALL)
    with pytest.raises(TemplateError):
        template.render(USER)  # imports and compilation happen once and are not counted
    tracemalloc.start()
    try:
        with pytest.raises(TemplateError):
            template.render(USER)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= 6 * SMALL.work


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("{{ " + "(" * 100_000 + "1" + ")" * 100_000 + " }}", "nests too deep"),
        ("{{ " + "-" * 15_000 + "1 }}", "nests too deep"),
        ("{{ " + "not " * 15_000 + "1 }}", "nests too deep"),
        ("{{ a" + ".b" * 9_000 + " }}", "nests too deep"),
        ("{% break %}", "'break' outside loop"),
        ("{{ " + "1" * 5_000 + " }}", "cannot be compiled: Exceeds the limit"),
        ("{% for i in [1] %}" * 30 + "{% endfor %}" * 30, "too many statically nested blocks"),
        ("{{a}}" * 7_000, "more than 20,000 names and signs"),
        ("x" * 1_000_001, "1,000,001 characters, more than 1,000,000"),
    ],
    ids=["parentheses", "minus", "not", "dots", "break", "digits", "loops", "tokens", "length"],
)
def test_what_compiling_cannot_do_is_an_error_of_the_template(source: str, reason: str) -> None:
    with pytest.raises(TemplateError, match=rf"template <template>, line \d+: .*{reason}"):
        Template(source)


def test_the_error_names_the_line_says_what_to_do_and_repeats_little() -> None:
    with pytest.raises(
        TemplateError, match=r"^template t, line 2: .* \(1,000,000 units .*pass other Limits\)$"
    ):
        Template("\n{{ 'x' * 10**9 }}", name="t", limits=SMALL).render(USER)
    with pytest.raises(TemplateError) as caught:
        Template("{{ raise_exception('x' * 100000) }}").render(USER)
    assert len(str(caught.value)) < 1_500


def test_all_that_one_call_renders_shares_one_account(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a template that is hostile to each of fifty probes costs fifty times as much."""
    meters: list[Meter] = []
    monkeypatch.setattr(
        "chatparsers.templates.jinja.limits.Meter", lambda *a: meters.append(Meter(*a)) or meters[-1]
    )
    hostile = HOSTILE["nested range"]
    for call in (
        lambda: Template(hostile, limits=SMALL).probe(),
        lambda: Template(hostile, limits=SMALL).wants,
        lambda: chatparsers.detect(hostile, limits=SMALL),
        lambda: chatparsers.load(hostile + "\n", limits=SMALL).prepare(USER),
        lambda: chatparsers.load(hostile + "\n", limits=SMALL).detection,
    ):
        meters.clear()
        with pytest.raises(TemplateError, match="more than its limits"):
            call()
        assert sum(SMALL.work - meter.left for meter in meters) < 1.1 * SMALL.work


def test_the_limits_grow_with_what_the_caller_gives_alone() -> None:
    source = "{% for m in messages %}{{ m.content ~ '' }}{% endfor %}"
    narrow = Limits(work=10_000)
    long = [{"role": "user", "content": "x" * 100_000}]
    assert Template(source, limits=narrow).render(long) == "x" * 100_000
    assert Template("{% for i in x %}{% endfor %}", limits=narrow).render(USER, x=[0] * 20_000) == ""
    added = (
        "{% for i in range(100) %}{% set _ = messages.append({'content': 'x' * 50}) %}{% endfor %}" + source
    )
    with pytest.raises(TemplateError, match="more than its limits"):
        Template(added, limits=narrow).render(USER)
    with pytest.raises(TemplateError, match="more than its limits"):
        Template(source, limits=Limits(work=10_000, growth=0)).render(long)


def test_limits_are_a_frozen_record_that_load_takes() -> None:
    with pytest.raises(FrozenInstanceError):
        DEFAULT.work = 1  # type: ignore[misc]
    chat = chatparsers.load(
        "{{ 'x' * 5000 }}{% for m in messages %}{{ m.content }}{% endfor %}\n", limits=SMALL
    )
    assert chat.template().limits is SMALL
    with pytest.raises(TemplateError, match="1,000 units"):
        chatparsers.load(chat.template().source, limits=Limits(work=1_000, growth=0)).prepare(USER)


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.stem)
def test_an_ordinary_template_uses_little(path: Path) -> None:
    """A conversation of 400 messages takes less than a quarter of the usual limits, their growth not counted."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "Be brief."}]
    for number in range(200):
        messages += [
            {"role": "user", "content": f"Question {number}? " * 5},
            {"role": "assistant", "content": f"Answer {number}. " * 20},
        ]
    with account(Limits(growth=0), path.stem):
        Template(path.read_text(encoding="utf-8")).render(messages, add_generation_prompt=True)
        assert current().left > DEFAULT.work * 3 // 4


@pytest.mark.parametrize(
    ("expression", "shown"),
    [
        ("1 < 2 < 3, 3 > 2 > 2, 1 < x == 2, 2 in [1, x] == true", "(True, False, True, False)"),
        (
            "x not in [1], 'a' in 'abc', 'k' in {'k': 1}, 5 in range(9), none == x",
            "(True, True, True, True, False)",
        ),
        ("1 + 1, [1] + [2], (1,) + (2,), 'a' + 'b', 1.5 + 1", "(2, [1, 2], (1, 2), 'ab', 2.5)"),
        (
            "7 // 2, 7 / 2, 7 % 4, 2 ** 10, -x, +x, 2 * 'ab', [0] * 2",
            "(3, 3.5, 3, 1024, -2, 2, 'abab', [0, 0])",
        ),
        ("'%s-%05.1f-%(a)s' % {'a': 1} if false else '%s-%05.1f' % ('q', 2)", "q-002.0"),
        ("'{0:>4}|{a!r}|{0[0]}'.format('xy', a='z')", "  xy|'z'|x"),
        ("('<b>'|safe + '<i>') ~ '<u>'", "<b>&lt;i&gt;<u>"),
        ("[[3, 1], [2]]|sum(start=[])|sort|join('-')", "1-2-3"),
        ("['b', 'A', 'b']|unique|list, [1, 2, 1]|unique|list, [3, 1]|max", "(['b', 'A'], [1, 2], 3)"),
        (
            "'a,b,,c'.split(','), 'a b'.split(), 'x=1'.partition('='), 'aXbX'.rsplit('X', 1)",
            "(['a', 'b', '', 'c'], ['a', 'b'], ('x', '=', '1'), ['aXb', ''])",
        ),
        ("(1, 2, 3)[::2], 'abc'[-1:], [1, 2][5:]", "((1, 3), 'c', [])"),
        ("{x: 1, 'y': {(1, 2): 3}[(1, 2)]}", "{2: 1, 'y': 3}"),
        ("dict([('a', 1)], b=2), {'a': 1}.keys() - ['a'], {}.get('z', 4)", "({'a': 1, 'b': 2}, set(), 4)"),
        (
            "[1, 2, 3, 4]|batch(3, 0)|list, [1]|batch(10 ** 9)|list, 'ab'|list, 7.26|round(1), 'x'|center(3)",
            "([[1, 2, 3], [4, 0, 0]], [[1]], ['a', 'b'], 7.3, ' x ')",
        ),
        (
            "3 is odd, 4 is divisibleby 2, 'a' is lower, 2 is in [2], none|map('upper')|list",
            "(True, True, True, True, [])",
        ),
        (
            "'a\nb'|indent(2), 'ab'|replace('', '-'), 'aaa'|replace('a', 'b', 2)",
            r"('a\n  b', '-a-b-', 'bba')",
        ),
        (
            "{% for i in range(5) if i is odd %}{{ loop.index }}{{ i }}{% else %}none{% endfor %}"
            "{% autoescape true %}{{ '<' ~ x }}{{ '<b>'|safe }}{% endautoescape %}"
            "{% block b %}[{{ x }}]{% endblock %}{{ self.b() }}"
            "{% macro m(a, b=2) %}{{ a }}{{ b }}{{ caller() if caller }}{% endmacro %}"
            "{{ m(1) }}{% call m(3) %}c{% endcall %}{% set t %}{{ x }}!{% endset %}{{ t }}"
            "{% filter upper %}a{{ x }}{% endfilter %}"
            "{% for i in [[1, [2]]] recursive %}{{ i if i is number else loop(i) }}"
            "{% endfor %}",
            "1123&lt;2<b>[2][2]12" + "32c" + "2!A212",
        ),
    ],
)
def test_operators_filters_loops_and_blocks_do_what_python_and_jinja_do(expression: str, shown: str) -> None:
    source = expression if "{%" in expression else "{{ " + expression + " }}"
    assert Template(source).render(USER, x=2) == shown
