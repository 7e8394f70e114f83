"""The sandbox: what templates may do in it, what they may not, and what transformers gives them."""

from __future__ import annotations

import pytest

from chatparsers.errors import TemplateError
from chatparsers.templates import Template
from chatparsers.templates.jinja.environment import asked_of

USER = [{"role": "user", "content": "Hi"}]


def render(source: str, **variables: object) -> str:
    return Template(source).render(USER, **variables)


@pytest.mark.parametrize(
    "expression",
    [
        "''.__class__.__mro__",
        "messages.__class__.__base__.__subclasses__()",
        "raise_exception.__globals__.x",
        "strftime_now.__code__.co_code",
        "cycler.__init__.__globals__",
        "'{0.__class__.__mro__}'.format(messages)",
        "messages.append.__self__.x",
        "messages.clear()",
        "messages[0].update({'role': 'system'})",
        "messages.sort()",
    ],
)
def test_the_sandbox_refuses(expression: str) -> None:
    with pytest.raises(TemplateError, match=r"template <template>, line 2.*sandbox"):
        render("\n{{ " + expression + " }}")


def test_a_template_changes_copies_alone() -> None:
    messages = [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]
    documents = [{"ids": [1]}]
    source = (
        "{% set _ = messages.append(1) %}{% set _ = documents.append(2) %}{% set _ = documents[0].ids.pop() %}"
        "{{ messages | length }}{{ documents | length }}{{ documents[0].ids }}"
    )
    assert Template(source).render(messages, documents=documents) == "22[]"
    assert messages == [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]
    assert documents == [{"ids": [1]}]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        pytest.param("{% if true %}\n  a\n  {% endif %}\nb", "  a\nb", id="blocks are trimmed"),
        pytest.param(
            "{% for m in [1, 2, 3] %}{% if m == 2 %}{% continue %}{% endif %}{{ m }}{% endfor %}",
            "13",
            id="continue",
        ),
        pytest.param(
            "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}",
            "Hi",
            id="generation",
        ),
        pytest.param(
            "{{ 'a' if tools is none }}{{ documents }}{{ add_generation_prompt }}",
            "aNoneFalse",
            id="variables",
        ),
        pytest.param(
            "{{ {'b': 'é<', 'a': [1, true, none]} | tojson }}",
            '{"b": "é<", "a": [1, true, null]}',
            id="tojson escapes nothing",
        ),
        pytest.param(
            "{{ {'b': 1, 'a': 'é'} | tojson(ensure_ascii=True, sort_keys=True) }}",
            '{"a": "\\u00e9", "b": 1}',
            id="tojson in ascii",
        ),
        pytest.param(
            "{{ [1, 2] | tojson(separators=(',', ':')) }}{{ [1] | tojson(indent=2) }}",
            "[1,2][\n  1\n]",
            id="tojson with separators",
        ),
        pytest.param(
            "{{ messages | map(attribute='role') | tojson }}{{ {'k': 1}.items() | tojson }}",
            '["user"][["k", 1]]',
            id="tojson of iterators",
        ),
        pytest.param("""{{ ('{"x": 1.50}' | from_json).x }}""", "1.50", id="exact numbers"),
        pytest.param("{{ strftime_now('%Y') }}", "at %Y", id="a clock that is set"),
    ],
)
def test_options_tags_and_filters_are_those_of_transformers_and_more(source: str, text: str) -> None:
    assert render(source, strftime_now=lambda pattern: f"at {pattern}") == text


def test_what_is_given_and_what_is_not() -> None:
    with pytest.raises(TemplateError, match="Undefined is not JSON serializable"):
        render("{{ nothing | tojson }}")
    assert render("{{ persona.name }}", persona={"name": "Ada"}) == "Ada"
    assert render("{{ strftime_now('%Y') }}").isdigit()


@pytest.mark.parametrize(
    ("expression", "inside", "whole"),
    [
        ("'<a>' in m.content", {"<a>"}, set()),
        ("'<a>' not in m.content", {"<a>"}, set()),
        ("m.role in ['user', 'system']", set(), {"user", "system"}),
        ("m.role == 'user'", set(), {"user"}),
        ("'user' != m['role']", set(), {"user"}),
        ("m.content[:3] == '<a>'", {"<a>"}, set()),
        ("m.content.startswith('<a>')", {"<a>"}, set()),
        ("m.content | length == 3", set(), set()),
    ],
)
def test_a_template_tells_texts_by_what_they_contain_or_by_what_they_are(
    expression: str, inside: set[str], whole: set[str]
) -> None:
    asked = asked_of(f"{{{{ {expression} }}}}")
    assert (asked.inside, asked.whole) == (inside, whole)
    # So texts that differ in nothing else take the same way.
    assert asked.of("b") == asked.of("c") == () and asked.of("x <a> y") == (("<a>",) if inside else ())
