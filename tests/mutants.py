"""Which tests see a fault: ``python tests/mutants.py [options] -- PYTEST ARGUMENTS``.

It makes small faults (mutants) in the functions of some modules, one at a time. All tests are collected once. Then
each file of tests runs in a forked process, under coverage.py, to learn which tests reach the places of the faults, and
what they cost. Then a forked process for each mutant runs the tests that reach its statement: one case of each test,
then all, the cheapest first, until one fails or ``--seconds`` of CPU have passed. It exchanges the code of a function;
where that code has run before, a process begins anew, and imports the package with the fault in it.
It prints each mutant with the test that saw it, and at the end those that no test saw. ``--json`` keeps them, and
``--again`` runs those of such a file that were seen by none, for example with more tests:

    python tests/mutants.py --number 300 --json one.json -- --quick tests/core tests/contract
    python tests/mutants.py --again one.json -- tests/grammar tests/templates

What a test starts as another command has no fault.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import gc
import importlib
import importlib.machinery
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import types
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import coverage
import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = tuple(
    f"chatparsers/{name}"
    for name in ("schema", "values", "core", "grammar", "templates", "detection", "chat")
)
SWAPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
MOST_MEMORY = 4 << 30
SILENT: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
FIRST = 25
"""So many tests are tried first, one case of each: nearly all faults are seen by one of them."""


Place = tuple[ast.AST, str, "int | None", Any]
"""Where a fault can be made: the parent, its field, the place in a list, and the node."""


class Mutant(NamedTuple):
    """A fault: the ``number``-th place of its file where one can be made, and what was written there."""

    path: str
    number: int
    line: int
    change: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.change}"


def changed(node: ast.AST) -> Any:
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


def places(tree: ast.Module) -> Iterator[Place]:
    """Only within functions, and not in the texts of errors."""

    def visit(node: ast.AST, inside: bool) -> Iterator[Place]:
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


def faulty(mutant: Mutant) -> ast.Module:
    """The module with its fault."""
    tree = ast.parse((ROOT / mutant.path).read_text("utf-8"))
    parent, field, at, node = next(place for n, place in enumerate(places(tree)) if n == mutant.number)
    new = changed(node)
    if at is None:
        setattr(parent, field, new)
    else:
        getattr(parent, field)[at] = new
    return tree


@cache
def lines(mutant: Mutant) -> range:
    """The lines of the statement that holds the place; of one that holds others, those before them."""
    tree = ast.parse((ROOT / mutant.path).read_text("utf-8"))
    node = next(place[3] for number, place in enumerate(places(tree)) if number == mutant.number)
    inner: ast.stmt | None = None
    for one in ast.walk(tree):  # outer statements first
        if isinstance(one, ast.stmt) and any(node is below for below in ast.walk(one)):
            inner = one
    assert inner is not None
    body = getattr(inner, "body", None)
    return range(inner.lineno, body[0].lineno if body else (inner.end_lineno or inner.lineno) + 1)


class Faulty(importlib.machinery.SourceFileLoader):
    """Loads the module of a mutant, and as a finder it finds no other."""

    def __init__(self, mutant: Mutant) -> None:
        parts = mutant.path.removesuffix(".py").split("/")
        self.package = parts[-1] == "__init__"
        super().__init__(".".join(parts[:-1] if self.package else parts), str(ROOT / mutant.path))
        self.mutant = mutant

    def get_code(self, fullname: str) -> types.CodeType:
        return compile(faulty(self.mutant), self.path, "exec", dont_inherit=True)

    def find_spec(self, fullname: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.name:
            return None
        spec = importlib.machinery.ModuleSpec(fullname, self, origin=self.path, is_package=self.package)
        spec.has_location = True
        if self.package:
            spec.submodule_search_locations = [str(Path(self.path).parent)]
        return spec


def exchange(mutant: Mutant) -> bool:
    """Puts the fault into the running process: exchanges the code of the function that holds it. False if the function
    was not loaded, or its new code does not fit."""
    path = str(ROOT / mutant.path)
    wanted: dict[tuple[str, int], types.CodeType | None] = {}

    def find(code: types.CodeType) -> None:
        for inner in code.co_consts:
            if isinstance(inner, types.CodeType):
                key = inner.co_name, inner.co_firstlineno
                wanted[key] = None if key in wanted else inner  # two lambdas of a line
                find(inner)

    find(compile(faulty(mutant), path, "exec", dont_inherit=True))
    done = False
    for found in gc.get_objects():
        if isinstance(found, types.FunctionType) and found.__code__.co_filename == path:
            code = wanted.get((found.__code__.co_name, found.__code__.co_firstlineno))
            if code is not None and code != found.__code__:
                try:
                    found.__code__ = code
                except ValueError:  # it has other free variables
                    return False
                done = True
    return done


class Learns:
    """Notes for each test what it costs in seconds of CPU, and the numbers of the places that it reaches."""

    def __init__(self, chosen: list[Mutant]) -> None:
        self.chosen = chosen
        files = sorted({str(ROOT / mutant.path) for mutant in chosen})
        self.coverage = coverage.Coverage(data_file=None, config_file=False, include=files, messages=False)
        self.coverage.set_option("run:disable_warnings", ["no-data-collected"])  # a file may reach nothing
        self.costs: dict[str, float] = {}
        self.failed: set[str] = set()
        self.coverage.start()

    def run(self, items: list[pytest.Item]) -> dict[str, Any]:
        """Runs tests; says which of them pass and what they reach."""
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        return self.found()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        since = time.process_time()
        self.coverage.switch_context(item.nodeid)
        yield
        self.coverage.switch_context("")
        self.costs[item.nodeid] = time.process_time() - since

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.passed:  # a test that is skipped sees nothing
            self.failed.add(report.nodeid)

    def found(self) -> dict[str, Any]:
        self.coverage.stop()
        data = self.coverage.get_data()
        reached: dict[str, set[int]] = {}
        for number, mutant in enumerate(self.chosen):
            at = data.contexts_by_lineno(str(ROOT / mutant.path))
            for context in {context for line in lines(mutant) for context in at.get(line, ())}:
                reached.setdefault(context, set()).add(number)
        tests = [[test, cost, sorted(reached.get(test, ()))] for test, cost in self.costs.items()]
        return {
            "import": sorted(reached.get("", ())),
            "tests": [test for test in tests if test[0] not in self.failed],
        }


class Sees:
    """Notes the first failure."""

    def __init__(self) -> None:
        self.failed = ""
        self.ran = 0

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed = f"collecting: {report.nodeid}"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid

    def run(self, items: list[pytest.Item], seconds: float) -> dict[str, Any]:
        """Runs tests until one fails or the time is up. Each takes down what it set up: the next one may be any."""
        until = time.process_time() + seconds
        for item in items:
            if self.failed or time.process_time() > until:
                break
            self.ran += 1
            try:
                item.ihook.pytest_runtest_protocol(item=item, nextitem=None)
            except BaseException as error:  # the fault reached pytest itself
                self.failed = f"{type(error).__name__} outside a test"
        return {"seen": self.failed, "ran": self.ran}


class Anew(Sees):
    """Runs tests in a process that has collected their files with the fault."""

    def __init__(self, tests: list[str], seconds: float) -> None:
        super().__init__()
        self.tests, self.seconds = tests, seconds

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        if not self.failed and len(items.keys() & set(self.tests)) < len(self.tests):
            self.failed = "collecting: fewer tests"
        self.run([items[test] for test in self.tests if test in items], self.seconds)
        return True


def limited(seconds: float) -> None:
    """This process ends some seconds of CPU later: a fault may make a loop that never ends."""
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 20, int(seconds) + 20))
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))


def child(job: dict[str, Any]) -> dict[str, Any]:
    """A process of its own: runs tests with a fault."""
    sys.meta_path.insert(0, Faulty(Mutant(*job["mutant"])))
    limited(job["seconds"])
    anew = Anew(job["tests"], job["seconds"])
    try:
        status = pytest.main(["-q", "-p", "no:cacheprovider", *job["arguments"]], plugins=[anew])
    except BaseException as error:
        status, anew.failed = 0, f"{type(error).__name__} outside a test"
    if not anew.failed and not anew.ran:
        anew.failed = f"pytest ends with {int(status)}"
    return {"seen": anew.failed, "ran": anew.ran}


def run(job: dict[str, Any], seconds: float) -> dict[str, Any] | None:
    """What `child` says of a job; None if its process ended otherwise."""
    with tempfile.TemporaryDirectory() as folder:
        told, said = Path(folder, "told"), Path(folder, "said")
        told.write_text(json.dumps(job), encoding="utf-8")
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        command = [sys.executable, __file__, "--child", str(told), str(said)]
        # A fault may wait for ever; a busy machine may take long.
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(command, cwd=ROOT, env=environment, timeout=seconds, **SILENT)
        return json.loads(said.read_text("utf-8")) if said.exists() else None


class Runner(Sees):
    """Learns what the tests reach, and finds one that sees each mutant."""

    def __init__(self, chosen: list[Mutant], arguments: list[str], seconds: float, out: Path | None) -> None:
        super().__init__()
        self.chosen, self.seconds, self.out = chosen, seconds, out
        self.options = [one for one in arguments if one.startswith("-")]
        self.collecting = Learns(chosen)
        self.kept: list[dict[str, Any]] = []
        self.imported: set[int] = set()
        """The mutants whose statement runs while tests are collected."""
        self.strong: list[list[tuple[float, str]]] = [[] for _ in chosen]
        """Of each mutant, the tests that reach it, and what they cost."""
        self.weak: list[list[tuple[float, str]]] = [[] for _ in chosen]
        """The tests behind others that reach it, in the same process: they may use what those made."""
        self.cheapest: list[str] = []
        """A few tests for what runs at the import alone."""

    def learn(self, session: pytest.Session) -> None:
        files: dict[Path, list[pytest.Item]] = {}
        for item in session.items:
            files.setdefault(item.path, []).append(item)
        costs: list[tuple[float, str]] = []
        for file, items in files.items():

            def learns(items: list[pytest.Item] = items) -> dict[str, Any]:
                learns = Learns(self.chosen)
                session.config.pluginmanager.register(learns)
                return learns.run(items)

            said = forked(session, learns)
            if said is None:
                print(f"left out, as it did not end: {file}", flush=True)
                continue
            before: set[int] = set()
            costs += [(cost, test) for test, cost, _ in said["tests"]]
            for test, cost, numbers in said["tests"]:
                before.update(numbers)
                for number in before:
                    (self.strong if number in numbers else self.weak)[number].append((cost, test))
        self.cheapest = [test for _, test in sorted(costs)[:5]]
        print(f"{len(costs)} tests that pass, in {len(files)} files", flush=True)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        for module in {Faulty(mutant).name for mutant in self.chosen}:
            importlib.import_module(module)
        self.imported.update(self.collecting.found()["import"])
        gc.unfreeze()  # `exchange` looks for functions
        self.learn(session)
        items = {item.nodeid: item for item in session.items}
        for number, mutant in enumerate(self.chosen):
            found = self.see(session, number, items)
            said = f"{found['seen'] or 'SEEN BY NONE'} ({found['ran']} ran, {found['reach']} reach)"
            print(f"{mutant}\n    {said}", flush=True)
            self.kept.append({"mutant": list(mutant), **found})
            if self.out is not None:
                self.out.write_text(json.dumps(self.kept, indent=1) + "\n", encoding="utf-8")
        return True

    def see(self, session: pytest.Session, number: int, items: dict[str, pytest.Item]) -> dict[str, Any]:
        """The first test that sees a mutant (``seen``), how many reach it and how many ran."""
        reach = [
            test for _, test in [*sorted(self.strong[number]), *sorted(self.weak[number])] if test in items
        ]
        first: dict[str, str] = {}
        for test in reach:
            first.setdefault(test.partition("[")[0], test)
        tests = list(dict.fromkeys([*list(first.values())[:FIRST], *reach]))
        if number in self.imported and not tests:
            tests = self.cheapest
        found: dict[str, Any] | None = {"seen": "", "ran": 0}
        if tests:
            known = number in self.imported
            found = self.exchanged(session, number, [items[one] for one in tests[: FIRST if known else None]])
            if known and found is not None and not found["seen"]:
                found = None  # what the collection has made is without the fault
        if found is None:
            found = {"seen": "", "ran": 0}
            for some in (tests[:FIRST], tests[FIRST:]):
                if some and not found["seen"]:
                    files = sorted({test.partition("::")[0] for test in some})
                    job = {"mutant": self.chosen[number], "tests": some, "seconds": self.seconds}
                    job["arguments"] = [*self.options, *files]
                    found = run(job, 20 * self.seconds + 300) or {
                        "seen": "its process ended",
                        "ran": len(some),
                    }
        return {**found, "reach": len(reach)}

    def exchanged(
        self, session: pytest.Session, number: int, tests: list[pytest.Item]
    ) -> dict[str, Any] | None:
        """The same in a forked process that exchanges the code; None if that cannot be done."""

        def sees() -> dict[str, Any]:
            limited(self.seconds)
            # A fault may wait for ever; a busy machine may take long.
            signal.alarm(int(20 * self.seconds) + 300)
            return self.run(tests, self.seconds) if exchange(self.chosen[number]) else {"seen": None}

        found = forked(session, sees)
        if found is None:
            return {"seen": "its process ended", "ran": len(tests)}
        return None if found["seen"] is None else found


def forked(session: pytest.Session, work: Callable[[], dict[str, Any]]) -> dict[str, Any] | None:
    """What ``work`` returns in a forked process that prints nothing; None if the process ended otherwise."""
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        with os.fdopen(reading, encoding="utf-8") as pipe:
            said = pipe.read()
        os.waitpid(child, 0)
        return json.loads(said) if said else None
    try:
        os.close(reading)
        session.config.pluginmanager.unregister(name="terminalreporter")
        with os.fdopen(writing, "w", encoding="utf-8") as pipe:
            json.dump(work(), pipe)
    finally:
        os._exit(0)


def main() -> int:
    if sys.argv[1:2] == ["--child"]:
        said = child(json.loads(Path(sys.argv[2]).read_text("utf-8")))
        Path(sys.argv[3]).write_text(json.dumps(said), encoding="utf-8")
        return 0
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--number", type=int, default=300, help="how many mutants")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="only files whose path has this text")
    parser.add_argument("--seconds", type=float, default=30, help="of CPU for each mutant")
    parser.add_argument("--json", type=Path, help="where to write what was found")
    parser.add_argument("--again", type=Path, help="the mutants of this file that no test saw")
    parser.add_argument("tests", nargs="*", help="arguments of pytest: options, files and folders")
    given = parser.parse_args()
    if given.again is not None:
        old = json.loads(given.again.read_text("utf-8"))
        chosen = [Mutant(*one["mutant"]) for one in old if not one["seen"] and given.only in one["mutant"][0]]
    else:
        files = sorted(p.relative_to(ROOT).as_posix() for at in PACKAGES for p in (ROOT / at).rglob("*.py"))
        every = [mutant for mutant in mutants(files) if given.only in mutant.path]
        if not every:
            parser.error(
                f"--only: expected a part of the path of a file in {', '.join(PACKAGES)}, found {given.only!r}"
            )
        chosen = random.Random(given.seed).sample(every, min(given.number, len(every)))
        print(f"{len(every)} places, {len(chosen)} chosen", flush=True)
    runner = Runner(chosen, given.tests, given.seconds, given.json)
    status = pytest.main(["-q", "-p", "no:cacheprovider", *given.tests], plugins=[runner])
    kept = runner.kept
    for file, times in Counter(one["seen"].partition("::")[0] for one in kept).most_common():
        print(f"{times:5} {file or 'SEEN BY NONE'}")
    for one in kept:
        if not one["seen"]:
            print(f"none: {Mutant(*one['mutant'])}")
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
