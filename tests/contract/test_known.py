"""The accelerator of streams (streams/known.py) changes nothing that a stream says, and keeps only what pays."""

from __future__ import annotations

import gc
import random
import re
from pathlib import Path
from typing import Any

import pytest

from chatparsers import Format, Turn, get_format
from chatparsers.core.machine.state import MachineState
from chatparsers.streams import known
from chatparsers.testing import TOOLS
from chatparsers.testing.chunkings import random_cuts
from chatparsers.testing.wild import broken, call_openers, sample

from .conftest import TOOLS as ONE_TOOL


def seen(turn: Turn, pieces: list[str]) -> list[Any]:
    """All that a stream says while it reads the pieces."""
    stream = turn.stream()
    found: list[Any] = []
    for piece in pieces:
        found.append((stream.feed(piece), stream.region, stream.state))
        if len(found) % 7 == 0:
            stream = stream.fork()
    found.append((stream.finish(), stream.message))
    return found


def test_what_is_known_changes_nothing(format: Format, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same events, regions, states and messages in the same pieces, with and without; the first time and when all
    was read before, and of other tools of the same names in between."""
    texts = [sample(format), *broken(format, 12, seed=5)]
    chance = random.Random(3)
    for text in texts:
        prefix = chance.choice(("", " ", text[:2]))
        turns = [format.bind(tools=tools, id_seed="x", prefix=prefix) for tools in (TOOLS, other_schemas())]
        cuts = [*[cut(text, size) for size in (1, 5, 60, len(text))], *random_cuts(text, 1)]
        for turn, pieces in [(chance.choice(turns), pieces) for pieces in [*cuts, *cuts]]:
            monkeypatch.setattr(known, "enabled", False)
            without = seen(turn, pieces)
            monkeypatch.setattr(known, "enabled", True)
            assert seen(turn, pieces) == without, pieces


def test_a_prefix_that_is_undecided_is_read_on(format: Format, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream begins at the start of the text, with what the machine holds of the prefix: what it does there with a
    text and with its pieces is the same, whichever was known first. No other place knows that nothing is before it."""
    for prefix in ("", " ", "\n"):
        turn = format.bind(tools=TOOLS, id_seed="x", prefix=prefix)
        for opener in call_openers(format):
            half = opener[:2]
            for pieces in (["0" + half], ["0", half], [f"0\n{prefix}", half], ["0", opener]):
                monkeypatch.setattr(known, "enabled", False)
                without = seen(turn, pieces)
                monkeypatch.setattr(known, "enabled", True)
                assert seen(turn, pieces) == without, (prefix, pieces)


def test_the_end_is_known_where_it_brings_nothing(format: Format, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text may end after each piece, also where one did before, and may be cut off there."""
    turn = format.bind(tools=TOOLS, id_seed="x")
    pieces = cut(sample(format), 3)
    for count in range(len(pieces) + 1):
        for reason in ("stop", "stop", "length"):
            found = []
            for enabled in (False, True):
                monkeypatch.setattr(known, "enabled", enabled)
                stream = turn.stream()
                events = [stream.feed(piece) for piece in pieces[:count]]
                found.append((events, stream.finish(reason), stream.message))
            assert found[0] == found[1], (pieces[:count], reason)


def cut(text: str, size: int) -> list[str]:
    """The text in pieces of so many characters."""
    return [text[at : at + size] for at in range(0, len(text), size)]


def other_schemas() -> list[dict[str, Any]]:
    """Tools of the same names, whose arguments have other types."""
    found = []
    for tool in TOOLS:
        function = dict(tool["function"])
        properties = function.get("parameters", {}).get("properties", {})
        flipped = {
            name: {"type": "integer" if given.get("type") == "string" else "string"}
            for name, given in properties.items()
        }
        function["parameters"] = {"type": "object", "properties": flipped}
        found.append({"type": "function", "function": function})
    return found


@pytest.mark.parametrize("size", [4, 4000])
def test_what_was_read_before_is_not_read_again(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine rests where pieces come again, and in a whole answer; with the accelerator off it reads all."""
    turn = get_format("qwen3").bind(tools=ONE_TOOL)
    pieces = cut(sample(turn.format), size)
    fed: list[str] = []
    for name in ("feed", "hold"):
        taken = getattr(known.Machine, name)
        monkeypatch.setattr(
            known.Machine,
            name,
            lambda machine, *given, taken=taken, **more: (
                fed.append(given[0]) or taken(machine, *given, **more)
            ),
        )
    counts = []
    for enabled in (True, True, True, False):
        monkeypatch.setattr(known, "enabled", enabled)
        fed.clear()
        seen(turn, pieces)
        counts.append(sum(map(len, fed)))
    assert counts[2] <= counts[3] / 3, counts


def test_what_never_comes_again_is_not_learnt_for_long() -> None:
    """Runs are kept only while they pay, and not more than so many of them."""
    turn = get_format("qwen3").bind(tools=ONE_TOOL)
    chance = random.Random(1)
    known._known.cache_clear()
    for _ in range(400):
        stream = turn.stream()
        word = "".join(chance.choices("abcdefghij", k=9))
        for piece in (f"<{word}", f"</{word}", f"<tool_call>{word}", "<"):
            stream.feed(piece)
        kept = stream._begun().known
        assert kept is not None
    assert sum(len(spot.runs) for spot in kept.spots.values()) < 700


def test_a_whole_text_is_looked_at_closely_when_it_comes_again() -> None:
    """A first stream has the machine alone; then what leads to a value in a long piece is learnt if it comes twice."""
    turn = get_format("qwen3").bind(tools=ONE_TOOL)
    known._known.cache_clear()
    runs, leads = [], []
    for _ in range(4):
        stream = turn.stream()
        stream.feed(sample(turn.format))
        kept = stream._begun().known
        assert kept is not None
        runs.append(sum(len(spot.runs) for spot in kept.spots.values()))
        leads.append(sum(bool(spot.leads) for spot in kept.spots.values()))
    assert runs[0] == 0 < runs[1]
    assert leads[0] == leads[1] < leads[2] == leads[3]


def test_what_is_known_is_let_go_of_when_it_is_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that does not come again is learnt as long as the text around it pays, but it does not stay."""
    turn = get_format("qwen3").bind(tools=ONE_TOOL)
    monkeypatch.setattr(known, "_MOST_LEARNT", 50)
    known._known.cache_clear()
    for number in range(400):
        stream = turn.stream()
        for piece in cut(f'<tool_call>\n{{"name": "f{number}", "arguments": {{}}}}\n</tool_call>', 5):
            stream.feed(piece)
    del stream
    gc.collect()
    assert sum(isinstance(one, known.Spot) for one in gc.get_objects()) < 100


def test_a_value_that_begins_in_held_text_is_whole() -> None:
    """The piece that decides comes after the one in which the value begins, and its run is not kept."""
    turn = get_format("muse-glimmer").bind(tools=TOOLS, id_seed="x")
    pieces = [
        " to=self<|meto=get_weather<|message|><atem:function_calls>\nsssistant to=get_weather<|message|>"
        "<atem:function_calls>\n<at",
        'em:invoke name="get_weather">\n<atem:parameter name="city">Oslo</',
        "v:oke>\n</atem:function_calls>0",
    ]
    stream = turn.stream()
    for piece in pieces:
        stream.feed(piece)
    stream.finish()
    (call,) = stream.message.tool_calls
    assert call.arguments.startswith('{"city": "Oslo</v:oke>') and stream.message == turn.parse(
        "".join(pieces)
    )


@pytest.mark.pure
def test_a_place_is_all_that_a_machine_is() -> None:
    """What a machine has joined the key of a place and what is put back there, or it is none of a place."""
    elsewhere = {
        "asked",
        "base",
        "cut_off",
        "final",
        "program",
        "seen",
        "text",
        "tools",
        "value",
    }  # of the stream, or of no place
    source = Path(known.__file__).with_suffix(".py").read_text(encoding="utf-8")
    key = source.partition("key = (")[2].partition("# fmt: skip")[0]
    state = source.partition("self.state = (")[2].partition("# fmt: skip")[0]
    places = {"drafted", "furthest", "section"}  # `_places`
    for text in (key, state):
        assert {*re.findall(r"\bmachine\.(\w+)", text)} | {
            *re.findall(r"\b(stack|trail|floor)\b", text)
        } | places >= (set(MachineState.__slots__) - elsewhere)


@pytest.mark.pure
def test_a_place_is_found_once_it_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads share what is known: one that found a place without its state went back to itself without end."""
    keep, begun = known.Spot.keep, 0

    def kept(spot: known.Spot, machine: known.Machine, text: str) -> None:
        nonlocal begun
        assert spot.state is not None or not any(one is spot for one in spot.known.spots.values())
        begun += 1
        keep(spot, machine, text)

    monkeypatch.setattr(known.Spot, "keep", kept)
    known._known.cache_clear()
    turn = get_format("qwen3").bind(tools=ONE_TOOL)
    seen(turn, cut(sample(turn.format), 3))
    assert begun > 5


def test_a_note_is_where_the_text_is() -> None:
    """What is noted has a place, so no place that holds a note is kept for the same text elsewhere."""
    turn = get_format("muse-glimmer").bind(tools=ONE_TOOL, id_seed="x", prefix="<|start|>assistant")
    call = (
        '<atem:function_calls>\n<atem:invoke name="get_weather">\n'
        '<atem:parameter name="city">Oslo</atem:parameter>\n</atem:invoke>\n</atem:function_calls>'
    )
    for told in (f"One writes {call}.", call):
        answer = f" to=user<|message|>{told}<|eot|>"
        for text in (answer, f"To call it, write {answer} and wait.", f"So:\n```\n{answer}\n```\nThat."):
            for size in (1, 3, 7, 1, 3, 7):
                stream = turn.stream()
                for piece in cut(text, size):
                    stream.feed(piece)
                stream.finish()
                assert stream.message == turn.parse(text), (size, text)
