"""The templates that the tests run over: our own small ones always, real ones where the data folder is there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_TESTS = Path(__file__).parents[1]


def _real_templates(config: pytest.Config) -> list[Path]:
    given = config.getoption("--shared", default=None) or os.environ.get("CHATPARSERS_SHARED")
    folder = Path(given) if given else _TESTS.parents[1] / "shared"
    return sorted((folder / "templates").glob("*.jinja"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    own = sorted((_TESTS / "templates_own").glob("*.jinja"))
    if "own_template" in metafunc.fixturenames:
        metafunc.parametrize("own_template", own, ids=lambda path: path.stem)
    for name, more in (("real_template", []), ("any_template", own)):
        if name in metafunc.fixturenames:
            cases: list[object] = [pytest.param(path, id=path.stem) for path in more]
            real = _real_templates(metafunc.config)
            cases += [pytest.param(path, id=f"real-{path.stem}") for path in real]
            if not real:
                reason = "no real templates: pass --shared DIR or set CHATPARSERS_SHARED"
                cases.append(pytest.param(None, id="real", marks=pytest.mark.skip(reason=reason)))
            metafunc.parametrize(name, cases)


@pytest.fixture(scope="session")
def own_folder() -> Path:
    return _TESTS / "templates_own"
