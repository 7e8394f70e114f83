"""The nodes of the language. They are immutable, and each has two readings: one parses, one generates.

Each docstring gives both, as ``parses`` and ``generates``. If they differ, the parser accepts more. Strings stand for
literals in every operator.
"""

from __future__ import annotations

from .control import Atomic as Atomic
from .control import Cut as Cut
from .control import Lenient as Lenient
from .control import Many as Many
from .control import Not as Not
from .control import Peek as Peek
from .control import Ref as Ref
from .control import Rule as Rule
from .control import Tag as Tag
from .control import Tagged as Tagged
from .node import Choice as Choice
from .node import Inner as Inner
from .node import Leaf as Leaf
from .node import Literal as Literal
from .node import Node as Node
from .node import Nodelike as Nodelike
from .node import Reader as Reader
from .node import Sequence as Sequence
from .node import Space as Space
from .node import Token as Token
from .node import as_node as as_node
from .node import kinds as kinds
from .node import of_every_kind as of_every_kind
from .text import AnyChar as AnyChar
from .text import Chars as Chars
from .text import End as End
from .text import LineStart as LineStart
from .text import Until as Until
