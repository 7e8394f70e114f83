"""Compiles the modules of ``../chatparsers`` that have a file in ``types/``, which gives their classes C types.

``hatch_build.py`` calls `build` for a wheel with the compiled core. Nothing is compiled into a checkout, where the next
edit would not run.

Cython reads the modules as they are, with changes that keep every line in its place: a name of a constant integer
becomes the integer, so that the machine's chain of comparisons is a switch in C, and a class that its types make a C
class has neither ``@public`` nor the base ``Generic``, as no C class can. So the class gets its public name in the C
text, and a last line of the module lets it be pickled as the plain one is.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from Cython.Build import cythonize
from Cython.Compiler import Options
from setuptools import Distribution, Extension
from setuptools.command.build_ext import build_ext

HERE = Path(__file__).resolve().parent
PURE = HERE.parent / "chatparsers"
BUILD = HERE / "build" / "sources"
NAMES = sorted(
    ".".join(path.relative_to(HERE / "types").with_suffix("").parts) for path in HERE.glob("types/**/*.pxd")
)
DIRECTIVES = {"language_level": 3, "annotation_typing": False, "auto_pickle": False, "wraparound": True}
DIRECTIVES |= {"boundscheck": True, "nonecheck": True}
FLAGS = (
    "-O2 -g0"
    # Less to download, as fast: no tables for debuggers, and no code moved to round addresses.
    " -fno-asynchronous-unwind-tables -fno-unwind-tables"
    " -fno-align-functions -fno-align-jumps -fno-align-labels -fno-align-loops"
)
GCC = (
    "-freorder-blocks-algorithm=simple -fno-thread-jumps -fno-inline-functions-called-once -fno-tree-vectorize"
    " -fno-tree-pre -fno-plt"
)
"""For fewer copies of code, and for calls of the interpreter that go there at once. Other compilers do not know all of
these."""
LINK = "-Wl,-s -Wl,-z,noseparate-code -Wl,--hash-style=gnu -Wl,--build-id=none"
"""On Linux: no symbols, no padding between segments, and one table of names."""
SMALL = {
    *("core.machine.instructions", "streams.text"),
    *("kept", "schema.tools", "tokens.detokenizer"),
}
"""Modules whose code runs once for a request, or for a few of its tokens: compiled for size."""
SHARED = "chatparsers._shared"
"""The module with the code that Cython would write into each of them."""


def constants(tree: ast.Module) -> dict[str, int]:
    """The names that a module gives to integers, once and for all."""
    found: dict[str, int] = {}
    for node in tree.body:
        if isinstance(node, ast.AnnAssign):
            targets, value = [node.target], node.value
        elif isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        else:
            continue
        target = targets[0]
        if isinstance(target, ast.Name) and isinstance(value, ast.Constant) and type(value.value) is int:
            found[target.id] = value.value
        elif isinstance(target, ast.Tuple) and ast.unparse(value).startswith("range("):
            assert isinstance(value, ast.Call)
            numbers = range(*map(ast.literal_eval, value.args))
            for name, number in zip(target.elts, numbers, strict=True):
                if isinstance(name, ast.Name):
                    found[name.id] = number
    return found


def c_classes(name: str, tree: ast.Module) -> list[ast.ClassDef]:
    """The classes of a module that its types make C classes."""
    types = (HERE / "types" / f"{name.replace('.', '/')}.pxd").read_text(encoding="utf-8")
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    return [node for node in classes if re.search(rf"cdef class {node.name}\b", types)]


def public_lines(name: str, tree: ast.Module) -> dict[str, int]:
    """The C classes of a module that ``@public`` shows under the package's name, and the line of that word."""
    return {
        node.name: word.lineno
        for node in c_classes(name, tree)
        for word in node.decorator_list
        if ast.unparse(word) == "public"
    }


def write_out_slots(node: ast.ClassDef, lines: list[bytes]) -> None:
    """Writes out what ``dataclass(slots=True)`` makes: Cython's data classes in C have neither slots nor hints that
    Python sees. Everything stays on its line."""
    for word in node.decorator_list:
        if ast.unparse(word) != "dataclass(slots=True)":
            continue
        lines[word.lineno - 1] = b"@dataclass\n"
        fields = [item for item in node.body if isinstance(item, ast.AnnAssign)]
        hints = {ast.unparse(item.target): ast.unparse(item.annotation) for item in fields}
        types = ", ".join(f"{name!r}: {hint}" for name, hint in hints.items())
        end = fields[-1].lineno - 1
        written = f"; __slots__ = {tuple(hints)}; __annotations__ = {{{types}}}\n"
        lines[end] = lines[end].rstrip() + written.encode()


def prepared(name: str, path: Path, shared: dict[str, dict[str, int]]) -> str:
    """The module as Cython reads it. ``shared``: the constants of modules from which others import them."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    known = constants(tree)
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            given = shared.get((node.module or "").rpartition(".")[2], {})
            known |= {name.name: given[name.name] for name in node.names if name.name in given}
    lines = text.encode().splitlines(keepends=True)
    found: list[tuple[int, int, int, int]] = []
    for node in ast.walk(tree):
        value = None
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            value = known.get(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "m":
            value = shared["instructions"].get(node.attr)
        if value is not None:
            found.append((node.lineno - 1, node.col_offset, node.end_col_offset or 0, value))
    for line, start, end, value in sorted(found, reverse=True):
        lines[line] = lines[line][:start] + str(value).encode() + lines[line][end:]
    for number in public_lines(name, tree).values():
        lines[number - 1] = b"\n"
    for node in c_classes(name, tree):
        for base in node.bases:
            if ast.unparse(base).startswith("Generic["):  # on the line of the class, as its only base
                line = lines[base.lineno - 1]
                lines[base.lineno - 1] = line[: base.col_offset] + line[base.end_col_offset :]
        write_out_slots(node, lines)
    classes = "".join(f"{node.name}, " for node in c_classes(name, tree))
    pickled = (
        f"\nfrom chatparsers.compiled import pickle_as_plain\npickle_as_plain(({classes}))\n"
        if classes
        else ""
    )
    return b"".join(lines).decode() + pickled


def sources() -> list[Extension]:
    """Writes the modules as Cython reads them into `BUILD`."""
    shutil.rmtree(BUILD, ignore_errors=True)
    shared = {
        path.stem: constants(ast.parse(path.read_text(encoding="utf-8")))
        for path in (PURE / "core" / "machine" / "instructions.py", PURE / "values" / "json.py")
    }
    extensions = []
    for name in NAMES:
        place = Path("chatparsers", *name.split("."))
        path = BUILD / place.with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        for folder in path.relative_to(BUILD).parents[:-1]:
            (BUILD / folder / "__init__.py").touch()
        path.write_text(prepared(name, PURE.parent / place.with_suffix(".py"), shared), encoding="utf-8")
        shutil.copy(HERE / "types" / f"{name.replace('.', '/')}.pxd", path.with_suffix(".pxd"))
        extensions.append(Extension(f"chatparsers.{name}", [str(path.relative_to(HERE))]))
    return extensions


def shared_module() -> Extension:
    """Writes the C text of the module `SHARED`."""
    path = BUILD / "c" / f"{SHARED}.c"
    command = [sys.executable, "-m", "cython", "generate-shared", "--exclude", "AutoPickle,MemoryView"]
    subprocess.run([*command, str(path.relative_to(HERE))], check=True)
    return Extension(SHARED, [str(path.relative_to(HERE))])


def described(module: str) -> bool:
    """Whether a module's functions say their name, signature and docstring, as those of public classes must. Others
    are smaller."""
    path = PURE.parent / f"{module.replace('.', '/')}.py"
    return re.search(r"^ *@(public|wraps)\b", path.read_text(encoding="utf-8"), re.M) is not None


def name_public_classes(module: Extension) -> None:
    """Gives the C classes of a module the names that ``@public`` gives the plain ones, in the C text: so it also holds
    in the limited API, where no loaded class can be renamed."""
    name = module.name.removeprefix("chatparsers.")
    tree = ast.parse((PURE / f"{name.replace('.', '/')}.py").read_text(encoding="utf-8"))
    (path,) = map(Path, module.sources)
    text = path.read_text(encoding="utf-8")
    for kind in public_lines(name, tree):
        text, found = re.subn(rf'"{re.escape(module.name)}\.(""|){kind}"', f'"chatparsers.{kind}"', text)
        assert found, f"{path}: expected the name of the class {kind} in the C text"
    path.write_text(text, encoding="utf-8")


class Build(build_ext):
    """Links without the folders of this interpreter, which would stand in each module."""

    def build_extensions(self) -> None:
        linker = getattr(self.compiler, "linker_so", None)
        if linker:
            self.compiler.linker_so = [flag for flag in linker if not flag.startswith(("-L", "-Wl,-rpath"))]
        compiler = getattr(self.compiler, "compiler_so", None) or [""]
        if "gcc" not in Path(compiler[0]).name:
            for module in self.extensions:
                module.extra_compile_args = [
                    flag for flag in module.extra_compile_args if flag not in GCC.split()
                ]
        super().build_extensions()


def build(folder: Path, oldest: str = "") -> list[Path]:
    """Compiles the modules into ``folder``, each at its place in the package, and returns their files.

    With ``oldest``, a version as "3.12", they serve that CPython and all later ones (the limited API). The variable
    ``CHATPARSERS_CFLAGS`` replaces all flags: ``-Os -g0`` compiles in three fifths of the time.
    """
    folder = folder.resolve()
    os.chdir(HERE)  # relative names, so that the C text says nothing of this machine
    shutil.rmtree(folder, ignore_errors=True)
    modules = []
    for source in sources():
        Options.docstrings = binding = described(source.name)
        (module,) = cythonize(
            [source],
            compiler_directives={**DIRECTIVES, "binding": binding},
            include_path=[str(BUILD)],
            build_dir=str((BUILD / "c").relative_to(HERE)),
            force=True,
            shared_utility_qualified_name=SHARED,
        )
        name_public_classes(module)
        modules.append(module)
    modules.append(shared_module())
    flags = os.environ.get("CHATPARSERS_CFLAGS")
    for module in modules:
        if oldest:
            major, minor = map(int, oldest.split("."))
            module.define_macros.append(("Py_LIMITED_API", f"0x{major:02X}{minor:02X}0000"))
            module.py_limited_api = True
        if os.name != "nt":
            small = ["-Os"] if module.name.removeprefix("chatparsers.") in SMALL else []
            module.extra_compile_args += flags.split() if flags else [*FLAGS.split(), *GCC.split(), *small]
        if sys.platform == "linux":
            module.extra_link_args += LINK.split()
    command = Build(Distribution({"name": "chatparsers", "ext_modules": modules}))
    command.build_lib, command.build_temp = str(folder), str(BUILD / "o")
    command.parallel = os.cpu_count()
    command.ensure_finalized()
    command.run()
    return sorted(path for path in folder.rglob("*") if path.suffix in (".so", ".pyd"))
