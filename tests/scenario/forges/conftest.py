"""Runs each scenario at every forge unless it is about one of them; at others than the first mostly with `-m long`."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path

import pytest

from tests.support.forge_drivers.registry import FORGE_DRIVERS
from tests.support.forge_scenario import ForgeScenario, a_forge_scenario

FOLDER = "tests/scenario/forges/"
DEFAULT_FORGE = "github"
ALWAYS_AT_EVERY_FORGE = (
    "test_pr_submitted_by_the_api_lands_as_tested_and_is_shown_as_merged",
    "test_comment_submits_with_the_options_it_names",
)

StartScenario = Callable[..., AbstractAsyncContextManager[ForgeScenario]]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if isinstance(item, pytest.Function) and item.nodeid.startswith(FOLDER) and _is_at_another_forge(item):
            item.add_marker(pytest.mark.long)


def _is_at_another_forge(item: pytest.Function) -> bool:
    forge = item.callspec.params.get("forge_scenario", DEFAULT_FORGE) if hasattr(item, "callspec") else DEFAULT_FORGE
    return forge != DEFAULT_FORGE and item.originalname not in ALWAYS_AT_EVERY_FORGE


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
