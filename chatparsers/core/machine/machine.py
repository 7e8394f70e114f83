"""The parsing machine: an LPeg-style program (Medeiros & Ierusalimschy, 2008) that can suspend.

Strategy: a program is a flat list of small instructions, written by compile.py. The state is an instruction
pointer, the unread window of the text, a stack, and a trail of what has been read. When an instruction needs more text
than there is, `Machine.feed` returns, and the next call continues at that very instruction. So nothing is parsed twice,
and the state is plain data that can be copied and pickled.

Invariants:
- Each consumed character is in exactly one trail item ``(op, raw, value)``. The trail in order spells the text.
- A choice point remembers the length of the trail. Going back takes the raw text after that length off the trail and
  puts it in front of the window again. So a choice that holds much text costs no copying while it is open.
- ``floor`` is a height of the stack. Every choice point below it is dead (`CUT`), and every recovery point below it is
  armed.
- The trail below the oldest live choice point is final: `Machine.feed` hands it out.
- ``base`` is the position of the window in the text. All reported positions are ``base + i``, so they do not depend on
  how the text was cut.
- An instruction leaves text unconsumed only up to a bound of the program (a literal, `MAX_HEADER`).
"""

from __future__ import annotations

from collections.abc import Iterable

from .code import WHITE
from .fences import after
from .instructions import (
    AFTER,
    ARG_NAME,
    ARGS_BEGIN,
    ARGUMENT,
    BACK,
    BETWEEN,
    BLANK,
    BROKEN_END,
    BROKEN_VALUE,
    CALL,
    CALL_BEGIN,
    CALL_END,
    CALLSUB,
    CAPTURE,
    CHARS,
    CHOICE,
    CHOICE_POINT,
    COMMIT,
    CONTENT,
    COUNTS,
    CUT,
    DECLARED,
    DRAFT,
    END,
    FAIL,
    FAILTWICE,
    FOLLOWS,
    HELD,
    HOLD,
    IF,
    JUMP,
    LINE,
    LIT,
    MARK,
    MARKUP,
    MAX_HEADER,
    NAME,
    NOTE,
    NOTED,
    NTH,
    OPENER_IN_PROSE,
    OPENER_IS_TEXT,
    PLACE,
    REASONING,
    RECOVER,
    RECOVERY_POINT,
    RETURN,
    RETURN_ADDRESS,
    SPAN,
    TEXT,
    TOP,
    UNLESS,
    UNOPENED,
    UNSET,
    WITHOUT_OPENER,
    Item,
    Line,
    Where,
)  # fmt: skip
from .state import MachineState
from .value import Search
from .white import after_white, before_marker, white_space

_BEFORE = frozenset({CONTENT, REASONING, CALL_END, BROKEN_END})
"""The items before a call and what is around it."""


class Machine(MachineState):
    """One run of a program over a text that comes in pieces."""

    __slots__ = ()

    def waiting(self) -> tuple[int, Search | None] | None:
        """The region and a search, if the machine waits in the middle of a value, or of running text and holds
        nothing, and cannot go back; else None.

        A piece in which the search finds nothing would become trail items unchanged. The search is None where only the
        value's transcoder can decide this.
        """
        if self.live or self.text:
            return None
        ins = self.program.code[self.ip]
        if ins[0] == TEXT:
            return ins[1], ins[2].plain
        return None if self.value is None else (ins[1], self.value.plain)

    @property
    def region(self) -> int:
        """The region in which the machine is."""
        if self.calling or self.value is not None:
            return CALL
        ins = self.program.code[self.ip]
        region: int = ins[1] if ins[0] == TEXT else self.text_region
        return region

    def finish(self, cut_off: bool = False, line: Where = None) -> list[Item]:
        """Runs to the end, as no more text will come, and returns the items that are left. ``cut_off``: the end of the
        text cuts an open value off and does not end it. ``line`` is as in `feed`."""
        self.final, self.cut_off = True, cut_off
        if cut_off and self.value is not None:
            self.value.cut_off()
        return self.feed("", -1, False, line)

    def feed(self, piece: str, scanned: int = -1, pause: bool = False, line: Where = None) -> list[Item]:
        """Adds ``piece`` to the window and runs until the machine needs more text. Returns the items that are final.

        ``scanned``: how many characters of ``piece`` the transcoder of the open value has already scanned; -1 if it has
        seen no part of the piece. ``pause``: waits where the value of an argument begins, too, and where running
        text does, if it was not so before and cannot be taken back. ``line`` tells of the items that were handed out.
        """
        i, ip, final = 0, self.ip, self.final
        self.seen: tuple[int, Line | None] = 0, None
        text = self.text + piece
        code = self.program.code
        n = len(text)
        stack, trail = self.stack, self.trail
        while True:  # of each kind, the instructions come about in the order of how often they run
            ins = code[ip]
            op = ins[0]
            if op < CHOICE:
                if op == LIT:
                    begun = False
                    for literal, shown in ins[2]:
                        if text.startswith(literal, i):
                            if literal:
                                trail.append((ins[1], literal, None))
                                i += len(literal)
                            ip += 1
                            break
                        at = i
                        if n - i < len(literal) and literal.startswith(text[i:]):
                            begun = not final
                            if begun:
                                break
                            at = n
                        if self.base + at >= self.furthest:
                            self._wanted(at, shown)
                    else:
                        ip = 0
                    if begun:
                        break
                elif op == SPAN:
                    match = ins[2](text, i)
                    if match is None and i < n:  # the usual case
                        ip += 1
                        continue
                    end = match.end() if match else i
                    waits = end == n and not final
                    if (waits or end - i > MAX_HEADER) and self._undecided():
                        if end - i <= MAX_HEADER:
                            break
                        self._wanted(i, f"at most {MAX_HEADER} characters of white space")
                        ip = 0
                        continue
                    if end > i:
                        trail.append((ins[1], text[i:end], None))
                        i = end
                    if waits:
                        break
                    ip += 1
                elif op == CAPTURE:
                    end, parts = ins[1].read(self, text, i, final)
                    if end < 0:
                        break
                    if parts is None:
                        match = white_space(text, i, i + MAX_HEADER + 1) if ins[1].alone else None
                        end = match.end() if match else i  # after the white space before the name
                        if i < end == n and not final and end - i <= MAX_HEADER:
                            break
                        if i < end <= i + MAX_HEADER:
                            trail.append((MARKUP, text[i:end], None))
                            i = end
                        else:
                            self._wanted(i, ins[2])
                            ip = 0
                        continue
                    parts = self.named(parts)
                    if self.flags & WITHOUT_OPENER and ins[1].item == NAME:
                        declared = self.tools.get(self.tool) is not None
                        why = self._asked_before(trail, line) if declared else "the arguments of the call"
                        if why:
                            self._wanted(end, why)
                            ip = 0
                            continue
                    i = end
                    trail += parts
                    ip += 1
                elif op == UNLESS:
                    if i < n and text[i] in WHITE:
                        ip += 1
                        continue
                    found = ins[2].at(text, i)
                    if not final and (i == n or found < 0):
                        break
                    ip += 1
                    if not found:
                        ip = ins[1]
                        for what in ins[3]:
                            self._wanted(i, what)
                elif op == BETWEEN:
                    no_white = final if i == n else text[i] not in WHITE  # the usual case
                    if no_white and not (i < n < i + ins[5] and ins[1].at(text, i) < 0):
                        self.section = self.base + i if ins[4] else -1
                        ip += 1
                        continue
                    end, blank, begun = before_marker(ins[1], ins[3], text, i)
                    stop = end
                    found = ins[2].at(text, end)
                    if not found and blank < end:
                        stop, found = blank, ins[2].at(text, blank)
                    waits = begun or found < 0
                    if not final and (waits or end == n <= i + MAX_HEADER):
                        break
                    self.section = self.base + end if ins[4] else -1
                    if found and not waits:
                        end = stop
                    elif begun and ins[4] and end < n:
                        trail.append((NOTE, "", ("truncated", self.base + end, "the rest of the marker")))
                        end = n
                    elif end < n:
                        end = i
                    if i < end:
                        trail.append((MARKUP, text[i:end], None))
                        i = end
                    ip += 1
                elif op == TOP:
                    self.calling = False
                    self.text_region = CONTENT
                    if i == n and not final:
                        break
                    ip = ins[1] if i == n else ip + 1
                elif op == FOLLOWS:
                    found = ins[2].at(text, i)
                    if not final and (i == n or found < 0):
                        break
                    ip = ins[1] if found > 0 or (i == n and ins[3]) else ip + 1
                elif op == COUNTS:
                    end = after_white(text, i)
                    found = ins[1].at(text, end)
                    if not final and (end == n or found < 0):
                        break
                    ip += 1
                    if found > 0:
                        self.flags &= ~WITHOUT_OPENER
                        continue
                    why = ins[3]
                    if not why and self.flags & OPENER_IN_PROSE and ins[2].at(text, end) > 0:
                        why = "another call before"
                    self.flags |= WITHOUT_OPENER
                    if not ins[1].stops or end == n or self.base + i in (0, self.section):
                        trail.append((MARKUP, "", text[i:end]))
                    elif not why:
                        why = self._misplaced(trail, len(trail), text[i:end], line)
                    if why:
                        self._wanted(i, why)
                        ip = 0
                elif op == BLANK:
                    if i < n and text[i] in WHITE:
                        end, blank, begun = before_marker(ins[1], ins[2], text, i)
                        if not final and (begun or end == n <= i + MAX_HEADER):
                            break
                        if i < blank:
                            trail.append((MARKUP, text[i:blank], None))
                            i = blank
                    ip += 1
                elif op == AFTER:
                    if i < n:
                        trail.append((MARKUP, text[i:], None))
                        i = n
                    break
                elif op == CHARS:
                    end = ins[2](text, i).end()
                    if end - i < ins[5]:
                        if end == n and not final:
                            break
                        self._wanted(end, ins[3])
                    if end - i < ins[4]:
                        ip = 0
                    else:
                        if end > i:
                            trail.append((ins[1], text[i:end], None))
                            i = end
                        ip += 1
                elif op == UNOPENED:
                    begin = max(i, self.section - self.base)
                    found = ins[1].at(text, begin)
                    if found < 0 and not final:
                        break
                    ip += 1
                    if found > 0:
                        at = max(self.furthest, self.base + begin)
                        cut = final and at >= self.base + n
                        over = cut and self.base + begin == self.section
                        if begin == i or over:
                            note = "truncated" if cut else "stray-marker"
                            trail.append((NOTE, "", (note, self.base + begin, self._expected(at))))
                            fenced = self._where(trail, len(trail), line)[0]
                            self.flags |= OPENER_IS_TEXT if fenced else OPENER_IS_TEXT | OPENER_IN_PROSE
                        if over:
                            trail.append((MARKUP, text[i:], None))
                            i = n
                            ip = ins[2]
                elif op == NTH:
                    found = ins[1].at(text, i)
                    if not final and (i == n or found < 0):
                        break
                    name = self._by_place(text[i]) if found > 0 else None
                    if name is not None:
                        self.arg = name
                        trail.append((ARG_NAME, "", name))
                        ip += 1
                    else:
                        self._wanted(i, "the name of an argument")
                        ip = 0
                elif op == END:
                    if i == n and not final:
                        break
                    ip = ip + 1 if i == n and not self.cut_off else 0
                    if not ip:
                        self._wanted(i, "the end of the turn")
                else:  # SAME
                    end, begun = _spelt(ins[3](self.arg), text, i)
                    if end >= 0:
                        trail.append((ins[1], text[i:end], None))
                        i = end
                        ip += 1
                    elif begun and not final:
                        break
                    else:
                        self._wanted(i, f"{ins[2]} {self.arg!r}")
                        ip = 0
            elif op < TEXT:
                if op == CHOICE:
                    stack.append((CHOICE_POINT, ins[1], len(trail), self.calling))
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
                        if kind == CHOICE_POINT and len(stack) >= self.floor:
                            if len(trail) > length:
                                text, i = self._go_back(length, text, i)
                                n = len(text)
                            self.calling = calling
                            ip = target
                            break
                        if kind == RECOVERY_POINT and len(stack) < self.floor:
                            self.floor = len(stack)
                            at = max(self.furthest, self.base + i)
                            cut = final and at >= self.base + n
                            trail.append(
                                (NOTE, "", ("truncated" if cut else "malformed", at, self._expected(at)))
                            )
                            ip = code[target][1 if self.calling else 2]
                            if cut and not self.calling and i < n:  # the beginning of a marker or of a call
                                trail.append((MARKUP, text[i:], None))
                                i = n
                            break
                    if self.floor > len(stack):
                        self.floor = len(stack)
                    if ip < 0:
                        at = max(self.furthest, self.base + i)
                        trail.append((NOTE, "", ("malformed", at, self._expected(at))))
                        ip = self.program.fallback
                elif op == CALLSUB:
                    stack.append((RETURN_ADDRESS, ip + 1, 0, False))
                    ip = ins[1]
                elif op == RETURN:
                    ip = stack.pop()[1]
                    if self.floor > len(stack):
                        self.floor = len(stack)
                elif op == MARK:
                    said = ins[2]
                    if ins[1] == CALL_BEGIN:
                        self.calling, self.tool = True, ""
                        if not self.flags & WITHOUT_OPENER:
                            said = None
                    elif ins[1] == CALL_END or ins[1] == BROKEN_END:
                        self.calling = False
                    elif ins[1] == NAME:
                        self.tool = ins[2]
                    elif ins[1] == ARG_NAME:
                        self.arg = ins[2]
                    elif ins[1] == ARGS_BEGIN:
                        self.nth = 0
                    trail.append((ins[1], "", said))
                    ip += 1
                elif op == JUMP:
                    ip = ins[1]
                elif op == RECOVER:
                    stack.append((RECOVERY_POINT, ip, 0, False))
                    ip += 1
                elif op == UNSET:
                    self.flags &= ~ins[1]
                    ip += 1
                elif op == CUT:
                    if not self.flags & HELD:
                        self.floor = len(stack)
                    ip += 1
                elif op == BACK or op == FAILTWICE:
                    _, _, length, self.calling = stack.pop()
                    text, i = self._go_back(length, text, i)
                    n = len(text)
                    ip = ins[1] if op == BACK else 0
                elif op == DECLARED:
                    tool = self.tools.get(self.tool)
                    if tool is not None and not (ins[1] and ins[1] in tool.arguments):
                        ip += 1
                    else:
                        self._wanted(i, "the arguments of the call")
                        ip = 0
                elif op == PLACE:
                    self.text_region = ins[1]
                    ip += 1
                elif op == IF:
                    ip = ins[2] if self.flags & ins[1] else ip + 1
                elif op == LINE:
                    ip += 1
                    self.asked = True
                    if any(self._where(trail, len(trail), line)[: ins[1]]):
                        self._wanted(i, "the start of a line")
                        ip = 0
                elif op == NOTED:
                    trail.append((NOTE, "", (ins[1], self.base + i - ins[2], ins[3])))
                    ip += 1
                elif op == HOLD:
                    if self.base + i < self.drafted:
                        ip = ins[1]
                    else:
                        stack.append((CHOICE_POINT, ins[1], len(trail), self.calling))
                        self.flags |= HELD
                        ip += 1
                elif op == DRAFT:
                    if self.flags & HELD:
                        self.flags &= ~HELD
                        self.drafted = self.furthest
                    ip += 1
                else:  # ABANDON
                    ip = self.program.fallback
                    while stack:
                        kind, target, _, _ = stack.pop()
                        if kind == RECOVERY_POINT:
                            ip = code[target][2]
                            break
                    self.floor = len(stack)
            else:
                if op == TEXT:
                    if pause and (i > n - len(piece) or ip != self.ip) and not self._undecided():
                        break
                    match = ins[2].whole(text, i) if final else ins[2].find(text, i)
                    if match is None:
                        if i < n:
                            trail.append((ins[1], text[i:] if i else text, None))
                            i = n
                        if not final:
                            break
                        if ins[4]:
                            trail.append((NOTE, "", ("truncated", self.base + n, ins[4])))
                        ip = ins[3]
                        continue
                    end = match.start()
                    if end > i:
                        trail.append((ins[1], text[i:end], None))
                        i = end
                    if match[1] is not None:
                        break
                    ip += 1
                else:  # VALUE
                    value = self.value
                    if pause and value is None and ins[1] == ARGUMENT:
                        break
                    # A value that begins at the end is read as far as it is sure; not if another text may begin there.
                    last = final and (value is not None or self.furthest >= self.base + i)
                    if value is None:
                        value = self.value = ins[2](self)()
                        if self.cut_off:
                            value.cut_off()
                    if scanned < 0:
                        end = value.scan(text, i, last)
                    else:
                        end, scanned = scanned, -1
                    if last and value.error and not value.done:  # nobody knows what the held text would be
                        value.out, value.notes, value.marked = "", [], -1
                    for at, expected, _ in value.notes:
                        trail.append((NOTE, "", ("mended", self.base + at, expected)))
                    if value.marked >= 0:
                        at = self.base + value.marked
                        trail.append((NOTE, "", ("markup-in-value", at, "the end of the value")))
                    if end > i or value.out:
                        trail.append((ins[1], text[i:end], value.out if ins[3] else None))
                        i = end
                    if value.done and not (value.error and self._undecided()):
                        if value.error:
                            at = self.base + i - value.length
                            trail.append((NOTE, "", ("malformed", at, value.error)))
                            trail.append((BROKEN_VALUE, "", True))
                        self.value = None
                        ip += 1
                    elif value.error:
                        self.value = None
                        trail.append((BROKEN_VALUE, "", None))
                        self._wanted(i, value.error)
                        ip = 0
                    elif last or not final:
                        break
        self.text, self.ip = text[i:], ip
        self.base += i
        if len(stack) > self.floor and (oldest := self._oldest()) >= 0:
            self.live = True
            length = stack[oldest][2]
            return self._final(length) if length else []
        self.live = False
        self.trail = []
        return trail

    def _asked_before(self, trail: list[Item], line: Where) -> str:
        """What is expected at the place that `COUNTS` marked; "" if it marked none."""
        for at in range(len(trail) - 1, -1, -1):
            kind, _, space = trail[at]
            if kind == MARKUP and space is not None:
                return self._misplaced(trail, at, space, line)
            if kind in _BEFORE:
                break
        return ""

    def _misplaced(self, trail: list[Item], at: int, space: str, line: Where) -> str:
        """What is expected before a call that lacks its opener, after ``at`` items and ``space``; "" if nothing is
        missing."""
        self.asked = True
        open, rest = after(self._where(trail, at, line), [(CONTENT, space, None)])
        return "the start of a line" if rest else "the end of the fence" if open else ""

    def _where(self, trail: list[Item], at: int, line: Where) -> Line:
        """Where in a line the text ends after ``at`` items. What the machine cannot go back before is gone through
        once."""
        count, seen = self.seen
        oldest = self._oldest()
        final = at if oldest < 0 else min(at, self.stack[oldest][2])
        if seen is None or final > count:
            self.seen = count, seen = final, after(seen or (line and line()), trail[count:final])
        return after(seen, trail[count:at])

    def named(self, parts: list[Item]) -> list[Item]:
        """Notes the name in the items of a header, and gives a tool the declared name that it means."""
        for place, (tag, raw, name) in enumerate(parts):
            if tag == NAME:
                self.tool = self.tools.meant(name)
                if self.tool != name:
                    parts[place] = tag, raw, self.tool
            elif tag == ARG_NAME:
                self.arg = name
        return parts

    def _by_place(self, char: str) -> str | None:
        """The property that the next value without a name is, if ``char`` begins it."""
        tool = self.tools.get(self.tool)
        names = [] if tool is None else list(tool.arguments)
        if tool is None or self.nth >= len(names):
            return None
        name = names[self.nth]
        return name if char != "{" or "object" in tool.argument(name).types else None


def _spelt(spellings: Iterable[str], text: str, i: int) -> tuple[int, bool]:
    """Where the first of ``spellings`` ends that is at ``i``; else -1, and whether the window begins one."""
    begun = False
    for one in spellings:
        if text.startswith(one, i):
            return i + len(one), False
        begun = begun or (len(text) - i < len(one) and one.startswith(text[i:]))
    return -1, begun
