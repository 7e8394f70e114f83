"""Plain text that is written as ``TagDispatch``, against the automaton of it."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from test_free_text import TOOL_FORMATS, turn_of

from chatparsers.grammar.dialects import structural_tag
from chatparsers.grammar.dialects.dispatch import Dispatcher
from chatparsers.grammar.reading.prose import RESTS
from chatparsers.grammar.regular.dfa import Dfa


def automata(name: str, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Dfa], bool]:
    """The automata of text in a format's structural tag, and whether it names that rests of texts are left out."""
    found: list[Dfa] = []

    def seen(dfa: Dfa) -> Dispatcher:
        found.append(dfa)
        return Dispatcher(dfa)

    monkeypatch.setattr(structural_tag, "states_of", seen)
    grammar = turn_of(name).grammar("structural_tag", whitespace=7)  # no request before had it
    assert grammar is not None
    return found, RESTS in {weak.why for weak in grammar.weakened}


def leads(dfa: Dfa, state: int, char: str) -> int:
    """Where a character leads; -1: nowhere."""
    point = ord(char)
    return next(
        (then for ranges, then in dfa.edges[state] if any(low <= point <= high for low, high in ranges)), -1
    )


def takes(dfa: Dfa, states: Dispatcher, text: str) -> tuple[bool, bool]:
    """Whether the rules take the text, and whether they refuse it for the rest of another text alone."""
    state, begun = 0, ""
    for char in text:
        plain = states.plain(state)
        if plain is None:
            state = leads(dfa, state, char)
            if state < 0:
                return False, False
            continue
        begun += char
        if begun.endswith(plain.excluded):
            return False, state in states.entered
        after = [(text, then) for text, then in plain.triggers if begun.endswith(text)]
        if after:
            (_, state), begun = max(after), ""
    return states.plain(state) is not None or state in dfa.accepting, False


def texts(dfa: Dfa, rests: list[str], rng: random.Random) -> Iterator[str]:
    """Texts that go far into the automaton, and a little out of it; and each with one of the rests after it."""
    chars = sorted(
        {chr(point) for edges in dfa.edges for ranges, _ in edges for span in ranges for point in span}
    )
    chars = [char for char in chars if char < "\x80"] + ["é"]
    for _ in range(200):
        state, text = 0, ""
        for _ in range(rng.randint(1, 60)):
            narrow = [
                (ranges, then)
                for ranges, then in dfa.edges[state]
                if sum(high - low for low, high in ranges) < 6
            ]
            missing = [char for char in chars if leads(dfa, state, char) < 0]
            if missing and rng.random() < 0.4:
                char = rng.choice(missing)
            elif narrow and rng.random() < 0.9:
                ranges, _ = rng.choice(narrow)
                char = chr(rng.choice(ranges)[0])
            else:
                char = rng.choice(chars)
            text += char
            state = leads(dfa, state, char)
            if state < 0:
                break
        yield text
        if rests:
            yield text + rng.choice(("", " ", "x ")) + rng.choice(rests)


@pytest.mark.parametrize("name", TOOL_FORMATS)
def test_plain_text_is_what_the_automaton_takes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """None that it refuses; and all that it takes, but for texts with the rest of a text that is looked for, after a
    place within one, which the grammar names."""
    found, named = automata(name, monkeypatch)
    for dfa in found:
        states = Dispatcher(dfa)
        rests = sorted({text for found in states.joined.values() for text in found.excluded})
        for text in texts(dfa, rests, random.Random(name)):
            state = 0
            for char in text:
                state = leads(dfa, state, char) if state >= 0 else -1
            right = state in dfa.accepting
            taken, rest = takes(dfa, states, text)
            assert taken == right or (right and rest and named), (text, taken, right)
