"""The nodes of a format's tree. They are immutable, and each has two readings.

The *parser* (parser/compile.py) reads a tree once per format and option. It looks tools up while it runs, so
for it a tool's name is "characters up to the next marker". The *grammar* (chatparsers.grammar) reads the same tree once
per tool: names become literals, arguments become the rules of their schema. Each docstring gives both readings, as
``parses`` and ``generates``. If they differ, the parser accepts more.

Nodes are made with the builder (core/builder.py); strings stand for literals in every operator.
"""

from __future__ import annotations

from functools import partial

from ...core.nodes import node as _node
from ...core.nodes.control import Atomic as Atomic
from ...core.nodes.control import Cut as Cut
from ...core.nodes.control import Lenient as Lenient
from ...core.nodes.control import Many as Many
from ...core.nodes.control import Not as Not
from ...core.nodes.control import Peek as Peek
from ...core.nodes.control import Ref as Ref
from ...core.nodes.control import Rule as Rule
from ...core.nodes.control import Tag as Tag
from ...core.nodes.control import Tagged as Tagged
from ...core.nodes.node import Choice as Choice
from ...core.nodes.node import Inner as Inner
from ...core.nodes.node import Leaf as Leaf
from ...core.nodes.node import Literal as Literal
from ...core.nodes.node import Node as Node
from ...core.nodes.node import Nodelike as Nodelike
from ...core.nodes.node import Reader as Reader
from ...core.nodes.node import Sequence as Sequence
from ...core.nodes.node import Space as Space
from ...core.nodes.node import Token as Token
from ...core.nodes.node import as_node as as_node
from ...core.nodes.text import AnyChar as AnyChar
from ...core.nodes.text import Chars as Chars
from ...core.nodes.text import End as End
from ...core.nodes.text import LineStart as LineStart
from ...core.nodes.text import Until as Until
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
from .turn import Body as Body
from .turn import Span as Span
from .turn import Think as Think

_PACKAGES = (_node.OWN, __name__ + ".")
kinds = partial(_node.kinds, _PACKAGES)
of_every_kind = partial(_node.of_every_kind, packages=_PACKAGES)
