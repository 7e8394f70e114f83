"""The rule of imports: a line of the layout imports only from lines above it and its own, also inside functions."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

import chatparsers
from chatparsers.lazy import load_reference

PACKAGE = Path(chatparsers.__file__).parent

# Top to bottom: the parts of the package ("" is its __init__), and the other packages that each line may import.
# The engine: what a model writes, and what it may write.
ENGINE: list[tuple[set[str], set[str]]] = [
    ({"compiled", "errors", "kept", "lazy", "plain", "public", "shown"}, set()),
    ({"core"}, set()),
    ({"schema"}, set()),
    ({"values"}, set()),
    ({"answers"}, set()),
    ({"parser"}, set()),
    ({"streams"}, set()),
    ({"watch"}, set()),
    ({"writer"}, set()),
    ({"document"}, set()),
    ({"grammar"}, {"parsimonious"}),  # where a user's GBNF is read
    ({"formats"}, set()),
    ({"templates"}, {"jinja2", "markupsafe"}),
    ({"tokens"}, {"gguf", "jinja2", "tokenizers"}),
    ({"guide"}, {"llguidance", "numpy", "xgrammar"}),
    ({"plugins", "registry"}, {"pluggy"}),
    ({"interop"}, set()),
    ({"detection"}, {"jinja2"}),
    ({"explaining"}, set()),
    ({"chat"}, {"jinja2", "numpy", "tokenizers"}),
    ({"labels"}, set()),
]
# What is made with it.
USES: list[tuple[set[str], set[str]]] = [
    ({"serving"}, set()),
    ({"asking"}, {"torch"}),  # loaded where a model of transformers asks for it
    ({"display"}, {"railroad"}),
    ({"", "doctor"}, set()),
    ({"playground"}, {"jinja2"}),
    ({"data"}, {"numpy", "pyarrow", "railroad", "ray", "torch", "tqdm"}),
    ({"storage"}, {"psycopg", "psycopg_pool"}),
    ({"sessions"}, set()),
    ({"cli", "__main__"}, {"jinja2", "shtab", "tokenizers"}),
    ({"adapters"}, {"numpy", "xgrammar"}),  # and each its host: see HOSTS
    ({"gateway"}, {"anyio", "httpx2", "llama_cpp", "prometheus_client", "starlette", "uvicorn"}),
    ({"operate"}, {"anyio", "opentelemetry", "tomli", "tomli_w", "uvicorn"}),
    (
        {"testing"},
        {
            "gguf",
            "hypothesis",
            "jinja2",
            "jsonschema",
            "llguidance",
            "numpy",
            "pytest",
            "safetensors",
            "tokenizers",
            "tvm_ffi",
            "xgrammar",
        },
    ),
    ({"verify"}, {"httpx2", "jsonschema"}),
]
LINES = [*ENGINE, *USES]
LINE = {part: number for number, (parts, _) in enumerate(LINES) for part in parts}

# The host that each adapter imports. No other module imports it, and nothing imports the module but its host.
HOSTS = {
    "llama_cpp": {"llama_cpp"},
    "mlx_lm": {"mlx", "mlx_lm"},
    "renderers": {"renderers"},
    "sglang": {"sglang", "torch"},
    "transformers": {"torch", "transformers"},
    "vllm": {"vllm"},
    "vllm_guide": {"torch", "vllm"},
}

# The calls that go up a layer: services of a lower line, loaded at first use by ``load_reference("module:attribute")``.
UP = {
    ("errors", "streams"),
    ("shown", "display"),
    ("answers", "document"),
    ("answers", "grammar"),
    ("answers", "guide"),
    ("answers", "streams"),
    ("answers", "tokens"),
    ("answers", "writer"),
    ("streams", "grammar"),
    ("streams", "tokens"),
    ("streams", "watch"),
    ("formats", "registry"),
    ("cli", "operate"),
    ("cli", "testing"),
    ("cli", "verify"),
    ("", "data"),
    ("", "verify"),
    ("doctor", "adapters"),
    ("chat", "asking"),
    ("chat", "labels"),
    ("asking", "adapters"),
    ("asking", "gateway"),
}

# Imported for type checkers alone, which know it without an installation.
TYPES = {"typing_extensions"}

# Packages of extras. Without them, the modules that import them are not tried.
EXTRAS = {
    "anyio",
    "httpx2",
    "jsonschema",
    "prometheus_client",
    "psycopg",
    "psycopg_pool",
    "pyarrow",
    "ray",
    "starlette",
    "tomli_w",
    "tqdm",
    "uvicorn",
    "xgrammar",
}.union(*HOSTS.values())


class Import(NamedTuple):
    """``importer`` imports ``target``, both dotted, in ``line`` of its source; ``typing``: for type checkers only."""

    importer: str
    target: str
    line: int
    typing: bool

    def __str__(self) -> str:
        return f"{self.importer}, line {self.line}, imports {self.target}"


def dotted(path: Path) -> str:
    parts = ["chatparsers", *path.relative_to(PACKAGE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {dotted(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def part(module: str) -> str:
    """The part of the layout that a module of the package belongs to."""
    return module.split(".")[1] if "." in module else ""


def for_types(node: ast.AST) -> bool:
    test = node.test if isinstance(node, ast.If) else None
    return "TYPE_CHECKING" in (getattr(test, "id", ""), getattr(test, "attr", ""))


def imports(module: str, path: Path, tree: ast.Module) -> Iterator[Import]:
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]

    def visit(statements: Iterable[ast.AST], typing: bool) -> Iterator[Import]:
        for statement in statements:
            if isinstance(statement, ast.Import):
                for alias in statement.names:
                    yield Import(module, alias.name, statement.lineno, typing)
            elif isinstance(statement, ast.ImportFrom):
                base = statement.module or ""
                if statement.level:
                    parents = package.split(".")[: len(package.split(".")) - statement.level + 1]
                    base = ".".join([*parents, *filter(None, [statement.module])])
                for alias in statement.names:
                    full = f"{base}.{alias.name}"
                    yield Import(module, full if full in MODULES else base, statement.lineno, typing)
            for name in ("body", "orelse", "handlers", "finalbody", "cases"):
                inner = getattr(statement, name, None)
                if isinstance(inner, list):
                    yield from visit(inner, typing or for_types(statement))

    yield from visit(tree.body, False)


@cache
def trees() -> dict[str, ast.Module]:
    return {module: ast.parse(path.read_text(encoding="utf-8")) for module, path in MODULES.items()}


@cache
def every_import() -> list[Import]:
    return [found for module, path in MODULES.items() for found in imports(module, path, trees()[module])]


def own() -> list[Import]:
    return [found for found in every_import() if found.target.split(".")[0] == "chatparsers"]


def foreign() -> list[Import]:
    return [
        found for found in every_import() if found.target.split(".")[0] not in ("chatparsers", "__future__")
    ]


def host_of(module: str) -> set[str]:
    """The packages of the host of an adapter's module, which is ``adapters.x`` or a part of it, ``adapters._x_y``."""
    if not module.startswith("chatparsers.adapters."):
        return set()
    name = module.split(".")[2]
    return next(
        (found for host, found in HOSTS.items() if name == host or name.startswith(f"_{host}_")), set()
    )


@cache
def references() -> list[tuple[str, str, int]]:
    """Every text ``"chatparsers.x:y"`` in the code, except in the catalog of formats."""
    found = []
    for module, tree in trees().items():
        for node in ast.walk(tree) if module != "chatparsers.formats._catalog" else ():
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                target, colon, attribute = node.value.partition(":")
                if colon and attribute.isidentifier() and target.startswith("chatparsers."):
                    found.append((module, node.value, node.lineno))
    return found


def test_every_part_has_its_line() -> None:
    unknown = {part(module) for module in MODULES} - set(LINE)
    assert not unknown, f"say in LINES which line of the layout {sorted(unknown)} belong to"


OF_FORMATS = ("answers", "core", "document", "errors", "formats", "lazy", "plain", "public", "values")
BY_NAME = {"chatparsers.compiled", "chatparsers.lazy", "chatparsers.formats._generate", "chatparsers.plugins"}
"""The modules about importing."""


def above(found: Import) -> bool:
    """A line imports only from lines above it and its own."""
    importer, target = part(found.importer), part(found.target)
    return LINE[target] <= LINE[importer] or (found.typing and (importer, target) in UP)


def of_formats(found: Import) -> bool:
    """Formats import the core and one another alone. A family with another family's wire format is a record over the
    same build: it imports the build, never copies it."""
    return part(found.importer) != "formats" or part(found.target) in OF_FORMATS


def no_adapter(found: Import) -> bool:
    """Nothing imports an adapter, so no import of the package imports a host. The gateway runs llama.cpp in its own
    process."""
    within = host_of(found.importer) or part(found.importer) == "gateway"
    return not host_of(found.target) or bool(within)


def in_its_line(found: Import) -> bool:
    """Other packages are imported where the layout has them."""
    listed = LINES[LINE[part(found.importer)]][1] | host_of(found.importer)
    return found.target.split(".")[0] in TYPES | sys.stdlib_module_names | listed


def by_name(found: Import) -> bool:
    """Only modules about importing use ``importlib``, because it is a way around these rules."""
    if found.target.split(".")[0] != "importlib":
        return True
    plain = found.target.startswith(("importlib.metadata", "importlib.resources"))
    return plain or found.importer in BY_NAME or MODULES[found.importer].name == "__init__.py"


@pytest.mark.parametrize(
    ("rule", "imports"),
    [(above, own), (of_formats, own), (no_adapter, own), (in_its_line, foreign), (by_name, foreign)],
    ids=lambda value: value.__name__,
)
def test_each_import_keeps_to_a_rule(
    rule: Callable[[Import], bool], imports: Callable[[], list[Import]]
) -> None:
    wrong = [str(found) for found in imports() if not rule(found)]
    assert not wrong, f"{rule.__doc__}\n" + "\n".join(wrong)


def test_no_module_of_the_engine_knows_a_use() -> None:
    """Not by an import, nor by a name in a text: so it can be read alone. Only a notebook's picture is asked for, and
    what runs an engine for `Chat.ask` and `Chat.run`."""
    engine = {part for parts, _ in ENGINE for part in parts}
    uses = {part for parts, _ in USES for part in parts}
    pairs = [(part(found.importer), part(found.target), str(found)) for found in own()]
    pairs += [
        (part(m), part(text.partition(":")[0]), f"{m}, line {line}, {text}") for m, text, line in references()
    ]
    known = {(one, other): said for one, other, said in pairs if one in engine and other in uses}
    assert known.keys() == {("shown", "display"), ("chat", "asking")}, "\n".join(known.values())


def test_modules_import_one_another_in_no_circle() -> None:
    """Also for type checkers alone: a reader who follows the imports never comes back to where he was."""
    needs: dict[str, set[str]] = {}
    for found in own():
        if found.importer != found.target:
            needs.setdefault(found.importer, set()).add(found.target)
    try:
        tuple(TopologicalSorter(needs).static_order())
    except CycleError as error:
        pytest.fail(f"modules import one another: {' <- '.join(error.args[1])}")


def test_lazy_references_are_declared_and_lead_somewhere() -> None:
    for module, reference, line in references():
        pair = part(module), part(reference.partition(":")[0])
        assert pair in UP or LINE[pair[1]] <= LINE[pair[0]], (
            f"{module}, line {line}: {reference} is not in UP"
        )
        try:
            assert callable(load_reference(reference)), f"{module}, line {line}: {reference}"
        except ModuleNotFoundError as error:
            if (error.name or "").split(".")[0] not in EXTRAS:
                raise


def test_what_the_page_of_the_architecture_names_exists() -> None:
    """Its files, its folders and the methods of classes: the stations of a walk, the places to add something."""
    root = PACKAGE.parent
    page = root / "docs/architecture.md"
    if not page.exists():
        pytest.skip("the package is installed, without its pages")
    sources = "\n".join(path.read_text(encoding="utf-8") for path in MODULES.values())

    def there(name: str) -> bool:
        owner, _, member = name.rpartition(".")
        if member == "py" or name.endswith("/"):
            alone = any(path.name == name for path in MODULES.values())
            return alone or (PACKAGE / name).exists() or (root / name).exists()
        known = f"\nclass {owner}" in sources
        return not known or f" def {member}(" in sources or f"\n    {member}" in sources

    text = re.sub(r"^ *```.*?^ *```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    named = dict.fromkeys(re.findall(r"`([\w./]+(?:\.py|/)|[A-Z]\w+\.\w+)(?:\([^`]*\))?`", text))
    wrong = [name for name in named if not there(name)]
    assert len(named) > 100 and not wrong, wrong


def test_every_all_is_exact() -> None:
    """Every name in an ``__all__`` exists and is listed once."""
    wrong = []
    for module, tree in trees().items():
        assigned = [
            node.value
            for node in tree.body
            if isinstance(node, ast.Assign)
            and [ast.unparse(target) for target in node.targets] == ["__all__"]
        ]
        if not assigned:
            continue
        names = ast.literal_eval(assigned[0])
        try:
            loaded = __import__(module, fromlist=["_"])
        except ModuleNotFoundError as error:
            if (error.name or "").split(".")[0] not in EXTRAS:
                raise
            continue
        missing = [name for name in names if not hasattr(loaded, name)]
        if missing or len(names) != len(set(names)) or len(assigned) > 1:
            wrong.append(f"{module}: {missing or 'a name or __all__ stands twice'}")
    assert not wrong, "\n".join(wrong)


def test_the_repository_holds_sources_alone() -> None:
    """No wheel, archive or other file that a tool left behind is checked in. Long tables are compressed lines, a page
    of a browser is a picture of the docs, and a shell script is a finding."""
    git = subprocess.run(["git", "ls-files", "-z"], cwd=PACKAGE.parent, capture_output=True, check=False)
    if git.returncode:
        pytest.skip("this is no git checkout")
    kinds = {"", ".cpp", ".jinja", ".json", ".md", ".py", ".svg", ".toml", ".txt", ".typed"}
    kinds |= {".cff", ".css", ".service", ".html", ".js", ".mjs", ".pxd", ".pyx", ".yml"}
    files = [Path(name) for name in git.stdout.decode().split("\0") if name]
    assert files
    sources = [file for file in files if file.suffixes[-2:] != [".jsonl", ".gz"]]
    pictures = [file for file in sources if file.suffix == ".png" and file.parent == Path("docs/img")]
    findings = [file for file in sources if file.suffix == ".sh" and file.parent == Path("findings")]
    others = [file for file in sources if file not in pictures + findings]
    assert not [str(file) for file in others if file.suffix not in kinds]
