"""What the grammar makes of each keyword: one rule for each row of `schema.keywords` that constrains a value.

``gathers`` adds the keyword to the bag of constraints of one value, which is then written by type. ``judges`` tells
whether a given value satisfies it. ``unsaid`` says why no grammar can enforce it. A keyword without a judge is reported
wherever values are listed, and one that is neither gathered nor said why is no rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import ge, gt, le, lt

from ...schema.keywords import ANYTHING, KEYWORDS, Keyword
from ..regular.string_formats import ENCODINGS, FORMATS
from . import constraints as c
from . import verdicts as v
from .constraints import Gather
from .verdicts import Judged


@dataclass(frozen=True, slots=True)
class Rule:
    """What the grammar makes of a keyword.

    ``jointly``: keywords with the same ``gathers`` are gathered together, once for their schema. ``late``: it is
    gathered after all other keywords of all schemas of the value.
    """

    name: str
    gathers: Gather | None = None
    judges: Judged | None = None
    unsaid: str = ""
    jointly: bool = False
    late: bool = False

    @property
    def row(self) -> Keyword:
        return KEYWORDS[self.name]


_CONTAINS = "a grammar cannot count the items that satisfy a schema"
_ITEMS = "a grammar cannot know which items another keyword has judged"
_INSIDE = "the inside of a string is not parsed"

_RULES = (
    # of every type
    Rule("type", c.on_type, v.kind),
    Rule("enum", c.on_values, v.among),
    Rule("const", c.on_const, v.constant),
    # several schemas of one value: gather.py finds them
    Rule("$ref", None, v.reference("$ref")),
    Rule("$dynamicRef", None, v.reference("$dynamicRef")),
    Rule("$recursiveRef", None, v.reference("$recursiveRef")),
    Rule("allOf", None, v.all_of),
    Rule("anyOf", None, v.any_of),
    Rule("oneOf", None, v.one_of),
    Rule("not", c.on_not, v.none_of, late=True),
    Rule("if", c.on_condition, v.condition),
    # strings
    Rule("minLength", c.count("minLength", "least", True), v.sized(True)),
    Rule("maxLength", c.count("maxLength", "most", False), v.sized(False)),
    Rule("pattern", c.on_pattern, v.pattern),
    Rule("format", c.named("format", FORMATS), v.named("format", FORMATS)),
    Rule("contentEncoding", c.named("contentEncoding", ENCODINGS), v.named("contentEncoding", ENCODINGS)),
    Rule("contentMediaType", c.on_media_type, v.media_type),
    Rule("contentSchema", unsaid=_INSIDE),
    # numbers
    Rule("minimum", c.bound("minimum", True, False), v.compared(ge)),
    Rule("maximum", c.bound("maximum", False, False), v.compared(le)),
    Rule("exclusiveMinimum", c.bound("exclusiveMinimum", True, True), v.strictly("minimum", gt)),
    Rule("exclusiveMaximum", c.bound("exclusiveMaximum", False, True), v.strictly("maximum", lt)),
    Rule("multipleOf", c.on_multiple, v.divided),
    # arrays
    Rule("items", c.on_items, v.items, jointly=True),
    Rule("prefixItems", c.on_items, v.prefix, jointly=True),
    Rule("minItems", c.count("minItems", "least_items", True), v.sized(True)),
    Rule("maxItems", c.count("maxItems", "most_items", False), v.sized(False)),
    Rule("uniqueItems", c.on_unique, v.unique),
    Rule("contains", None, v.contains, unsaid=_CONTAINS),
    Rule("unevaluatedItems", unsaid=_ITEMS),
    # objects
    Rule("properties", c.on_members, v.properties, jointly=True),
    Rule("patternProperties", c.on_members, v.patterns, jointly=True),
    Rule("additionalProperties", c.on_members, v.others, jointly=True),
    Rule("required", c.on_required, v.required),
    Rule("propertyNames", c.on_names, v.property_names),
    Rule("minProperties", c.count("minProperties", "least_members", True), v.sized(True)),
    Rule("maxProperties", c.count("maxProperties", "most_members", False), v.sized(False)),
    Rule("dependentRequired", c.dependent("dependentRequired"), v.dependent),
    Rule("dependentSchemas", c.on_dependent_schemas, v.dependent),
    Rule("dependencies", c.dependent("dependencies"), v.dependent),
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
