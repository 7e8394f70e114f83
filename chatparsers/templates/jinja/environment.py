"""The sandbox in which chat templates run: that of transformers, with what real templates need in addition.

As in transformers: an immutable sandbox, ``trim_blocks``, ``lstrip_blocks``, loop controls, ``{% generation
%}``, the filter ``tojson`` and the functions ``raise_exception`` and ``strftime_now``. In addition, because
templates in use need them: the filter ``from_json``, ``tojson`` of iterables and of exact numbers,
``list.append`` and ``list.pop``. The last two are safe because a template sees only copies of the caller's
data (see ``messages.own``). ``limits`` says how much a template may do.

Source: ``transformers.utils.chat_template_utils._compile_jinja_template``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from ...kept import kept
from .limits import current

if TYPE_CHECKING:
    from types import FunctionType

    import jinja2

_KEPT = 65_536
"""The longest source, in characters, of which anything is kept. The last 64 templates are kept."""


def strftime_now(pattern: str) -> str:
    """The local time now, in ``strftime`` notation. Templates write dates into system texts with it."""
    current().spend(256 * len(pattern))  # a letter of it may be a whole date
    return datetime.now().strftime(pattern)


@lru_cache(maxsize=1)
def environment() -> jinja2.Environment:
    """The only environment of this process. jinja2 is imported here, not earlier."""
    from .sandbox import Sandbox

    env = Sandbox()
    env.globals["strftime_now"] = strftime_now
    return env


def compile_source(source: str) -> jinja2.Template:
    """The compiled template. It is kept for the next call if the source is not long.

    Raises jinja2's ``TemplateSyntaxError`` if the source cannot be compiled.
    """
    from jinja2 import TemplateSyntaxError

    most = current().limits.source
    if len(source) > most:
        raise TemplateSyntaxError(f"the template has {len(source):,} characters, more than {most:,}", 1)
    try:
        return _compiled(source)
    except TemplateSyntaxError:
        raise
    except RecursionError as error:
        raise TemplateSyntaxError("the template nests too deep", 1) from error
    except (
        SyntaxError
    ) as error:  # of the Python that jinja2 writes: `break` outside a loop, twenty loops in each other
        raise TemplateSyntaxError(f"the template cannot be compiled: {error.msg}", 1) from error
    except (ValueError, MemoryError, OverflowError) as error:  # a number of 5,000 digits
        raise TemplateSyntaxError(f"the template cannot be compiled: {error}", 1) from error


@kept(64, _KEPT)
def _compiled(source: str) -> jinja2.Template:
    return environment().from_string(source)


def variables_of(program: jinja2.Template) -> frozenset[str]:
    """The variables that a compiled template reads and does not set."""
    from .sandbox import VARIABLES

    found: frozenset[str] = cast("FunctionType", program.root_render_func).__globals__[VARIABLES]
    return found


class Asked(NamedTuple):
    """The literals that a template looks for in texts, and those to which it compares whole texts."""

    inside: frozenset[str] = frozenset()
    whole: frozenset[str] = frozenset()

    def of(self, text: str) -> tuple[str, ...]:
        """What the template would find in ``text``. Texts with the same answer take the same way through it."""
        found = {literal for literal in self.inside if literal in text}
        bare = text.strip()
        if bare in self.whole:
            found.add(bare)
        return tuple(sorted(found)) if bare or not text else (" ",)


_SEARCHES = frozenset(
    {"count", "endswith", "find", "index", "partition", "rfind", "rindex", "rpartition", "rsplit", "split"}
    | {"startswith"}
)


@kept(64, _KEPT)
def asked_of(source: str) -> Asked:
    """The literals by which a template tells texts from each other; none if its source nests too deep to say."""
    from jinja2 import nodes

    inside: set[str] = set()
    whole: set[str] = set()

    def texts(node: nodes.Node) -> Iterator[str]:
        for item in node.items if isinstance(node, (nodes.List, nodes.Tuple)) else [node]:
            if isinstance(item, nodes.Const) and isinstance(item.value, str) and item.value.strip():
                yield item.value

    def looked_up(node: nodes.Node) -> bool:
        """Whether it is a whole value of the caller, not one that was cut out of it."""
        by_name = isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Const)
        return by_name or isinstance(node, (nodes.Name, nodes.Getattr))

    try:
        tree = environment().parse(source)
    except RecursionError:
        return Asked()
    asking: Iterator[nodes.Compare | nodes.Call] = tree.find_all((nodes.Compare, nodes.Call))
    for found in asking:
        if isinstance(found, nodes.Compare):
            left = found.expr
            for operand in found.ops:
                right = operand.expr
                if operand.op in ("in", "notin"):
                    inside.update(texts(left))
                    whole.update(texts(right))
                else:
                    for one, other in ((left, right), (right, left)):
                        (whole if looked_up(other) else inside).update(texts(one))
                left = right
        elif isinstance(method := found.node, nodes.Getattr) and method.attr in _SEARCHES:
            inside.update(text for argument in found.args for text in texts(argument))
    return Asked(frozenset(inside), frozenset(whole))


def watched(names: Iterable[str], written: set[str]) -> dict[str, Any]:
    """Undefined values for the variables of these names that no function has, for which jinja writes nothing. When a
    template writes one as text, its name goes into ``written``."""

    from jinja2 import Undefined

    class Watched(Undefined):
        def __str__(self) -> str:
            written.add(str(self._undefined_name))
            return ""

    return {name: Watched(name=name) for name in names if name not in environment().globals}
