"""A fixture of the tests of tables."""

from __future__ import annotations

import pytest
from tables import Draw


@pytest.fixture
def draw() -> Draw:
    return Draw(24)
