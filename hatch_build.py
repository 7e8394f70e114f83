"""What hatchling adds when it builds chatparsers: links that hold outside of the repository, and the compiled core.

The compiled core is added to a wheel if ``HATCH_BUILD_HOOK_ENABLE_CUSTOM=1``, as in the jobs that make a release. Each
compiled module lies beside its ``.py``, so an interpreter takes it first. ``CHATPARSERS_ABI3=3.12`` makes one wheel for
that CPython and all later ones. Nothing is compiled in a checkout: the next edit would not run.
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


class CompiledCore(BuildHookInterface[Any]):
    """Compiles the core and puts its files into the wheel, which then is a platform's."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
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
