"""What a program is made of: the machine's instructions, and what they put on its trail and its stack.

An item of the trail is ``(kind, raw, value)``: the text that was read, and what it says.

Stack frames are ``(kind, ip, length, calling)``. In a choice point, ``ip`` is the instruction to continue at,
``length`` the length of the trail, and ``calling`` whether the machine was inside a call. In a recovery point, ``ip``
is its own `RECOVER` instruction. In a return address, ``ip`` is the instruction to continue at.

The table lists the instructions with their operands. "Fails" means that `FAIL` comes next. "Holds" names the text that
the instruction leaves unconsumed while it waits for more; at the end of the text it decides with what it has. A label
is a place in the code. A region is one of the first four kinds of items below.

FAIL
    Goes back to the latest live choice point, else continues at the latest armed recovery point, else reads the rest of
    the text as content. If the text ends within what is expected after a call, that beginning becomes markup.
TEXT region finder label missing
    Reads text of the region up to the first stop that ``finder`` finds (see `StopFinder`). Holds the beginning of a
    stop. At the end of the whole text, notes that ``missing`` is missing, unless it is empty, and goes to the label.
LIT region texts
    Reads the first of ``texts`` that is here, or fails and expects each of them. The texts are given with what a
    diagnostic shows. Holds the beginning of one, if none before it is here.
SPAN region match
    Reads the longest run that ``match`` matches, which may be empty. While a choice point is live, holds the run, and
    fails if the run is longer than `MAX_HEADER`. Otherwise holds nothing.
CHARS region match shown least most
    Reads the longest run that ``match`` matches, which has at most ``most`` characters, or fails and expects ``shown``
    if there are less than ``least``. Holds the run, while it may become longer.
VALUE region make put
    Reads one value with the transcoder that ``make(machine)()`` makes. If ``put`` is true, the trail gets the
    transcoder's output, else only the text. Fails if the value is broken; if it is whole, but not what is wanted here,
    fails while a choice point is live, and else notes it. Holds the text that the transcoder leaves.
CAPTURE names shown
    Reads what ``names`` (see `Names`) finds as part of a call's header, or fails and expects ``shown``. Where a name is
    alone, white space before it is markup, which is read first. Holds what may become longer, up to `MAX_HEADER`.
CHOICE label
    Pushes a choice point that continues at the label.
COMMIT label
    Drops the choice point or recovery point on top, or what is in its place, and goes to the label.
BACK label
    Goes back in the text to the choice point on top, drops it and goes to the label. Ends a look-ahead that succeeds.
FAILTWICE
    Goes back in the text to the choice point on top, drops it and fails. Ends a negative look-ahead that fails.
JUMP label
    Goes to the label.
CALLSUB label
    Pushes a return address and goes to the label.
RETURN
    Goes to the return address on top and drops it.
CUT
    Raises the floor to the top of the stack, so the machine never goes back before this point. Does nothing while text
    is held (`HOLD`).
HOLD label
    As `CHOICE`, and sets the flag `HELD`, so that what follows stays a choice. Goes to the label if an earlier `DRAFT`
    has passed this place.
DRAFT
    If text was held, it is a draft up to the furthest place reached: a `HOLD` before that would fail there again.
RECOVER on_broken on_closed
    Pushes a recovery point. A failure that comes to it continues at ``on_broken`` inside a call, else at ``on_closed``.
ABANDON
    Drops the latest recovery point and every frame above it, and continues at its ``on_closed``.
MARK item value
    Puts an item without text on the trail: a call begins or ends, a name is known.
NTH finder
    If one of the texts that ``finder`` looks for (see `StopFinder`) is here, and so far all arguments of the call
    stood without names, names the tool's next property. Fails otherwise, and where a brace would begin a value that is
    no object. Holds the beginning of such a text.
SAME region shown spell
    Reads exactly the name of the argument that was read last, or fails and expects ``shown``. ``spell`` gives the ways
    to write it. Holds less than the name.
DECLARED lacks
    Fails unless the request has a tool of the name just read, and that tool has no argument called ``lacks``.
LINE parts
    Fails within a fence, and, if ``parts`` is 2, unless running text before this place ends a line, or none is there.
PLACE region
    Sets the region of the running text from here on.
TOP label
    Begins each round of the body's loop: the region is content, and no call is open. Goes to the label at the end of
    the text.
FOLLOWS label finder end
    Goes to the label if one of the texts that ``finder`` looks for (see `StopFinder`) is here, or if ``end``, at the
    end of the text. Holds the beginning of such a text.
UNLESS label finder shown
    Expects each of ``shown`` and goes to the label if neither white space nor one of the texts that ``finder`` looks
    for (see `StopFinder`) is here, whole or begun. Holds the beginning of such a text.
NOTED code length expected
    Puts a diagnostic on the trail. Its place is ``length`` characters back.
COUNTS finder written unless
    Succeeds if an opener that ``finder`` looks for (see `StopFinder`) is here, after white space, which it holds. Else
    the call lacks it: ``unless`` (what else is expected) must be empty, ``written`` find no opener after one was text
    in prose, its name (`CAPTURE`) be declared, and this place begin a line outside of fences. Without openers, and
    after a section, this is asked at the name: an item marks the place.
UNOPENED finder label
    If a marker that ``finder`` looks for (see `StopFinder`) is here, notes that it opens nothing, and sets the flag
    `OPENER_IS_TEXT`. Holds the beginning of a marker. If the text ends within a call right after a section (`BETWEEN`),
    that and the white space before it are markup, and the label is next.
BETWEEN finder stops widths section longest
    Looks past the white space between two parts of a turn. If the turn ends there, or by a text that ``stops`` looks
    for, the white space is markup; and if ``section``, as a whole section comes before it, so is the beginning of a
    marker that ``finder`` looks for, with which the text ends. Holds both. ``widths``: how much white space such
    markers begin with, the most first; ``longest``: how long they may be.
BLANK finder widths
    Reads the white space that is here, without that of a marker, as markup. Holds both. Operands as in `BETWEEN`.
UNSET flag
    Clears a flag.
IF flag label
    Goes to the label if the flag is set.
END
    Fails unless the text is at its end. Fails there too if the turn was cut off.
AFTER
    Reads all that follows as markup, because the turn is over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

MAX_HEADER = 1024
"""The most characters that a name, an id or a run of white space in a call's header may have."""

# Trail items. The first four are runs of text; each is named after its region.
MARKUP: Final = 0
CONTENT: Final = 1
REASONING: Final = 2
CALL: Final = 3
ARGUMENT: Final = 4
CALL_BEGIN: Final = 5
NAME: Final = 6
ID: Final = 7
ARGS_BEGIN: Final = 8
ARG_NAME: Final = 9
CALL_END: Final = 10
NOTE: Final = 11
BROKEN_BEGIN: Final = 12
BROKEN_END: Final = 13
BROKEN_VALUE: Final = 14

# Instructions: the table above. The first may wait for more text, the next read none. In the last two a machine waits
# longest.
LIT, SPAN, CAPTURE, UNLESS, BETWEEN, TOP, FOLLOWS, COUNTS = range(8)
BLANK, AFTER, CHARS, UNOPENED, NTH, END, SAME = range(8, 15)
CHOICE, COMMIT, FAIL, CALLSUB, RETURN, MARK, JUMP, RECOVER, UNSET, CUT = range(15, 25)
BACK, FAILTWICE, DECLARED, PLACE, IF, LINE, NOTED, HOLD, DRAFT, ABANDON = range(25, 35)
TEXT, VALUE = range(35, 37)

NAMED: Final = 1 << 30
"""In place of a number of arguments: one of them had its name."""

# Flags of the turn. They change only where the machine cannot go back.
OPENER_IS_TEXT: Final = 1
"""An opener was read as text, so a closer is text too."""
OPENER_IN_PROSE: Final = 8  # and it is in no fence
WITHOUT_OPENER: Final = 4  # the call that is read lacks its opener (`COUNTS`)
HELD: Final = 2
"""Calls in open reasoning are held until it is known whether the turn ends with them. No cut commits to them."""

# The kinds of stack frames.
CHOICE_POINT: Final = 0
RECOVERY_POINT: Final = 1
RETURN_ADDRESS: Final = 2

Item = tuple[int, str, Any]
Instruction = tuple[Any, ...]
Line = tuple[str, str]
"""Where in a line a text ends: the marks of the fence that is open, and what is before it, if that may become marks."""
Where = Callable[[], Line] | None
"""Says where the text ends that was read before; None if none was."""


class Program:
    """A compiled format.

    ``code[0]`` is `FAIL`. The parser begins at ``start``. At ``fallback`` it reads the rest of the text as content.
    ``late_ids``: it may read a call's id after its arguments. ``unwanted``: the request wants no calls. ``recipe`` is
    the function that makes the program, and its arguments: a pickle holds only these. A program without one is pickled
    by nobody.
    """

    __slots__ = ("code", "fallback", "late_ids", "recipe", "start", "unwanted")

    def __init__(
        self,
        code: list[Instruction],
        start: int,
        fallback: int,
        late_ids: bool,
        unwanted: bool,
        recipe: tuple[Callable[..., Program], tuple[Any, ...]] | None = None,
    ) -> None:
        self.code = code
        self.start = start
        self.fallback = fallback
        self.late_ids = late_ids
        self.unwanted = unwanted
        self.recipe = recipe

    def __reduce__(self) -> tuple[Any, ...]:
        assert self.recipe is not None
        return self.recipe
