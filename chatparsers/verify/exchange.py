"""One request with its answer, and what we read in the raw text of it: what every check judges."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..answers.format import Turn
from ..kept import cached
from ..streams.message import Message
from .answer import Answer
from .apis import Api
from .client import Response
from .forced import whole_calls
from .literal import literal
from .probes import Probe, thinking
from .raw import Raw
from .rows import Blame, Row, parting
from .subject import Subject
from .written import open_call, well_formed, without_stop


@dataclass
class Exchange:
    """A request, its answer, and how it is to be read. ``said`` is None if there was no answer."""

    probe: Probe
    api: Api
    stream: bool
    body: dict[str, Any]
    response: Response
    said: Answer | None
    raw: Raw
    subject: Subject
    turn: Turn
    path: str = ""
    """Where the request went, if that is not the API's own address."""
    sane: bool = field(default=False)
    """Whether the model answers as it is asked. What a weak or random one writes has other tokens than its text."""

    @property
    def name(self) -> str:
        return f"{self.probe.name}/stream" if self.stream else self.probe.name

    @property
    def answer(self) -> Answer:
        """The answer, where there is one."""
        assert self.said is not None
        return self.said

    @property
    def most(self) -> int | None:
        """The most tokens that the request allows."""
        found = self.body.get("max_tokens", self.body.get("max_output_tokens"))
        return found if type(found) is int else None

    @property
    def full(self) -> bool:
        """Whether the answer has as many tokens as the request allows."""
        paid = None if self.said is None else self.said.completion
        return paid is not None and self.most is not None and paid >= self.most

    @property
    def cut(self) -> bool:
        """Whether the answer ended at the most tokens, by its finish reason or by its count."""
        return self.said is not None and (self.said.finish == "length" or self.full)

    @cached
    def reading(self) -> Message | None:
        """What we read in the raw text; None if there is none."""
        found = self.subject.read(self.turn, self.raw) if self.said is not None else None
        if found is None or self.text is None:
            return found
        text = without_stop(self.turn, self.text)
        return literal(self.turn, found, text, self.subject.markers, cut=self.cut) or found

    @cached
    def text(self) -> str | None:
        """The raw text, if it is known."""
        if self.raw.ids is not None:
            return self.subject.decoded(self.raw.ids)
        return self.raw.text

    @property
    def broken(self) -> bool:
        """Whether the model's own text is broken, so that no server could read it rightly. What its format's writer
        writes is not, whatever is in the values."""
        reading = self.reading
        if reading is None or self.canonical:
            return False
        if reading.reasoning and self.unthinking:
            return True  # it thinks all the same
        benign = {"unwanted-call", "truncated"} if self.cut else {"unwanted-call"}
        told = any(each.code not in benign for each in reading.diagnostics)
        return told or (not self.cut and any(not call.complete for call in reading.tool_calls))

    @property
    def unthinking(self) -> bool:
        """Whether the request turned thinking off."""
        switch = self.probe.body.get("chat_template_kwargs")
        return bool(switch) and switch == thinking(self.subject.chat, False)

    @property
    def blame(self) -> Blame:
        """Whose fault a difference from our reading is."""
        if self.reading is None:
            return "unknown"
        return "model" if self.broken else self.proof

    @property
    def call_blame(self) -> Blame:
        """Whose fault a difference of calls is. Names that no tool has, where a call is forced, are the server's."""
        told = [] if self.reading is None else self.reading.diagnostics
        unknown = self.probe.forced and any(each.code == "unknown-tool" for each in told)
        return self.proof if unknown else self.blame

    @property
    def proof(self) -> Blame:
        """How much the raw text proves against the server, where it is not broken."""
        return "likely" if self.raw.source == "paired" else "server"

    @property
    def text_blame(self) -> Blame:
        """Whose fault a difference of texts is. It is proved where the raw text is what its format's writer writes: a
        marker that is elsewhere, or twice, has no right place in an answer."""
        return self.blame if self.canonical or self.blame == "unknown" else "model"

    @property
    def opened(self) -> str:
        """The text of the call in which an answer was cut off; "" if it was cut elsewhere, or not at all."""
        return open_call(self.reading, self.text or "") if self.cut and self.reading is not None else ""

    @cached
    def forced_calls(self) -> int | None:
        """How many whole calls there are in a form of the server's own that it forced; None if that is the format's."""
        if not self.probe.forced or self.text is None or self.canonical:
            return None
        return whole_calls(self.text)

    @property
    def shown_blame(self) -> Blame:
        """Whose fault markup in an answer is where no raw text is known: the server's, if the model answers as it is
        asked and the request holds no marker that it may quote."""
        quoted = any(marker in str(self.probe.body) for marker in self.subject.markers)
        return "server" if self.sane and not quoted else "unknown"

    @cached
    def canonical(self) -> bool:
        """Whether the raw text is what its format's writer writes for this message."""
        reading, text = self.reading, self.text
        if reading is None or text is None or (reading.reasoning and self.unthinking):
            return False
        return well_formed(self.turn, reading, text, self.subject.markers, cut=self.cut)

    def row(
        self,
        code: str,
        what: str,
        said: Any = None,
        should: Any = None,
        *,
        blame: Blame = "server",
    ) -> Row:
        """A row about this exchange."""
        return Row(
            code,
            blame,
            self.name,
            what,
            self.api.name,
            said,
            should,
            at=parting(code, said, should),
            raw=self.text,
            request=self.body,
            id=None if self.said is None else self.said.id,
            private=self.probe.private,
            path=self.path or self.api.path,
            reading=self.reading,
        )
