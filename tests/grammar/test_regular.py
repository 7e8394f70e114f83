"""Regular languages against their definitions: Python's own expressions and numbers judge every short text."""

from __future__ import annotations

import itertools
import json
import random
import re
import tracemalloc
from collections.abc import Callable
from decimal import Decimal

import pytest
from engines import FULL, compile_for

from chatparsers.grammar import ir
from chatparsers.grammar.budget import MAX_WORK, Budget
from chatparsers.grammar.dialects.gbnf import write_gbnf
from chatparsers.grammar.dialects.lark import write_lark
from chatparsers.grammar.dialects.structural_tag import write_structural_tag
from chatparsers.grammar.reading.residual import residual
from chatparsers.grammar.regular.automaton import Dfa, Matcher, TooLarge, build, states
from chatparsers.grammar.regular.numbers import integer_range, number_parts
from chatparsers.grammar.regular.regex import read_regex

LETTERS = "abc"
POINTS = [*map(ord, LETTERS), ir.LAST]
TEXTS = ["".join(text) for length in range(5) for text in itertools.product(LETTERS, repeat=length)]


def word(chance: random.Random, most: int) -> str:
    return "".join(chance.choices(LETTERS, k=chance.randint(1, most)))


def regular(chance: random.Random, depth: int = 0) -> tuple[ir.Ir, str]:
    """A regular node, and what it says as an expression of Python."""
    kind = chance.choice(
        ["text", "chars", "any"] if depth > 2 else ["text", "chars", "any", "seq", "alt", "rep", "rep"]
    )
    if kind == "text":
        text = chance.choice(["", *LETTERS, "ab", "ba"])
        return ir.Text(text), text
    if kind == "chars":
        some = chance.sample(LETTERS, chance.randint(1, 2))
        return ir.Chars(ir.charset(some)), f"[{''.join(some)}]"
    if kind == "any":
        return ir.ANYTHING, ".*"
    if kind == "rep":
        node, inner = regular(chance, depth + 1)
        least = chance.randint(0, 2)
        most = chance.choice([None, least, least + 1, least + 2])
        return ir.Shared(
            "x", ir.Rep(node, least, most)
        ), f"(?:{inner}){{{least},{'' if most is None else most}}}"
    parts = [regular(chance, depth + 1) for _ in range(chance.randint(0, 3))]
    nodes, inner = tuple(node for node, _ in parts), [text for _, text in parts]
    if kind == "seq":
        return ir.Seq(nodes), "".join(inner)
    return ir.Alt(nodes), f"(?:{'|'.join(inner)})" if inner else "(?!)"


def takes(dfa: Dfa | None, text: str) -> bool:
    if dfa is None:
        return False
    state = 0
    for char in text:
        ways = [then for ranges, then in dfa.edges[state] for low, high in ranges if low <= ord(char) <= high]
        assert len(ways) < 2
        if not ways:
            return False
        state = ways[0]
    return state in dfa.accepting


def distinct(dfa: Dfa) -> bool:
    """Whether no two states take the same texts."""
    kinds = [int(state in dfa.accepting) for state in range(len(dfa.edges))]
    for _ in dfa.edges:
        rows = [
            (
                kind,
                frozenset(
                    (point, kinds[then])
                    for ranges, then in edges
                    for low, high in ranges
                    for point in POINTS
                    if low <= point <= high
                ),
            )
            for kind, edges in zip(kinds, dfa.edges, strict=True)
        ]
        kinds = [rows.index(row) for row in rows]
    return len(set(kinds)) == len(kinds)


def test_automata(amount: Callable[[int, int, int], int]) -> None:
    """An automaton takes the texts of its language, is the smallest one, and no larger than its limit or than what is
    told of it before."""
    empty = 0
    for number in range(amount(100, 1_000, 20_000)):
        chance = random.Random(f"automata {number}")
        drawn = [(*regular(chance), chance.random() < 0.6) for _ in range(chance.choice([0, 1, 1, 2]))]
        if chance.random() < 0.3:
            words = [word(chance, 3) for _ in range(chance.randint(1, 4))]
            drawn.append((ir.texts(words), "|".join(words), False))
        least = chance.choice([0, 0, 1, 2])
        most = chance.choice([None, None, least, least + 1, least + 3])
        stops = tuple(word(chance, 4) for _ in range(chance.choice([0, 1, 2, 3])))
        end = chance.choice(["", *LETTERS]) + chance.choice(stops) if stops and chance.random() < 0.5 else ""
        parts = tuple(ir.Part(node, positive) for node, _, positive in drawn)
        lang = ir.Lang(parts, least, most, stops=stops, end=(ir.Text(end),) if end else ())
        found = build(lang)
        estimate, size = states(lang, 2_000, Budget()), len(found.edges) if found else 0
        assert estimate >= size and bool(estimate) is bool(size), (number, lang)
        for text in TEXTS:
            inside = text[: len(text) - len(end)]
            expected = (
                text.endswith(end)
                and least <= len(inside) <= (len(text) if most is None else most)
                and not any(stop in text[: -1 if end else None] for stop in stops)
                and all((re.fullmatch(said, inside) is not None) is positive for _, said, positive in drawn)
            )
            assert takes(found, text) is expected, (number, text, lang)
        for node, said, _ in drawn:
            assert ir.nullable(node) is (re.fullmatch(said, "") is not None), (number, said)
            matcher = Matcher(node)
            assert all(matcher.matches(text) is (re.fullmatch(said, text) is not None) for text in TEXTS), (
                said
            )
        empty += found is None
        assert found is None or least or most is not None or distinct(found), (number, lang)
    assert empty < number // 2


@pytest.mark.parametrize("lang", [ir.Lang((ir.Part(ir.Text(4 * "a")),)), ir.Lang(most=4)])
def test_an_automaton_has_a_limit(lang: ir.Lang) -> None:
    found = build(lang, 5)
    assert found is not None and len(found.edges) == 5
    with pytest.raises(TooLarge):
        build(lang, 4)


def test_all_texts_but_some(amount: Callable[[int, int, int], int]) -> None:
    for number in range(amount(100, 1_000, 20_000)):
        chance = random.Random(f"but some {number}")
        words = [word(chance, 4) for _ in range(chance.randint(1, 8))] + [""] * chance.randint(0, 1)
        budget = Budget()
        found = build(ir.Lang((ir.Part(ir.texts(words), False),)), budget=budget)
        assert found is not None and distinct(found)
        assert all(takes(found, text) is (text not in words) for text in TEXTS), words
        assert budget.work >= MAX_WORK - sum(map(len, words))
    with pytest.raises(TooLarge):
        build(ir.Lang((ir.Part(ir.Text(50 * "a"), False),)), 50)


CLASSES = {size: "".join(chr(0x1000 + 2 * place) for place in range(size)) for size in (100, 9_000)}
WORDS = [f"customer_{number};" for number in range(2_000)]
# An expression, the states of its automaton or None, the work that it may cost, what it takes, and what it refuses.
COSTS: dict[str, tuple[str, int | None, int, list[str], list[str]]] = {
    # The characters of a class are one move, also where they lie apart from one another.
    **{
        f"a class of {size}, {pattern[-12:]}": (
            pattern.replace("…", some),
            states,
            4 * size + 20 * states,
            [],
            [],
        )
        for size, some in CLASSES.items()
        for pattern, states in (("^[…]{1,500}$", 501), ("[…]{1,500}", 2), ("x[…]{3,500}", 5))
    },
    # Words share their beginnings: the work grows with the words, not with the places that all of them have at once.
    **{
        f"words, {pattern}": (
            pattern.replace("…", "|".join(WORDS)),
            None,
            10 * sum(map(len, WORDS)),
            [WORDS[0], WORDS[-1] + WORDS[7]],
            [WORDS[0].replace("c", "C"), (WORDS[-1] + WORDS[7]).replace("c", "C")],
        )
        for pattern in ("^(…)*$", "(…)")
    },
}


@pytest.mark.parametrize("case", COSTS)
def test_work_grows_with_what_is_written(case: str) -> None:
    pattern, states, work, taken, refused = COSTS[case]
    budget = Budget()
    found = build(ir.Lang((ir.Part(read_regex(pattern)),)), 20_000, budget)
    assert found is not None and MAX_WORK - budget.work < work
    if states is not None:
        assert len(found.edges) == states and sum(map(len, found.edges)) <= 4 * states
    assert all(takes(found, text) for text in taken)
    assert not any(takes(found, text) for text in refused)


@pytest.mark.parametrize(
    "pattern",
    [
        "^(?:a?){5000}$",
        "^(?:(?:[ab]{1,50}){1,50}){1,20}$",
        "^.*a.{18}$",
        "^" + "".join(f"[{chr(0x4E00 + place)}{chr(0x5E00 - place)}]" for place in range(1_500)) + "$",
    ],
)
def test_what_an_automaton_may_cost(pattern: str) -> None:
    """Memory grows with the work that is left, not with what the pattern would take."""
    node = read_regex(pattern)
    tracemalloc.start()
    try:
        with pytest.raises(TooLarge):
            build(ir.Lang((ir.Part(node),)), 20_000, Budget(work=200_000))
        assert tracemalloc.get_traced_memory()[1] < 60_000_000
    finally:
        tracemalloc.stop()


def test_every_dialect(amount: Callable[[int, int, int], int]) -> None:
    """Texts up to a stop, one after the other, in each dialect as the automaton says."""
    taken = 0
    for number in range(amount(60, 400, 5_000)):
        chance = random.Random(f"dialects {number}")
        part = ir.Part(regular(chance)[0], chance.random() < 0.6)
        stops = (chance.choice(["ba", "bc", "cab"]), word(chance, 3))
        parts = (part,) if chance.random() < 0.6 else ()
        shortest, longest = chance.choice([(0, None), (0, None), (0, 1), (1, None), (1, 2)])
        dfa = build(ir.Lang(parts, shortest, longest, stops=stops, end=(ir.Text(stops[0]),)))
        if dfa is None:
            continue
        least, most = chance.choice([(0, None), (1, None), (0, 1), (1, 1), (0, 2), (1, 2), (2, 3), (2, None)])
        lang = ir.Lang(parts, shortest, longest, stops=stops)
        one = ir.seq(lang, ir.TokenRef(stops[0][:1]), ir.Text(stops[0][1:] + "-"))
        root = ir.seq(ir.Rep(one, least, most), ir.Text("!"))
        judges = [
            compile_for("xgrammar", write_gbnf(root, {}), "gbnf"),
            compile_for("llguidance", write_lark(root, {}), "lark"),
            compile_for("xgrammar", write_structural_tag(root, {}, {}), "structural_tag"),
        ]
        for text in TEXTS:
            begun = count = 0
            said = ""
            for end in range(1, len(text) + 1):
                if takes(dfa, text[begun:end]):
                    said += text[begun:end] + "-"
                    begun, count = end, count + 1
            expected = begun == len(text) and least <= count and (most is None or count <= most)
            taken += expected
            for judge in judges:
                assert (judge.status(said + text[begun:] + "!") == FULL) is expected, (
                    number,
                    judge,
                    text,
                    root,
                )
    assert taken > 100


def test_what_a_prefix_leaves(amount: Callable[[int, int, int], int]) -> None:
    """The prompt may have written the beginning of what is generated."""
    for number in range(amount(300, 3_000, 50_000)):
        chance = random.Random(f"prefixes {number}")
        node, said = regular(chance)
        prefix = "".join(chance.choices(LETTERS, k=chance.randint(0, 4)))
        rest = residual(node, prefix)
        matcher = None if rest is None else Matcher(rest)
        for text in TEXTS[:40]:
            expected = re.fullmatch(said, prefix + text) is not None
            assert (matcher is not None and matcher.matches(text)) is expected, (number, prefix, text, node)


def expression(chance: random.Random, depth: int = 0) -> str:
    """An expression that Python reads as JSON Schema does."""
    kind = chance.random()
    if depth > 2 or kind < 0.4:
        return chance.choice(
            [
                *LETTERS,
                ".",
                "[ab]",
                "[^a]",
                "[a-b]",
                r"\w",
                r"\W",
                r"\x61",
                r"\u0062",
                "[b-]",
                r"[\]a]",
                "ab",
                "",
            ]
        )
    if kind < 0.6:
        inner = "|".join(expression(chance, depth + 1) for _ in range(chance.randint(1, 3)))
        return chance.choice(["(", "(?:", "(?P<n>" if depth == 0 else "("]) + inner + ")"
    if kind < 0.8:
        return f"(?:{expression(chance, depth + 1)})" + chance.choice(
            ["*", "+", "?", "{2}", "{1,}", "{1,2}", "*?"]
        )
    return "".join(expression(chance, depth + 1) for _ in range(2))


def test_expressions(amount: Callable[[int, int, int], int]) -> None:
    for number in range(amount(100, 1_000, 20_000)):
        chance = random.Random(f"expressions {number}")
        text = "|".join(
            chance.choice(["", "^"])
            + expression(chance).replace("<n>", f"<n{place}>")
            + chance.choice(["", "$"])
            for place in range(chance.choice([1, 1, 2]))
        )
        matcher, found = Matcher(read_regex(text)), re.compile(text).search
        for one in TEXTS:
            assert matcher.matches(one) is (found(one) is not None), (number, text, one)


def test_expressions_that_python_reads_otherwise() -> None:
    for text, taken, refused in (
        (r"^[\ud800\udc00-\udbff\udfff]$", "\U00010000\U0010ffff", "\uffff"),
        (r"^\u{1F600}|\cA$", "\U0001f600\x01", "1A"),
        ("^.$", "x\x85", "\n\r\u2028\u2029"),
        (r"^\s$", "\ufeff\u00a0\u2003", "\x85\x1c"),
        (r"^[\b]$", "\b", "b"),
    ):
        matcher = Matcher(read_regex(text))
        assert all(map(matcher.matches, taken)) and not any(map(matcher.matches, refused)), text


def test_what_is_excluded_is_so_in_every_spelling() -> None:
    """JSON spells a character beyond ASCII in several ways, and by any of them a name is the listed one."""
    listed = ["é", "\u0800b", "\uffff", "\U0001f600", "\U00010000", "\U0010ffff", "a"]
    excluded = ir.Lang(
        (ir.Part(ir.texts(listed), False), ir.Part(read_regex("^[\u0410-\u044f]|\U0001f3fb$"), False)),
        encoding="json",
    )
    judge = compile_for("llguidance", write_lark(ir.seq(excluded, ir.Text("!")), {}), "lark")
    near = [
        chr(ord(text[0]) + step) + text[1:] for text in listed for step in (-1, 1) if ord(text[0]) < ir.LAST
    ]
    edges = ["\u0410", "\u040f", "\u044f", "\u0450", "\U0001f3fb", "\U0001f3fa", "\u0430x", "x\U0001f3fb"]
    for text in [*listed, *near, *edges]:
        if 0xD800 <= ord(text[0]) < 0xE000 or text[0] < " ":
            continue
        refused = text in listed or "\u0410" <= text[0] <= "\u044f" or text.endswith("\U0001f3fb")
        escaped = json.dumps(text)
        upper = re.sub("[0-9a-f]{4}", lambda digits: digits[0].upper(), escaped)
        spellings = {json.dumps(text, ensure_ascii=False), escaped, upper}
        for spelling in spellings:
            assert json.loads(spelling) == text
            assert (judge.status(f"{spelling}!") == FULL) is not refused, spelling


def test_the_empty_text_is_excluded() -> None:
    lang = ir.Lang((ir.Part(ir.EMPTY, False),), stops=("b",))
    judge = compile_for("llguidance", write_lark(ir.seq(lang, ir.Text("b!")), {}), "lark")
    assert judge.status("ab!") == FULL
    assert judge.status("b!") != FULL


@pytest.mark.parametrize("encoding", ["raw", "json"])
def test_a_class_of_nothing(encoding: ir.Encoding) -> None:
    """``[]`` takes no character: what needs one is never generated."""
    root = ir.seq(ir.Lang((ir.Part(read_regex("^(?:[]|b)c$")),), encoding=encoding), ir.Text("!"))
    judges = [
        compile_for("xgrammar", write_gbnf(root, {}), "gbnf"),
        compile_for("llguidance", write_lark(root, {}), "lark"),
        compile_for("xgrammar", write_structural_tag(root, {}, {}), "structural_tag"),
    ]
    quote = "" if encoding == "raw" else '"'
    for text, right in (("bc", True), ("c", False)):
        assert all((judge.status(f"{quote}{text}{quote}!") == FULL) is right for judge in judges)


def test_numbers_within_bounds() -> None:
    bounds = [None, *range(-12, 13), -100, 99, 101, 1000]
    for low, high in itertools.product(bounds, repeat=2):
        matcher = Matcher(integer_range(low, high))
        for number in (*range(-14, 15), -1001, -101, -100, -99, 98, 99, 100, 101, 102, 999, 1000, 1001):
            inside = (low is None or low <= number) and (high is None or number <= high)
            assert matcher.matches(str(number)) is inside, (low, high, number)
    texts = ("0", "-0.05", "0.1", "0.15", "1", "1.2", "-1.25", "2.5", "-3", "9.99", "10", "12.75", "-100")
    exact = [Decimal(text) for text in texts]
    near = sorted(
        {bound + Decimal(step) / 1000 for bound in exact for step in (-1000, -50, -1, 0, 1, 50, 1000)}
    )
    for bound, strict, lower in itertools.product(exact, (False, True), (False, True)):
        given = (bound, strict, None, False) if lower else (None, False, bound, strict)
        (part,) = number_parts(*given)
        matcher = Matcher(part.node)
        for number in near:
            inside = (number != bound and (number > bound) is lower) or (number == bound and not strict)
            for text in {f"{number:f}", f"{number.normalize():f}"}:
                assert matcher.matches(text) is inside, (bound, strict, lower, text)
        whole = f"{bound:f}".partition(".")[0]
        for text in ("", "-", ".", "-.5", ".5", whole + ".", whole + ".e1", "0" + whole.strip("-"), "--1"):
            assert not matcher.matches(text), (bound, strict, lower, text)
    for divisor in (2, 7, 30):
        found = build(ir.Lang((ir.Part(integer_range(-99, 400)), ir.Part(ir.EMPTY, divisor=divisor))))
        for number in range(-120, 420):
            assert takes(found, str(number)) is (-99 <= number <= 400 and number % divisor == 0)
