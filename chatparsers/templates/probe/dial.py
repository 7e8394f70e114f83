"""The dial of a template: the levels of thought and effort that a caller can set, each found by rendering.

Strategy. The source says only what is worth a try: its variables, and the words that it compares them with
(`jinja.compared`). Each value is given with one question and a generation prompt. It counts if the prompt then ends
otherwise (in an open thought, or after a closed one), or if the lines that change speak of thoughts; a variable's name
decides nothing. First come the switches, alone; then, with thoughts on, the words of effort, and one word that nobody
knows: it is refused (only known words are sent), written out (any word is, so those that all models know are levels),
or does what no word does. From then on a wish is answered without a rendering.

A level is what a wish can reach: its name, the variables that give it, and where the prompt then ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...schema.wished import Thoughts
from ..jinja.compared import Value
from .edges import End

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""The words of effort, in order."""
KINDS = ("enabled", "disabled", "adaptive")
"""The words of a switch, as the Messages API has them."""
MOST = 9
"""How many renderings a dial may cost. Two more say whether a level moves another kind of prompt."""

_RANK = {word: float(rank) for rank, word in enumerate(EFFORTS)}
_OFF = frozenset(
    {"none", "off", "no", "no_think", "nothink", "disabled", "disable", "chat", "false", "never"}
)
_ON = frozenset({"on", "yes", "think", "thinking", "enabled", "enable", "true", "always"})
_OWN = frozenset({"adaptive", "auto"})
_ADAPTIVE = 2.5
_UNHEARD = "zq-unheard"
_TOKENS = 1024
_USUAL = ("low", "medium", "high")
"""The words that every model knows to which any word is written."""
_OTHERS = ("high", "low", "max", "medium", "xhigh", "minimal")
"""Words to try where one that nobody knows does something, the likeliest first."""
_ABOUT = re.compile(r"think|thought|reason|effort|deliberat|(?:^|_)cot(?:_|$)", re.I)
_PAST = re.compile(r"histor|past|preserve|clear|keep|truncat|drop|content|prefix|prompt|lang", re.I)
"""Names of variables that most often are about old thoughts."""
_AGAINST = re.compile(r"(?:^|_)(?:skip|no|non|not|disable|without|hide|suppress)_", re.I)
_NO_PLACE = re.compile(r"\A(?:tools|functions|messages|documents|add_generation_prompt|tool_choice)\Z")
_SAID = re.compile(r"think|thought|reason|effort|deliberat|step.by.step|\bcot\b|budget", re.I)
"""Words of thoughts in a prompt's lines."""


class Seen(NamedTuple):
    """What one prompt shows."""

    text: str
    end: End


class Level(NamedTuple):
    """``rank``: its place among the words of effort, None for a word that has none; that of ``off`` is 0."""

    name: str
    variables: Mapping[str, Any]
    seen: Seen
    rank: float | None

    @property
    def thinks(self) -> bool:
        """Whether thoughts are not turned off by it."""
        return self.name != "off" and self.seen.end != "closed"


@dataclass(frozen=True)
class Dial:
    """The levels, in order. ``on``: the one that is on and no more, None if nothing is; ``default``: the one without a
    wish, None if it is none of them. ``end``: where the prompt ends then."""

    levels: tuple[Level, ...] = ()
    on: Level | None = None
    default: Level | None = None
    end: End = ""

    def level(self, name: str) -> Level | None:
        """The level of this name."""
        return next((level for level in self.levels if level.name == name), None)

    def asked(self, thinking: str | None, effort: str | None, *, thinks: bool) -> Thoughts:
        """What a wish gets. ``thinking``: one of `KINDS`, which decides on and off; ``effort``: a word. ``thinks``:
        whether the model writes thoughts, which counts where no level turns them off."""
        if thinking == "disabled" or (thinking != "enabled" and effort == "none"):
            return self._off(thinks)
        own = self.level("adaptive") if thinking == "adaptive" and effort is None else None
        level = own or (self.on if effort in (None, "none") else self._nearest(str(effort)))
        return Thoughts() if level is None else Thoughts(level.name, level.variables)

    def _off(self, thinks: bool) -> Thoughts:
        off = self.level("off")
        if off is not None:
            return Thoughts("off", off.variables)
        if self.end == "closed" or not (self.end == "open" or thinks):
            return Thoughts()
        least = next((level for level in self.levels if level.rank and level.thinks), None)
        return Thoughts("", {}, 0) if least is None else Thoughts(least.name, least.variables, 0)

    def _nearest(self, word: str) -> Level | None:
        """The level of a word: its own, else the nearest of those that think; at the same distance the one nearer to
        plain on."""
        own = self.level(word) if word != "off" else None
        if own is not None:
            return own
        want = _RANK.get(word)
        steps = [level for level in self.levels if level.rank is not None and level.thinks]
        steps = [level for level in steps if level.name != "adaptive"]
        if want is None or not steps:
            return self.on
        usual = self.on.rank if self.on is not None and self.on.rank is not None else _RANK["high"]
        return min(steps, key=lambda one: (abs((one.rank or 0) - want), abs((one.rank or 0) - usual)))

    def against(self, level: str) -> Mapping[str, Any] | None:
        """The variables of the level with which a level's prompt is compared; None if there is no other."""
        others = (
            (self.on, self.default, *self.levels) if level == "off" else (self.level("off"), *self.levels)
        )
        return next((other.variables for other in others if other is not None and other.name != level), None)


def find_dial(
    ask: Callable[[Mapping[str, Any]], Seen | None], words: Mapping[str, tuple[Value, ...]]
) -> Dial:
    """The dial of a template. ``ask``: what the prompt of one question shows with these variables, None if it is
    refused. ``words``: see `compared_of`."""
    return _Finder(ask, words).dial()


class _Finder:
    """``on``, ``off``: the values that turn thoughts on and off. ``flags``: levels that a switch of their own gives."""

    def __init__(
        self, ask: Callable[[Mapping[str, Any]], Seen | None], words: Mapping[str, tuple[Value, ...]]
    ) -> None:
        self._ask = ask
        self._known: dict[str, Seen | None] = {}
        self.on: dict[str, Any] = {}
        self.off: dict[str, Any] = {}
        self.levels: list[Level] = []
        self.flags: dict[str, dict[str, Any]] = {}
        self.words = {name: values for name, values in words.items() if _may_be(name, values)}
        self.names = sorted(self.words)

    def _seen(self, given: Mapping[str, Any]) -> Seen | None:
        key = repr(sorted(given.items()))
        if key not in self._known:
            self._known[key] = self._ask(given) if len(self._known) < MOST else None
        return self._known[key]

    def dial(self) -> Dial:
        base = self._seen({})
        if base is None:
            return Dial()
        plain = base
        for last in (False, True):
            names = [name for name in self.names if _comes_last(name) is last]
            later = [name for name in names if not self._switches(name, base)]
            plain = self._seen(self.on) or base
            if self.off:
                self._seen(self.off)
            for given in self.flags.values():
                self._seen({**self.on, **given})
            for name in later:
                self._steps(name, plain, base)
        for word, given in self.flags.items():
            if (seen := self._seen({**self.on, **given})) is not None:
                self.levels.append(Level(word, {**self.on, **given}, seen, _RANK.get(word, _ADAPTIVE)))
        off = self._seen(self.off) if self.off else None
        if off is not None:
            self.levels.append(Level("off", self.off, off, 0.0))
        on = self._plain_on(base, plain, off)
        default = next((level for level in self.levels if level.seen.text == base.text), None)
        if default is None and self.on and self.off and base.end == "" and plain.end == "open":
            default = Level("adaptive", {}, base, _ADAPTIVE)  # neither on nor off: the model decides
            self.levels.append(default)
        ordered = sorted(self.levels, key=lambda level: 9.0 if level.rank is None else level.rank)
        return Dial(tuple(ordered), on, default, base.end)

    def _values(self, name: str, values: Iterable[Any], beside: Mapping[str, Any]) -> dict[Any, Seen]:
        """What these values do; without those that are refused. Of True and 1 both are there."""
        found = {value: self._seen({**beside, name: value}) for value in values}
        return {value: seen for value, seen in found.items() if seen is not None}

    def _switches(self, name: str, base: Seen) -> bool:
        """Whether a variable turns thoughts on and off, or is a flag; then nothing more is asked of it."""
        texts = [value for value in self.words[name] if isinstance(value, str)]
        numbers = [value for value in self.words[name] if type(value) in (int, float)]
        if numbers or "budget" in name:  # a number of tokens: True would be 1
            none = self._values(name, (0,), {}).get(0)
            if none is not None and none.end == "closed" and none.text != base.text:
                self.off[name] = 0
            return True
        known = {text.lower() for text in texts}
        if known and not (known & _ON and known & _OFF) and not known <= _ON | _OFF | _OWN:
            return False  # words of effort: asked where thoughts are on
        found = self._values(name, texts or (True, False), {})
        if texts and not _moved(found, base):
            found = self._values(name, (True, False), {})
        yes, no = found.get(True), found.get(False)
        if not _moved(found, base) or (yes is not None and no is not None and yes.text == no.text):
            return False
        if True in found or False in found:
            return self._flag(name, found)
        ons = [text for text in texts if text in found and text.lower() in _ON]
        offs = [text for text in texts if text in found and text.lower() in _OFF]
        for text in texts:
            if text in found and text.lower() in _OWN:
                self.flags["adaptive"] = {name: text}
        if ons and offs and _speaks(found[ons[0]], found[offs[0]]):
            self.on[name], self.off[name] = ons[0], offs[0]
        elif offs and _speaks(found[offs[0]], base):
            self.off = self.off or {name: offs[0]}
            return False
        return True

    def _flag(self, name: str, found: Mapping[Any, Seen]) -> bool:
        """A variable of which True and False give two prompts."""
        if len(found) < 2 or not _speaks(found[True], found[False]) or _written(found[True], "true"):
            return True
        order = {"open": 2, "": 1, "closed": 0}
        ends = order[found[True].end] - order[found[False].end]
        yes = ends > 0 if ends else not _AGAINST.search(name)
        word = next((word for word in EFFORTS if re.search(rf"(?:^|_){word}_", name)), None)
        if word not in (None, "none"):
            self.flags[str(word)] = {name: yes}
        else:
            self.on[name], self.off[name] = yes, not yes
        return True

    def _steps(self, name: str, plain: Seen, base: Seen) -> None:
        """The words of a variable that is read while thoughts are on."""
        texts = sorted(
            (value for value in self.words[name] if isinstance(value, str)),
            key=lambda text: text.lower() not in _RANK,
        )
        found: dict[Any, Seen] = {}
        if not texts:
            beside = self.on if plain.text != base.text else {}  # the same prompt was asked before
            found = self._values(name, (True, False), beside)
            if not _moved(found, plain):
                return
            if (
                len(found) == 2
                and found[True].text != found[False].text
                and not _written(found[True], "true")
            ):
                self._flag(name, found)
                return
        given = self._values(name, texts, self.on)
        for word, seen in {**given, **self._others(name, texts, given, plain)}.items():
            self._step(name, word, seen, plain)

    def _others(
        self, name: str, texts: list[str], given: Mapping[str, Seen], plain: Seen
    ) -> Mapping[str, Seen]:
        """What words do that the source does not name."""
        ranked = {text.lower() for text in texts} & _RANK.keys()
        unheard = self._seen({**self.on, name: _UNHEARD})
        if unheard is None:
            return {} if len(ranked) > 1 else self._values(name, _OTHERS, self.on)
        if _written(unheard, _UNHEARD):
            return self._values(name, _USUAL, self.on) if ranked or not texts else {}
        if unheard.text == plain.text:
            return {}
        others = self._values(name, [word for word in _OTHERS if word not in given], self.on)
        taken = {seen.text for seen in given.values()}
        return {
            word: seen
            for word, seen in others.items()
            if (seen.text != unheard.text or word == "high") and seen.text not in taken
        }

    def _step(self, name: str, word: str, seen: Seen, plain: Seen) -> None:
        small = word.lower()
        if seen.text != plain.text and not _speaks(seen, plain):
            return
        if (small in _OFF and seen.text != plain.text) or seen.end == "closed":
            self.off.setdefault(name, word)
        if small in _OWN:
            self.flags["adaptive"] = {name: word}
        elif small in _RANK and small not in _OFF:
            same = any(
                level.seen.text == seen.text and level.variables.keys() >= {name} for level in self.levels
            )
            if not same or seen.end == "closed":
                self.levels.append(Level(small, {**self.on, name: word}, seen, _RANK[small]))

    def _plain_on(self, base: Seen, plain: Seen, off: Seen | None) -> Level | None:
        """The level that is on and no more: a word that gives the same prompt, else one of its own."""
        steps = [level for level in self.levels if level.rank and level.name in _RANK]
        same = next((level for level in steps if level.seen.text == plain.text), None)
        if same is not None:
            return same
        shown = [level for level in steps if level.thinks]
        if not (self.on or ((steps or off is not None) and (off is None or base.text != off.text))):
            return min(shown, key=lambda one: abs((one.rank or 0) - _RANK["high"]), default=None)
        taken = {level.rank for level in self.levels}
        words = {_named(plain.text, level.seen.text) for level in shown} - {""}
        word = words.pop() if len(words) == 1 else ""
        if word and _RANK[word] not in taken:  # the prompt says which level it is: "Effort: Max"
            found = Level(word, dict(self.on), plain, _RANK[word])
        else:
            rank = next((rank for rank in (4.0, 3.0, 2.0, 1.0) if rank not in taken), 0.5)
            found = Level("on", dict(self.on), plain, rank)
        self.levels.append(found)
        return found


def _may_be(name: str, values: Iterable[Value]) -> bool:
    """Whether a variable is worth a try: its name speaks of thoughts, or its words do."""
    if _NO_PLACE.search(name):
        return False
    words = {str(value).lower() for value in values if isinstance(value, str)}
    return bool(_ABOUT.search(name)) or len(words & _RANK.keys()) > 1 or bool(words & _ON and words & _OFF)


def _comes_last(name: str) -> bool:
    """Whether a variable is likely about something else: then it is tried last."""
    return not _ABOUT.search(name) or bool(_PAST.search(name))


def _moved(found: Mapping[Any, Seen], plain: Seen) -> bool:
    return any(seen.text != plain.text for seen in found.values())


def _speaks(one: Seen, other: Seen) -> bool:
    """Whether two prompts differ in thoughts: in their ends, or in lines that speak of thoughts."""
    if one.end != other.end or one.end == "open":
        return one.text != other.text
    from difflib import SequenceMatcher  # few templates need it

    a, b = one.text.splitlines(), other.text.splitlines()
    changed = SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    return any(
        _SAID.search(line)
        for kind, start, end, first, last in changed
        if kind != "equal"
        for line in (*a[start:end], *b[first:last])
    )


def _written(seen: Seen, value: str) -> bool:
    """Whether a template writes out the value that it is given."""
    return value in seen.text.lower()


def _named(text: str, other: str) -> str:
    """The word of effort in which a prompt differs from another, which has another such word there; "" if none."""
    one, two = (re.findall(r"\w+|\W", part) for part in (text, other))
    if len(one) != len(two):
        return ""
    words = {(a.lower(), b.lower()) for a, b in zip(one, two, strict=True) if a != b}
    found = {a for a, b in words if a in _RANK and b in _RANK and a != "none"}
    return found.pop() if len(words) == len(found) == 1 else ""
