"""Free text around calls (``tool_choice="auto"``) holds nothing that the parser takes for the beginning of a call.

So no call slips past the schemas, and no turn ends inside one. If an engine takes a whole text, the strict parser reads
it to its end.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from engines import FULL, compile_for, engines_of, llguidance, xgrammar
from samples import tool
from spellings import Spelling
from test_matrix import TOOL_FORMATS
from test_sampler import LOADERS, end_of, mask_of
from toy import toy_tokenizer

import chatparsers
from chatparsers.answers.format import Format
from chatparsers.answers.idioms import Options
from chatparsers.answers.nodes import Body, Think
from chatparsers.core.tree import first, tokens, walk
from chatparsers.errors import DefinitionError
from chatparsers.guide.engines import ENGINES, engine_for
from chatparsers.testing.plugin import tokenizer_loaders

TOOLS = [
    tool("get_weather", {"city": {"type": "string"}}, ["city"]),
    tool("get-time", {}, []),
    tool("python", {"code": {"type": "string"}}, ["code"]),
]
SCHEMAS = {tool["function"]["name"]: tool["function"]["parameters"] for tool in TOOLS}
DIALECTS = ("lark", "structural_tag")

FUNCTION = "<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n</function>"
FUNCTION_JSON = '<function=get_weather>{"city": "Oslo"}</function>'
ARRAY = '[{"name": "get_weather", "arguments": {"city": "Oslo"}}]'
TAGGED = '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</tool_call>'
JSON_CALL = '{"name": "get_weather", "parameters": {"city": "Oslo"}}'
WRONG_ARRAY = ARRAY.replace('"Oslo"', "5")
OTHER_MEMBER = JSON_CALL.replace("{", '{"foo": 1, ', 1).replace('"Oslo"', "5")


def turn_of(name: str, **more: Any) -> chatparsers.Turn:
    return chatparsers.get_format(name).bind(tools=TOOLS, thinking=False, **more)


def judge(turn: chatparsers.Turn, dialect: str) -> Any:
    return compile_for(engines_of(dialect)[0], str(turn.grammar(dialect)), dialect)


def complaints(message: chatparsers.Message) -> list[str]:
    """The diagnostics of a message, without those of a word that could have begun a call and is prose (`Action:`)."""
    return [
        note.code for note in message.diagnostics if note.code != "stray-marker" or note.found[:1] in "<[{|"
    ]


REFUSED = [
    *((name, FUNCTION) for name in ("qwen3-coder", "nemotron-v3", "seed-oss", "xiaomi-mimo")),
    *((name, f"Let me see.\n{FUNCTION}") for name in ("qwen3-coder", "nemotron-v3", "seed-oss", "xiaomi-mimo")),
    ("generic", ARRAY),
    ("generic", f" \n{ARRAY}"),
    ("granite", ARRAY),
    ("granite", ARRAY.replace("[{", "[\n  {")),
    ("granite", TAGGED.replace("{", "[{", 1).replace("}<", "}]<")),
    ("llama-3-x", "<|python_tag|>print(1)"),
    ("llama-3-x", "Let me see. <|python_tag|>print(1)"),
    ("llama-3-x", "<|python_tag|>get-time.call()"),
    ("llama-3-x", f"Let me see.\n{JSON_CALL}"),
    ("llama-3-x", f" \n{JSON_CALL.replace('Oslo', '')[:-3]}"),
    ("llama-3-x", JSON_CALL.replace('"Oslo"', "5")),
    ("llama-3-x", JSON_CALL.replace('"Oslo"', "5").replace("{", '{"type": "function", ', 1)),
    ("llama-3-x", '{"parameters": {"city": 5}, "name": "get_weather"}'),
    ("llama-3-x", OTHER_MEMBER),
    ("pythonic", "<|python_start|>"),
    ("pythonic", "Let me see. <|python_start|>[get_weather(city=5)]<|python_end|>"),
    ("llama-3-x", '{"foo": [1], "parameters": {"city": 5}, "name": "get_weather"}'),
    ("llama-3-x", '{"foo": 1, "function": {"name": "get_weather", "arguments": {"city": 5}}}'),
    ("generic", WRONG_ARRAY.replace("{", '{"foo": 1, ', 1)),
    ("granite", WRONG_ARRAY.replace("{", '{"foo": 1, ', 1)),
    ("gigachat-3", "function call" + OTHER_MEMBER),
    ("xlam", f"Let me see. <tool_call>{WRONG_ARRAY}</tool_call>"),
    ("functionary-v3-1", "Let me see. <|python_tag|>print(1)"),
    ("functionary-v3-1", "<function=nobody>{}</function>"),
    ("gemma-4", "Hm.\ncall:get_weather{city:5}"),
    ("gemma-4", "Hm.\ncall:default_api.get_weather{city:5}"),
]  # fmt: skip
"""Other beginnings of calls, which the parser would read or tell."""
TAKEN = [
    ("xlam", "Let me see. ```json\n" + WRONG_ARRAY + "\n```"),  # a fence amid prose is a document
    ("qwen3-coder", f"Text.\n<tool_call>\n{FUNCTION}\n</tool_call>"),
    ("functionary-v3-1", f"Text. {FUNCTION_JSON}"),
    ("granite", f"Text.<|tool_call|>{ARRAY}"),
    ("granite", "See [1] and [2]."),
    ("llama-3-x", JSON_CALL),
    ("llama-3-x", '<|python_tag|>get_weather.call(city="Oslo")'),
    ("llama-3-x", '{"name": "get-time", "parameters": {}}'),
    ("llama-3-x", '{"items": [{"city": "Oslo", "type": "city"}], "type": "list"}'),
    ("gpt-oss", "<|start|>assistant<|channel|>final<|message|>It is warm."),
    ("kimi-k3", "<|open|>response<|sep|>It is warm."),
    ("generic", '[{"items": []}, 2]'),
    ("xlam", 'See:\n```json\n[{"city": "Oslo"}, 2]\n```'),
]
"""Calls in the format's own form, and other JSON."""
BY_KEY = ("llama-3-x", '{"function": 5, "x": 0.5}')
"""JSON that one dialect tells from a call by a value, and the other does not."""
UNTOLD = [
    ("llama-3-x", '{"items": [{"name": "Oslo"}]}'),
    ("llama-3-x", '{"function": "sin", "x": 0.5}'),
    ("generic", '[{"items": [{"name": "Oslo"}]}]'),
]
"""JSON that free text cannot tell from a call at the start of an answer, as docs/grammar.md says: a regular language
does not know which object has a name, and the declared names in it are more than llguidance's lexer bears."""


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("verdict", "name", "text"),
    [
        (verdict, *row)
        for verdict, rows in (
            ("refused", REFUSED),
            ("taken", TAKEN),
            ("untold", UNTOLD),
            ("by key", [BY_KEY]),
        )
        for row in rows
    ],
)
def test_what_free_text_may_be(verdict: str, name: str, text: str, dialect: str) -> None:
    turn = turn_of(name)
    judged = judge(turn, dialect)
    message = turn.parse(text)
    if verdict == "taken" or (verdict == "by key" and dialect == "lark"):
        assert judged.status(text) == FULL
        return
    assert judged.status(text).kind == "rejected"
    if verdict == "refused":
        assert message.tool_calls or message.diagnostics, "the parser reads plain text: the row tests nothing"
    else:
        assert not message.tool_calls
    free = "Let me see. [1] {x} <b>" if verdict == "refused" else f"Here: {text}"
    assert judged.status(free) == FULL or name == "generic"


@pytest.mark.parametrize("name", TOOL_FORMATS)
def test_other_spellings_of_calls_are_refused_or_right(name: str, request: pytest.FixtureRequest) -> None:
    """Texts that the parser's lenient reading makes: as far as an engine takes one whole, the parser reads it without
    a complaint, and its calls follow their schemas."""
    turn = turn_of(name)
    body = next(node for node in walk(turn.tree) if isinstance(node, Body))
    parts = [part for part in (body.start, body.calls, body.marks) if part is not None]
    checkers = [(dialect, judge(turn, dialect)) for dialect in DIALECTS]
    rng = random.Random(name)
    spelling = Spelling(rng)
    calls = 0
    for index in range(300 if request.config.getoption("--nightly", default=False) else 12):
        text = rng.choice(("", "", "\n", "Hi. ", "Hi.\n")) + spelling.text(rng.choice(parts))
        text = text[: rng.randint(0, len(text))] if index % 4 == 3 else text
        text += rng.choice((" ok", "\n", '"', "}")) if index % 5 == 4 else ""
        calls += len(turn.parse(text).tool_calls)
        for dialect, checker in checkers:
            if checker.status(text) == FULL:
                message = turn.parse(text, strict=True)
                assert message.complete and not complaints(message), (dialect, text, message)
                for call in message.tool_calls:
                    jsonschema.validate(json.loads(call.arguments), SCHEMAS[call.name])
    assert calls, "the parser reads no call in these texts: they test nothing"


def openers(name: str) -> Iterator[str]:
    """Everything that the parser takes for the beginning of a call in running text or at the turn's start, and the
    beginnings of reasoning."""
    tree = chatparsers.get_format(name).tree(Options(tools=True))
    body = next(node for node in walk(tree, True) if isinstance(node, Body))
    for thought in walk(tree):
        if isinstance(thought, Think):
            yield from tokens(thought.span.open)
    for part in (body.calls, body.start):
        if part is not None:
            try:
                yield from first(part)
            except DefinitionError:  # it begins with a name
                yield "get_weather"
    grammar = chatparsers.get_format(name).bind(tools=TOOLS).grammar()
    yield from (trigger.value[:16] for trigger in grammar.triggers if trigger.kind == "word")


@pytest.mark.parametrize("name", TOOL_FORMATS)
def test_no_turn_ends_inside_an_opener(name: str) -> None:
    """A text that ends anywhere in an opener, or after it, is refused or is plain text to the strict parser too."""
    turn = turn_of(name)
    texts = {
        before + opener[:cut] + after
        for opener in (*openers(name), FUNCTION, ARRAY, TAGGED, JSON_CALL, FUNCTION_JSON)
        for cut in (range(1, len(opener) + 1) if len(opener) < 24 else (len(opener),))
        for before in ("", "Hi\n")
        for after in ("", " x")
    }
    for dialect in DIALECTS:
        checker = judge(turn, dialect)
        for text in sorted(texts):
            if checker.status(text) != FULL:
                continue
            message = turn.parse(text, strict=True)
            assert message.complete and not complaints(message), (dialect, text, message)
            for call in message.tool_calls:
                jsonschema.validate(json.loads(call.arguments), SCHEMAS[call.name])


@pytest.mark.parametrize("dialect", ("gbnf", *DIALECTS))
def test_a_name_that_the_format_cannot_write(dialect: str) -> None:
    odd = [tool("get<|im_end|>", {}, [])]
    with pytest.raises(
        chatparsers.SchemaError, match=r"\$\.tools\.get<\|im_end\|>\.name: the format cannot write"
    ):
        chatparsers.get_format("qwen3-coder").bind(tools=odd).grammar(dialect)
    spaced = chatparsers.get_format("qwen3-coder").bind(tools=[tool("get weather", {}, [])])
    assert "get weather" in str(spaced.grammar(dialect))
    only = chatparsers.get_format("llama-3-x").bind(tools=[TOOLS[1]])  # it has the JSON form
    assert ".call(" not in str(only.grammar(dialect))


@pytest.mark.parametrize("dialect", ("gbnf", *DIALECTS))
def test_calls_begin_with_the_names_in_use(dialect: str) -> None:
    """A vocabulary without the suffix of Hunyuan's markers: text and calls are written without it."""
    turn = turn_of("hunyuan-v3", prefix="<think>\n</think>\n")
    grammar = turn.grammar(dialect)
    assert grammar is not None and ":opensource>" not in "".join(t.value for t in grammar.triggers)
    if dialect != "gbnf":
        call = "<tool_calls>\n<tool_call>get-time<tool_sep>\n</tool_call>\n</tool_calls>"
        assert judge(turn, dialect).status(f"Text.{call}") == FULL


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", ["qwen3", "deepseek-r1", "glm-4-5", "gpt-oss", "command-r7b"])
def test_a_thought_comes_before_text_and_calls(name: str, dialect: str) -> None:
    format = chatparsers.get_format(name)
    for called in ({"tool_calls": CALLED[:1]}, {}):
        said = {"role": "assistant", "content": "" if called else "Hi.", "reasoning_content": "Hm.", **called}
        text = format.render(said, TOOLS).lstrip("\n")
        turn = format.bind(tools=TOOLS, thinking=True)
        message = turn.parse(text)
        assert message.reasoning.strip() == "Hm." and bool(message.tool_calls) is bool(called)
        assert judge(turn, dialect).status(text) == FULL, text


CALLED = [
    {"id": "abcdefgh1", "type": "function", "function": {"name": name, "arguments": arguments}}
    for name, arguments in (("get_weather", '{"city": "Oslo"}'), ("get-time", "{}"))
]


@pytest.mark.parametrize("name", TOOL_FORMATS)
def test_text_and_calls_as_the_format_writes_them_are_taken(name: str) -> None:
    """A writer that allows too little would agree with the other writers' refusals: these texts must be taken."""
    format = chatparsers.get_format(name)
    taken = 0
    body = next(node for node in walk(format.tree(Options(tools=True)), True) if isinstance(node, Body))
    for thought in ("",) if body.reasoning is None else ("", "Hm."):  # how others begin, the prompt says
        turn = format.bind(tools=TOOLS, thinking=None if thought else False)
        checkers = [(dialect, judge(turn, dialect)) for dialect in DIALECTS]
        for content, count in (
            ("Let me look.", 0),
            ("Let me look.", 1),
            ("", 1),
            ("", 2),
            ("Let me look.", 2),
        ):
            said: dict[str, Any] = {"role": "assistant", "content": content}
            said |= {"reasoning_content": thought} if thought else {}
            said |= {"tool_calls": CALLED[:count]} if count else {}
            try:
                text = format.render(said, TOOLS)
            except chatparsers.RequestError:  # the format cannot say it: text beside calls, or several calls
                continue
            message = turn.parse(text)
            if (message.reasoning.strip(), message.content.strip(), len(message.tool_calls)) != (
                thought,
                content,
                count,
            ):
                continue
            taken += 1
            for dialect, checker in checkers:
                assert checker.status(text) == FULL, (dialect, text)
    assert taken > 1


CALLS_END_THE_TEXT = frozenset(
    {
        "beam", "functionary-v3-2", "generic", "gigachat-3", "gigachat-3-1", "gpt-oss", "hyperclovax", "inkling",
        "kimi-k3", "llama-3-x", "llm-jp-4-1", "muse", "muse-glimmer", "pythonic", "smi", "solar-open", "xlam",
    }
)  # fmt: skip
"""Formats whose calls are the whole turn or end it, or whose text stands between markers."""


@pytest.mark.parametrize("name", sorted({*TOOL_FORMATS} - CALLS_END_THE_TEXT))
def test_text_after_a_call_is_taken(name: str) -> None:
    """By text and by ids: a structural tag is written in another way if its calls begin with a token."""
    format = chatparsers.get_format(name)
    text = format.render({"role": "assistant", "content": "", "tool_calls": CALLED[:1]}, TOOLS) + "Done."
    for dialect in DIALECTS:
        assert judge(turn_of(name), dialect).status(text) == FULL, dialect
        tokenizer = toy_tokenizer(format, True)
        turn = turn_of(name, tokenizer=tokenizer)
        stops = list(turn.stop_ids) or [end_of(tokenizer)]
        mask = mask_of(turn, dialect, tokenizer, stops)
        taken = [mask.accept(id) for id in (*tokenizer.encode(text).ids, stops[0])]
        assert all(taken), (
            dialect,
            taken.index(False),
            tokenizer.encode(text).tokens[: taken.index(False) + 1],
        )


ORDINARY = (
    "Let me see: 1 < 2.", "if a<b: pass", "See [x](y) and [1, 2].", "a | b || c", 'Here: {"k": 1}', "So f(x) is g[y].",
    "[1] The source.", "[x](y) and more", "[ ] todo\n[x] done", "> quote\n>> two", "to=a <b>bold</b> </a> <!-- c -->",
    'Hm.\n<div class="x">\n</div>', "Use <| and < and </ here", "Use functions.f.", "x<<1 and y<-z",
    "The <｜x and [TOOL", "List<String> and Map<K, V>", "#### f\n* a\n~~~", "I took Action: then left.",
    "Action:\n1. do", "Hm.\nAction:\n```python\nx\n```", "import functools\nfunctools.reduce(f)", "Use functools[0].",
    "Please call:me later", "See call:f{x}", "**Tool Call:** none", "[note] hi", '["a", "b"]', "[[1, 2], [3]]",
    '[{"city": "Oslo"}]', '{"a": [1, 2]}', "{x}", "[\n  1,\n  2\n]", "print(1)", "get_weather is a tool", "python code",
    "a >>> b", ">>> print(1)\n2", "use <function here", "Use <function> tags.", "Hm call:f{ now", "call:f{x}",
    "Ways: call: f", '{"name": "Oslo"}', '{"name": "Oslo", "age": 3}', "[f(x) for x in y]", "Say <|call here",
)  # fmt: skip
"""What models write beside calls."""
NARROWER = {
    "functionary-v3-2": "after '>>>'",
    "minicpm5": "after '<function'",
    **dict.fromkeys(
        ("generic", "gigachat-3", "gigachat-3-1", "granite", "llama-3-x", "phi-4-mini", "pythonic", "xlam"),
        "begins as JSON",
    ),
}
"""The formats whose grammars leave out text that is content. `Grammar.weakened` names it: text that goes on after an
opener, and JSON that has the keys of calls."""
KEYS = re.compile(r'[{\[].*"(name|arguments|parameters)"', re.DOTALL)


def named(grammar: chatparsers.Grammar, text: str) -> bool:
    """Whether the grammar says that it leaves out such text."""
    said = " ".join(weak.why for weak in grammar.weakened)
    openers = re.findall("after '([^']+)'", said)
    return any(opener in text for opener in openers) or ("begins as JSON" in said and bool(KEYS.match(text)))


def matchers(turn: chatparsers.Turn, tokenizer: Any) -> Iterator[Any]:
    """The fresh matcher of the turn's grammar in each engine."""
    xgrammar()
    llguidance()
    ends = tuple(turn.stop_ids or [end_of(tokenizer)])
    for name in ENGINES:
        compiled = engine_for(tokenizer, ends, name)
        engine = compiled.engine
        yield compiled.matcher(str(turn.grammar(engine.dialect, **engine.options)))


def taken_by_ids(matcher: Any, ids: list[int], tokenizer: Any, free: range) -> None:
    """All ids are taken, and the turn may end after them. What is forced after an id of ``free``, which is text, is
    only more of the same text."""
    for at, id in enumerate(ids):
        shown = tokenizer.decode(ids[:at], skip_special_tokens=False)
        forced = matcher.forced() if at in free else []
        assert forced == ids[at : at + len(forced)], (
            f"after {shown!r} only {tokenizer.decode(forced)!r} may come"
        )
        assert matcher.take(id), f"{tokenizer.id_to_token(id)!r} is refused after {shown!r}"
    assert matcher.may_end(), f"{tokenizer.decode(ids, skip_special_tokens=False)!r} may not end"


def with_markers(tokenizer: Any, format: Format) -> Any:
    """A tokenizer that has the format's markers as tokens, as the format's own model has them."""
    from tokenizers import AddedToken, Tokenizer

    made = Tokenizer.from_str(tokenizer.to_str())
    missing = [text for text in (*format.preserved_tokens, *format.stops) if made.token_to_id(text) is None]
    plain = [AddedToken(text, special=True, normalized=False) for text in missing if text.strip() == text]
    made.add_special_tokens(plain)
    return made


def ordinary_is_text(name: str, tokenizer: Any) -> None:
    format = chatparsers.get_format(name)
    turn = turn_of(name, tokenizer=tokenizer)
    ends = list(turn.stop_ids) or [end_of(tokenizer)]
    walked = counted = 0

    def encoded(text: str) -> list[int]:
        ids: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
        return ids[: next((at for at, id in enumerate(ids) if id in ends), None)]

    def spelt(ids: list[int], written: str, dialect: str) -> bool:
        """Whether the ids are the text. A tokenizer may write another one, such as a blank after each added token: it
        counts where the grammar takes it as text."""
        shown = tokenizer.decode(ids, skip_special_tokens=False)
        return written.startswith(shown) or judge(turn_of(name), dialect).status(shown) == FULL

    for start, dialect in zip(matchers(turn, tokenizer), DIALECTS, strict=True):
        grammar = turn.grammar(dialect)
        assert any(NARROWER.get(name, "nothing") in weak.why for weak in grammar.weakened) == (
            name in NARROWER
        )
        for text in ORDINARY:
            if named(grammar, text):
                continue
            written = format.render({"role": "assistant", "content": text})
            ids = encoded(written)
            if not spelt(ids, written, dialect):
                continue
            counted += 1
            message = turn.parse(ids)
            if message.content.strip() == text and message.complete and not message.tool_calls:
                begin = len(encoded(written[: written.find(text)])) + 1
                taken_by_ids(start.copy(), ids, tokenizer, range(begin, len(ids)))
                walked += 1
        for content, count in (("", 1), ("Let me look.", 1), ("", 2)):
            said = {"role": "assistant", "content": content, "tool_calls": CALLED[:count]}
            try:
                written = format.render(said, TOOLS)
            except chatparsers.RequestError:  # the format has no text beside calls, or no second call
                continue
            ids = encoded(written)
            message = turn.parse(ids)
            called = (message.content.strip(), len(message.tool_calls)) == (content, count)
            if called and spelt(ids, written, dialect):
                taken_by_ids(start.copy(), ids, tokenizer, range(0))
    if not counted:
        pytest.skip("the tokenizer changes the text around the format's markers: no model has both")
    assert walked > len(ORDINARY), "hardly any text is content: too little is tested"


@pytest.mark.parametrize("name", TOOL_FORMATS)
def test_ordinary_text_is_text_by_ids(name: str) -> None:
    """Text that the parser reads as content is in the grammar, as the ids that the tokenizer writes of it and of the
    format's own markers around it, and so are calls. Nothing that begins a call is forced within text."""
    ordinary_is_text(name, toy_tokenizer(chatparsers.get_format(name), True))


@pytest.mark.of_the_folder
@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize("name", TOOL_FORMATS)
def test_in_real_vocabularies(name: str, loader: str, request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("--nightly", default=False):
        pytest.skip("masks of 150,000 tokens take long: with --nightly")
    loaders = tokenizer_loaders(request.config)
    if loader not in loaders:
        pytest.skip(f"no real tokenizer {loader!r}: give --shared DIR or set CHATPARSERS_SHARED")
    ordinary_is_text(name, with_markers(loaders[loader](), chatparsers.get_format(name)))


AROUND = {
    "command-r7b": ("<|START_RESPONSE|>", "<|END_RESPONSE|>"),
    "command-a-plus": ("<|START_TEXT|>", "<|END_TEXT|>"),
    "ernie-4-5": ("<response>", "</response>"),
}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", AROUND)
def test_the_tokens_around_content(name: str, dialect: str) -> None:
    """Content may lack the two tokens around it, has them once or more, and may end before the second one."""
    format = chatparsers.get_format(name)
    tokenizer = toy_tokenizer(format, True)
    turn = turn_of(name, tokenizer=tokenizer)
    opener, closer = (tokenizer.token_to_id(text) for text in AROUND[name])
    words = tokenizer.encode("Hi, 1 < 2.", add_special_tokens=False).ids
    start = mask_of(turn, dialect, tokenizer, list(turn.stop_ids) or [end_of(tokenizer)])
    for ids in (words, [opener, *words], [opener, *words, closer], 2 * [opener, *words, closer]):
        mask = start.fork()
        assert all(map(mask.accept, ids)), (dialect, ids)


@pytest.mark.parametrize("name", TOOL_FORMATS)
def test_nothing_comes_after_a_stop(name: str) -> None:
    """The parser is at its end at the text of a stop, so no grammar has text after it."""
    format = chatparsers.get_format(name)
    turn = turn_of(name)
    for stop in format.stops:
        written = format.render({"role": "assistant", "content": "abc"}).removesuffix(stop) + stop + "def"
        if turn.parse(written).content.strip() == "abc":
            for dialect in DIALECTS:
                assert judge(turn, dialect).status(written).kind == "rejected", (dialect, written)
