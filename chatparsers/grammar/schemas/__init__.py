"""JSON Schema to grammar nodes, in any value syntax.

Strategy: a schema (or several that must all hold) becomes a short list of bags; a value must satisfy one of them. A bag
gathers all keywords that apply to one value: ``allOf`` and ``$ref`` join it, ``anyOf`` and ``oneOf`` multiply the bags
(gather.py). Each keyword has one rule (keywords.py): how it is gathered (constraints.py), or why no grammar enforces
it. The compiler (compiler.py) writes a bag type by type: strings.py,
numbers.py, arrays.py, objects.py (with names.py for the members that no schema lists). Listed values are judged by
their bag instead (judge.py, listing.py). Members and items stay schemas until their turn comes, so recursion ends: a
value is known by the identities of the schemas that apply to it, and a value met again inside itself becomes a rule
(written.py). Equal schemas of several tools are written once (equal.py). A keyword that a grammar cannot say is left
out, which admits more, and reported. What the compilers of one grammar share is an `Output`.

Objects are closed by default: if a schema names properties and is silent about others, no others are generated.
Numbers are written as JSON writes them, an integer without a fraction.
"""

from __future__ import annotations

from .bags import Weakened, Where
from .compiler import SchemaCompiler
from .equal import Equal, content
from .form import Form
from .output import Output

__all__ = ["Equal", "Form", "Output", "SchemaCompiler", "Weakened", "Where", "content"]
