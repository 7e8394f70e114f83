"""jinja2's sandbox, compiled so that a template pays from its account before each large operation.

`limits` says what is paid for and why. This module says at which places:

- The compiler writes a payment at the head of each body that may run again (`Compiler.blockvisit`), by the weight of
  the body, and lets the account do the operators, comparisons, slices and the output.
- `Sandbox.call` pays for methods of texts, lists and the like; `guards` has the filters, tests and functions.
- While a template is compiled, a constant is not computed if the result may be larger than its source.

This module imports jinja2, so it is imported when the first template is compiled.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from functools import partial
from types import BuiltinMethodType, MethodType
from typing import Any, NoReturn

from jinja2 import TemplateError, TemplateSyntaxError, nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension, LoopControlExtension
from jinja2.lexer import Token, TokenStream
from jinja2.parser import Parser
from jinja2.runtime import Context, LoopContext, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment, modifies_known_mutable
from jinja2.utils import Namespace

from .guards import FILTERS, GLOBALS, REFUSED, TESTS, formatted, method
from .limits import current
from .traced import Traced

_LIST_METHODS = frozenset({"append", "pop"})
_DICT_NAMES = frozenset(dir(dict))
# What the sandbox lets every template have of these types: all but private names, what changes an object, what it
# refuses, and `format`.
_EMPTY: tuple[object, ...] = ("", [], {}, (), 0, 0.0)
_SAFE = {
    (type(made), name)
    for made in _EMPTY
    for name in dir(made)
    if not (name.startswith(("_", "format")) or name in REFUSED or modifies_known_mutable(made, name))
}
_SAFE |= {(LoopContext, name) for name in dir(LoopContext) if not name.startswith("_")}
_SAFE |= {(Traced, name) for kind, name in _SAFE if kind is str}
_LONG = 1000

# The cost of a node without its parts: a unit for 50 ns, and for 4 bytes that it may leave in memory.
_WEIGHTS: dict[type[nodes.Node], int] = {
    nodes.Const: 0,
    nodes.TemplateData: 0,
    nodes.Name: 1,
    nodes.Getattr: 8,
    nodes.Getitem: 8,
    nodes.Slice: 4,
    nodes.List: 16,
    nodes.Tuple: 16,
    nodes.Dict: 64,
    nodes.Pair: 25,
    nodes.Call: 30,
    nodes.Filter: 60,
    nodes.Test: 8,
    nodes.For: 100,
    nodes.Macro: 200,
    nodes.CallBlock: 200,
    nodes.Block: 60,
    nodes.FilterBlock: 60,
    nodes.AssignBlock: 30,
}
VARIABLES = "variables"
"""The name under which a template's code has the variables that it reads and does not set."""
_PAYING = (nodes.For, nodes.Macro, nodes.CallBlock, nodes.Block)
"""What has a body that pays for itself."""
_STEP = "chatparsers.step"
_KEYWORDS = "chatparsers.keywords"


def _weight(node: nodes.Node) -> int:
    """What the node costs once, without the bodies that pay for themselves; of several ways, the dearest."""
    own = _WEIGHTS.get(type(node), 2)
    if isinstance(node, _PAYING):
        inner = [child for child in node.iter_child_nodes() if isinstance(child, nodes.Expr)]
        if isinstance(node, nodes.For):
            own += _body(node.else_)
        return own + sum(map(_weight, inner))
    if isinstance(node, nodes.If):
        tests = _weight(node.test) + sum(_weight(elif_.test) + 2 for elif_ in node.elif_)
        return own + tests + max(_body(way) for way in [node.body, node.else_, *(e.body for e in node.elif_)])
    return own + sum(map(_weight, node.iter_child_nodes()))


def _body(body: Sequence[nodes.Node]) -> int:
    return sum(map(_weight, body))


class Compiler(CodeGenerator):
    """jinja2's compiler. The code that it writes pays from the account, which the code calls ``meter``."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._paying: set[int] = set()
        self._read: set[str] = set()

    def write_commons(self) -> None:
        super().write_commons()
        self.writeline("meter = environment.meter()")

    def blockvisit(self, nodes: Iterable[nodes.Node], frame: Frame) -> None:
        body = list(nodes)
        if id(nodes) in self._paying:
            self.writeline(f"meter.left -= {_body(body) + 1}")
            self.writeline("if meter.left < 0: meter.stretch()")
        super().blockvisit(body, frame)

    def visit_Template(self, node: nodes.Template, frame: Frame | None = None) -> None:
        self._paying = {id(node.body)}
        for found in list(node.find_all((*_PAYING, nodes.Call, nodes.Filter, nodes.Test))):
            line = found.lineno
            if isinstance(found, _PAYING):
                self._paying.add(id(found.body))
                if isinstance(found, nodes.For) and found.test is not None:
                    # Run for every item, also for those that it leaves out.
                    cost = nodes.Const(_weight(found.test) + 4, lineno=line)
                    found.test = nodes.Test(found.test, _STEP, [cost], [], None, None, lineno=line)
                continue
            for field, name in (("dyn_args", "list"), ("dyn_kwargs", _KEYWORDS)):
                spread = getattr(found, field)
                if spread is not None:  # `f(*items)` walks the items
                    setattr(found, field, nodes.Filter(spread, name, [], [], None, None, lineno=line))
        super().visit_Template(node, frame)
        self.writeline(f"{VARIABLES} = frozenset({sorted(self._read)!r})")

    def enter_frame(self, frame: Frame) -> None:
        super().enter_frame(frame)
        asked = (name for action, name in frame.symbols.loads.values() if action == "resolve")
        self._read.update(name for name in asked if name not in self.environment.globals)

    def _ask(self, name: str, frame: Frame, *operands: nodes.Node) -> None:
        """Writes ``meter.name(operands)``."""
        self.write(f"meter.{name}(")
        for operand in operands:
            self.visit(operand, frame)
            self.write(", ")
        self.write(")")

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:
        if frame.eval_ctx.volatile or frame.eval_ctx.autoescape:
            self.write("(markup_join if context.eval_ctx.autoescape else str_join)(meter.shown((")
        else:
            self.write("meter.concat((")
        for part in node.nodes:
            self.visit(part, frame)
            self.write(", ")
        self.write(")))" if frame.eval_ctx.volatile or frame.eval_ctx.autoescape else "))")

    def visit_Compare(self, node: nodes.Compare, frame: Frame) -> None:
        left: nodes.Expr = node.expr
        self.write("(")
        for number, operand in enumerate(node.ops):
            if number:
                self.write(" and ")
            last = number + 1 == len(node.ops)
            name = "" if last else self.temporary_identifier()
            cheap = _cheap(left, operand.expr, operand.op)
            sign, paid = _COMPARISONS[operand.op]
            self.write("(" if cheap else f"meter.{paid}(")
            if isinstance(left, nodes.InternalName):
                self.write(left.name)
            else:
                self.visit(left, frame)
            self.write(f" {sign} " if cheap else ", ")
            self.write("" if last else f"({name} := ")
            self.visit(operand.expr, frame)
            self.write(")" if last else "))")
            left = _internal(name)
        self.write(")")

    def visit_Getitem(self, node: nodes.Getitem, frame: Frame) -> None:
        if isinstance(node.arg, nodes.Slice):
            self.write("meter.made(")
            super().visit_Getitem(node, frame)
            self.write(")")
        elif (
            isinstance(node.arg, nodes.Const) and type(node.arg.value) is str and len(node.arg.value) < _LONG
        ):
            self._look_up("getitem", node.node, node.arg.value, frame)
        else:
            super().visit_Getitem(node, frame)

    def visit_Getattr(self, node: nodes.Getattr, frame: Frame) -> None:
        if node.attr in _DICT_NAMES or len(node.attr) >= _LONG:
            super().visit_Getattr(node, frame)
        else:
            self._look_up("getattr", node.node, node.attr, frame)

    def _look_up(self, ask: str, node: nodes.Expr, name: str, frame: Frame) -> None:
        """Writes a look-up that asks the environment only if it is not a dict with this key, which it mostly is."""
        found = self.temporary_identifier()
        self.write(f"({found}[{name!r}] if type({found} := ")
        self.visit(node, frame)
        self.write(f") is dict and {name!r} in {found} else environment.{ask}({found}, {name!r}))")

    def visit_Filter(self, node: nodes.Filter, frame: Frame) -> None:
        bare = not (node.args or node.kwargs or node.dyn_args or node.dyn_kwargs)
        if bare and node.node is not None and node.name == "trim":
            self._ask("trim", frame, node.node)
        else:
            super().visit_Filter(node, frame)

    def visit_Dict(self, node: nodes.Dict, frame: Frame) -> None:
        self.write("{")
        for item in node.items:
            if isinstance(item.key, nodes.Const):
                self.visit(item.key, frame)
            else:
                self._ask("key", frame, item.key)
            self.write(": ")
            self.visit(item.value, frame)
            self.write(", ")
        self.write("}")

    def _output_child_pre(
        self, node: nodes.Expr, frame: Frame, finalize: CodeGenerator._FinalizeInfo
    ) -> None:
        if frame.eval_ctx.volatile or frame.eval_ctx.autoescape:
            super()._output_child_pre(node, frame, finalize)
            self.write("meter.shown(")
        else:
            self.write("meter.text(")

    def _output_child_post(
        self, node: nodes.Expr, frame: Frame, finalize: CodeGenerator._FinalizeInfo
    ) -> None:
        if frame.eval_ctx.volatile or frame.eval_ctx.autoescape:
            self.write(")")
        super()._output_child_post(node, frame, finalize)


def _operator(name: str) -> Callable[[Compiler, nodes.Expr, Frame], None]:
    def visit(self: Compiler, node: nodes.Expr, frame: Frame) -> None:
        self._ask(name, frame, *node.iter_child_nodes())

    return visit


for _node, _name in {
    "Add": "add",
    "Sub": "subtract",
    "Mul": "multiply",
    "Div": "divide",
    "FloorDiv": "floor_divide",
    "Pow": "power",
    "Mod": "modulo",
    "Neg": "negative",
    "Pos": "positive",
}.items():
    setattr(Compiler, f"visit_{_node}", _operator(_name))

_COMPARISONS = {
    "eq": ("==", "equal"),
    "ne": ("!=", "unequal"),
    "gt": (">", "greater"),
    "gteq": (">=", "at_least"),
    "lt": ("<", "less"),
    "lteq": ("<=", "at_most"),
    "in": ("in", "inside"),
    "notin": ("not in", "outside"),
}
"""Each comparison as Python writes it, and as the account does it."""


def _cheap(left: nodes.Expr, right: nodes.Expr, operator: str) -> bool:
    """Whether the comparison costs no more than the constant in it is long."""
    if operator in ("in", "notin"):
        return isinstance(right, (nodes.List, nodes.Tuple)) and all(
            isinstance(item, nodes.Const) for item in right.items
        )
    return isinstance(left, nodes.Const) or isinstance(right, nodes.Const)


def _internal(name: str) -> nodes.InternalName:
    """A name of the compiled code; jinja2 lets only its parser make one."""
    node = object.__new__(nodes.InternalName)
    node.name = name
    return node


class Generation(Extension):
    """``{% generation %}…{% endgeneration %}``: what a trainer masks; here it passes through.

    Also counts the tokens of a template."""

    tags = {"generation"}  # noqa: RUF012  # as jinja2 declares it

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True)).set_lineno(
            line
        )

    def filter_stream(self, stream: TokenStream) -> Iterator[Token]:
        most = current().limits.tokens
        for number, token in enumerate(stream):
            if number > most:
                raise TemplateSyntaxError(
                    f"the template has more than {most:,} names and signs", token.lineno
                )
            yield token


_CALLS = 50
"""How many calls of an error's traceback are kept."""


class Sandbox(ImmutableSandboxedEnvironment):
    """transformers' sandbox, within limits."""

    code_generator_class = Compiler
    # Not computed at compile time; `Compiler` writes them.
    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "**", "%"})
    intercepted_unops = frozenset({"+", "-"})
    meter = staticmethod(current)

    def __init__(self) -> None:
        # Not optimized: jinja2's optimizer takes time that grows with the square of an expression's depth.
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            optimized=False,
            extensions=[Generation, LoopControlExtension],
        )
        self.filters.update(FILTERS)
        self.tests.update(TESTS)
        self.globals.update(GLOBALS, raise_exception=raise_exception)

    @staticmethod
    def concat(pieces: Iterable[str]) -> str:
        return current().join(pieces)

    def handle_exception(self, source: str | None = None) -> NoReturn:
        """Raises the current error with lines of the template, of the outermost calls: jinja2 compiles a module for
        each, and a macro that calls itself without an end leaves hundreds."""
        trace = sys.exc_info()[2]
        for _ in range(_CALLS):
            trace = trace and trace.tb_next
        if trace is not None:
            trace.tb_next = None
        super().handle_exception(source)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        if type(obj) is list and attr in _LIST_METHODS:
            return True
        refused = attr in REFUSED or isinstance(obj, (Decimal, bytes, bytearray))
        return not refused and super().is_safe_attribute(obj, attr, value)

    def getattr(self, obj: Any, attribute: str) -> Any:
        # jinja2's rules, with a shorter way for what nearly every look-up is.
        kind = type(obj)
        if kind is dict and attribute not in _DICT_NAMES:
            try:
                return obj[attribute]
            except KeyError:
                return self.undefined(obj=obj, name=attribute)
        if kind is Namespace and attribute[:1] != "_":
            try:
                return getattr(obj, attribute)
            except AttributeError:
                return self.undefined(obj=obj, name=attribute)
        if (kind, attribute) in _SAFE:
            return getattr(obj, attribute)
        return super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        if type(argument) is str:
            if type(obj) is dict and argument not in obj and argument not in _DICT_NAMES:
                return self.undefined(obj=obj, name=argument)
            if len(argument) > _LONG:
                current().spend(len(argument))
        elif type(argument) is not int:
            current().key(argument)
        try:
            return obj[argument]
        except (TypeError, LookupError):
            return super().getitem(obj, argument)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        bound = isinstance(value, (BuiltinMethodType, MethodType)) and isinstance(value.__self__, str)
        return (
            partial(formatted, self, value) if bound and value.__name__ in ("format", "format_map") else None
        )

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        kind = type(__obj)
        if kind is Macro:
            kwargs.pop("_loop_vars", None)
            kwargs.pop("_block_vars", None)
            return __obj(__context.eval_ctx, *args, **kwargs)
        if kind is BuiltinMethodType or (
            kind is MethodType and isinstance(__obj.__self__, str)
        ):  # markup's methods
            kwargs.pop("_loop_vars", None)
            kwargs.pop("_block_vars", None)
            return method(current(), __obj, args, kwargs)
        if isinstance(__obj, type):  # a class: namespace, dict, cycler
            if __obj is dict and args:
                args = (current().mapping(args[0]), *args[1:])
            current().spend(120)
        elif kind is MethodType and __obj.__func__ is LoopContext.changed:
            for value in args:
                current().size(value)
        if not __self.is_safe_callable(__obj):
            raise SecurityError(f"{__obj!r} is not safely callable")
        return __context.call(__obj, *args, **kwargs)


def raise_exception(message: object = "") -> NoReturn:
    """Ends the rendering with ``message``; templates refuse conversations with it."""
    raise TemplateError(current().text(message))
