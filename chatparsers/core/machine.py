"""The parsing machine: an LPeg-style program (Medeiros & Ierusalimschy, 2008) that can suspend.

Strategy: a program is a flat list of small instructions (core/compile.py); the state is an instruction pointer,
the unread window of the text, a stack of choice points, return addresses and recovery points, and a trail of
what has been read. When an instruction needs more text than there is, `run` returns, and the next call goes on
at that very instruction: nothing is parsed twice, and the state is plain data that can be copied and pickled.

Invariants:
- Every character consumed is in exactly one trail item ``(op, raw, value)``; the trail in order spells the text.
- A choice point remembers the length of the trail; going back takes the raw text behind it off the trail and puts it in
  front of the window again. So a choice that holds much text costs no copying while it is open.
- A recovery point names two instructions: the first is for a call that is broken, the next for one that is over.
- ``floor`` is the height of the stack below which every choice point is dead (`CUT`) and every recovery point
  armed. What
  lies on the trail below the oldest live choice point is final: `take` hands it out.
- ``base`` is the position of the window in the text; ``base + i`` is chunk-independent, and so is all that is reported.
- Instructions that hold text unconsumed hold less than a bound set by the program (a literal, `MAX_HEADER`).
"""

from __future__ import annotations

from typing import Any

from .schema import Toolset
from .values.base import Transcoder

__all__ = ["MAX_HEADER", "Item", "Machine", "Program"]

MAX_HEADER = 1024
"""The most characters that a name or an id in a call's header may have."""

# Trail items. The first four are stretches of text and name their region.
MARKUP, CONTENT, REASONING, CALL = range(4)
(
    ARGUMENT,
    CALL_BEGIN,
    NAME,
    ID,
    ARGS_BEGIN,
    ARG_NAME,
    CALL_END,
    NOTE,
    BROKEN_BEGIN,
    BROKEN_END,
    BROKEN_VALUE,
) = range(4, 15)

# Instructions.
(
    FAIL,
    TEXT,
    LIT,
    SPAN,
    ONE,
    VALUE,
    CHOICE,
    COMMIT,
    JUMP,
    CUT,
    MARK,
    CAPTURE,
    BACK,
    FAILTWICE,
    RECOVER,
    DISARM,
    TOP,
    END,
    CALLSUB,
    RETURN,
    STRAY,
    UNCLOSED,
    DECLARED,
    PLACE,
    ABANDON,
    AT,
    AFTER,
) = range(27)

# Stack frames: (kind, ip, length of the trail, in a call, height for nothing else)
_CHOICE, _RECOVER, _RETURN = range(3)

Item = tuple[int, str, Any]
Instruction = tuple[Any, ...]


class Program:
    """A compiled format: ``code``, where ``code[0]`` fails, and where the parser begins."""

    __slots__ = ("code", "fallback", "key", "start")

    def __init__(self, code: list[Instruction], start: int, fallback: int, key: tuple[Any, ...]) -> None:
        self.code = code
        self.start = start
        self.fallback = fallback
        self.key = key

    def __reduce__(self) -> tuple[Any, ...]:
        from .compile import program

        return program, self.key


class Machine:
    """One run of a program over a text that comes in pieces.

    ``live``: at the last `take` there was a choice point to which the machine may go back. ``place``: the
    region of running text where the machine is.
    """

    __slots__ = (
        "arg",
        "base",
        "calling",
        "cut_off",
        "far",
        "final",
        "floor",
        "i",
        "ip",
        "live",
        "place",
        "program",
        "stack",
        "text",
        "tool",
        "tools",
        "trail",
        "value",
        "want",
    )

    def __init__(self, program: Program, tools: Toolset) -> None:
        self.program = program
        self.tools = tools
        self.ip = program.start
        self.text = ""
        self.i = 0
        self.base = 0
        self.final = False
        self.cut_off = False
        self.stack: list[tuple[int, int, int, bool]] = []
        self.floor = 0
        self.trail: list[Item] = []
        self.value: Transcoder | None = None
        self.live = False
        self.place = CONTENT
        self.calling = False
        self.tool = ""
        self.arg = ""
        self.far = -1
        self.want: list[str] = []

    def copy(self) -> Machine:
        """An independent copy at this point."""
        other = Machine.__new__(Machine)
        for name in Machine.__slots__:
            setattr(other, name, getattr(self, name))
        other.stack, other.trail, other.want = self.stack[:], self.trail[:], self.want[:]
        other.value = self.value.copy() if self.value is not None else None
        return other

    def feed(self, piece: str, scanned: int = -1) -> None:
        """Adds ``piece`` to the window and runs until it needs more.

        ``scanned``: the value that is being read has already scanned so many characters of it (-1: it has not).
        """
        if self.i:
            self.base += self.i
            self.text = self.text[self.i :] + piece
            self.i = 0
        else:
            self.text += piece
        self.run(scanned)

    def finish(self, cut_off: bool = False) -> None:
        """No more text will come: runs to the end. ``cut_off``: the end of the text ends no value."""
        self.final, self.cut_off = True, cut_off
        if cut_off and self.value is not None:
            self.value.cut_off()
        self.run()

    def take(self) -> list[Item]:
        """What of the trail is final, taken off it."""
        stack, floor = self.stack, self.floor
        self.live = False
        for height in range(floor, len(stack)):
            if stack[height][0] == _CHOICE:
                kept = stack[height][2]
                self.live = True
                break
        else:
            items, self.trail = self.trail, []
            return items
        if not kept:
            return []
        items = self.trail[:kept]
        del self.trail[:kept]
        for height in range(floor, len(stack)):
            kind, ip, length, calling = stack[height]
            stack[height] = (kind, ip, length - kept, calling)
        return items

    def run(self, scanned: int = -1) -> None:
        code = self.program.code
        text, i, ip, final = self.text, self.i, self.ip, self.final
        n = len(text)
        stack, trail = self.stack, self.trail
        while True:
            ins = code[ip]
            op = ins[0]
            if op == TEXT:
                match = ins[3](text, i) if final else ins[2](text, i)
                if match is None:
                    if i < n:
                        trail.append((ins[1], text[i:] if i else text, None))
                        i = n
                    if not final:
                        break
                    ip += 1
                    continue
                end = match.start()
                if end > i:
                    trail.append((ins[1], text[i:end], None))
                    i = end
                if match[1] is not None:
                    break
                ip += 1
            elif op == VALUE:
                value = self.value
                if value is None:
                    value = self.value = ins[2](self, ins)
                    if self.cut_off:
                        value.cut_off()
                if scanned < 0:
                    end = value.scan(text, i, final)
                else:
                    end, scanned = scanned, -1
                if final and value.error:  # cut off: what was held may still have become anything
                    value.out, value.notes = "", []
                for at, expected, _ in value.notes:
                    trail.append((NOTE, "", ("mended", self.base + at, expected)))
                if end > i or value.out:
                    trail.append((ins[1], text[i:end], value.out if ins[3] else None))
                    i = end
                if value.done:
                    self.value = None
                    ip += 1
                elif value.error:
                    self.value = None
                    trail.append((BROKEN_VALUE, "", None))
                    self._wanted(i, value.error)
                    ip = 0
                else:
                    break
            elif op == LIT:
                literal = ins[2]
                if text.startswith(literal, i):
                    trail.append((ins[1], literal, None))
                    i += len(literal)
                    ip += 1
                elif not final and n - i < len(literal) and literal.startswith(text[i:]):
                    break
                else:
                    if self.base + i >= self.far:
                        self._wanted(i, ins[3])
                    ip = 0
            elif op == CHOICE:
                stack.append((_CHOICE, ins[1], len(trail), self.calling))
                ip += 1
            elif op == COMMIT:
                stack.pop()
                if self.floor > len(stack):
                    self.floor = len(stack)
                ip = ins[1]
            elif op == FAIL:
                ip = -1
                while stack:
                    kind, target, length, calling = stack.pop()
                    if kind == _CHOICE and len(stack) >= self.floor:
                        if len(trail) > length:
                            text, i = self._go_back(length, text, i)
                            n = len(text)
                        self.calling = calling
                        ip = target
                        break
                    if kind == _RECOVER and len(stack) < self.floor:
                        self.floor = len(stack)
                        at = max(self.far, self.base + i)
                        cut = final and at >= self.base + n
                        trail.append(
                            (NOTE, "", ("truncated" if cut else "malformed", at, self._expected(at)))
                        )
                        ip = target if self.calling else target + 1
                        break
                if self.floor > len(stack):
                    self.floor = len(stack)
                if ip < 0:
                    at = max(self.far, self.base + i)
                    trail.append((NOTE, "", ("malformed", at, self._expected(at))))
                    ip = self.program.fallback
            elif op == JUMP:
                ip = ins[1]
            elif op == TOP:
                self.calling = False
                self.place = CONTENT
                if i == n and not final:
                    break
                ip = ins[1] if i == n else ip + 1
            elif op == ONE:
                if i < n:
                    if ins[2] is None or ins[2](text, i):
                        trail.append((ins[1], text[i], None))
                        i += 1
                        ip += 1
                        continue
                elif not final:
                    break
                self._wanted(i, ins[3])
                ip = 0
            elif op == SPAN:
                match = ins[2](text, i)
                end = match.end() if match else i
                if end > i:
                    trail.append((ins[1], text[i:end], None))
                    i = end
                if i == n and not final:
                    break
                ip += 1
            elif op == MARK:
                if ins[1] == CALL_BEGIN:
                    self.calling = True
                elif ins[1] == CALL_END or ins[1] == BROKEN_END:
                    self.calling = False
                elif ins[1] == NAME:
                    self.tool = ins[2]
                elif ins[1] == ARG_NAME:
                    self.arg = ins[2]
                trail.append((ins[1], "", ins[2]))
                ip += 1
            elif op == CAPTURE:
                match = ins[1](text, i)
                end = match.end() if match else i
                if end == n and not final and n - i <= MAX_HEADER:
                    break
                parts = ins[2](text[i:end]) if i < end <= i + MAX_HEADER else None
                if parts is None:
                    self._wanted(i, ins[3])
                    ip = 0
                    continue
                trail.append((CALL, text[i:end], None))
                i = end
                for tag, found in parts:
                    if tag == NAME:
                        self.tool = found
                    elif tag == ARG_NAME:
                        self.arg = found
                    trail.append((tag, "", found))
                ip += 1
            elif op == CUT:
                self.floor = len(stack)
                ip += 1
            elif op == RECOVER:
                stack.append((_RECOVER, ins[1], 0, False))
                ip += 1
            elif op == DISARM:
                stack.pop()
                if self.floor > len(stack):
                    self.floor = len(stack)
                ip += 1
            elif op == BACK or op == FAILTWICE:
                _, _, length, self.calling = stack.pop()
                text, i = self._go_back(length, text, i)
                n = len(text)
                ip = ins[1] if op == BACK else 0
            elif op == STRAY:
                if ins[1] is None:  # a closer, just read
                    trail.append((NOTE, "", ("stray-marker", self.base + i - ins[2], "")))
                elif ins[1](text, i):  # an opener of which nothing came
                    at = max(self.far, self.base + i)
                    cut = final and at >= self.base + n
                    note = "truncated" if cut else "stray-marker"
                    trail.append((NOTE, "", (note, self.base + i, self._expected(at))))
                ip += 1
            elif op == UNCLOSED:
                if i == n and final:
                    if ins[2]:
                        trail.append((NOTE, "", ("truncated", self.base + i, ins[2])))
                    ip = ins[1]
                else:
                    ip += 1
            elif op == DECLARED:
                if self.tool in self.tools:
                    ip += 1
                else:
                    self._wanted(i, "the arguments of the call")
                    ip = 0
            elif op == PLACE:
                self.place = ins[1]
                ip += 1
            elif op == AT:  # a text that is known to be whole, or the end
                ip = ins[1] if i == n or ins[2](text, i) else ip + 1
            elif op == ABANDON:
                ip = self.program.fallback
                while stack:
                    kind, target, _, _ = stack.pop()
                    if kind == _RECOVER:
                        ip = target + 1
                        break
                self.floor = len(stack)
            elif op == END:
                if i == n and not final:
                    break
                ip = ip + 1 if i == n else 0
                if not ip:
                    self._wanted(i, "the end of the text")
            elif op == CALLSUB:
                stack.append((_RETURN, ip + 1, 0, False))
                ip = ins[1]
            elif op == RETURN:
                ip = stack.pop()[1]
                if self.floor > len(stack):
                    self.floor = len(stack)
            else:  # AFTER: the turn has ended, all else is markup
                if i < n:
                    trail.append((MARKUP, text[i:], None))
                    i = n
                break
        self.text, self.i, self.ip = text, i, ip

    def _go_back(self, length: int, text: str, i: int) -> tuple[str, int]:
        """Takes all behind ``length`` off the trail; the window and the place in it where its text begins."""
        raw = "".join([item[1] for item in self.trail[length:]])
        del self.trail[length:]
        if len(raw) <= i:
            return text, i - len(raw)
        self.base += i - len(raw)
        return raw + text[i:], 0

    def _wanted(self, i: int, what: str) -> None:
        """Remembers what was expected at the furthest place reached, for diagnostics."""
        at = self.base + i
        if at > self.far:
            self.far = at
            self.want = [what]
        elif at == self.far and what not in self.want:
            self.want.append(what)

    def _expected(self, at: int) -> str:
        return " or ".join(self.want[:6]) if at == self.far else ""
