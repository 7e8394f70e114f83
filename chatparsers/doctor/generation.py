"""``{% generation %}`` tags: what they mark, and where they belong.

Strategy of `with_tags`. A template is cut into the pieces that write text: raw text, and expressions, divided at ``+``
and ``~`` where that changes nothing. Each piece writes marks of its own around what it writes; so a rendering of eight
conversations tells for each piece whether all it writes is the model's, nothing is, or a part. A literal of which a
part is the model's is divided there; an expression that writes for several roles is marked for the assistant alone.
What is the model's, the loss mask of `Chat.encode` says. What a macro or a ``set`` block writes is marked where it
comes out, because trainers cannot mark it inside. The result is believed only if it writes the same text and its
regions are exactly those of the mask.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

from ..chat.chat import Chat
from ..errors import ChatParsersError
from .subject import CLOCK, Messages, Subject, conversations, sampled, with_source

Span = tuple[int, int]
_BEGIN, _END = "\U000f0000", "\U000f0001"
_FIRST, _BITS = 0xF0010, 0xF8000
_TAG = re.compile(r"\{%([-+]?)\s*(end)?generation\s*([-+]?)%\}")
_STRING = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_PIECE = re.compile(
    rf"\{{#.*?#\}}|\{{%(?:{_STRING}|[^'\"])*?%\}}|\{{\{{(?P<left>[-+]?)(?P<body>(?:{_STRING}|[^'\"])*?)"
    rf"(?P<right>[-+]?)\}}\}}",
    re.DOTALL,
)
_LOOP = re.compile(r"\{%[-+]?\s*for\s+(\w+)\b")
_ENDFOR = re.compile(r"\{%[-+]?\s*endfor\b")
_BLOCK = re.compile(r"\{%[-+]?\s*(?P<end>end)?(?P<name>macro|set|filter|call)\b")
_TOKEN = re.compile(rf"{_STRING}|[()\[\]{{}}]|[~+]|\b(?:if|else|and|or|not|in|is)\b|[<>=!,|]")
_WHERE = (
    "{v}['role'] == 'assistant'",
    "{v}['role'] == 'assistant' and {v}['content']",
    "{v}['role'] == 'assistant' and ({v}['content'] or not loop.first)",
    "{v}['role'] == 'assistant' and not {v}['reasoning_content']",
)
"""Conditions under which all that a piece writes may be the model's; ``v``: the message of the loop."""
_ROUNDS = 5
"""How often pieces are divided."""
_LITERAL = re.compile(rf"\s*(?:{_STRING})\s*")


def tagged(source: str) -> bool:
    """Whether a template has generation tags."""
    return {match[2] for match in _TAG.finditer(source)} == {None, "end"}


def loud(model: Subject) -> Subject:
    """The model with a template that writes marks where its generation tags begin and end."""

    def spelt(match: re.Match[str]) -> str:
        left, end, right = match.groups()
        if end:
            return f"{{%{left} endif %}}{{{{ '{_END}' }}}}{{% endgeneration {right}%}}"
        return f"{{%{left} generation %}}{{{{ '{_BEGIN}' }}}}{{% if true {right}%}}"

    return _with(model, _TAG.sub(spelt, model.template.source))


def marked(loud_model: Subject, messages: Messages) -> tuple[str, list[Span]]:
    """The rendering of a conversation, and the regions that the tags mark, those that touch as one. ``loud_model``: as
    `loud` makes it."""
    text: list[str] = []
    at = begun = 0
    regions: list[Span] = []
    for letter in _written(loud_model, messages):
        if letter == _BEGIN:
            begun = at
        elif letter == _END:
            regions.append((begun, at))
        else:
            text.append(letter)
            at += 1
    return "".join(text), _joined(regions)


def spans_of(model: Subject, messages: Messages) -> list[Span]:
    """What a loss counts of a conversation, in characters. Answers that the template rewrote are counted too: the tags
    cannot leave them out."""
    mask = sampled(model.bare, messages, rewritten=True, final_stop=False).loss_mask
    borders = [
        at
        for at in range(len(mask) + 1)
        if (mask[at - 1] if at else 0) != (mask[at] if at < len(mask) else 0)
    ]
    return list(zip(borders[::2], borders[1::2], strict=True))


def _joined(regions: Sequence[Span]) -> list[Span]:
    found: list[Span] = []
    for start, end in sorted(regions):
        if start == end:
            continue
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found


def _with(model: Subject, source: str) -> Subject:
    """The same model with another template."""
    return Subject(with_source(model.chat, source, model.chat.format))


def _written(model: Subject, messages: Messages) -> str:
    """A conversation as `Chat.encode` renders it."""
    turn = model.chat.prepare(
        messages, tools=model.offered, add_generation_prompt=False, template_kwargs={"strftime_now": CLOCK}
    )
    return turn.prompt


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of a template's source. ``text``: raw text; ``body``: an expression; neither: what writes nothing.
    ``variable``: the message of the loop that contains it."""

    source: str
    text: str = ""
    body: str = ""
    left: str = ""
    right: str = ""
    variable: str = ""
    tag: str = ""

    @property
    def writes(self) -> bool:
        return bool(self.text or self.body)

    def spelt(self) -> str:
        """The piece in the source. It cannot be trimmed, so raw text is an expression."""
        body = _quoted(self.text) if self.text else self.body
        return f"{{{{{self.left} {body.strip()} {self.right}}}}}"


def _around(before: str, inner: str, after: str, left: str, right: str) -> str:
    """What is between two blocks, which trim what the piece trims."""
    opened = before.replace("%", f"%{left or '+'}", 1)
    return f"{opened}{inner}{after[:-2]}{right or '+'}%}}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\t", "\\t")
    return f"'{escaped}'"


def with_tags(chat: Chat) -> str | None:
    """The template's source with generation tags around what the model writes; None if that cannot be proved."""
    template = chat.template()
    if not chat.files.templates or not template.variables:
        return None
    source = _TAG.sub("", template.source)
    model = Subject(with_source(chat, source, chat.format)).bare
    try:
        talks = [(messages, spans_of(model, messages)) for _, messages in conversations(model)]
        texts = [_written(model, messages) for messages, _ in talks]
        pieces = _pieces(source)
        for _ in range(_ROUNDS):
            pieces, divided = _judged(model, pieces, talks, texts)
            if not divided:
                break
        made = _joined_source(pieces)
        fixed = loud(_with(model, made))
        for (messages, spans), text in zip(talks, texts, strict=True):
            if marked(fixed, messages) != (text, spans):
                return None
    except (ChatParsersError, ValueError):
        return None
    return made if tagged(made) else None


def _pieces(source: str) -> list[_Piece]:
    """The source in pieces. What a macro or a ``set`` block holds writes nothing by itself."""
    found: list[_Piece] = []
    loops: list[str] = []
    at, captured = 0, 0
    for match in _PIECE.finditer(source):
        block = _BLOCK.match(match[0])
        variable = next((name for name in loops if name), "")
        found += _raw(source, at, match.start(), variable, captured > 0)
        loop = _LOOP.match(match[0])
        if loop is not None:
            role = rf"\b{loop[1]}(?:\.role\b|\[['\"]role['\"]\])"
            loops.append(loop[1] if re.search(role, source) else "")
        elif loops and _ENDFOR.match(match[0]):
            loops.pop()
        if block is not None and (block["end"] or block["name"] != "set" or "=" not in match[0]):
            captured += -1 if block["end"] else 1
        if match["body"] is None or captured:
            found.append(_Piece(match[0]))
        else:
            found.append(_Piece(match[0], "", match["body"], match["left"], match["right"], variable))
        at = match.end()
    return [*found, *_raw(source, at, len(source), "", captured > 0)]


def _raw(source: str, start: int, end: int, variable: str, captured: bool) -> Iterator[_Piece]:
    """Raw text between two tags; as ``text``, without what they trim."""
    text, before, after = source[start:end], source[:start], source[end:]
    begins = not before or before.endswith("\n")  # whether the text begins a line
    if before.endswith(("-%}", "-}}", "-#}")):
        text = text.lstrip()
    elif before.endswith(("%}", "#}")) and not before.endswith("+%}"):
        begins, text = text.startswith("\n"), text.removeprefix("\n")
    if after.startswith(("{%-", "{{-", "{#-")):
        text = text.rstrip()
    elif after.startswith(("{%", "{#")) and not after.startswith("{%+"):
        line = text.rpartition("\n")
        if not line[2].strip() and (line[1] or begins):
            text = line[0] + line[1]
    if not after:
        text = text.removesuffix("\n")
    if start < end:
        yield _Piece(source[start:end], "" if captured else text, variable=variable)


def _parts(piece: _Piece) -> list[_Piece]:
    """An expression in parts at its outer ``+`` and ``~``; itself alone if an operator there binds more loosely."""
    depth, cuts = 0, []
    for token in _TOKEN.finditer(piece.body):
        if token[0] in "([{":
            depth += 1
        elif token[0] in ")]}":
            depth -= 1
        elif depth == 0 and token[0] in "~+":
            cuts.append(token.start())
        elif depth == 0 and token[0] != "|" and token[0][0] not in "'\"":
            return [piece]
    borders = [-1, *cuts, len(piece.body)]
    made = []
    for number, (start, end) in enumerate(pairwise(borders)):
        part = piece.body[start + 1 : end]
        text = _text_of(part)
        if "+" in (piece.body[start : start + 1], piece.body[end : end + 1]):
            part = f"{part.strip()} + ''"  # what is no text is refused, as before
        left = "" if number else piece.left
        right = piece.right if end == len(piece.body) else ""
        made.append(_spelt("" if text is None else text, part, left, right, piece.variable))
    return made


def _spelt(text: str, body: str, left: str, right: str, variable: str) -> _Piece:
    piece = _Piece("", text, "" if text else body, left, right, variable)
    return replace(piece, source=piece.spelt())


def _text_of(part: str) -> str | None:
    """The text of a string literal that has no escapes but for line ends, tabs and quotes."""
    if not _LITERAL.fullmatch(part):
        return None
    inner = part.strip()[1:-1]
    if re.search(r"\\[^nt'\"\\]", inner):
        return None
    escapes = {"\\n": "\n", "\\t": "\t", "\\'": "'", '\\"': '"', "\\\\": "\\"}
    return re.sub(r"\\.", lambda escape: escapes[escape[0]], inner)


def _judged(
    model: Subject, pieces: list[_Piece], talks: Sequence[tuple[Messages, list[Span]]], texts: Sequence[str]
) -> tuple[list[_Piece], bool]:
    """The pieces with what each is (`_Piece.tag`), and whether some were divided and must be judged anew."""
    shown = "".join(
        _around(
            f"{{% if true %}}{{{{ '{chr(_FIRST + 2 * number)}' }}}}{_holds(piece.variable)}",
            replace(piece, left="", right="").spelt(),
            f"{{{{ '{chr(_FIRST + 2 * number + 1)}' }}}}{{% endif %}}",
            piece.left,
            piece.right,
        )
        if piece.writes
        else piece.source
        for number, piece in enumerate(pieces)
    )
    marking = _with(model, shown)
    seen: dict[int, list[tuple[int, list[bool]]]] = {}
    for (messages, spans), text in zip(talks, texts, strict=True):
        own = [any(start <= at < end for start, end in spans) for at in range(len(text))]
        at = bits = last = 0
        open_at: dict[int, tuple[int, int]] = {}
        for letter in _written(marking, messages):
            number = ord(letter) - _FIRST
            if number < 0:
                at += 1
            elif number >= _BITS - _FIRST:
                bits = ord(letter) - _BITS
                open_at[last] = open_at[last][0], bits
            elif number % 2 == 0:
                last = number // 2
                open_at[last] = at, 0
            else:
                begun, bits = open_at.pop(number // 2)
                seen.setdefault(number // 2, []).append((bits, own[begun:at]))
        if at != len(text):
            raise ValueError("the marks change what the template writes")
    judged: list[_Piece] = []
    for number, piece in enumerate(pieces):
        judged += _tagged(piece, [(bits, mine) for bits, mine in seen.get(number, ()) if mine])
    return judged, len(judged) > len(pieces)


def _holds(variable: str) -> str:
    """Writes a sign that says which of the conditions hold."""
    if not variable:
        return ""
    signs = "".join(chr(_BITS + number) for number in range(2 ** len(_WHERE)))
    number = " + ".join(f"({2**n} if {where.format(v=variable)} else 0)" for n, where in enumerate(_WHERE))
    return f"{{{{ '{signs}'[{number}] }}}}"


def _tagged(piece: _Piece, written: list[tuple[int, list[bool]]]) -> list[_Piece]:
    """The piece with its tag, or its parts. ``written``: each time that it wrote, which of the conditions held, and
    which letters are the model's."""
    flags = [mine for _, mine in written]
    if not any(map(any, flags)):
        return [replace(piece, tag="")]
    if all(map(all, flags)):
        return [replace(piece, tag="always")]
    if all(all(mine) or not any(mine) for mine in flags) and piece.variable:
        for number, where in enumerate(_WHERE):
            if all(bool(bits >> number & 1) == all(mine) for bits, mine in written):
                return [replace(piece, tag=where.format(v=piece.variable))]
    if piece.body and len(parts := _parts(piece)) > 1:
        return parts
    borders = {_border(mine) for mine in flags if len(set(mine)) == 2}
    if len(borders) != 1:
        raise ValueError("a piece writes both the model's text and other text")
    cut, whole = borders.pop(), f"({piece.body.strip()})"
    return [
        _spelt(piece.text[:cut], f"{whole}[:{cut}]", piece.left, "", piece.variable),
        _spelt(piece.text[cut:], f"{whole}[{cut}:]", "", piece.right, piece.variable),
    ]


def _border(flags: Sequence[bool]) -> int:
    return next(at for at in range(1, len(flags)) if flags[at] != flags[at - 1])


def _joined_source(pieces: Sequence[_Piece]) -> str:
    """The source with tags; neighbours of one tag share it."""
    made = []
    for tag, run in groupby(pieces, key=lambda piece: piece.tag):
        group = list(run)
        if not tag:
            made += [piece.source for piece in group]
            continue
        inner = "".join(replace(piece, left="", right="").spelt() for piece in group)
        before, after = "{% generation %}", "{% endgeneration %}"
        if tag != "always":
            before = f"{{% if {tag} %}}{before}"
            after = f"{after}{{% else %}}{inner}{{% endif %}}"
        made.append(_around(before, inner, after, group[0].left, group[-1].right))
    # A plus keeps white space that would be trimmed; elsewhere it is only harder to read.
    source = re.sub(r"(end(?:generation|if)) \+%\}(?!\n(?!\s*\{[%{]-))", r"\1 %}", "".join(made))
    return re.sub(r"([^\s])\{%\+ (generation|if)", r"\1{% \2", source)
