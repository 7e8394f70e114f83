"""What the grammar makes of each keyword: one rule for each row of `schema.keywords` that constrains a value.

``gathers`` adds the keyword to the bag of constraints of one value. From the bag, values are written by type, and given
values are judged. ``unsaid`` says why no grammar can enforce it. A keyword that is neither gathered nor said why is no
rule.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...schema.keywords import ANYTHING, KEYWORDS, Keyword
from ..regular.string_formats import ENCODINGS, FORMATS
from . import constraints as c
from .constraints import Gather


@dataclass(frozen=True, slots=True)
class Rule:
    """What the grammar makes of a keyword.

    ``jointly``: keywords with the same ``gathers`` are gathered together, once for their schema. ``late``: it is
    gathered after all other keywords of all schemas of the value.
    """

    name: str
    gathers: Gather | None = None
    unsaid: str = ""
    jointly: bool = False
    late: bool = False

    @property
    def row(self) -> Keyword:
        return KEYWORDS[self.name]


_ITEMS = "a grammar cannot know which items another keyword has judged"
_INSIDE = "the inside of a string is not parsed"

_RULES = (
    # of every type
    Rule("type", c.on_type),
    Rule("enum", c.on_values),
    Rule("const", c.on_const),
    # several schemas of one value: gather.py finds them
    Rule("$ref"),
    Rule("$dynamicRef"),
    Rule("$recursiveRef"),
    Rule("allOf"),
    Rule("anyOf"),
    Rule("oneOf"),
    Rule("not", c.on_not, late=True),
    Rule("if", c.on_condition),
    # strings
    Rule("minLength", c.count("minLength", "least", True)),
    Rule("maxLength", c.count("maxLength", "most", False)),
    Rule("pattern", c.on_pattern),
    Rule("format", c.named("format", FORMATS)),
    Rule("contentEncoding", c.named("contentEncoding", ENCODINGS)),
    Rule("contentMediaType", c.on_media_type),
    Rule("contentSchema", unsaid=_INSIDE),
    # numbers
    Rule("minimum", c.bound("minimum", True, False)),
    Rule("maximum", c.bound("maximum", False, False)),
    Rule("exclusiveMinimum", c.bound("exclusiveMinimum", True, True)),
    Rule("exclusiveMaximum", c.bound("exclusiveMaximum", False, True)),
    Rule("multipleOf", c.on_multiple),
    # arrays
    Rule("items", c.on_items, jointly=True),
    Rule("prefixItems", c.on_items, jointly=True),
    Rule("minItems", c.count("minItems", "least_items", True)),
    Rule("maxItems", c.count("maxItems", "most_items", False)),
    Rule("uniqueItems", c.on_unique),
    Rule("contains", c.on_contains),
    Rule("unevaluatedItems", unsaid=_ITEMS),
    # objects
    Rule("properties", c.on_members, jointly=True),
    Rule("patternProperties", c.on_members, jointly=True),
    Rule("additionalProperties", c.on_members, jointly=True),
    Rule("required", c.on_required),
    Rule("propertyNames", c.on_names),
    Rule("minProperties", c.count("minProperties", "least_members", True)),
    Rule("maxProperties", c.count("maxProperties", "most_members", False)),
    Rule("dependentRequired", c.dependent("dependentRequired")),
    Rule("dependentSchemas", c.on_dependent_schemas),
    Rule("dependencies", c.dependent("dependencies")),
    Rule("unevaluatedProperties", c.on_unevaluated_members),
)

RULES = {rule.name: rule for rule in _RULES}
"""The rules, by name."""

_WANTED = {row.name for row in KEYWORDS.values() if row.silent is None and not row.beside}
if RULES.keys() != _WANTED:
    raise ImportError(f"keywords with a row or a rule alone: {', '.join(sorted(RULES.keys() ^ _WANTED))}")
for _rule in _RULES:
    if not (_rule.gathers or _rule.unsaid or _rule.row.same in ("all", "one")):
        raise ImportError(f"the keyword {_rule.name!r} is neither gathered nor said why it is not")

SPEAKING = frozenset(rule.name for rule in _RULES if rule.gathers or rule.unsaid)
"""The keywords that constrain a value by themselves. A schema without any of them adds nothing to a bag."""


def types_of(keyword: str) -> frozenset[str]:
    """The types of values of which a keyword speaks; all if it is no keyword of JSON Schema."""
    row = KEYWORDS.get(keyword)
    return ANYTHING if row is None else row.types
