"""JSON Schema to grammar nodes, in any value syntax.

Strategy: a schema (or several that must all hold) becomes a short list of cases; a value must satisfy one of them. A
case (cases.py) gathers all keywords that apply to one value: ``allOf`` and ``$ref`` join it, ``anyOf`` and ``oneOf``
multiply the cases (judge.py). Each keyword has one rule (keywords.py): how it is gathered, or why no grammar enforces
it. The compiler (compiler.py) writes a case type by type (scalars.py; raw_text.py). Listed values
are judged by their case and written as they are (judge.py). Members and items stay schemas until their turn comes, so
recursion ends: a value that is met again inside itself becomes a rule (written.py). A keyword that a grammar cannot say
is left out, which admits more, and reported. By the same cases the arguments of a call are judged while they are
written (checked.py). What the compilers of one grammar share is an `Output`.

Objects are closed by default: if a schema names properties and is silent about others, no others are generated.
Numbers are written as JSON writes them, an integer without a fraction.
"""

from __future__ import annotations

from .cases import Located, Weakened
from .compiler import TWICE, Form, SchemaCompiler
from .written import Equal, Output, content

__all__ = ["TWICE", "Equal", "Form", "Located", "Output", "SchemaCompiler", "Weakened", "content"]
