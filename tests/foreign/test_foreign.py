"""What other projects' tests expect of models' outputs: each difference has a verdict, and none says that we are wrong.

The folder ``cases/`` of the real data has lines of JSON: a request, an output, and the message that another project
expects. Its ``verdicts.json`` says of each case that did not agree why: **A** our reading is wrong, **B** a policy
differs, **C** the case or its mapping is wrong. ``judged.json`` beside this file has our own verdicts, with reasons.
"""

from __future__ import annotations

import decimal
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import chatparsers
from chatparsers import CallArguments, CallStart, Content, Message, Reasoning, Turn

pytestmark = pytest.mark.filterwarnings("ignore:tools. expected JSON's names of types")
OURS = Path(__file__).parent / "judged.json"


def _exact(text: str) -> Any:
    return json.loads(text, parse_float=decimal.Decimal, parse_int=decimal.Decimal)


def _value(arguments: Any) -> tuple[Any, bool]:
    """The JSON value; or the text without white space, if it is none."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    try:
        return _exact(text), True
    except ValueError:
        return "", False


def _same(want: Any, have: Any, partial: bool = False) -> bool:
    """Whether two JSON values are equal; true is not 1. ``partial``: keys that ``want`` does not name do not count."""
    if isinstance(want, dict) and isinstance(have, dict):
        return (partial or want.keys() == have.keys()) and all(
            k in have and _same(want[k], have[k]) for k in want
        )
    if isinstance(want, list) and isinstance(have, list):
        return len(want) == len(have) and all(map(_same, want, have))
    return type(want) is type(have) and bool(want == have)


def _alike(want: Any, have: str, partial: bool) -> bool:
    """Whether the arguments agree: as JSON, else as texts without white space; a prefix will do if one is cut off."""
    (a, a_json), (b, b_json) = _value(want), _value(have)
    if a_json and b_json:
        return _same(a, b, partial)
    shown = want if isinstance(want, str) else json.dumps(want, ensure_ascii=False)
    texts = [re.sub(r"\s+", "", text) for text in (shown, have)]
    begins = texts[0].startswith(texts[1]) or texts[1].startswith(texts[0])
    return set(texts) <= {"", "{}"} or (all(texts) and begins)


def _agrees(expect: Mapping[str, Any], message: Message, partial: bool) -> bool:
    """Whether the message is the expected one. What is expected as None does not count."""
    for key in ("content", "reasoning"):
        if expect.get(key) is not None and expect[key].strip() != getattr(message, key).strip():
            return False
    if expect.get("calls") is None:
        return True
    if [call["name"] for call in expect["calls"]] != [call.name for call in message.tool_calls]:
        return False
    pairs = zip(expect["calls"], message.tool_calls, strict=True)
    return all(
        want["arguments"] is None or _alike(want["arguments"], have.arguments, partial)
        for want, have in pairs
    )


def _streamed(turn: Turn, pieces: list[str]) -> tuple[Message, list[Any]]:
    """The message of a stream, and its deltas joined: content, reasoning, calls."""
    stream, content, reasoning, calls = turn.stream(), "", "", []
    events = [event for piece in pieces for event in stream.feed(piece)] + stream.finish()
    for event in events:
        if isinstance(event, Content):
            content += event.text
        elif isinstance(event, Reasoning):
            reasoning += event.text
        elif isinstance(event, CallStart):
            calls.append([event.name, ""])
        elif isinstance(event, CallArguments):
            calls[event.index][1] += event.text
    return stream.message, [content, reasoning, calls]


def _cuts(text: str, random_cuts: int, draw: random.Random) -> Iterator[list[str]]:
    yield list(text)
    for _ in range(random_cuts):
        at = sorted(draw.sample(range(len(text) + 1), min(len(text), 4)))
        yield [text[a:b] for a, b in pairwise([0, *at, len(text)])]


def _judge(case: Mapping[str, Any], random_cuts: int) -> bool:
    """Whether the case agrees. Asserts that the message does not depend on the cuts and is the joined deltas."""
    wish = {key: case[key] for key in ("thinking", "tool_choice") if case.get(key) is not None}
    template = case.get("template")
    source = chatparsers.load(template=template) if template else chatparsers.get_format(case["format"])
    turn = source.bind(tools=case.get("tools") or None, prefix=case.get("prefix") or "", **wish)
    whole = turn.parse(case["text"])
    joined = [whole.content, whole.reasoning, [[call.name, call.arguments] for call in whole.tool_calls]]
    for pieces in _cuts(case["text"], random_cuts, random.Random(case["id"])):
        assert _streamed(turn, pieces) == (whole, joined), (case["id"], pieces)
    wanted = (case["expect"], *case.get("also", ()))
    return any(_agrees(expect, whole, case.get("partial", False)) for expect in wanted)


def test_every_difference_has_a_verdict(
    shared_dir: Path, amount: Callable[[int, int, int], int], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shared_dir / "cases"
    if not folder.is_dir():
        pytest.skip("no cases of other projects: the folder of real data has no cases/")
    verdicts: dict[str, list[str]] = json.loads((folder / "verdicts.json").read_text(encoding="utf-8"))
    ours: dict[str, list[str]] = json.loads(OURS.read_text(encoding="utf-8"))
    each, random_cuts = amount(12, 1, 1), amount(0, 0, 8)
    table, wrong, judged = [], [], set()
    for path in sorted(folder.glob("*.jsonl")):
        count: Counter[str] = Counter()
        for line in path.read_text(encoding="utf-8").splitlines()[::each]:
            case = json.loads(line)
            agrees = _judge(case, random_cuts)
            kind = "agree" if agrees else (ours.get(case["id"]) or verdicts.get(case["id"]) or ["none"])[0]
            count[kind] += 1
            if not agrees:
                judged.add(case["id"])
                wrong += [case["id"]] if kind not in ("B", "C") else []
        table.append((path.stem, count))
    with capsys.disabled():
        print("\n" + "\n".join(f"  {name:12} {dict(sorted(count.items()))}" for name, count in table))
    assert not wrong, f"{len(wrong)} cases without a verdict, or ours is wrong: {wrong[:20]}"
    if each == 1:
        assert ours.keys() <= judged, f"they agree now, take them out: {sorted(ours.keys() - judged)}"
