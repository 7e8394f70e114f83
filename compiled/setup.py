"""Builds the wheel: compiles the modules of ``../chatparsers`` that have a file in ``types/``, which gives C types.

Cython reads the modules as they are, with two changes that keep every line in its place: a name of a constant integer
becomes the integer, so that the machine's chain of comparisons is a switch in C, and a class that its types make a C
class has neither ``@public`` (`chatparsers_compiled` does what it does) nor the base ``Generic``, as no C class can.
"""

import ast
import os
import re
import shutil
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

HERE = Path(__file__).resolve().parent
PURE = HERE.parent / "chatparsers"
BUILD = HERE / "build" / "sources"
NAMES = sorted(
    ".".join(path.relative_to(HERE / "types").with_suffix("").parts) for path in HERE.glob("types/**/*.pxd")
)
DIRECTIVES = {"language_level": 3, "annotation_typing": False, "auto_pickle": False, "wraparound": True}
DIRECTIVES |= {"boundscheck": True, "nonecheck": True, "binding": True}


def version() -> str:
    text = (PURE / "__init__.py").read_text(encoding="utf-8")
    return next(line.split('"')[1] for line in text.splitlines() if line.startswith("__version__"))


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


def shown(name: str, tree: ast.Module) -> dict[str, int]:
    """The C classes of a module that ``@public`` shows under the package's name, and the line of that word."""
    return {
        node.name: word.lineno
        for node in c_classes(name, tree)
        for word in node.decorator_list
        if ast.unparse(word) == "public"
    }


def prepared(name: str, path: Path, shared: dict[str, int]) -> str:
    """The module as Cython reads it. ``shared``: the constants of the instructions, which other modules import."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    known = constants(tree)
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").endswith("instructions"):
            known |= {name.name: shared[name.name] for name in node.names if name.name in shared}
    lines = text.encode().splitlines(keepends=True)
    found: list[tuple[int, int, int, int]] = []
    for node in ast.walk(tree):
        value = None
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            value = known.get(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "m":
            value = shared.get(node.attr)
        if value is not None:
            found.append((node.lineno - 1, node.col_offset, node.end_col_offset or 0, value))
    for line, start, end, value in sorted(found, reverse=True):
        lines[line] = lines[line][:start] + str(value).encode() + lines[line][end:]
    for number in shown(name, tree).values():
        lines[number - 1] = b"\n"
    for node in c_classes(name, tree):
        for base in node.bases:
            if ast.unparse(base).startswith("Generic["):  # on the line of the class, as its only base
                line = lines[base.lineno - 1]
                lines[base.lineno - 1] = line[: base.col_offset] + line[base.end_col_offset :]
    return b"".join(lines).decode()


def sources() -> list[Extension]:
    shutil.rmtree(BUILD, ignore_errors=True)
    instructions = PURE / "core" / "parser" / "instructions.py"
    shared = constants(ast.parse(instructions.read_text(encoding="utf-8")))
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


def all_shown() -> dict[str, list[str]]:
    """The names of `shown`, by module."""
    found = {}
    for name in NAMES:
        tree = ast.parse((PURE / f"{name.replace('.', '/')}.py").read_text(encoding="utf-8"))
        found[f"chatparsers.{name}"] = [*shown(name, tree)]
    return found


class Build(build_ext):
    """Puts the modules into the folder of this package. They keep their names in ``chatparsers``."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def get_ext_fullpath(self, ext_name: str) -> str:
        path = Path(super().get_ext_fullpath(ext_name)).relative_to(self.build_lib)
        inside = path if path.parts[0] == "chatparsers_compiled" else "chatparsers_compiled" / path
        return str(self.build_lib / inside)


os.chdir(HERE)
extensions = sources()
(HERE / "chatparsers_compiled" / "_built.py").write_text(
    f'VERSION = "{version()}"\nPUBLIC = {all_shown()!r}\n', encoding="utf-8"
)
setup(
    version=version(),
    install_requires=[f"chatparsers=={version()}"],
    packages=["chatparsers_compiled"],
    ext_modules=cythonize(
        [*extensions, Extension("chatparsers_compiled._names", ["chatparsers_compiled/_names.pyx"])],
        compiler_directives=DIRECTIVES,
        include_path=[str(BUILD)],
        build_dir=str(BUILD / "c"),
    ),
    cmdclass={"build_ext": Build},
)
