"""Fixtures of the grammar tests. Shared code is imported as plain modules of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared_folder_or_none(request: pytest.FixtureRequest) -> Path | None:
    """The folder of real data, None if it is absent."""
    try:
        folder: Path = request.getfixturevalue("shared_dir")
    except pytest.skip.Exception:
        return None
    return folder
