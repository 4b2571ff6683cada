"""Runs each scenario at every forge unless it is about one of them; most other forges only with `-m long`."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path

import pytest

from tests.support.forge_drivers.registry import FORGE_DRIVERS
from tests.support.forge_scenario import ForgeScenario, a_forge_scenario

HERE = Path(__file__).parent
DEFAULT_FORGE = "github"
ALWAYS_AT_EVERY_FORGE = ("test_submissions.py",)

StartScenario = Callable[..., AbstractAsyncContextManager[ForgeScenario]]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _is_at_another_forge(item) and HERE in item.path.parents and item.path.name not in ALWAYS_AT_EVERY_FORGE:
            item.add_marker(pytest.mark.long)


def _is_at_another_forge(item: pytest.Item) -> bool:
    spec = getattr(item, "callspec", None)
    return spec is not None and spec.params.get("forge_scenario", DEFAULT_FORGE) != DEFAULT_FORGE


@pytest.fixture(params=FORGE_DRIVERS)
def forge_scenario(request: pytest.FixtureRequest, tmp_path: Path) -> StartScenario:
    """Starts a scenario with the given queue settings and stage."""
    return partial(a_forge_scenario, tmp_path, FORGE_DRIVERS[request.param])


@pytest.fixture
def github_scenario(tmp_path: Path) -> StartScenario:
    return partial(a_forge_scenario, tmp_path, FORGE_DRIVERS["github"])


@pytest.fixture
def gitea_scenario(tmp_path: Path) -> StartScenario:
    return partial(a_forge_scenario, tmp_path, FORGE_DRIVERS["gitea"])
