"""Which tests see a fault: ``python tests/mutants.py [options] -- PYTEST ARGUMENTS``.

It makes small faults (mutants) in the functions of some modules, one at a time. pytest collects once. Each
chosen test runs once without a fault in a forked process, to learn which functions it enters, and what it costs. Then a
forked process for each mutant exchanges the code of its function and runs the tests that enter it, the cheapest first,
until one fails or ``--seconds`` of CPU have passed. Code outside functions is not changed. It prints each mutant with
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
import signal
import sys
import threading
import time
import types
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
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


def function(mutant: Mutant) -> str:
    """The innermost function that holds the place, as `entered` names it."""
    path = ROOT / mutant.path
    tree = ast.parse(path.read_text("utf-8"))
    node = next(place[3] for number, place in enumerate(places(tree)) if number == mutant.number)
    name = ""
    for outer in ast.walk(tree):  # outer functions first
        if isinstance(outer, (ast.FunctionDef, ast.Lambda)) and any(
            inner is node for inner in ast.walk(outer)
        ):
            decorators = getattr(outer, "decorator_list", ())
            first = min([outer.lineno, *(one.lineno for one in decorators)])
            name = f"{mutant.path} {getattr(outer, 'name', '<lambda>')} {first}"
    return name


def entered(run: Callable[[], object]) -> tuple[float, list[str]]:
    """What a test costs, in seconds of CPU, and the functions of the package that it enters."""
    codes: set[types.CodeType] = set()

    def called(frame: types.FrameType, event: str, argument: object) -> None:
        if event == "call":
            codes.add(frame.f_code)

    since = time.process_time()
    threading.setprofile(called)
    sys.setprofile(called)
    try:
        run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    cost = time.process_time() - since
    inside = f"{ROOT}{os.sep}"
    found = [code for code in codes if code.co_filename.startswith(f"{inside}chatparsers")]
    return cost, [
        f"{Path(code.co_filename[len(inside) :]).as_posix()} {code.co_name} {code.co_firstlineno}"
        for code in found
    ]


class Runner:
    """Runs the collected tests in a forked process for each mutant, in the place of pytest's own loop."""

    def __init__(self, chosen: list[Mutant], seconds: int) -> None:
        self.chosen = chosen
        self.seconds = seconds
        self.seen: dict[Mutant, str] = {}
        self.failed = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        gc.unfreeze()  # `apply` looks for functions
        since = time.monotonic()
        tests: dict[str, list[tuple[float, int]]] = {}
        for number, item in enumerate(session.items):
            said = self.fork(session, partial(self.learn, session, number), 600)
            if not said.startswith("["):
                print(f"left out, as it fails without a fault: {item.nodeid} ({said})", flush=True)
                continue
            cost, names = json.loads(said)
            for name in names:
                tests.setdefault(name, []).append((cost, number))
        print(f"\n{len(session.items)} tests, learned in {time.monotonic() - since:.0f} s", flush=True)
        for mutant in self.chosen:
            numbers = [number for _, number in sorted(tests.get(function(mutant), ()))]
            found = self.fork(session, partial(self.see, session, mutant, numbers), 3 * self.seconds)
            if found != "not applied":
                self.seen[mutant] = found
                print(f"{mutant}\n    {found or f'SEEN BY NONE of {len(numbers)}'}", flush=True)
        return True

    def learn(self, session: pytest.Session, number: int) -> str:
        """What a test costs and enters, in JSON; its name if it fails."""
        found = entered(lambda: self.protocol(session, number))
        return self.failed or json.dumps(found)

    def see(self, session: pytest.Session, mutant: Mutant, numbers: list[int]) -> str:
        """The test that fails first; "" if none does."""
        if not apply(mutant):
            return "not applied"
        until = time.process_time() + self.seconds
        for number in numbers:
            self.protocol(session, number)
            if self.failed or time.process_time() > until:
                break
        return self.failed

    def protocol(self, session: pytest.Session, number: int) -> None:
        """Runs a test, and takes down what it set up: the next one may be any."""
        item = session.items[number]
        item.ihook.pytest_runtest_protocol(item=item, nextitem=None)

    def fork(self, session: pytest.Session, run: Callable[[], str], seconds: int) -> str:
        """What ``run`` returns in a process of its own, which ends after so many seconds of CPU."""
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
        signal.alarm(20 * seconds)  # a fault may wait for ever; a busy machine may take long
        try:
            said = run()
        except BaseException as error:  # the fault reached pytest itself
            said = f"{type(error).__name__} outside a test"
        data = f"{said}\0".encode()
        while data:
            data = data[os.write(writing, data) :]
        os._exit(0)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--number", type=int, default=300, help="how many mutants")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="only files whose path has this text")
    parser.add_argument("--seconds", type=int, default=30, help="of CPU for each mutant")
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
    runner = Runner(chosen, given.seconds)
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
