"""What the SDKs and frameworks offer their users works with a gateway, those that are installed (`sdks.py`)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

import pytest

pytest.importorskip("starlette", reason="the package starlette is not installed")

from sdks import CASES, gateway, installed

EACH = [(package, name, function) for package, cases in CASES.items() for name, function in cases]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with gateway() as found:
        yield found


@pytest.mark.parametrize(
    ("package", "function"), [(one[0], one[2]) for one in EACH], ids=[f"{one[0]}: {one[1]}" for one in EACH]
)
def test_what_sdks_offer(package: str, function: Callable[[str], object], url: str) -> None:
    if installed(package) is None:
        pytest.skip(f"the package {package} is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the packages themselves
        assert function(url)
