"""Chat templates that no model has: random markers, layouts, ways to write calls, modes of reasoning, and quirks.

A `Spec` says what was chosen, so that a test knows what there is to be found; `write` makes a template of it. Nothing
here knows how the analysis works.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass

_WORDS = re.findall(
    r"\w+",
    """
    amber birch cedar delta ember fjord grove heron inlet jetty kelp larch maple north ochre pearl quill raven shale
    thorn umbra vale wharf yarrow zephyr action answer tool call invoke func plan reply think muse ponder section
    """,
)

STYLES = (
    "json",
    "json array",
    "json, id",
    "json, counter",
    "json, arguments first",
    "json, nested",
    "json, constant",
    "name as key",
    "name in tag",
    "bracket",
    "bracket, id",
    "indexed",
    "markdown",
    "tagged arguments",
    "tagged arguments, python",
    "keys and values",
    "attributes",
    "typed attributes",
    "a type for each",
    "a type before the name",
    "escaped values",
    "escaped values and names",
    "closed by name",
    "nested elements",
    "python",
    "gemma",
)
"""How calls are written."""


@dataclass(frozen=True)
class Spec:
    """How a template writes a turn.

    ``reasoning``: none, optional, empty (an empty thought if there is no other), open (the prompt opens it) or bare
    (the prompt opens it, and an answer without a thought has only the closer).
    """

    seed: int
    style: str
    reasoning: str
    wrapped: bool
    parallel: bool
    beside: bool
    section: bool

    @property
    def name(self) -> str:
        return f"{self.seed}: {self.style}, reasoning {self.reasoning}" + ", content wrapped" * self.wrapped


def choose(seed: int) -> Spec:
    """The choices of this seed; the styles take turns."""
    r = random.Random(seed)
    style = STYLES[seed % len(STYLES)]
    reasoning = r.choice(("none", "none", "optional", "empty", "open", "bare"))
    return Spec(
        seed,
        style,
        reasoning,
        wrapped=r.random() < 0.15,
        parallel=r.random() < 0.9,
        beside=r.random() < 0.85,
        section=r.random() < 0.5,
    )


def _text(text: str) -> str:
    """A string in the template."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"


class _Markers:
    """Random markers of one shape, all different."""

    def __init__(self, r: random.Random) -> None:
        self.r = r
        self.words = r.sample(_WORDS, len(_WORDS))
        self.shape = r.choice(("<{}>", "<|{}|>", "[{}]", "<{}:x>", "<｜{}｜>", "<<{}>>"))

    def word(self) -> str:
        word = self.words.pop()
        return f"{word}_{self.words.pop()}" if self.r.random() < 0.3 else word

    def pair(self) -> tuple[str, str]:
        name = self.word()
        if self.shape == "[{}]":
            name = name.upper()
        kind = self.r.random()
        if "|" in self.shape or "｜" in self.shape:
            ends = (f"{name}_begin", f"{name}_end") if kind < 0.6 else (name, "/" + name)
        else:
            ends = (name, "/" + name)
        return self.shape.format(ends[0]), self.shape.format(ends[1])

    def gap(self, *choices: str) -> str:
        return self.r.choice(choices or ("", "\n"))


def write(spec: Spec) -> str:
    """The template's source."""
    r = random.Random(spec.seed * 7919 + 1)
    m = _Markers(r)
    role_open, role_close, stop = _roles(r, m)
    think = m.pair()
    inner = m.gap("", "\n")
    after = m.gap("", "\n", "\n\n")
    opener, closer = think[0] + inner, inner + think[1] + after
    content = m.pair() if spec.wrapped else ("", "")
    calls = _calls(spec, r, m)
    lead = m.gap("", "\n", "\n\n")
    thought = "message.reasoning_content"
    lines = [
        "{%- if tools %}{{ " + _text(role_open("system")) + " }}{% for t in tools %}{{ t | tojson }}"
        "{% endfor %}{{ " + _text(role_close) + " }}{% endif %}",
        "{%- for message in messages %}",
        "{%- if message.role != 'assistant' %}",
        "{{- "
        + _text(role_open("§")).replace("§", "' + message.role + '")
        + " + message.content + "
        + _text(role_close)
        + " }}",
        "{%- else %}",
        "{{- " + _text(role_open("assistant")) + " }}",
    ]
    if spec.reasoning != "none":
        shown = "{{- " + f"{_text(opener)} + {thought} + {_text(closer)}" + " }}"
        empty = {
            "optional": "",
            "empty": "{{- " + _text(opener + closer) + " }}",
            "open": "{{- " + _text(opener + closer) + " }}",
            "bare": "{{- " + _text(closer.lstrip()) + " }}",
        }[spec.reasoning]
        lines.append("{%- if " + thought + " %}" + shown + "{%- else %}" + empty + "{%- endif %}")
    text = (
        "{%- if message.content %}{{- "
        + _text(content[0])
        + " + message.content + "
        + _text(content[1])
        + " }}{%- endif %}"
    )
    if not spec.beside:
        text = "{%- if not message.tool_calls %}" + text + "{%- endif %}"
    lines.append(text)
    lines.append("{%- if message.tool_calls %}")
    if not spec.parallel:
        lines.append(
            "{%- if message.tool_calls | length > 1 %}{{- raise_exception('one call at a time') }}{%- endif %}"
        )
    only_behind = r.random() < 0.5
    if lead and only_behind:
        lines.append("{%- if message.content %}{{- " + _text(lead) + " }}{%- endif %}")
    elif lead:
        lines.append("{{- " + _text(lead) + " }}")
    lines += [calls, "{%- endif %}", "{{- " + _text(stop) + " }}", "{%- endif %}", "{%- endfor %}"]
    prompt = role_open("assistant")
    if spec.reasoning in ("open", "bare"):
        off = opener + closer if spec.reasoning == "open" else closer.lstrip()
        tail = f"({_text(off)} if enable_thinking is defined and not enable_thinking else {_text(opener)})"
        lines.append("{%- if add_generation_prompt %}{{- " + _text(prompt) + " + " + tail + " }}{%- endif %}")
    else:
        lines.append("{%- if add_generation_prompt %}{{- " + _text(prompt) + " }}{%- endif %}")
    return "\n".join(lines)


def _roles(r: random.Random, m: _Markers) -> tuple[Callable[[str], str], str, str]:
    """A role's header, what ends another's message, and what ends the assistant's."""
    kind = r.randrange(4)
    if kind == 0:
        a, b = m.shape.format(m.word()), m.shape.format(m.word())
        return (lambda role: f"{a}{role}\n"), b + "\n", b + "\n"
    if kind == 1:
        end = m.shape.format(m.word())
        return (lambda role: f"<|{role}|>\n"), "\n", end
    if kind == 2:
        a, b = m.pair()
        end = m.shape.format(m.word())
        return (lambda role: f"{a}{role}{b}"), end, end
    end = m.shape.format(m.word())
    return (lambda role: f"{role}: "), "\n\n", end


def _calls(spec: Spec, r: random.Random, m: _Markers) -> str:
    """The calls of one message."""
    style = spec.style
    name, args = "call.function.name", "call.function.arguments"
    section = m.pair() if spec.section or style in ("json array", "name as key", "python") else ("", "")
    own = m.pair()
    gap = m.gap("", "\n")
    between = m.gap("", "\n")
    outer = m.gap("", "\n")
    keys = {
        "name": m.r.choice(("name", "tool", "tool_name", "function")),
        "args": m.r.choice(("arguments", "parameters", "input")),
    }
    one = ""

    def obj(*members: str) -> str:
        return "{{- '{' + " + " + ', ' + ".join(members) + " + '}' }}"

    def member(key: str, value: str) -> str:
        return _text(f'"{key}": ') + " + " + value

    named = member(keys["name"], f"({name} | tojson)")
    given = member(keys["args"], f"({args} | tojson)")
    if style in ("json", "json array"):
        one = obj(named, given)
    elif style == "json, arguments first":
        one = obj(given, named)
    elif style == "json, id":
        one = obj(
            *r.choice(
                (
                    (named, given, member("id", "(call.id | tojson)")),
                    (member("call_id", "(call.id | tojson)"), named, given),
                )
            )
        )
    elif style == "json, counter":
        one = obj(member("tool_call_id", "((loop.index0 | string) | tojson)"), named, given)
    elif style == "json, nested":
        one = '{{- \'{"type": "function", "function": {\' + ' + f"{named} + ', ' + {given}" + " + '}}' }}"
    elif style == "json, constant":
        one = obj(member("kind", "'\"call\"'"), named, given)
    elif style == "name as key":
        one = "{{- '{' + (" + name + " | tojson) + ': ' + (" + args + " | tojson) + '}' }}"
    elif style == "name in tag":
        word = m.word()
        one = (
            "{{- "
            + _text(f"<{word}=")
            + f" + {name} + "
            + _text(">" + gap)
            + f" + ({args} | tojson) + "
            + _text(gap + f"</{word}>")
            + " }}"
        )
    elif style in ("bracket", "bracket, id"):
        a, b, c = (f"[{m.word().upper()}]" for _ in range(3))
        id = f" + {_text(b)} + call.id" if style == "bracket, id" else ""
        one = "{{- " + _text(a) + f" + {name}{id} + {_text(c)} + ({args} | tojson)" + " }}"
    elif style == "indexed":
        prefix = r.choice(("functions.", "", "tools/"))
        separator = f"<|{m.word()}|>"
        one = (
            "{{- "
            + _text(own[0] + prefix)
            + f" + {name} + ':' + (loop.index0 | string) + {_text(separator)} + ({args} | tojson) + {_text(own[1])}"
            + " }}"
        )
    elif style == "markdown":
        heading = m.word().capitalize()
        one = (
            "{{- "
            + _text(f"{heading}: ")
            + f" + {name} + "
            + _text("\n```json\n")
            + f" + ({args} | tojson) + "
            + _text("\n```")
            + " }}"
        )
    elif style.startswith("tagged arguments"):
        f, a = m.word(), m.word()
        pad = m.gap("", "\n")
        value = (
            "(v if v is string else (v | string))"
            if "python" in style
            else "(v if v is string else (v | tojson))"
        )
        if "python" in style:
            value = "(v if v is string else (v | tojson if v is mapping or v is iterable else (v | string)))"
        one = (
            "{{- "
            + _text(f"<{f}=")
            + f" + {name} + "
            + _text(">\n")
            + " }}{%- for k, v in "
            + args
            + " | items %}{{- "
            + _text(f"<{a}=")
            + " + k + "
            + _text(f">{pad}")
            + f" + {value} + "
            + _text(f"{pad}</{a}>\n")
            + " }}{%- endfor %}{{- "
            + _text(f"</{f}>")
            + " }}"
        )
    elif style == "keys and values":
        k, v = m.pair(), m.pair()
        g = m.gap("", "\n")
        begin = own[0]
        one = (
            "{{- "
            + _text(begin)
            + f" + {name} + "
            + _text(g)
            + " }}{%- for k, v in "
            + args
            + " | items %}{{- "
            + _text(k[0])
            + " + k + "
            + _text(k[1] + g + v[0])
            + " + (v if v is string else (v | tojson)) + "
            + _text(v[1] + g)
            + " }}{%- endfor %}{{- "
            + _text(own[1])
            + " }}"
        )
    elif style in ("attributes", "typed attributes"):
        f, a, n = m.word(), m.word(), r.choice(("name", "key", "id"))
        typed = (
            "" if style == "attributes" else " + ('\" string=\"true' if v is string else '\" string=\"false')"
        )
        one = (
            "{{- "
            + _text(f'<{f} {n}="')
            + f" + {name} + "
            + _text('">' + gap)
            + " }}{%- for k, v in "
            + args
            + " | items %}{{- "
            + _text(f'<{a} {n}="')
            + f" + k{typed} + "
            + _text('">')
            + " + (v if v is string else (v | tojson)) + "
            + _text(f"</{a}>{gap}")
            + " }}{%- endfor %}{{- "
            + _text(f"</{f}>")
            + " }}"
        )
    elif style in ("a type for each", "a type before the name"):
        one = _typed(r, m, name, args, gap, style == "a type before the name")
    elif style.startswith("escaped values"):
        one = _escaped(r, m, name, args, gap, style.endswith("names"))
    elif style == "closed by name":
        f, a = m.word(), m.word()
        one = (
            "{{- "
            + _text(f"<{f} ")
            + f" + {name} + "
            + _text(">" + gap)
            + " }}{%- for k, v in "
            + args
            + " | items %}{{- "
            + _text(f"<{a}:")
            + " + k + '>' + (v if v is string else (v | tojson)) + "
            + _text(f"</{a}:")
            + " + k + "
            + _text(">" + gap)
            + " }}{%- endfor %}{{- "
            + _text(f"</{f}>")
            + " }}"
        )
    elif style == "nested elements":
        one = _nested(r, m, name, args, gap)
    elif style == "python":
        one = (
            "{{- "
            + name
            + " + '(' }}{%- for k, v in "
            + args
            + " | items %}{{- ', ' if not loop.first }}{{- k + '=' + (v | tojson) }}"
            "{%- endfor %}{{- ')' }}"
        )
    elif style == "gemma":
        quote = r.choice(('<|"|>', "<q>", "<escape>"))
        write_value = (
            "{%- macro val(v) %}{%- if v is string %}{{- "
            + _text(quote)
            + " + v + "
            + _text(quote)
            + " }}{%- elif v is mapping %}{{- '{' }}"
            "{%- for k, w in v | items %}{{- ',' if not loop.first }}{{- k + ':' }}{{- val(w) }}{%- endfor %}{{- '}' }}"
            "{%- elif v is iterable %}{{- '[' }}{%- for w in v %}{{- ',' if not loop.first }}{{- val(w) }}"
            "{%- endfor %}{{- ']' }}"
            "{%- else %}{{- v | tojson }}{%- endif %}{%- endmacro %}"
        )
        one = (
            write_value
            + "{{- "
            + _text(own[0] + "call:")
            + f" + {name} + val({args}) + "
            + _text(own[1])
            + " }}"
        )
    if style.startswith("json") and style != "json array":
        one = "{{- " + _text(own[0] + gap) + " }}" + one + "{{- " + _text(gap + own[1]) + " }}"
    listed = style in ("json array", "name as key", "python")
    separator = ", " if listed else between
    opening = section[0] + (outer if section[0] and not listed else "") + ("[" if listed else "")
    closing = ("]" if listed else "") + (outer if section[1] and not listed else "") + section[1]
    parts = ["{{- " + _text(opening) + " }}" if opening else "", "{%- for call in message.tool_calls %}"]
    if separator:
        parts.append("{%- if not loop.first %}{{- " + _text(separator) + " }}{%- endif %}")
    parts += [one, "{%- endfor %}", "{{- " + _text(closing) + " }}" if closing else ""]
    return "".join(parts)


def _in_tags(tag: str, key: str, name: str, args: str, gap: str, argument: str) -> str:
    """A call in tags with its name as an attribute. ``argument``: the expression that writes an argument."""
    opener = _text(f'<{tag} {key}="') + f" + {name} + " + _text('">' + gap)
    loop = "{%- for k, v in " + args + " | items %}{{- " + argument + " }}{%- endfor %}"
    return "{{- " + opener + " }}" + loop + "{{- " + _text(f"</{tag}>") + " }}"


def _typed(r: random.Random, m: _Markers, name: str, args: str, gap: str, first: bool) -> str:
    """Arguments with an attribute that says the JSON type of the value; ``first``: it stands before the name."""
    f, a, key, type = m.word(), m.word(), r.choice(("name", "key")), r.choice(("type", "kind"))
    words = r.choice(
        (
            ("string", "boolean", "number", "number", "null", "object", "array"),
            ("string", "boolean", "integer", "number", "null", "object", "array"),
            ("str", "bool", "int", "float", "none", "dict", "list"),
            ("text", "json", "json", "json", "json", "json", "json"),
        )
    )
    text, boolean, integer, number, null, mapping, array = (f"'{word}'" for word in words)
    kind = (
        f"({text} if v is string else {boolean} if v is boolean else {null} if v is none else {integer} if v is integer"
        f" else {number} if v is number else {mapping} if v is mapping else {array})"
    )
    attributes = [(key, "k"), (type, kind)]
    if first:
        attributes.reverse()
    opener = " + ".join(_text(f' {word}="') + f" + {value} + '\"'" for word, value in attributes)
    argument = (
        _text(f"<{a}")
        + f" + {opener} + '>' + (v if v is string else (v | tojson)) + "
        + _text(f"</{a}>{gap}")
    )
    return _in_tags(f, key, name, args, gap, argument)


def _escaped(r: random.Random, m: _Markers, name: str, args: str, gap: str, names: bool) -> str:
    """Arguments whose strings spell some characters in another way; ``names``: so do their names."""
    f, a, key = m.word(), m.word(), r.choice(("name", "key"))
    pairs = r.choice(
        (
            [("&", "&amp;"), ("<", "&lt;")],
            [("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")],
            [("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&#34;"), ("'", "&#39;")],
            [("&", "&#38;"), ('"', "&quot;"), ("<", "&#60;"), ("\n", "&#10;")],
            [("\\", "\\\\"), ("<", "\\x3c"), ("\n", "\\n")],
        )
    )

    def spelt(value: str, pairs: list[tuple[str, str]]) -> str:
        return value + "".join(f" | replace({_text(char)}, {_text(spelling)})" for char, spelling in pairs)

    key_value = spelt("k", [("&", "&amp;"), ('"', "&quot;")]) if names else "k"
    value = f"({spelt('v', pairs)}) if v is string else (v | tojson)"
    opener = _text(f'<{a} {key}="') + f" + ({key_value}) + " + _text('">')
    return _in_tags(f, key, name, args, gap, opener + f" + ({value}) + " + _text(f"</{a}>{gap}"))


def _nested(r: random.Random, m: _Markers, name: str, args: str, gap: str) -> str:
    """Objects and arrays as elements in elements, with a marker before each tag."""
    mark = r.choice((m.shape.format(m.word()), "]<]" + m.word() + "[>[", "§" + m.word() + ":"))
    f, item = m.word(), r.choice(("item", "entry", "li"))
    elements = (
        "{%- macro elements(v) %}{%- if v is mapping %}{%- for k, w in v | items if w is not none %}{{- "
        + f"{_text(mark + '<')} + k + '>' + elements(w) + {_text(mark + '</')} + k + '>'"
        + " }}{%- endfor %}{%- elif v is string %}{{- v }}{%- elif v is none %}{%- elif v is iterable %}"
        "{%- for w in v %}{{- "
        + f"{_text(mark + '<' + item + '>')} + elements(w) + {_text(mark + '</' + item + '>')}"
        + " }}{%- endfor %}{%- else %}{{- v | tojson }}{%- endif %}{%- endmacro %}"
    )
    return (
        elements
        + "{{- "
        + _text(f'{mark}<{f} name="')
        + f" + {name} + "
        + _text('">' + gap)
        + f" + elements({args}) + "
        + _text(f"{mark}</{f}>{gap}")
        + " }}"
    )
