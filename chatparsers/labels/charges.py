"""What can be wrong with a batch, each with a code that does not change."""

# No "annotations" import here: `typing.get_type_hints` looks names up in the module that users see, and finds none.
from dataclasses import dataclass

from ..plain import one_line
from ..public import public

ALONE = {
    "nothing-counted": "no id of the row counts",
    "header-counted": "the template's own text counts",
    "after-stop-counted": "text after an answer's stop counts: no model has to write it",
    "user-counted": "a user's or a system text counts",
    "result-counted": "a tool's result counts",
    "empty-thought-counted": "an empty thought counts that the template writes for no thought",
    "opener-not-counted": "what the model must write first, or between its words, does not count",
    "call-not-counted": "a call does not count, though its answer does",
    "stop-not-counted": "words count, and the stop after them does not",
    "stop-missing": "a header follows an answer that has no stop",
    "words-end-mask": "the mask ends within an answer's words",
    "cut": "the row ends within an answer",
    "arguments-twice": "the arguments of a call are a JSON text in a JSON text",
    "prompt-never-seen": "the text between two messages is in no prompt of the template",
    "label-differs": "a label is another id than the row has there",
}
"""What the ids and labels alone show."""
BESIDE = {
    "thought-lost": "an answer counts without the row's thought",
    "text-lost": "a text of the row is not there",
    "call-lost": "a call of the row is not there as it was",
    "result-elsewhere": "results are others, in another order, or of another call",
    "text-added": "there is text that no message of the row has",
    "tools-lost": "the row's tools are not shown",
    "row-lost": "the batch has nothing of a row",
    "weight-ignored": "an answer of weight 0 counts",
    "words-are-markers": "words of a message that spell a marker have become that marker",
}
"""What they show beside the messages that they were made from."""
CODES = {**ALONE, **BESIDE}


@public
@dataclass(frozen=True, slots=True)
class Charge:
    """What is wrong with the labels of a conversation. ``code`` does not change between releases; docs/labels.md has a
    line for each. ``place``: the first id. ``says``: what was found. ``witness``: the text around the place, in which
    what counts stands in ``⟦ ⟧``."""

    code: str
    place: int
    says: str
    witness: str = ""

    def __str__(self) -> str:
        return one_line(f"{self.code}: {self.says}")
