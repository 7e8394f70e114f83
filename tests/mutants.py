"""Which tests see a fault: ``python tests/mutants.py [options] -- PYTEST ARGUMENTS``.

It makes small faults (mutants) in the functions of some modules, one at a time, and runs the chosen tests on each until
one fails. pytest collects once. For each mutant a forked process exchanges the code of one function and runs the tests,
so a mutant that is seen at once costs milliseconds. Code outside functions is not changed. It prints each mutant with
the test that saw it, and at the end those that no test saw. ``--json`` keeps them, and ``--again`` runs those of such a
file that were seen by none, for example with more tests:

    python tests/mutants.py --number 300 --json one.json -- --quick tests/core tests/contract
    python tests/mutants.py --again one.json -- --quick tests/grammar tests/templates
"""

from __future__ import annotations

import argparse
import ast
import copy
import functools
import gc
import json
import os
import random
import resource
import sys
import time
import types
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("chatparsers/core", "chatparsers/grammar", "chatparsers/templates")
SWAPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
MOST_MEMORY = 4 << 30


class Mutant(NamedTuple):
    """A fault: the ``number``-th place of its file where one can be made, and what was written there."""

    path: str
    number: int
    line: int
    change: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.change}"


def changed(node: ast.AST) -> ast.AST | None:
    """The node with a fault; None if no fault is made of its kind."""
    new: Any = copy.deepcopy(node)
    if isinstance(new, ast.Compare) and type(new.ops[0]) in SWAPPED:
        new.ops[0] = SWAPPED[type(new.ops[0])]()
    elif isinstance(new, ast.Constant) and type(new.value) is int:
        new.value += 1
    elif isinstance(new, ast.Constant) and isinstance(new.value, bool):
        new.value = not new.value
    elif isinstance(new, ast.UnaryOp) and isinstance(new.op, ast.Not):
        new = new.operand
    elif isinstance(new, ast.BoolOp):
        new.op = ast.And() if isinstance(new.op, ast.Or) else ast.Or()
    elif isinstance(new, ast.If):
        new.body = new.orelse or [ast.Pass()]
        new.orelse = []
    elif isinstance(new, ast.AugAssign) or (
        isinstance(new, ast.Expr) and isinstance(new.value, (ast.Call, ast.Yield, ast.YieldFrom))
    ):
        new = ast.Pass()
    else:
        return None
    return ast.fix_missing_locations(ast.copy_location(new, node))


def places(tree: ast.Module) -> Iterator[tuple[ast.AST, str, int | None, ast.AST]]:
    """Where a fault can be made: the parent, its field, the place in a list, and the node. Only within functions, and
    not in the texts of errors."""

    def visit(node: ast.AST, inside: bool) -> Iterator[tuple[ast.AST, str, int | None, ast.AST]]:
        inside = inside or isinstance(node, (ast.FunctionDef, ast.Lambda))
        for field, value in ast.iter_fields(node):
            if field in ("decorator_list", "returns", "annotation", "args") and isinstance(
                node, (ast.FunctionDef, ast.arg, ast.AnnAssign)
            ):
                continue
            for at, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if not isinstance(child, ast.AST) or isinstance(child, (ast.JoinedStr, ast.Raise)):
                    continue
                if inside and changed(child) is not None:
                    yield node, field, at, child
                yield from visit(child, inside)

    yield from visit(tree, False)


def mutants(paths: list[str]) -> Iterator[Mutant]:
    """All that can be made in these files."""
    for path in paths:
        tree = ast.parse((ROOT / path).read_text("utf-8"))
        for number, (_, _, _, node) in enumerate(places(tree)):
            old, new = (ast.unparse(one).split("\n")[0][:60] for one in (node, changed(node)))
            yield Mutant(path, number, node.lineno, f"{old}  ->  {new}")


def apply(mutant: Mutant) -> bool:
    """Puts the fault into the running process: exchanges the code of the function that holds it. False if the function
    was not loaded, or its new code does not fit."""
    path = ROOT / mutant.path
    tree = ast.parse(path.read_text("utf-8"))
    parent, field, at, node = next(place for n, place in enumerate(places(tree)) if n == mutant.number)
    new = changed(node)
    if at is None:
        setattr(parent, field, new)
    else:
        getattr(parent, field)[at] = new
    wanted = {}

    def find(code: types.CodeType) -> None:
        for inner in code.co_consts:
            if isinstance(inner, types.CodeType):
                wanted.setdefault((inner.co_name, inner.co_firstlineno), inner)
                find(inner)

    find(compile(tree, str(path), "exec"))
    done = False
    for found in gc.get_objects():
        if isinstance(found, functools._lru_cache_wrapper):
            found.cache_clear()
        elif isinstance(found, types.FunctionType) and found.__code__.co_filename == str(path):
            code = wanted.get((found.__code__.co_name, found.__code__.co_firstlineno))
            if code is not None and code != found.__code__:
                try:
                    found.__code__ = code
                except ValueError:  # it has other free variables
                    return False
                done = True
    return done


class Runner:
    """Runs the collected tests in a forked process for each mutant, in the place of pytest's own loop."""

    def __init__(self, chosen: list[Mutant]) -> None:
        self.chosen = chosen
        self.seen: dict[Mutant, str] = {}
        self.failed = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        before = time.process_time(), resource.getrusage(resource.RUSAGE_CHILDREN)
        wrong = self.run(session, None, 3600)
        if wrong:
            raise pytest.UsageError(f"without a fault, the tests must pass: {wrong}")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        usual = after.ru_utime - before[1].ru_utime
        print(f"\n{len(session.items)} tests, {usual:.1f} s of CPU; {len(self.chosen)} mutants", flush=True)
        for mutant in self.chosen:
            found = self.run(session, mutant, int(3 * usual + 10))
            if found != "not applied":
                self.seen[mutant] = found
                print(f"{mutant}\n    {found or 'SEEN BY NONE'}", flush=True)
        return True

    def run(self, session: pytest.Session, mutant: Mutant | None, seconds: int) -> str:
        """The test that fails first; "" if none does."""
        reading, writing = os.pipe()
        child = os.fork()
        if child:
            os.close(writing)
            with os.fdopen(reading, encoding="utf-8") as pipe:
                said = pipe.read()
            _, status = os.waitpid(child, 0)
            return said.partition("\0")[0] if "\0" in said else f"ended by signal {status & 127}"
        session.config.pluginmanager.unregister(name="terminalreporter")
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
        said = ""
        try:
            if mutant is not None and not apply(mutant):
                said = "not applied"
            else:
                for item, later in zip(session.items, [*session.items[1:], None], strict=True):
                    item.ihook.pytest_runtest_protocol(item=item, nextitem=later)
                    if self.failed:
                        break
                said = self.failed
        except BaseException as error:  # the fault reached pytest itself
            said = f"{type(error).__name__} outside a test"
        os.write(writing, f"{said}\0".encode())
        os._exit(0)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--number", type=int, default=300, help="how many mutants")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="only files whose path has this text")
    parser.add_argument("--json", type=Path, help="where to write what was found")
    parser.add_argument("--again", type=Path, help="the mutants of this file that no test saw")
    parser.add_argument("tests", nargs="*", help="arguments of pytest")
    given = parser.parse_args()
    if given.again is not None:
        old = json.loads(given.again.read_text("utf-8"))
        chosen = [Mutant(*one["mutant"]) for one in old if not one["seen"]]
    else:
        files = sorted(p.relative_to(ROOT).as_posix() for at in PACKAGES for p in (ROOT / at).rglob("*.py"))
        every = list(mutants([path for path in files if given.only in path]))
        chosen = random.Random(given.seed).sample(every, min(given.number, len(every)))
        print(f"{len(every)} places, {len(chosen)} chosen")
    runner = Runner(chosen)
    status = pytest.main(["-q", "-p", "no:cacheprovider", *given.tests], plugins=[runner])
    seen = Counter(test.partition("::")[0] for test in runner.seen.values())
    for file, times in seen.most_common():
        print(f"{times:5} {file or 'SEEN BY NONE'}")
    for mutant in (mutant for mutant, test in runner.seen.items() if not test):
        print(f"none: {mutant}")
    if given.json is not None:
        kept = [{"mutant": list(mutant), "seen": test} for mutant, test in runner.seen.items()]
        given.json.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
