"""The nodes of a format's tree. They are immutable, and each has two readings.

The *parser* (core/parser/compile.py) reads a tree once per format and option. It looks tools up while it runs, so
for it a tool's name is "characters up to the next marker". The *grammar* (chatparsers.grammar) reads the same tree once
per tool: names become literals, arguments become the rules of their schema. Each docstring gives both readings, as
``parses`` and ``generates``. If they differ, the parser accepts more.

Nodes are made with the builder (core/definition/builder.py); strings stand for literals in every operator.
"""

from __future__ import annotations

from .call import Args as Args
from .call import Calls as Calls
from .call import Declared as Declared
from .call import EachArg as EachArg
from .call import EachTool as EachTool
from .call import Header as Header
from .call import Implied as Implied
from .call import JsonName as JsonName
from .call import JsonText as JsonText
from .call import JsonValue as JsonValue
from .call import Name as Name
from .call import SameName as SameName
from .call import Value as Value
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
from .turn import Body as Body
from .turn import Span as Span
from .turn import Think as Think
