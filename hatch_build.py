"""What hatchling adds when it builds chatparsers: links that hold outside of the repository, and the compiled core.

``CHATPARSERS_COMPILE=1`` adds the compiled core, or ends the build with an error; ``HATCH_BUILD_HOOK_ENABLE_CUSTOM=1``,
as in the jobs that make a release, adds it and a manual page. Without them a build compiles nothing and needs nothing.
Each compiled module lies beside its ``.py``, so an interpreter takes it first. ``CHATPARSERS_ABI3=3.12`` makes one
wheel for that CPython and all later ones, ``CHATPARSERS_PURE=1`` one for every platform, with nothing compiled. A
checkout never gets a compiled module: the next edit would not run.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface
from packaging.tags import sys_tags

PICTURES = "https://raw.githubusercontent.com/chatparsers/chatparsers"
FILES = "https://github.com/chatparsers/chatparsers/blob"


class LongDescription(MetadataHookInterface):
    """The README with every link to a file of the repository made a link to that file at the tag of this version."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        tag = f"v{metadata['version']}"
        text = re.sub(r"(!\[[^\]]*\]\()(?!\w+:|#)", rf"\g<1>{PICTURES}/{tag}/", text)
        text = re.sub(r"((?<!!)\[[^\]]*\]\()(?!\w+:|#)", rf"\g<1>{FILES}/{tag}/", text)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def wanted(variable: str) -> bool:
    """Whether the environment's variable is set to something else than 0."""
    return os.environ.get(variable, "0") not in ("", "0")


RELEASE, COMPILE, PURE_WHEEL = "HATCH_BUILD_HOOK_ENABLE_CUSTOM", "CHATPARSERS_COMPILE", "CHATPARSERS_PURE"


class Release(BuildHookInterface[Any]):
    """Adds to a wheel the manual page and the compiled core, which makes it a platform's."""

    def dependencies(self) -> list[str]:
        found = ["argparse-manpage>=4.6"] if wanted(RELEASE) else []
        return [*found, "cython==3.3.1", "setuptools>=77"] if wanted(RELEASE) or wanted(COMPILE) else found

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            if wanted(COMPILE):
                raise RuntimeError(
                    f"{COMPILE}=1: an editable checkout runs its sources: install it without -e"
                )
            return
        if wanted(RELEASE):
            build_data["shared_data"][str(self.manual())] = "share/man/man1/chatparsers.1"
        if wanted(COMPILE) or (wanted(RELEASE) and not wanted(PURE_WHEEL)):
            self.compile(build_data)

    def manual(self) -> Path:
        """Writes the manual page, from the arguments of the command line."""
        from argparse_manpage.manpage import Manpage

        sys.path.insert(0, self.root)
        from chatparsers import __version__
        from chatparsers.cli.arguments import build_parser

        about = {"project_name": "chatparsers", "version": __version__, "manual_title": "chatparsers"}
        about["description"] = "reads what open-weights chat models write"
        path = Path(self.root) / "build" / "chatparsers.1"
        path.parent.mkdir(exist_ok=True)
        path.write_text(str(Manpage(build_parser(), about)), encoding="utf-8")
        return path

    def compile(self, build_data: dict[str, Any]) -> None:
        sys.path.insert(0, str(Path(self.root) / "compiled"))
        from build import build

        folder = Path(self.root) / "compiled" / "build" / "core"
        oldest = os.environ.get("CHATPARSERS_ABI3", "")
        for path in build(folder, oldest):
            build_data["force_include"][str(path)] = path.relative_to(folder).as_posix()
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        if oldest:
            # auditwheel, which makes a wheel of this machine's one of all Linuxes, asks for the plain name.
            platform = next(
                tag.platform for tag in sys_tags() if not tag.platform.startswith(("many", "musl"))
            )
            build_data["tag"] = f"cp{oldest.replace('.', '')}-abi3-{platform}"
